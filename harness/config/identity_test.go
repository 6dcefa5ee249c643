package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// experiment are the stage kinds whose keys make an experiment.
func experiment() []Stage { return []Stage{Prepare, Init, SFT, Train, Merge} }

func TestSemanticLeavesOut(t *testing.T) {
	r := load(t, Input{File: "testdata/base.yaml"})
	view := r.Semantic(experiment()...)
	for _, path := range []string{"version", "name", "seed", "compute.device", "compute.micro_batch_tokens", "checkpoint.every_steps",
		"algo.flowrl.preset", "algo.gamma", "eval.final.n", "rollout.page_tokens", "store.samples.train"} {
		if v, ok := view[path]; ok {
			t.Errorf("%s = %v is in the view", path, v)
		}
	}
	for path, want := range map[string]any{
		"algo.flowrl.beta": 4.0, "algo.flowrl.weight.high": 5.0, "rollout.n": int64(4), "data.train.source": "generated",
		"algo.kind": "flowrl", "model.arch.tie_embeddings": true, "rollout.stop": []any{}, "train.optim.beta2": 0.999,
	} {
		if got, ok := view[path]; !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v, %v, want %#v", path, got, ok, want)
		}
	}
}

// TestViewsHoldPlainValues checks the promise that a canonical encoding relies on.
func TestViewsHoldPlainValues(t *testing.T) {
	r := load(t, Input{File: "testdata/plain.yaml", Sets: []string{
		"task={kind: outcomes, outcomes: {modes: [{center: 3, width: 1, height: 1}]}}", "algo.flowrl.weight.high=null"}})
	var plain func(path string, v any)
	plain = func(path string, v any) {
		switch v := v.(type) {
		case nil, bool, int64, float64, string:
		case []any:
			for _, x := range v {
				plain(path, x)
			}
		case map[string]any:
			for name, x := range v {
				plain(path+"."+name, x)
			}
		default:
			t.Errorf("%s is a %T", path, v)
		}
	}
	for _, view := range []map[string]any{r.Semantic(experiment()...), r.Protocol(), r.Params(EvalGen)} {
		for path, v := range view {
			plain(path, v)
		}
	}
	if v, ok := r.Semantic(Train)["algo.flowrl.weight.high"]; v != nil || !ok {
		t.Errorf("a null value: got %v, %v, want it in the view", v, ok)
	}
	view := r.Semantic(Train)
	view["task.outcomes.modes"].([]any)[0].(map[string]any)["center"] = int64(9)
	if r.Run.Task.Outcomes.Modes[0].Center != 3 || r.Semantic(Train)["task.outcomes.modes"].([]any)[0].(map[string]any)["center"] != int64(3) {
		t.Error("changing a view changed the configuration")
	}
}

// TestWritingDefaultsDownIsTheSame: a configuration and the same one with all
// defaults written out are one experiment.
func TestWritingDefaultsDownIsTheSame(t *testing.T) {
	a := load(t, Input{File: "testdata/plain.yaml", Sets: []string{"algo.flowrl.preset=paper"}})
	b := load(t, Input{File: "testdata/plain.yaml", Sets: []string{"algo.flowrl.weight={low: 0.8, high: 1.2}", "rollout.temperature=1", "data.train.size=8192"}})
	if diff := cmp.Diff(a.Semantic(experiment()...), b.Semantic(experiment()...)); diff != "" {
		t.Errorf("(-preset +knobs):\n%s", diff)
	}
}

// TestNonsemanticKeysStayOut perturbs every nonsemantic key, one at a time.
func TestNonsemanticKeysStayOut(t *testing.T) {
	other := map[string]string{
		"name": "other", "compare.vary": "[rollout]", "store.samples.train": "none", "store.samples.eval": "sampled(0.5)",
		"compute.device": "cuda:1", "compute.numerics": "cpu/fma", "compute.recompute": "true", "rollout.speculate": "false",
		"compute.offload": "all", "model.digest": "", "verify.logprob_rate": "1",
		"reward.max_not_graded": "0.5", "eval.final.max_not_graded": "0.5", "sandbox.require": "full", "store.tensorboard": "events",
		"checkpoint.every_minutes": "2.5", "run.stop_if": "[actor/entropy < 0.1]", "notify.command": "[./bell]", "notify.webhook": "env:HOOK",
	}
	base := load(t, Input{File: "testdata/plain.yaml"})
	for _, k := range base.Keys() {
		if k.Role != Nonsemantic || k.Path == "version" {
			continue
		}
		value := other[k.Path]
		switch {
		case !strings.HasPrefix(k.Path, "cluster."):
		case k.List:
			value = "[x]"
		default:
			value = "x"
		}
		if k.Kind == Int {
			v, _ := base.Value(k.Path)
			step := int64(1)
			if k.Path == "rollout.page_tokens" {
				step = 16
			}
			value = fmt.Sprint(v.(int64) + step)
		}
		r := load(t, Input{File: "testdata/plain.yaml", Sets: []string{k.Path + "=" + value}})
		if d := Diff(base, r); len(d) != 1 || d[0].Key != k || d[0].Class != Free {
			t.Errorf("%s=%s: differences %+v", k.Path, value, d)
		}
		for _, s := range []Stage{Prepare, Init, SFT, Train, Merge, EvalGen, EvalScore} {
			if !reflect.DeepEqual(base.Params(s), r.Params(s)) {
				t.Errorf("%s is among the parameters of %s", k.Path, s)
			}
		}
	}
}

func TestPathsAreNotIdentity(t *testing.T) {
	sets := []string{"task.kind=math", "eval.final.suites=[math500]", "model={init: pretrained, base: a/b}", "data.train.source=a.jsonl"}
	moved := []string{"task.kind=math", "eval.final.suites=[math500]", "model={init: pretrained, base: c/d}", "data.train.source=b/c.parquet"}
	a, b := load(t, Input{File: "testdata/plain.yaml", Sets: sets}), load(t, Input{File: "testdata/plain.yaml", Sets: moved})
	if diff := cmp.Diff(a.Semantic(experiment()...), b.Semantic(experiment()...)); diff != "" {
		t.Errorf("a moved file is another experiment (-a +b):\n%s", diff)
	}
	if got := a.Semantic(Prepare)["data.train.source"]; got != "external" {
		t.Errorf("data.train.source: got %v, want external", got)
	}
	if got := a.Semantic(Prepare)["data.val.source"]; got != "none" {
		t.Errorf("data.val.source: got %v, want none", got)
	}
}

func TestProtocol(t *testing.T) {
	r := load(t, Input{File: "testdata/base.yaml", Sets: []string{"eval.final.n=4"}})
	want := map[string]any{
		"eval.final.graders": []any{}, "eval.final.prompt": "{problem}", "eval.final.n": int64(4), "eval.final.temperature": 1.0, "eval.final.top_k": int64(0),
		"eval.final.top_p": 1.0, "eval.final.max_new_tokens": int64(24), "eval.final.pass_k": []any{int64(1), int64(2), int64(4)},
	}
	if diff := cmp.Diff(want, r.Protocol()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	more := load(t, Input{File: "testdata/base.yaml", Sets: []string{"eval.final={n: 8, suites: [test, val]}"}})
	if diff := cmp.Diff(r.Semantic(experiment()...), more.Semantic(experiment()...)); diff != "" {
		t.Errorf("another protocol is another experiment:\n%s", diff)
	}
}

// TestArmsShareUpstreamStages: what init and sft read must not depend on the
// algorithm or on the run's seed, or the stage cache would not be shared.
func TestArmsShareUpstreamStages(t *testing.T) {
	a := load(t, Input{File: "testdata/base.yaml", Sets: []string{"sft={steps: 5, optim: {lr: 1e-3}}"}})
	b := load(t, Input{File: "testdata/base.yaml", Sets: []string{"sft={steps: 5, optim: {lr: 1e-3}}", "algo.kind=ppo", "seed=3", "train.steps=5", "rollout.n=2", "eval.online.every_steps=5"}})
	for _, s := range []Stage{Prepare, Init, SFT} {
		if diff := cmp.Diff(a.Params(s), b.Params(s)); diff != "" {
			t.Errorf("%s (-flowrl +ppo):\n%s", s, diff)
		}
	}
	if reflect.DeepEqual(a.Params(Train), b.Params(Train)) {
		t.Error("train has the same parameters in both arms")
	}
	if keys := slices.Sorted(maps.Keys(a.Params(SFT))); slices.ContainsFunc(keys, func(k string) bool {
		return strings.HasPrefix(k, "algo.") || strings.HasPrefix(k, "rollout.") ||
			strings.HasPrefix(k, "train.") && k != "train.slices"
	}) {
		t.Errorf("sft reads %v", keys)
	}
}

func TestClasses(t *testing.T) {
	cases := []struct {
		key  string
		vary []string
		want Class
	}{
		{"algo.flowrl.beta", []string{"algo"}, Treatment},
		{"algo.flowrl.beta", []string{"algo.clip"}, Controlled},
		{"algo.flowrl.beta", []string{"algo.*.beta"}, Treatment},
		{"algo.flowrl.weight.high", []string{"algo.*.beta"}, Controlled},
		{"algo.kind", []string{"alg"}, Controlled},
		{"rollout.n", []string{"*"}, Treatment},
		{"rollout.n", []string{"rollout.n.x"}, Controlled},
		{"seed", []string{"*"}, Replication},
		{"compute.threads", nil, Free},
		{"algo.flowrl.preset", nil, Free},
		{"eval.final.n", nil, ProtocolKey},
		{"eval.online.n", nil, Controlled},
		{"eval.final.n", []string{"eval"}, Treatment},
		{"data.train.source", nil, Controlled},
	}
	for _, c := range cases {
		if got := ClassOf(lookup(c.key), c.vary); got != c.want {
			t.Errorf("%s under %v: got %s, want %s", c.key, c.vary, got, c.want)
		}
	}
}

func TestDiff(t *testing.T) {
	a := load(t, Input{File: "testdata/base.yaml"})
	b := load(t, Input{File: "testdata/base.yaml", Sets: []string{"name=other", "seed=1", "algo={kind: grpo, kl: {loss_coef: 0.1}}", "eval.final.n=4", "rollout.n=2"}})
	var got []string
	for _, d := range Diff(a, b) {
		got = append(got, fmt.Sprintf("%s: %q %s", d.Key.Path, d.Values, d.Class))
	}
	want := []string{
		`name: ["base" "other"] free`,
		`seed: ["0" "1"] replicate`,
		`algo.kind: ["flowrl" "grpo"] treatment`,
		`algo.advantage: ["" "grpo"] treatment`,
		`algo.loss: ["flowrl" "ppo"] treatment`,
		`algo.flowrl.preset: ["recipe" ""] free`,
		`algo.flowrl.beta: ["4" ""] treatment`,
		`algo.flowrl.use_logz: ["true" ""] treatment`,
		`algo.flowrl.logz.from: ["head" ""] treatment`,
		`algo.flowrl.logz.layers: ["3" ""] treatment`,
		`algo.flowrl.logz.dropout: ["0.1" ""] treatment`,
		`algo.flowrl.logz.pool: ["drop_last" ""] treatment`,
		`algo.flowrl.logz.detach: ["false" ""] treatment`,
		`algo.flowrl.weight.level: ["sum" ""] treatment`,
		`algo.flowrl.weight.low: ["0" ""] treatment`,
		`algo.flowrl.weight.high: ["5" ""] treatment`,
		`algo.flowrl.reference: ["ref" ""] treatment`,
		`algo.flowrl.reward: ["advantage" ""] treatment`,
		`algo.flowrl.token_mask: ["none" ""] treatment`,
		`algo.flowrl.terms: ["row" ""] treatment`,
		`algo.flowrl.mean_clip: ["none" ""] treatment`,
		`algo.flowrl.surrogate: ["false" ""] treatment`,
		`algo.flowrl.ratio_fractions: ["false" ""] treatment`,
		`algo.clip.low: ["" "0.2"] treatment`,
		`algo.clip.high: ["" "0.2"] treatment`,
		`algo.clip.dual: ["" "3"] treatment`,
		`algo.scale_std: ["" "true"] treatment`,
		`algo.kl.loss_coef: ["" "0.1"] treatment`,
		`algo.kl.loss_estimator: ["" "k3"] treatment`, `algo.kl.loss_weighted: ["" "false"] treatment`,
		`algo.kl.reward_coef: ["" "0"] treatment`,
		`algo.distill.coef: ["" "0"] treatment`,
		`algo.entropy_coef: ["" "0"] treatment`,
		`algo.sft_weight: ["" "0"] treatment`, `algo.demonstrations.weight: ["" "0"] treatment`,
		`algo.aggregation: ["" "token-mean"] treatment`, `algo.top_entropy: ["" "1"] treatment`,
		`algo.off_policy_bound: ["" "0"] treatment`,
		`rollout.n: ["4" "2"] controlled`,
		`eval.final.n: ["16" "4"] protocol`,
		`eval.final.pass_k: ["[1, 2, 4, 8, 16]" "[1, 2, 4]"] protocol`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if d := Diff(a, a); len(d) != 0 {
		t.Errorf("a configuration differs from itself: %+v", d)
	}
}

// Keys that came late leave the ids of configurations that do not set them.
func TestLateDefaultsStayOut(t *testing.T) {
	on := []string{"sft={steps: 1, optim: {lr: 0.1}}"}
	before := load(t, Input{File: "testdata/base.yaml", Sets: on}).Semantic(experiment()...)
	for _, path := range []string{"sft.source", "sft.mask", "sft.max_tokens", "algo.flowrl.logz.from"} {
		if v, ok := before[path]; ok {
			t.Errorf("%s = %v is in the view", path, v)
		}
	}
	if _, ok := before["sft.steps"]; !ok {
		t.Error("sft.steps is not in the view")
	}
	after := load(t, Input{File: "testdata/base.yaml", Sets: append(on, "sft={source: talks.jsonl, mask: [a, b]}")}).Semantic(experiment()...)
	got := map[string]any{"sft.source": after["sft.source"], "sft.mask": after["sft.mask"], "sft.max_tokens": after["sft.max_tokens"]}
	if diff := cmp.Diff(map[string]any{"sft.source": "external", "sft.mask": []any{"a", "b"}, "sft.max_tokens": int64(0)}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
