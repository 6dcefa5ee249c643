package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/differ"
	"exp/harness/explain"
)

func diffCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Category:  "Results",
		Usage:     "show what differs between two runs",
		ArgsUsage: "A B",
		Description: "Compares two runs: configuration keys, sources, data and initial weights, environment, " +
			"and the first training step at which they diverge. It finds causes; exp compare compares results " +
			"statistically. Without flags it shows every part. The exit code is 0 whether or not they differ.\n" +
			"Keys that a configuration, an overlay or a flag sets come first, then those whose defaults differ: an " +
			"algorithm has other defaults and other keys than another. --all lists every one.",
		UsageText: strings.Join([]string{
			"exp diff @last~1 @last # what changed since the run before",
			"exp diff flowrl#0 ppo#0 --config # the treatment, and anything else that differs",
			"exp diff 5e8d c01f --traj --json # where two trajectories diverge, for programs",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "config", Usage: "only configuration keys"},
			&cli.BoolFlag{Name: "code", Usage: "only sources, with the lines that differ"},
			&cli.BoolFlag{Name: "env", Usage: "only the environment"},
			&cli.BoolFlag{Name: "traj", Usage: "only the trajectories"},
			&cli.BoolFlag{Name: "all", Usage: "list every key that differs, also defaults with an effect in " +
				"one run only"},
		},
		BashComplete: a.completesRuns(2, true, nil),
		Action:       a.reads(2, 2, a.diff),
	}
}

// diffOptions returns the parts that the flags select; all without flags.
func diffOptions(c *cli.Context) differ.Options {
	o := differ.Options{
		Parts: differ.Parts{
			Config: c.Bool("config"), Code: c.Bool("code"), Env: c.Bool("env"), Trajectory: c.Bool("traj"),
		},
		Lines:   c.Bool("code"),
		EnvText: func(name string, value any) string { return envText(name, cli.TreeOf(value)) },
	}
	if o.Parts == (differ.Parts{}) {
		o.Parts = differ.All()
	}
	return o
}

func (a *app) diff(c *cli.Context, db *store.DB, refs []string) error {
	var runs [2]store.Run
	for i, ref := range refs {
		var err error
		if runs[i], err = a.oneRun(c.Context, db, ref); err != nil {
			return err
		}
	}
	o := diffOptions(c)
	d, err := differ.Runs(c.Context, db, runs[0], runs[1], o)
	if err != nil {
		return err
	}
	return a.Out.PrintDocument(cli.Document{Schema: "exp.diff/1", Data: d, Human: func(w io.Writer) error {
		p := &diffPage{Page: a.Out.NewPage(w), d: d, o: o, all: c.Bool("all")}
		return errors.Join(p.write(), p.Close())
	}})
}

// diffPage writes the differences between two runs for people.
type diffPage struct {
	*cli.Page
	d   *differ.Diff
	o   differ.Options
	all bool // list every key
}

// diffMetrics is how many metrics of the first differing step are shown.
const diffMetrics = 6

func (p *diffPage) write() error {
	d := p.d
	if err := p.runs(); err != nil {
		return err
	}
	if d.A.Run == d.B.Run {
		p.Line("identical: this is the same run")
		return nil
	}
	if d.Identical && p.o.Parts == differ.All() {
		p.Line("two runs with identical records")
	}
	if d.First != nil && p.o.Parts == differ.All() {
		p.Line("differs first: %s", firstText(d.First))
	}
	for _, part := range []struct {
		on    bool
		write func() error
	}{
		{p.o.Parts.Config, p.config}, {p.o.Parts.Code, p.code}, {p.o.Parts.Inputs, p.inputs}, {p.o.Parts.Env, p.env},
		{p.o.Parts.Trajectory, p.trajectory},
	} {
		if !part.on {
			continue
		}
		if err := part.write(); err != nil {
			return err
		}
	}
	return nil
}

// firstText says what differs first: "sft: the key sft.optim.lr is 0.003 in A, 0.004 in B".
func firstText(f *differ.First) string {
	both := fmt.Sprintf("is %s in A, %s in B", reasonText(f.Old), reasonText(f.New))
	switch f.What {
	case explain.Params:
		return fmt.Sprintf("%s: the key %s %s", f.Stage, f.Name, both)
	case explain.Input:
		return fmt.Sprintf("%s: the input %s %s", f.Stage, f.Name, both)
	case explain.Code:
		return f.Stage + ": the program's sources"
	}
	return fmt.Sprintf("%s: the %s %s", f.Stage, f.What, both)
}

func (p *diffPage) runs() error {
	columns := []cli.Column{{Title: ""}, {Title: "run"}, {Title: "name"}, {Title: "algo"}, {Title: "seed"},
		{Title: "xid"}, {Title: "numerics"}, {Title: "status", Style: statusStyle}}
	var rows [][]any
	for i, r := range []differ.Run{p.d.A, p.d.B} {
		rows = append(rows, []any{[]string{"A", "B"}[i], r.Run.Short(), r.Name, r.Algo, r.Seed, r.XID.Short(),
			r.Numerics, string(r.Status)})
	}
	return p.Table(columns, rows)
}

// part writes a heading and a table, or one line if nothing differs.
func (p *diffPage) part(name string, columns []cli.Column, rows [][]any) error {
	if len(rows) == 0 {
		p.Heading(name + ": equal")
		return nil
	}
	p.Heading(name)
	return p.Table(columns, rows)
}

// shownDefaults is how many keys with an effect in one run only, at their defaults, are listed rather than counted.
const shownDefaults = 8

// config writes the keys that a configuration sets, and below them the others.
func (p *diffPage) config() error {
	var set, defaults [][]any
	var alone [2][]string // keys with an effect in A or B only
	folded := 0
	for _, c := range p.d.Config {
		if !c.Set && c.Only != "" {
			folded++
		}
	}
	for _, c := range p.d.Config {
		row := []any{c.Key, valueText(c.A), valueText(c.B), string(c.Class)}
		if c.A == nil && c.Only != "b" {
			row[1] = "null"
		}
		if c.B == nil && c.Only != "a" {
			row[2] = "null"
		}
		switch {
		case c.Set:
			set = append(set, row)
		case p.all || folded <= shownDefaults || c.Only == "":
			defaults = append(defaults, row)
		case c.Only == "a":
			alone[0] = append(alone[0], c.Key)
		default:
			alone[1] = append(alone[1], c.Key)
		}
	}
	columns := []cli.Column{{Title: "key"}, {Title: "A", Rank: 1, Min: 10}, {Title: "B", Rank: 1, Min: 10},
		{Title: "class"}}
	if len(set) > 0 || len(p.d.Config) == 0 {
		if err := p.part("configuration", columns, set); err != nil {
			return err
		}
	}
	if len(defaults) > 0 {
		if err := p.part("configuration: defaults that differ", columns, defaults); err != nil {
			return err
		}
	}
	if len(alone[0])+len(alone[1]) > 0 {
		p.Heading("configuration: keys of one run only, at their defaults")
		p.Facts(cli.Fact{Name: "A", Text: blocksText(alone[0])}, cli.Fact{Name: "B", Text: blocksText(alone[1])})
		p.Line("--all lists them with their values")
	}
	return nil
}

// blocksText lists keys, several of one block as one: "algo.clip.* (3), algo.gamma".
func blocksText(keys []string) string {
	block := func(key string) string { return strings.Join(strings.SplitAfterN(key, ".", 3)[:2], "") }
	var parts []string
	for i := 0; i < len(keys); {
		n := 1
		if strings.Count(keys[i], ".") > 1 {
			for i+n < len(keys) && strings.HasPrefix(keys[i+n], block(keys[i])) {
				n++
			}
		}
		if n > 1 {
			parts = append(parts, fmt.Sprintf("%s* (%d)", block(keys[i]), n))
		} else {
			parts = append(parts, keys[i])
		}
		i += n
	}
	return strings.Join(parts, ", ")
}

// valueText formats a configuration value; a dash if the key has no effect.
func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return "–"
	case []any:
		if len(v) == 0 {
			return "[]"
		}
	case float64:
		return cli.MachineText(cli.TreeOf(v))
	}
	return exactText(v)
}

func (p *diffPage) code() error {
	var rows [][]any
	for _, c := range p.d.Code {
		rows = append(rows, []any{c.Path, string(c.Change), strings.Join(c.Stages, ", ")})
	}
	columns := []cli.Column{{Title: "file"}, {Title: "change"}, {Title: "stages", Rank: 1}}
	if err := p.part("code", columns, rows); err != nil {
		return err
	}
	if len(p.d.Code) > 0 && !p.o.Lines {
		p.Line("  exp diff %s %s --code shows the lines", p.d.A.Run.Short(), p.d.B.Run.Short())
	}
	for _, c := range p.d.Code {
		p.sourceLines(c.Lines)
	}
	return nil
}

// sourceLines prints a unified diff; on a pipe, patch can read it.
func (p *diffPage) sourceLines(text string) {
	if text == "" {
		return
	}
	fmt.Fprintln(p)
	if !p.Out.Stream.TTY {
		fmt.Fprint(p, text)
		return
	}
	for line := range strings.Lines(text) {
		style := term.Plain
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			style = term.Strong
		case strings.HasPrefix(line, "@@"):
			style = term.Faint
		case strings.HasPrefix(line, "-"):
			style = term.Bad
		case strings.HasPrefix(line, "+"):
			style = term.Good
		}
		line = term.Clean(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    "))
		fmt.Fprintln(p, style.Paint(line, p.Layout.Color))
	}
}

func (p *diffPage) inputs() error {
	var rows [][]any
	for _, c := range p.d.Inputs {
		rows = append(rows, []any{c.Name, cmp.Or(c.A.Short(), "–"), cmp.Or(c.B.Short(), "–")})
	}
	return p.part("data and initial weights", []cli.Column{{Title: "what"}, {Title: "A"}, {Title: "B"}}, rows)
}

func (p *diffPage) env() error {
	var rows [][]any
	for _, c := range p.d.Env {
		rows = append(rows, []any{c.Name, cmp.Or(c.A, "–"), cmp.Or(c.B, "–")})
	}
	return p.part("environment", []cli.Column{{Title: "what"}, {Title: "A", Rank: 1}, {Title: "B", Rank: 1}}, rows)
}

func (p *diffPage) trajectory() error {
	t := p.d.Trajectory
	steps := quantity.Plural(int(t.StepsA), "step")
	if t.StepsA != t.StepsB {
		steps = fmt.Sprintf("%d and %d steps", t.StepsA, t.StepsB)
	}
	if t.Step == 0 {
		switch {
		case min(t.StepsA, t.StepsB) == 0:
			p.Heading("trajectories: nothing to compare (" + steps + ")")
		default:
			p.Heading("trajectories: equal, bit for bit (" + steps + ")")
		}
		return nil
	}
	p.Heading("trajectories")
	equal := fmt.Sprintf("the first %d are equal, bit for bit; ", t.Equal)
	if t.Equal == 0 {
		equal = ""
	}
	text := fmt.Sprintf("%s; %sthey diverge at step %d: %s", steps, equal, t.Step, fieldMeaning(t.Field))
	p.Text("  ", strings.Join(term.Wrap(text, p.ProseWidth()), "\n"))
	if len(t.Metrics) == 0 {
		return nil
	}
	var rows [][]any
	for _, m := range t.Metrics[:min(len(t.Metrics), diffMetrics)] {
		rows = append(rows, []any{m.Name, pointText(m.A), pointText(m.B)})
	}
	columns := []cli.Column{{Title: fmt.Sprintf("metric at step %d", t.Step)}, {Title: "A"}, {Title: "B"}}
	if err := p.Table(columns, rows); err != nil {
		return err
	}
	if left := len(t.Metrics) - diffMetrics; left > 0 {
		p.Line("and %d more: --traj --json lists them", left)
	}
	return nil
}

// pointText formats a float with enough digits to show a difference in the last bit.
func pointText(v *float64) string {
	if v == nil {
		return "–"
	}
	return cli.MachineText(cli.TreeOf(*v))
}

// fieldMeaning says which part of a step differs first.
func fieldMeaning(field ident.Field) string {
	switch field {
	case ident.FieldItems:
		return "different problems were drawn"
	case ident.FieldTokens:
		return "same problems, but different tokens were sampled"
	case ident.FieldLogProbs:
		return "same tokens, but different log-probs"
	case ident.FieldRewards:
		return "same completions, but different rewards"
	case ident.FieldParams:
		return "same completions and rewards, but different weights after the step"
	case ident.FieldStep:
		return "different steps are recorded"
	}
	name, _ := field.Metric()
	return "everything is equal except " + term.Clean(name)
}
