package rl

import (
	"math"
	"testing"
)

// By hand: probabilities 0.1 and 0.9 with gamma 0.1 make f 0.5 and 0.9. The second token is the policy's own.
func TestDemonstrationTerm(t *testing.T) {
	b := &Batch[float64]{Rows: Rows{0, 3}, Mask: []bool{on, on, on}, Coef: []float64{0.5, 0.5, 0.25},
		LogProb: []float64{math.Log(0.1), -1, math.Log(0.9)}, Adv: []float64{2, 7, -1}}
	d := []float64{1, 1, 1}
	var s DemonstrationStats
	if list := s.Metrics(); list != nil {
		t.Errorf("metrics of nothing: %v", list)
	}
	DemonstrationTerm(d, b, []bool{on, off, on}, Demonstrations{Weight: 3, Shaping: 0.1}, &s)
	for i, want := range []float64{1 - 3*0.5*2*0.5*0.5, 1, 1 + 3*0.25*0.9*0.1} {
		if math.Abs(d[i]-want) > 1e-15 {
			t.Errorf("derivative %d is %v, want %v", i, d[i], want)
		}
	}
	want := []float64{-3*0.5*2*0.5 + 3*0.25*0.9, 0.5}
	for i, m := range s.Metrics() {
		if math.Abs(m.Value-want[i]) > 1e-15 {
			t.Errorf("%s is %v, want %v", m.Name, m.Value, want[i])
		}
	}
}

// addDemonstrations lists the term of demonstrations; a sample's tokens with a positive value are theirs.
func addDemonstrations[T Float](list map[string]objective[T]) {
	list["demonstrations"] = objective[T]{by: func(s *sample[T]) []T { return s.LogProb },
		start: func(int) accumulator[T] {
			var st DemonstrationStats
			return accumulator[T]{
				add: func(d, _ []T, s *sample[T]) {
					shown := make([]bool, len(s.Mask))
					for i, on := range s.Mask {
						shown[i] = on && s.Value[i] > 0
					}
					DemonstrationTerm(d, &s.Batch, shown, Demonstrations{Weight: 0.7, Shaping: 0.1}, &st)
				},
				loss: func() float64 { return st.loss }, metrics: st.Metrics,
			}
		}}
}
