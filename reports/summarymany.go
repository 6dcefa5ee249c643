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

// openPairs says of many pairs that no difference is shown, how far the arms' means are apart, and
// what a difference would have to be.
func (s *source) openPairs(m *compare.Metric, open []compare.Pair) line {
	digits := digitsOf(m)
	value := func(v float64) string { return fixed(v, fine(v, digits)) }
	weak, unknown := 0, 0
	least, most := math.Inf(1), math.Inf(-1)
	for _, p := range open {
		if p.Verdict == compare.Underpowered {
			weak++
		}
		if p.MDE == nil {
			unknown++
			continue
		}
		least, most = min(least, *p.MDE), max(most, *p.MDE)
	}
	low, high := 0, 0
	for i := range m.Arms {
		if valueOf(m.Arms[i].Mean) < valueOf(m.Arms[low].Mean) {
			low = i
		}
		if valueOf(m.Arms[i].Mean) > valueOf(m.Arms[high].Mean) {
			high = i
		}
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
	l = l.with(span{Text: ": means from " + value(valueOf(m.Arms[low].Mean)) + " of "}, s.arms[low].span(),
		span{Text: " to " + value(valueOf(m.Arms[high].Mean)) + " of "}, s.arms[high].span(), span{Text: "."})
	if unknown == len(open) {
		return l.with(span{Text: " The differences do not vary, so the detectable difference is unknown."})
	}
	return l.with(span{Text: fmt.Sprintf(" True differences of %s to %s, depending on the pair, would be found "+
		"80\u202f%% of the time.", value(least), value(most))})
}
