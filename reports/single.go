package reports

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"exp/experiments/spelling"
	"exp/harness/metric"
	"exp/reports/figure"
)

// Kind is a kind of figure, with its meaning in a few words. A suite's figures add its name
// to the kind, as in pass-at-k-countdown-test.
type Kind struct{ Name, About string }

// Kinds lists the kinds of figures, in the order of a report.
func Kinds() []Kind {
	list := []Kind{
		{"optimum", "exact policies and the optimum of a task that can be enumerated"},
		{"suites", "accuracy by suite, as bars"},
		{"differences", "paired differences between arms, by unit"},
		{"profile", "performance profile: problems above a share of right completions"},
		{"aggregate", "mean, interquartile mean and optimality gap over suites"},
		{"improvement", "probability that a run of one arm outscores a run of another"},
		{"pass-at-k", "pass@k against k, by suite"},
		{"choice", "pass@k, best@k by a scorer and maj@k against k, by suite"},
		{"graders", "accuracy by grader, by suite"},
		{"forms", "how answers are written, by suite"},
		{"items", "problems solved by two arms, by suite"},
		{"rating", "rating by contest standings (--contests)"},
	}
	for _, k := range curveKinds {
		if k.Group == groupCost {
			continue
		}
		list = append(list, Kind{k.Name, k.about()})
	}
	return append(list, Kind{"diversity", "different right answers against accuracy, by suite"},
		Kind{"clusters", "groups of similar right answers against accuracy, by suite"},
		Kind{"throughput", curveKinds[len(curveKinds)-1].about()},
		Kind{"phases", "wall-clock time by phase of a training step"})
}

func (k curveKind) about() string {
	m, _ := metric.Find(k.Metric)
	return m.InSentence() + " (" + k.Metric + ")"
}

// KindError is returned for a figure that cannot be drawn: its kind is unknown, several
// figures have it, or the runs lack its data.
type KindError struct {
	Kind   string
	Reason string
	Help   string
	code   int
}

func (e *KindError) Error() string { return fmt.Sprintf("figure %q: %s", e.Kind, e.Reason) }

// ExitCode returns the code for bad usage, or for data that is not there.
func (e *KindError) ExitCode() int { return e.code }

// Hint suggests what to do.
func (e *KindError) Hint() string { return e.Help }

// One draws a single figure of the runs: kind names it as in Kinds, as in the file names of a
// report, or by the metric of a curve.
func One(ctx context.Context, in Input, kind string) (figure.Figure, error) {
	s, err := read(ctx, in)
	if err != nil {
		return figure.Figure{}, err
	}
	d, err := s.named(kind)
	if err != nil {
		return figure.Figure{}, err
	}
	missing := func(reason string) error {
		return &KindError{Kind: kind, Reason: reason, Help: "exp metrics RUN lists what a run recorded", code: 3}
	}
	var same *sameAs
	if d.reason != nil && !errors.As(d.reason, &same) {
		return figure.Figure{}, missing(d.reason.Error())
	}
	f, err := d.draw()
	if errors.Is(err, figure.ErrNoData) {
		return f, missing(noDataReason(err))
	}
	if list := s.unfinished(); len(list) > 0 {
		f.Caption.Notes = append(f.Caption.Notes, "Not finished: "+listed(list)+".")
	}
	if len(s.left) > 0 {
		f.Caption.Notes = append(f.Caption.Notes, "Left out: "+strings.Join(s.left, "; ")+".")
	}
	if s.labelNote != "" {
		f.Caption.Notes = append(f.Caption.Notes, s.labelNote)
	}
	return f, err
}

// named finds a drawing by its kind, its own name or its metric.
func (s *source) named(kind string) (drawing, error) {
	known := slices.ContainsFunc(Kinds(), func(k Kind) bool { return k.Name == kind })
	var own []drawing
	for _, d := range s.drawings() {
		switch {
		case d.name == kind:
			return d, nil
		case known && strings.HasPrefix(d.name, kind+"-"):
			own = append(own, d)
		}
	}
	if len(own) == 1 {
		return own[0], nil
	}
	if len(own) > 1 {
		var names []string
		for _, d := range own {
			names = append(names, d.name)
		}
		return drawing{}, &KindError{Kind: kind, Reason: "there are several", Help: "name one: " +
			strings.Join(names, ", "), code: 2}
	}
	if _, ok := metric.Find(kind); ok {
		return curveKind{Name: slug(kind), Metric: kind, Group: groupLearning}.drawing(s.arms), nil
	}
	return drawing{}, s.unknown(kind)
}

// unknown says which kinds there are.
func (s *source) unknown(kind string) error {
	var names []string
	for _, k := range Kinds() {
		if k.Name == kind {
			return &KindError{Kind: kind, Reason: "these runs have none: " + s.lack(kind),
				Help: "exp report writes every figure that they have", code: 3}
		}
		names = append(names, k.Name)
	}
	e := &KindError{Kind: kind, Reason: "unknown kind", Help: "one of " + strings.Join(names, ", ") +
		", or a metric's name", code: 2}
	if near := spelling.Nearest(kind, names); near != "" {
		e.Help = fmt.Sprintf("did you mean %s? There are %s, and any metric's name", near, strings.Join(names, ", "))
	}
	return e
}

// needs explains, by kind, what a run without the figure lacks.
var needs = map[string]string{
	"optimum":     "their task's completions cannot be enumerated",
	"differences": "differences need a comparison of two arms",
	"pass-at-k":   "no suite has a final evaluation",
	"choice":      "no evaluation has scores of a scorer (exp eval --score-by)",
	"graders":     "no suite was scored by several graders (eval.final.graders)",
	"forms":       "no suite was scored by several graders (eval.final.graders)",
	"items":       "no suite has a final evaluation",
	"diversity":   "no suite has a final evaluation",
	"clusters":    "no suite has a final evaluation",
}

// lack says why these runs have no figure of a kind.
func (s *source) lack(kind string) string {
	if s.sideBySide() {
		return "arms of other frameworks are shown by their curves only"
	}
	return needs[kind]
}
