// Package preview describes what executing a configuration would do and need. It executes
// and writes nothing.
package preview

import (
	"context"
	"errors"
	"fmt"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/bench"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/explain"
	"exp/harness/forecast"
	"exp/harness/plan"
	"exp/harness/prompt"
	harness "exp/harness/run"
	"exp/harness/stage"
)

// Run is one run that would be executed, an element of the schema exp.plan/1.
type Run struct {
	Name     string             `json:"name"`
	Algo     string             `json:"algo"` // "none" if nothing is trained
	Seed     int64              `json:"seed"`
	XID      string             `json:"xid"`
	RID      string             `json:"rid"`
	Numerics string             `json:"numerics"`
	Stages   []Stage            `json:"stages"`
	Estimate *forecast.Estimate `json:"estimate,omitempty"`
	Prompts  *prompt.Plan       `json:"prompts,omitempty"`
	Notes    []string           `json:"notes,omitempty"` // about the model and the device
	Missing  []string           `json:"missing"`
	ToDo     []string           `json:"to_do"`
}

// The states of a stage.
const (
	Cached  = "cached"  // its outputs are in the store
	Execute = "execute" // would be executed
)

// Stage is a stage of a run.
type Stage struct {
	Kind  string `json:"kind"`
	Label string `json:"label,omitempty"`
	State string `json:"state"`
	SID   string `json:"sid,omitempty"`
	// Why it would be executed; nil if it is cached or an input does not exist yet.
	Why *explain.Stage `json:"why,omitempty"`
}

// Machine is where runs would be executed.
type Machine struct {
	DB      *store.DB                  // may be nil: no store yet
	Sources map[config.Stage]plan.Code // of this program
	Getenv  func(string) string
	harness.Processes

	rates map[string]forecast.Rates // of the CPU, by the trial; measured for earlier runs
}

// Of previews one run. The result lists missing things; they are not an error.
func (m *Machine) Of(ctx context.Context, r *config.Resolved, seed int64) (Run, error) {
	c := &r.Run
	out := Run{Name: c.Name, Algo: c.Algorithm(), Seed: seed, Notes: stage.StartNotes(c), Missing: []string{},
		ToDo: []string{}}
	if note := stage.OverlongNote(c); note != "" {
		out.Notes = append(out.Notes, note)
	}
	var lack *harness.RequireError
	suites, err := harness.RequireAll(ctx, m.DB, r, m.Processes)
	if errors.As(err, &lack) {
		out.Missing, out.ToDo = lack.Missing, append(out.ToDo, lack.Do...)
	} else if err != nil {
		return out, err
	}
	if e, err := forecast.Of(r, m.Ranks).Estimate(); err == nil {
		out.Estimate = &e
	}
	if lack != nil {
		if p, err := stage.NewPrompter(c); err == nil {
			prompts := stage.PromptPlan(c, p)
			out.Prompts = &prompts
		}
		return out, nil // the identity depends on the missing parts
	}
	be, err := device.ForRun(c, m.Getenv)
	if err != nil {
		return out, err
	}
	defer be.Close()
	if choice, err := device.OfRun(c); err == nil && choice.Why != "" {
		out.Notes = append(out.Notes, choice.Why)
	} else if choice.GPU != nil {
		out.Notes = append(out.Notes, "computes on "+be.Where())
	}
	if note := bf16Note(c, be); note != "" {
		out.Notes = append(out.Notes, note)
	}
	if on, cpu := be.(device.OnCPU); cpu && m.Ranks <= 1 && out.Estimate != nil {
		if out.Estimate, err = m.timed(ctx, r, on); err != nil {
			return out, err
		}
	}
	p, err := plan.New(r, seed, be.Class(), m.Sources, suites...)
	if err != nil {
		return out, err
	}
	if m.DB != nil { // suites lie in the store
		e := stage.Env{Config: r, Blobs: m.DB.Blobs, Suites: suites, Prompter: p.External.Prompter,
			Placement: stage.Placement{CacheTokens: c.Rollout.CacheTokens}}
		if err := stage.CheckSuites(&e); err != nil {
			return out, err
		}
		if arch, err := forecast.Architecture(c); err == nil && out.Estimate != nil && forecast.OnlySuites(c) {
			out.Estimate.ShowSuites(c, stage.NeedsOfSuites(&e, arch))
		}
	}
	return out, out.addPlan(ctx, m.DB, p)
}

// timed returns the estimate with times, which it measures the CPU for, once for all runs of the same shape.
func (m *Machine) timed(ctx context.Context, r *config.Resolved, on device.OnCPU) (*forecast.Estimate, error) {
	f := forecast.Of(r, 1)
	arch, err := forecast.Architecture(&r.Run)
	if err != nil {
		return nil, err
	}
	length, together := f.Batch(arch)
	trial := bench.TrialOf(arch, length, together)
	key := fmt.Sprintf("%s, %s, %s: %+v", on.Class(), on.Level(), on.Where(), trial)
	rates, known := m.rates[key]
	if !known {
		if trial, err = bench.Try(ctx, on, trial); err != nil {
			return nil, err
		}
		rates = forecast.RatesOf(trial)
		if m.rates == nil {
			m.rates = map[string]forecast.Rates{}
		}
		m.rates[key] = rates
	}
	f.Rates = &rates
	e, err := f.Estimate()
	return &e, err
}

// bf16Note warns of bf16 on a processor without instructions for it, and of emulated tensor cores; "" elsewhere.
func bf16Note(c *config.Run, be device.Device) string {
	on, cpu := be.(device.OnCPU)
	if !cpu || c.Model.DType != "bf16" {
		return ""
	}
	if c.Compute.Numerics == config.MatrixNumerics {
		cost, err := device.MatrixCost(on.Level())
		if err != nil {
			return ""
		}
		return fmt.Sprintf("the CPU emulates tensor cores: a product takes %.1f times as long as with "+
			"model.dtype f32, measured now", cost)
	}
	cost, err := device.BF16Cost(on.Level())
	if err != nil || cost == 0 {
		return ""
	}
	return fmt.Sprintf("the kernels for %s have no instructions for bf16: a product takes %.1f times as long as "+
		"with model.dtype f32, measured now", on.Level(), cost)
}

// addPlan adds the facts of the plan.
func (r *Run) addPlan(ctx context.Context, db *store.DB, p *plan.Run) error {
	prompts := stage.PromptPlan(&p.Config.Run, p.External.Prompter)
	r.Prompts = &prompts
	if r.Estimate != nil {
		r.Estimate.Show(&p.Config.Run, prompts)
	}
	if note := stage.RewardNote(&p.Config.Run, p.External); note != "" {
		r.Notes = append(r.Notes, note)
	}
	r.XID, r.RID, r.Numerics = p.XID.String(), p.RID.String(), p.Numerics
	done := make([]map[string]ident.Digest, len(p.Stages))
	output := func(k int, role string) (ident.Digest, bool) { d, ok := done[k][role]; return d, ok }
	for i, s := range p.Stages {
		st := Stage{Kind: string(s.Kind), Label: s.Label, State: Execute}
		if hashed, _, ok := p.Inputs(i, output); ok {
			sid, err := p.SID(i, hashed)
			if err != nil {
				return err
			}
			if done[i], err = cachedOutputs(ctx, db, sid); err != nil {
				return err
			}
			st.SID = sid.String()
			if done[i] != nil {
				st.State = Cached
			} else if db != nil {
				if st.Why, err = explain.Planned(ctx, db, p, i, sid, hashed); err != nil {
					return err
				}
			}
		}
		r.Stages = append(r.Stages, st)
	}
	return nil
}

// cachedOutputs returns the outputs of a stage in the store, or nil if it is not there.
func cachedOutputs(ctx context.Context, db *store.DB, sid ident.Digest) (map[string]ident.Digest, error) {
	if db == nil {
		return nil, nil
	}
	hit, err := db.Hit(ctx, sid)
	if err != nil || hit == nil {
		return nil, err
	}
	m := map[string]ident.Digest{}
	for _, o := range hit.Outputs {
		m[o.Role] = o.Digest
	}
	return m, nil
}
