package train

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/rl"
)

// extent are the names of a metric that has a mean and extremes.
func extent(name string, more ...string) []string {
	list := []string{name + "/mean", name + "/max", name + "/min"}
	for _, m := range more {
		list = append(list, name+"/"+m)
	}
	return list
}

// The metrics of a step are verl's data metrics, the metrics of each algorithm's loss, and
// ours: the whole list, so that a name that disappears or changes is seen.
func TestAllMetricNames(t *testing.T) {
	data := slices.Concat([]string{"training/global_step", "training/epoch"},
		extent("critic/score"), extent("critic/rewards"), extent("critic/advantages"), extent("critic/returns"),
		extent("response_length", "clip_ratio"), extent("response_length_non_aborted", "clip_ratio"),
		[]string{"response/aborted_ratio"}, extent("prompt_length", "clip_ratio"),
		[]string{"train/accuracy", "train/solved", "train/distinct", "train/not_graded", "actor/entropy", "kl/ref_k1", "kl/ref_k3",
			"training/rollout_probs_diff_valid", "training/rollout_probs_diff_max", "training/rollout_probs_diff_mean", "training/rollout_probs_diff_std",
			"actor/grad_norm", "actor/lr", "actor/ppo_kl",
			"rollout_corr/training_ppl", "rollout_corr/training_log_ppl", "rollout_corr/kl", "rollout_corr/k3_kl",
			"rollout_corr/rollout_ppl", "rollout_corr/rollout_log_ppl", "rollout_corr/log_ppl_diff", "rollout_corr/log_ppl_abs_diff",
			"rollout_corr/log_ppl_diff_max", "rollout_corr/log_ppl_diff_min", "rollout_corr/ppl_ratio",
			"rollout_corr/chi2_token", "rollout_corr/chi2_seq"})
	flow := []string{"actor/log_prob", "actor/old_log_prob", "actor/ref_log_prob", "actor/log_reward", "actor/log_z", "actor/final_loss",
		"actor/importance_weight", "actor/importance_weight_raw", "actor/ref_kl", "actor/residual_mean", "actor/residual_std", "actor/residual_abs"}
	clipped := []string{"actor/pg_loss", "actor/pg_clipfrac", "actor/pg_clipfrac_lower", "actor/entropy_loss", "actor/kl_loss", "actor/kl_coef",
		"actor/reward_kl_penalty", "actor/reward_kl_penalty_coeff"}
	critic := slices.Concat(extent("critic/values"), []string{"critic/vf_explained_var", "critic/vf_loss", "critic/vf_clipfrac",
		"critic/vpred_mean", "critic/grad_norm", "critic/lr"})
	process := []string{"reward_model/reward", "reward_model/raw_reward", "reward_model/dpo_acc", "reward_model/dpo_acc_abs", "reward_model/dpo_loss",
		"reward_model/dpo_acc_before", "reward_model/dpo_acc_abs_before", "reward_model/grad_norm", "reward_model/lr"}
	for kind, want := range map[Kind][]string{
		FlowRL: slices.Concat(data, flow),
		Prime:  slices.Concat(data, clipped, process),
		GRPO:   slices.Concat(data, clipped),
		PPO:    slices.Concat(data, clipped, critic),
	} {
		r := newToyRun(t, kind, 1)
		if kind != FlowRL {
			r.cfg.KL.RewardCoef = 0.1
		}
		if d := cmp.Diff(slices.Sorted(slices.Values(want)), r.metricNames()); d != "" {
			t.Errorf("%s (-want +got):\n%s", kind, d)
		}
	}

	// What the settings of a step add, and take away.
	clipped = slices.DeleteFunc(clipped, func(name string) bool { return strings.HasPrefix(name, "actor/reward_kl") })
	rejected := func(name string) []string {
		prefix := "rollout_corr/rollout_rs_" + name + "_"
		var list []string
		for _, m := range []string{"mean", "max", "min", "std", "fraction_high", "fraction_low", "masked_fraction", "seq_mean", "seq_std", "seq_max",
			"seq_min", "seq_max_deviation", "seq_fraction_high", "seq_masked_fraction"} {
			list = append(list, prefix+m)
		}
		return append(list, "rollout_corr/rollout_rs_masked_fraction", "rollout_corr/rollout_rs_seq_masked_fraction")
	}
	for name, tt := range map[string]struct {
		change func(c *Config)
		want   []string
	}{
		"megatron": {func(c *Config) { c.Loss, c.Advantage = "megatron", "megatron" }, slices.Concat(
			slices.DeleteFunc(slices.Clone(data), func(name string) bool { return name == "actor/ppo_kl" }),
			[]string{"lm loss", "rl/kl_term", "rl/pi_over_pi_old", "rl/entropy_term", "rl/truncated_from_above", "rl/truncated_from_below"})},
		"filter, overlong, remax": {func(c *Config) {
			c.Filter, c.Overlong, c.Advantage = Filter{By: FilterScore, MaxBatches: 1}, rl.Overlong{MaxResponse: 6, Buffer: 2, Penalty: 1}, "remax"
		}, slices.Concat(data, clipped, []string{"train/filter_batches", "train/filter_passed", "train/overlong_reward", "train/overlong", "train/greedy_score"})},
		"spread": {func(c *Config) { c.Filter = Filter{By: FilterScore, MaxBatches: 1, Spread: 1} },
			slices.Concat(data, clipped, []string{"train/filter_batches", "train/filter_passed", "train/filter_spread"})},
		"entropies": {func(c *Config) { c.TopEntropy, c.MaskTruncated = 0.2, true },
			slices.Concat(data, clipped, []string{"actor/entropy_threshold"})},
		"off-policy": {func(c *Config) { c.OffPolicy = 0.1 }, slices.Concat(data, clipped, []string{"actor/off_policy_dropped"})},
		"votes": {func(c *Config) { c.Self = RewardMajority },
			slices.Concat(data, clipped, []string{"reward/majority_share", "reward/majority_right", "reward/label_accuracy"})},
		"likelihood": {func(c *Config) {
			c.Self, c.Likelihood = RewardLikelihood, LikelihoodReward{Measure: rl.LikelihoodMean, Baseline: true, Learn: 1}
		}, slices.Concat(data, clipped, []string{"reward/placed", "reward/likelihood", "reward/likelihood_right",
			"reward/likelihood_wrong", "reward/likelihood_baseline", "actor/answer_likelihood"})},
		"tracked values": {func(c *Config) { c.Advantage, c.Samples = "spo", 1 },
			slices.Concat(data, clipped, []string{"spo/p_hats", "spo/Neff", "spo/rho_clipped", "spo/D",
				"spo/first_sampled_ratio"})},
		"turns": {func(c *Config) { c.Sampling.Environment, c.Turns = echo{}, true },
			slices.Concat(data, clipped, extent("num_turns"), []string{"train/inserted", "train/out_of_turns"})},
		"right completions": {func(c *Config) { c.SFTWeight = 0.1 }, slices.Concat(data, clipped, []string{"actor/sft_loss"})},
		"demonstrations": {demonstrated, slices.Concat(data, clipped, []string{"actor/demonstration_loss",
			"actor/demonstration_prob"})},
		"conversations": {func(c *Config) { c.Sampling.Environment, c.Turns, c.Conversations = echo{}, true, 2 },
			slices.Concat(data, clipped, extent("num_turns"), []string{"train/inserted", "train/out_of_turns", "train/conversations"})},
		"turns in states": {func(c *Config) {
			c.Advantage, c.Sampling.Agent, c.Turns = "gigpo", earner{asker{}}, true
		}, slices.Concat(data, clipped, extent("num_turns"), []string{"train/inserted", "train/out_of_turns",
			"train/turn_reward", "gigpo/step_group_size", "gigpo/shared_states"})},
		"steps": {func(c *Config) { c.Advantage = "pure" }, slices.Concat(data, clipped, []string{"reward/steps", "reward/step_right",
			"reward/unsound", "reward/steps_agree", "reward/step_sum", "reward/outcome"})},
		"bypass": {func(c *Config) {
			c.Correction = rl.Correction{Bypass: rl.BypassPPO, Reject: []rl.Rejection{{Span: rl.SpanMean, Kind: rl.KLK3, High: 1}}}
		}, slices.Concat(data, clipped, rejected("seq_mean_k3"))},
	} {
		r := newToyRun(t, GRPO, 1)
		if tt.change(&r.cfg); name == "steps" {
			r.stepwise()
		}
		if d := cmp.Diff(slices.Sorted(slices.Values(tt.want)), r.metricNames()); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// metricNames takes a step and returns the names of its metrics in ascending order.
func (r *toyRun) metricNames() []string {
	r.cfg.Steps = 1
	r.run()
	var names []string
	for _, m := range r.steps[0].Metrics {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names
}
