package metric

// Reasons why metrics of FlowRL's loss may be absent.
const (
	onlyFlowRL = "only FlowRL has it"
	onlyMixed  = "only FlowRL with a surrogate next to the balance has it"
	onlyBound  = "only FlowRL with a bound on its mean log-probs has it"
	onlyLimits = "only FlowRL with a lower limit on its importance weight has it"
	onlyCISPO  = "only FlowRL with CISPO's mask has it"
	onlyRatios = "only FlowRL with ratio_fractions has it"
)

// flowRL describes FlowRL's loss (arXiv:2509.15207), under the names of verl's recipe
// where it has them.
func flowRL() []Metric {
	return append([]Metric{
		{Name: "actor/log_z", Unit: Nats, Title: "Log partition function", Heading: "logZ",
			Absent: onlyFlowRL, Shown: OnProgress | OverSteps,
			Axis:       Axis{Label: "log Z"},
			Definition: "FlowRL's log Z of a prompt, learned or from the group, mean over the batch"},
		{Name: "actor/residual_abs", Unit: Nats, Title: "Residual of the flow balance", Heading: "residual",
			Absent: onlyFlowRL, Shown: OverSteps,
			Axis: Axis{Label: "|residual|"},
			Definition: "absolute residual of FlowRL's balance, |log Z + log π − β·reward − log π_ref| with " +
				"log-probs averaged over tokens, mean over completions"},
		{Name: "actor/residual_std", Unit: Nats, Title: "Spread of the flow balance's residual",
			Absent:     onlyFlowRL + ", in updates on two completions or more",
			Axis:       Axis{Label: "standard deviation of the residual"},
			Definition: "sample standard deviation over completions of the residual of FlowRL's balance"},
		{Name: "actor/residual_mean", Unit: Nats, Title: "Mean residual of the flow balance", Absent: onlyFlowRL,
			Axis:       Axis{Label: "residual"},
			Definition: "residual of FlowRL's balance with its sign, mean over completions"},
		{Name: "actor/final_loss", Title: "FlowRL loss", Absent: onlyFlowRL, Axis: Axis{Label: "loss"},
			Definition: "weighted squared residual of the flow balance, mean over the batch"},
		{Name: "actor/tb_loss", Title: "Flow balance next to the surrogate", Absent: onlyMixed,
			Axis:       Axis{Label: "loss"},
			Definition: "the balance's part of FlowRL's loss"},
		{Name: "actor/ppo_loss", Title: "Surrogate next to the flow balance", Absent: onlyMixed,
			Axis:       Axis{Label: "loss"},
			Definition: "the clipped surrogate's part of FlowRL's loss"},
		{Name: "actor/importance_weight", Title: "Importance weight", Absent: onlyFlowRL,
			Axis:       Axis{Label: "importance weight"},
			Definition: "FlowRL's importance weight of a completion after its limits, mean over the batch"},
		{Name: "actor/importance_weight_raw", Title: "Importance weight before its limits", Absent: onlyFlowRL,
			Axis:       Axis{Label: "importance weight"},
			Definition: "FlowRL's importance weight of a completion before its limits, mean over the batch"},
		{Name: "actor/tis_weight", Title: "Weight of sampler against trainer",
			Absent: "only FlowRL with a rollout correction has it", Axis: Axis{Label: "weight"},
			Definition: "truncated importance weight of trainer over sampler, mean over completions"},
		{Name: "actor/log_prob", Unit: Nats, Per: "token", Title: "Log-prob under the policy", Absent: onlyFlowRL,
			Axis:       Axis{Label: "log-prob"},
			Definition: "log-prob of a sampled token under the current policy, mean over tokens"},
		{Name: "actor/old_log_prob", Unit: Nats, Per: "token", Title: "Log-prob under the old policy",
			Absent: onlyFlowRL, Axis: Axis{Label: "log-prob"},
			Definition: "log-prob of a sampled token under the policy before the step's updates, mean over tokens"},
		{Name: "actor/ref_log_prob", Unit: Nats, Per: "token", Title: "Log-prob under the reference policy",
			Absent: onlyFlowRL, Axis: Axis{Label: "log-prob"},
			Definition: "log-prob of a sampled token under the reference policy, mean over tokens"},
		{Name: "actor/ref_kl", Unit: Nats, Per: "token", Title: "Log-prob of the reference less the policy's",
			Absent: onlyFlowRL,
			Definition: "log π_ref − log π at the sampled tokens, mean over tokens: minus the estimate k1, as in " +
				"verl's recipe"},
		{Name: "actor/log_reward", Title: "Advantage in the balance", Absent: onlyFlowRL,
			Definition: "the advantage that serves as reward in FlowRL's balance, without β, mean over tokens"},
	}, flowRLOptions()...)
}

// flowRLOptions describes the metrics that settings of FlowRL add.
func flowRLOptions() []Metric {
	const terms, ratio = "terms", "whose ratio to the reference policy (with the surrogate, to the old one)"
	share := func(name, title, definition, per, absent, axis string) Metric {
		m := Metric{Name: name, Unit: Share, Per: per, Title: title, Definition: definition, Absent: absent}
		if axis != "" {
			m.Axis = Axis{Label: axis, Zero: true}
		}
		return m
	}
	term := func(name, title, definition string) Metric {
		return Metric{Name: name, Unit: Nats, Per: "token", Title: title, Absent: onlyBound,
			Definition: definition + ", mean over a term's tokens, then over terms"}
	}
	return []Metric{
		share("actor/pg_clipfrac_high", "Importance weights cut from above",
			"share of FlowRL's terms whose importance weight is above its upper "+
				"limit", terms, onlyLimits, "clipped"),
		share("actor/pg_clipfrac_low", "Importance weights cut from below",
			"share of FlowRL's terms whose importance weight is below its lower "+
				"limit", terms, onlyLimits, "clipped"),
		{Name: "actor/clipped_high_count", Unit: terms, Title: "Number of importance weights cut from above",
			Absent:     onlyLimits,
			Definition: "FlowRL's terms whose importance weight is above its upper limit"},
		{Name: "actor/clipped_low_count", Unit: terms, Title: "Number of importance weights cut from below",
			Absent:     onlyLimits,
			Definition: "FlowRL's terms whose importance weight is below its lower limit"},
		share("actor/cispo_mask_ratio", "Tokens dropped",
			"share of tokens that the mask of CISPO leaves out of FlowRL's loss", tokens, onlyCISPO, "dropped"),
		{Name: "actor/cispo_dropped_tokens", Unit: tokens, Title: "Number of tokens dropped", Absent: onlyCISPO,
			Definition: "tokens that the mask of CISPO leaves out of FlowRL's loss"},
		{Name: "actor/condition_1_count", Unit: tokens, Title: "Tokens dropped for a ratio too high",
			Absent:     onlyCISPO,
			Definition: "dropped tokens of positive advantage"},
		{Name: "actor/condition_2_count", Unit: tokens, Title: "Tokens dropped for a ratio too low",
			Absent:     onlyCISPO,
			Definition: "dropped tokens of negative advantage"},
		share("actor/clip_rate", "Bounded log-probs",
			"share of FlowRL's terms whose log-prob was bounded", terms, onlyBound, "bounded"),
		share("actor/clip_rate_high", "Log-probs bounded from above",
			"share of FlowRL's terms whose log-prob was bounded from above", terms, onlyBound, "bounded"),
		share("actor/clip_rate_low", "Log-probs bounded from below",
			"share of FlowRL's terms whose log-prob was bounded from below", terms, onlyBound, "bounded"),
		term("actor/log_prob_final", "Log-prob after its bound",
			"log-prob under the policy as it enters the residual, after its bound"),
		term("actor/seq_log_prob", "Log-prob before its bound", "log-prob under the policy before its bound"),
		term("actor/seq_old_log_prob", "Log-prob under the old policy, by term",
			"log-prob under the policy before the step's updates"),
		term("actor/seq_ref_log_prob", "Log-prob under the reference, by term",
			"log-prob under the reference policy"),
		{Name: "actor/seq_log_reward", Title: "Advantage in the balance, by term", Absent: onlyBound,
			Definition: "the advantage that serves as reward in FlowRL's balance, without β, mean over a term's " +
				"tokens, then over terms"},
		share("actor/pos_high_ratio_frac", "Good tokens above the clip",
			"share of tokens of positive advantage "+ratio+" is above the clip's range", tokens, onlyRatios, ""),
		share("actor/pos_low_ratio_frac", "Good tokens below the clip",
			"share of tokens of positive advantage "+ratio+" is below the clip's range", tokens, onlyRatios, ""),
		share("actor/neg_high_ratio_frac", "Bad tokens above the clip",
			"share of tokens of negative advantage "+ratio+" is above the clip's range", tokens, onlyRatios, ""),
		share("actor/neg_low_ratio_frac", "Bad tokens below the clip",
			"share of tokens of negative advantage "+ratio+" is below the clip's range", tokens, onlyRatios, ""),
	}
}

// megatron describes Megatron-LM's GRPO loss, under its names.
func megatron() []Metric {
	const only = "only the loss of Megatron-LM has it"
	clipped := Axis{Label: "clipped", Zero: true}
	return []Metric{
		{Name: "lm loss", Title: "Loss of Megatron-LM", Absent: only, Axis: Axis{Label: "loss"},
			Definition: "Megatron-LM's GRPO loss with its KL and entropy terms, as it is minimized"},
		{Name: "rl/kl_term", Unit: Nats, Per: "token", Title: "KL term of Megatron-LM's loss", Absent: only,
			Axis:       Axis{Label: "KL to the reference"},
			Definition: "estimate k3 of KL(policy‖reference) without its coefficient, mean over tokens"},
		{Name: "rl/pi_over_pi_old", Title: "Probability ratio", Absent: only, Axis: Axis{Label: "π / π_old"},
			Definition: "ratio of the policy's to the old policy's probability of a sampled token, mean over " +
				"tokens"},
		{Name: "rl/entropy_term", Unit: Nats, Title: "Entropy term of Megatron-LM's loss", Absent: only,
			Axis: Axis{Label: "−p ln p"},
			Definition: "−p ln p of the sampled token, which does not estimate the entropy, without its " +
				"coefficient, mean over tokens"},
		{Name: "rl/truncated_from_above", Unit: Share, Per: tokens, Title: "Tokens clipped from above",
			Absent: only, Axis: clipped,
			Definition: "share of tokens whose probability ratio is above the upper clip"},
		{Name: "rl/truncated_from_below", Unit: Share, Per: tokens, Title: "Tokens clipped from below",
			Absent: only, Axis: clipped,
			Definition: "share of tokens whose probability ratio is below the lower clip"},
	}
}
