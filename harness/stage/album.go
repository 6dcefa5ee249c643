package stage

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	"exp/harness/dataset"
	"exp/train/rollout"
)

// The images of a run's problems are a blob.Album, in the order in which problems first show them. Problems name their
// images by digest, so the album adds nothing to a stage's id.

// albumWriter keeps the images of rows in a file until it is known which problems stay, and meanwhile decodes them on
// all processors. The zero value with valid works; it makes the file with the first image. Its methods must not be
// called concurrently.
type albumWriter struct {
	dir   string                     // of the file; empty: the system's
	valid func(encoded []byte) error // reports images that cannot be decoded

	f    *os.File
	size int64
	at   map[string]span            // by digest
	list []string                   // digests of the album, in order
	pics map[string]rollout.Picture // of these

	decoding sync.WaitGroup
	slots    chan struct{} // one for each image that is decoded
	mu       sync.Mutex
	bad      map[string]error // images that cannot be decoded, by digest
}

// span is a part of a file.
type span struct{ start, size int64 }

// begin makes the file.
func (w *albumWriter) begin() (err error) {
	if w.dir != "" {
		if err := os.MkdirAll(w.dir, 0o777); err != nil {
			return err
		}
	}
	w.at, w.pics, w.bad = map[string]span{}, map[string]rollout.Picture{}, map[string]error{}
	w.slots = make(chan struct{}, runtime.GOMAXPROCS(0))
	w.f, err = os.CreateTemp(w.dir, "images-*.tmp")
	return err
}

// close removes the file.
func (w *albumWriter) close() {
	w.decoding.Wait()
	if w.f != nil {
		_ = errors.Join(w.f.Close(), os.Remove(w.f.Name())) // nothing in it is needed
	}
}

// take is for layout.Images.
func (w *albumWriter) take(encoded []byte) (rollout.Picture, error) {
	pic, err := dataset.Describe(encoded)
	if err == nil && w.f == nil {
		err = w.begin()
	}
	if err != nil {
		return pic, err
	}
	if _, known := w.at[pic.Digest]; known {
		return pic, nil
	}
	if _, err := w.f.WriteAt(encoded, w.size); err != nil {
		return pic, err
	}
	w.at[pic.Digest] = span{w.size, int64(len(encoded))}
	w.size += int64(len(encoded))
	w.slots <- struct{}{}
	w.decoding.Go(func() {
		defer func() { <-w.slots }()
		if err := w.valid(encoded); err != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.bad[pic.Digest] = err
		}
	})
	return pic, nil
}

// broken returns the error of the first image of problems, or of what else shows some, that cannot be decoded.
func (w *albumWriter) broken(what string, problems []rollout.Problem) error {
	w.decoding.Wait()
	for i := range problems {
		for k, pic := range problems[i].Images {
			if err := w.bad[pic.Digest]; err != nil {
				return fmt.Errorf("%s %s: image %d: %w", what, problems[i].ID, k+1, err)
			}
		}
	}
	return nil
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

// putAlbum stores the album, if it has images.
func (e *Env) putAlbum(w *albumWriter) (list []Output, err error) {
	if len(w.list) == 0 {
		return nil, nil
	}
	d, size, err := e.Blobs.PutWritten(w.write)
	return []Output{{Role: RoleImages, Digest: d, Size: size, Kind: "images"}}, err
}
