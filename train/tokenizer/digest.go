package tokenizer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
)

// digest hashes everything that affects a tokenizer's results: equal content gives equal
// digests, whatever the layout of the files.
type digest struct {
	h   hash.Hash
	buf []byte
}

func newDigest() *digest { return &digest{h: sha256.New()} }

// add takes plain values, one JSON line each, so values cannot run together.
func (d *digest) add(values ...any) {
	enc := json.NewEncoder(d.h)
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			panic("tokenizer: JSON of a plain value: " + err.Error())
		}
	}
}

// component takes a part of tokenizer.json, whatever the order of its fields.
func (d *digest) component(raw json.RawMessage) {
	var v any
	if !absent(raw) && json.Unmarshal(raw, &v) != nil {
		v = string(raw)
	}
	d.add(v)
}

// vocabulary takes texts and ids.
func (d *digest) vocabulary(v *vocabulary) {
	d.add(v.size())
	for id, text := range v.byID() {
		d.buf = binary.AppendUvarint(d.buf[:0], uint64(id))
		d.buf = binary.AppendUvarint(d.buf, uint64(len(text)))
		d.buf = append(d.buf, text...)
		d.h.Write(d.buf)
	}
}

// pair takes two ids.
func (d *digest) pair(a, b int32) {
	d.buf = binary.AppendUvarint(d.buf[:0], uint64(a))
	d.buf = binary.AppendUvarint(d.buf, uint64(b))
	d.h.Write(d.buf)
}

// sum returns the digest in hexadecimal.
func (d *digest) sum() string { return hex.EncodeToString(d.h.Sum(nil)) }
