package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/harness/config"
)

// Pass rates are measured after the stages that learn from examples, with their weights, and training takes the
// problems that select keeps. Rates from rows need no stage of their own.
func TestPassRateStages(t *testing.T) {
	p := newPlan(t, 3, "data.pass_rate.samples=4", "eval.final.suites=[]")
	if got := strings.Join(names(p), " "); got != "prepare init sft pass_rate select train merge" {
		t.Errorf("stages %s", got)
	}
	from := func(kind config.Stage, role string) string {
		i := slices.IndexFunc(p.Stages, func(s Stage) bool { return s.Kind == kind })
		for _, n := range p.Stages[i].Needs {
			if n.Role == role {
				return fmt.Sprintf("%s of %s", n.Output, p.Stages[n.From].Kind)
			}
		}
		return "none"
	}
	for _, tt := range []struct {
		kind       config.Stage
		role, want string
	}{
		{config.SFT, config.RoleTrain, "problems/train of prepare"},
		{config.PassRate, config.RoleTrain, "problems/train of prepare"},
		{config.PassRate, config.RoleWeights, "weights of sft"},
		{config.Select, config.RoleTrain, "problems/train of prepare"},
		{config.Select, config.RolePassRates, "pass rates of pass_rate"},
		{config.Train, config.RoleTrain, "problems/train of select"},
		{config.Train, config.RolePassRates, "none"},
	} {
		if got := from(tt.kind, tt.role); got != tt.want {
			t.Errorf("%s takes its %s from %s, want %s", tt.kind, tt.role, got, tt.want)
		}
	}
	if got := strings.Join(names(newPlan(t, 0, "data.pass_rate.samples=0")), " "); strings.Contains(got, "select") {
		t.Errorf("without pass rates: %s", got)
	}
}

// What measures pass rates has an id of its own: neither the run's seed, nor the range, nor a setting of the updates
// changes it. The range changes select, which has no numerics.
func TestPassRateIDs(t *testing.T) {
	fake := func(stage int, role string) (ident.Digest, bool) {
		return ident.Sum([]byte(fmt.Sprint(stage, role))), true
	}
	sid := func(kind config.Stage, seed int64, sets ...string) ident.Digest {
		t.Helper()
		p := newPlan(t, seed, append([]string{"data.pass_rate.samples=4"}, sets...)...)
		i := slices.IndexFunc(p.Stages, func(s Stage) bool { return s.Kind == kind })
		hashed, _, ok := p.Inputs(i, fake)
		d, err := p.SID(i, hashed)
		if !ok || err != nil {
			t.Fatal(err)
		}
		return d
	}
	measured, chosen := sid(config.PassRate, 3), sid(config.Select, 3)
	for _, tt := range []struct {
		seed         int64
		set          string
		other, moved bool // another id of pass_rate, of select
	}{
		{4, "name=x", false, false},
		{3, "data.pass_rate.max=0.5", false, true},
		{3, "train.optim.lr=1e-4", false, false},
		{3, "rollout.n=8", false, false},
		{3, "reward.wrong=-1", false, false},
		{3, "compute.threads=1", false, false},
		{3, "data.pass_rate.samples=8", true, false},
		{3, "data.pass_rate.seed=1", true, false},
		{3, "rollout.top_p=0.9", true, false},
		{3, "rollout.max_new_tokens=20", true, false},
		{3, "task.countdown.use=all", true, false},
	} {
		if got := sid(config.PassRate, tt.seed, tt.set) != measured; got != tt.other {
			t.Errorf("seed %d, %s: another id of pass_rate: %t, want %t", tt.seed, tt.set, got, tt.other)
		}
		if got := sid(config.Select, tt.seed, tt.set) != chosen; got != tt.moved {
			t.Errorf("seed %d, %s: another id of select: %t, want %t", tt.seed, tt.set, got, tt.moved)
		}
	}
	p := newPlan(t, 3, "data.pass_rate.samples=4")
	i := slices.IndexFunc(p.Stages, func(s Stage) bool { return s.Kind == config.Select })
	hashed, _, _ := p.Inputs(i, fake)
	p.Numerics = "another machine"
	if d, err := p.SID(i, hashed); err != nil || d != chosen {
		t.Errorf("select depends on the machine: %v", err)
	}
	if newPlan(t, 3).XID == p.XID || newPlan(t, 3).XID != newPlan(t, 3, "data.pass_rate.samples=0").XID {
		t.Error("an experiment's id does not tell whether it chooses problems")
	}
}
