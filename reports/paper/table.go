// Package paper writes comparisons as tables for papers.
package paper

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"exp/experiments/quantity"
	"exp/harness/metric"
	"exp/reports/compare"
)

// mostColumns is how many metrics fit across a page.
const mostColumns = 6

// write writes the tables of a comparison, with the metrics of each suite that are tested.
// Suites share a table as long as their columns fit on a page.
//
// Shares are in percent. A cell holds the mean ± the distance to the farther end of its
// interval; the best mean of a column is bold, and equal ones with it. A star marks an arm
// that differs from the baseline by the comparison's corrected test; without a baseline, the
// best arm if it differs from every other.
func (l *language) write(w io.Writer, r *compare.Result) error {
	d := &document{language: l, r: r}
	var group []column
	for i := range r.Suites {
		own := columnsOf(&r.Suites[i])
		if len(group) > 0 && len(group)+len(own) > mostColumns {
			d.add(group)
			group = nil
		}
		group = append(group, own...)
	}
	if len(group) > 0 {
		d.add(group)
	}
	if d.tables == 0 {
		return fmt.Errorf("the comparison has no results to tabulate")
	}
	_, err := io.WriteString(w, l.remark(l.needs)+d.remarks()+d.text.String())
	return err
}

// remarks are comments: what was waived to compare the arms, and how to read the numbers.
func (d *document) remarks() string {
	var text strings.Builder
	for _, x := range d.r.Comparability.Waived() {
		text.WriteString(d.remark("the arms differ in " + oneLine(x.Key)))
	}
	for _, n := range d.r.Notes {
		text.WriteString(d.remark(oneLine(n)))
	}
	return text.String()
}

func (l *language) remark(text string) string { return l.comment + " " + text + "\n" }

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// column is a metric of a suite.
type column struct {
	suite *compare.Suite
	*compare.Metric
}

// columnsOf returns the tested metrics of a suite, all if none is tested.
func columnsOf(s *compare.Suite) []column {
	var list, all []column
	for i := range s.Metrics {
		c := column{s, &s.Metrics[i]}
		all = append(all, c)
		if c.Tested {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		list = all
	}
	return list[:min(len(list), mostColumns)]
}

// language is a markup language.
type language struct {
	needs   string // what a document must load
	comment string // begins one
	escape  func(text string) string

	// table writes the n-th table.
	table func(d *document, columns []column, n int)

	// Parts of cells: a cell of a number, the number in bold, behind it a star, then the reach of
	// its interval or the interval's other end.
	cell, bold                             func(text string) string
	star, plusMinus, atMost, atLeast, none string

	// Parts of captions.
	percent, plusMinusSign, atMostSign, atLeastSign, starSign, pAtMost string
}

// document collects tables.
type document struct {
	*language
	r      *compare.Result
	text   strings.Builder
	tables int
}

func (d *document) add(columns []column) {
	d.tables++
	d.table(d, columns, d.tables)
}

func (d *document) line(format string, args ...any) {
	fmt.Fprintf(&d.text, format+"\n", args...)
}

// start returns the row of the scores before training, nil unless all arms share them.
func (d *document) start(columns []column) []string {
	cells := []string{"before training"}
	any := false
	for _, c := range columns {
		text := ""
		for arm, e := range c.Arms {
			own := ""
			if e.Start != nil {
				own = number(c, *e.Start)
				any = true
			}
			if arm > 0 && own != text {
				return nil
			}
			text = own
		}
		cells = append(cells, text)
	}
	if !any {
		return nil
	}
	return cells
}

// rows returns the table's rows of cells: the start, or nil, and a row for each arm.
func (d *document) rows(columns []column) (start []string, arms [][]string) {
	for arm := range d.r.Arms {
		cells := []string{d.escape(d.r.Arms[arm].Label)}
		for _, c := range columns {
			cells = append(cells, d.value(c, arm))
		}
		arms = append(arms, cells)
	}
	return d.start(columns), arms
}

// headings returns the metrics' names, below the suites'.
func (d *document) headings(columns []column) []string {
	heads := []string{""}
	for _, c := range columns {
		heads = append(heads, d.escape(metric.Heading(c.Name)+unitOf(c)))
	}
	return heads
}

// spans calls f for each suite with its first column, from 1, and the number of its columns.
func spans(columns []column, f func(suite string, first, n int)) {
	for i := 0; i < len(columns); {
		n := 1
		for i+n < len(columns) && columns[i+n].suite == columns[i].suite {
			n++
		}
		f(columns[i].suite.Name, i+1, n)
		i += n
	}
}

// value returns an arm's cell.
func (d *document) value(c column, arm int) string {
	e := c.Arms[arm]
	if e.Mean == nil {
		return d.none
	}
	mean := number(c, *e.Mean)
	if slices.Contains(best(c), arm) {
		mean = d.bold(mean)
	}
	if d.marked(c, arm) {
		mean += d.star
	}
	switch iv := e.Interval; {
	case iv == nil:
	case iv.Lo < iv.Hi && *e.Mean == iv.Lo: // every problem scored 0
		mean += d.atMost + number(c, iv.Hi) + ")"
	case iv.Lo < iv.Hi && *e.Mean == iv.Hi:
		mean += d.atLeast + number(c, iv.Lo) + ")"
	default:
		mean += d.plusMinus + number(c, iv.Reach(*e.Mean))
	}
	return d.cell(mean)
}

// best returns the arms whose printed mean no other beats; nil if the metric has no direction
// or all are equal.
func best(c column) []int {
	if c.Direction == "" {
		return nil
	}
	var arms []int
	top := math.Inf(-1)
	known := 0
	for arm, e := range c.Arms {
		if e.Mean == nil {
			continue
		}
		known++
		v := *e.Mean
		if c.Direction == "down" {
			v = -v
		}
		switch {
		case len(arms) > 0 && number(c, *e.Mean) == number(c, *c.Arms[arms[0]].Mean):
			arms = append(arms, arm)
			top = max(top, v)
		case v > top:
			top, arms = v, []int{arm}
		}
	}
	if len(arms) == known {
		return nil
	}
	return arms
}

// marked reports whether an arm has a star.
func (d *document) marked(c column, arm int) bool {
	differs := func(p compare.Pair) bool {
		switch p.Verdict {
		case compare.Better, compare.Worse, compare.Higher, compare.Lower:
			return true
		}
		return false
	}
	own := slices.DeleteFunc(slices.Clone(c.Pairs), func(p compare.Pair) bool { return p.A != arm && p.B != arm })
	if d.r.Baseline < 0 && !slices.Equal(best(c), []int{arm}) {
		return false
	}
	return arm != d.r.Baseline && len(own) > 0 && !slices.ContainsFunc(own, func(p compare.Pair) bool {
		return !differs(p)
	})
}

// caption explains the table: samples, intervals, bold and stars.
func (d *document) caption(columns []column) string {
	var parts []string
	over := map[string]bool{}
	seen := map[*compare.Suite]bool{}
	var sizes []string
	bold, star, ends := false, false, false
	for _, c := range columns {
		if !seen[c.suite] {
			seen[c.suite] = true
			sizes = append(sizes, fmt.Sprintf("%s: %s, %s each", d.escape(c.suite.Name),
				quantity.Plural(c.suite.Items, "problem"), quantity.Plural(c.suite.Samples, "sample")))
		}
		bold = bold || len(best(c)) > 0
		for arm, e := range c.Arms {
			star = star || d.marked(c, arm)
			if e.Interval != nil && e.Mean != nil {
				over[string(e.Interval.Kind)] = true
				ends = ends || e.Interval.Lo < e.Interval.Hi &&
					(*e.Mean == e.Interval.Lo || *e.Mean == e.Interval.Hi)
			}
		}
	}
	parts = append(parts, strings.Join(sizes, "; ")+". "+d.seeds())
	level := strings.TrimSuffix(quantity.Percent(d.r.Level, 0), "%") + d.percent
	if len(over) > 0 {
		kinds := slices.Sorted(maps.Keys(over))
		parts = append(parts, fmt.Sprintf("%s reaches to the farther end of a %s interval over %s.",
			d.plusMinusSign, level, strings.Join(kinds, " or ")))
	}
	if ends {
		parts = append(parts, d.atMostSign+" and "+d.atLeastSign+
			" give its other end where every problem scored 0 or 1.")
	}
	if bold {
		parts = append(parts, d.boldText(columns))
	}
	if star {
		than := "from every other arm"
		if b := d.r.Baseline; b >= 0 {
			than = "from " + d.escape(d.r.Arms[b].Label)
		}
		parts = append(parts, fmt.Sprintf("%s: differs %s (Holm-corrected "+d.pAtMost+" over %s, and its interval "+
			"excludes zero).", d.starSign, than, d.r.Alpha, quantity.Plural(d.r.Tests, "test")))
	}
	return strings.Join(parts, " ")
}

// boldText says what bold means; the row before training is never bold.
func (d *document) boldText(columns []column) string {
	if d.start(columns) != nil {
		return "Bold: the best mean after training."
	}
	return "Bold: the best mean."
}

// longestName is the longest part of a label that the arms' names make, in letters.
const longestName = 40

// label names the n-th table by its arms, so that the tables of two comparisons can be in one
// document: "tab:flowrl-ppo-1" without its prefix.
func (d *document) label(n int) string {
	var words []string
	for _, a := range d.r.Arms {
		words = append(words, strings.FieldsFunc(strings.ToLower(a.Label), func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9')
		})...)
	}
	name := cmp.Or(strings.Join(words, "-"), "comparison")
	if len(name) > longestName {
		sum := fnv.New32a()
		io.WriteString(sum, name)
		name = fmt.Sprintf("%s-%08x", strings.TrimRight(name[:longestName], "-"), sum.Sum32())
	}
	return fmt.Sprintf("%s-%d", name, n)
}

// seeds says how many runs an arm has.
func (d *document) seeds() string {
	least, most := math.MaxInt, 0
	for _, a := range d.r.Arms {
		least, most = min(least, len(a.Runs)), max(most, len(a.Runs))
	}
	if least == most {
		return "Means over " + quantity.Plural(most, "seed") + "."
	}
	return fmt.Sprintf("Means over %d to %d seeds.", least, most)
}

// number formats a value; shares are in percent.
func number(c column, v float64) string {
	if c.Unit == "share" {
		return quantity.Fixed(100*v, 1)
	}
	return quantity.Fixed(v, metric.Metric{Unit: c.Unit}.Digits())
}

func unitOf(c column) string {
	if c.Unit == "share" {
		return " (%)"
	}
	return ""
}
