package metric

import (
	"slices"

	"exp/eval"
)

// sampler describes how far the sampling policy is from the trainer's: verl's
// calculate_debug_metrics and rollout correction.
func sampler() []Metric {
	const ofTokens = " of the probabilities that sampler and trainer give the sampled tokens"
	const rate = "verify.logprob_rate is 0 and nothing else compares the two"
	differences := []Metric{
		{Name: "training/rollout_probs_diff_mean", Unit: "probability", Title: "Sampler against trainer",
			Direction: eval.Down, Absent: rate, Axis: Axis{Label: "difference", Zero: true},
			Definition: "absolute difference" + ofTokens + ", mean over tokens"},
		{Name: "training/rollout_probs_diff_max", Unit: "probability",
			Title: "Sampler against trainer, greatest difference", Direction: eval.Down, Absent: rate,
			Axis:       Axis{Label: "difference", Zero: true},
			Definition: "absolute difference" + ofTokens + ", greatest over tokens"},
		{Name: "training/rollout_probs_diff_std", Unit: "probability", Title: "Sampler against trainer, spread",
			Direction: eval.Down, Absent: rate, Axis: Axis{Label: "difference", Zero: true},
			Definition: "absolute difference" + ofTokens + ", sample standard deviation over tokens"},
		{Name: "training/rollout_probs_diff_valid", Title: "Sampler compared with trainer", Absent: rate,
			Definition: "1 where tokens were compared, 0 where none were and the other differences are NaN"},
		{Name: "training/rollout_actor_probs_pearson_corr", Title: "Sampler against trainer, correlation",
			Direction:  eval.Up,
			Absent:     "only rollouts of another policy have it (rollout.staleness, rollout.source)",
			Definition: "Pearson's correlation" + ofTokens},
		{Name: "training/off_policy/trajectory_staleness/mean", Unit: "steps",
			Title:      "Staleness of the completions",
			Absent:     "only runs that sample ahead have it (rollout.staleness)",
			Definition: "steps of the policy between the sampling of the step's completions and their use"},
	}
	return slices.Concat(differences, mismatch(), weights(), rejection())
}

// corr is the prefix of rollout correction's metrics (rollout_corr_helper.py).
const corr = "rollout_corr/"

// onlyLogProbs explains why trainer and sampler may not be compared.
const onlyLogProbs = "the recorded rollouts have no log-probs"

// mismatch describes the distance between the trainer's and the sampler's policy.
func mismatch() []Metric {
	ppl := Axis{Label: "perplexity", Log: true}
	logPPL := "mean log-prob of a completion's tokens, negative, under the "
	list := []Metric{
		{Name: "training_ppl", Title: "Perplexity under the trainer", Axis: ppl,
			Definition: "e to the power of rollout_corr/training_log_ppl of a completion, mean over completions"},
		{Name: "training_log_ppl", Unit: Nats, Per: "token", Title: "Log-perplexity under the trainer",
			Definition: logPPL + "trainer, mean over completions"},
		{Name: "rollout_ppl", Title: "Perplexity under the sampler", Axis: ppl,
			Definition: "e to the power of rollout_corr/rollout_log_ppl of a completion, mean over completions"},
		{Name: "rollout_log_ppl", Unit: Nats, Per: "token", Title: "Log-perplexity under the sampler",
			Definition: logPPL + "sampler, mean over completions"},
		{Name: "kl", Unit: Nats, Per: "token", Title: "KL of sampler and trainer, k1",
			Axis: Axis{Label: "KL to the trainer"},
			Definition: "estimate k1 of KL(sampler‖trainer), −x for the log-ratio x of trainer to sampler, mean " +
				"over tokens"},
		{Name: "k3_kl", Unit: Nats, Per: "token", Title: "KL of sampler and trainer, k3",
			Axis: Axis{Label: "KL to the trainer"},
			Definition: "estimate k3 of KL(sampler‖trainer), e^x − x − 1 for the log-ratio x of trainer to " +
				"sampler, mean over tokens"},
		{Name: "log_ppl_diff", Unit: Nats, Per: "token", Title: "Log-perplexity, trainer less sampler",
			Definition: "trainer's log-perplexity of a completion less the sampler's, mean over completions"},
		{Name: "log_ppl_abs_diff", Unit: Nats, Per: "token", Title: "Log-perplexity, trainer against sampler",
			Definition: "absolute difference of a completion's log-perplexities, mean over completions"},
		{Name: "log_ppl_diff_max", Unit: Nats, Per: "token",
			Title:      "Log-perplexity, trainer less sampler, greatest",
			Definition: "trainer's log-perplexity of a completion less the sampler's, greatest over completions"},
		{Name: "log_ppl_diff_min", Unit: Nats, Per: "token", Title: "Log-perplexity, trainer less sampler, least",
			Definition: "trainer's log-perplexity of a completion less the sampler's, least over completions"},
		{Name: "ppl_ratio", Title: "Ratio of perplexities", Axis: Axis{Log: true},
			Definition: "trainer's perplexity of a completion over the sampler's, mean over completions"},
		{Name: "chi2_token", Title: "Divergence χ² of tokens",
			Definition: "χ²(trainer‖sampler) of a token, mean of e^2x − 1 for the log-ratio x of trainer to " +
				"sampler"},
		{Name: "chi2_seq", Title: "Divergence χ² of completions",
			Definition: "χ²(trainer‖sampler) of a completion, mean of e^2Σx − 1 for the log-ratios x of its " +
				"tokens"},
	}
	for i := range list {
		list[i].Name, list[i].Direction, list[i].Absent = corr+list[i].Name, eval.Neutral, onlyLogProbs
	}
	return list
}

// weights describes the importance weights of rollout correction.
func weights() []Metric {
	const only = "only runs that weigh rollouts have it (algo.rollout_correction)"
	weight := func(name, title, definition string) Metric {
		return Metric{Name: corr + "rollout_is_" + name, Title: title, Definition: definition, Absent: only,
			Axis: Axis{Label: "weight"}}
	}
	share := func(name, per, title, definition string) Metric {
		return Metric{Name: corr + "rollout_is_" + name, Unit: Share, Per: per, Title: title,
			Definition: definition, Absent: only}
	}
	return []Metric{
		weight("mean", "Rollout weight",
			"importance weight of trainer over sampler after its bounds, mean over tokens"),
		weight("std", "Rollout weight, spread", "standard deviation of the bounded weights over tokens"),
		weight("max", "Rollout weight, greatest",
			"greatest weight: of tokens after its bounds, of whole completions before them"),
		weight("min", "Rollout weight, least",
			"least weight: of tokens after its bounds, of whole completions before them"),
		share("eff_sample_size", "tokens", "Effective sample size",
			"1/mean((w/mean w)²) over the tokens' weights w: 1 where all weights are equal"),
		share("ratio_fraction_high", "weights", "Rollout weights above the bound",
			"share of weights above the upper bound"),
		share("ratio_fraction_low", "weights", "Rollout weights below the bound",
			"share of weights below the lower bound, 1/upper if it has none"),
		weight("seq_mean", "Rollout weight of completions",
			"mean weight of a completion's tokens, mean over completions"),
		weight("seq_std", "Rollout weight of completions, spread",
			"sample standard deviation over completions of a completion's mean weight"),
		weight("seq_max", "Rollout weight of completions, greatest", "greatest of the completions' mean weights"),
		weight("seq_min", "Rollout weight of completions, least", "least of the completions' mean weights"),
		weight("seq_max_deviation", "Rollout weight of completions, furthest from 1",
			"greatest distance of a completion's mean weight from 1"),
		share("seq_fraction_high", "completions", "Completions weighted above the bound",
			"share of completions whose mean weight before its bounds is above the upper bound"),
		share("seq_fraction_low", "completions", "Completions weighted below the bound",
			"share of completions whose mean weight before its bounds is below the lower bound"),
		share("oob_ratio", "tokens", "Tokens weighted 0",
			"share of tokens whose weight became 0 because it was outside of the bounds (IcePop)"),
		weight("batch_norm_factor", "Normalization of the rollout weights",
			"mean weight, by which all weights of the batch were divided"),
	}
}

// rejection describes what rollout correction rejects, by each criterion and by all
// together.
func rejection() []Metric {
	const only = "only runs that reject rollouts have it (algo.rollout_correction)"
	const by = corr + "rollout_rs_CRITERION_"
	statistic := func(name, title, definition string) Metric {
		return Metric{Name: by + name, Unit: Nats, Title: "CRITERION, " + title, Definition: definition,
			Absent: only}
	}
	share := func(name, per, title, definition string) Metric {
		return Metric{Name: name, Unit: Share, Per: per, Title: title, Definition: definition, Absent: only}
	}
	const of = "CRITERION of trainer against sampler"
	list := []Metric{
		statistic("mean", "mean", of+", mean over tokens"),
		statistic("std", "spread", "standard deviation of "+of+" within its bounds, over tokens"),
		statistic("max", "greatest", of+", greatest over tokens"),
		statistic("min", "least", of+", least over tokens"),
		statistic("seq_mean", "mean over completions", of+", mean over completions"),
		statistic("seq_std", "spread over completions", "sample standard deviation of "+of+" over completions"),
		statistic("seq_max", "greatest of completions", of+", greatest over completions"),
		statistic("seq_min", "least of completions", of+", least over completions"),
		statistic("seq_max_deviation", "furthest from 0", "greatest distance of a completion's CRITERION from 0"),
		share(by+"fraction_high", "tokens or completions", "CRITERION above its bound",
			"share whose CRITERION is above its bound: of tokens for criteria of tokens, otherwise of completions"),
		share(by+"fraction_low", "tokens or completions", "CRITERION below its bound",
			"share whose CRITERION is below its bound: of tokens for criteria of tokens, otherwise of completions"),
		share(by+"seq_fraction_high", "completions", "Completions with CRITERION above its bound",
			"share of completions whose CRITERION is above its bound"),
		share(by+"seq_fraction_low", "completions", "Completions with CRITERION below its bound",
			"share of completions whose CRITERION is below its bound"),
		share(by+"masked_fraction", "tokens", "Tokens rejected by CRITERION",
			"share of tokens that CRITERION leaves out of training"),
		share(by+"seq_masked_fraction", "completions", "Completions touched by CRITERION",
			"share of completions with a token that CRITERION leaves out"),
	}
	return append(list,
		share(corr+"rollout_rs_masked_fraction", "tokens", "Rejected tokens",
			"share of tokens that any criterion leaves out of training"),
		share(corr+"rollout_rs_seq_masked_fraction", "completions", "Completions with rejected tokens",
			"share of completions with a token that any criterion leaves out"))
}
