package train

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// extent are the names of a metric that has a mean and extremes.
func extent(name string, more ...string) []string {
	list := []string{name + "/mean", name + "/max", name + "/min"}
	for _, m := range more {
		list = append(list, name+"/"+m)
	}
	return list
}

// The metrics of a step are verl's data metrics, those of each algorithm's loss, and
// ours: the whole list, so that a name that disappears or changes is seen.
func TestAllMetricNames(t *testing.T) {
	data := slices.Concat([]string{"training/global_step", "training/epoch"},
		extent("critic/score"), extent("critic/rewards"), extent("critic/advantages"), extent("critic/returns"),
		extent("response_length", "clip_ratio"), extent("response_length_non_aborted", "clip_ratio"),
		[]string{"response/aborted_ratio"}, extent("prompt_length", "clip_ratio"),
		[]string{"train/accuracy", "train/solved", "train/distinct", "train/not_graded", "actor/entropy", "kl/ref_k1", "kl/ref_k3",
			"training/rollout_probs_diff_valid", "training/rollout_probs_diff_max", "training/rollout_probs_diff_mean", "training/rollout_probs_diff_std",
			"actor/grad_norm", "actor/lr", "actor/ppo_kl"})
	flow := []string{"actor/log_prob", "actor/old_log_prob", "actor/ref_log_prob", "actor/log_reward", "actor/log_z", "actor/final_loss",
		"actor/importance_weight", "actor/importance_weight_raw", "actor/ref_kl", "actor/residual_mean", "actor/residual_std", "actor/residual_abs"}
	clipped := []string{"actor/pg_loss", "actor/pg_clipfrac", "actor/pg_clipfrac_lower", "actor/entropy_loss", "actor/kl_loss", "actor/kl_coef",
		"actor/reward_kl_penalty", "actor/reward_kl_penalty_coeff"}
	critic := slices.Concat(extent("critic/values"), []string{"critic/vf_explained_var", "critic/vf_loss", "critic/vf_clipfrac",
		"critic/vpred_mean", "critic/grad_norm", "critic/lr"})
	for kind, want := range map[Kind][]string{
		FlowRL: slices.Concat(data, flow),
		GRPO:   slices.Concat(data, clipped),
		PPO:    slices.Concat(data, clipped, critic),
	} {
		r := newToyRun(t, kind, 1)
		r.cfg.Steps = 1
		if kind != FlowRL {
			r.cfg.KL.RewardCoef = 0.1
		}
		r.run()
		var got []string
		for _, m := range r.steps[0].Metrics {
			got = append(got, m.Name)
		}
		slices.Sort(got)
		slices.Sort(want)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", kind, d)
		}
	}
}
