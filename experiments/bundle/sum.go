package bundle

import (
	"crypto/sha256"
	"hash"
	"io"

	"exp/experiments/ident"
)

// summer writes to w and hashes and counts what it writes.
type summer struct {
	w io.Writer
	h hash.Hash
	n int64
}

func newSummer(w io.Writer) *summer { return &summer{w: w, h: sha256.New()} }

func (s *summer) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.h.Write(p[:n])
	s.n += int64(n)
	return n, err
}

func (s *summer) digest() ident.Digest { return ident.Digest(s.h.Sum(nil)) }
