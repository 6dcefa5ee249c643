package recorded

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"exp/experiments/quantity"
	"exp/experiments/store"
)

// stageTrain is the kind of the stage whose result names the best validation.
const stageTrain = "train"

// Best is the validation whose weights a run ended with (eval.online.best).
type Best struct {
	Step   int     `json:"step"`
	Metric string  `json:"metric"`
	Value  float64 `json:"value"`
}

// String describes the weights: "weights of step 40 (val/pass@1 0.412)".
func (b Best) String() string {
	return fmt.Sprintf("weights of step %d (%s %s)", b.Step, b.Metric, quantity.Short(b.Value))
}

// StepsText describes the steps of a run: how many, their tokens, and whose weights count if not the last ones'.
func (r *Run) StepsText() string {
	text := fmt.Sprintf("%d of %d", r.Steps, r.StepsTotal)
	if r.Steps == r.StepsTotal {
		text = strconv.FormatInt(r.Steps, 10)
	}
	if r.Tokens > 0 {
		text += ", " + quantity.Count(r.Tokens) + " tokens sampled"
	}
	if r.Best != nil {
		text += "; " + r.Best.String()
	}
	return text
}

// BestOf returns the validation that chose the weights of a run with these stages; ok is false if the last weights
// counted, or training is not done.
func BestOf(stages []store.Stage) (b Best, ok bool) {
	for _, st := range slices.Backward(stages) {
		if st.Kind != stageTrain || len(st.Result) == 0 {
			continue
		}
		var result struct {
			Best *Best `json:"best"`
		}
		if json.Unmarshal(st.Result, &result) == nil && result.Best != nil {
			return *result.Best, true
		}
	}
	return Best{}, false
}
