package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/reports/compare"
)

// printRefused prints what programs get of a refused comparison: the arms, and what
// differs.
func (a *app) printRefused(e *compare.NotComparableError) error {
	switch a.Out.Format {
	case cli.FormatJSON, cli.FormatJSONL, cli.FormatYAML:
		r := compare.Result{Arms: e.Arms, Baseline: -1, Comparability: e.Comparability}
		return a.Out.PrintDocument(cli.Document{Schema: compareSchema, Data: r})
	}
	return nil
}

// refusal is the error of a refused comparison: for people a table of what differs
// and what to do about it.
func (a *app) refusal(e *compare.NotComparableError) error {
	f := &cli.Failure{Code: cli.ExitNotComparable, Err: e, Help: e.Hint()}
	for i := range e.Comparability.Differences {
		d := &e.Comparability.Differences[i]
		if !d.Refused() {
			continue
		}
		var values []string
		for arm := range e.Arms {
			values = append(values, e.Arms[arm].Label+" "+cmp.Or(d.Text(arm), "none"))
		}
		f.Problems = append(f.Problems, cli.Problem{ID: d.Key, Message: fmt.Sprintf("%s differs (%s): %s", d.Key, d.Class, strings.Join(values, ", ")), Help: remedy(d)})
	}
	stream := a.Stream(a.Stderr)
	f.Render = func(color bool) string {
		layout := stream.Layout()
		layout.Color = color
		return refusalText(e, layout)
	}
	return f
}

// remedy is what can be done about a difference that is refused.
func remedy(d *compare.Difference) string {
	switch {
	case d.Key == "suites":
		return "score the runs on one suite"
	case strings.HasPrefix(d.Key, "suite."):
		return "score the runs on the same problems"
	case d.Within:
		return "name one experiment, or --allow " + d.Key
	}
	return "--allow " + d.Key
}

func refusalText(e *compare.NotComparableError, l term.Layout) string {
	t := term.Table{Columns: []term.Column{{Title: "key", Rank: 1, Min: 20}}}
	for _, arm := range e.Arms {
		t.Columns = append(t.Columns, term.Column{Title: arm.Label, Rank: 2, Min: 8})
	}
	t.Columns = append(t.Columns, term.Column{Title: "class"}, term.Column{})
	var hidden map[string]int
	t.Rows, hidden = refusalRows(e)
	for _, block := range sortedNames(hidden) {
		row := []term.Cell{{Text: fmt.Sprintf("%s.* (%d keys)", block, hidden[block])}}
		for range e.Arms {
			row = append(row, term.Cell{Text: "…"})
		}
		t.Rows = append(t.Rows, append(row, term.Cell{Text: string(compare.Treatment)}, term.Cell{Text: "ok", Style: term.Good}))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s arms are not comparable (exit %d)\n", term.Bad.Paint("error:", l.Color), cli.ExitNotComparable)
	inner := l
	inner.Width = max(0, l.Width-2)
	var rows strings.Builder
	_ = t.Write(&rows, inner) // a strings.Builder takes everything
	for line := range strings.Lines(rows.String()) {
		b.WriteString("  " + line)
	}
	for _, line := range refusalHelp(e) {
		fmt.Fprintf(&b, "  %s %s\n", term.Accent.Paint("help:", l.Color), line)
	}
	return b.String()
}

// refusalRows are the differences, the refused ones first. Of the treatment there is
// a row for what is no part of a block, and hidden counts the keys of blocks.
func refusalRows(e *compare.NotComparableError) (rows [][]term.Cell, hidden map[string]int) {
	hidden = map[string]int{}
	for i := range e.Comparability.Differences {
		d := &e.Comparability.Differences[i]
		block, _, nested := strings.Cut(d.Key, ".")
		if d.Class == compare.Treatment && nested && !strings.HasSuffix(d.Key, ".kind") && !d.Refused() {
			hidden[block]++
			continue
		}
		row := []term.Cell{{Text: d.Key}}
		for arm := range e.Arms {
			row = append(row, term.Cell{Text: cmp.Or(d.Text(arm), "–")})
		}
		class, todo := term.Cell{Text: string(d.Class)}, term.Cell{Text: "ok", Style: term.Good}
		switch {
		case d.Refused():
			todo = term.Cell{Text: remedy(d), Style: term.Warn}
		case d.Waived:
			todo.Text = "waived"
		}
		rows = append(rows, append(row, class, todo))
	}
	return rows, hidden
}

// refusalHelp says what to do in words.
func refusalHelp(e *compare.NotComparableError) []string {
	var list []string
	for _, arm := range e.Arms {
		if len(arm.XIDs) > 1 {
			var ids []string
			for _, x := range arm.XIDs {
				ids = append(ids, "xid:"+x[:8])
			}
			list = append(list, fmt.Sprintf("%s holds %d experiments; name one, newest first: %s", arm.Label, len(ids), strings.Join(ids, ", ")))
		}
	}
	varied := slices.ContainsFunc(e.Comparability.Differences, func(d compare.Difference) bool {
		return d.Refused() && d.Class == compare.Controlled && !d.Within
	})
	if varied {
		list = append(list, "--vary KEY makes a key part of what is compared; --allow KEY waives it, and every output says so")
	}
	return list
}

func sortedNames(m map[string]int) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
