package rollout

// MicroBatches cuts sequences, given by their lengths in tokens, into consecutive runs of
// at most budget tokens; a longer sequence gets its own run. It returns the ends of the
// runs: run i holds sequences ends[i-1] to ends[i]-1. It keeps the order because gradients
// are summed in it (package kernels, "Gradient blocks"), so the budget changes no bit of a
// result. It panics if budget is not positive.
func MicroBatches(lengths []int, budget int) (ends []int) {
	if budget <= 0 {
		panic("rollout: token budget must be positive")
	}
	tokens := 0
	for i, n := range lengths {
		if i > 0 && tokens+n > budget {
			ends = append(ends, i)
			tokens = 0
		}
		tokens += n
	}
	if len(lengths) > 0 {
		ends = append(ends, len(lengths))
	}
	return ends
}
