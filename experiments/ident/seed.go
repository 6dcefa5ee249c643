package ident

import "encoding/binary"

// Seed is the seed of the random stream that label names, e.g.
// "rollout/step=12/prompt=p7/sample=3":
//
//	first 8 bytes, big-endian, of H("exp/seed/1", {root, label})
//
// Streams of different labels are independent, so drawing from one never moves
// another. It panics if label is not UTF-8.
func Seed(root int64, label string) uint64 {
	d := mustHash("exp/seed/1", map[string]any{"root": root, "label": label})
	return binary.BigEndian.Uint64(d[:8])
}
