package compare

import (
	"fmt"
	"strings"
	"time"

	"exp/experiments/query"
)

// Condition is a test on a result, for scripts: "delta(math500) < -0.01 and p < 0.05". It
// has the grammar of query.Language, with numbers as literals and
//
//	operand = FIELD ["(" SUITE ["," METRIC] ")"]
//
// FIELD is one of delta, lo, hi (the ends of delta's interval), se, p, p_holm, mde and
// effect. SUITE is the suite's name with or without the task; METRIC defaults to pass@1.
// A field without parentheses refers to the suite and metric named last before it,
// initially the only suite and pass@1.
//
// Condition is immutable.
type Condition struct {
	expr *query.Expr[operand]
}

// operand is a field of a pair.
type operand struct {
	field, suite, metric string // suite "": the only one
	col                  int
}

// fields maps the fields of a condition to values of a pair; nil is unknown.
func fields() map[string]func(p *Pair) *float64 {
	end := func(of func(iv *Interval) float64) func(p *Pair) *float64 {
		return func(p *Pair) *float64 {
			if p.Interval == nil {
				return nil
			}
			v := of(p.Interval)
			return &v
		}
	}
	return map[string]func(p *Pair) *float64{
		"delta": func(p *Pair) *float64 { return p.Delta }, "se": func(p *Pair) *float64 { return p.SE },
		"lo": end(func(iv *Interval) float64 { return iv.Lo }),
		"hi": end(func(iv *Interval) float64 { return iv.Hi }),
		"p":  func(p *Pair) *float64 { return p.P }, "p_holm": func(p *Pair) *float64 { return p.PHolm },
		"mde": func(p *Pair) *float64 { return p.MDE }, "effect": func(p *Pair) *float64 { return p.Effect },
	}
}

// conditionName names conditions in errors.
const conditionName = "condition"

// ParseCondition reads a condition. The error is a *query.SyntaxError.
func ParseCondition(text string) (*Condition, error) {
	named := operand{metric: defaultMetric} // last
	e, err := query.Language[operand]{Name: conditionName, Numbers: true,
		Operand: func(r *query.Reader) (operand, error) {
			return readOperand(r, &named)
		}}.Parse(text)
	if err != nil {
		return nil, err
	}
	return &Condition{e}, nil
}

// defaultMetric is the metric of a suite named without one.
const defaultMetric = "pass@1"

// readOperand reads a field with its suite and metric, or those named last.
func readOperand(r *query.Reader, named *operand) (operand, error) {
	w, err := r.Word("a condition is missing")
	if err != nil {
		return operand{}, err
	}
	if fields()[w.Text] == nil {
		return operand{}, &query.SyntaxError{Col: w.Col, Msg: fmt.Sprintf("no field %q in a comparison", w.Text),
			Help: "one of " + strings.Join(sortedKeys(fields()), ", ")}
	}
	if r.Accept("(") {
		suite, err := r.Word("expected the name of a suite")
		if err != nil {
			return operand{}, err
		}
		named.suite, named.metric = suite.Text, defaultMetric
		if r.Accept(",") {
			metric, err := r.Word("expected the name of a metric")
			if err != nil {
				return operand{}, err
			}
			named.metric = metric.Text
		}
		if !r.Accept(")") {
			e := r.Unexpected(`expected ")"`)
			e.Help = "write " + w.Text + "(SUITE) or " + w.Text + "(SUITE, METRIC)"
			return operand{}, e
		}
	}
	return operand{field: w.Text, suite: named.suite, metric: named.metric, col: w.Col}, nil
}

// String returns the condition as written.
func (c *Condition) String() string { return c.expr.String() }

// Holds reports whether the condition holds for any pair of arms, and for which, as
// positions in r.Arms. Every operand must have a value, even if the answer does not
// depend on it: an unknown suite, metric or number is a *query.SyntaxError.
func (c *Condition) Holds(r *Result) (pairs [][2]int, err error) {
	for i, p := range r.pairs() {
		var values []any
		for _, o := range c.expr.Fields() {
			v, err := c.valueOf(o, r, i)
			if err != nil {
				return nil, err
			}
			values = append(values, v)
		}
		if c.expr.Match(values, time.Time{}) {
			pairs = append(pairs, p)
		}
	}
	return pairs, nil
}

// pairs lists the arms of each pair, in the order of Metric.Pairs.
func (r *Result) pairs() [][2]int {
	for i := range r.Suites {
		if len(r.Suites[i].Metrics) == 0 {
			continue
		}
		var list [][2]int
		for _, p := range r.Suites[i].Metrics[0].Pairs {
			list = append(list, [2]int{p.A, p.B})
		}
		return list
	}
	return nil
}

func (c *Condition) valueOf(o operand, r *Result, pair int) (float64, error) {
	var names []string
	var suite *Suite
	meant := 0
	for i := range r.Suites {
		names = append(names, r.Suites[i].Name)
		if o.suite == "" || suiteIs(r.Suites[i].Name, o.suite) {
			suite = &r.Suites[i]
			meant++
		}
	}
	fail := func(msg, help string) (float64, error) {
		return 0, &query.SyntaxError{Language: conditionName, Text: c.String(), Col: o.col, Msg: msg, Help: help}
	}
	switch {
	case meant > 1:
		return fail("which suite?", fmt.Sprintf("write %s(SUITE), with one of %s", o.field,
			strings.Join(names, ", ")))
	case suite == nil:
		return fail(fmt.Sprintf("no suite %q", o.suite), "there are "+strings.Join(names, ", "))
	}
	m := suite.Metric(o.metric)
	if m == nil {
		var known []string
		for i := range suite.Metrics {
			known = append(known, suite.Metrics[i].Name)
		}
		return fail(fmt.Sprintf("%s has no metric %q", suite.Name, o.metric), "there are "+strings.Join(known, ", "))
	}
	v := fields()[o.field](&m.Pairs[pair])
	if v == nil {
		help := ""
		if !m.Tested {
			help = "p values exist for tested metrics only: add it with --metric"
		}
		return fail(fmt.Sprintf("%s of %s on %s is not known", o.field, o.metric, suite.Name), help)
	}
	return *v, nil
}
