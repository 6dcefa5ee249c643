package model

import (
	"slices"

	"exp/kernels"
)

// maskRoom is where a step's masks of tokens go on the device, at a time the rows that are drawn together. Like
// adjustRoom, it allocates nothing before the first.
type maskRoom struct {
	words kernels.Buffer
	parts [][]int32 // of a step: copies read them until its end
	used  int
}

func (x *maskRoom) close(be kernels.Backend) {
	be.Free(x.words)
	x.words = kernels.Buffer{}
}

// next loads the masks of some rows; empty if all of their tokens may be drawn. It panics if the device has no memory
// left.
func (x *maskRoom) next(m *Model, rows [][]uint32) kernels.Buffer {
	if !slices.ContainsFunc(rows, func(mask []uint32) bool { return mask != nil }) {
		return kernels.Buffer{}
	}
	if x.used == len(x.parts) {
		x.parts = append(x.parts, nil)
	}
	W := kernels.MaskWords(m.Config.Vocab)
	part := x.parts[x.used][:0]
	for _, mask := range rows {
		if mask == nil {
			part = append(part, slices.Repeat([]int32{-1}, W)...)
			continue
		}
		for _, word := range mask[:W] {
			part = append(part, int32(word))
		}
	}
	x.parts[x.used] = part
	x.used++
	if x.words.Len() < len(part) {
		m.be.Free(x.words)
		bigger, err := m.be.Alloc(kernels.I32, 2*len(part))
		if err != nil {
			panic(&kernels.RoomError{Part: kernels.StepRoom, Err: err})
		}
		x.words = bigger
	}
	words := x.words.Slice(0, len(part))
	m.be.Copy(words, kernels.Host(part))
	return words
}
