package stage

import (
	"math"
	"strings"
	"testing"

	"exp/eval"
	"exp/train/rollout"
)

// Completions of broken weights are refused by name.
func TestNonFiniteCompletions(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, bad := range []float32{nan, inf} {
		_, err := completionLines([]eval.Sample{{ProblemID: "p7", K: 1,
			Completion: rollout.Completion{Tokens: []int32{4, 5}, LogProbs: []float32{-0.5, bad}}}})
		if err == nil || !strings.Contains(err.Error(), "problem p7, sample 1, token 1") || !strings.Contains(err.Error(), "weights are broken") {
			t.Errorf("%v: error %v", bad, err)
		}
	}
}
