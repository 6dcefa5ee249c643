package stage

import (
	"archive/tar"
	"errors"
	"io"
	"os"

	"exp/harness/dataset"
	"exp/train/rollout"
)

// The images of a run's problems are a blob.Album, in the order in which problems first show them. Problems name their
// images by digest, so the album adds nothing to a stage's id.

// albumWriter keeps the images of rows in a file until it is known which problems stay. Not safe for concurrent use.
type albumWriter struct {
	f     *os.File
	size  int64
	at    map[string]span            // by digest
	valid func(encoded []byte) error // reports images that cannot be decoded
	list  []string                   // digests of the album, in order
	pics  map[string]rollout.Picture // of these
}

// span is a part of a file.
type span struct{ start, size int64 }

// newAlbumWriter opens a file in a folder. The caller closes the writer.
func newAlbumWriter(dir string, valid func(encoded []byte) error) (*albumWriter, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return nil, err
		}
	}
	f, err := os.CreateTemp(dir, "images-*.tmp")
	if err != nil {
		return nil, err
	}
	return &albumWriter{f: f, at: map[string]span{}, valid: valid, pics: map[string]rollout.Picture{}}, nil
}

func (w *albumWriter) close() { _ = errors.Join(w.f.Close(), os.Remove(w.f.Name())) } // nothing in it is needed

// take is for layout.Images.
func (w *albumWriter) take(encoded []byte) (rollout.Picture, error) {
	pic, err := dataset.Describe(encoded)
	if err != nil {
		return pic, err
	}
	if _, known := w.at[pic.Digest]; known {
		return pic, nil
	}
	if err := w.valid(encoded); err != nil {
		return pic, err
	}
	if _, err := w.f.WriteAt(encoded, w.size); err != nil {
		return pic, err
	}
	w.at[pic.Digest] = span{w.size, int64(len(encoded))}
	w.size += int64(len(encoded))
	return pic, nil
}

// show adds the images of problems to the album, and returns how often they show one.
func (w *albumWriter) show(problems []rollout.Problem) (n int) {
	for i := range problems {
		for _, pic := range problems[i].Images {
			n++
			if _, known := w.pics[pic.Digest]; !known {
				w.list, w.pics[pic.Digest] = append(w.list, pic.Digest), pic
			}
		}
	}
	return n
}

// write writes the album.
func (w *albumWriter) write(to io.Writer) error {
	tw := tar.NewWriter(to)
	for _, digest := range w.list {
		s := w.at[digest]
		name := digest + "." + w.pics[digest].Format
		if err := tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: s.size}); err != nil {
			return err
		}
		if _, err := io.Copy(tw, io.NewSectionReader(w.f, s.start, s.size)); err != nil {
			return err
		}
	}
	return tw.Close()
}

// putAlbum stores the album; there is none without images.
func (e *Env) putAlbum(w *albumWriter) (list []Output, err error) {
	if len(w.list) == 0 {
		return nil, nil
	}
	d, size, err := e.Blobs.PutWritten(w.write)
	return []Output{{Role: RoleImages, Digest: d, Size: size, Kind: "images"}}, err
}
