package stage

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"exp/experiments/ident"
	"exp/harness/dataset"
	"exp/train/rollout"
)

// An album is the blob with the images of a run's problems, an uncompressed tar: a file DIGEST.FORMAT for each
// different image, in the order in which problems first show it. Problems name their images by digest, so the album
// adds nothing to a stage's id.

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

// Album reads the images of a run's problems. Safe for concurrent use.
type Album struct {
	f     *os.File
	names []string        // of the files, in order
	at    map[string]span // by digest
}

// OpenAlbum opens an album's file.
func OpenAlbum(path string) (*Album, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	a := &Album{f: f, at: map[string]span{}}
	for tr := tar.NewReader(f); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return a, nil
		}
		if err == nil {
			var at int64
			if at, err = f.Seek(0, io.SeekCurrent); err == nil {
				digest, _, _ := cutLast(h.Name, '.')
				a.names, a.at[digest] = append(a.names, h.Name), span{at, h.Size}
			}
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("album of images: %w", err), f.Close())
		}
	}
}

// cutLast cuts a text at the last c.
func cutLast(text string, c byte) (before, after string, found bool) {
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] == c {
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}

// Close closes the file.
func (a *Album) Close() error { return a.f.Close() }

// Names lists the files, DIGEST.FORMAT.
func (a *Album) Names() []string { return slices.Clone(a.names) }

// Bytes returns the file of an image, compared with its digest.
func (a *Album) Bytes(digest string) ([]byte, error) {
	s, ok := a.at[digest]
	if !ok {
		return nil, fmt.Errorf("the run's images have none with digest %s", digest)
	}
	b := make([]byte, s.size)
	if _, err := a.f.ReadAt(b, s.start); err != nil {
		return nil, fmt.Errorf("image %s: %w", digest, err)
	}
	if got := ident.Sum(b).String(); got != digest {
		return nil, fmt.Errorf("image %s is damaged: its digest is %s", digest, got)
	}
	return b, nil
}
