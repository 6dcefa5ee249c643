package blob

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"exp/experiments/ident"
)

// Album reads a blob of images: an uncompressed tar with a file DIGEST.FORMAT for each different one, where DIGEST is
// its SHA-256. Safe for concurrent use.
type Album struct {
	f     *os.File
	names []string            // of the files, in order
	at    map[string][2]int64 // start and size, by digest
}

// OpenAlbum opens an album's file, without comparing it with a digest.
func OpenAlbum(path string) (*Album, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	a := &Album{f: f, at: map[string][2]int64{}}
	for tr := tar.NewReader(f); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return a, nil
		}
		if err == nil {
			var at int64
			if at, err = f.Seek(0, io.SeekCurrent); err == nil {
				digest, _, _ := strings.Cut(h.Name, ".")
				a.names, a.at[digest] = append(a.names, h.Name), [2]int64{at, h.Size}
			}
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("album of images: %w", err), f.Close())
		}
	}
}

// Close closes the file.
func (a *Album) Close() error { return a.f.Close() }

// Names lists the files, DIGEST.FORMAT.
func (a *Album) Names() []string { return slices.Clone(a.names) }

// Find returns the name of the first file whose digest begins with some digits, or "".
func (a *Album) Find(digits string) string {
	i := slices.IndexFunc(a.names, func(name string) bool { return strings.HasPrefix(name, digits) })
	if i < 0 {
		return ""
	}
	return a.names[i]
}

// Bytes returns the file of an image, compared with its digest.
func (a *Album) Bytes(digest string) ([]byte, error) {
	s, ok := a.at[digest]
	if !ok {
		return nil, fmt.Errorf("the album has no image with digest %s", digest)
	}
	b := make([]byte, s[1])
	if _, err := a.f.ReadAt(b, s[0]); err != nil {
		return nil, fmt.Errorf("image %s: %w", digest, err)
	}
	if got := ident.Sum(b).String(); got != digest {
		return nil, fmt.Errorf("image %s is damaged: its digest is %s", digest, got)
	}
	return b, nil
}
