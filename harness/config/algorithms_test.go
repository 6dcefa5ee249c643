package config

import (
	"reflect"
	"strings"
	"testing"
)

// Every kind resolves, with the values of its row of the table, and is explained with
// its source, its equation and its settings.
func TestAlgorithms(t *testing.T) {
	explained, ok := Describe("algo.kind")
	if !ok {
		t.Fatal("algo.kind is not described")
	}
	for _, a := range algorithms() {
		sets := []string{"algo={kind: " + a.Name + "}"}
		if a.Name == "dro" {
			sets = append(sets, "algo.dro.beta=0.5")
		}
		if a.Name == "distill" {
			sets = append(sets, "algo.reference=teacher")
		}
		if a.Name == "spo" {
			sets = append(sets, "rollout.n=1")
		}
		if a.Name == "gigpo" {
			sets = append(sets, "rollout.tools={kind: agent,command: [a]}")
		}
		if a.Advantage.Steps {
			sets = append(sets, "reward={kind: model,weights: m,steps: min,credit: sum}")
		}
		r := load(t, Input{File: recipes + "smoke_cpu.yaml", Sets: sets})
		for path, want := range a.Sets {
			k, ok := Lookup(path)
			if !ok {
				t.Errorf("%s sets %s, which is not a key", a.Name, path)
				continue
			}
			if got, _ := r.Value(path); !reflect.DeepEqual(got, plain(want)) {
				t.Errorf("%s: %s is %v, want %v", a.Name, path, got, want)
			}
			if !strings.Contains(explained, strings.TrimPrefix(path, "algo.")+" "+Format(k, plain(want))) {
				t.Errorf("%s: %s is not explained", a.Name, path)
			}
		}
		for _, text := range []string{"\n  " + a.Name + ": " + a.Title + "\n", a.Source, a.Equation} {
			if text == "" || !strings.Contains(explained, text) {
				t.Errorf("%s: the explanation lacks %q", a.Name, text)
			}
		}
		if text, _ := r.Explain("algo.kind"); !strings.Contains(text, a.Equation) || !strings.Contains(text, "here      "+a.Name+" (") {
			t.Errorf("%s: explained in a configuration as %s", a.Name, text)
		}
		if f := FactsOf("algo.kind", r); len(f) != 1 || len(f[0].Algorithms) != len(algorithms()) {
			t.Errorf("facts of algo.kind: %+v", f)
		}
	}
}

// An estimator and a loss can be chosen by themselves, and a preset of one key under
// another.
func TestAlgorithmParts(t *testing.T) {
	smoke := func(sets ...string) Algo {
		return load(t, Input{File: recipes + "smoke_cpu.yaml", Sets: sets}).Run.Algo
	}
	value := func(a Algo, key string) any { return a.Settings[key] }
	if a := smoke("algo={kind: dapo, advantage: rloo, loss: gspo}"); a.Advantage != "rloo" || a.Loss != "gspo" || value(a, "clip.high") != 0.28 || value(a, "clip.dual") != nil {
		t.Errorf("rloo with gspo under dapo: %+v", a)
	}
	if a := smoke("algo={kind: grpo, loss: flowrl}"); value(a, "flowrl.beta") != 15.0 || a.Advantage != "" {
		t.Errorf("FlowRL's loss under grpo: %+v", a)
	}
	if a := smoke("algo.flowrl.preset=tis_clip"); a.RolloutCorrection.Weights != "sequence_mean" || a.RolloutCorrection.WeightHigh != 2 ||
		value(a, "flowrl.weight.level") != "mean" || value(a, "flowrl.weight.low") != 0.8 || value(a, "flowrl.weight.high") != 1.28 {
		t.Errorf("tis_clip: %+v", a)
	}
	if a := smoke("algo.flowrl.preset=ppo_style_tb"); value(a, "flowrl.surrogate") != true || value(a, "clip.high") != 0.2 || a.Aggregation != "token-mean" {
		t.Errorf("ppo_style_tb: %+v", a)
	}
	if a := smoke("algo.flowrl.preset=no_log_z_token_level"); value(a, "flowrl.terms") != "token" || value(a, "flowrl.reference") != "none" || value(a, "flowrl.use_logz") != false {
		t.Errorf("no_log_z_token_level: %+v", a)
	}
	if c := smoke("algo={kind: gpg, rollout_correction: {preset: bypass_pg_geo_rs_token_tis}}").RolloutCorrection; c.Mode != "bypass" || c.Weights != "token" ||
		strings.Join(c.Reject, " ") != "seq_mean_k1" || strings.Join(c.RejectBounds, " ") != "0.999_1.001" {
		t.Errorf("bypass_pg_geo_rs_token_tis: %+v", c)
	}
}
