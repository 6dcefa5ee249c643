package rescore

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"exp/eval/exchange"
	"exp/train/rollout"
)

// ScoresForm is the Write format for scores instead of responses: results of
// lm-evaluation-harness.
const ScoresForm = "lm-eval-results"

// WriteForms lists the formats of Write.
func WriteForms() []string { return append(exchange.WriteFormats(), ScoresForm) }

// WriteVerdicts writes one row per response: the problem, the response's number, the
// answer's form, and each grader's verdict.
func (e *Evaluation) WriteVerdicts(w io.Writer) error {
	type verdict struct {
		Grader  string `json:"grader"`
		Correct *bool  `json:"correct"` // null: not graded
		Answer  string `json:"answer"`
		Reason  string `json:"reason"`
	}
	type row struct {
		ID       string    `json:"id"`
		Sample   int       `json:"sample"`
		Form     string    `json:"form"`
		Verdicts []verdict `json:"verdicts"`
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i, s := range e.panel.Samples {
		r := row{ID: s.ProblemID, Sample: s.K, Form: e.formOf[i]}
		for _, c := range e.panel.Columns {
			v := verdict{Grader: c.Grader, Answer: c.Verdicts[i].Answer, Reason: c.Verdicts[i].Reason}
			if c.Verdicts[i].Status != 0 {
				v.Correct = &c.Verdicts[i].Correct
			}
			r.Verdicts = append(r.Verdicts, v)
		}
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// CheckForm returns an error for an unknown format of Write.
func CheckForm(form string) error {
	if !slices.Contains(WriteForms(), form) {
		return inputf("--write: unknown format %q; known are %s", form, strings.Join(WriteForms(), ", "))
	}
	return nil
}

// Write writes the responses with the first grader's verdicts, or the scores, in one of
// WriteForms.
func (e *Evaluation) Write(w io.Writer, form string) error {
	if form == ScoresForm {
		return exchange.WriteResults(w, e.o.File.Path, e.asResults())
	}
	first := e.panel.Columns[0]
	scores := make([]map[string]float64, len(e.panel.Samples))
	for i := range scores {
		scores[i] = map[string]float64{}
		x := 0.0
		if first.Verdicts[i].Correct {
			x = 1
		}
		for _, name := range verdictNames(form, first.Grader) {
			scores[i][name] = x
		}
	}
	problems := map[string]*rollout.Problem{}
	for i := range e.panel.Problems {
		problems[e.panel.Problems[i].ID] = &e.panel.Problems[i]
	}
	out := e.o.File.WithScores(scores)
	for i := range out.Responses {
		r := &out.Responses[i]
		p := problems[r.Item]
		if len(r.Golds) == 0 && p.Answer != "" {
			r.Golds = []string{p.Answer}
		}
		r.Prompt = cmp.Or(r.Prompt, p.Prompt)
	}
	return out.Write(w, form)
}

// verdictNames returns the fields that hold a verdict in a format.
func verdictNames(form, grader string) []string {
	switch form {
	case "verl-dump":
		return []string{"score", "acc"}
	case "humaneval":
		return []string{"passed"}
	case "evalplus":
		return []string{"base"}
	case "lcb", "lcb-custom":
		return []string{"graded"}
	}
	return []string{grader}
}

// asResults returns the scores under lm-evaluation-harness's names: metric and grader.
func (e *Evaluation) asResults() []exchange.Result {
	task := "responses"
	if e.o.Suite != nil {
		task = e.o.Suite.Name
	}
	var list []exchange.Result
	for _, s := range e.scores {
		for _, m := range s.Metrics {
			list = append(list, exchange.Result{Task: task, Metric: m.Name + "," + s.Grader, Value: m.Value,
				StdErr: m.SE, Items: m.N})
		}
	}
	return list
}
