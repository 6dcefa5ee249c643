package run

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/experiments/keep"
	"exp/harness/prompt/prompttest"
	"exp/harness/stage"
	"exp/train/checkpoint"
)

// towerSets are imageSets of a run that trains all weights with the vision tower.
func towerSets(dir, data string, more ...string) []string {
	sets := slices.DeleteFunc(imageSets(dir, data), func(s string) bool { return strings.HasPrefix(s, "train.lora=") })
	return append(append(sets, "model.vision=trained", "name=tower", "eval.online.every_steps=0"), more...)
}

// towerBytes returns the contents of a folder's vision tower by tensors.
func towerBytes(t *testing.T, dir string) map[string]string {
	t.Helper()
	x, err := checkpoint.OpenTower(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	list := map[string]string{}
	for _, s := range x.Sources() {
		var b bytes.Buffer
		if err := s.Raw(&b); err != nil {
			t.Fatal(err)
		}
		list[s.Name] = fmt.Sprint(s.DType, s.Shape) + b.String()
	}
	return list
}

// A vision tower learns in fine-tuning, from preferences and in training, and a critic's, too: a run that is stopped
// goes on to the same bits and verifies, its folder has the trained tower, and a checkpoint's has its step's.
// An evaluation of the run's folder draws what the run's evaluation drew.
func TestTrainedTower(t *testing.T) {
	dir, data := pictureFolder(t), squares(t)
	_, pairs := taughtSquares(t, data)
	sets := towerSets(dir, data, "algo={kind: ppo}", "algo.critic.optim.lr=1e-2", "checkpoint.every_steps=1",
		"train.prompts_per_step=4", "sft={steps: 1, problems_per_step: 4, optim: {lr: 0.01}}",
		"prefer={steps: 1, pairs_per_step: 2, source: "+pairs+", optim: {lr: 0.01}}")
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
	if len(before) != len(after) {
		t.Errorf("the tower has %d tensors, the source's %d", len(after), len(before))
	}
	for name, x := range after {
		if x == before[name] {
			t.Errorf("%s has not changed", name)
		}
	}
	saved, err := keep.Saved(l.db, want.Run.RID)
	if err != nil || len(saved) == 0 {
		t.Fatalf("%d checkpoints, %v", len(saved), err)
	}
	last := saved[len(saved)-1] // of step 1 of 2
	earlier := filepath.Join(t.TempDir(), "earlier")
	e := &stage.Env{Config: p.Config, Backend: l.be, Blobs: l.db.Blobs}
	if err := stage.MergeCheckpoint(e, stage.Inputs{}, last.Dir, earlier); err != nil {
		t.Fatal(err)
	}
	for name, x := range towerBytes(t, earlier) {
		if x == before[name] || x == after[name] {
			t.Errorf("%s after step %d is the source's or the last", name, last.Step)
		}
	}
	q := l.plan(0, append(slices.DeleteFunc(imageSets(merged, data), func(s string) bool {
		return strings.HasPrefix(s, "train.")
	}), "name=evaluation", "train.steps=0", "data.train={source: none, size: 0}", "data.val={source: none, size: 0}",
		"eval.online.every_steps=0", "store.samples.train=none")...)
	again, _ := l.execute(q)
	const drawn = "eval.gen[test]/completions"
	if a, b := l.outputs(want.Run.ID)[drawn], l.outputs(again.Run.ID)[drawn]; a != b || a.IsZero() {
		t.Errorf("evaluation of the run drew %s, of its folder %s", a.Short(), b.Short())
	}
	for kind, use := range l.memoryOf(want.Run.ID) {
		t.Logf("%s: %.2f times the planned memory", kind, float64(use.Peak)/float64(use.Planned))
	}
}

// Towers of classes whose tensors have other names and other places learn, too.
func TestTrainedTowersOfClasses(t *testing.T) {
	l, data := newLab(t), squares(t)
	for i, tt := range []struct {
		conf string
		more []string
	}{
		{prompttest.TiledPictureConfig, []string{"algo={kind: flowrl}"}},
		{prompttest.SquarePictureConfig, nil},
		{qwen35Config, []string{"model.part=images", "train.optim={kind: muon, lr: 0.01}"}},
	} {
		dir := prompttest.PictureFolder(t, tt.conf)
		p := l.plan(0, towerSets(dir, data, append(tt.more, fmt.Sprint("name=class", i), "train.steps=1",
			"train.prompts_per_step=4", "eval.final.suites=[]")...)...)
		res, _ := l.execute(p)
		if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
			t.Errorf("class %d: verify: %+v", i, v)
		}
		before, after := towerBytes(t, dir), towerBytes(t, filepath.Join(l.db.RunDir(res.Run.RID), stage.MergedDir))
		for name, x := range after {
			if x == before[name] {
				t.Errorf("class %d: %s has not changed", i, name)
			}
		}
		if len(after) == 0 || len(after) != len(before) {
			t.Errorf("class %d: the tower has %d tensors, the source's %d", i, len(after), len(before))
		}
	}
}
