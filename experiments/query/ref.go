package query

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"exp/experiments/store"
)

// Finder finds runs in a store.
type Finder struct {
	DB      *store.DB
	Now     time.Time // reference time for ages
	Deleted bool      // search deleted runs instead of the others
	// Lower reports whether less of a metric is better; decided is false if neither less nor more is. nil: more of
	// any is.
	Lower func(metric string) (lower, decided bool)
	// Schema reads the filters among selections.
	Schema Schema
}

// minDigits is the shortest prefix accepted as an id; anything shorter is probably a
// typo.
const minDigits = 4

// NotFoundError reports a reference that matches no run. It wraps store.ErrNotFound.
type NotFoundError struct {
	Ref  string
	Hint string
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("no run matches %q", e.Ref) }

// Unwrap returns store.ErrNotFound.
func (e *NotFoundError) Unwrap() error { return store.ErrNotFound }

// AmbiguousError reports a reference to one run that matches several.
type AmbiguousError struct {
	Ref        string
	Candidates []store.Run // newest first
}

// Error lists the candidates, ten at most.
func (e *AmbiguousError) Error() string {
	const most = 10
	text := fmt.Sprintf("%q matches %d runs:", e.Ref, len(e.Candidates))
	for i, r := range e.Candidates {
		if i == most {
			return text + fmt.Sprintf("\n  and %d more", len(e.Candidates)-most)
		}
		text += fmt.Sprintf("\n  %s  %s#%d  %s  %s", r.RID.Short(), r.Name, r.Seed, r.Status,
			r.Created.Format("2006-01-02 15:04"))
	}
	return text
}

// Hint suggests how to name one of them.
func (e *AmbiguousError) Hint() string {
	for i, r := range e.Candidates {
		for _, o := range e.Candidates[:i] {
			if o.Name == r.Name && o.Seed == r.Seed {
				return "use the id; exp diff with two of them tells them apart"
			}
		}
	}
	return "use the id, or name#seed"
}

// One returns the run that a reference names. It returns an *AmbiguousError for several
// runs and a *NotFoundError for none. References are:
//
//	5e8d10b4      an id, or its beginning of at least 4 digits
//	NAME          a name; if no run has it, a name that a run was repeated under
//	NAME#SEED     a name and a seed
//	tag:NAME      a tag
//	xid:PREFIX    an experiment, by id
//	@last         the newest run; @last~2 the one two before it
//	@running      the running runs
//	@best:METRIC  the run whose metric, eval.SUITE.NAME or headline result is best:
//	              highest or lowest, as its direction says or after max: or min:;
//	              the newest of equals
func (f Finder) One(ctx context.Context, ref string) (store.Run, error) {
	runs, err := f.All(ctx, ref)
	if err != nil {
		return store.Run{}, err
	}
	if len(runs) > 1 {
		return store.Run{}, &AmbiguousError{Ref: ref, Candidates: runs}
	}
	return runs[0], nil
}

// All returns every run that a reference names, newest first, with current statuses: all
// seeds of a name, tag or experiment. It returns a *NotFoundError for none. An id still
// names one run.
func (f Finder) All(ctx context.Context, ref string) ([]store.Run, error) {
	runs, hint, err := f.lookUp(ctx, ref)
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		return nil, &NotFoundError{Ref: ref, Hint: hint}
	}
	for i := range runs {
		runs[i].Status = f.DB.StatusNow(&runs[i])
	}
	return runs, nil
}

// running names the runs that are recorded as being executed.
const (
	running     = "@running"
	noneRunning = "nothing is running"
)

func (f Finder) lookUp(ctx context.Context, ref string) (runs []store.Run, hint string, err error) {
	q := store.RunQuery{Deleted: f.Deleted}
	prefix, rest, _ := strings.Cut(ref, ":")
	switch {
	case ref == "":
		return nil, "exp ls lists the runs", nil
	case prefix == "tag" && rest != "":
		q.Tag = rest
		runs, err = f.DB.Runs(ctx, q)
		return runs, "exp ls shows the tags", err
	case prefix == "xid":
		if !isID(rest) {
			return nil, fmt.Sprintf("an id has %d to 64 hexadecimal digits", minDigits), nil
		}
		q.XIDPrefix = rest
		runs, err = f.DB.Runs(ctx, q)
		return runs, "", err
	case prefix == "@best" && rest != "":
		return f.best(ctx, rest)
	case ref[0] == '@':
		return f.special(ctx, ref)
	}
	runs, err = f.byNameOrID(ctx, ref)
	if len(ref) < minDigits && strings.Trim(ref, hexDigits) == "" {
		hint = fmt.Sprintf("an id needs at least %d digits", minDigits)
	} else {
		hint = "exp ls shows names and ids"
	}
	return runs, hint, err
}

// special finds @last, @last~N and @running.
func (f Finder) special(ctx context.Context, ref string) ([]store.Run, string, error) {
	q := store.RunQuery{Deleted: f.Deleted}
	name, back, counted := strings.Cut(ref, "~")
	switch {
	case name == running && !counted:
		q.Status = store.Running
		runs, err := f.DB.Runs(ctx, q)
		return runs, noneRunning, err
	case name == "@last":
		n := 0
		if counted {
			var err error
			if n, err = strconv.Atoi(back); err != nil || n < 0 || n > 1<<30 {
				return nil, "write @last~2 for the run two before the last", nil
			}
		}
		q.Limit = n + 1
		runs, err := f.DB.Runs(ctx, q)
		if len(runs) <= n {
			return nil, fmt.Sprintf("there are %d runs", len(runs)), err
		}
		return runs[n:], "", err
	}
	return nil, "valid are @last, @last~N, @running and @best:METRIC", nil
}

// best finds the run with the best value of a field, metric or headline result: the lowest after "min:", the highest
// after "max:", else as the metric's direction says. Of equal runs it is the newest. hint says why it found none.
func (f Finder) best(ctx context.Context, text string) (found []store.Run, hint string, err error) {
	name, lower := strings.CutPrefix(text, "min:")
	name, higher := strings.CutPrefix(name, "max:")
	field, err := ParseField(name)
	if err != nil || field.Kind == store.FieldColumn || field.Kind == store.FieldTag {
		field = store.Field{Kind: store.FieldMetric, Name: name}
	}
	if !lower && !higher && f.Lower != nil {
		var decided bool
		if lower, decided = f.Lower(field.Name); !decided {
			return nil, fmt.Sprintf("neither more nor less of %s is better in itself: write @best:max:%s "+
				"or @best:min:%s", field.Name, name, name), nil
		}
	}
	runs, values, err := f.DB.RunFields(ctx, store.RunQuery{Deleted: f.Deleted}, []store.Field{field})
	if err != nil {
		return nil, "", err
	}
	at := -1
	var best float64
	for i := range runs {
		v, ok := values[i][0].(float64)
		if !ok {
			v, ok = Result(&runs[i], name).(float64)
		}
		if ok && (at < 0 || lower && v < best || !lower && v > best) {
			at, best = i, v
		}
	}
	if at < 0 {
		return nil, "no run has a value for it", nil
	}
	return runs[at : at+1], "", nil
}

// byNameOrID finds runs by name, with or without a seed, or by the beginning of an id. It
// returns an *AmbiguousError if several ids match, or if a name looks like another run's
// id.
func (f Finder) byNameOrID(ctx context.Context, ref string) ([]store.Run, error) {
	named, err := f.byName(ctx, ref)
	if err != nil || !isID(ref) {
		return named, err
	}
	runs, err := f.DB.Runs(ctx, store.RunQuery{IDPrefix: ref, Deleted: f.Deleted})
	if err != nil {
		return nil, err
	}
	both := union(named, runs)
	if len(runs) > 1 || len(runs) == 1 && len(both) > 1 {
		return nil, &AmbiguousError{Ref: ref, Candidates: both}
	}
	return both, nil
}

func (f Finder) byName(ctx context.Context, ref string) ([]store.Run, error) {
	name, seedText, withSeed := cutLast(ref, "#")
	if withSeed {
		seed, err := strconv.ParseInt(seedText, 10, 64)
		if err == nil {
			runs, err := f.named(ctx, name)
			var found []store.Run
			for _, r := range runs {
				if r.Seed == seed {
					found = append(found, r)
				}
			}
			return found, err
		}
	}
	return f.named(ctx, ref)
}

// named returns the runs of a name, or without any, the runs that were run again under it.
func (f Finder) named(ctx context.Context, name string) ([]store.Run, error) {
	runs, err := f.DB.Runs(ctx, store.RunQuery{Name: name, Deleted: f.Deleted})
	if err != nil || len(runs) > 0 {
		return runs, err
	}
	return f.DB.Runs(ctx, store.RunQuery{Tag: store.NameTag(name), Deleted: f.Deleted})
}

// cutLast is strings.Cut at the last occurrence.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// isID reports whether text can be the beginning of an id.
func isID(text string) bool {
	if len(text) < minDigits || len(text) > 64 {
		return false
	}
	return strings.Trim(text, hexDigits) == ""
}

const hexDigits = "0123456789abcdefABCDEF"
