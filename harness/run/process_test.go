package run

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/forecast"
	"exp/harness/plan"
	"exp/harness/stage"
)

// primed are the settings of a run with a process reward model.
func primed(more ...string) []string {
	return append([]string{"algo={kind: prime, prime: {optim: {lr: 2e-3}}}", "eval.online.every_steps=0"}, more...)
}

// A run with a process reward model has the memory that its plan says, verifies, and goes on to the same bits.
func TestProcessRewardModel(t *testing.T) {
	l := startedLab(t)
	p := l.plan(1, primed()...)
	res, _ := l.execute(p)
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("verification: %+v", v)
	}
	curves, err := l.db.Metrics(context.Background(), res.Run.ID, "reward_model/dpo_loss", 1, 9)
	if err != nil || len(curves) != 1 || len(curves[0].Values) != 4 {
		t.Errorf("losses %+v, %v", curves, err)
	}
	l.options.Resume, l.options.Parent = true, &res.Run
	child, q := l.execute(l.plan(1, primed("train.steps=6", "name=longer")...))
	if len(q.notes) != 2 || q.notes[1] != "replayed 3–4: 2/2 steps bit-identical" {
		t.Errorf("notes %q, warnings %q", q.notes, q.warnings)
	}
	whole := startedLab(t)
	if want, _ := whole.execute(whole.plan(1, primed("train.steps=6")...)); child.Run.Chain != want.Run.Chain {
		t.Error("a run that was extended has another chain than one that was not")
	}
	for _, sets := range [][]string{nil, {"algo.prime.prompts_per_update=8", "compute.recompute=true"}, {"train.lora={rank: 2, alpha: 4}"},
		{"algo.prime={loss: dpo, update: after}", "model.dtype=bf16"}} {
		for kind, use := range memoryOfRun(t, "smoke_cpu.yaml", primed(append(sets, "compute.threads=2")...)) {
			if x := float64(use.Peak) / float64(use.Planned); kind == string(config.Train) && !(x <= 1.05 && x > 0.8) {
				t.Errorf("%v: the peak is %.2f of the plan", sets, x)
			}
		}
	}
	if err := Extendable(smoke(t, primed("algo.prime.optim.schedule=cosine")...)); !errors.Is(err, ErrSchedule) {
		t.Errorf("a schedule of the process reward model: %v", err)
	}
	e, err := forecast.Of(smoke(t, primed()...), 1).Estimate()
	if err != nil {
		t.Fatal(err)
	}
	if weights, policy := partOf(e.Memory, "process reward model: weights"), partOf(e.Memory, "policy: weights"); weights != policy || weights == 0 {
		t.Errorf("the plan has %d bytes for the process reward model, %d for the policy", weights, policy)
	}
}

// partOf returns a part of a plan's memory.
func partOf(list []forecast.Part, name string) int64 {
	for _, p := range list {
		if p.Name == name {
			return p.Bytes
		}
	}
	return 0
}

// The process reward model may start from a folder of the policy's architecture: its first rewards are then not 0, and
// another folder makes another run.
func TestProcessRewardModelOfFolder(t *testing.T) {
	l := startedLab(t)
	folder := func(sets ...string) string {
		res, _ := l.execute(l.plan(0, append([]string{"name=prm", "algo.kind=grpo", "train={steps: 1, optim: {lr: 2e-2}}",
			"eval.online.every_steps=0"}, sets...)...))
		return filepath.Join(l.db.RunDir(res.Run.RID), stage.MergedDir)
	}
	one, two := folder(), folder("model.seed=5")
	with := func(dir string) []string {
		return primed("algo.prime={update: after, model: "+dir+"}", "train.steps=1")
	}
	p := l.plan(1, with(one)...)
	res, _ := l.execute(p)
	for name, want := range map[string]bool{"reward_model/raw_reward": true, "kl/ref_k1": false} {
		curves, err := l.db.Metrics(context.Background(), res.Run.ID, name, 1, 1)
		if err != nil || len(curves) != 1 || (curves[0].Values[0] != 0) != want {
			t.Errorf("%s of the first step: %+v, %v", name, curves, err)
		}
	}
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("verification: %+v", v)
	}
	if other := l.plan(1, with(two)...); other.RID == p.RID || other.XID == p.XID {
		t.Error("another process reward model is the same run")
	} else if again, _ := l.execute(other); l.stageOf(again.Run.ID, "train").Status != store.Done {
		t.Error("a run with another process reward model takes over what the first one taught")
	}
	for want, sets := range map[string][]string{
		"a process reward model must have the same": with(l.teacher()),
		"no such file": with(filepath.Join(t.TempDir(), "nothing")),
	} {
		_, err := stage.Externals(smoke(t, sets...))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
		if _, err := plan.New(smoke(t, sets...), 0, l.be.Class(), l.sources); err == nil {
			t.Errorf("%s: planned", want)
		}
	}
	var missing []string
	missed := smoke(t, with(filepath.Join(t.TempDir(), "nothing"))...)
	lackFiles(&missed.Run, nil, func(what, do string) { missing = append(missing, what+do) })
	if len(missing) != 1 || !strings.HasPrefix(missing[0], "the weights of the process reward model ") ||
		!strings.HasSuffix(missing[0], "--set algo.prime.model=PATH") {
		t.Errorf("a folder that is not there: %q", missing)
	}
}
