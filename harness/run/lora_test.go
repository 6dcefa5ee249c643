package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/harness/forecast"
	"exp/harness/plan"
	"exp/harness/stage"
	"exp/train/checkpoint"
	"exp/train/model"
)

// bf16Folder is the merged folder of a run, with bf16 weights: what a published model is.
func bf16Folder(l *lab) string {
	l.t.Helper()
	res, _ := l.execute(chatRun(l, testTemplate, "train.steps=0", "merge.dtype=bf16", "model.arch.qkv_bias=true"))
	return filepath.Join(l.db.RunDir(res.Run.RID), stage.MergedDir)
}

// publishedFolder is bf16Folder of a store of its own, made once per process. Nobody may change it.
func publishedFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(stores, "published")
	if _, err := os.Stat(dir); err != nil {
		if err := os.CopyFS(dir, os.DirFS(bf16Folder(newLab(t)))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// loraRun plans training of adapters on a folder.
func loraRun(l *lab, dir, data, algorithm string) *plan.Run {
	l.t.Helper()
	return l.plan(0, loraSets(dir, data, algorithm)...)
}

func loraSets(dir, data, algorithm string) []string {
	sets := []string{"name=lora", "task={kind: math, math: {grader: math_dapo}}", "reward={correct: 1, wrong: -1}", "sft.steps=0", "train.steps=3",
		"data.max_prompt_tokens=64", "data.filter_overlong=true", "tokenizer.kind=model", "algo={kind: " + algorithm + "}",
		"model={init: pretrained, base: " + dir + "}", "train.lora={rank: 2, alpha: 4, dropout: 0.1}", "train.optim.lr=1e-2"}
	if algorithm == "ppo" {
		sets = append(sets, "algo.critic.optim.lr=1e-2")
	}
	for _, split := range []string{"train", "val", "test"} {
		sets = append(sets, fmt.Sprintf("data.%s={source: %s, size: 0}", split, data))
	}
	return sets
}

// Adapters on a folder's weights: the folder is named and not copied, policy, reference and
// critic share it, what the sampler draws has the trainer's bits (every step checks it), and
// the merged folder has the weights' type; the adapters lie next to it in PEFT's layout.
func TestLoRA(t *testing.T) {
	l := newLab(t)
	dir, data := bf16Folder(l), verlFile(t)
	for _, algorithm := range []string{"flowrl", "ppo", "grpo"} {
		p := loraRun(l, dir, data, algorithm)
		res, q := l.execute(p)
		if len(q.warnings) > 3 { // the problem that is too long; training has the problems of both evaluations
			t.Errorf("%s: %q", algorithm, q.warnings)
		}
		out := l.outputs(res.Run.ID)
		if info, err := os.Stat(l.db.Blobs.Path(out["init[]/weights"])); err != nil || info.Size() > 4096 {
			t.Errorf("%s: the start takes %v in the store, %v", algorithm, info, err)
		}
		merged := filepath.Join(l.db.RunDir(res.Run.RID), stage.MergedDir)
		x, err := checkpoint.OpenFolder(merged)
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := x.Uniform(); !ok || d != checkpoint.BF16 {
			t.Errorf("%s: merged weights are %q", algorithm, d)
		}
		x.Close()
		c, err := checkpoint.ReadConfig(merged)
		if err != nil {
			t.Fatal(err)
		}
		a, err := checkpoint.ReadAdapters(filepath.Join(l.db.RunDir(res.Run.RID), stage.AdapterDir), c)
		if err != nil || a.Shape.Rank != 2 || a.Shape.Alpha != 4 || len(a.Shape.Targets) != 7 || !a.Uniform {
			t.Errorf("%s: adapters %+v, %v", algorithm, a, err)
		}
		if algorithm == "grpo" {
			if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
				t.Errorf("verify: %+v", v)
			}
		}
		if again, _ := l.execute(loraRun(l, dir, data, algorithm)); again.Executed != 0 {
			t.Errorf("%s: the same again executes %d stages", algorithm, again.Executed)
		}
	}
}

// Adapters trained after sft belong to the fine-tuned weights, so their folder must not name model.base.
func TestLoRAAfterFineTuning(t *testing.T) {
	l := newLab(t)
	dir, data := publishedFolder(t), verlFile(t)
	base := func(sets ...string) string {
		res, q := l.execute(l.plan(0, append(loraSets(dir, data, "grpo"), sets...)...))
		name, err := checkpoint.AdapterBase(filepath.Join(l.db.RunDir(res.Run.RID), stage.AdapterDir))
		if err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(q.warnings, func(w string) bool { return strings.Contains(w, "for the weights after sft") })
		if said != (name == "") {
			t.Errorf("base %q: %q", name, q.warnings)
		}
		return name
	}
	if name := base("train.steps=1"); name != dir {
		t.Errorf("base %q, want %q", name, dir)
	}
	if name := base("train.steps=1", "sft={steps: 2, problems_per_step: 4, max_tokens: 60, optim: {lr: 0.01}}", "sft.source="+conversationFile(t, "99")); name != "" {
		t.Errorf("after sft the base is %q", name)
	}
}

// sft makes float32 weights, so adapters after it are on a base of twice the bytes of a BF16 folder.
func TestLoRAPlanAfterFineTuning(t *testing.T) {
	l := newLab(t)
	dir, data := publishedFolder(t), verlFile(t)
	frozen := func(sets ...string) int64 {
		e, err := forecast.Of(l.plan(0, append(loraSets(dir, data, "grpo"), sets...)...).Config, 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		return e.Memory[slices.IndexFunc(e.Memory, func(p forecast.Part) bool { return p.Name == "frozen weights" })].Bytes
	}
	c, err := checkpoint.ReadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := model.Parameters(c, model.Heads{LM: true})
	plain, tuned := frozen(), frozen("sft={steps: 1, problems_per_step: 4, optim: {lr: 0.01}}",
		"sft.source="+conversationFile(t, "99"))
	if least := int64(n) * 19 / 10; tuned-plain < least {
		t.Errorf("frozen weights: %d bytes, after sft %d; want at least %d more", plain, tuned, least)
	}
}

// PEFT does not load adapters on the dense layers of a mixture of experts, so the merge warns of them.
func TestLoRABesideExperts(t *testing.T) {
	l := newLab(t)
	plain, data := publishedFolder(t), verlFile(t)
	experts := glmFolder(t, plain)
	for _, x := range []struct {
		dir, targets string
		warns        bool
	}{{experts, "[all]", true}, {experts, "[up_proj]", true}, {experts, "[q_proj, o_proj]", false}, {plain, "[all]", false}} {
		_, q := l.execute(l.plan(0, append(loraSets(x.dir, data, "grpo"), "train.steps=1",
			"train.lora={rank: 2, alpha: 4, targets: "+x.targets+"}")...))
		said := slices.ContainsFunc(q.warnings, func(w string) bool { return strings.Contains(w, "PEFT does not load") })
		if said != x.warns {
			t.Errorf("%s of %s: warnings %q", x.targets, x.dir, q.warnings)
		}
	}
}

// Maps that the model does not have are refused before anything runs.
func TestLoRATargets(t *testing.T) {
	l := newLab(t)
	p := loraRun(l, publishedFolder(t), verlFile(t), "grpo")
	p.Config.Run.Train.LoRA.Targets = []string{"q_proj", "qkv_proj"}
	_, err := stage.Externals(p.Config)
	if err == nil || !strings.Contains(err.Error(), `adapters cannot target "qkv_proj"`) || !strings.Contains(err.Error(), "gate_proj") {
		t.Errorf("targets of another family: %v", err)
	}
}

// A folder whose weights changed since is refused, not trained on.
func TestChangedWeights(t *testing.T) {
	l := newLab(t)
	dir, data := bf16Folder(l), verlFile(t)
	p := loraRun(l, dir, data, "grpo")
	path := filepath.Join(dir, "model.safetensors")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil { // it may be a link to a blob
		t.Fatal(err)
	}
	raw[len(raw)-1] ^= 0x40
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := l.try(t.Context(), p, &quiet{}); err == nil {
		t.Error("trained on weights that the plan did not see")
	}
	if v := l.verify(p, VerifyOptions{Level: LevelScore}); v.OK || v.Findings[0].Where != "model.base" {
		t.Errorf("verify reads the source again: %+v", v)
	}
	var none ident.Digest
	if q := loraRun(l, dir, data, "grpo"); q.External.Weights == p.External.Weights || q.External.Weights == none {
		t.Error(fmt.Sprint("changed weights have the digest ", q.External.Weights))
	}
}

// sharded cuts the weights of a folder into files of about half the size and returns the
// new folder.
func sharded(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "sharded")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(to, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	x, err := checkpoint.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	index := map[string]map[string]string{"weight_map": {}}
	sources := x.Sources()
	for i, part := range [][]checkpoint.Source{sources[:len(sources)/2], sources[len(sources)/2:]} {
		name := fmt.Sprintf("model-%05d-of-00002.safetensors", i+1)
		f, err := os.Create(filepath.Join(to, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(checkpoint.WriteSafetensors(f, part), f.Close()); err != nil {
			t.Fatal(err)
		}
		for _, s := range part {
			index["weight_map"][s.Name] = name
		}
	}
	raw, err := json.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, "model.safetensors.index.json"), raw, 0o644); err != nil {
		t.Fatal(err)
	}
	return to
}

// A model in shards is merged into shards, which are evaluated, verified and taken from
// the cache like one file. One file of the same weights gives the same results.
func TestShards(t *testing.T) {
	l := newLab(t)
	one, data := publishedFolder(t), verlFile(t)
	whole, _ := l.execute(loraRun(l, one, data, "grpo"))
	wholeScores := l.outputs(whole.Run.ID)["eval.score[test]/scores"]

	l = newLab(t) // where nothing is taken from the cache
	many := sharded(t, one)
	p := loraRun(l, many, data, "grpo")
	res, _ := l.execute(p)
	out := l.outputs(res.Run.ID)
	merged := filepath.Join(l.db.RunDir(res.Run.RID), stage.MergedDir)
	files, err := filepath.Glob(filepath.Join(merged, "model-0000?-of-0000?.safetensors"))
	if err != nil || len(files) < 2 {
		t.Fatalf("merged weights are in %q", files)
	}
	for _, f := range files {
		if out["merge[]/"+filepath.Base(f)].IsZero() {
			t.Errorf("%s is not an output", filepath.Base(f))
		}
	}
	if got := out["eval.score[test]/scores"]; got != wholeScores || got.IsZero() {
		t.Errorf("scores %s, of one file %s", got, wholeScores)
	}
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("verify: %+v", v)
	}
	before := names(t, merged)
	if err := os.RemoveAll(merged); err != nil {
		t.Fatal(err)
	}
	if err := stage.Materialize(&stage.Env{Blobs: l.db.Blobs, Dir: l.db.RunDir(res.Run.RID)}, outputsOf(l.stageOf(res.Run.ID, "merge").Outputs)); err != nil {
		t.Fatal(err)
	}
	if after := names(t, merged); !slices.Equal(after, before) {
		t.Errorf("from the cache there are %q, the stage wrote %q", after, before)
	}
	flip(t, l.db.Blobs.Path(out["merge[]/"+filepath.Base(files[1])]))
	if v := l.verify(p, VerifyOptions{Level: LevelBlobs}); v.OK {
		t.Error("a shard that was changed is not found")
	}
}

// names lists a folder.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}
