package metric

import (
	"slices"

	"exp/eval"
)

// onlyReference explains why the distance to the reference policy may be absent.
const onlyReference = "only methods that use the reference policy compute it"

// policy describes the sampled policy: how certain it is, how far from its start, and
// how long its answers are.
func policy() []Metric {
	list := []Metric{
		{Name: "actor/entropy", Unit: Nats, Per: "token", Title: "Policy entropy", Heading: "entropy",
			Shown: OnProgress | OverSteps, Axis: Axis{Label: "entropy"},
			Definition: "entropy of the next-token distribution where tokens were sampled, mean over the batch's " +
				"tokens"},
		{Name: "kl/ref_k3", Unit: Nats, Per: "token", Title: "Divergence from the reference policy", Heading: "kl",
			Absent: onlyReference,
			Shown:  OnProgress | OverSteps, Axis: Axis{Label: "KL to the reference"},
			Definition: "estimate k3 of KL(policy‖reference) at the sampled tokens, mean over the batch's tokens"},
		{Name: "kl/ref_k1", Unit: Nats, Per: "token", Title: "Divergence from the reference policy, k1",
			Absent: onlyReference, Axis: Axis{Label: "KL to the reference"},
			Definition: "estimate k1 of KL(policy‖reference), log π − log π_ref at the sampled tokens, mean over " +
				"the batch's tokens"},
		{Name: "kl/ref_age", Unit: "steps", Title: "Age of the reference policy",
			Absent:     "only runs that renew the reference policy have it (algo.reference_every)",
			Definition: "steps since the reference policy was renewed; before that, since the start"},
	}
	list = append(list, lengths("response_length",
		Metric{Unit: tokens, Title: "Response length", Heading: "len", Shown: OnProgress | OverSteps,
			Axis:       Axis{Label: "response length"},
			Definition: "tokens per completion, the end token and what tools wrote included, mean over the batch"},
		Metric{Title: "Truncated responses", Direction: eval.Down, Axis: Axis{Label: "truncated", Zero: true},
			Definition: "share of completions as long as the token limit"},
		"tokens of a completion", "completions")...)
	list = append(list, lengths("response_length_non_aborted",
		Metric{Unit: tokens, Title: "Length of responses that are not empty",
			Definition: "tokens per completion, mean over nonempty completions"},
		Metric{Title: "Truncated share of nonempty responses", Direction: eval.Down,
			Definition: "share of nonempty completions that are as long as the token limit"},
		"tokens of a completion", full)...)
	list = append(list, Metric{Name: "response/aborted_ratio", Unit: Share, Per: "completions",
		Title: "Empty responses", Direction: eval.Down,
		Definition: "share of completions without a token"})
	return append(list, lengths("prompt_length",
		Metric{Unit: tokens, Title: "Prompt length",
			Definition: "tokens of a prompt, mean over the batch's completions"},
		Metric{Title: "Truncated prompts", Direction: eval.Down,
			Definition: "share of prompts as long as the limit, over the batch's completions"},
		"tokens of a completion's prompt", "completions")...)
}

// lengths describes NAME/mean, /max, /min and /clip_ratio.
func lengths(name string, mean, cut Metric, what, over string) []Metric {
	cut.Name, cut.Unit, cut.Per = name+"/clip_ratio", Share, "completions"
	return append(extentWith(mean, Metric{Name: name, Unit: tokens, Title: mean.Title, Definition: what}, over), cut)
}

// chosen describes what the policy loss reads.
func chosen() []Metric {
	return []Metric{
		{Name: "actor/entropy_threshold", Unit: Nats, Title: "Entropy from which tokens are trained on",
			Absent: "only runs with algo.top_entropy below 1 have it",
			Definition: "entropy of the policy before the step at which the policy loss begins to read tokens " +
				"(arXiv:2506.01939)"},
		{Name: "actor/off_policy_dropped", Unit: Share, Per: "the loss", Title: "Loss left out as off-policy",
			Absent: "only runs with algo.off_policy_bound have it", Axis: Axis{Label: "left out", Zero: true},
			Definition: "weight in the loss of tokens with a negative advantage in completions that the policy has " +
				"left by more than algo.off_policy_bound (arXiv:2512.02556 eq. 9)"},
	}
}

// optimization describes losses and updates that most algorithms share, under verl's
// names, and the parts of the objective.
func optimization() []Metric {
	const onlyClip = "only losses that clip the ratio have it"
	const onlyTaught = "only distillation of the teacher's likeliest tokens has it (algo.distill.top_k)"
	const onlyKLLoss = "only objectives with a KL term have it (algo.kl.loss_coef)"
	const onlyKLReward = "only runs that charge KL to the reward have it (algo.kl.reward_coef)"
	list := []Metric{
		{Name: "actor/pg_loss", Title: "Policy loss",
			Absent: "FlowRL and the loss of Megatron-LM record other losses", Axis: Axis{Label: "loss"},
			Definition: "the algorithm's policy loss, clipping included, aggregated as algo.aggregation says"},
		{Name: "actor/pg_clipfrac", Unit: Share, Per: "tokens", Title: "Clipped tokens", Absent: onlyClip,
			Axis: Axis{Label: "clipped", Zero: true},
			Definition: "share of tokens whose probability ratio was clipped in the loss; GMPO: only tokens of " +
				"positive advantage; DPPO: tokens beyond the trust region; Clip-Cov: tokens it picked; FlowRL: " +
				"terms whose importance weight was clipped"},
		{Name: "actor/pg_clipfrac_lower", Unit: Share, Per: "tokens", Title: "Tokens bounded by the dual clip",
			Absent: onlyClip, Axis: Axis{Label: "clipped", Zero: true},
			Definition: "share of tokens whose loss the dual clip bounded (arXiv:1912.09729 eq. 5); GMPO: " +
				"clipped tokens of negative advantage; DPPO: truncated ratios in the trust region"},
		{Name: "actor/gvpo_residual", Title: "Residual of GVPO", Absent: "only GVPO's loss has it",
			Axis: Axis{Label: "|residual|", Zero: true},
			Definition: "absolute distance of a completion's log-ratio, scaled and less its group's mean, from its " +
				"advantage, mean over completions (arXiv:2504.19599)"},
		{Name: "actor/ppo_kl", Unit: Nats, Per: "token", Title: "Divergence from the sampling policy",
			Absent: "the loss of Megatron-LM does not record it",
			Axis:   Axis{Label: "KL to the old policy"},
			Definition: "estimate k1 of KL(old‖policy) while the step's updates are made, mean over tokens; KL-Cov: " +
				"mean size of the log-ratio; DPO: over the tokens of pairs"},
		{Name: "actor/entropy_loss", Unit: Nats, Title: "Entropy in the objective",
			Absent: "only losses that take an entropy term have it",
			Definition: "the policy's entropy aggregated as the loss is, before its coefficient " +
				"algo.entropy_coef (arXiv:1602.01783 §4; verl's actor/entropy_loss)"},
		{Name: "actor/kl_loss", Unit: Nats, Title: "KL in the objective", Absent: onlyKLLoss,
			Axis: Axis{Label: "KL to the reference"},
			Definition: "estimate of KL(policy‖reference) aggregated as the loss is, before its coefficient " +
				"(verl's actor/kl_loss)"},
		{Name: "actor/kl_coef", Title: "Coefficient of KL in the objective", Absent: onlyKLLoss,
			Definition: "algo.kl.loss_coef, the factor of actor/kl_loss (verl's actor/kl_coef)"},
		{Name: "actor/distill_loss", Unit: Nats, Title: "Distillation in the objective", Absent: onlyTaught,
			Axis: Axis{Label: "forward KL from the teacher", Zero: true},
			Definition: "forward KL of the teacher's likeliest tokens, aggregated as the loss is, before its " +
				"coefficient algo.distill.coef (arXiv:2306.13649 eq. 2; verl's distillation/loss)"},
		{Name: "distill/teacher_mass", Per: "token", Title: "Probability of the teacher's likeliest tokens",
			Absent: onlyTaught, Axis: Axis{Label: "probability"},
			Definition: "the teacher's probability of its algo.distill.top_k likeliest tokens, mean over tokens " +
				"(verl's distillation/teacher_mass)"},
		{Name: "distill/student_mass", Per: "token", Title: "Policy's probability of them",
			Absent: onlyTaught, Axis: Axis{Label: "probability"},
			Definition: "the policy's probability of the same tokens, mean over tokens (verl's " +
				"distillation/student_mass)"},
		{Name: "actor/reward_kl_penalty", Unit: Nats, Per: "token", Title: "KL charged to the reward",
			Absent: onlyKLReward, Axis: Axis{Label: "KL to the reference"},
			Definition: "estimate of KL(old‖reference), mean over a completion's tokens, then over completions " +
				"(verl's actor/reward_kl_penalty)"},
		{Name: "actor/reward_kl_penalty_coeff", Title: "Coefficient of KL in the reward", Absent: onlyKLReward,
			Definition: "factor of the KL estimate in the step; it changes if algo.kl.controller is " +
				"adaptive (arXiv:1909.08593 §2.2)"},
		{Name: "actor/grad_norm", Title: "Gradient norm", Heading: "grad", Shown: OverSteps,
			Axis:       Axis{Label: "gradient norm", Zero: true},
			Definition: "L2 norm of the gradient before clipping, mean over the step's updates"},
		{Name: "actor/lr", Title: "Learning rate", Axis: Axis{Label: "learning rate", Log: true},
			Definition: "learning rate of the policy's optimizer in the step"},
	}
	return slices.Concat(list, pairs(), trackedValues(), noise())
}

// pairs describes the pairs of DPO.
func pairs() []Metric {
	const only = "only DPO's loss has it"
	return []Metric{
		{Name: "actor/dpo_pairs", Title: "Pairs of DPO", Absent: only, Axis: Axis{Label: "pairs", Zero: true},
			Definition: "pairs of a mini-batch: its problems whose completions have different rewards"},
		{Name: "actor/dpo_margin", Title: "Margin of DPO", Absent: only, Direction: eval.Up,
			Axis: Axis{Label: "margin"},
			Definition: "scaled log-ratio of a pair's better completion less the worse one's, mean over " +
				"pairs (arXiv:2305.18290; TRL's rewards/margins)"},
		{Name: "actor/dpo_accuracy", Unit: Share, Per: "pairs", Title: "Right order in DPO's pairs", Absent: only,
			Direction: eval.Up, Axis: Axis{Label: "right order", Zero: true},
			Definition: "share of pairs with a margin above 0 (TRL's rewards/accuracies)"},
	}
}

// trackedValues describes the problems' values of single-stream policy optimization, under the names of verl's recipe.
func trackedValues() []Metric {
	const only = "only runs that track the values of problems have it (algo.kind spo)"
	const onlyMoved = "only runs that track values with algo.spo.rho_min below rho_max have it"
	return []Metric{
		{Name: "spo/p_hats", Unit: Reward, Title: "Tracked values", Absent: only, Axis: Axis{Label: "tracked value"},
			Definition: "what the trackers expected of the step's problems before they were sampled, mean over " +
				"problems (arXiv:2509.13232)"},
		{Name: "spo/Neff", Unit: "completions", Title: "Weight of tracked values", Absent: only,
			Axis: Axis{Label: "completions", Zero: true},
			Definition: "completions that a tracker's value rests on, with what was forgotten, mean over the " +
				"step's problems"},
		{Name: "spo/rho_clipped", Title: "Share of trackers that remains", Absent: only, Axis: Axis{Label: "rho"},
			Definition: "share of a tracker's weight that the step's visit leaves, mean over its problems"},
		{Name: "spo/D", Unit: Nats, Per: "token", Title: "Change of the policy since last visits", Absent: onlyMoved,
			Axis: Axis{Label: "|change of log-prob|", Zero: true},
			Definition: "mean |change of logprob| of the completion of a problem's last visit, 0 for first visits, " +
				"mean over the step's problems"},
		{Name: "spo/first_sampled_ratio", Unit: Share, Per: "problems", Title: "First visits", Absent: onlyMoved,
			Definition: "share of the step's problems that no earlier step sampled"},
	}
}

// noise describes verl's estimates of the noise in a gradient.
func noise() []Metric {
	const only = "only runs with algo.variance_proxies or a token baseline have it"
	return []Metric{
		{Name: "variance_proxy/proxy1_signal_strength", Title: "Squared gradient norm", Absent: only,
			Axis: Axis{Log: true},
			Definition: "square of actor/grad_norm (verl's compute_variance_proxy_metrics); 0 where the policy " +
				"was not updated"},
		{Name: "variance_proxy/proxy2_total_power", Title: "Power of the gradient", Absent: only,
			Axis: Axis{Log: true},
			Definition: "squared mean advantage times squared norm of the scores, mean over completions: signal " +
				"and noise together"},
		{Name: "variance_proxy/proxy3_pure_noise", Title: "Noise of the gradient", Absent: only,
			Direction: eval.Down, Axis: Axis{Log: true},
			Definition: "max(0, (proxy2 − proxy1)/(B − 1)) for B completions: the variance of the mean gradient; " +
				"0 where B is 1"},
		{Name: "variance_proxy/expected_a_squared", Title: "Squared advantage", Absent: only,
			Definition: "square of a completion's mean advantage, mean over completions"},
		{Name: "variance_proxy/expected_w", Title: "Squared norm of the scores", Absent: only,
			Axis: Axis{Log: true},
			Definition: "sum over a completion's tokens of the squared norm of its score, 1 − 2π + Σπ², weighted " +
				"by rollout correction, mean over completions"},
	}
}
