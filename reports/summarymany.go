package reports

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"exp/experiments/quantity"
	"exp/reports/compare"
)

// mostOpen is how many pairs without a shown difference get a sentence each: more are one sentence.
const mostOpen = 6

// openPairs sums up many pairs without a shown difference: the largest distance between two means,
// and how large a detectable difference would be.
func (s *source) openPairs(m *compare.Metric, open []compare.Pair) line {
	digits := digitsOf(m)
	value := func(v float64) string { return fixed(v, fine(v, digits)) }
	weak, unknown := 0, 0
	least, most := math.Inf(1), math.Inf(-1)
	var far *compare.Pair // nil: no pair has a difference
	for i, p := range open {
		delta := math.Abs(valueOf(p.Delta))
		if !math.IsNaN(delta) && (far == nil || delta > math.Abs(*far.Delta)) {
			far = &open[i]
		}
		if p.Verdict == compare.Underpowered {
			weak++
		}
		if p.MDE == nil {
			unknown++
			continue
		}
		least, most = min(least, *p.MDE), max(most, *p.MDE)
	}
	count := func(n, of int) string {
		if n == of {
			return "all"
		}
		return strconv.Itoa(n) + " of"
	}
	l := line{styled(strong, "No difference shown"), {Text: fmt.Sprintf(" in %s for %s %s of arms",
		metricWord(m.Name), count(len(open), len(m.Pairs)), quantity.Plural(len(m.Pairs), "pair"))}}
	if weak > 0 {
		number := strings.Replace(count(weak, len(open)), "all", "all of", 1)
		l = l.with(span{Text: fmt.Sprintf(", %s them underpowered", number)})
	}
	if far != nil {
		l = l.with(span{Text: ": means at most " + value(math.Abs(*far.Delta)) + " apart ("}, s.arms[far.A].span(),
			span{Text: " and "}, s.arms[far.B].span(), span{Text: ")"})
	}
	l = l.with(span{Text: "."})
	if unknown == len(open) {
		return l.with(span{Text: " The differences do not vary, so the detectable difference is unknown."})
	}
	text := fmt.Sprintf(" A true difference of %s would give p ≤ 0.05, uncorrected,", value(most))
	if value(least) != value(most) {
		text = fmt.Sprintf(" True differences of %s to %s, depending on the pair, would give p ≤ 0.05, uncorrected,",
			value(least), value(most))
	}
	text += " 80\u202f% of the time."
	if unknown > 0 {
		text += fmt.Sprintf(" For %s the detectable difference is unknown: the differences do not vary.",
			quantity.Plural(unknown, "pair"))
	}
	return l.with(span{Text: text})
}
