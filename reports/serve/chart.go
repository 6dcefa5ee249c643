package serve

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"exp/eval"
	"exp/experiments/quantity"
	"exp/harness/metric"
	"exp/reports/figure"
)

func describeChart(name string) chart {
	m, known := metric.Find(name)
	c := chart{Metric: name, Title: m.Title, Unit: m.Counts(), Definition: m.Definition}
	if !known || c.Title == "" {
		c.Title = name
	}
	return c
}

// noValue says why nothing is drawn.
func noValue(arms []figure.Arm, log bool) string {
	switch {
	case len(arms) == 0:
		return "Not recorded."
	case log:
		return "No value above 0, which a logarithmic axis needs."
	}
	return "No finite value."
}

// bandNote says what the lines and bands of arms with several seeds are.
func bandNote(f figure.Curve) string {
	if !slices.ContainsFunc(f.Arms, func(a figure.Arm) bool { return len(a.Seeds) > 1 }) {
		return ""
	}
	return "mean over seeds; band: " + f.Band.String()
}

// chartNote says what the pale area and the smoothing are, and which arms are missing: they are not
// among those drawn.
func chartNote(f figure.Curve, bands string, arms []arm, drawn []figure.Arm) string {
	var parts []string
	if bands != "" {
		parts = append(parts, strings.ToLower(bands[:1])+bands[1:])
	}
	if slices.ContainsFunc(f.Arms, func(a figure.Arm) bool { return len(a.Seeds) == 1 && a.Seeds[0].Min != nil }) {
		parts = append(parts, "pale: least and greatest of the values that a point stands for")
	}
	if f.Smooth > 1 {
		parts = append(parts, "smoothed over "+quantity.Plural(f.Smooth, "point"))
	}
	var without []string
	for _, a := range arms {
		if !slices.ContainsFunc(drawn, func(d figure.Arm) bool { return d.Name == a.Label }) {
			without = append(without, a.Label)
		}
	}
	if len(without) > 0 {
		parts = append(parts, "not recorded for "+strings.Join(without, ", "))
	}
	return strings.Join(parts, "; ")
}

// lastValues returns where the lines end, mean over seeds.
func lastValues(arms []arm, drawn []figure.Arm) (list []lastValue) {
	for _, a := range arms {
		for _, d := range drawn {
			if d.Name != a.Label {
				continue
			}
			list = append(list, lastValue{a, quantity.Short(lastMean(d))})
		}
	}
	return list
}

// focused returns the arms whose bands are drawn where all of them would hide the lines: the first
// of order that has a line, and the two that end best if a direction is better. An arm that diverged
// ends at no number, and is not one of the best.
func focused(order []string, arms []figure.Arm, better eval.Direction) (list []string) {
	for _, name := range order {
		if slices.ContainsFunc(arms, func(a figure.Arm) bool { return a.Name == name }) {
			list = append(list, name)
			break
		}
	}
	if better != eval.Up && better != eval.Down {
		return list
	}
	best := slices.DeleteFunc(slices.Clone(arms), func(a figure.Arm) bool {
		return slices.Contains(list, a.Name) || math.IsNaN(lastMean(a))
	})
	slices.SortStableFunc(best, func(a, b figure.Arm) int {
		if better == eval.Down {
			a, b = b, a
		}
		return cmp.Compare(lastMean(b), lastMean(a))
	})
	for _, a := range best[:min(2, len(best))] {
		list = append(list, a.Name)
	}
	return list
}

// lastMean returns the mean over seeds at the end of an arm's line.
func lastMean(a figure.Arm) float64 {
	var sum float64
	for _, seed := range a.Seeds {
		sum += seed.Y[len(seed.Y)-1]
	}
	return sum / float64(len(a.Seeds))
}

// valuesOf returns the values of each arm.
func valuesOf(arms []figure.Arm) [][]float64 {
	lists := make([][]float64, len(arms))
	for i, a := range arms {
		for _, seed := range a.Seeds {
			lists[i] = append(lists[i], seed.Y...)
		}
	}
	return lists
}
