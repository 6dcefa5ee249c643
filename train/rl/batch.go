package rl

// Float is the element type of arrays: float32 in training, float64 in gradient tests.
type Float interface{ float32 | float64 }

// Rows holds the offsets [B+1] of the rows of a ragged batch: row i is the
// elements Rows[i] to Rows[i+1]-1 of every array [N]. The first offset is 0, the
// last N; a row may be empty.
type Rows []int

// Len returns the number of rows, B.
func (r Rows) Len() int { return len(r) - 1 }

// check panics unless r cuts n elements into rows.
func (r Rows) check(n int) {
	if len(r) == 0 || r[0] != 0 || r[len(r)-1] != n {
		panic("rl: rows do not cover the tokens")
	}
	for i := 1; i < len(r); i++ {
		if r[i] < r[i-1] {
			panic("rl: row offsets decrease")
		}
	}
}

// Batch is a micro-batch of whole trajectories in the form policy losses read. Only LogProb
// carries a gradient; everything else is constant to the losses.
type Batch[T Float] struct {
	Rows Rows   // [B+1]
	Mask []bool // [N] trained tokens
	// Coef weighs each token in the loss; see Aggregation.Coefficients. FlowRL ignores it
	// when its terms are rows.
	Coef       []float64 // [N]
	LogProb    []T       // [N] under the current parameters
	OldLogProb []T       // [N] under the parameters before the first update
	RefLogProb []T       // [N] under the reference policy; nil if nothing reads it
	Adv        []T       // [N] advantages
	// Weight multiplies a token's loss: importance weights of rollout correction. Nil means
	// 1.
	Weight []T // [N]
}

// check panics unless the gradient and the arrays that every policy loss reads have equal
// lengths.
func (b *Batch[T]) check(grad []T) {
	n := len(b.Mask)
	b.Rows.check(n)
	sameLen(n, len(grad), len(b.LogProb), len(b.OldLogProb), len(b.Adv))
	if b.Weight != nil {
		sameLen(n, len(b.Weight))
	}
}

// weight returns the importance weight of token t.
func (b *Batch[T]) weight(t int) float64 {
	if b.Weight == nil {
		return 1
	}
	return float64(b.Weight[t])
}

// sameLen panics unless all lengths equal n.
func sameLen(n int, lengths ...int) {
	for _, l := range lengths {
		if l != n {
			panic("rl: length mismatch")
		}
	}
}

// clamp returns x bounded to [lo, hi]; NaN stays NaN.
func clamp(x, lo, hi float64) float64 { return min(max(x, lo), hi) }

// square returns x·x, rounded.
func square(x float64) float64 { return float64(x * x) }
