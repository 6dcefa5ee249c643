package optim

// Faster says which elements of a shard learn with Ratio times the learning rate, as the B of adapters do in LoRA+
// (Hayou et al., arXiv:2402.12354). Their decay is as much greater, as PyTorch's is in a group of parameters with a
// rate of its own. The zero value is for none.
type Faster struct {
	Ratio  float64
	Ranges []Range // ascending; none overlaps another
}

// Range is elements Lo to Hi.
type Range struct{ Lo, Hi int }

// each cuts elements lo to hi where the rate changes, and calls f for each part, in order, with its rate.
func (x Faster) each(lo, hi int, rate float64, f func(lo, hi int, rate float64)) {
	for _, r := range x.Ranges {
		from, to := max(lo, r.Lo), min(hi, r.Hi)
		if from >= to {
			continue
		}
		if lo < from {
			f(lo, from, rate)
		}
		f(from, to, float64(rate*x.Ratio))
		lo = to
	}
	if lo < hi {
		f(lo, hi, rate)
	}
}
