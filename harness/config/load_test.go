package config

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/rl"
)

// load loads a configuration that must be good.
func load(t *testing.T, in Input) *Resolved {
	t.Helper()
	r, err := Load(in)
	if err != nil {
		t.Fatalf("%s\nof %+v", err, in)
	}
	return r
}

// folder writes files and returns their folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// base is testdata/base.yaml, where temporary recipes can reach it.
func base(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("testdata/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPrecedence(t *testing.T) {
	dir := folder(t, map[string]string{
		"user.yaml":   "compute: {threads: 1, micro_batch_tokens: 3000}\ncheckpoint: {keep: 9}\n",
		"parent.yaml": "extends: " + base(t) + "\ntrain: {steps: 20, optim: {beta1: 0.5, beta2: 0.5}}\nrollout: {stop: [a, b]}\ncheckpoint: {keep: 8}\n",
		"child.yaml":  "extends: parent.yaml\ntrain: {steps: 30, optim: {beta2: 0.6}}\n",
		"over1.yaml":  "train: {steps: 40}\nrollout: {stop: [c]}\n",
		"over2.yaml":  "train: {steps: 50}\n",
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	layers := []struct {
		name   string
		change func(in *Input)
		steps  int
		origin string
		stop   []string
	}{
		{"parent", func(in *Input) { in.File = at("parent.yaml") }, 20, at("parent.yaml") + ":2:16", []string{"a", "b"}},
		{"child", func(in *Input) { in.File = at("child.yaml") }, 30, at("child.yaml") + ":2:16", []string{"a", "b"}},
		{"overlay", func(in *Input) { in.Overlays = []string{at("over1.yaml")} }, 40, at("over1.yaml") + ":1:16", []string{"c"}},
		{"second overlay", func(in *Input) { in.Overlays = append(in.Overlays, at("over2.yaml")) }, 50, at("over2.yaml") + ":1:16", []string{"c"}},
		{"set", func(in *Input) { in.Sets = []string{"train.steps=60"} }, 60, "--set #1", []string{"c"}},
		{"second set", func(in *Input) { in.Sets = append(in.Sets, "train={steps: 70}") }, 70, "--set #2", []string{"c"}},
		{"append", func(in *Input) { in.Sets = append(in.Sets, "rollout.stop+=d", "rollout.stop+=[e, f]") }, 70, "--set #2", []string{"c", "d", "e", "f"}},
		{"replace", func(in *Input) { in.Sets = append(in.Sets, "rollout.stop=[g]") }, 70, "--set #2", []string{"g"}},
	}
	in := Input{User: at("user.yaml")}
	for _, l := range layers {
		l.change(&in)
		r := load(t, in)
		if got := r.Run.Train.Steps; got != l.steps {
			t.Errorf("%s: got %d steps, want %d", l.name, got, l.steps)
		}
		if got := r.Origin("train.steps"); got != l.origin {
			t.Errorf("%s: origin got %s, want %s", l.name, got, l.origin)
		}
		if diff := cmp.Diff(l.stop, r.Run.Rollout.Stop); diff != "" {
			t.Errorf("%s: stop (-want +got):\n%s", l.name, diff)
		}
		// Blocks merge: what the upper layers do not mention stays.
		if o := r.Run.Train.Optim; o.LR != 1e-3 || o.Beta1 != 0.5 {
			t.Errorf("%s: optim %+v", l.name, o)
		}
		if c := r.Run.Checkpoint; c.Keep != 8 { // the recipe wins over the user's own file
			t.Errorf("%s: keep %d, want 8", l.name, c.Keep)
		}
		if c := r.Run.Compute; c.Threads != 1 || c.MicroBatchTokens != 3000 {
			t.Errorf("%s: compute %+v", l.name, c)
		}
	}
}

func TestOverlayMayExtend(t *testing.T) {
	dir := folder(t, map[string]string{
		"a.yaml": "train: {steps: 3}\nrollout: {n: 6}\n",
		"b.yaml": "extends: a.yaml\ntrain: {steps: 4}\n",
	})
	r := load(t, Input{File: "testdata/base.yaml", Overlays: []string{filepath.Join(dir, "b.yaml")}})
	if r.Run.Train.Steps != 4 || r.Run.Rollout.N != 6 {
		t.Errorf("got steps %d, n %d; want 4, 6", r.Run.Train.Steps, r.Run.Rollout.N)
	}
}

func TestUserConfigHoldsNonsemanticKeysOnly(t *testing.T) {
	dir := folder(t, map[string]string{"user.yaml": "compute: {threads: 2}\ntrain: {steps: 3}\nseed: 4\n"})
	user := filepath.Join(dir, "user.yaml")
	got := failure(t, Input{File: "testdata/base.yaml", User: user}).Text(false)
	want := user + `:2:9: error[E118]: train.steps can change results and does not belong in the user's own configuration
    2 | train: {steps: 3}
      |         ^~~~~
   help: set it in the recipe
` + user + `:3:1: error[E118]: seed can change results and does not belong in the user's own configuration
    3 | seed: 4
      | ^~~~
   help: set it in the recipe
2 errors; nothing was run`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNullClears(t *testing.T) {
	r := load(t, Input{File: "testdata/base.yaml"})
	if h := r.Run.Algo.Settings.Float(rl.FlowWeightHigh); h != 5 {
		t.Errorf("weight.high: got %v, want 5", h)
	}
	r = load(t, Input{File: "testdata/base.yaml", Sets: []string{"algo.flowrl.weight.high=null"}})
	if h := r.Run.Algo.Settings.Float(rl.FlowWeightHigh); !math.IsInf(h, 1) {
		t.Errorf("weight.high: got %v, want no limit", h)
	}
	if v, ok := r.Value("algo.flowrl.weight.high"); v != nil || !ok {
		t.Errorf("value: got %v, %v, want nil, true", v, ok)
	}
}

func TestVariantRule(t *testing.T) {
	dir := folder(t, map[string]string{
		"switch.yaml": "extends: " + base(t) + "\nalgo: {kind: ppo}\n",
		"back.yaml":   "extends: switch.yaml\nalgo: {kind: flowrl}\n",
		"sft.yaml":    "extends: " + base(t) + "\nsft: {steps: 5, optim: {lr: 1e-3}}\n",
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	drops := func(r *Resolved) []string {
		var list []string
		for _, d := range r.Dropped {
			list = append(list, d.Path)
		}
		return list
	}
	flowrl := []string{"algo.flowrl.beta", "algo.flowrl.weight.high"}
	cases := []struct {
		name  string
		in    Input
		drops []string
	}{
		{"child switches", Input{File: at("switch.yaml")}, flowrl},
		{"overlay switches", Input{File: base(t), Overlays: []string{at("switch.yaml")}}, flowrl}, // and brings base along once more
		{"set switches", Input{File: base(t), Sets: []string{"algo.kind=grpo"}}, flowrl},
		{"there and back", Input{File: at("back.yaml")}, nil},
		{"a number switches", Input{File: at("sft.yaml"), Sets: []string{"sft.steps=0"}}, []string{"sft.optim.lr"}},
		{"a switch within a block", Input{File: base(t), Sets: []string{"model={init: pretrained, base: x}"}},
			[]string{"model.arch.layers", "model.arch.width", "model.arch.heads", "model.arch.head_size", "model.arch.ffn"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := load(t, c.in)
			if diff := cmp.Diff(c.drops, drops(r)); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
			for _, path := range c.drops {
				if r.Has(path) || r.Origin(path) != "" {
					t.Errorf("%s was dropped and still has an effect", path)
				}
			}
		})
	}
	if r := load(t, Input{File: at("back.yaml")}); r.Run.Algo.Settings.Float(rl.FlowBeta) != 4 {
		t.Errorf("there and back: beta %v, want the inherited 4", r.Run.Algo.Settings.Float(rl.FlowBeta))
	}
	if got, want := load(t, Input{File: at("switch.yaml")}).Dropped[0], (Dropped{
		Path: "algo.flowrl.beta", Value: "4", Origin: base(t) + ":9:18", Because: "algo.kind is ppo", Switch: at("switch.yaml") + ":2:14",
	}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestPresets(t *testing.T) {
	type limits struct {
		level     string
		low, high float64
	}
	const free = "algo.flowrl={weight: {high: "
	cases := []struct {
		name string
		sets []string
		want limits
	}{
		{"recipe is the default", nil, limits{"sum", 0, 10}},
		{"recipe", []string{"algo.flowrl.preset=recipe"}, limits{"sum", 0, 10}},
		{"release", []string{"algo.flowrl.preset=release"}, limits{"sum", 0, math.Inf(1)}},
		{"paper", []string{"algo.flowrl.preset=paper"}, limits{"sum", 0.8, 1.2}},
		{"a knob beats the preset", []string{"algo.flowrl.preset=paper", free + "5}}"}, limits{"sum", 0.8, 5}},
		{"null beats the preset", []string{"algo.flowrl.preset=paper", free + "null}}"}, limits{"sum", 0.8, math.Inf(1)}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := load(t, Input{File: "testdata/plain.yaml", Sets: c.sets})
			s := r.Run.Algo.Settings
			if got := (limits{s.Word(rl.FlowWeightLevel), s.Float(rl.FlowWeightLow), s.Float(rl.FlowWeightHigh)}); got != c.want {
				t.Errorf("weight %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestDependentDefaults(t *testing.T) {
	r := load(t, Input{File: "testdata/plain.yaml", Sets: []string{"eval.final.n=12", "reward.wrong=-1"}})
	if diff := cmp.Diff([]int{1, 2, 4, 8}, r.Run.Eval.Final.PassK); diff != "" {
		t.Errorf("pass_k (-want +got):\n%s", diff)
	}
	if got := r.Run.Reward.Format; got != -1 {
		t.Errorf("reward.format: got %v, want a wrong answer's, -1", got)
	}
	if got, want := r.Origin("reward.format"), "default (reward.wrong)"; got != want {
		t.Errorf("origin: got %q, want %q", got, want)
	}
	if got := r.Run.Eval.Final.MaxNewTokens; got != 24 {
		t.Errorf("eval.final.max_new_tokens: got %d, want rollout's, 24", got)
	}
	r = load(t, Input{File: "testdata/plain.yaml", Sets: []string{"algo.kind=grpo", "algo.aggregation=seq-mean-token-sum-norm", "eval.final.pass_k=[]", "eval.final.suites+=val"}})
	if got := r.Run.Algo.LossScaleFactor; got != 24 {
		t.Errorf("loss_scale_factor: got %v, want rollout.max_new_tokens, 24", got)
	}
	if got := r.Run.Eval.Final; len(got.PassK) != 0 || len(got.Suites) != 2 {
		t.Errorf("eval.final: got %+v, want no pass_k and suites test, val", got)
	}
}

func TestUnits(t *testing.T) {
	r := load(t, Input{File: "testdata/plain.yaml", Sets: []string{
		"task={kind: code, code: {cpu_limit: 1m30s, mem_limit: 1536MiB}}", "data.train.source=a.jsonl", "data.test.source=b.jsonl",
		"store.samples={train: sampled(2%), eval: none}", "rollout.top_p=95%", "train.optim.lr=3e-4", "data.max_prompt_tokens=1_024",
	}})
	if got, want := r.Run.Task.Code, (Code{CPULimit: 90e9, MemLimit: 1536 << 20, Rules: "strict"}); got != want {
		t.Errorf("code: got %+v, want %+v", got, want)
	}
	if got, want := r.Run.Store.Samples, (Samples{Train: 0.02, Eval: 0}); got != want {
		t.Errorf("samples: got %+v, want %+v", got, want)
	}
	if r.Run.Rollout.TopP != 0.95 || r.Run.Train.Optim.LR != 3e-4 || r.Run.Data.MaxPromptTokens != 1024 {
		t.Errorf("got top_p %v, lr %v, max_prompt_tokens %d", r.Run.Rollout.TopP, r.Run.Train.Optim.LR, r.Run.Data.MaxPromptTokens)
	}
}

func TestModes(t *testing.T) {
	r := load(t, Input{File: "testdata/plain.yaml", Sets: []string{
		"task={kind: outcomes, outcomes: {count: 16, modes: [{center: 3, width: 1, height: 1}, {center: 12, width: 0.5, height: 2}]}}",
	}})
	want := Outcomes{Count: 16, Modes: []Mode{{3, 1, 1}, {12, 0.5, 2}}, Beta: 15}
	if diff := cmp.Diff(want, r.Run.Task.Outcomes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !reflect.ValueOf(r.Run.Reward).IsZero() {
		t.Errorf("reward: got %+v, want none: outcomes have their own", r.Run.Reward)
	}
}

func TestExtendsChain(t *testing.T) {
	files := map[string]string{"r0.yaml": "extends: " + base(t) + "\n", "self.yaml": "extends: self.yaml\n"}
	for i := 1; i <= maxExtends; i++ {
		files[fmt.Sprintf("r%d.yaml", i)] = fmt.Sprintf("extends: r%d.yaml\ntrain: {steps: %d}\n", i-1, i)
	}
	dir := folder(t, files)
	// r0 extends base: the chain to base from r15 has 16 links, that from r16 has 17.
	if r := load(t, Input{File: filepath.Join(dir, "r15.yaml")}); r.Run.Train.Steps != 15 {
		t.Errorf("got %d steps, want the last file's, 15", r.Run.Train.Steps)
	}
	for file, want := range map[string]string{
		"r16.yaml":  "more than 16 files extend each other",
		"self.yaml": "extends makes a cycle: " + filepath.Join(dir, "self.yaml") + " -> " + filepath.Join(dir, "self.yaml"),
	} {
		errs := failure(t, Input{File: filepath.Join(dir, file)})
		if len(errs) != 1 || errs[0].Code != CodeExtends || errs[0].Message != want {
			t.Errorf("%s: got %v, want one %s: %s", file, errs, CodeExtends, want)
		}
	}
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	shared := load(t, Input{File: "testdata/base.yaml"})
	want := shared.WithOrigins()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			own, err := Load(Input{File: "testdata/base.yaml"})
			if err != nil {
				t.Error(err)
				return
			}
			if own.WithOrigins() != want || shared.WithOrigins() != want || len(Diff(own, shared)) != 0 {
				t.Error("two loads of one file differ")
			}
			shared.Semantic(Train)
			shared.Explain("rollout.n")
		})
	}
	wg.Wait()
}
