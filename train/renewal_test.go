package train

import (
	"context"
	"slices"
	"strings"
	"testing"

	"exp/train/model"
)

// A renewed reference is the policy of the step before, bit for bit, until the policy learns again.
func TestRenewsReference(t *testing.T) {
	for _, kind := range []Kind{GRPO, FlowRL} { // FlowRL's policy has a head behind its weights
		r := newToyRun(t, kind, 2)
		if kind == FlowRL { // and a vision tower, whose features the reference must compute again
			for i := range r.problems {
				r.problems[i].Prompt = []string{"C", "AB", "CA"}[i%3]
			}
			r.tower()
		}
		r.cfg.Steps, r.cfg.Policy.LR, r.cfg.Renewal = 5, 1e-2, Renewal{Every: 2, Mix: 1}
		r.run()
		for i, s := range r.steps {
			if got := metric(t, s, "kl/ref_age"); got != float64(i%2) {
				t.Errorf("%s: step %d: age %v", kind, i+1, got)
			}
			if got := metric(t, s, "kl/ref_k3"); (got == 0) != (i%2 == 0) {
				t.Errorf("%s: step %d: distance to the reference is %v", kind, i+1, got)
			}
		}
		r.cfg.Steps = 4
		r.steps = nil
		r.run()
		ref := r.host(r.ref.Params())
		if at := differentBit(ref, r.params()[:len(ref)]); at >= 0 {
			t.Errorf("%s: reference and policy differ at %d after a renewal", kind, at)
		}
	}
}

// With a mix the reference moves part of the way, and the optimizer restarts only if told to.
func TestMixesReference(t *testing.T) {
	r := newToyRun(t, GRPO, 1)
	r.cfg.Steps, r.cfg.Policy.LR, r.cfg.Renewal = 2, 1e-2, Renewal{Every: 2, Mix: 0.25}
	tr := r.start()
	start := r.host(r.ref.Params())
	if err := tr.Run(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	policy, ref := r.params(), r.host(r.ref.Params())
	moved := false
	for i := range ref {
		want := float32(0.25*float64(policy[i]) + 0.75*float64(start[i]))
		moved = moved || want != start[i]
		if ref[i] != want {
			t.Fatalf("parameter %d is %v, want a quarter of %v and three of %v", i, ref[i], policy[i], start[i])
		}
	}
	if !moved {
		t.Error("nothing has moved")
	}
	m := tr.policy.opt.Moments()[0].Buffer
	if tr.State().PolicyUpdates != 4 || !slices.ContainsFunc(r.host(m), func(x float32) bool { return x != 0 }) {
		t.Errorf("the optimizer has taken %d updates", tr.State().PolicyUpdates)
	}
	r.cfg.Renewal.ResetOptimizer = true
	r.run()
	moments := r.trainer.policy.opt.Moments()
	m, v := moments[0].Buffer, moments[1].Buffer
	for _, x := range append(r.host(m), r.host(v)...) {
		if x != 0 {
			t.Fatal("moments remain")
		}
	}
	if n := r.trainer.State().PolicyUpdates; n != 0 {
		t.Errorf("%d updates after a reset", n)
	}
}

func TestStopAndContinueRenewed(t *testing.T) {
	for _, kind := range []Kind{GRPO, FlowRL} {
		whole := newToyRun(t, kind, 2)
		whole.cfg.Steps, whole.cfg.Staleness = 6, 1
		whole.cfg.Renewal = Renewal{Every: 2, Mix: 0.6, ResetOptimizer: kind == GRPO}
		whole.run()
		continues(t, whole)
		plain := newToyRun(t, kind, 2)
		plain.cfg.Steps, plain.cfg.Staleness = 6, 1
		plain.run()
		if trace(plain.steps) == trace(whole.steps) {
			t.Error("a renewal changes nothing")
		}
	}
}

func TestRenewalRefuses(t *testing.T) {
	for want, change := range map[string]func(r *toyRun){
		"share in a renewed reference": func(r *toyRun) { r.cfg.Renewal.Mix = 0 },
		"nothing reads the reference":  func(r *toyRun) { r.cfg.KL.LossCoef = 0 },
		"their base":                   func(r *toyRun) { r.adapters = &model.Adapters{Rank: 2, Alpha: 2, Targets: r.model.AdapterTargets()} },
	} {
		r := newToyRun(t, GRPO, 1)
		policy := newToyRun(t, GRPO, 1)
		r.cfg.Renewal = Renewal{Every: 2, Mix: 1}
		change(r)
		policy.adapters = r.adapters
		_, err := New(r.cfg, Parts{Backend: r.be, Problems: r.problems, Prompt: letters{}.prompt, Seed: hashSeed(1),
			Policy: policy.start().Policy})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
