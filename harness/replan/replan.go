// Package replan plans a recorded run again, and proves that executing the plan gives
// the recorded bits: same numerics, sources, configuration and inputs. It executes
// nothing.
package replan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/hub"
	"exp/harness/plan"
	harness "exp/harness/run"
	"exp/harness/stage"
)

// Exit codes of the program that the errors carry.
const (
	codeIntegrity = 4
	codeUsage     = 2
	codeResource  = 7
)

// Config returns the configuration of a run with settings on top that either change no
// result or are meant to.
// What it names on a hub is taken from the cache that the environment names, at the
// recorded commit if that is still there.
func Config(ctx context.Context, db *store.DB, run store.Run, values []config.Value,
	getenv func(string) string) (*config.Resolved, error) {
	if by := run.Foreign(); by != "" {
		return nil, &ForeignError{Run: run.RID, By: by}
	}
	c, err := db.Config(ctx, run.Config)
	if err != nil {
		return nil, err
	}
	name := "configuration of run " + run.RID.Short()
	commits, err := harness.HubCommits(ctx, db, run.ID)
	if err != nil {
		return nil, err
	}
	cache := hub.FromEnv(getenv).Cache
	find := func(ref hub.Ref) (hub.Found, error) { return cache.FindAt(ref, commits[ref.Repo]) }
	r, err := config.Load(config.Input{File: name, Data: []byte(c.Source), Values: values, Find: find})
	if err != nil {
		return nil, fmt.Errorf("run %s: its configuration cannot be read by this program: %w", run.RID.Short(), err)
	}
	return r, nil
}

// Options say how to plan a recorded run.
type Options struct {
	Kinds  []string            // stages that must reproduce the recorded bits
	Values []config.Value      // settings on top of the recorded configuration
	Getenv func(string) string // the environment
}

// Plan plans a recorded run and opens the device that it computes on, which the caller
// closes. It checks that this program on this machine reproduces the recorded bits;
// otherwise it returns a *ForeignError, *NumericsError, *SourcesError or *InputsError.
func Plan(ctx context.Context, db *store.DB, run store.Run, o Options) (*plan.Run, device.Device, error) {
	r, err := Config(ctx, db, run, o.Values, o.Getenv)
	if err != nil {
		return nil, nil, err
	}
	be, err := device.ForRun(&r.Run, o.Getenv)
	if err != nil {
		return nil, nil, err
	}
	p, err := planned(ctx, db, run, r, be.Class(), o.Kinds)
	if err != nil {
		be.Close()
		return nil, nil, Elsewhere(ctx, db, run, err)
	}
	return p, be, nil
}

// planned plans a recorded run with its configuration for a device of a numerics class, as Plan does.
func planned(ctx context.Context, db *store.DB, run store.Run, r *config.Resolved, class string,
	kinds []string) (*plan.Run, error) {
	sources, err := plan.Sources()
	if err != nil {
		return nil, err
	}
	suites, err := harness.Suites(ctx, db, r)
	if err != nil {
		return nil, err
	}
	p, err := plan.New(r, run.Seed, class, sources, suites...)
	if err != nil {
		return nil, err
	}
	return p, same(ctx, db, run, p, kinds)
}

// WithSteps returns the configuration of a run with another number of training steps, which flag from asks for. It
// is another run with this one as parent. If the run's steps depend on their number, the error wraps run.ErrSchedule.
func WithSteps(ctx context.Context, db *store.DB, run store.Run, steps int, from string, values []config.Value,
	getenv func(string) string) (*config.Resolved, error) {
	r, err := Config(ctx, db, run, values, getenv)
	if err != nil {
		return nil, err
	}
	if err := harness.Extendable(r); err != nil {
		return nil, err
	}
	return Config(ctx, db, run, append(slices.Clone(values),
		config.Value{Path: "train.steps", Value: steps, From: from},
		config.Value{Path: "name", Value: extendedName(r.Run.Name, steps), From: from}), getenv)
}

// longestName is the most characters in a run's name.
const longestName = 64

// extendedName names a run after the run whose steps it shares.
func extendedName(name string, steps int) string {
	suffix := fmt.Sprintf("-%dsteps", steps)
	return name[:min(len(name), longestName-len(suffix))] + suffix
}

// same checks that executing p gives the recorded bits of a run.
func same(ctx context.Context, db *store.DB, run store.Run, p *plan.Run, kinds []string) error {
	if p.Numerics != run.Numerics {
		return &NumericsError{Run: run.RID, Recorded: run.Numerics, Here: p.Numerics}
	}
	if err := sameSources(ctx, db, run, p, kinds); err != nil {
		return err
	}
	if p.RID == run.RID {
		return nil
	}
	changed, err := changedInputs(ctx, db, run, p)
	if err != nil {
		return err
	}
	return &InputsError{Run: run.RID, Plan: p.RID, Changed: changed}
}

// changedInputs names the external inputs of a recorded run that have changed.
func changedInputs(ctx context.Context, db *store.DB, run store.Run, p *plan.Run) ([]string, error) {
	stages, err := db.Stages(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	var changed []string
	note := func(role string) {
		if !slices.Contains(changed, role) {
			changed = append(changed, role)
		}
	}
	for _, st := range stages {
		for _, s := range p.Stages {
			if string(s.Kind) != st.Kind || s.Label != st.Label {
				continue
			}
			recorded := map[string]ident.Digest{}
			for _, in := range st.Inputs {
				recorded[in.Role] = in.Digest
			}
			for _, role := range slices.Sorted(maps.Keys(s.Outside)) {
				if recorded[role] != s.Outside[role] {
					note(role)
				}
			}
			if _, had := recorded[stage.RoleTemplate]; had && s.Outside[stage.RoleTemplate].IsZero() {
				note(stage.RoleTemplate)
			}
		}
	}
	return changed, nil
}

// sameSources checks that this program has the sources of a run's stages of the given
// kinds.
func sameSources(ctx context.Context, db *store.DB, run store.Run, p *plan.Run, of []string) error {
	stages, err := db.Stages(ctx, run.ID)
	if err != nil {
		return err
	}
	codes := map[config.Stage]ident.Digest{config.Train: run.Code}
	for _, s := range stages {
		codes[config.Stage(s.Kind)] = s.Code // the newest wins
	}
	e := &SourcesError{Run: run.RID}
	for _, kind := range of {
		code, known := codes[config.Stage(kind)]
		own := p.Code[config.Stage(kind)]
		if !known || code == own.Digest {
			continue
		}
		e.Kinds = append(e.Kinds, kind)
		changed, err := changedFiles(ctx, db, code, own)
		if err != nil {
			return err
		}
		for _, f := range changed {
			if !slices.Contains(e.Files, f) {
				e.Files = append(e.Files, f)
			}
		}
	}
	if len(e.Kinds) == 0 {
		return nil
	}
	return e
}

// changedFiles names the files that differ between the recorded sources and this program's,
// and the compiler if it differs; nil if the store lacks the sources.
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

// HasWeights reports whether a run has final weights; otherwise it would have to be
// trained. A run that trains nothing has the weights that it started from.
func HasWeights(ctx context.Context, db *store.DB, run store.Run) (bool, error) {
	stages, err := db.Stages(ctx, run.ID)
	if err != nil {
		return false, err
	}
	trains := slices.ContainsFunc(stages, func(s store.Stage) bool { return s.Kind == string(config.Train) })
	return slices.ContainsFunc(stages, func(s store.Stage) bool {
		made := s.Kind == string(config.Merge) || !trains && s.Kind == string(config.EvalGen)
		return made && slices.Contains([]store.Status{store.Done, store.Cached, store.Repeated}, s.Status)
	}), nil
}

// LacksWeights reports whether a run's weights, which it has made, are not in the store: it was imported without
// them, or their files are gone. Executing it would train again.
func LacksWeights(ctx context.Context, db *store.DB, run store.Run) (bool, error) {
	stages, err := db.Stages(ctx, run.ID)
	if err != nil {
		return false, err
	}
	for _, s := range stages {
		kind := config.Stage(s.Kind)
		if !kind.Facts().Learns && kind != config.Init && kind != config.Merge ||
			!slices.Contains([]store.Status{store.Done, store.Cached, store.Repeated}, s.Status) {
			continue
		}
		if hit, err := db.Hit(ctx, s.SID); err != nil || hit == nil {
			return err == nil, err
		}
	}
	return false, nil
}
