package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"exp/cmd/exp/term"
	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/plan"
)

func whyCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "why",
		Category:  "Results",
		Usage:     "explain why stages of a run were executed and not taken from the cache",
		ArgsUsage: "RUN [STAGE]",
		Description: "Compares each stage with the nearest one of its kind that was done before, in any run, and says what of its " +
			"parameters, inputs, code, numerics and seed is not the same. STAGE is train, eval.gen or, of one suite, eval.gen[test].",
		UsageText: strings.Join([]string{
			"exp why @last # every stage",
			"exp why @last train # what made it train again",
			"exp why @last 'eval.score[test]' --json # for programs",
		}, "\n"),
		BashComplete: a.completesRuns(1, true, nil),
		Action: func(c *cli.Context) error {
			args, err := positionals(c, 1, 2)
			if err != nil {
				return err
			}
			stage := ""
			if len(args) == 2 {
				stage = args[1]
				kind, _, _ := strings.Cut(stage, "[")
				if _, err := oneOf("STAGE", kind, stageNames()); err != nil {
					return err
				}
			}
			return a.withStore(func(db *store.DB) error { return a.why(c, db, args[0], stage) })
		},
	}
}

// explainedRun is the schema exp.why/1.
type explainedRun struct {
	Run    ident.Digest     `json:"run"`
	Name   string           `json:"name"`
	Seed   int64            `json:"seed"`
	Stages []explainedStage `json:"stages"`
}

// explainedStage says what came of a stage, and why.
type explainedStage struct {
	Stage  string       `json:"stage"` // "eval.gen[test]"
	SID    ident.Digest `json:"sid"`
	Status store.Status `json:"status"`
	// Miss is why it was executed: "first" (nothing of its kind was done before),
	// "again" (the very same was), "differs"; empty where it was not.
	Miss    string       `json:"miss"`
	Nearest *nearStage   `json:"nearest,omitempty"` // what it is compared with, or was taken from
	Reasons []missReason `json:"reasons"`
}

type nearStage struct {
	Run     ident.Digest `json:"run"`
	Name    string       `json:"name"`
	SID     ident.Digest `json:"sid"`
	Started time.Time    `json:"started"`
}

// missReason is one thing that is not the same.
type missReason struct {
	What string `json:"what"` // "params", "input", "code", "numerics", "seed"
	Name string `json:"name"` // of the key, the role or the file
	Old  any    `json:"old"`  // null: it had none
	New  any    `json:"new"`
	By   string `json:"by,omitempty"` // of an input: the stage of this run that made it
}

func (a *app) why(c *cli.Context, db *store.DB, ref, stage string) error {
	run, err := a.oneRun(c.Context, db, ref)
	if err != nil {
		return err
	}
	e, err := explainRun(c.Context, db, run, stage)
	if err != nil {
		return err
	}
	return a.out.printDocument(document{Schema: "exp.why/1", Data: e, Human: func(w io.Writer) error {
		p := &whyPage{page: a.out.newPage(w), e: e, now: a.clock.Now()}
		return errors.Join(p.write(), p.close())
	}})
}

func explainRun(ctx context.Context, db *store.DB, run store.Run, only string) (*explainedRun, error) {
	all, err := db.Stages(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	e := &explainedRun{Run: run.RID, Name: run.Name, Seed: run.Seed, Stages: []explainedStage{}}
	x := explainer{ctx: ctx, db: db, stages: all}
	for i := range all {
		s := &all[i]
		name := planName(s)
		later := slices.ContainsFunc(all[i+1:], func(t store.Stage) bool { return t.SID == s.SID })
		if later || only != "" && only != name && only != s.Kind {
			continue
		}
		out, err := x.explain(s, name)
		if err != nil {
			return nil, err
		}
		e.Stages = append(e.Stages, out)
	}
	if len(e.Stages) == 0 {
		f := failf(exitNotFound, "run %s has no stage %s", run.RID.Short(), or(only, "yet"))
		f.Help = "exp show " + run.RID.Short() + " lists its stages"
		return nil, f
	}
	return e, nil
}

// planName is a stage as plans call it: eval.gen[test].
func planName(s *store.Stage) string {
	return plan.Stage{Kind: config.Stage(s.Kind), Label: s.Label}.Name()
}

// explainer explains the stages of a run.
type explainer struct {
	ctx    context.Context
	db     *store.DB
	stages []store.Stage
	// here are sources of this program, which the store need not have.
	here map[ident.Digest]store.Source
}

func (x explainer) explain(s *store.Stage, name string) (explainedStage, error) {
	e := explainedStage{Stage: name, SID: s.SID, Status: s.Status, Reasons: []missReason{}}
	if s.Status == store.Cached {
		e.Nearest = &nearStage{Run: s.ReusedRun, SID: s.SID}
		if from, err := x.db.Run(x.ctx, s.ReusedRun); err == nil {
			e.Nearest.Name = from.Name
		}
		return e, nil
	}
	first := s.ID
	for _, t := range x.stages {
		if t.SID == s.SID {
			first = min(first, t.ID)
		}
	}
	// The same work counts as done before even by this run.
	same, err := x.db.StagesBySID(x.ctx, s.SID)
	if err != nil {
		return e, err
	}
	for i := range same {
		if same[i].Status == store.Done && same[i].ID < s.ID {
			e.Miss = "again"
			e.Nearest, err = x.near(&same[i])
			return e, err
		}
	}
	err = x.compare(&e, s, first)
	return e, err
}

// compare completes e: what is not the same in s and the nearest stage of its kind
// that was done and has an id below first.
func (x explainer) compare(e *explainedStage, s *store.Stage, first int64) error {
	before, err := x.db.StagesBefore(x.ctx, s.Kind, first)
	if err != nil {
		return err
	}
	if len(before) == 0 {
		e.Miss = "first"
		return nil
	}
	e.Miss = "differs"
	var prior *store.Stage
	for i := range before {
		t := &before[i]
		reasons, err := stageDifferences(t, s)
		if err != nil {
			return err
		}
		if prior == nil || distance(reasons) <= distance(e.Reasons) { // the newest of equals
			prior, e.Reasons = t, reasons
		}
	}
	x.makers(s, e.Reasons)
	if prior.Code != s.Code {
		files, err := x.code(prior.Code, s.Code)
		if err != nil {
			return err
		}
		e.Reasons = append(slices.DeleteFunc(e.Reasons, func(r missReason) bool { return r.What == "code" }), files...)
	}
	e.Nearest, err = x.near(prior)
	return err
}

func (x explainer) near(s *store.Stage) (*nearStage, error) {
	r, err := x.db.RunByID(x.ctx, s.Run)
	return &nearStage{Run: r.RID, Name: r.Name, SID: s.SID, Started: s.Started}, err
}

// distance counts how many kinds of things differ, and then how many things.
func distance(list []missReason) int {
	kinds := map[string]bool{}
	for _, r := range list {
		kinds[r.What] = true
	}
	return 1000*len(kinds) + len(list)
}

// stageDifferences lists what of the things that make a stage's id is not the same in
// old and new; of code only that it is not.
func stageDifferences(old, new *store.Stage) ([]missReason, error) {
	reasons := []missReason{}
	var params [2]map[string]any
	for i, s := range []*store.Stage{old, new} {
		if err := json.Unmarshal(s.Params, &params[i]); err != nil {
			return nil, fmt.Errorf("parameters of stage %s: %w", s.SID.Short(), err)
		}
		if s.Label != "" {
			params[i]["suite"] = s.Label
		}
	}
	for _, key := range keyPaths(params[0], params[1]) {
		a, inA := params[0][key]
		b, inB := params[1][key]
		if inA != inB || !reflect.DeepEqual(a, b) {
			reasons = append(reasons, missReason{What: "params", Name: key, Old: a, New: b})
		}
	}
	inputs := [2]map[string]any{{}, {}}
	for i, s := range []*store.Stage{old, new} {
		for _, io := range s.Inputs {
			inputs[i][io.Role] = io.Digest.String()
		}
	}
	for _, role := range bothKeys(inputs[0], inputs[1]) {
		if a, b := inputs[0][role], inputs[1][role]; a != b {
			reasons = append(reasons, missReason{What: "input", Name: role, Old: a, New: b})
		}
	}
	if old.Code != new.Code {
		reasons = append(reasons, missReason{What: "code", Old: old.Code.String(), New: new.Code.String()})
	}
	if old.Numerics != new.Numerics && new.Kind != string(config.Prepare) { // which has no numbers
		reasons = append(reasons, missReason{What: "numerics", Old: old.Numerics, New: new.Numerics})
	}
	if old.Seed != new.Seed {
		reasons = append(reasons, missReason{What: "seed", Old: old.Seed, New: new.Seed})
	}
	return reasons, nil
}

// bothKeys lists the keys of both maps, sorted.
func bothKeys(a, b map[string]any) []string {
	var keys []string
	for _, m := range []map[string]any{a, b} {
		for k := range m {
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

// makers says which stage of the run made an input that is not the same.
func (x explainer) makers(new *store.Stage, reasons []missReason) {
	for i := range reasons {
		r := &reasons[i]
		if r.What != "input" {
			continue
		}
		for _, s := range x.stages {
			for _, o := range s.Outputs {
				if o.Digest.String() == r.New && s.ID < new.ID {
					r.By = planName(&s)
				}
			}
		}
	}
}

// code lists the files in which two states of the sources differ.
func (x explainer) code(old, new ident.Digest) ([]missReason, error) {
	a, errA := x.source(old)
	b, errB := x.source(new)
	if errors.Is(errA, store.ErrNotFound) || errors.Is(errB, store.ErrNotFound) {
		return []missReason{{What: "code", Name: "sources that are not kept", Old: old.String(), New: new.String()}}, nil
	}
	if err := errors.Join(errA, errB); err != nil {
		return nil, err
	}
	var list []missReason
	if a.Go != b.Go {
		list = append(list, missReason{What: "code", Name: "Go compiler", Old: a.Go, New: b.Go})
	}
	for _, c := range fileChanges(a.Files, b.Files) {
		r := missReason{What: "code", Name: c.Path, Old: "there", New: "changed"}
		switch c.Change {
		case "only in a":
			r.New = nil
		case "only in b":
			r.Old, r.New = nil, "there"
		}
		list = append(list, r)
	}
	return list, nil
}

func (x explainer) source(code ident.Digest) (store.Source, error) {
	if s, ok := x.here[code]; ok {
		return s, nil
	}
	return x.db.Source(x.ctx, code)
}

// whyPage writes the explanation for people.
type whyPage struct {
	*page
	e   *explainedRun
	now time.Time
}

func (p *whyPage) write() error {
	for _, s := range p.e.Stages {
		p.heading(s.Stage)
		p.line("%s", p.verdict(s))
		var rows [][]any
		for _, r := range s.Reasons {
			rows = append(rows, []any{r.What, r.Name, missText(r, r.Old), missText(r, r.New), r.by()})
		}
		if len(rows) == 0 {
			continue
		}
		if err := p.table([]column{{Title: "what"}, {Title: "which", Rank: 1, Min: 12}, {Title: "then", Rank: 2, Min: 8}, {Title: "now", Rank: 2, Min: 8}, {Title: ""}}, rows); err != nil {
			return err
		}
	}
	return nil
}

func (r missReason) by() string {
	if r.By == "" {
		return ""
	}
	return "made by " + r.By
}

func missText(r missReason, v any) string {
	if text, ok := v.(string); ok && (r.What == "input" || len(text) == 2*len(ident.Digest{})) {
		return shortDigest(text)
	}
	return valueText(v)
}

// verdict is one line on a stage.
func (p *whyPage) verdict(s explainedStage) string {
	switch {
	case s.Status == store.Cached && s.Nearest.Run == p.e.Run:
		return "cached: done by this run before"
	case s.Status == store.Cached:
		return fmt.Sprintf("cached: taken from run %s (%s)", s.Nearest.Run.Short(), s.Nearest.Name)
	case s.Miss == "first":
		return "executed: nothing of its kind was done before"
	case s.Miss == "again":
		return fmt.Sprintf("executed again although run %s had done the same: with --no-cache, or because its files were missing", s.Nearest.Run.Short())
	}
	var kinds []string
	for _, r := range s.Reasons {
		kinds = append(kinds, r.What)
	}
	slices.SortFunc(kinds, cmp.Compare)
	return fmt.Sprintf("executed: not the same %s as in the nearest before it, run %s (%s), %s ago", strings.Join(slices.Compact(kinds), ", "),
		s.Nearest.Run.Short(), term.Clean(s.Nearest.Name), age(p.now, s.Nearest.Started))
}
