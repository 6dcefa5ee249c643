package tensor

import (
	"exp/kernels"
	"exp/train/model"
)

// RoomBytes returns the memory of the rooms of n ranks for micro-batches of so many tokens and sampling
// steps of so many rows; packed is the device's PackedLen. Ranks that do not learn make no backward pass, and
// pack no weights of others.
func RoomBytes(c model.Config, tokens, rows, n int, operand kernels.DType, packed model.PackedLen, learns bool) int {
	if n == 1 {
		return 0
	}
	const float = 4
	most := max(tokens, rows)
	bytes := partBytes(c, most, n, operand) + headBytes(c, rows, n, operand) +
		int(most*c.Width*float) + int(4*most*kernels.I32.Size()) // embeddings, their places and tokens
	if learns {
		bytes += packBytes(c, n, operand, packed) + widestBytes(c, tokens, operand)/n + // its part of a gradient
			int(2*tokens*c.Width*float) // dh, and the gradients of a rank's embeddings
	}
	return bytes
}

// SampleRoomBytes returns the memory of the rooms of n ranks that only sample, for steps of so many rows.
func SampleRoomBytes(c model.Config, rows, n int, operand kernels.DType) int {
	if n == 1 {
		return 0
	}
	const float = 4
	return partBytes(c, rows, n, operand) + headBytes(c, rows, n, operand) + int(rows*c.Width*float) // embeddings
}

// headBytes returns the memory of a rank's heads of so many rows, and of their places.
func headBytes(c model.Config, rows, n int, operand kernels.DType) int {
	if c.KVHeads%n != 0 {
		return 0
	}
	return int(rows*(c.Heads+2*c.KVHeads)/n) * (int(c.Head*operand.Size()) + kernels.I32.Size())
}

// partBytes returns the memory of the rooms for parts of activations, and for a gate.
func partBytes(c model.Config, tokens, n int, operand kernels.DType) int {
	bytes := widestBytes(c, tokens, operand) + int(tokens*c.Gate.Factors()*c.FFN*operand.Size()) +
		int(tokens*n*kernels.I32.Size()) // rows of parts
	if c.Sinks && c.KVHeads%n == 0 {
		const float = 4
		bytes += int(tokens * c.Heads * 2 * float) // attention's stats
	}
	return bytes
}

// widestBytes returns the memory of the widest activations of each type that ranks gather.
func widestBytes(c model.Config, tokens int, operand kernels.DType) int {
	const float = 4
	wide := max(c.WidestMap(), c.Heads*c.Head, c.Delta.Out()) // operands
	if operand == kernels.F32 {
		return int(tokens * max(wide, c.WidestFloats()) * float)
	}
	return int(tokens*wide*operand.Size()) + int(tokens*c.WidestFloats()*float)
}

// packBytes returns the memory of the rooms for packing and for columns.
func packBytes(c model.Config, n int, operand kernels.DType, packed model.PackedLen) int {
	const float = 4
	p, pt := packed((c.Vocab+n-1)/n, c.OutputWidth())
	bytes := int((p + pt) * operand.Size()) // of this rank's tokens
	whole := min(packElements, int(c.Vocab*c.OutputWidth()))
	if pt > 0 {
		whole = int(c.Vocab * c.OutputWidth())
	}
	columns := c.LargestMap() / n
	bytes += int((whole + 2*columns) * float)
	if p > 0 {
		bytes += int(columns * operand.Size())
	}
	return bytes
}
