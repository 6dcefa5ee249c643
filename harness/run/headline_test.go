package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval"
	"exp/harness/stage"
	"exp/train/rl"
)

// TestOnProgress: what a run has decides its columns, not the name of its algorithm.
func TestOnProgress(t *testing.T) {
	measured := []rl.Metric{{Name: "perf/throughput", Value: 1000}, {Name: "critic/vf_explained_var", Value: 0.5},
		{Name: "critic/vf_loss", Value: 2}, {Name: "actor/grad_norm", Value: 3}, {Name: "critic/score/mean", Value: 0.25}}
	want := []rl.Metric{{Name: "reward", Value: 0.25}, {Name: "expl var", Value: 0.5}, {Name: "tok/s", Value: 1000}}
	if diff := cmp.Diff(want, onProgress(measured)); diff != "" {
		t.Errorf("with a critic (-want +got):\n%s", diff)
	}
	tuning := []rl.Metric{{Name: "sft/loss", Value: 1}, {Name: "sft/lr", Value: 2}, {Name: "sft/entropy", Value: 3},
		{Name: "sft/grad_norm", Value: 4}}
	want = []rl.Metric{{Name: "loss", Value: 1}, {Name: "entropy", Value: 3}, {Name: "grad", Value: 4}}
	if diff := cmp.Diff(want, onProgress(tuning)); diff != "" {
		t.Errorf("fine-tuning (-want +got):\n%s", diff)
	}
}

// TestFactsOf: an evaluation's stage ends with the results that lists show, three at most.
func TestFactsOf(t *testing.T) {
	out := &stage.Outcome{Facts: []rl.Metric{{Name: "samples", Value: 64}}, Evaluation: &stage.Evaluation{}}
	out.Evaluation.Metrics = []eval.Metric{{Name: "pass@1", Value: 0.1}, {Name: "pass@2", Value: 0.2},
		{Name: "pass@4", Value: 0.4}, {Name: "length_mean", Value: 9}, {Name: "distinct_correct", Value: 1.5}}
	want := []rl.Metric{{Name: "samples", Value: 64}, {Name: "pass@1", Value: 0.1}, {Name: "pass@4", Value: 0.4},
		{Name: "distinct_correct", Value: 1.5}}
	if diff := cmp.Diff(want, factsOf(out)); diff != "" {
		t.Errorf("a task (-want +got):\n%s", diff)
	}
	out.Evaluation.Metrics = append(out.Evaluation.Metrics, eval.Metric{Name: "policy_entropy", Value: 2},
		eval.Metric{Name: "kl_target", Value: 0.3})
	want = []rl.Metric{{Name: "samples", Value: 64}, {Name: "kl_target", Value: 0.3}, {Name: "pass@1", Value: 0.1},
		{Name: "policy_entropy", Value: 2}}
	if diff := cmp.Diff(want, factsOf(out)); diff != "" {
		t.Errorf("enumerable outcomes (-want +got):\n%s", diff)
	}
}
