package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/plan"
	"exp/harness/replan"
	harness "exp/harness/run"
)

func verifyCommand(a *app) *cli.Command {
	var levels []string
	for _, l := range harness.Levels() {
		levels = append(levels, string(l))
	}
	return &cli.Command{
		Name:      "verify",
		Category:  "Experiments",
		Usage:     "check the record of a run by hashing and by re-executing it",
		ArgsUsage: "RUN",
		Description: "Each level includes the ones before:\n" +
			"  blobs   every stored file and the configuration match their digests, and the chain (the digest " +
			"of the run's steps) and what lists print follow from the recorded rows\n" +
			"  score   grading the stored completions gives the recorded verdicts and scores, of every " +
			"evaluation that the run has\n" +
			"  sample  sampling some completions again, other ones each time, gives the recorded tokens, " +
			"log-probs and rewards: of each evaluation, and of each training step whose weights are stored: " +
			"the first, and the next after each checkpoint. --completions of each, or 8 of as many " +
			"as fit into 2 minutes, at least one evaluation and one step\n" +
			"  prefix  re-executing training steps gives the recorded bits: the first --steps, " +
			"or those after a checkpoint; without --steps as many of the first 20 as " +
			"fit into 2 minutes, at least one, and it says how far it came\n" +
			"  full    re-executing every stage gives the recorded bits\n" +
			"The outcome is recorded, and exp ls and exp show print it; nothing else in the record changes. The " +
			"exit code is 4 if stored data was changed, 5 if re-execution gave different bits, 7 on a " +
			"machine of another numerics class (machines of one class compute the same bits), and 3 if the run " +
			"was imported without the weights or texts that the level needs; --level full makes them again.",
		UsageText: strings.Join([]string{
			"exp verify @last --level blobs # are all files unchanged?",
			"exp verify 5e8d # also re-execute the first 20 steps",
			"exp verify 5e8d --from 50 --steps 10 # ten steps after the checkpoint of step 50",
			"exp verify 5e8d --level sample --device cpu # was it this model that wrote what was scored?",
			"exp verify 5e8d --level full # everything, as long as the run itself took",
		}, "\n"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "level", Usage: "check `LEVEL`: " + strings.Join(levels, ", "),
				Value: string(harness.LevelPrefix)},
			&cli.IntFlag{Name: "steps", Usage: "re-execute `N` training steps, however long they take (prefix)",
				DefaultText: fmt.Sprintf("%d, or fewer in 2 minutes", harness.DefaultPrefix)},
			&cli.IntFlag{Name: "from", Usage: "begin at the newest checkpoint at or before `STEP` (prefix)",
				DefaultText: "the start"},
			&cli.IntFlag{Name: "completions", Usage: "sample `N` completions of each evaluation and step " +
				"again, however long they take (sample, prefix)", DefaultText: fmt.Sprintf("%d, of fewer in 2 minutes",
				harness.DefaultCompletions)},
		}, computeFlags()...),
		BashComplete: a.completesRunAndDevice(),
		Action:       func(c *cli.Context) error { return a.verifyRun(c, levels) },
	}
}

func (a *app) verifyRun(c *cli.Context, levels []string) error {
	args, err := cli.Positionals(c, 1, 1)
	if err != nil {
		return err
	}
	level, err := cli.OneOf("--level", c.String("level"), levels)
	if err != nil {
		return err
	}
	o := harness.VerifyOptions{Level: harness.Level(level), Steps: c.Int("steps"), From: c.Int("from"),
		Completions: c.Int("completions")}
	for flag, of := range map[string][]harness.Level{"steps": {harness.LevelPrefix}, "from": {harness.LevelPrefix},
		"completions": {harness.LevelPrefix, harness.LevelSample}} {
		switch {
		case c.IsSet(flag) && c.Int(flag) < 1:
			return a.Usagef("--%s %d: it must be at least 1", flag, c.Int(flag))
		case c.IsSet(flag) && !slices.Contains(of, o.Level):
			return a.Usagef("--%s is for --level %s", flag, strings.Join(cli.Words(of), " or "))
		}
	}
	if !c.IsSet("steps") {
		o.Limit = harness.DefaultLimit
	}
	if !c.IsSet("completions") {
		o.SampleLimit = harness.DefaultLimit
	}
	db, err := a.OpenStoreWith(store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	run, err := a.oneRun(c.Context, db, args[0])
	if err != nil {
		return err
	}
	display := a.Progress()
	r := harness.Runner{DB: db, Watch: &watcher{p: display}, Build: buildName(), Code: func(err error) int {
		return int(describe(err, nil).Code)
	}}
	var p *plan.Run
	if o.Level != harness.LevelBlobs {
		recorded := replan.Options{Kinds: stageNames(), Values: computeValues(c), Getenv: a.Getenv}
		same, be, err := replan.Plan(c.Context, db, run, recorded)
		if err != nil {
			return err
		}
		defer be.Close()
		p, r.Backend = same, be
		var failed []error
		o.Evaluations, failed = replan.Evaluations(c.Context, db, run, same, be.Class(), recorded)
		for _, err := range failed {
			display.Warn("not checked: " + err.Error())
		}
	}
	display.RunStart(term.Run{ID: run.RID.Short(), Seed: run.Seed})
	v, err := r.Verify(c.Context, run, p, o)
	a.CloseProgress()
	if err != nil {
		return err
	}
	program := p != nil && p.Config.Run.Reward.ByProgram() || slices.ContainsFunc(o.Evaluations, scoredByProgram)
	return errors.Join(a.printVerification(v), foundError(run, &v, program))
}

func (a *app) printVerification(v harness.Verification) error {
	return a.Out.PrintDocument(cli.Document{Schema: "exp.verify/1", Data: v, Human: func(w io.Writer) error {
		p := a.Out.NewPage(w)
		if p.Layout.Width == 0 {
			p.Line("%s", verifiedText(&v)) // one line in a pipe
		} else {
			p.Prose(p.ProseWidth(), verifiedText(&v))
		}
		for _, f := range v.Findings {
			word := "damaged:"
			if f.Diverged {
				word = "diverged:"
			}
			fmt.Fprintf(p, "  %s %s\n", term.Bad.Paint(word, p.Layout.Color), term.Clean(f.Where+": "+f.What))
		}
		return p.Close()
	}})
}

// verifiedText says what was verified.
func verifiedText(v *harness.Verification) string {
	did := []string{quantity.Plural(v.Blobs, "file") + " hashed",
		"the chain of " + quantity.Plural(int(v.Chain), "step") + " recomputed"}
	if v.Inexact > 0 {
		did = append(did, quantity.Plural(int(v.Inexact), "step")+" not recomputable from the store")
	}
	if v.Verdicts > 0 {
		did = append(did, quantity.Plural(v.Verdicts, "verdict")+" regraded")
	}
	if v.FromStep > 0 {
		steps := fmt.Sprintf("steps %d–%d re-executed", v.FromStep, v.ToStep)
		if v.CutAt > 0 {
			steps += fmt.Sprintf(" of %d, the most within the limit of %v (--steps lifts it)", v.CutAt,
				harness.DefaultLimit)
		}
		did = append(did, steps)
	}
	if len(v.Sampled) > 0 {
		did = append(did, sampledText(v))
	}
	if n := len(v.Stages); n > 0 {
		did = append(did, quantity.Plural(n, "stage")+" repeated")
	}
	outcome := "ok"
	if !v.OK {
		outcome = "NOT ok"
	}
	text := fmt.Sprintf("run %s: %s %s: %s", v.Run.Short(), v.Level, outcome, strings.Join(did, ", "))
	if len(v.Unchecked) > 0 {
		text += "; NOT checked: the scores on " + strings.Join(v.Unchecked, "; ")
	}
	return text
}

// sampledText says of what completions were sampled again.
func sampledText(v *harness.Verification) string {
	var of []string
	add := func(done, left int, what string) {
		switch {
		case done > 0 && left > 0:
			of = append(of, fmt.Sprintf("%d of %d %ss", done, done+left, what))
		case done > 0:
			of = append(of, quantity.Plural(done, what))
		}
	}
	add(v.Evaluated, v.Unsampled, "evaluation")
	add(v.SampledSteps, v.UnsampledSteps, "training step")
	limit := ""
	if v.Unsampled+v.UnsampledSteps > 0 {
		limit = fmt.Sprintf(", the most within the limit of %v (--completions lifts it)", harness.DefaultLimit)
	}
	return fmt.Sprintf("%s of %s sampled again%s", quantity.Plural(len(v.Sampled), "completion"),
		strings.Join(of, " and "), limit)
}

// foundError returns the error of a verification with findings. program says that a program gives the rewards.
func foundError(run store.Run, v *harness.Verification, program bool) error {
	if v.OK {
		return nil
	}
	first, more := v.Findings[0], ""
	if n := len(v.Findings); n > 1 {
		more = fmt.Sprintf(" (and %d more)", n-1)
	}
	failed, help := cli.Failf(cli.ExitIntegrity, "the stored data of run %s was changed: %s%s", run.RID.Short(),
		first.Where, more), "if a file is corrupt, move it away: exp run will produce it again"
	if v.Diverged() {
		failed, help = cli.Failf(cli.ExitDivergence, "re-executing run %s gave different bits: %s%s", run.RID.Short(),
			first.Where, more), "the record is unchanged but for the added divergence; exp doctor tests whether this "+
			"machine is deterministic"
	}
	if program && !slices.ContainsFunc(v.Findings, func(f harness.Finding) bool { return !ofReward(f) }) {
		help = "only rewards and what follows from them differ: does your program that scores answer " +
			"differently each time, as with random numbers, a clock or a network?"
	}
	return failed.Advise(help)
}

// scoredByProgram reports whether a program of the user's scores the completions of an evaluation.
func scoredByProgram(p *plan.Run) bool {
	s := &p.Config.Run
	return s.Eval.Final.Scorer.Used() && s.ScoredBy().Reward.ByProgram()
}

// ofReward reports whether a finding is about a reward, a verdict or a score.
func ofReward(f harness.Finding) bool {
	if strings.HasPrefix(f.Where, "stage eval.score") {
		return true
	}
	for _, what := range []string{"reward", "verdict", "answer", "reason", "the scores", "state of grading"} {
		if strings.Contains(f.What, what) {
			return true
		}
	}
	return false
}

// verifiedKey names the column, and the field of filters.
const verifiedKey = "verified"

// verifiedMark formats it for people.
func verifiedMark(v string, unicode bool) string {
	yes, no := "✓", "✗"
	if !unicode {
		yes, no = "ok ", "no"
	}
	switch v {
	case "":
		return ""
	case store.VerifiedNo:
		return no
	}
	return yes + v
}

// verifiedColumn shows how far runs were verified; people see it if some run was
// verified, or on request.
func (a *app) verifiedColumn(all map[int64][]store.Verification, runs []store.Run, asked bool) runColumn {
	some := asked || slices.ContainsFunc(runs, func(r store.Run) bool { return len(all[r.ID]) > 0 })
	c := cli.Column{Key: verifiedKey, Wide: !some, Style: func(v any) term.Style {
		if v == store.VerifiedNo {
			return term.Bad
		}
		return term.Good
	}}
	if a.Out.ForPeople() {
		c.Text = func(v any) string { text, _ := v.(string); return verifiedMark(text, a.Out.Stream.Unicode) }
	}
	return runColumn{c, func(_ int, r *store.Run) any {
		if v := store.Verified(all[r.ID]); v != "" {
			return v
		}
		return nil
	}}
}

// verificationText gives the outcome of the newest verification, and sums up the others.
func (p *showPage) verificationText() string {
	list := p.s.Verifications
	if len(list) == 0 {
		return ""
	}
	v := list[len(list)-1]
	text := v.Level + " ok"
	if !v.OK {
		text = v.Level + " FAILED"
	}
	if v.FromStep > 0 {
		text += fmt.Sprintf(", steps %d–%d re-executed", v.FromStep, v.ToStep)
	}
	text += " (" + quantity.Ago(p.now, v.Time) + " ago)"
	var wrong []string
	var detail harness.Verification
	if json.Unmarshal(v.Raw, &detail) == nil {
		for _, f := range detail.Findings {
			wrong = append(wrong, f.Where)
		}
	}
	if len(wrong) > 0 {
		text += ": " + quantity.AtMost(wrong, 4)
	}
	if len(list) > 1 {
		text += fmt.Sprintf("; %d verifications", len(list))
	}
	return strings.TrimSpace(text)
}
