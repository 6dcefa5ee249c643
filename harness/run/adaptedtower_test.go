package run

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/plan"
	"exp/harness/stage"
	"exp/train/checkpoint"
)

// adaptedSets are imageSets of a run that trains adapters on the language model and on the vision tower.
func adaptedSets(dir, data string, more ...string) []string {
	return append(imageSets(dir, data, "model.vision=trained", "train.lora.dropout=0", "name=adapted",
		"eval.online.every_steps=0", "train.prompts_per_step=4"), more...)
}

// Adapters on a vision tower learn: a run that is stopped goes on to the same bits and verifies, the adapted maps of
// its folder's tower have changed and nothing else has, training goes on with the folder of adapters, whose first
// policy is the reference, an evaluation computes them next to the weights, and training all weights folds them in.
func TestAdaptedTower(t *testing.T) {
	dir, data := pictureFolder(t), squares(t)
	sets := adaptedSets(dir, data, "algo={kind: ppo}", "algo.critic.optim.lr=1e-2", "checkpoint.every_steps=1")
	l, other := newLab(t), newLab(t)
	p := l.plan(0, sets...)
	want, _ := l.execute(p)
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("verify: %+v", v)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stopping := &quiet{progress: func(stage string, done int) {
		if stage == "train" && done == 1 {
			cancel()
		}
	}}
	if _, err := other.try(ctx, other.plan(0, sets...), stopping); err == nil {
		t.Fatal("the run was not stopped")
	}
	other.options.Resume = true
	res, _ := other.execute(other.plan(0, sets...))
	sameOutputs(t, l.outputs(want.Run.ID), other.outputs(res.Run.ID))

	merged := filepath.Join(l.db.RunDir(want.Run.RID), stage.MergedDir)
	before, after := towerBytes(t, dir), towerBytes(t, merged)
	tower, _, err := checkpoint.ReadVision(dir)
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for _, x := range tower.Tensors() {
		adapted := len(x.Shape) == 2 && !tower.Table(x.Name)
		if got := before[x.Name] != after[x.Name]; got != adapted {
			t.Errorf("%s has changed: %t", x.Name, got)
		}
		if adapted {
			changed++
		}
	}
	if changed == 0 || len(after) != len(before) {
		t.Errorf("%d maps have changed, of %d tensors", changed, len(after))
	}
	for kind, use := range l.memoryOf(want.Run.ID) {
		t.Logf("%s: %.2f times the planned memory", kind, float64(use.Peak)/float64(use.Planned))
	}

	adapter := filepath.Join(l.db.RunDir(want.Run.RID), stage.AdapterDir)
	on := "model={init: pretrained, base: " + dir + ", adapter: " + adapter + ", vision: "
	startsAtReference(l, l.plan(0, adaptedSets(dir, data, "algo={kind: flowrl}", on+"trained}", "eval.final.suites=[]")...))
	q := l.plan(0, untrainedSets(dir, data, on+"frozen}")...)
	again, _ := l.execute(q)
	plain, _ := l.execute(l.plan(0, untrainedSets(dir, data)...))
	const drawn = "eval.gen[test]/completions"
	if a, b := l.outputs(again.Run.ID)[drawn], l.outputs(plain.Run.ID)[drawn]; a == b || a.IsZero() {
		t.Errorf("evaluation with adapters drew %s, without %s", a.Short(), b.Short())
	}
	if notes := strings.Join(stage.StartNotes(&q.Config.Run), "\n"); !strings.Contains(notes, "maps of the vision tower") {
		t.Errorf("notes %q", notes)
	}
	folded, _ := l.execute(l.plan(0, towerSets(dir, data, on+"trained}", "train.steps=0", "eval.final.suites=[]")...))
	if a, b := l.outputs(folded.Run.ID), l.outputs(want.Run.ID); a["merge[]/"+stage.MergedWeights] != b["merge[]/"+stage.MergedWeights] {
		t.Error("folding gives other weights than the merge stage")
	}
}

// untrainedSets are imageSets of a run that evaluates alone.
func untrainedSets(dir, data string, more ...string) []string {
	sets := slices.DeleteFunc(imageSets(dir, data), func(s string) bool { return strings.HasPrefix(s, "train.") })
	return append(append(sets, "name=evaluation", "train.steps=0", "data.train={source: none, size: 0}",
		"data.val={source: none, size: 0}", "eval.online.every_steps=0", "store.samples.train=none"), more...)
}

// Where fine-tuning trains all weights of the tower and preferences adapters that are folded in, adapters of training
// are on what these made of it: before its first update, training draws what it draws where all weights learn.
func TestAdaptedTowerAfterFineTuning(t *testing.T) {
	dir, data := pictureFolder(t), squares(t)
	_, pairs := taughtSquares(t, data)
	l := newLab(t)
	tuned := []string{"algo={kind: flowrl}", "train.steps=1", "eval.final.suites=[]", "train.prompts_per_step=4",
		"sft={steps: 1, problems_per_step: 4, optim: {lr: 0.1}}",
		"prefer={steps: 1, pairs_per_step: 2, lora: {rank: 1}, source: " + pairs + ", optim: {lr: 0.01}}"}
	p := l.plan(0, adaptedSets(dir, data, tuned...)...)
	res, _ := l.execute(p)
	whole, _ := l.execute(l.plan(0, towerSets(dir, data, tuned...)...))
	if a, b := l.trainSamples(res.Run.ID), l.trainSamples(whole.Run.ID); !slices.Equal(a, b) || len(a) == 0 {
		t.Errorf("with adapters training draws %v, with all weights %v", a, b)
	}
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("verify: %+v", v)
	}
	for kind, use := range l.memoryOf(res.Run.ID) {
		t.Logf("%s: %.2f times the planned memory", kind, float64(use.Peak)/float64(use.Planned))
	}
	before, after := towerBytes(t, dir), towerBytes(t, filepath.Join(l.db.RunDir(res.Run.RID), stage.MergedDir))
	for name, x := range after {
		if x == before[name] {
			t.Errorf("%s has not changed", name)
		}
	}
}

// What adapters on a vision tower cannot do is refused before any work, at its key.
func TestAdaptedTowersAreRefused(t *testing.T) {
	l, dir, data := newLab(t), pictureFolder(t), squares(t)
	run, _ := l.execute(l.plan(0, adaptedSets(dir, data, "algo={kind: grpo}", "train.steps=1", "eval.final.suites=[]")...))
	adapter := filepath.Join(l.db.RunDir(run.Run.RID), stage.AdapterDir)
	on := "model={init: pretrained, base: " + dir + ", adapter: " + adapter + ", vision: "
	refused := func(want string, sets ...string) {
		t.Helper()
		r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: sets})
		if err == nil {
			_, err = plan.New(r, 0, l.be.Class(), l.sources)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", sets, err, want)
		}
	}
	for _, tt := range []struct {
		sets []string
		want string
	}{
		{[]string{"train.lora.dropout=0.1"}, "adapters on the vision tower have no dropout"},
		{[]string{"train.lora.targets=[q_proj]"}, "none of these is a linear map of it; they are qkv, proj"},
		{[]string{"train.lora.targets=[q_proj, fc1]"}, "and in the vision tower qkv, proj"},
		{[]string{on + "frozen}"}, "they are on the vision tower, too, which model.vision: frozen leaves as it is"},
		{[]string{on + "trained}", "train.lora.targets=[q_proj, qkv]"}, "maps of the vision tower, train.lora.targets names 2"},
	} {
		refused(tt.want, adaptedSets(dir, data, append(tt.sets, "algo={kind: grpo}")...)...)
	}
	refused("frozen leaves the tower as it is, and nothing else computes", towerSets(dir, data, "algo={kind: grpo}", on+"frozen}")...)
}
