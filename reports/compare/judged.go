package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"exp/eval"
	"exp/experiments/quantity"
	"exp/experiments/recorded"
	"exp/harness/metric"
)

// judgedColumns lists the metrics of exp diversity that all runs have on a suite, judged in the same way.
func (c *comparison) judgedColumns(m *measured) (list []column, err error) {
	for _, name := range []string{recorded.JudgedDiversity, recorded.JudgedDiversityRight} {
		j, err := c.judgedOn(m, name)
		if err != nil {
			return nil, err
		}
		if why := j.incomparable(); why != "" {
			c.note("%s on %s is excluded: %s", name, m.name, why)
			continue
		}
		if len(j.of) == 0 {
			continue
		}
		if n, all := j.problems(), len(m.scores[c.arms[0].runs[0]].Items); n < all {
			c.note("%s on %s is over %d of %d problems: the others were not judged in every run", name, m.name, n, all)
		}
		d, _ := metric.Find(name)
		list = append(list, column{eval.Definition{Name: name, Unit: d.Unit, Direction: d.Direction,
			Definition: d.Definition}, j.row})
	}
	return list, nil
}

// judgedRuns are the judgements of runs behind one metric.
type judgedRuns struct {
	runs, judged int
	newest       []recorded.Judging // different ones of the trained weights
	of           map[*evaluation]*recorded.Judgements
	scored       map[string]int // runs with a score of the problem, and as many completions of it as the first run
	responses    map[string]int // of a problem in the first run
}

// judgedOn reads the judgements on a suite, in the newest way that all runs share.
func (c *comparison) judgedOn(m *measured, name string) (*judgedRuns, error) {
	j := &judgedRuns{of: map[*evaluation]*recorded.Judgements{}, scored: map[string]int{}, responses: map[string]int{}}
	var after, before [][]*recorded.Judgements // of each run, the newest first
	var records []*record
	var err error
	c.records(func(_ int, r *record) {
		of := func(ev *evaluation) []*recorded.Judgements {
			if ev == nil || err != nil {
				return nil
			}
			var list []*recorded.Judgements
			list, err = recorded.JudgementsOf(c.db.Blobs, r.all, ev.gen, ev.score, name)
			return list
		}
		records, after, before = append(records, r), append(after, of(m.of[r])), append(before, of(m.start[r]))
	})
	j.runs = len(records)
	for _, list := range after {
		if len(list) == 0 {
			continue
		}
		if j.judged++; !slices.Contains(j.newest, list[0].Judging) {
			j.newest = append(j.newest, list[0].Judging)
		}
	}
	if how := sharedJudging(after); how != nil {
		for i, r := range records {
			j.add(m.of[r], in(after[i], *how))
			if x := in(before[i], *how); x != nil {
				j.of[m.start[r]] = x
			}
		}
	}
	return j, err
}

// sharedJudging returns the newest settings of the first run that all runs have, or nil.
func sharedJudging(runs [][]*recorded.Judgements) *recorded.Judging {
	for _, x := range runs[0] {
		if !slices.ContainsFunc(runs, func(list []*recorded.Judgements) bool { return in(list, x.Judging) == nil }) {
			return &x.Judging
		}
	}
	return nil
}

// in finds the newest judgements with given settings, or returns nil.
func in(list []*recorded.Judgements, how recorded.Judging) *recorded.Judgements {
	for _, x := range list {
		if x.Judging == how {
			return x
		}
	}
	return nil
}

// add adds the judgements of a run's trained weights.
func (j *judgedRuns) add(ev *evaluation, x *recorded.Judgements) {
	first := len(j.responses) == 0
	j.of[ev] = x
	for _, p := range x.Problems {
		if first {
			j.responses[p.ID] = p.Responses
		}
		if _, ok := p.Mean(); ok && j.responses[p.ID] == p.Responses {
			j.scored[p.ID]++
		}
	}
}

// problems counts those with a score in every run.
func (j *judgedRuns) problems() (n int) {
	for _, runs := range j.scored {
		if runs == j.runs {
			n++
		}
	}
	return n
}

// incomparable says why scores cannot be compared; empty if they can, or without scores.
func (j *judgedRuns) incomparable() string {
	const advice = "; exp diversity judges all of them"
	switch {
	case len(j.of) > 0 && j.problems() == 0:
		return "no problem was judged in every run by equally many completions" + advice
	case j.judged == 0 || len(j.of) > 0:
		return ""
	case j.judged < j.runs:
		return fmt.Sprintf("only %d of %s were judged", j.judged, quantity.Plural(j.runs, "run")) + advice
	}
	return "runs were judged in different ways: " + differentSettings(j.newest) + advice + " alike"
}

// differentSettings names the settings that differ, with their values.
func differentSettings(list []recorded.Judging) string {
	var parts []string
	for _, x := range []struct {
		name string
		of   func(recorded.Judging) any
	}{
		{"model", func(j recorded.Judging) any { return j.Model }},
		{"template", func(j recorded.Judging) any { return j.Template }},
		{"passes", func(j recorded.Judging) any { return j.Passes }},
		{"excerpt", func(j recorded.Judging) any { return j.Excerpt }},
		{"seed", func(j recorded.Judging) any { return j.Seed }},
	} {
		var values []string
		for _, j := range list {
			if text := fmt.Sprint(x.of(j)); !slices.Contains(values, text) {
				values = append(values, text)
			}
		}
		if len(values) > 1 {
			parts = append(parts, x.name+" "+strings.Join(values, " and "))
		}
	}
	return strings.Join(parts, ", ")
}

// row returns the score of each problem of an evaluation. A problem has none if the judge read more of its completions
// in one run than in another.
func (j *judgedRuns) row(ev *evaluation, s *scores) []float64 {
	of := map[string]float64{}
	if x := j.of[ev]; x != nil {
		for _, p := range x.Problems {
			if v, ok := p.Mean(); ok && j.scored[p.ID] == j.runs {
				of[p.ID] = v
			}
		}
	}
	row := make([]float64, len(s.Items))
	for i := range s.Items {
		v, ok := of[s.Items[i].ProblemID]
		if !ok {
			v = math.NaN()
		}
		row[i] = v
	}
	return row
}
