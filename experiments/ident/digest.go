package ident

import (
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
)

// Digest is a SHA-256. The zero value means "none": "" in text and NULL in SQL.
type Digest [sha256.Size]byte

// Sum returns the SHA-256 of b.
func Sum(b []byte) Digest { return sha256.Sum256(b) }

// blocks are buffers that SumReader uses again: there are thousands of small files.
var blocks = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// SumReader returns the SHA-256 of the contents of r and their size in bytes.
func SumReader(r io.Reader) (Digest, int64, error) {
	h := sha256.New()
	block := blocks.Get().(*[32 << 10]byte)
	n, err := io.CopyBuffer(h, r, block[:])
	blocks.Put(block)
	if err != nil {
		return Digest{}, n, err
	}
	return Digest(h.Sum(nil)), n, nil
}

// SumLE returns the SHA-256 of the elements of x as little-endian bytes, the layout of
// raw tensors in files. NaN payloads and the sign of zero count.
func SumLE[T uint16 | int32 | int64 | float32 | float64](x []T) Digest {
	const block = 4096 // elements; at most 32 KiB of bytes stay in the first-level cache
	h := sha256.New()
	buf := make([]byte, 0, 8*block)
	for len(x) > 0 {
		n := min(block, len(x))
		// Append fails only for types without a fixed size.
		buf, _ = binary.Append(buf[:0], binary.LittleEndian, x[:n])
		h.Write(buf)
		x = x[n:]
	}
	return Digest(h.Sum(nil))
}

// IsZero reports whether d is "none".
func (d Digest) IsZero() bool { return d == Digest{} }

// String returns d as 64 lower-case hexadecimal digits, or "" for none.
func (d Digest) String() string {
	if d.IsZero() {
		return ""
	}
	return hex.EncodeToString(d[:])
}

// Short returns the first 8 digits of String, for display.
func (d Digest) Short() string {
	if d.IsZero() {
		return ""
	}
	return hex.EncodeToString(d[:4])
}

// ParseDigest reads the output of String, in either case.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	if s == "" {
		return d, nil
	}
	if len(s) != hex.EncodedLen(len(d)) {
		return d, fmt.Errorf("digest %q: %d characters, want %d hexadecimal digits", s, len(s), hex.EncodedLen(len(d)))
	}
	if _, err := hex.Decode(d[:], []byte(s)); err != nil {
		return Digest{}, fmt.Errorf("digest %q: %w", s, err)
	}
	return d, nil
}

// MarshalText implements encoding.TextMarshaler, as String.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, as ParseDigest.
func (d *Digest) UnmarshalText(text []byte) error {
	v, err := ParseDigest(string(text))
	if err == nil {
		*d = v
	}
	return err
}

// Value implements driver.Valuer: 32 bytes, or NULL for none.
func (d Digest) Value() (driver.Value, error) {
	if d.IsZero() {
		return nil, nil
	}
	return d[:], nil
}

// Scan implements sql.Scanner for what Value wrote.
func (d *Digest) Scan(src any) error {
	switch b := src.(type) {
	case nil:
		*d = Digest{}
		return nil
	case []byte:
		if len(b) != len(d) {
			return fmt.Errorf("digest column holds %d bytes, want %d", len(b), len(d))
		}
		copy(d[:], b)
		return nil
	}
	return fmt.Errorf("digest column holds a %T, want a blob", src)
}
