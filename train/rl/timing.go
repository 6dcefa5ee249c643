package rl

// Lap is a phase of a step and its duration.
type Lap struct {
	Phase   string
	Seconds float64
}

// TimingMetrics returns verl's compute_timing_metrics: timing_s/PHASE in seconds and
// timing_per_token_ms/PHASE in milliseconds, for gen over the completion tokens (0 if there
// are none), for the passes over all tokens.
func TimingMetrics(laps []Lap, completionTokens, tokens int) []Metric {
	var total, per []Metric
	for _, l := range laps {
		total = append(total, Metric{"timing_s/" + l.Phase, l.Seconds})
		n := tokens
		switch l.Phase {
		case "gen":
			n = completionTokens
		case "ref", "values", "adv", "update_critic", "update_actor":
		default:
			continue
		}
		ms := 0.0
		if n > 0 {
			ms = 1000 * l.Seconds / float64(n)
		}
		per = append(per, Metric{"timing_per_token_ms/" + l.Phase, ms})
	}
	return append(total, per...)
}

// ThroughputMetrics returns verl's compute_throughout_metrics over all tokens of a step:
// perf/total_num_tokens, perf/time_per_step in seconds, and perf/throughput in tokens per
// second and device.
func ThroughputMetrics(tokens int, seconds float64, devices int) []Metric {
	return []Metric{
		{"perf/total_num_tokens", float64(tokens)},
		{"perf/time_per_step", seconds},
		{"perf/throughput", float64(tokens) / (seconds * float64(devices))},
	}
}
