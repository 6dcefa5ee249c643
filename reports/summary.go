package reports

import (
	"fmt"
	"slices"
	"strings"

	"exp/eval"
	"exp/experiments/quantity"
	"exp/harness/metric"
	"exp/reports/compare"
)

// summarySection puts the results into sentences.
func (s *source) summarySection() section {
	sec := section{ID: "summary", Title: "Summary"}
	if s.sideBySide() {
		sec.Blocks = append(sec.Blocks, callout{true, "Not compared.", s.whySideBySide()})
	} else if s.result == nil {
		sec.Blocks = append(sec.Blocks, s.aloneSummary()...)
	} else {
		sec.Blocks = append(sec.Blocks, s.verdicts()...)
	}
	if list := s.unfinished(); len(list) > 0 {
		sec.Blocks = append(sec.Blocks, callout{true, "Not finished.",
			text("These runs did not finish: %s.", listed(list))})
	}
	if len(s.left) > 0 {
		sec.Blocks = append(sec.Blocks, callout{true, "Left out.", text("%s.", strings.Join(s.left, "; "))})
	}
	for _, d := range s.divergences() {
		sec.Blocks = append(sec.Blocks, callout{true, "Divergence.", d})
	}
	return sec
}

// whySideBySide explains why the arms cannot be compared.
func (s *source) whySideBySide() line {
	var foreign []string
	for _, a := range s.arms {
		if from := a.Runs[0].Foreign(); from != "" {
			foreign = append(foreign, a.Name+" ("+from+")")
		}
	}
	if len(foreign) == 0 {
		return text("The curves are shown side by side and nothing is tested: an arm has no finished run.")
	}
	return text("The curves are shown side by side and nothing is tested. Imported from other frameworks: %s. For "+
		"these, the store has no configuration, data or sources; exp compare tests arms with completions of the same "+
		"problems.", listed(foreign))
}

// verdicts returns one sentence per tested metric, suite and pair, the limits of the
// statistics, and the waivers.
func (s *source) verdicts() []block {
	var blocks []block
	for i := range s.result.Suites {
		suite := &s.result.Suites[i]
		list := s.sentences(suite)
		if len(list) == 0 {
			continue
		}
		blocks = append(blocks, paragraph{s.suiteLead(suite)}, list)
	}
	if len(blocks) == 0 {
		blocks = append(blocks, paragraph{text("No suite was scored in all arms: only the curves can be compared.")})
	}
	for _, w := range s.result.Comparability.Waived() {
		blocks = append(blocks, callout{true, "Waived.", line{{Text: "The arms also differ in "}, styled(mono, w.Key),
			{Text: fmt.Sprintf(" (%s), which is not part of the treatment. Differences in results may come from it.",
				valuesText(s.arms, &w))}}})
	}
	if len(s.result.Notes) > 0 {
		var notes bullets
		for _, n := range s.result.Notes {
			if strings.HasPrefix(n, "waived: ") {
				continue // said above, with more words
			}
			notes = append(notes, line{styled(muted, n)})
		}
		blocks = append(blocks, paragraph{line{styled(muted, "Notes on these numbers:")}}, notes)
	}
	return blocks
}

// sentences returns the verdicts on a suite: first the differences that were shown, then
// the rest.
func (s *source) sentences(suite *compare.Suite) bullets {
	var shown, rest bullets
	for j := range suite.Metrics {
		m := &suite.Metrics[j]
		switch {
		case !m.Tested, len(s.arms) > 2 && !quoted(m.Name):
		case allEqual(m):
			rest = append(rest, sameEverywhere(m))
		default:
			var open []compare.Pair
			for _, p := range m.Pairs {
				if p.Verdict == compare.NoDifference || p.Verdict == compare.Underpowered {
					open = append(open, p)
				} else {
					shown = append(shown, s.sentence(m, p))
				}
			}
			if len(open) > mostOpen {
				rest = append(rest, s.openPairs(m, open))
				break
			}
			for _, p := range open {
				rest = append(rest, s.sentence(m, p))
			}
		}
		if l := s.belowStart(m); l != nil {
			rest = append(rest, l)
		}
	}
	if len(s.arms) > 2 {
		rest = append(rest, line{styled(muted, "The differences below cover the other metrics and every pair of "+
			"arms.")})
	}
	return append(shown, rest...)
}

// quoted reports whether the summary includes a metric. With more than two arms it
// includes few, since each pair takes a sentence.
func quoted(name string) bool {
	m, _ := metric.Find(name)
	return m.Shown&metric.Summarized != 0
}

// allEqual reports whether all arms have the same mean and no spread.
func allEqual(m *compare.Metric) bool {
	for _, p := range m.Pairs {
		if lo, hi := bounds(p.Interval); valueOf(p.Delta) != 0 || lo < hi {
			return false
		}
	}
	return len(m.Pairs) > 0
}

// suiteLead introduces a suite's verdicts.
func (s *source) suiteLead(suite *compare.Suite) line {
	l := line{{Text: "On "}, styled(strong, suite.Name),
		{Text: fmt.Sprintf(" (%s, %s each, %s)", quantity.Plural(suite.Items, "problem"),
			quantity.Plural(suite.Samples, "sample"), s.seedText())}}
	if m := suite.Metric("pass@1"); m != nil && sameStart(m) {
		l = l.with(span{Text: fmt.Sprintf(", starting from an accuracy of %s", fixed(valueOf(m.Arms[0].Start), 3))})
	}
	return l.with(span{Text: ":"})
}

// sentence returns a verdict that can be quoted on its own.
func (s *source) sentence(m *compare.Metric, p compare.Pair) line {
	a, b := p.A, p.B
	delta := valueOf(p.Delta)
	lo, hi := bounds(p.Interval)
	if p.Verdict == compare.Worse || p.Verdict == compare.Lower { // the winner comes first
		a, b, delta, lo, hi = b, a, -delta, -hi, -lo
	}
	digits := digitsOf(m)
	value := func(v float64) string { return fixed(v, fine(v, digits)) }
	meanA, meanB := value(valueOf(m.Arms[a].Mean)), value(valueOf(m.Arms[b].Mean))
	at := fine(delta, digits)
	diff := "Δ = " + signed(delta, at)
	if lo < hi {
		diff += fmt.Sprintf(" [%s, %s]", signed(lo, at), signed(hi, at))
	}
	if p.PHolm != nil {
		diff += ", p = " + pText(*p.PHolm) + " after Holm’s correction"
		diff = strings.Replace(diff, "= <", "<", 1)
	}
	first, second, what := s.arms[a].span(), s.arms[b].span(), metricWord(m.Name)
	reach := "The differences do not vary, so the detectable difference is unknown."
	if p.MDE != nil {
		reach = fmt.Sprintf("A true difference of %s would give p ≤ 0.05, uncorrected, 80\u202f%% of the time.",
			value(valueOf(p.MDE)))
	}
	if lo > 0 || hi < 0 {
		reach = "The interval excludes zero, but the corrected test is not significant."
		if p.P != nil && *p.P > s.result.Alpha && p.Test == compare.SignFlips {
			reach = fmt.Sprintf("The interval (Student’s t) excludes zero, but the sign-flip test gives p = %s even "+
				"without the correction.", pText(*p.P))
		}
	}
	both := line{first, {Text: " " + meanA + ", "}, second, {Text: " " + meanB}}
	switch p.Verdict {
	case compare.Better, compare.Worse, compare.Higher, compare.Lower:
		word := " is better than "
		if p.Verdict == compare.Higher || p.Verdict == compare.Lower {
			word = " is higher than "
		}
		return line{first, styled(strong, word), second,
			{Text: fmt.Sprintf(" in %s%s: %s against %s (%s).", what, ofTheseRuns(p), meanA, meanB, diff)}}
	case compare.NoDifference:
		return slices.Concat(line{styled(strong, "No difference shown"), {Text: " in " + what + ": "}}, both,
			line{{Text: fmt.Sprintf(" (%s). %s", diff, reach)}})
	}
	return slices.Concat(line{styled(strong, "Underpowered"), {Text: " in " + what + ": "}}, both,
		line{{Text: fmt.Sprintf(" (%s). %s", diff, reach)}})
}

// ofTheseRuns limits a verdict that does not cover other training seeds.
func ofTheseRuns(p compare.Pair) string {
	if p.Test == compare.SignFlips {
		return " of these runs"
	}
	return ""
}

// belowStart names the arms that training left with less pass@k than they started with;
// nil without such arms.
func (s *source) belowStart(m *compare.Metric) line {
	if _, isPass := metric.PassK(m.Name); !m.Tested || !isPass {
		return nil
	}
	digits := digitsOf(m)
	var arms line
	var fallen int
	for i := range m.Arms {
		start, end := fixed(valueOf(m.Arms[i].Start), digits), fixed(valueOf(m.Arms[i].Mean), digits)
		if !(valueOf(m.Arms[i].Gain) < 0) || start == end {
			continue
		}
		if fallen++; fallen > 1 {
			arms = arms.with(span{Text: ", "})
		}
		arms = arms.with(s.arms[i].span(), span{Text: " " + start + " → " + end})
	}
	if fallen == 0 {
		return nil
	}
	return line{styled(strong, "Below the start"), {Text: " in " + metricWord(m.Name) + ": "}}.
		with(arms...).with(span{Text: "."})
}

// sameEverywhere says that a metric has one value in all arms. If it is the lowest possible
// value, that proves nothing: the problems may be too hard for every arm.
func sameEverywhere(m *compare.Metric) line {
	value := valueOf(m.Arms[0].Mean)
	text := fmt.Sprintf(" in %s: every arm has %s", metricWord(m.Name), fixed(value, digitsOf(m)))
	if value == 0 {
		return line{styled(strong, "Nothing to compare"), {Text: text + "; easier problems or longer training " +
			"might tell the arms apart."}}
	}
	return line{styled(strong, "The same"), {Text: text + "."}}
}

// aloneSummary reports where one arm started and ended.
func (s *source) aloneSummary() []block {
	a := s.arms[0]
	var list bullets
	for _, suite := range suiteNames(s.arms) {
		for _, metric := range s.headlineMetrics(suite) {
			end := func(r *run) float64 { return r.evalValue(suite, metric) }
			v, n := a.mean(end)
			if n == 0 {
				continue
			}
			start, started := a.mean(func(r *run) float64 { return r.evalValue(suite+startSuffix, metric) })
			digits := fine(v, digitsFor(v, start))
			l := line{{Text: sentenceCase(metricWord(metric)) + " on "}, styled(strong, suite), {Text: ": "},
				styled(strong, fixed(v, digits))}
			if lo, hi := a.spread(end); n > 1 && lo < hi {
				l = l.with(span{Text: fmt.Sprintf(", seeds from %s to %s", fixed(lo, digits), fixed(hi, digits))})
			}
			switch before := fixed(start, digits); {
			case started > 0 && v < start && before != fixed(v, digits) && betterHigher(metric):
				l = l.with(span{Text: ", below the "}, styled(strong, before), span{Text: " before training"})
			case started > 0:
				l = l.with(span{Text: ", before training " + before})
			}
			list = append(list, l.with(span{Text: "."}))
		}
	}
	if len(list) == 0 {
		return []block{paragraph{text("No final evaluation is recorded; only curves are shown.")}}
	}
	blocks := []block{paragraph{line{a.span(), {Text: fmt.Sprintf(", %s:", quantity.Plural(len(a.Runs), "seed"))}}},
		list}
	if len(a.Runs) == 1 {
		blocks = append(blocks, callout{Text: text("There is one seed: the variation between training seeds was not " +
			"measured.")})
	}
	return blocks
}

// betterHigher reports whether higher values of a metric are better.
func betterHigher(name string) bool {
	m, _ := metric.Find(name)
	return m.Direction == eval.Up
}

// headlineMetrics returns the metrics that comparisons test, the task's main ones.
func (s *source) headlineMetrics(suite string) []string {
	return metric.Among(s.evalMetrics(suite), metric.Tested)
}

func (s *source) divergences() []line {
	var list []line
	for a, r := range eachRun(s.arms) {
		if n := len(r.diverged); n > 0 {
			d := r.diverged[0].What
			list = append(list, text("Run %s (%s, seed %d) was executed again with different results, first in "+
				"%s. The report shows the first record.",
				r.RID.Short(), a.Name, r.Seed, d.Field))
		}
	}
	return list
}

func sentenceCase(t string) string {
	if t == "" {
		return t
	}
	return strings.ToUpper(t[:1]) + t[1:]
}
