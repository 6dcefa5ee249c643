package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/harness/explain"
	"exp/harness/plan"
	"exp/harness/preview"
	"exp/harness/prompt"
)

// dryRun prints what exp run would do and what each of its ranks would need; it executes and
// writes nothing.
func (a *app) dryRun(ctx context.Context, configs []*config.Resolved, seeds []int64, ranks int) error {
	if err := a.ranksFit(configs, ranks); err != nil {
		return err
	}
	db, err := a.OpenStore()
	var none *cli.Failure
	if err != nil && !(errors.As(err, &none) && none.Code == cli.ExitNotFound) {
		return err
	}
	if db != nil {
		defer db.Close()
	}
	sources, err := plan.Sources()
	if err != nil {
		return err
	}
	machine := preview.Machine{DB: db, Sources: sources, Getenv: a.Getenv,
		Processes: a.processes(ranks)}
	var list []preview.Run
	for _, j := range plan.WantedOf(configs, seeds) {
		r, err := machine.Of(ctx, j.Config, j.Seed)
		if err != nil {
			return err
		}
		list = append(list, r)
	}
	return a.Out.PrintDocument(cli.Document{Schema: "exp.plan/1", Data: list, Human: func(w io.Writer) error {
		return a.Out.WriteHanging(w, requireIndent, func(w io.Writer) error { return writePlans(w, list) })
	}})
}

// because explains in one line why a stage is executed; empty if none of its kind was done
// before.
func because(e *explain.Stage) string {
	switch {
	case e == nil || e.Miss == explain.First:
		return ""
	case e.Miss == explain.Again:
		return "run " + e.Nearest.Run.Short() + " did the same, but its files are missing"
	}
	var list []string
	for _, r := range e.Reasons {
		text := strings.TrimSpace(string(r.What) + " " + r.Name)
		switch r.What {
		case explain.Params, explain.Numerics, explain.Seed:
			text = fmt.Sprintf("%s %s → %s", cmp.Or(r.Name, string(r.What)), reasonText(r.Old), reasonText(r.New))
		}
		list = append(list, text)
	}
	return fmt.Sprintf("unlike run %s: %s", e.Nearest.Run.Short(), term.Clean(quantity.AtMost(list, 3)))
}

// withAlgo puts the algorithm, if any, after a name; evaluations have none.
func withAlgo(name, algo string) string {
	if algo == config.None {
		return name
	}
	return name + "  " + algo
}

func writePlans(w io.Writer, list []preview.Run) error {
	for i, p := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s  seed %d", withAlgo(p.Name, p.Algo), p.Seed)
		if p.RID != "" {
			fmt.Fprintf(w, "  run %s  xid %s  %s", p.RID[:8], p.XID[:8], p.Numerics)
		}
		fmt.Fprintln(w)
		for _, s := range p.Stages {
			name, sid := s.Kind, ""
			if s.Label != "" {
				name += " " + s.Label
			}
			if s.SID != "" {
				sid = s.SID[:8]
			}
			fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("  %-24s %-8s %-8s  %s", name, s.State, sid, because(s.Why)),
				" "))
		}
		if p.Estimate != nil {
			fmt.Fprintln(w, p.Estimate.Text("  "))
		}
		if p.Prompts != nil {
			writePlan(w, p.Prompts)
		}
		for _, n := range p.Notes {
			fmt.Fprintf(w, "  note     %s\n", term.Clean(n))
		}
		for _, m := range p.Missing {
			fmt.Fprintf(w, "  missing  %s\n", term.Clean(m))
		}
		for _, d := range p.ToDo {
			fmt.Fprintf(w, "  to do    %s\n", term.Clean(d))
		}
	}
	return nil
}

// longPrompts says what becomes of prompts that are too long.
func longPrompts(p *prompt.Plan) string {
	cut := map[string]string{"error": "are an error", "left": "are cut on the left", "right": "are cut on the right",
		"middle": "are cut in the middle"}
	long := cut[p.Truncate]
	if p.Filter {
		long = "are left out"
	}
	if of := cut[p.Suites]; of != "" && of != long {
		long += "; of suites, they " + of
	}
	return long
}

// writePlan says how prompts are built and what ends completions.
func writePlan(w io.Writer, p *prompt.Plan) {
	say := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-8s %s\n", name, term.Clean(fmt.Sprintf(format, args...)))
	}
	if p.Template == "" {
		say("prompts", "plain text: %s", p.Plain)
	} else {
		say("prompts", "chat template %s (sha256 %s), today is %s", p.Template, p.Digest[:12], p.Date)
	}
	if p.System != "" {
		say("", "system message %q where a problem has none", p.System)
	}
	if p.Tools > 0 {
		how := "given to the template"
		if p.NoTools {
			how = "but the template ignores them"
		}
		say("", "tools offered: %s, %s", quantity.Plural(p.Tools, "definition"), how)
	}
	if p.OwnTools > 0 {
		say("", "%d problems have their own tools; %d of their prompts do not show them", p.OwnTools, p.LostTools)
	}
	if p.Images != nil {
		say("", "images: %s", p.Images)
	}
	if p.Before != "" {
		say("", "%s before the text, unless the template writes it", p.Before)
	}
	if p.Escape {
		say("", "special tokens spelled out in problems stay plain text")
	}
	say("", "a vocabulary of %d; prompts of more than %d tokens %s", p.Tokens, p.Limit, longPrompts(p))
	if len(p.Stops) == 0 {
		say("stop ids", "none: completions run to their maximum length; set rollout.stop_ids")
	} else {
		say("stop ids", "%s", prompt.StopText(p.Stops))
	}
	if p.StopNote != "" {
		say("note", "%s", p.StopNote)
	}
	for i, line := range p.Calls {
		say([]string{"tools", ""}[min(i, 1)], "%s", line)
	}
	if p.SFT != nil {
		say("sft", "%s", p.SFT)
		printParts(say, p.SFT.First, "learns")
	}
	printRated(say, "reward", p.Rated)
	printRated(say, "held out", p.HeldOut)
	printStepped(say, "reward", p.Stepped)
	printStepped(say, "held out", p.SteppedVal)
	if p.Prefer != nil {
		say("prefer", "%s", p.Prefer)
		printParts(say, p.Prefer.Chosen, "chosen  ")
		printParts(say, p.Prefer.Rejected, "rejected")
	}
	if p.Answers != nil {
		say("prefer", "%s", p.Answers)
		if advice := p.Answers.Advice(); advice != "" {
			say("", "%s", advice)
		}
		printParts(say, p.Answers.Good, "good")
		printParts(say, p.Answers.Bad, "bad")
	}
}

// printRated prints the pairs of a reward model, and the first one; nothing without any.
func printRated(say func(label, format string, args ...any), label string, p *prompt.RatedPlan) {
	if p == nil {
		return
	}
	say(label, "%s", p)
	for _, part := range [][2]string{{"reads   ", p.Begins}, {"chosen  ", p.Chosen}, {"rejected", p.Rejected}} {
		say("", "%s %q", part[0], shortened(part[1]))
	}
}

// printStepped prints the answers in steps of a reward model, and the first one; nothing without any.
func printStepped(say func(label, format string, args ...any), label string, p *prompt.SteppedPlan) {
	if p == nil {
		return
	}
	say(label, "%s", p)
	say("", "reads %q", shortened(p.Begins))
	for _, s := range p.First[:min(len(p.First), 6)] {
		say("", "%-7s %q", s.Label, shortened(s.Text))
	}
}

// printParts prints the first parts of a conversation; learned ones are named.
func printParts(say func(label, format string, args ...any), parts []prompt.ConversationPart, learned string) {
	const most = 6
	width := max(6, len(learned))
	for _, part := range parts[:min(len(parts), most)] {
		say("", "%-*s %q", width, map[bool]string{true: learned, false: "reads"}[part.Learned],
			shortened(part.Text))
	}
}

// shortened returns both ends of a long text.
func shortened(text string) string {
	const most = 36 // characters of an end
	r := []rune(text)
	if len(r) <= 2*most {
		return text
	}
	return string(r[:most]) + " … " + string(r[len(r)-most:])
}

// userConfig returns the user's own configuration file, if it exists.
func (a *app) userConfig() string {
	if f := a.Getenv("EXP_CONFIG"); f != "" {
		return f
	}
	dir := a.Getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home := a.Getenv("HOME")
		if home == "" {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	f := filepath.Join(dir, "exp", "config.yaml")
	if _, err := os.Stat(f); err != nil {
		return ""
	}
	return f
}
