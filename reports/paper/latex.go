// Package paper writes comparisons as tables for papers.
package paper

import (
	"fmt"
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

// WriteLaTeX writes a comparison as LaTeX tables for the package booktabs, with the metrics of
// each suite that are tested. Suites share a table as long as their columns fit on a page.
//
// Shares are in percent. A cell holds the mean ± half its interval; the best mean of a column
// is bold, and equal ones with it. A star marks an arm that differs from the baseline by the
// comparison's corrected test; without a baseline, the best arm if it differs from every other.
func WriteLaTeX(w io.Writer, r *compare.Result) error {
	d := &document{r: r}
	var group []column
	for i := range r.Suites {
		own := columnsOf(&r.Suites[i])
		if len(group) > 0 && len(group)+len(own) > mostColumns {
			d.table(group)
			group = nil
		}
		group = append(group, own...)
	}
	if len(group) > 0 {
		d.table(group)
	}
	if d.tables == 0 {
		return fmt.Errorf("the comparison has no results to tabulate")
	}
	_, err := io.WriteString(w, "% needs \\usepackage{booktabs}\n"+d.remarks()+d.text.String())
	return err
}

// remarks are comments: what was waived to compare the arms, and how to read the numbers.
func (d *document) remarks() string {
	var text strings.Builder
	for _, x := range d.r.Comparability.Waived() {
		fmt.Fprintf(&text, "%% the arms differ in %s\n", oneLine(x.Key))
	}
	for _, n := range d.r.Notes {
		fmt.Fprintf(&text, "%% %s\n", oneLine(n))
	}
	return text.String()
}

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

// document collects tables.
type document struct {
	r      *compare.Result
	text   strings.Builder
	tables int
}

func (d *document) line(format string, args ...any) {
	fmt.Fprintf(&d.text, format+"\n", args...)
}

func (d *document) table(columns []column) {
	d.tables++
	d.line("")
	d.line(`\begin{table}[t]`)
	d.line(`  \centering\small`)
	d.line(`  \caption{%s}`, d.caption(columns))
	d.line(`  \label{tab:comparison-%d}`, d.tables)
	d.line(`  \begin{tabular}{l%s}`, strings.Repeat("c", len(columns)))
	d.line(`    \toprule`)
	d.suites(columns)
	heads := []string{""}
	for _, c := range columns {
		heads = append(heads, escape(metric.Heading(c.Name)+unitOf(c)))
	}
	d.row(heads)
	d.line(`    \midrule`)
	if start := d.start(columns); start != nil {
		d.row(start)
		d.line(`    \midrule`)
	}
	for arm := range d.r.Arms {
		cells := []string{escape(d.r.Arms[arm].Label)}
		for _, c := range columns {
			cells = append(cells, d.cell(c, arm))
		}
		d.row(cells)
	}
	d.line(`    \bottomrule`)
	d.line(`  \end{tabular}`)
	d.line(`\end{table}`)
}

func (d *document) row(cells []string) {
	d.line(`    %s \\`, strings.TrimLeft(strings.Join(cells, " & "), " "))
}

// suites writes the row that names the suites above their metrics.
func (d *document) suites(columns []column) {
	heads, rules := []string{""}, ""
	for i := 0; i < len(columns); {
		n := 1
		for i+n < len(columns) && columns[i+n].suite == columns[i].suite {
			n++
		}
		heads = append(heads, fmt.Sprintf(`\multicolumn{%d}{c}{%s}`, n, escape(columns[i].suite.Name)))
		rules += fmt.Sprintf(`\cmidrule(lr){%d-%d}`, i+2, i+1+n)
		i += n
	}
	d.row(heads)
	d.line("    %s", rules)
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

// cell returns an arm's value as math.
func (d *document) cell(c column, arm int) string {
	e := c.Arms[arm]
	if e.Mean == nil {
		return "--"
	}
	mean := number(c, *e.Mean)
	if slices.Contains(best(c), arm) {
		mean = `\mathbf{` + mean + `}`
	}
	if d.marked(c, arm) {
		mean += "^{*}"
	}
	switch iv := e.Interval; {
	case iv == nil:
	case iv.Lo < iv.Hi && *e.Mean == iv.Lo: // every problem scored 0
		mean += `\,(\le ` + number(c, iv.Hi) + ")"
	case iv.Lo < iv.Hi && *e.Mean == iv.Hi:
		mean += `\,(\ge ` + number(c, iv.Lo) + ")"
	default:
		mean += ` \pm ` + number(c, (iv.Hi-iv.Lo)/2)
	}
	return "$" + mean + "$"
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

// caption says what a reader needs: samples, intervals, what bold and stars mean.
func (d *document) caption(columns []column) string {
	var parts []string
	over := map[string]bool{}
	seen := map[*compare.Suite]bool{}
	var sizes []string
	bold, star, ends := false, false, false
	for _, c := range columns {
		if !seen[c.suite] {
			seen[c.suite] = true
			sizes = append(sizes, fmt.Sprintf("%s: %s, %s each", escape(c.suite.Name),
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
	level := strings.TrimSuffix(quantity.Percent(d.r.Level, 0), "%") + `\,\%`
	if len(over) > 0 {
		kinds := slices.Sorted(maps.Keys(over))
		parts = append(parts, fmt.Sprintf(`$\pm$ is half a %s interval over %s.`, level, strings.Join(kinds, " or ")))
	}
	if ends {
		parts = append(parts, `$\le$ and $\ge$ give its other end where every problem scored 0 or 1.`)
	}
	if bold {
		parts = append(parts, "Bold: the best mean.")
	}
	if star {
		than := "from every other arm"
		if b := d.r.Baseline; b >= 0 {
			than = "from " + escape(d.r.Arms[b].Label)
		}
		parts = append(parts, fmt.Sprintf(`$^{*}$: differs %s (Holm-corrected $p \le %v$ over %s, and its interval `+
			`excludes zero).`, than, d.r.Alpha, quantity.Plural(d.r.Tests, "test")))
	}
	return strings.Join(parts, " ")
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

// escape makes text safe for LaTeX.
var escape = strings.NewReplacer(`\`, `\textbackslash{}`, `{`, `\{`, `}`, `\}`, `$`, `\$`, `&`, `\&`, `#`, `\#`,
	`%`, `\%`, `_`, `\_`, `^`, `\textasciicircum{}`, `~`, `\textasciitilde{}`, `<`, `\textless{}`, `>`, `\textgreater{}`,
	`|`, `\textbar{}`, "−", "$-$").Replace
