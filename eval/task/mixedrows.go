package task

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"exp/eval/layout"
	"exp/eval/rows"
	"exp/train/rollout"
)

// readRows gives each row to the reader of its kind, one after the other, and returns the problems in the order of
// their rows. A problem whose id one of another kind has already is called KIND/ID. A column to keep must be in a row
// of some kind.
func (t *mixedTask) readRows(all iter.Seq2[rows.Row, error], from Source) ([]rollout.Problem, layout.Copies, error) {
	readers := map[string]*partReader{}
	for _, kind := range t.order {
		part, reads := t.parts[kind].(publishedTask)
		if !reads {
			continue
		}
		r := newPartReader(kind, part, from)
		defer r.stop()
		readers[kind] = r
	}
	var order []string // kinds of problems
	known := map[[2]string]string{}
	var copies layout.Copies
	for row, err := range all {
		if err != nil {
			return nil, copies, err
		}
		kind, err := t.kindOf(row, known)
		if err != nil {
			return nil, copies, err
		}
		kept, tell := false, row.Kept
		row.Kept = func() { kept = true }
		if err := readers[kind].read(row); err != nil {
			return nil, copies, fmt.Errorf("%w; the row is of kind %s", err, kind)
		}
		if kept {
			order = append(order, kind)
			if tell != nil {
				tell()
			}
		}
	}
	var missing *layout.KeepError // what none of the kinds read so far has
	for _, kind := range t.order {
		r := readers[kind]
		if r == nil {
			continue
		}
		if err := r.end(); err != nil && !errors.As(err, new(*layout.KeepError)) {
			return nil, copies, err
		}
		missing = inNeither(missing, r)
		copies.Rows += r.copies.Rows
		copies.Unique += r.copies.Unique
		copies.Unanswered += r.copies.Unanswered
	}
	if missing != nil && len(missing.Columns) > 0 {
		return nil, copies, missing
	}
	return merged(order, readers), copies, nil
}

// inNeither returns the columns to keep of those missing, nil for all, that a reader did not find either. Readers that
// keep none, or had no rows, have no say.
func inNeither(missing *layout.KeepError, r *partReader) *layout.KeepError {
	if !r.keeps || r.rows == 0 {
		return missing
	}
	own := &layout.KeepError{}
	if errors.As(r.err, &own) && missing != nil {
		own.Columns = slices.DeleteFunc(own.Columns,
			func(c string) bool { return !slices.Contains(missing.Columns, c) })
	}
	return own
}

// merged puts the problems of all kinds in order, with ids of their own.
func merged(order []string, readers map[string]*partReader) []rollout.Problem {
	problems := make([]rollout.Problem, 0, len(order))
	next, seen := map[string]int{}, map[string]bool{}
	for _, kind := range order {
		p := readers[kind].problems[next[kind]]
		next[kind]++
		p.Kind = kind
		differ(&p, seen)
		problems = append(problems, p)
	}
	return problems
}

// differ calls a problem KIND/ID if another has its id already, and then KIND/ID#2, #3 ….
func differ(p *rollout.Problem, seen map[string]bool) {
	if seen[p.ID] {
		id := p.Kind + "/" + p.ID
		p.ID = id
		for times := 2; seen[p.ID]; times++ {
			p.ID = fmt.Sprintf("%s#%d", id, times)
		}
	}
	seen[p.ID] = true
}

// partReader is the reader of a kind of problems, which waits for its rows.
type partReader struct {
	row   rows.Row
	rows  int  // so far
	over  bool // no row follows
	keeps bool // it keeps columns

	resume func() (struct{}, bool)
	stop   func()

	problems []rollout.Problem
	copies   layout.Copies
	err      error
}

// newPartReader starts a reader, up to its first row.
func newPartReader(kind string, t publishedTask, from Source) *partReader {
	r := &partReader{}
	if from.KeepOf != "" && from.KeepOf != kind {
		from.Keep = nil
	}
	_, programs := t.(*codeTask)
	r.keeps = len(from.Keep) > 0 && !programs
	r.resume, r.stop = iter.Pull(func(wait func(struct{}) bool) {
		r.problems, r.copies, r.err = t.readRows(func(yield func(rows.Row, error) bool) {
			for wait(struct{}{}) && !r.over {
				if !yield(r.row, nil) {
					return
				}
			}
		}, from)
	})
	r.resume()
	return r
}

// read hands a row over and waits until the reader wants another one; the error is the reader's.
func (r *partReader) read(row rows.Row) error {
	r.row = row
	r.rows++
	r.resume()
	return r.err
}

// end waits for the end of the reader, and returns its error.
func (r *partReader) end() error {
	r.over = true
	r.resume()
	return r.err
}
