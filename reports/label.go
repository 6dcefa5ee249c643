package reports

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// longestLabel is the longest name in a figure, in letters.
const longestLabel = 28

// nameArms sets the arms' labels: names without their common beginning, and long ones cut in
// the middle. It returns the sentence that says so; empty if nothing is left out.
func nameArms(arms []*arm) string {
	if len(arms) == 1 {
		arms[0].label = arms[0].Name
		return ""
	}
	names := armNames(arms)
	short := withoutPrefix(names)
	note := ""
	if prefix := strings.TrimSuffix(names[0], short[0]); prefix != "" {
		note = fmt.Sprintf("Figures leave out %q, with which all arms' names begin.", prefix)
	}
	cut := make([]string, len(short))
	for i, name := range short {
		cut[i] = CutMiddle(name, longestLabel)
	}
	if distinct(cut) && !slices.Equal(cut, short) {
		short = cut
		note = strings.TrimSpace(note + " They cut long names in the middle (…).")
	}
	for i, a := range arms {
		a.label = short[i]
	}
	return note
}

func distinct(names []string) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(names)))) == len(names)
}

// CutMiddle shortens a name to most letters. Ends of names tell arms apart.
func CutMiddle(name string, most int) string {
	runes := []rune(name)
	if len(runes) <= most {
		return name
	}
	tail := (most - 1) / 2
	return string(runes[:most-1-tail]) + "…" + string(runes[len(runes)-tail:])
}

// labels returns the arms' names in figures.
func labels(arms []*arm) []string {
	list := make([]string, len(arms))
	for i, a := range arms {
		list[i] = a.label
	}
	return list
}

// chooseFocus marks the arms whose bands a figure of many arms draws: the baseline, and the
// two with the best accuracy on the first suite.
func (s *source) chooseFocus() {
	baseline := 0
	if s.result != nil && s.result.Baseline > 0 {
		baseline = s.result.Baseline
	}
	s.arms[baseline].focus = true
	names := suiteNames(s.arms)
	if len(names) == 0 {
		return
	}
	value := func(a *arm) float64 {
		v, _ := a.mean(func(r *run) float64 { return r.evalValue(names[0], "pass@1") })
		if math.IsNaN(v) {
			return math.Inf(-1)
		}
		return v
	}
	best := slices.Clone(s.arms)
	slices.SortStableFunc(best, func(a, b *arm) int {
		switch {
		case value(a) > value(b):
			return -1
		case value(a) < value(b):
			return 1
		}
		return 0
	})
	for _, a := range best[:min(2, len(best))] {
		a.focus = true
	}
}

// focused returns the labels of the arms in focus.
func focused(arms []*arm) (list []string) {
	for _, a := range arms {
		if a.focus {
			list = append(list, a.label)
		}
	}
	return list
}
