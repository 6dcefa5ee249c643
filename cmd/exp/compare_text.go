package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/harness/metric"
	"exp/reports/compare"
)

// comparePage writes a comparison for people.
type comparePage struct {
	*cli.Page
	r      *compare.Result
	chosen bool // the user named the metrics
}

// mostMetrics is how many metrics fit on a line.
const mostMetrics = 6

func (p *comparePage) write() error {
	if err := p.arms(); err != nil {
		return err
	}
	for i := range p.r.Suites {
		if err := p.suite(&p.r.Suites[i]); err != nil {
			return err
		}
	}
	if err := p.across(); err != nil {
		return err
	}
	if err := p.cost(); err != nil {
		return err
	}
	p.notes()
	return nil
}

// arms lists the arms and the treatment.
func (p *comparePage) arms() error {
	columns := []cli.Column{armColumn("arm", 12), {Title: "algo"}, {Title: "xid"}, {Title: "runs"},
		{Title: "seeds"}}
	var rows [][]any
	for _, a := range p.r.Arms {
		var xids []string
		for _, x := range a.XIDs {
			xids = append(xids, x[:8])
		}
		rows = append(rows, []any{a.Label, a.Algo, strings.Join(xids, " "), len(a.Runs), seedText(a.Runs)})
	}
	if err := p.Table(columns, rows); err != nil {
		return err
	}
	p.Facts(cli.Fact{Name: "treatment", Text: p.treatment()}, cli.Fact{Name: "waived", Text: p.waivers()})
	return nil
}

// seedText lists seeds, with ranges: 0-2, 7.
func seedText(runs []compare.Run) string {
	var parts []string
	for i := 0; i < len(runs); {
		j := i
		for j+1 < len(runs) && runs[j+1].Seed == runs[j].Seed+1 {
			j++
		}
		text := fmt.Sprint(runs[i].Seed)
		if j > i {
			text += fmt.Sprintf("-%d", runs[j].Seed)
		}
		parts = append(parts, text)
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

// treatment lists the settings that are meant to differ: up to three keys with their
// values, and how many more there are.
func (p *comparePage) treatment() string {
	var parts []string
	more := 0
	for _, d := range p.r.Comparability.Differences {
		switch {
		case d.Class != compare.Treatment:
		case present(d.Values) && (len(parts) < 3 || strings.HasSuffix(d.Key, ".kind")):
			var values []string
			for arm := range p.r.Arms {
				values = append(values, d.Text(arm))
			}
			parts = append(parts, d.Key+" "+strings.Join(values, " | "))
		default:
			more++
		}
	}
	switch {
	case len(parts) == 0 && more == 0 && len(p.r.Comparability.Waived()) > 0:
		return "none: the arms differ only in waived keys"
	case len(parts) == 0 && more == 0:
		return "none: the arms have the same configuration"
	case more > 0:
		parts = append(parts, quantity.Plural(more, "more key"))
	}
	return strings.Join(parts, ", ")
}

// present reports whether every arm has a value.
func present(values []string) bool { return !slices.Contains(values, "") }

func (p *comparePage) waivers() string {
	var keys []string
	for _, d := range p.r.Comparability.Waived() {
		keys = append(keys, d.Key)
	}
	return strings.Join(keys, ", ")
}

func (p *comparePage) suite(s *compare.Suite) error {
	size := quantity.Plural(s.Items, "problem")
	if s.Clusters != s.Items {
		size += fmt.Sprintf(" in %d clusters", s.Clusters)
	}
	p.Heading(fmt.Sprintf("%s  %s, %s each", s.Name, size, quantity.Plural(s.Samples, "sample")))
	shown := p.shown(s)
	unanimous := ""
	if slices.ContainsFunc(shown, func(m *compare.Metric) bool { return slices.ContainsFunc(m.Arms, atEnd) }) {
		unanimous = ", ≤ and ≥ its other end where every problem scored 0 or 1"
	}
	p.legend(overText(shown) + unanimous)
	if err := p.means(shown); err != nil {
		return err
	}
	if err := p.pairs(shown); err != nil {
		return err
	}
	if p.chosen || len(s.Curves) == 0 || len(s.Curves[0].Points) < 3 {
		return nil
	}
	p.Heading("pass@k")
	return p.curves(s)
}

// armColumn is a column of arm names. Long names wrap: cut short, the names that --grid makes would look alike.
func armColumn(title string, least int) cli.Column {
	return cli.Column{Title: title, Rank: 1, Min: least, Wrap: true}
}

// legend explains ±.
func (p *comparePage) legend(over string) {
	text := fmt.Sprintf("± reaches to the farther end of a %s interval over %s", quantity.Percent(p.r.Level, 0), over)
	for _, line := range term.Wrap(text, p.ProseWidth()) {
		p.Line("%s", line)
	}
}

// kindText says what an interval covers.
func kindText(kind compare.IntervalKind) string {
	if kind == compare.OverItems {
		return "problems of these runs"
	}
	return string(kind)
}

// overText says what the arms' intervals cover.
func overText(shown []*compare.Metric) string {
	var kinds []string
	for _, m := range shown {
		arms, _ := m.Kinds()
		for _, k := range arms {
			if text := kindText(k); !slices.Contains(kinds, text) {
				kinds = append(kinds, text)
			}
		}
	}
	if len(kinds) > 1 {
		return fmt.Sprintf("%s, of arms with fewer than %d runs over %s", kindText(compare.TwoLevel),
			compare.MinSeeds, kindText(compare.OverItems))
	}
	return strings.Join(kinds, "")
}

// shown returns the tested metrics, and others worth a look.
func (p *comparePage) shown(s *compare.Suite) []*compare.Metric {
	var list []*compare.Metric
	room := mostMetrics
	for i := range s.Metrics {
		if s.Metrics[i].Tested {
			room--
		}
	}
	for i := range s.Metrics {
		m := &s.Metrics[i]
		described := !p.chosen && shownIn(m.Name, metric.Described) && room > 0
		if described && !m.Tested {
			room--
		}
		if m.Tested || described {
			list = append(list, m)
		}
	}
	if len(list) == 0 { // no usual metric is recorded
		for i := range s.Metrics {
			list = append(list, &s.Metrics[i])
		}
	}
	return list
}

// atEnd reports whether a mean is an end of its interval: every problem scored 0, or 1.
func atEnd(e compare.Estimate) bool {
	iv := e.Interval
	return iv != nil && iv.Lo < iv.Hi && (*e.Mean == iv.Lo || *e.Mean == iv.Hi)
}

// means prints a row for each arm with its gain, and one for the score before training,
// or one per arm if those differ.
func (p *comparePage) means(shown []*compare.Metric) error {
	columns := []cli.Column{armColumn("arm", 15)}
	for i, m := range shown {
		c := cli.Column{Title: metric.Heading(m.Name)}
		if !m.Tested {
			c.Drop = i + 1 // on a narrow terminal, drop the last first
		}
		columns = append(columns, c)
	}
	var rows, starts [][]any
	for arm := range p.r.Arms {
		rows = append(rows, scoreRow(p.r.Arms[arm].Label, shown, func(m *compare.Metric) string {
			e := m.Arms[arm]
			text := entry(m, e.Mean)
			switch iv := e.Interval; {
			case iv == nil:
			case atEnd(e) && *e.Mean == iv.Lo:
				text += " ≤" + formatted(m, iv.Hi, false)
			case atEnd(e):
				text += " ≥" + formatted(m, iv.Lo, false)
			default:
				text += " ±" + formatted(m, iv.Reach(*e.Mean), false)
			}
			return text
		}))
		if !slices.ContainsFunc(shown, func(m *compare.Metric) bool { return m.Arms[arm].Start != nil }) {
			continue
		}
		rows = append(rows, scoreRow("  gain", shown, func(m *compare.Metric) string {
			return signedEntry(m, m.Arms[arm].Gain)
		}))
		start := scoreRow("before training", shown, func(m *compare.Metric) string {
			return entry(m, m.Arms[arm].Start)
		})
		if !slices.ContainsFunc(starts, func(row []any) bool { return slices.Equal(row, start) }) {
			starts = append(starts, start)
		}
	}
	if len(starts) > 1 {
		starts = nil
		for arm := range p.r.Arms {
			starts = append(starts, scoreRow("start of "+p.r.Arms[arm].Label, shown, func(m *compare.Metric) string {
				return entry(m, m.Arms[arm].Start)
			}))
		}
	}
	return p.Table(columns, append(rows, starts...))
}

// scoreRow is a row with a cell for each metric.
func scoreRow(name string, shown []*compare.Metric, cell func(m *compare.Metric) string) []any {
	row := []any{name}
	for _, m := range shown {
		row = append(row, cell(m))
	}
	return row
}

func (p *comparePage) differences(shown []*compare.Metric, pair int) error {
	columns := []cli.Column{{Title: "metric"}, {Title: "Δ"}, {Title: quantity.Percent(p.r.Level, 0) + " interval"},
		{Title: "p"}, {Title: "p Holm"},
		{Title: "MDE"}, {Title: "verdict", Style: outcomeStyle}}
	var rows [][]any
	for _, m := range shown {
		d := &m.Pairs[pair]
		interval := ""
		if d.Interval != nil {
			interval = "[" + signedEntry(m, &d.Interval.Lo) + ", " + signedEntry(m, &d.Interval.Hi) + "]"
		}
		rows = append(rows, []any{metric.Heading(m.Name), signedEntry(m, d.Delta), interval,
			probability(d.P), probability(d.PHolm), entry(m, d.MDE), string(d.Verdict)})
	}
	return p.Table(columns, rows)
}

var outcomeStyle = styleOf(map[compare.Verdict]term.Style{
	compare.Better: term.Good, compare.Worse: term.Bad, compare.Underpowered: term.Faint,
	compare.NoDifference: term.Faint,
})

func (p *comparePage) curves(s *compare.Suite) error {
	columns := []cli.Column{{Title: "k", Rank: 1, Min: 12}}
	for _, at := range s.Curves[0].Points {
		columns = append(columns, cli.Column{Title: fmt.Sprint(at.K)})
	}
	var rows [][]any
	for _, c := range s.Curves {
		row := []any{p.r.Arms[c.Arm].Label}
		for _, at := range c.Points {
			row = append(row, optional(at.Mean, 3))
		}
		rows = append(rows, row)
	}
	return p.Table(columns, rows)
}

// across summarizes several suites.
func (p *comparePage) across() error {
	x := p.r.Across
	if x == nil || len(x.Suites) < 2 || p.chosen {
		return nil
	}
	p.Heading(fmt.Sprintf("across %d suites  pass@1", len(x.Suites)))
	p.legend(kindText(compare.IntervalKind(x.Kind)) + ", stratified by suite")
	cell := func(a compare.Aggregate) string {
		text := optional(a.Value, 3)
		if a.Interval != nil {
			text += " ±" + quantity.Fixed(a.Interval.Reach(*a.Value), 3)
		}
		return text
	}
	columns := []cli.Column{armColumn("arm", 12), {Title: "scores"}, {Title: "mean"}, {Title: "IQM"}}
	var rows [][]any
	for i, a := range x.Arms {
		rows = append(rows, []any{p.r.Arms[i].Label, a.Scores, cell(a.Mean), cell(a.IQM)})
	}
	if err := p.Table(columns, rows); err != nil {
		return err
	}
	rows = nil
	for _, pair := range x.Pairs {
		if iv := pair.Improvement.Interval; iv != nil {
			rows = append(rows, []any{p.r.Arms[pair.A].Label + " over " + p.r.Arms[pair.B].Label,
				optional(pair.Improvement.Value, 2),
				"[" + quantity.Fixed(iv.Lo, 2) + ", " + quantity.Fixed(iv.Hi, 2) + "]"})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	p.Heading("probability of improvement")
	return p.Table([]cli.Column{armColumn("arms", 12), {Title: "P"},
		{Title: quantity.Percent(p.r.Level, 0) + " interval"}}, rows)
}

func (p *comparePage) cost() error {
	p.Heading("cost of a run (mean)")
	columns := []cli.Column{armColumn("arm", 12), {Title: "steps"}, {Title: "tokens"}, {Title: "training"},
		{Title: "before (shared)"},
		{Title: "evaluation"}, {Title: "device"}}
	var rows [][]any
	for arm, c := range p.r.Cost {
		rows = append(rows, []any{p.r.Arms[arm].Label, int64(c.Steps + 0.5), quantity.Count(int64(c.Tokens + 0.5)),
			quantity.Duration(quantity.Seconds(c.TrainS)), quantity.Duration(quantity.Seconds(c.UpstreamS)),
			quantity.Duration(quantity.Seconds(c.EvalS)), c.Machine})
	}
	return p.Table(columns, rows)
}

func (p *comparePage) notes() {
	var lines []string
	for _, x := range p.r.Comparability.Excluded {
		lines = append(lines, notCountedText(p.r.Arms, x))
	}
	lines = append(lines, p.r.Notes...)
	if len(lines) == 0 {
		return
	}
	lines = append(lines, "gain is the score after training minus the one before; MDE is the true difference that "+
		"would give p ≤ 0.05 80 % of the time; exp help glossary explains the other words")
	p.Heading("notes")
	for _, line := range lines {
		for i, part := range term.Wrap(line, p.ProseWidth()-2) {
			lead := "- "
			if i > 0 {
				lead = "  "
			}
			p.Line("%s%s", lead, part)
		}
	}
}

func pairName(r *compare.Result, a, b int) string { return r.Arms[a].Label + " − " + r.Arms[b].Label }

// shownIn reports whether a place shows a metric by default.
func shownIn(name string, place metric.Shown) bool {
	m, _ := metric.Find(name)
	return m.Shown&place != 0
}

// formatted writes a value of m, with a sign, except for zero, if one is wanted. In nats, whose
// values differ by orders of magnitude, one that would round to zero keeps two digits.
func formatted(m *compare.Metric, v float64, sign bool) string {
	digits := metric.Metric{Unit: m.Unit}.Digits()
	tiny := m.Unit == metric.Nats && v != 0 && math.Abs(v) < 0.5*math.Pow10(-digits)
	switch {
	case tiny && sign && v > 0:
		return "+" + quantity.Short(v)
	case tiny:
		return quantity.Short(v)
	case sign:
		return quantity.Signed(v, digits)
	}
	return quantity.Fixed(v, digits)
}

// entry is formatted; a dash if the value is unknown.
func entry(m *compare.Metric, v *float64) string {
	if v == nil {
		return "–"
	}
	return formatted(m, *v, false)
}

// signedEntry is entry with a sign.
func signedEntry(m *compare.Metric, v *float64) string {
	if v == nil {
		return "–"
	}
	return formatted(m, *v, true)
}

// optional formats a number; a dash if it is unknown.
func optional(v *float64, digits int) string {
	if v == nil {
		return "–"
	}
	return quantity.Fixed(*v, digits)
}

// probability formats a p value; nil gives an empty text.
func probability(v *float64) string {
	switch {
	case v == nil:
		return ""
	case *v < 0.001:
		return "<0.001"
	}
	return quantity.Fixed(*v, 3)
}
