package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/plan"
	harness "exp/harness/run"
	"exp/harness/stage"
)

// replanned is a recorded run as a plan that this program can execute.
type replanned struct {
	plan    *plan.Run
	backend device.Device // to be closed
}

// recordedConfig returns the configuration of a run with settings over it that change
// no result, or that are meant to.
func (a *app) recordedConfig(ctx context.Context, db *store.DB, run store.Run, sets ...string) (*config.Resolved, error) {
	c, err := db.Config(ctx, run.Config)
	if err != nil {
		return nil, err
	}
	r, err := config.Load(config.Input{File: "configuration of run " + run.RID.Short(), Data: []byte(c.Source), Sets: sets})
	if err != nil {
		return nil, fmt.Errorf("run %s: its configuration cannot be read by this program: %w", run.RID.Short(), err)
	}
	return r, nil
}

// replan makes a plan of what is recorded of a run, proved by its id: this program and
// this machine give the same bits in stages of these kinds. The error of another class
// of numerics, or of other sources, says what to do.
func (a *app) replan(ctx context.Context, db *store.DB, run store.Run, kinds []string, sets ...string) (replanned, error) {
	r, err := a.recordedConfig(ctx, db, run, sets...)
	if err != nil {
		return replanned{}, err
	}
	sources, err := plan.Sources()
	if err != nil {
		return replanned{}, err
	}
	be, err := device.ForRun(&r.Run, a.getenv)
	if err != nil {
		return replanned{}, err
	}
	suites, err := harness.Suites(ctx, db, r)
	if err != nil {
		be.Close()
		return replanned{}, err
	}
	p, err := plan.New(r, run.Seed, be.Class(), sources, suites...)
	if err == nil {
		err = sameRun(ctx, db, run, p, kinds)
	}
	if err != nil {
		be.Close()
		return replanned{}, err
	}
	return replanned{p, be}, nil
}

// sameRun checks that executing p gives the bits of a recorded run.
func sameRun(ctx context.Context, db *store.DB, run store.Run, p *plan.Run, kinds []string) error {
	if p.Numerics != run.Numerics {
		f := failf(exitResource, "run %s was computed in numerics class %s; this machine, with this program, is of class %s", run.RID.Short(), run.Numerics, p.Numerics)
		f.Help = "bits agree only inside a class: use a machine of that class, or EXP_CPU where this one has it (exp doctor lists what it has)"
		return f
	}
	if err := sameSources(ctx, db, run, p, kinds); err != nil {
		return err
	}
	if p.RID != run.RID {
		what, err := changedOutside(ctx, db, run, p)
		if err != nil {
			return err
		}
		f := failf(exitIntegrity, "run %s cannot be planned again: %s not what %s (the plan's id is %s)", run.RID.Short(), what, they(what), p.RID.Short())
		f.Help = "files that the configuration names must be as they were: exp show " + run.RID.Short() + " --config"
		return f
	}
	return nil
}

// changedOutside names what a recorded run took from outside that is another thing now.
func changedOutside(ctx context.Context, db *store.DB, run store.Run, p *plan.Run) (string, error) {
	stages, err := db.Stages(ctx, run.ID)
	if err != nil {
		return "", err
	}
	var changed []string
	for _, st := range stages {
		for i, s := range p.Stages {
			if string(s.Kind) != st.Kind || s.Label != st.Label {
				continue
			}
			recorded := map[string]ident.Digest{}
			for _, in := range st.Inputs {
				recorded[in.Role] = in.Digest
			}
			for _, role := range slices.Sorted(maps.Keys(p.Stages[i].Outside)) {
				if recorded[role] != s.Outside[role] && !slices.Contains(changed, role) {
					changed = append(changed, role)
				}
			}
			if _, had := recorded[stage.RoleTemplate]; had && s.Outside[stage.RoleTemplate].IsZero() && !slices.Contains(changed, stage.RoleTemplate) {
				changed = append(changed, stage.RoleTemplate)
			}
		}
	}
	if len(changed) == 0 {
		return "its configuration, data, weights or tokenizer are", nil
	}
	if len(changed) == 1 {
		return "its " + changed[0] + " is", nil
	}
	return "its " + strings.Join(changed, ", ") + " are", nil
}

// they completes "its data is not what" and "its data, weights are not what".
func they(subject string) string {
	if strings.HasSuffix(subject, " is") {
		return "it was"
	}
	return "they were"
}

// sameSources checks that this program has the sources of a run's stages of some kinds.
func sameSources(ctx context.Context, db *store.DB, run store.Run, p *plan.Run, of []string) error {
	stages, err := db.Stages(ctx, run.ID)
	if err != nil {
		return err
	}
	codes := map[config.Stage]ident.Digest{config.Train: run.Code}
	for _, s := range stages {
		codes[config.Stage(s.Kind)] = s.Code // the newest
	}
	var files []string
	var kinds []string
	for _, kind := range of {
		code, known := codes[config.Stage(kind)]
		own := p.Code[config.Stage(kind)]
		if !known || code == own.Digest {
			continue
		}
		kinds = append(kinds, kind)
		changed, err := changedFiles(ctx, db, code, own)
		if err != nil {
			return err
		}
		for _, f := range changed {
			if !slices.Contains(files, f) {
				files = append(files, f)
			}
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	f := failf(exitResource, "run %s was made by other sources than this program's: of %s", run.RID.Short(), strings.Join(kinds, ", "))
	if len(files) > 0 {
		f.Err = fmt.Errorf("%w (%s)", f.Err, firstOf(files, 6))
	}
	f.Help = fmt.Sprintf("the store keeps them: exp show %s --source DIR, then in DIR: go build -trimpath -o exp ./cmd/exp", run.RID.Short())
	return f
}

// changedFiles names the files, and the compiler, in which recorded sources differ
// from a program's own; nil where they are not kept.
func changedFiles(ctx context.Context, db *store.DB, code ident.Digest, own plan.Code) ([]string, error) {
	src, err := db.Source(ctx, code)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range ident.CompareFiles(src.Files, own.Files) {
		names = append(names, c.Path)
	}
	if len(names) == 0 {
		names = []string{"compiled by " + src.Go}
	}
	return names, nil
}

// firstOf joins names, at most n of them.
func firstOf(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}
