package ident

import (
	"crypto/sha256"
	"encoding/binary"
)

// Seed is the seed of the random stream that label names, e.g.
// "rollout/step=12/prompt=p7/sample=3":
//
//	first 8 bytes, big-endian, of H("exp/seed/1", {root, label})
//
// Streams of different labels are independent, so drawing from one never moves
// another. It panics if label is not UTF-8.
func Seed(root int64, label string) uint64 {
	// What Hash makes of the map, without its way through reflection: a step of training
	// asks for thousands.
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
