package layout

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

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

// item is the problem of a row. Rows with equal contents hold the same problem.
type item struct {
	problem rollout.Problem
	content any  // comparable
	unnamed bool // its id is the number of its row
}

// errUnanswered is returned by the parsers of collect for a row whose answer is null or empty.
var errUnanswered = errors.New("no answer")

// collect reads the problems of rows: the first of equal ones, counting the others, and those with an
// answer. If an id belongs to another problem, rename returns the id to use; owner says where each id was
// first seen.
func collect(all iter.Seq2[rows.Row, error], parse func(rows.Row) (item, error),
	rename func(r rows.Row, id string, owner map[string]string) (string, error)) ([]rollout.Problem, Copies, error) {
	var problems []rollout.Problem
	var copies Copies
	seen := map[any]bool{} // contents
	owner := map[string]string{}
	for r, err := range all {
		if err != nil {
			return nil, copies, err
		}
		i, err := parse(r)
		if errors.Is(err, errUnanswered) {
			copies.Unanswered++
			continue
		}
		if err != nil {
			return nil, copies, err
		}
		copies.Rows++
		if seen[i.content] {
			continue
		}
		p := i.problem
		if owner[p.ID] != "" {
			if p.ID, err = rename(r, p.ID, owner); err != nil {
				return nil, copies, err
			}
		}
		seen[i.content], owner[p.ID] = true, r.Where
		if i.unnamed {
			owner[p.ID] += ", which has no id and takes its number"
		}
		copies.Unique++
		problems = append(problems, p)
		if r.Kept != nil {
			r.Kept()
		}
	}
	return problems, copies, nil
}

// numbered returns an id that no other problem has: id, or id with #2, #3 … appended.
func numbered(id string, owner map[string]string) string {
	free := id
	for times := 2; owner[free] != ""; times++ {
		free = fmt.Sprintf("%s#%d", id, times)
	}
	return free
}

// Problems reads the problems of rows. A nil layout is detected from the first row of each file. Rows with the same
// problem, answers and kept columns count as one problem, the first. Rows with a null or empty answer are counted and
// skipped. Problems returns errors of all, or *rows.Error.
//
// Two different problems with one id are an error, unless the layout names the problems' source, as verl's
// does: the indices of its rows restart in each source. The later problem is then called SOURCE/ID, or with
// #2, #3 … appended if that is taken too.
func Problems(all iter.Seq2[rows.Row, error], l *Layout, images *Images) ([]rollout.Problem, Copies, error) {
	return readProblems(all, func(r rows.Row) (found Layout, err error) {
		if l != nil {
			found = *l
		} else {
			found, err = detectProblem(r, "")
		}
		found.Images = images
		return found, err
	})
}

// ProblemsAt is Problems with further columns: c.Prompt has the problem's text, or its messages. Those in c.Keep
// become Facts.Columns; one that no row has is an error.
func ProblemsAt(all iter.Seq2[rows.Row, error], c Columns) ([]rollout.Problem, Copies, error) {
	return readKeeping(all, c, func(r rows.Row) (Layout, error) { return detectProblem(r, c.Prompt) })
}

// PromptsAt is ProblemsAt for problems that need no answer.
func PromptsAt(all iter.Seq2[rows.Row, error], c Columns) ([]rollout.Problem, Copies, error) {
	return readKeeping(all, c, func(r rows.Row) (Layout, error) { return DetectPrompt(r, c.Prompt) })
}

// readKeeping reads problems with further columns; a column that no row has is an error.
func readKeeping(all iter.Seq2[rows.Row, error], c Columns,
	detect func(rows.Row) (Layout, error)) ([]rollout.Problem, Copies, error) {
	missing := map[string]bool{}
	for _, name := range c.Keep {
		missing[name] = true
	}
	seen := func(yield func(rows.Row, error) bool) {
		for r, err := range all {
			for name := range missing {
				if _, ok := r.Value(name); ok {
					delete(missing, name)
				}
			}
			if !yield(r, err) {
				return
			}
		}
	}
	problems, copies, err := readProblems(seen, func(r rows.Row) (Layout, error) {
		l, err := detect(r)
		l.Keep, l.Images = c.Keep, c.Images
		return l, err
	})
	if err == nil && len(missing) > 0 {
		err = &KeepError{Columns: slices.Sorted(maps.Keys(missing))}
	}
	return problems, copies, err
}

// KeepError reports columns to keep that no row has. It comes with the problems, which lack nothing else.
type KeepError struct{ Columns []string }

func (e *KeepError) Error() string {
	return "data.keep names what no row has: " + strings.Join(e.Columns, ", ")
}

func readProblems(all iter.Seq2[rows.Row, error], detect func(rows.Row) (Layout, error)) ([]rollout.Problem, Copies,
	error) {
	var l *Layout
	file := ""
	var unknown error // of the first row whose layout was not detected
	problems, copies, err := collect(all, func(r rows.Row) (item, error) {
		if l == nil || r.Path != file || l.Open { // each file has its own; an open row may have an answer or not
			found, err := detect(r)
			switch {
			case err != nil && withoutAnswer(r): // a later row tells
				unknown = cmp.Or(unknown, err)
				return item{}, errUnanswered
			case err != nil:
				return item{}, err
			}
			l, file = &found, r.Path
		}
		r, of, err := l.adapted(r)
		if err != nil {
			return item{}, err
		}
		if !l.Open && r.Empty(l.Answer) {
			return item{}, errUnanswered
		}
		return of.item(r)
	}, func(r rows.Row, id string, owner map[string]string) (string, error) { return l.freeID(r, id, owner) })
	if err == nil && l == nil {
		err = unknown
	}
	return problems, copies, err
}

// item reads a problem; problems with the same text, chat, images, tools, answers and kept columns are the same.
func (l Layout) item(r rows.Row) (item, error) {
	p, err := l.Parse(r)
	if err != nil {
		return item{}, err
	}
	var graded struct{ Answers, Instructions, Columns json.RawMessage } // what rewards depend on, of Facts
	if len(p.Data) > 0 {
		if err := json.Unmarshal(p.Data, &graded); err != nil {
			return item{}, r.Errorf("", "%w", err)
		}
	}
	messages, err := json.Marshal(p.Messages)
	if err != nil {
		return item{}, r.Errorf(l.Problem[0], "%w", err)
	}
	content := [8]string{p.Prompt, p.Answer, string(messages), string(p.Tools), string(graded.Answers),
		string(graded.Instructions), string(graded.Columns), digestsOf(p.Images)}
	if l.Tell != nil { // published scores count every row of a benchmark
		content[0] = p.ID + "\x00" + p.Prompt
	}
	return item{problem: p, content: content, unnamed: !r.Has(l.idField(r))}, nil
}

// digestsOf joins the digests of images.
func digestsOf(images []rollout.Picture) string {
	list := make([]string, len(images))
	for i := range images {
		list[i] = images[i].Digest
	}
	return strings.Join(list, " ")
}

// withoutAnswer reports whether a row has a field of answers that is empty.
func withoutAnswer(r rows.Row) bool {
	return slices.ContainsFunc(Known(), func(l Layout) bool { return r.Empty(l.Answer) })
}

// freeID returns an id that no other problem has, with the source of the row.
func (l Layout) freeID(r rows.Row, id string, owner map[string]string) (string, error) {
	field := l.idField(r)
	switch {
	case r.Has(l.Source):
	case r.Has(field):
		return "", r.Errorf(field, "id %q already belongs to another problem, %s", id, owner[id])
	default:
		return "", r.Errorf("", "the row has no id, and its number, %s, already belongs to another problem, "+
			"%s; give every row an id", id, owner[id])
	}
	source, err := r.Text(l.Source)
	return numbered(source+"/"+id, owner), err
}
