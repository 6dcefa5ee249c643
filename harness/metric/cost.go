package metric

import (
	"slices"

	"exp/eval"
)

// phase is a part of a training step that is timed.
type phase struct {
	name, title, what string
	perToken          string // tokens that its time per token counts; "": none
}

// phases lists the phases of a step in order.
func phases() []phase {
	const all = "the step's prompt and completion tokens"
	return []phase{
		{"gen", "Sampling", "sampling completions", "sampled tokens"},
		{"reward", "Grading", "grading completions", ""},
		{"old_log_prob", "Old log-probs", "computing or checking log-probs before the updates", ""},
		{"ref", "Reference log-probs", "computing log-probs under the reference policy", all},
		{"values", "Values", "computing the critic's values", all},
		{"process", "Process rewards", "updating the process reward model and computing its rewards", ""},
		{"adv", "Advantages", "rewards with penalties, rollout correction and advantages", all},
		{"update_critic", "Critic update", "updating the critic", all},
		{"update_actor", "Policy update", "updating the policy", all},
		{"testing", "Online evaluation", "evaluating on validation problems", ""},
		{"sft", "Fine-tuning", "the fine-tuning step's forward and backward pass and update", ""},
		{"reward_model", "Training of the reward model",
			"the step's forward and backward pass over its pairs, and update", ""},
		{"prefer", "Learning from preferences", "the step's forward and backward pass over its pairs, and update", ""},
	}
}

// Phases returns the timed parts of a training step in order.
func Phases() []Metric {
	var list []Metric
	for _, p := range phases() {
		m, _ := Find("timing_s/" + p.name)
		list = append(list, m)
	}
	return list
}

// cost describes the cost of a step: verl's timing, throughput and length metrics.
func cost() []Metric {
	speed := []Metric{
		{Name: "perf/throughput", Unit: "tokens/s", Title: "Throughput", Heading: "tok/s", Direction: eval.Up,
			Shown: OnProgress | OverSteps, Axis: Axis{Label: "throughput", Zero: true},
			Definition: "prompt and completion tokens of a step over its wall-clock time"},
		{Name: "perf/time_per_step", Unit: "s", Title: "Time of a step", Direction: eval.Down,
			Definition: "wall-clock time of the step"},
		{Name: "perf/total_num_tokens", Unit: tokens, Title: "Tokens of a step",
			Definition: "prompt and completion tokens of the step"},
		{Name: "perf/sampler_restarts", Unit: "completions", Title: "Restarted completions", Direction: eval.Down,
			Definition: "completions of a step and its online evaluation that gave their room in the sampler's " +
				"cache to others and were computed again, on the first rank",
			Absent: "only steps with such completions have it: the cache is small (rollout.cache_tokens)"},
		{Name: "perf/sampler_speculated", Unit: tokens, Title: "Speculated tokens", Direction: eval.Up,
			Definition: "sampled tokens of a step and its online evaluation that were guessed right and so took no " +
				"sampling step of their own (rollout.speculate), on the first rank",
			Absent: "only steps where few completions ran together have it"},
	}
	times := []Metric{{Name: "timing_s/step", Unit: "s", Title: "Step", Direction: eval.Down,
		Definition: "wall-clock time of the step, online evaluation not counted"}}
	var perToken []Metric
	for _, p := range phases() {
		times = append(times, Metric{Name: "timing_s/" + p.name, Unit: "s", Title: p.title, Direction: eval.Down,
			Definition: "wall-clock time of a step for " + p.what, Absent: "only steps with this phase have it"})
		if p.perToken != "" {
			perToken = append(perToken, Metric{Name: "timing_per_token_ms/" + p.name, Unit: "ms", Per: "token",
				Title: p.title + ", per token", Direction: eval.Down,
				Definition: "time for " + p.what + " over " + p.perToken,
				Absent:     "only steps with this phase have it"})
		}
	}
	return slices.Concat(speed, times, perToken, loads())
}

// loads describes verl's global_seqlen metrics.
func loads() []Metric {
	load := func(name, title, definition string) Metric {
		return Metric{Name: "global_seqlen/" + name, Unit: tokens, Title: title,
			Definition: definition + "; one device has all"}
	}
	return []Metric{
		load("mean", "Tokens per device", "prompt and completion tokens of the step, mean over devices"),
		load("min", "Tokens per device, least", "least of the devices' tokens in the order of the batch"),
		load("max", "Tokens per device, greatest", "greatest of the devices' tokens in the order of the batch"),
		load("minmax_diff", "Tokens per device, range",
			"greatest less least of the devices' tokens in the order of the batch"),
		load("balanced_min", "Balanced tokens per device, least", "least of the devices' tokens after balancing"),
		load("balanced_max", "Balanced tokens per device, greatest",
			"greatest of the devices' tokens after balancing"),
	}
}
