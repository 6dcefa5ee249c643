package kernels

// LatentShape is the heads of multi-head latent attention (DeepSeek-V2, arXiv:2405.04434 §2.1): H heads whose
// queries and keys have Nope channels without positions and Rope rotated ones, and whose values have Value,
// at most Nope+Rope. The rotated channels of the keys are the same in all heads.
type LatentShape struct {
	H, Nope, Rope, Value int
	// Interleaved says that channels 2i and 2i+1 are rotated together. Rows for Rope of Sequence have the even
	// channels first.
	Interleaved bool
}

// D returns the channels of a query or key.
func (s LatentShape) D() int { return s.Nope + s.Rope }

// Channel returns the rotated channel that is the i-th of a head for Rope.
func (s LatentShape) Channel(i int) int {
	if half := s.Rope / 2; s.Interleaved && i < half {
		return 2 * i
	} else if s.Interleaved {
		return 2*(i-half) + 1
	}
	return i
}

// Check panics if no heads have this shape.
func (s LatentShape) Check() {
	if s.H < 1 || s.Nope < 0 || s.Rope < 0 || s.Rope%2 != 0 || s.Value < 1 || s.Value > s.D() {
		panic("kernels: no such heads of latent attention")
	}
}

// Latent moves the heads of latent attention to and from the rows that Attention reads: there a head has its
// rotated channels first, which Rope turns (AttentionShape.Rotary), and a value's missing channels are 0. All
// buffers are operands.
type Latent interface {
	// JoinLatent sets qkv [M,3·H·D], the layout of AttentionShape with H = K, from queries q [M,H·D], each head
	// [Nope | Rope], from kv [M,H·(Nope+Value)], each head [key | value], and rope [M,Rope] of all keys. With
	// c(i) = Channel(i),
	//	query h: [q[h·D+Nope+c(i)], i < Rope | q[h·D+i], i < Nope]
	//	key h:   [rope[c(i)], i < Rope | kv[h·(Nope+Value)+i], i < Nope]
	//	value h: [kv[h·(Nope+Value)+Nope+i], i < Value | 0, up to D]
	JoinLatent(qkv, q, kv, rope Buffer, s LatentShape)
	// SplitLatent is the backward pass: it sets dq, dkv and drope from dqkv; drope[c(i)] is the plain sum over
	// heads of dqkv's keys, from 0.
	SplitLatent(dq, dkv, drope, dqkv Buffer, s LatentShape)
	// TakeValues sets out [M,H·Value] to the first Value channels of each head of att [M,H·D].
	TakeValues(out, att Buffer, s LatentShape)
	// PutValues sets att [M,H·D] to out [M,H·Value], and 0 elsewhere.
	PutValues(att, out Buffer, s LatentShape)
}
