package stage

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval"
	"exp/harness/config"
	"exp/train/rl"
	"exp/train/rollout"
)

// Two problems of four samples and one with a single graded sample, by hand. A
// bootstrap of equal values has that value; others lie near their expectation.
func TestValidation(t *testing.T) {
	var samples []eval.Sample
	var verdicts []rollout.Verdict
	add := func(problem string, k int, status rollout.Status, correct bool, reward float64, answer string) {
		samples = append(samples, eval.Sample{ProblemID: problem, K: k})
		verdicts = append(verdicts, rollout.Verdict{Status: status, Correct: correct, Reward: reward, Answer: answer})
	}
	for k := range 4 { // all right
		add("a", k, rollout.Graded, true, 1, "7")
	}
	add("b", 0, rollout.Graded, true, 1, "8") // 1, 0.2, 0.2, 0.2: mean 0.4, deviation √((0.6²+3·0.2²)/4) = √0.12
	for k := range 3 {
		add("b", k+1, rollout.Graded, false, 0.2, "9")
	}
	add("c", 0, rollout.NotGraded, false, 0, "")
	add("c", 1, rollout.Graded, false, -1, "")

	got := map[string]float64{}
	sources := map[string]string{"a": "countdown", "b": "countdown", "c": "countdown"}
	for _, m := range validation(sources, false, samples, verdicts, rl.Overlong{}) {
		got[m.Name] = m.Value
	}
	for name, want := range map[string]float64{
		"val-core/countdown/acc/mean@4":   (1 + 0.25) / 2,
		"val-aux/countdown/acc/mean@1":    0, // of c alone
		"val-aux/countdown/acc/std@4":     math.Sqrt(0.25*0.75) / 2,
		"val-aux/countdown/reward/mean@4": (1 + 0.4) / 2,
		"val-aux/countdown/reward/mean@1": -1,
		"val-aux/countdown/reward/std@4":  math.Sqrt(0.12) / 2,
	} {
		if x, ok := got[name]; !ok || math.Abs(x-want) > 1e-12 {
			t.Errorf("%s is %v (%t), want %v", name, x, ok, want)
		}
	}
	// Of b, four draws of four have a right one with 1 - (3/4)⁴, two with 1 - (3/4)², the
	// worst is right only with (1/4)⁴, and a vote of four is right with three or four of
	// the right one, or with two seen first: 13/256 + 27/256.
	for name, want := range map[string]float64{
		"val-core/countdown/acc/best@4/mean": (1 + 1 - math.Pow(0.75, 4)) / 2,
		"val-aux/countdown/acc/best@2/mean":  (1 + 1 - math.Pow(0.75, 2)) / 2,
		"val-aux/countdown/acc/worst@4/mean": (1 + math.Pow(0.25, 4)) / 2,
		"val-core/countdown/acc/maj@4/mean":  (1 + 40./256) / 2,
	} {
		if x, ok := got[name]; !ok || math.Abs(x-want) > 0.02 {
			t.Errorf("%s is %v (%t), want about %v", name, x, ok, want)
		}
	}
	if n := len(got); n != 2*(1+1+1+2*6) { // of each variable mean@1, mean@4, std@4, and two moments of three at two sizes
		t.Errorf("%d metrics: %v", n, got)
	}
	if got := validation(sources, false, samples[:0], nil, rl.Overlong{}); got != nil {
		t.Errorf("of nothing: %v", got)
	}
	sources["b"] = "openai/gsm8k"
	for _, m := range validation(sources, false, samples, verdicts, rl.Overlong{}) {
		got[m.Name] = m.Value
	}
	if a, b := got["val-core/countdown/acc/mean@4"], got["val-core/openai/gsm8k/acc/mean@4"]; a != 1 || b != 0.25 {
		t.Errorf("accuracy %v and %v by data set, want 1 and 0.25", a, b)
	}
}

// verl's dapo manager subtracts the penalty of long completions in validation, too: of at most 8 tokens
// the last 4 cost 1/4 each, and acc does not change.
func TestValidationPenalty(t *testing.T) {
	var samples []eval.Sample
	var verdicts []rollout.Verdict
	for k, n := range []int{3, 4, 6, 8} {
		samples = append(samples, eval.Sample{ProblemID: "a", K: k, Completion: rollout.Completion{Tokens: make([]int32, n)}})
		verdicts = append(verdicts, rollout.Verdict{Status: rollout.Graded, Correct: true, Reward: 1})
	}
	got := map[string]float64{}
	for _, m := range validation(map[string]string{"a": "x"}, true, samples, verdicts, rl.Overlong{MaxResponse: 8, Buffer: 4, Penalty: 1}) {
		got[m.Name] = m.Value
	}
	if got["val-aux/num_turns/mean"] != 2 || got["val-aux/num_turns/max"] != 2 {
		t.Errorf("num_turns of one turn: %v", got)
	}
	if got["val-aux/x/reward/mean@4"] != (1+1+0.5+0)/4 || got["val-core/x/acc/mean@4"] != 1 {
		t.Errorf("reward %v, acc %v", got["val-aux/x/reward/mean@4"], got["val-core/x/acc/mean@4"])
	}
}

// Problems count by their data_source, unless there are too many.
func TestDataSources(t *testing.T) {
	problems := []rollout.Problem{{ID: "1", Data: json.RawMessage(`{"source":"openai/gsm8k"}`)}, {ID: "2"},
		{ID: "3", Data: json.RawMessage(`{"source":["no","name"],"data_source":"aime24"}`)}}
	if d := cmp.Diff(map[string]string{"1": "openai/gsm8k", "2": "math", "3": "aime24"}, dataSources(problems, "math")); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	for i := range mostSources + 1 {
		problems = append(problems, rollout.Problem{ID: fmt.Sprint("p", i), Data: json.RawMessage(fmt.Sprintf(`{"source":"s%d"}`, i))})
	}
	if of := dataSources(problems, "math"); of["1"] != "math" || of["p1"] != "math" {
		t.Errorf("of %d data sets: %v", mostSources+3, of)
	}
}

// Evaluations come at the cadence and, as in verl, after the last step.
func TestOnlineEvalIsDue(t *testing.T) {
	e := &Env{Config: &config.Resolved{}}
	if e.validationDue(7, 7) {
		t.Error("due where none is configured")
	}
	e.Config.Run.Eval.Online.EverySteps = 3
	for step, want := range map[int]bool{1: false, 3: true, 4: false, 6: true, 7: true} {
		if got := e.validationDue(step, 7); got != want {
			t.Errorf("step %d of 7: %t", step, got)
		}
	}
}
