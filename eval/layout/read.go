package layout

import (
	"encoding/json"
	"iter"

	"exp/eval/rows"
	"exp/train/rollout"
)

// Copies says how often problems come again in a file. Some published training files
// hold a hundred copies of each: their length says nothing of a pass over the data.
type Copies struct {
	Rows       int // with an answer
	Unique     int // different problems
	Unanswered int // rows whose answer is null or empty, which nobody can grade: left out
}

// Factor is the mean number of copies.
func (c Copies) Factor() float64 { return float64(c.Rows) / float64(max(1, c.Unique)) }

// Problems reads the problems of rows in a layout; nil detects it in the first row.
// Rows with the same problem and answer are one problem, the first; a row whose answer
// is null or empty is counted and left out. Two different problems of one id are an
// error. An error comes from all, or is a *rows.Error.
func Problems(all iter.Seq2[rows.Row, error], l *Layout) ([]rollout.Problem, Copies, error) {
	var problems []rollout.Problem
	var copies Copies
	type content struct{ prompt, answer, messages, tools string }
	seen := map[content]bool{}
	owner := map[string]string{} // by id: where it stands
	for row, err := range all {
		if err != nil {
			return nil, copies, err
		}
		if l == nil {
			found, err := Detect(row)
			if err != nil {
				return nil, copies, err
			}
			l = &found
		}
		if v, there := row.Fields[l.Answer]; there && (v == nil || v == "") {
			copies.Unanswered++
			continue
		}
		p, err := l.Parse(row)
		if err != nil {
			return nil, copies, err
		}
		copies.Rows++
		messages, err := json.Marshal(p.Messages)
		if err != nil {
			return nil, copies, row.Errorf(l.Problem[0], "%w", err)
		}
		c := content{p.Prompt, p.Answer, string(messages), string(p.Tools)}
		if seen[c] {
			continue
		}
		if where, taken := owner[p.ID]; taken {
			return nil, copies, row.Errorf(l.ID, "the id %q is that of another problem, %s", p.ID, where)
		}
		seen[c], owner[p.ID] = true, row.Where
		copies.Unique++
		problems = append(problems, p)
	}
	return problems, copies, nil
}
