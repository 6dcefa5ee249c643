package config

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestYAMLReadsBack(t *testing.T) {
	cases := []Input{
		{File: "testdata/base.yaml"},
		{File: "testdata/plain.yaml", Sets: []string{"algo.kind=ppo", "algo.kl={reward_coef: 0.1, controller: adaptive}", `rollout.stop=["\n", "a: b", "yes", "#", "日本", "  x "]`}},
		{File: "testdata/plain.yaml", Sets: []string{"task={kind: outcomes, outcomes: {modes: [{center: 3, width: 0.25, height: 1e-9}]}}", "algo.flowrl.weight.high=null"}},
		{File: "testdata/plain.yaml", Sets: []string{"task={kind: code, code: {cpu_limit: 59m1ms}}", `data.train.source="a b: c #.jsonl"`, "data.test.source=./t.jsonl", "store.samples.train=sampled(1e-9)"}},
	}
	for _, in := range cases {
		a := load(t, in)
		b := load(t, Input{File: "canonical", Data: []byte(a.YAML())})
		if diff := cmp.Diff(a.Run, b.Run); diff != "" {
			t.Errorf("%+v: (-written +read):\n%s\n%s", in, diff, a.YAML())
		}
		if a.YAML() != b.YAML() {
			t.Errorf("%+v: writing twice differs:\n%s", in, cmp.Diff(a.YAML(), b.YAML()))
		}
		if diff := cmp.Diff(a.Semantic(experiment()...), b.Semantic(experiment()...)); diff != "" {
			t.Errorf("%+v: views (-written +read):\n%s", in, diff)
		}
	}
}

func TestTextReadsBack(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	alphabet := []rune(` ab:#-"'\{}[],&*!|>%@` + "`\té日…\u00a0\u2028\U0001F600=0123456789.eE~?")
	for i := range 2000 {
		text := make([]rune, 1+rng.IntN(8))
		for j := range text {
			text[j] = alphabet[rng.IntN(len(alphabet))]
		}
		want := string(text)
		src, yaml, fault := newSource("x", []byte("rollout: {stop: ["+quoteText(want)+"]}\n"))
		if fault != nil {
			t.Fatal(fault)
		}
		root, errs := parseYAML(src, yaml, 0)
		if len(errs) > 0 {
			t.Fatalf("seed %d, text %d: %q written as %s: %v", seed, i, want, quoteText(want), errs)
		}
		got, ok, errs := decode(lookup("rollout.stop"), root.fields[0].value.fields[0].value, root.pos)
		if !ok || got.([]any)[0] != want {
			t.Fatalf("seed %d, text %d: %q written as %s reads back as %v, %v", seed, i, want, quoteText(want), got, errs)
		}
	}
}

func TestOriginsGolden(t *testing.T) {
	r := load(t, Input{File: "testdata/base.yaml", Overlays: []string{"testdata/overlay.yaml"}, Sets: []string{"rollout.temperature=0.7", "algo.kind=ppo"}})
	golden(t, "origins.golden", r.WithOrigins())
	if got := load(t, Input{File: "origins", Data: []byte(r.WithOrigins())}).Run; cmp.Diff(r.Run, got) != "" {
		t.Errorf("the text with origins reads back as another configuration:\n%s", cmp.Diff(r.Run, got))
	}
}

func TestDescribeGolden(t *testing.T) {
	var b strings.Builder
	for _, path := range []string{"train.optim.lr", "algo.flowrl.weight.high", "algo.kl.target", "task.outcomes.modes", "eval.final.pass_k", "data.train.source",
		"store.samples.train", "rollout", "lr", "algo.flowrl.bta", "ppo_epochs", "xyzzy"} {
		text, ok := Describe(path)
		b.WriteString("$ " + path + "\n" + strings.TrimSuffix(text, "\n") + "\n")
		if want := lookup(path) != nil || path == "rollout"; ok != want {
			t.Errorf("%s: got %v, want %v", path, ok, want)
		}
		b.WriteByte('\n')
	}
	golden(t, "describe.golden", b.String())
	if text, _ := Describe(""); strings.Count(text, "\n") != len(Keys()) {
		t.Errorf("the whole table has %d lines, want one for each of %d keys", strings.Count(text, "\n"), len(Keys()))
	}
}

func TestExplain(t *testing.T) {
	r := load(t, Input{File: "testdata/base.yaml", Sets: []string{"algo.kind=ppo"}})
	for path, want := range map[string]string{
		"rollout.n":         "  here      4 (testdata/base.yaml:10:14)\n",
		"algo.kind":         "  here      ppo (--set #1)\n",
		"algo.flowrl.beta":  "  here      no effect in this configuration; 4 at testdata/base.yaml:9:18 was dropped because algo.kind is ppo\n",
		"algo.sapo.tau_pos": "  here      no effect in this configuration\n",
	} {
		got, ok := r.Explain(path)
		if !ok || !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %s, want it to end in %s", path, got, want)
		}
	}
	block, ok := r.Explain("algo")
	for _, want := range []string{"algo.kind ppo --set #1 ", "algo.flowrl.beta – no effect ", "algo.clip.low 0.2 default "} {
		if !ok || !strings.Contains(strings.Join(strings.Fields(block), " "), want) {
			t.Errorf("algo: got %s, want it to have %q", block, want)
		}
	}
	if _, ok := r.Explain("nothing"); ok {
		t.Error("an unknown key was explained")
	}
}

func TestJSONSchema(t *testing.T) {
	got, err := JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(got, &tree); err != nil {
		t.Fatal(err)
	}
	at := func(path string) map[string]any {
		node := tree
		for _, name := range strings.Split(path, ".") {
			node, _ = node["properties"].(map[string]any)[name].(map[string]any)
			if node == nil {
				t.Fatalf("%s is not in the schema", path)
			}
		}
		return node
	}
	for _, k := range Keys() {
		if at(k.Path)["description"] == "" {
			t.Errorf("%s has no description", k.Path)
		}
	}
	want := map[string]any{"type": "number", "exclusiveMinimum": 0.0, "exclusiveMaximum": 1.0, "description": "peak learning rate; default: required"}
	if diff := cmp.Diff(want, at("train.optim.lr")); diff != "" {
		t.Errorf("train.optim.lr (-want +got):\n%s", diff)
	}
	want = map[string]any{"type": "string", "default": "4GiB", "pattern": sizeText.String(),
		"description": "memory that a program and its processes may use; only while task.kind is code or " +
			"task.mixed.kinds has code"}
	if diff := cmp.Diff(want, at("task.code.mem_limit")); diff != "" {
		t.Errorf("task.code.mem_limit (-want +got):\n%s", diff)
	}
	again, err := JSONSchema()
	if err != nil || string(again) != string(got) {
		t.Error("two exports differ")
	}
}
