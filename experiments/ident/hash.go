package ident

import (
	"crypto/sha256"
	"hash"
)

// Hash returns the digest of a value in the domain named by tag:
//
//	H(tag, v) = SHA-256(uint8 len(tag) ‖ tag ‖ CE(v))
//
// A tag has a version ("exp/run/1"); the input of a tag never changes. The error is an
// *EncodeError. Hash panics if tag is empty or over 255 bytes.
func Hash(tag string, v any) (Digest, error) {
	b, err := Append(tagged(tag), v)
	if err != nil {
		return Digest{}, err
	}
	return sha256.Sum256(b), nil
}

// mustHash is Hash for values that always encode.
func mustHash(tag string, v any) Digest {
	d, err := Hash(tag, v)
	if err != nil {
		panic("ident: " + err.Error())
	}
	return d
}

func tagged(tag string) []byte {
	if tag == "" || len(tag) > 255 {
		panic("ident: a tag has 1 to 255 bytes")
	}
	return append([]byte{byte(len(tag))}, tag...)
}

// Records digests a data source record by record, without holding it:
//
//	H("exp/data/1", {count, sha256: SHA-256(CE(record 0) ‖ CE(record 1) ‖ …)})
//
// Encodings are self-delimiting, so their concatenation is unambiguous. The digest
// depends on the records and their order, not on their file. Make one with NewRecords.
// Not safe for concurrent use.
type Records struct {
	n   int64
	h   hash.Hash
	buf []byte
}

// NewRecords returns the digest of no records.
func NewRecords() *Records { return &Records{h: sha256.New()} }

// Add adds a record. After an error, an *EncodeError, the record does not count.
func (r *Records) Add(v any) error {
	b, err := Append(r.buf[:0], v)
	if err != nil {
		return err
	}
	r.buf = b
	r.h.Write(b)
	r.n++
	return nil
}

// Digest returns the digest of the records so far; more may follow.
func (r *Records) Digest() Digest {
	return mustHash("exp/data/1", map[string]any{"count": r.n, "sha256": r.h.Sum(nil)})
}
