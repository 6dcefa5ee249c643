package tensor

import (
	"exp/kernels"
	"exp/train/model"
)

// RoomBytes returns the memory of the rooms of n ranks for micro-batches of so many tokens; packed
// is the device's PackedLen.
func RoomBytes(c model.Config, tokens, n int, operand kernels.DType, packed model.PackedLen) int {
	if n == 1 {
		return 0
	}
	const float = 4
	wide := max(c.QKV(), 2*c.FFN, c.Heads*c.Head) // operands; floats are of the residual stream's width
	parts := int(tokens*wide*operand.Size()) + int(tokens*c.Width*float)
	if operand == kernels.F32 {
		parts = int(tokens * max(wide, c.Width) * float)
	}
	parts += parts/n + int(tokens*2*c.FFN*operand.Size())
	return parts + packBytes(c, n, operand, packed) + int(3*tokens*c.Width*float) // dh and embeddings
}

// packBytes returns the memory of the rooms for packing.
func packBytes(c model.Config, n int, operand kernels.DType, packed model.PackedLen) int {
	const float = 4
	p, pt := packed((c.Vocab+n-1)/n, c.Width)
	bytes := int((p + pt) * operand.Size()) // of this rank's tokens
	whole := min(packElements, int(c.Vocab*c.Width))
	if pt > 0 {
		whole = int(c.Vocab * c.Width)
		columns := int(c.Width*max(c.QKV(), 2*c.FFN)) / n
		bytes += int(columns * (2*float + operand.Size()))
	}
	return bytes + int(whole*float)
}
