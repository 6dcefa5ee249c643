package recorded

import (
	"encoding/json"
	"fmt"
	"slices"

	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/experiments/store"
)

// JudgeStage is the kind of the stages that record what a language model said of an evaluation's completions (exp
// diversity). Its label is the evaluation's.
const JudgeStage = "eval.judge"

// RoleJudgements is the role of a judge stage's judgements. They are its input, since they come from outside, and its
// output.
const RoleJudgements = "judgements"

// Judgements are scores from 1 to 5 of how differently the completions of a problem solve it.
type Judgements struct {
	Judging  Judging         `json:"judging"`
	Template string          `json:"template"` // the message
	Problems []JudgedProblem `json:"problems"`
}

// Judging says how completions were judged. Only scores with equal settings may be compared.
type Judging struct {
	Model    string `json:"model"`
	Template string `json:"template"` // digest
	Passes   int    `json:"passes"`
	Excerpt  int    `json:"excerpt"` // characters of a completion; 0: all
	Seed     uint64 `json:"seed"`    // of the order of completions
	Right    bool   `json:"right"`   // right completions only
}

// JudgedProblem has the scores of a problem's passes, 0 for a failed one.
type JudgedProblem struct {
	ID        string    `json:"id"`
	Responses int       `json:"responses"`
	Scores    []float64 `json:"scores"`
}

// The metrics that judgements give an evaluation: of all completions, and of right ones.
const (
	JudgedDiversity      = "judged_diversity"
	JudgedDiversityRight = "judged_diversity_right"
)

// Metric names the metric of the judgements.
func (j Judging) Metric() string {
	if j.Right {
		return JudgedDiversityRight
	}
	return JudgedDiversity
}

// Mean returns the mean score of the passes that did not fail; ok is false if all did.
func (p JudgedProblem) Mean() (mean float64, ok bool) {
	var sum, n float64
	for _, s := range p.Scores {
		if s > 0 {
			sum += s
			n++
		}
	}
	return sum / max(n, 1), n > 0
}

// JudgementsOf finds the judgements behind a metric of an evaluation, the newest first. The evaluation's completions
// and verdicts are outputs of the stages gen and score.
func JudgementsOf(blobs *blob.Dir, stages []store.Stage, gen, score store.Stage, metric string) (
	[]*Judgements, error) {
	made := map[ident.Digest]bool{}
	for _, o := range slices.Concat(gen.Outputs, score.Outputs) {
		made[o.Digest] = true
	}
	var list []*Judgements
	for _, s := range slices.Backward(stages) {
		if s.Kind != JudgeStage || s.Label != score.Label || len(s.Outputs) == 0 {
			continue
		}
		other := func(in store.IO) bool { return in.Role != RoleJudgements && !made[in.Digest] }
		if slices.ContainsFunc(s.Inputs, other) {
			continue
		}
		text, err := blobs.Bytes(s.Outputs[0].Digest)
		j := new(Judgements)
		if err == nil {
			err = json.Unmarshal(text, j)
		}
		if err != nil {
			return nil, fmt.Errorf("judgements of %s: %w", s.Label, err)
		}
		if j.Judging.Metric() == metric {
			list = append(list, j)
		}
	}
	return list, nil
}
