package main

import (
	"slices"
	"strconv"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/harness/metric"
)

// printMetricTable prints one row per step, for people.
func (a *app) printMetricTable(all []runCurves, every int) error {
	var names []string
	var steps int64
	for _, rc := range all {
		for _, c := range rc.curves {
			if len(c.Steps) > 0 && !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
			if n := len(c.Steps); n > 0 {
				steps = max(steps, c.Steps[n-1]-c.Steps[0]+1)
			}
		}
	}
	thinned := every < 1
	if thinned {
		every = roundStep(steps*int64(len(all)), screenSteps)
	}
	t := cli.Table{Columns: []cli.Column{{Key: "run"}, {Key: "step"}}}
	if len(all) == 1 {
		t.Columns = t.Columns[1:]
	}
	for _, n := range names {
		t.Columns = append(t.Columns, cli.Column{Key: n, Title: metricTitle(n, names)})
	}
	for _, rc := range all {
		for _, row := range pivot(rc, names, int64(every), thinned) {
			if len(all) > 1 {
				row = slices.Insert(row, 0, any(rc.run.Name+"#"+strconv.FormatInt(rc.run.Seed, 10)))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	if thinned && every > 1 {
		defer a.Note("one step in %d is shown; --every 1 shows all", every)
	}
	t, leftOut := a.fitMetrics(t)
	if len(leftOut) > 0 {
		defer a.Note("no room for %s; -m NAME selects metrics, -o csv has all", strings.Join(leftOut, ", "))
	}
	return a.Out.PrintTable(t)
}

// fitMetrics drops the last columns if the terminal is too narrow, and returns their keys.
func (a *app) fitMetrics(t cli.Table) (fit cli.Table, leftOut []string) {
	room := a.Out.Stream.Layout().Width
	if room == 0 || a.Out.Format != cli.FormatTable || a.Out.Fields != nil {
		return t, nil
	}
	const gap, least = 2, 3
	used, n := 0, 0
	for i, c := range t.Columns {
		width := term.Width(c.Heading())
		for _, row := range t.Rows {
			width = max(width, term.Width(a.Out.Text(c, row[i])))
		}
		if used += width + gap; used-gap > room && i >= least {
			break
		}
		n++
	}
	for _, c := range t.Columns[n:] {
		leftOut = append(leftOut, c.Key)
	}
	fit = cli.Table{Schema: t.Schema, Columns: t.Columns[:n]}
	for _, row := range t.Rows {
		fit.Rows = append(fit.Rows, row[:n])
	}
	return fit, leftOut
}

// roundStep is the smallest of 1, 2, 5, 10, 20, … that leaves at most most of n steps.
func roundStep(n, most int64) int {
	for size := int64(1); ; size *= 10 {
		for _, k := range []int64{1, 2, 5} {
			if n <= k*size*most {
				return int(k * size)
			}
		}
	}
}

// pivot makes a row for each step that every divides: the step and the values of names,
// nil if missing. With ends, it includes the first and the last step.
func pivot(rc runCurves, names []string, every int64, ends bool) [][]any {
	rows := map[int64][]any{}
	var steps []int64
	for _, c := range rc.curves {
		at := slices.Index(names, c.Name)
		for i, step := range c.Steps {
			row, ok := rows[step]
			if !ok {
				row = make([]any, 1+len(names))
				row[0] = step
				rows[step] = row
				steps = append(steps, step)
			}
			row[1+at] = c.Values[i]
		}
	}
	slices.Sort(steps)
	var list [][]any
	for i, step := range steps {
		if step%every == 0 || ends && (i == 0 || i == len(steps)-1) {
			list = append(list, rows[step])
		}
	}
	return list
}

// metricTitle is the heading of a metric: from the catalogue, else the last part of the
// name, or the last two if needed to tell columns apart.
func metricTitle(name string, names []string) string {
	if m, _ := metric.Find(name); m.Heading != "" {
		return m.Heading
	}
	parts := strings.Split(name, "/")
	for n := 1; n < len(parts); n++ {
		short := strings.Join(parts[len(parts)-n:], "/")
		if ambiguousEnd[short] {
			continue
		}
		same := 0
		for _, other := range names {
			if other == short || strings.HasSuffix(other, "/"+short) {
				same++
			}
		}
		if same == 1 {
			return short
		}
	}
	return name
}

// ambiguousEnd has last parts of names that say nothing by themselves.
var ambiguousEnd = map[string]bool{"mean": true, "max": true, "min": true, "std": true, "step": true}
