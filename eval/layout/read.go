package layout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"exp/eval/rows"
	"exp/train/rollout"
)

// Copies counts repeated problems in a file. Some published training files hold each problem a hundred
// times, so their length says nothing about one pass over the data.
type Copies struct {
	Rows       int // rows with an answer
	Unique     int // different problems
	Unanswered int // rows skipped because their answer is null or empty
}

// Factor is the mean number of copies per problem.
func (c Copies) Factor() float64 { return float64(c.Rows) / float64(max(1, c.Unique)) }

// Problems reads the problems of rows. A nil layout is detected from the first row. Rows with the same
// problem and answer count as one problem, the first. Rows with a null or empty answer are counted and
// skipped. Problems returns errors of all, or *rows.Error.
//
// Two different problems with one id are an error, unless the layout names the problems' source, as verl's
// does: the indices of its rows restart in each source. The later problem is then called SOURCE/ID, or with
// #2, #3 … appended if that is taken too.
func Problems(all iter.Seq2[rows.Row, error], l *Layout) ([]rollout.Problem, Copies, error) {
	return readProblems(all, func(row rows.Row) (Layout, error) {
		if l != nil {
			return *l, nil
		}
		return Detect(row)
	})
}

// ProblemsAt is Problems with the problem's text, or its messages, in a column; without a column it is
// Problems.
func ProblemsAt(all iter.Seq2[rows.Row, error], column string) ([]rollout.Problem, Copies, error) {
	return readProblems(all, func(row rows.Row) (Layout, error) { return DetectAt(row, column) })
}

func readProblems(all iter.Seq2[rows.Row, error], detect func(rows.Row) (Layout, error)) ([]rollout.Problem, Copies,
	error) {
	var problems []rollout.Problem
	var copies Copies
	var l *Layout
	type content struct{ prompt, answer, messages, tools string }
	seen := map[content]bool{}
	owner := map[string]string{} // id -> where it was first seen
	var unknown error            // of the first row whose layout was not detected
	for row, err := range all {
		if err != nil {
			return nil, copies, err
		}
		if l == nil {
			found, err := detect(row)
			switch {
			case err != nil && withoutAnswer(row): // a later row tells
				unknown = cmp.Or(unknown, err)
				copies.Unanswered++
				continue
			case err != nil:
				return nil, copies, err
			}
			l = &found
		}
		if row.Empty(l.Answer) {
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
			if !row.Has(l.Source) {
				return nil, copies, row.Errorf(l.ID, "id %q already belongs to another problem, %s", p.ID, where)
			}
			if p.ID, err = l.freeID(row, p.ID, owner); err != nil {
				return nil, copies, err
			}
		}
		seen[c], owner[p.ID] = true, row.Where
		copies.Unique++
		problems = append(problems, p)
	}
	if l == nil {
		return nil, copies, unknown
	}
	return problems, copies, nil
}

// withoutAnswer reports whether a row has a field of answers that is empty.
func withoutAnswer(r rows.Row) bool {
	return slices.ContainsFunc(Known(), func(l Layout) bool { return r.Empty(l.Answer) })
}

// freeID returns an id that no other problem has, with the source of the row.
func (l Layout) freeID(row rows.Row, id string, owner map[string]string) (string, error) {
	source, err := row.Text(l.Source)
	if err != nil {
		return "", err
	}
	id = source + "/" + id
	free := id
	for times := 2; owner[free] != ""; times++ {
		free = fmt.Sprintf("%s#%d", id, times)
	}
	return free, nil
}
