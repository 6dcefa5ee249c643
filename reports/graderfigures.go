package reports

import (
	"math"
	"strings"

	"exp/eval"
	"exp/reports/figure"
)

// graderFigures shows a suite scored by several graders: what each accepts, and the forms
// of the answers, which explain why graders differ.
func (s *source) graderFigures(suite scoredSuite) []drawing {
	graders, forms := s.metricsUnder(suite.name, eval.GraderPrefix), s.metricsUnder(suite.name, eval.FormPrefix)
	if len(graders) == 0 {
		return nil
	}
	dots := figure.Dots{Head: figure.Head{Name: "graders-" + slug(suite.name), Title: "Accuracy by grader on " +
		suite.name, Order: labels(s.arms),
		About: "pass@1 of the same completions under each grader, and under their union, which accepts what any " +
			"grader accepts"},
		X: figure.Axis{Label: "accuracy", Unit: "share of completions"}, Groups: graders, Interval: suite.interval}
	bars := figure.Bar{Head: figure.Head{Name: "forms-" + slug(suite.name), Title: "How answers are written on " +
		suite.name, Order: labels(s.arms),
		About: "Share of completions by the form of their final answer: graders read different forms"},
		Y: figure.Axis{Label: "completions", Unit: "share of completions"}, Groups: forms, Interval: suite.interval}
	for i, a := range s.arms {
		d := figure.ArmValues{Name: a.label, Seeds: len(a.Runs)}
		b := d
		for _, g := range graders {
			d.Values = append(d.Values, suite.metric(eval.GraderPrefix + g)[i])
		}
		for _, f := range forms {
			v := suite.metric(eval.FormPrefix + f)[i]
			if math.IsNaN(v.Value) { // none of the arm's answers
				v = figure.Point(0)
			}
			b.Values = append(b.Values, v)
		}
		dots.Arms, bars.Arms = append(dots.Arms, d), append(bars.Arms, b)
	}
	return []drawing{try(groupResults, dots), try(groupResults, bars)}
}

// metricsUnder lists a suite's metrics that have the prefix, with the prefix removed, in
// recording order.
func (s *source) metricsUnder(suite, prefix string) (list []string) {
	seen := map[string]bool{}
	for _, r := range eachRun(s.arms) {
		for _, e := range r.evals {
			if name, ok := strings.CutPrefix(e.Metric, prefix); ok && e.SuiteName == suite && !seen[name] {
				seen[name] = true
				list = append(list, name)
			}
		}
	}
	return list
}
