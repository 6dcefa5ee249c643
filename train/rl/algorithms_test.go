package rl

import (
	"slices"
	"testing"
)

// verl's registry of estimators, and ours, can all be chosen by name; so can the losses,
// verl's by ours where the name differs.
func TestNames(t *testing.T) {
	for _, name := range []string{"gae", "grpo", "grpo_vectorized", "gdpo", "grpo_passk", "reinforce_plus_plus", "reinforce_plus_plus_baseline",
		"remax", "rloo", "rloo_vectorized", "opo", "gpg", "optimal_token_baseline", "tir_optimal_token_baseline", "megatron", "score",
		"softmean", "gigpo", "grpo_process", "pure"} {
		if e, ok := EstimatorNamed(name); !ok || e.Name != name || e.Estimate == nil {
			t.Errorf("estimator %s: %t", name, ok)
		}
	}
	for _, name := range []string{"ppo", "gspo", "sapo", "reinforce", "clip_cov", "kl_cov", "gmpo", "cispo", "dppo_tv", "dppo_kl", "dro", "gvpo", "dpo", "flowrl", "megatron"} {
		if l, ok := PolicyLossNamed(name); !ok || l.Name != name || l.Start == nil {
			t.Errorf("loss %s: %t", name, ok)
		}
	}
	if _, ok := EstimatorNamed(""); ok {
		t.Error("an estimator without a name")
	}
	if _, ok := PolicyLossNamed("vanilla"); ok {
		t.Error("a loss by a name that is not ours")
	}
}

// The vectorized twins differ from the estimators they are of: one does not read the
// flag, the other gives a completion alone nothing.
func TestVectorizedTwins(t *testing.T) {
	for _, tt := range []struct {
		name  string
		scale bool
		want  []float32
	}{
		{"grpo", false, []float32{3, -1, 1}},
		{"grpo", true, []float32{2.999997, -0.7071063, 0.7071063}}, // 3/(1 + 1e-6); 1/(√2 + 1e-6)
		{"grpo_vectorized", false, []float32{2.999997, -0.7071063, 0.7071063}},
		{"rloo", false, []float32{3, -2, 2}},
		{"rloo_vectorized", false, []float32{0, -2, 2}},
	} {
		e, _ := EstimatorNamed(tt.name)
		s := &Graded{Batch: &Batch[float32]{Rows: Rows{0, 1, 2, 3}, Mask: []bool{on, on, on}, Adv: make([]float32, 3)},
			Group: []int{7, 0, 0}, Score: []float32{3, 1, 3}, Ret: make([]float32, 3)}
		if err := e.Estimate(s, Settings{scaleStd.Key: tt.scale}); err != nil || !slices.Equal(s.Adv, tt.want) || !slices.Equal(s.Ret, tt.want) {
			t.Errorf("%s, scale %t: %v, %v; want %v", tt.name, tt.scale, s.Adv, err, tt.want)
		}
	}
}
