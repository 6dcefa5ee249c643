package stage

import (
	"slices"
	"testing"

	"exp/harness/config"
	"exp/train/ranks"
)

// Who trains, samples, validates and judges among five ranks that share products in twos for training and in
// threes for sampling, where two or none only sample.
func TestCrewOfRanks(t *testing.T) {
	for _, tt := range []struct {
		name                           string
		samplers, every                int
		learn, sample, validate, judge []int
	}{
		{"all alike", 0, 1, []int{0, 1, 2, 3, 4}, []int{0, 1, 2, 3, 4}, []int{0, 1, 2, 3, 4}, []int{0}},
		{"no validations", 0, 0, []int{0, 1, 2, 3, 4}, []int{0, 1, 2, 3, 4}, nil, []int{0}},
		{"apart", 2, 1, []int{0, 1, 2}, []int{0, 1, 3, 4}, []int{0, 1}, []int{3}},
		{"apart, no validations", 2, 0, []int{0, 1, 2}, []int{3, 4}, nil, []int{3}},
	} {
		c := config.Run{Compute: config.Compute{TensorParallel: 2, RolloutTensor: 3, RolloutRanks: tt.samplers}}
		c.Eval.Online.EverySteps = tt.every
		var learn, sample, validate, judge []int
		note := func(list *[]int, yes bool, rank int) {
			if yes {
				*list = append(*list, rank)
			}
		}
		for _, g := range ranks.InProcess(5) {
			e := &Env{Config: &config.Resolved{Run: c}, Ranks: g}
			w := e.crew()
			if g.Rank() < w.First || g.Rank() >= w.First+w.Ranks || w.All != 5 || w.Apart() != (tt.samplers > 0) {
				t.Errorf("%s: rank %d is of %+v", tt.name, g.Rank(), w)
			}
			note(&learn, w.Learns, g.Rank())
			note(&sample, e.samples(), g.Rank())
			note(&validate, e.validates(), g.Rank())
			note(&judge, e.judges(), g.Rank())
		}
		for i, list := range [][2][]int{{learn, tt.learn}, {sample, tt.sample}, {validate, tt.validate}, {judge, tt.judge}} {
			if !slices.Equal(list[0], list[1]) {
				t.Errorf("%s: ranks that %s: %v, want %v", tt.name, []string{"learn", "sample", "validate", "judge"}[i],
					list[0], list[1])
			}
		}
	}
}
