package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/experiments/store"
	"exp/harness/forecast"
	"exp/harness/plan"
	"exp/harness/stage"
	"exp/train/checkpoint"
)

// trainedAdapter is a run of adapters on a folder, and where they lie.
func trainedAdapter(l *lab, dir, data string) (res Result, adapter string) {
	l.t.Helper()
	res, _ = l.execute(loraRun(l, dir, data, "flowrl"))
	return res, filepath.Join(l.db.RunDir(res.Run.RID), stage.AdapterDir)
}

// startsAtReference checks that a run's first policy is its reference policy, bit for
// bit: the log-ratio that KL is computed of is zero.
func startsAtReference(l *lab, p *plan.Run) Result {
	l.t.Helper()
	res, _ := l.execute(p)
	steps, err := recordedSteps(l.t.Context(), l.db, res.Run.ID, store.AllSteps)
	if err != nil {
		l.t.Fatal(err)
	}
	for i, s := range steps[:2] {
		kl, ok := s.Det.Metrics["kl/ref_k1"]
		if !ok || (kl == 0) != (i == 0) {
			l.t.Errorf("step %d: KL to the reference is %v (there: %v)", i+1, kl, ok)
		}
	}
	return res
}

// Training continues adapters: policy and reference begin with them, samples have the
// trainer's bits (every step checks it), they are part of the run's id, verify reads them
// again, and a changed adapter is refused.
func TestTrainingGoesOnWithAdapters(t *testing.T) {
	l := newLab(t)
	dir, data := publishedFolder(t), verlFile(t)
	_, adapter := trainedAdapter(l, dir, data)
	on := "model={init: pretrained, base: " + dir + ", adapter: " + adapter + "}"
	p := adapterRun(l, dir, data, on)
	if p.RID == loraRun(l, dir, data, "flowrl").RID {
		t.Error("adapters do not change the run's id")
	}
	res := startsAtReference(l, p)
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("verify: %+v", v)
	}
	if notes := strings.Join(stage.StartNotes(&p.Config.Run), "\n"); !strings.Contains(notes, "training continues it") {
		t.Errorf("notes %q", notes)
	}
	out, err := l.db.Blobs.Bytes(l.outputs(res.Run.ID)["init[]/weights"])
	if err != nil || !bytes.Contains(out, []byte(`"adapter":"`+p.External.Adapter.String())) {
		t.Errorf("init made %s, %v", out, err)
	}

	// The folder has other adapters now: the plan's id changes, and the old plan is refused.
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(adapter)); err != nil {
		t.Fatal(err)
	}
	q := adapterRun(l, dir, data, "model={init: pretrained, base: "+dir+", adapter: "+copied+"}")
	if q.RID != p.RID {
		t.Error("the place of the adapters is part of the run's id")
	}
	path := filepath.Join(copied, "adapter_model.safetensors")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-1] ^= 0x40
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	if v := l.verify(q, VerifyOptions{Level: LevelFull}); v.OK {
		t.Error("verify did not read the adapters again")
	}
	l.options.NoCache = true
	if _, err := l.try(t.Context(), q, &quiet{}); err == nil {
		t.Error("trained on adapters that the plan did not see")
	}
	if adapterRun(l, dir, data, "model={init: pretrained, base: "+dir+", adapter: "+copied+"}").RID == p.RID {
		t.Error("changed adapters have the same id")
	}
}

// adapterRun is loraRun with settings over it.
func adapterRun(l *lab, dir, data string, sets ...string) *plan.Run {
	l.t.Helper()
	return l.plan(0, append(loraSets(dir, data, "flowrl"), sets...)...)
}

// fullRun is adapterRun without adapters that are trained.
func fullRun(l *lab, dir, data string, sets ...string) *plan.Run {
	l.t.Helper()
	all := slices.DeleteFunc(loraSets(dir, data, "flowrl"), func(s string) bool { return strings.HasPrefix(s, "train.lora") })
	return l.plan(0, append(all, sets...)...)
}

// Where all weights are trained the adapters are folded in first: the very weights that
// the merge stage makes of base and adapters, for policy and reference alike.
func TestAdaptersFoldIn(t *testing.T) {
	l := newLab(t)
	dir, data := publishedFolder(t), verlFile(t)
	trained, adapter := trainedAdapter(l, dir, data)
	on := "model={init: pretrained, base: " + dir + ", adapter: " + adapter + "}"
	startsAtReference(l, fullRun(l, dir, data, on))

	folded, _ := l.execute(fullRun(l, dir, data, on, "train.steps=0"))
	want, got := l.outputs(trained.Run.ID)["merge[]/"+stage.MergedWeights], l.outputs(folded.Run.ID)["merge[]/"+stage.MergedWeights]
	if want != got || want.IsZero() {
		t.Errorf("folding gives weights %s, the merge stage %s", got, want)
	}
}

// An evaluation computes adapters next to the weights; what they are on has other
// completions without them.
func TestAdaptersEvaluate(t *testing.T) {
	l := newLab(t)
	dir, data := publishedFolder(t), verlFile(t)
	_, adapter := trainedAdapter(l, dir, data)
	only := func(adapter string) *plan.Run {
		return fullRun(l, dir, data, "model={init: pretrained, base: "+dir+", adapter: "+adapter+"}", "train.steps=0", "data.train={source: none, size: 0}")
	}
	p := only(adapter)
	with, _ := l.execute(p)
	without, _ := l.execute(only("none"))
	a, b := l.outputs(with.Run.ID)["eval.gen[test]/completions"], l.outputs(without.Run.ID)["eval.gen[test]/completions"]
	if a.IsZero() || b.IsZero() || a == b {
		t.Errorf("completions %s with adapters, %s without", a, b)
	}
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("verify: %+v", v)
	}
	if info, err := os.Stat(l.db.Blobs.Path(l.outputs(with.Run.ID)["init[]/weights"])); err != nil || info.Size() > 4096 {
		t.Errorf("the start takes %v in the store, %v", info, err)
	}
	if e, err := forecast.Of(p.Config, 1).Estimate(); err != nil || len(e.Memory) < 2 || e.Memory[1].Name != "adapters" {
		t.Errorf("memory %+v, %v", e.Memory, err)
	}
}

// Adapters of another shape are refused, with what to set.
func TestAdaptersOfAnotherShape(t *testing.T) {
	l := newLab(t)
	dir, data := publishedFolder(t), verlFile(t)
	_, adapter := trainedAdapter(l, dir, data)
	on := "model={init: pretrained, base: " + dir + ", adapter: " + adapter + "}"
	for _, tt := range []struct{ set, want string }{
		{"train.lora={rank: 4, alpha: 8}", "they have rank 2, train.lora.rank is 4"},
		{"train.lora={rank: 2, alpha: 8}", "multiplied by 2, train.lora's alpha and rank make 4"},
		{"train.lora={rank: 2, alpha: 4, targets: [q_proj]}", "train.lora.targets are q_proj"},
	} {
		_, err := stage.Externals(smoke(t, append(loraSets(dir, data, "flowrl"), on, tt.set)...))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "rank: 2, alpha: 4, targets: [down_proj, gate_proj") {
			t.Errorf("%s: %v", tt.set, err)
		}
	}
	_, err := stage.Externals(smoke(t, append(loraSets(dir, data, "flowrl"), "model={init: pretrained, base: "+adapter+"}")...))
	if err == nil || !strings.Contains(err.Error(), "model.adapter") {
		t.Errorf("adapters as a model: %v", err)
	}
	config := filepath.Join(adapter, "adapter_config.json")
	raw, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := json.Unmarshal(raw, &values); err != nil {
		t.Fatal(err)
	}
	values["use_dora"] = true
	raw, _ = json.Marshal(values)
	if err := errors.Join(os.Remove(config), os.WriteFile(config, raw, 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := stage.Externals(smoke(t, append(loraSets(dir, data, "flowrl"), on)...)); err == nil || !strings.Contains(err.Error(), "use_dora") {
		t.Errorf("DoRA: %v", err)
	}
}

// model.digest accepts the weights that it names, written as the error writes it.
func TestModelDigest(t *testing.T) {
	dir, data := publishedFolder(t), verlFile(t)
	model := func(digest string) string {
		return "model={init: pretrained, base: " + dir + `, digest: "` + digest + `"}`
	}
	_, err := stage.Externals(smoke(t, append(loraSets(dir, data, "grpo"), model("sha256:"+strings.Repeat("0", 64)))...))
	if err == nil {
		t.Fatal("another digest was accepted")
	}
	_, found, ok := strings.Cut(err.Error(), "found ")
	if found, _, _ = strings.Cut(found, "\n"); !ok || len(found) != len("sha256:")+64 {
		t.Fatalf("the error does not say which it is: %v", err)
	}
	if _, err := stage.Externals(smoke(t, append(loraSets(dir, data, "grpo"), model(found))...)); err != nil {
		t.Errorf("%s: %v", found, err)
	}
}

// Trained adapters carry the name of their base: a base that lies elsewhere is merged
// again, into the same weights, and nothing diverges.
func TestBaseThatMoved(t *testing.T) {
	l := newLab(t)
	dir, data := publishedFolder(t), verlFile(t)
	first, _ := l.execute(loraRun(l, dir, data, "grpo"))
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.CopyFS(moved, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	p := loraRun(l, moved, data, "grpo")
	before := l.outputs(first.Run.ID)["merge[]/"+stage.MergedWeights]
	again, q := l.execute(p)
	if again.Run.RID != first.Run.RID || strings.Join(q.started, " ") == "" || again.Executed != 1 {
		t.Errorf("run %s executed %d stages, want run %s and the merge alone: %v", again.Run.RID, again.Executed, first.Run.RID, q.started)
	}
	if after := l.outputs(again.Run.ID)["merge[]/"+stage.MergedWeights]; after != before {
		t.Errorf("merged weights %s, were %s", after, before)
	}
	base, err := checkpoint.AdapterBase(filepath.Join(l.db.RunDir(again.Run.RID), stage.AdapterDir))
	if err != nil || base != moved {
		t.Errorf("the adapters' base is %s, %v; want %s", base, err, moved)
	}
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("verify: %+v", v)
	}
}
