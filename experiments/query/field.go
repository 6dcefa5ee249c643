package query

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"exp/experiments/spelling"
	"exp/experiments/store"
)

// ParseField reads the name of a value of a run, as filters, columns and sort
// orders write it:
//
//	status seed name created …       a column of the run (store.Columns), also as lists call it:
//	                                 run, age, took
//	pass@1 …                         a result that lists show
//	tag                              its tags
//	config.PATH                      its resolved config, config.train.optim.lr
//	metric.NAME[.min|.max|.at(STEP)] a series: its last value, or the named one
//	eval.SUITE.NAME                  its newest score on a suite, eval.gsm8k.pass@1; test and
//	                                 val are the suites of the run's own data
func (s Schema) ParseField(text string) (store.Field, error) {
	name, step := text, ""
	if open := strings.LastIndexByte(text, '('); open >= 0 && strings.HasSuffix(text, ")") {
		name, step = text[:open], text[open+1:len(text)-1]
	}
	f, at, err := s.fieldOf(name)
	if err != nil {
		return f, err
	}
	if at {
		if f.Step, err = strconv.ParseInt(step, 10, 64); err != nil {
			return f, fmt.Errorf("%q needs a step, as in %s(100)", text, name)
		}
	} else if name != text {
		return f, fmt.Errorf("%q takes no step", name)
	}
	return f, nil
}

// ParseField reads the name of a field without results.
func ParseField(text string) (store.Field, error) { return Schema{}.ParseField(text) }

// fieldOf reads a field without a step; at is true if it ends in ".at" and so needs one.
func (s Schema) fieldOf(name string) (f store.Field, at bool, err error) {
	prefix, rest, dotted := strings.Cut(name, ".")
	switch {
	case dotted && prefix == "config" && rest != "":
		return store.Field{Kind: store.FieldConfig, Name: rest}, false, nil
	case dotted && prefix == "metric" && rest != "":
		f, at := metricField(rest)
		return f, at, nil
	case dotted && prefix == "eval":
		dot := strings.LastIndexByte(rest, '.')
		if dot <= 0 || dot == len(rest)-1 {
			return f, false, fmt.Errorf("%q needs a suite and a score, as in eval.test.pass@1", name)
		}
		return store.Field{Kind: store.FieldEval, Suite: rest[:dot], Name: rest[dot+1:]}, false, nil
	case name == "tag":
		return store.Field{Kind: store.FieldTag}, false, nil
	}
	aliases := map[string]string{"run": "id", "took": "wall", "age": "created", "wall_s": "wall"} // names in lists
	if column := cmp.Or(aliases[name], name); slices.Contains(store.Columns(), column) {
		return store.Field{Kind: store.FieldColumn, Name: column}, false, nil
	}
	if s.Result != nil && s.Result(name) {
		return store.Field{Kind: store.FieldResult, Name: name}, false, nil
	}
	return f, false, fmt.Errorf("no field %q", name)
}

// Suggest returns the field that an unknown name probably means, or "".
func (s Schema) Suggest(name string) string {
	if s.Config != nil {
		if _, known := s.Config(name); known {
			return "config." + name
		}
	}
	if strings.Contains(name, "/") {
		return "metric." + name // no other name has a slash
	}
	return spelling.Nearest(name, append(store.Columns(), "tag"))
}

func metricField(name string) (f store.Field, at bool) {
	for suffix, agg := range map[string]store.Agg{".min": store.AggMin, ".max": store.AggMax, ".at": store.AggAt} {
		if base, ok := strings.CutSuffix(name, suffix); ok && base != "" {
			return store.Field{Kind: store.FieldMetric, Name: base, Agg: agg}, agg == store.AggAt
		}
	}
	return store.Field{Kind: store.FieldMetric, Name: name}, false
}

// FieldNames lists fields that runs of a store have: columns, and the metrics and results
// of its newest runs. It reads what it can.
func FieldNames(ctx context.Context, db *store.DB) []string {
	names := append(store.Columns(), "tag")
	runs, err := db.Runs(ctx, store.RunQuery{Limit: 10})
	if err != nil {
		return names
	}
	recorded := map[string]bool{}
	for _, r := range runs {
		series, err := db.Series(ctx, r.ID, "")
		if err != nil {
			return names
		}
		for _, s := range series {
			recorded["metric."+s.Name] = true
		}
		evals, err := db.Evals(ctx, r.ID)
		if err != nil {
			return names
		}
		for _, e := range evals {
			recorded["eval."+strings.TrimPrefix(e.SuiteName, r.Task+"/")+"."+e.Metric] = true
		}
	}
	return append(names, slices.Sorted(maps.Keys(recorded))...)
}

// fieldHelp lists the fields.
func fieldHelp() string {
	return "one of " + strings.Join(store.Columns(), " ") + " tag config.PATH metric.NAME[.min|.max|.at(STEP)] " +
		"eval.SUITE.NAME, or a result of the list, such as pass@1"
}

// filterField reads the operand of a filter, a field of a run.
func (s Schema) filterField(r *Reader) (store.Field, error) {
	w, err := r.Word("expected a field, such as status or metric.loss")
	if err != nil {
		return store.Field{}, err
	}
	f, at, err := s.fieldOf(w.Text)
	switch {
	case err != nil:
		help := fieldHelp()
		if meant := s.Suggest(w.Text); meant != "" {
			help = "did you mean " + meant + "?"
		}
		return f, &SyntaxError{Col: w.Col, Msg: err.Error(), Help: help}
	case !at:
		return f, nil
	}
	expected := fmt.Sprintf("expected a step, as in %s(100)", w.Text)
	if !r.Accept("(") {
		return f, r.Unexpected(expected)
	}
	col := r.peek().col
	step, err := r.Word(expected)
	if err == nil {
		f, err = s.ParseField(w.Text + "(" + step.Text + ")")
	}
	if err != nil {
		return f, &SyntaxError{Col: col, Msg: expected}
	}
	if !r.Accept(")") {
		return f, r.Unexpected(`expected ")"`)
	}
	return f, nil
}
