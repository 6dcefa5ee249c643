package reports

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"exp/experiments/quantity"
	"exp/reports/compare"
	"exp/reports/figure"
)

// acrossFigures draws the aggregates over all suites: the performance profile, mean, IQM
// and optimality gap, and the probability that a run of one arm outscores a run of
// another.
func (s *source) acrossFigures() []drawing {
	profile := figure.Profile{Head: figure.Head{Name: "profile", Title: "Performance profile",
		Order: labels(s.arms), Focus: focused(s.arms),
		About: "Share of problems whose share of right completions exceeds the threshold, mean over seeds and " +
			"suites, suites weighted equally. At 0: the problems solved at least once"},
		X: figure.Axis{Label: "threshold", Unit: "share of right completions"},
		Y: figure.Axis{Label: "problems above the threshold", Unit: "share", Zero: true}}
	dots := figure.Dots{Head: figure.Head{Name: "aggregate", Title: "Aggregates over suites", Order: labels(s.arms),
		About: "Accuracy (pass@1) of each run on each suite: the mean, and the interquartile mean (the mean of " +
			"the middle half; arXiv:2108.13264). The optimality gap is 1 minus the mean: accuracy is at most 1"},
		X: axisOf("pass@1"), Groups: []string{"mean", "interquartile mean"}}
	odds := figure.Forest{Head: figure.Head{Name: "improvement", Title: "Probability of improvement",
		Order: labels(s.arms),
		About: "Chance that a run of the first arm scores more than a run of the second on the same suite, ties " +
			"counting half, mean over suites (arXiv:2108.13264)"},
		X: figure.Axis{Label: "probability that the first arm's run scores more"}, Null: 0.5, Seeds: s.seedText(),
		Less: "second arm ahead", More: "first arm ahead"}
	if s.result == nil || s.result.Across == nil {
		none := notTheirs{"only comparisons with per-problem scores have it"}
		return []drawing{{name: profile.Name, title: profile.Title, reason: none},
			{name: dots.Name, title: dots.Title, reason: none},
			{name: odds.Name, title: odds.Title, reason: none}}
	}

	x := s.result.Across
	profile.Interval = fmt.Sprintf("%s\u202f%% bootstrap over problems, not training seeds, stratified by suite, %s "+
		"draws", fixed(100*s.result.Level, 0), quantity.TypesetCount(int64(x.Draws)))
	if x.Kind == string(compare.TwoLevel) {
		profile.Interval = fmt.Sprintf("%s\u202f%%, Student's t, over seeds (jackknife) and problems (bootstrap "+
			"stratified by suite, %s draws)", fixed(100*s.result.Level, 0), quantity.TypesetCount(int64(x.Draws)))
	}
	dots.Interval = profile.Interval
	odds.Interval = fixed(100*s.result.Level, 0) + "\u202f%, score test, over seeds"
	profile.Thresholds = x.Thresholds
	least := math.MaxInt
	for i, a := range x.Arms {
		seeds := len(s.arms[i].Runs)
		least = min(least, a.Scores)
		line := figure.ProfileArm{Name: s.arms[i].label, Seeds: seeds}
		for _, e := range a.Profile {
			line.Share = append(line.Share, aggregated(e))
		}
		profile.Arms = append(profile.Arms, line)
		dots.Arms = append(dots.Arms, figure.ArmValues{Name: s.arms[i].label, Seeds: seeds,
			Values: []figure.Estimate{aggregated(a.Mean), aggregated(a.IQM)}})
	}
	short := labels(s.arms)
	for _, p := range x.Pairs {
		odds.Rows = append(odds.Rows, figure.ForestRow{Name: short[p.A] + " over " + short[p.B],
			Seeds: min(len(s.arms[p.A].Runs), len(s.arms[p.B].Runs)), Diff: aggregated(p.Improvement)})
	}
	list := []drawing{try(groupResults, profile), try(groupResults, dots), try(groupResults, odds)}
	if least < 4 {
		list[1].reason = fmt.Errorf("an arm has only %s (suites × seeds), too few for an interquartile mean to leave "+
			"any out", quantity.Plural(least, "score"))
	}
	if x.Kind != string(compare.TwoLevel) {
		list[2].reason = fmt.Errorf("an arm has fewer than %d runs", compare.MinSeeds)
	}
	return list
}

func aggregated(a compare.Aggregate) figure.Estimate {
	lo, hi := bounds(a.Interval)
	return figure.Estimate{Value: valueOf(a.Value), Lo: lo, Hi: hi}
}

// itemFigures shows, per suite, which of two arms solved which problems: each arm against
// the baseline, or the first arm against each other one.
func (s *source) itemFigures() []drawing {
	var list []drawing
	for _, suite := range suites(s.arms) {
		name, title := "items-"+slug(suite), "Problems solved on "+s.suiteName(suite)
		if len(s.arms) == 1 {
			list = append(list, drawing{name: name, title: title, reason: notTheirs{"it needs two arms"}})
		}
		for other := range s.arms {
			a, b := 0, other
			if s.result != nil && s.result.Baseline >= 0 {
				a, b = other, s.result.Baseline
			}
			if a == b {
				continue
			}
			f := figure.Items{Head: figure.Head{Name: name,
				Title: fmt.Sprintf("%s by %s and %s", title, s.arms[a].label, s.arms[b].label), Order: labels(s.arms),
				About: "Share of right completions per problem (column) and run (row); within a group, problems are " +
					"sorted by their total"},
				Arms: [2]figure.ItemsArm{s.arms[a].items(suite), s.arms[b].items(suite)}}
			if len(s.arms) > 2 {
				f.Name += "-" + slug(s.arms[other].Name)
			}
			if list := s.arms[a].Runs[0].scores[suite]; len(list) > 0 {
				f.Samples = list[0].Graded
			}
			list = append(list, s.paired(f, a, b, suite))
		}
	}
	return list
}

// suiteName returns the name that evaluations give the suite with this label.
func (s *source) suiteName(label string) string {
	for _, name := range suiteNames(s.arms) {
		if strings.HasSuffix(name, "/"+label) {
			return name
		}
	}
	return label
}

// paired refuses arms whose problems are not the same.
func (s *source) paired(f figure.Items, a, b int, suite string) drawing {
	d := try(groupResults, f)
	first := s.arms[a].Runs[0].scores[suite]
	for _, r := range slices.Concat(s.arms[a].Runs, s.arms[b].Runs) {
		if !slices.EqualFunc(first, r.scores[suite], func(x, y item) bool { return x.Problem == y.Problem }) {
			d.reason = errors.New("the runs were scored on different problems")
		}
	}
	return d
}

// items returns an arm's scores on a suite's problems.
func (a *arm) items(suite string) figure.ItemsArm {
	out := figure.ItemsArm{Name: a.label}
	for _, r := range a.Runs {
		var row []float64
		for _, it := range r.scores[suite] {
			row = append(row, it.share())
		}
		out.Seeds = append(out.Seeds, row)
		out.Rows = append(out.Rows, fmt.Sprintf("seed %d", r.Seed))
	}
	return out
}
