package hub

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Provenance says where something that a run read came from.
type Provenance struct {
	Key      string `json:"key"` // of the configuration
	Endpoint string `json:"endpoint"`
	Kind     Kind   `json:"kind"`
	Repo     string `json:"repo"`
	Revision string `json:"revision"` // as asked
	Commit   string `json:"commit"`
	Files    []Sum  `json:"files"`
}

// Sum is a file with its sha256.
type Sum struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Sums returns the sha256 of the files of a reference. A blob that is named after its sha256
// was checked when it was fetched and is not read again: the digests of weights and data in a
// run's identity come from their contents.
func (f Found) Sums(ctx context.Context) ([]Sum, error) {
	list := make([]Sum, 0, len(f.Files))
	for _, name := range f.Files {
		s, err := sumOf(ctx, filepath.Join(f.Dir, filepath.FromSlash(name)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Ref, err)
		}
		s.Path = name
		list = append(list, s)
	}
	return list, nil
}

// sha256Digits is the length of a sha256 in hexadecimal.
const sha256Digits = 64

func sumOf(ctx context.Context, path string) (s Sum, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return s, err
	}
	s.Bytes = info.Size()
	if target, err := os.Readlink(path); err == nil {
		if name := filepath.Base(target); len(name) == sha256Digits && digestForm.MatchString(name) {
			s.SHA256 = name
			return s, nil
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return s, err
	}
	defer file.Close() // only read
	s.SHA256, err = digestOf(ctx, file, fmt.Sprintf("%0*d", sha256Digits, 0), s.Bytes)
	return s, err
}
