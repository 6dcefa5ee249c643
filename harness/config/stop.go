package config

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"exp/experiments/query"
	"exp/experiments/spelling"
	"exp/harness/metric"
)

// StopCondition is an entry of run.stop_if: a condition on what a step measured, in the grammar
// of query.Language with the names of metrics, or NonFinite, as operands and numbers as literals. It
// is immutable.
type StopCondition struct{ expr *query.Expr[string] }

// NonFinite is the operand that counts the metrics of a step that are NaN or infinite. No comparison
// of a NaN metric holds.
const NonFinite = "nonfinite"

// ParseStop reads a condition. The error is a *query.SyntaxError.
func ParseStop(text string) (*StopCondition, error) {
	e, err := query.Language[string]{Name: "condition", Numbers: true, Operand: stopOperand}.Parse(text)
	if err != nil {
		return nil, err
	}
	return &StopCondition{e}, nil
}

// stopOperand reads the name of a metric that steps measure, or NonFinite.
func stopOperand(r *query.Reader) (string, error) {
	w, err := r.Word("expected the name of a metric")
	if err != nil {
		return "", err
	}
	m, known := metric.Find(w.Text)
	switch {
	case w.Text == NonFinite:
		return w.Text, nil
	case known && m.OfSteps():
		return w.Text, nil
	case known:
		return "", &query.SyntaxError{Col: w.Col, Msg: fmt.Sprintf("no training step measures %s", w.Text),
			Help: "eval.online measures val/pass@1 and others during training"}
	}
	help := "exp metrics --explain lists all metrics"
	if near := spelling.Nearest(w.Text, stepMetrics()); near != "" {
		help = fmt.Sprintf("did you mean %q?", near)
	}
	return "", &query.SyntaxError{Col: w.Col, Msg: fmt.Sprintf("no metric %q", w.Text), Help: help}
}

// stepMetrics lists NonFinite and the metrics with fixed names that steps measure.
func stepMetrics() []string {
	names := []string{NonFinite}
	for _, m := range metric.All() {
		if m.OfSteps() && m.Name == strings.ToLower(m.Name) {
			names = append(names, m.Name)
		}
	}
	return names
}

// String returns the condition as written.
func (c *StopCondition) String() string { return c.expr.String() }

// Metrics returns the metrics that the condition names, each once; NonFinite is one.
func (c *StopCondition) Metrics() []string { return c.expr.Fields() }

// StopValue returns the value of an operand for the metrics of a step.
func StopValue(name string, measured map[string]float64) (v float64, ok bool) {
	if name != NonFinite {
		v, ok = measured[name]
		return v, ok
	}
	for _, x := range measured {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			v++
		}
	}
	return v, true
}

// Holds reports whether the condition holds for all metrics of a step. It holds only if the step
// measured those it names, and each is a number.
func (c *StopCondition) Holds(measured map[string]float64) bool {
	values := make([]any, len(c.Metrics()))
	for i, name := range c.Metrics() {
		v, ok := StopValue(name, measured)
		if !ok || math.IsNaN(v) {
			return false
		}
		values[i] = v
	}
	return c.expr.Match(values, time.Time{})
}

// StopConditions returns the conditions of run.stop_if, which loading has checked.
func (r *Run) StopConditions() []*StopCondition {
	var list []*StopCondition
	for _, text := range r.Control.StopIf {
		c, err := ParseStop(text)
		if err != nil {
			panic("config: run.stop_if was not checked: " + err.Error())
		}
		list = append(list, c)
	}
	return list
}

// stopChecks check run.stop_if.
func stopChecks() []check {
	const key, online = "run.stop_if", "eval.online.every_steps"
	return []check{
		{[]string{key}, func(r *Run) (string, string) {
			for _, text := range r.Control.StopIf {
				_, err := ParseStop(text)
				var bad *query.SyntaxError
				if errors.As(err, &bad) {
					return fmt.Sprintf("%s: %q, column %d: %s", key, text, bad.Col+1, bad.Msg), bad.Help
				}
			}
			return "", ""
		}},
		{[]string{key, online}, func(r *Run) (string, string) {
			for _, text := range r.Control.StopIf {
				c, err := ParseStop(text)
				if err != nil || r.Eval.Online.EverySteps > 0 {
					continue // the check above reports the error
				}
				for _, name := range c.Metrics() {
					if strings.HasPrefix(name, "val") {
						return fmt.Sprintf("%s: %s is never measured: %s is 0", key, name, online),
							"set it to the steps between two validations"
					}
				}
			}
			return "", ""
		}},
	}
}
