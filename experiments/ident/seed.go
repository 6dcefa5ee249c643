package ident

import (
	"crypto/sha256"
	"encoding/binary"
)

// Seed returns the seed of the random stream named by label, e.g.
// "rollout/step=12/prompt=p7/sample=3":
//
//	first 8 bytes, big-endian, of H("exp/seed/1", {root, label})
//
// Streams with different labels are independent, so drawing from one never advances
// another. Seed panics if label is not UTF-8.
func Seed(root int64, label string) uint64 {
	// The same as Hash of the map, without reflection: a training step needs thousands.
	b := binary.BigEndian.AppendUint32(append(append(make([]byte, 0, 128), seedTag...), ceMap), 2)
	b, _ = appendText(b, "label")
	b, err := appendText(b, label)
	if err != nil {
		panic("ident: " + err.Error())
	}
	b, _ = appendText(b, "root")
	d := sha256.Sum256(appendInt(b, root))
	return binary.BigEndian.Uint64(d[:8])
}

var seedTag = tagged("exp/seed/1")
