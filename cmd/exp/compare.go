package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/reports/compare"
	"exp/reports/paper"
)

func compareCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Category:  "Results",
		Usage:     "compare arms with statistics, or say why they cannot be compared",
		ArgsUsage: "SEL...",
		Description: "An arm is the runs of one experiment with different seeds. Each of several SEL is an arm; " +
			"the runs of a single SEL are grouped by experiment, or by --by, whose key then becomes part of the " +
			"treatment, the settings that are meant to differ (compare.vary, --vary). Arms that differ in " +
			"anything else are refused with exit code 6.\n" +
			"Differences are the earlier arm minus the later one, paired by problem; with --vs, each arm minus " +
			"that one. With at least 3 runs per arm, intervals and p values also cover the variation between " +
			"seeds. A verdict needs Holm's corrected p at most --alpha and an interval that excludes zero. " +
			"Otherwise it is \"no difference shown\" if a relevant difference (0.05 of a share, 10 % of other " +
			"means) would have given p ≤ 0.05 before the correction 80 % of the time, else \"underpowered\".\n" +
			"The gain row is the score minus the one before training; exp help glossary explains the other " +
			"words.\n" +
			"--fail-if ends with exit code 9 if a condition holds for any pair of arms:\n" +
			"  fields     delta lo hi se p p_holm mde effect, with (SUITE) or\n" +
			"             (SUITE, METRIC); alone, of the suite or metric named last\n" +
			"  operators  < <= > >= = !=, and, or, not, parentheses",
		UsageText: strings.Join([]string{
			"exp compare countdown-flowrl countdown-ppo # two arms, all their seeds",
			"exp compare 'task = countdown' --vs countdown-ppo # every experiment against one",
			"exp compare 'name = sweep' --by algo.flowrl.beta # one arm per value of a key",
			"exp compare flowrl ppo --vary train.optim.lr # the learning rate is part of the treatment",
			"exp compare new --vs old --fail-if 'delta(test) < 0 and p < 0.05' # a gate for scripts",
			"exp compare flowrl grpo --vs ppo -o latex > table.tex # a table for a paper (booktabs); or -o typst",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "vs", Usage: "compare the other arms with the arm `SEL`"},
			&cli.StringFlag{Name: "by", Usage: "one arm per value of `KEY`: xid (experiment id), name, algo, model, " +
				"task, seed or a configuration key", DefaultText: "xid"},
			&cli.StringSliceFlag{Name: "suite", Usage: "only the suite `S`, with or without its task"},
			&cli.StringSliceFlag{Name: "metric", Aliases: []string{"m"},
				Usage: "test the metric `M` instead of the usual ones"},
			&cli.StringFlag{Name: "k", Usage: "the k of pass@k: `LIST`", DefaultText: "as in the evaluation"},
			&cli.StringSliceFlag{Name: "vary", Usage: "make the keys that match `GLOB` part of the treatment"},
			&cli.StringSliceFlag{Name: "allow", Usage: "compare even if the arms differ in `KEY`; every " +
				"output says so"},
			&cli.Float64Flag{Name: "alpha", Usage: "probability `A` of a false verdict", Value: 0.05},
			&cli.IntFlag{Name: "boot", Usage: "draw `N` bootstrap samples for the pass@k interval of an arm with " +
				"fewer than 3 runs", Value: compare.DefaultDraws},
			&cli.StringFlag{Name: "fail-if", Usage: "exit with 9 if the condition `EXPR` holds"},
		},
		BashComplete: a.completesRuns(0, false, a.compareCandidates),
		Action:       a.reads(0, -1, a.compare),
	}
}

// compareCandidates proposes values of compare's flags.
func (a *app) compareCandidates(ctx context.Context, db *store.DB, w cli.Word) (list []cli.Candidate) {
	switch w.Flag {
	case "vs":
		return runCandidates(ctx, db, w.Text, false, a.Clock.Now())
	case "by":
		for _, name := range []string{"xid", "name", "algo", "model", "task"} {
			list = append(list, cli.Candidate{Text: name})
		}
	case "vary", "allow":
	default:
		return nil
	}
	for _, k := range config.Keys() {
		list = append(list, cli.Candidate{Text: k.Path, Note: k.Help})
	}
	return list
}

func (a *app) compare(c *cli.Context, db *store.DB, args []string) error {
	if len(args) == 0 {
		return a.Usagef("no runs given")
	}
	ks, err := numbersOf("--k", c.String("k"))
	if err != nil {
		return err
	}
	var condition *compare.Condition
	if c.IsSet("fail-if") {
		if condition, err = compare.ParseCondition(c.String("fail-if")); err != nil {
			return err
		}
	}
	for _, name := range []string{"alpha", "boot"} {
		if c.IsSet(name) && (name == "alpha" && c.Float64(name) == 0 || name == "boot" && c.Int(name) == 0) {
			return a.Usagef("--%s must be above 0", name) // to Compare 0 is the default
		}
	}
	arms, _, err := a.arms(c, db, args)
	if err != nil {
		return err
	}
	o := compare.Options{Vary: varied(c), Allow: c.StringSlice("allow"), Suites: c.StringSlice("suite"),
		Metrics: c.StringSlice("metric"),
		K:       ks, Alpha: c.Float64("alpha"), Draws: c.Int("boot"), Baseline: c.IsSet("vs")}
	r, err := compare.Compare(c.Context, db, arms, o)
	var refused *compare.NotComparableError
	switch {
	case errors.As(err, &refused):
		return errors.Join(a.printRefused(refused), a.refusal(refused))
	case err != nil:
		return err
	}
	if err := a.printComparison(r, len(o.Metrics) > 0); err != nil || condition == nil {
		return err
	}
	return conditionResult(condition, r)
}

// varied returns the keys of --vary and --by's key: grouping by a key means comparing its values.
func varied(c *cli.Context) []string {
	vary := c.StringSlice("vary")
	by := strings.TrimPrefix(c.String("by"), "config.")
	if _, ok := config.Lookup(by); ok {
		vary = append(vary, by)
	}
	return vary
}

// conditionResult returns the error for a condition that holds.
func conditionResult(condition *compare.Condition, r *compare.Result) error {
	held, err := condition.Holds(r)
	if err != nil || len(held) == 0 {
		return err
	}
	var names []string
	for _, p := range held {
		names = append(names, pairName(r, p[0], p[1]))
	}
	return cli.Failf(cli.ExitCondition, "%s holds for %s", condition, strings.Join(names, ", "))
}

// arms forms the arms that the arguments select. Notes say which are left out, as left does.
func (a *app) arms(c *cli.Context, db *store.DB, runs []string) (arms []compare.Arm, left []string, err error) {
	s := compare.Selection{Runs: runs, Vs: c.String("vs"), By: c.String("by"), Stdin: a.Stdin}
	if arms, err = s.Arms(c.Context, a.finder(db)); err != nil {
		return nil, nil, suggestRun(c.Context, db, err)
	}
	arms, left = s.Finished(arms)
	for _, text := range left {
		a.Note("left out: %s", text)
	}
	return arms, left, nil
}

// notCountedText says why a comparison does not count a run.
func notCountedText(r *compare.Result, x compare.Excluded) string {
	return fmt.Sprintf("not counted: run %.8s (%s, seed %d): %s", x.RID, r.Arms[x.Arm].Label, x.Seed, x.Reason)
}

// numbersOf reads a list of numbers separated by commas; none is nil.
func numbersOf(flag, text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	var list []int
	for _, word := range strings.Split(strings.Trim(text, "[]"), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil {
			return nil, cli.Usagef("%s %s: %q is not a number", flag, text, word)
		}
		list = append(list, n)
	}
	return list, nil
}

// printComparison prints a result. chosen says that the user named the metrics.
func (a *app) printComparison(r *compare.Result, chosen bool) error {
	switch a.Out.Format {
	case cli.FormatCSV, cli.FormatTSV, cli.FormatMD:
		return a.Out.PrintTable(comparisonTable(r))
	case cli.FormatLaTeX:
		return paper.WriteLaTeX(a.Stdout, r)
	case cli.FormatTypst:
		return paper.WriteTypst(a.Stdout, r)
	}
	return a.Out.PrintDocument(cli.Document{Schema: compareSchema, Data: r, Human: func(w io.Writer) error {
		p := &comparePage{Page: a.Out.NewPage(w), r: r, chosen: chosen}
		return errors.Join(p.write(), p.Close())
	}})
}

// compareSchema names the JSON of a comparison.
const compareSchema = "exp.compare/1"

// comparisonTable has a row for each suite, metric and pair of arms.
func comparisonTable(r *compare.Result) cli.Table {
	t := cli.Table{Schema: compareSchema, Columns: []cli.Column{{Key: "suite"}, {Key: "metric"}, {Key: "arm_a"},
		{Key: "arm_b"}, {Key: "mean_a"}, {Key: "mean_b"},
		{Key: "delta"}, {Key: "lo"}, {Key: "hi"}, {Key: "p"}, {Key: "p_holm"}, {Key: "mde"}, {Key: "effect"},
		{Key: "verdict"}}}
	cell := func(v *float64) any {
		if v == nil {
			return nil
		}
		return *v
	}
	for i := range r.Suites {
		for j := range r.Suites[i].Metrics {
			m := &r.Suites[i].Metrics[j]
			for _, p := range m.Pairs {
				var lo, hi any
				if p.Interval != nil {
					lo, hi = p.Interval.Lo, p.Interval.Hi
				}
				t.Rows = append(t.Rows, []any{r.Suites[i].Name, m.Name, r.Arms[p.A].Label, r.Arms[p.B].Label,
					cell(m.Arms[p.A].Mean), cell(m.Arms[p.B].Mean),
					cell(p.Delta), lo, hi, cell(p.P), cell(p.PHolm), cell(p.MDE), cell(p.Effect), string(p.Verdict)})
			}
		}
	}
	return t
}

// printRefused prints a refused comparison for programs: the arms and what differs.
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
		f.Problems = append(f.Problems, cli.Problem{ID: d.Key, Message: fmt.Sprintf("%s differs (%s): %s", d.Key,
			d.Class, strings.Join(values, ", ")), Help: remedy(d)})
	}
	stream := a.Stream(a.Stderr)
	f.Render = func(color bool) string {
		layout := stream.Layout()
		layout.Color = color
		return refusalText(e, layout)
	}
	return f
}

// remedy says how to deal with a refused difference.
func remedy(d *compare.Difference) string {
	switch {
	case d.Key == "suites":
		return "score the runs on one suite"
	case strings.HasPrefix(d.Key, "suite.") && strings.HasSuffix(d.Key, ".reward"):
		return "score the runs on a suite with gold answers: exp eval RUN --suite FILE"
	case strings.HasPrefix(d.Key, "suite.") && strings.HasSuffix(d.Key, ".examples"):
		return "score the runs with the same examples: the suite that eval.final.shots_suite names has changed"
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
	for _, block := range slices.Sorted(maps.Keys(hidden)) {
		row := []term.Cell{{Text: fmt.Sprintf("%s.* (%s)", block, quantity.Plural(hidden[block], "key"))}}
		for range e.Arms {
			row = append(row, term.Cell{Text: "…"})
		}
		t.Rows = append(t.Rows, append(row, term.Cell{Text: string(compare.Treatment)},
			term.Cell{Text: "ok", Style: term.Good}))
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

// refusalRows returns the differences, the refused ones first. Treatment keys inside a block get no separate row,
// unless they are a kind that every arm has; hidden counts them per block.
func refusalRows(e *compare.NotComparableError) (rows [][]term.Cell, hidden map[string]int) {
	hidden = map[string]int{}
	for i := range e.Comparability.Differences {
		d := &e.Comparability.Differences[i]
		block, _, nested := strings.Cut(d.Key, ".")
		kinds := strings.HasSuffix(d.Key, ".kind") && present(d.Values)
		if d.Class == compare.Treatment && nested && !kinds && !d.Refused() {
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

// refusalHelp says how to make the arms comparable.
func refusalHelp(e *compare.NotComparableError) []string {
	var list []string
	for _, arm := range e.Arms {
		if len(arm.XIDs) > 1 {
			var ids []string
			for _, x := range arm.XIDs {
				ids = append(ids, "xid:"+x[:8])
			}
			list = append(list, fmt.Sprintf("%s holds %d experiments; name one, newest first: %s", arm.Label, len(ids),
				strings.Join(ids, ", ")))
		}
	}
	varied := slices.ContainsFunc(e.Comparability.Differences, func(d compare.Difference) bool {
		return d.Refused() && d.Class == compare.Controlled && !d.Within
	})
	if varied {
		list = append(list, "--vary KEY makes a key part of the treatment; --allow KEY waives the difference, and "+
			"every output says so")
	}
	return list
}
