package run

import (
	"context"
	"strconv"
	"strings"

	"exp/experiments/store"
)

func itoa(n int) string { return strconv.Itoa(n) }

// unitOf names the unit of a metric by its name.
func unitOf(name string) string {
	switch {
	case strings.HasPrefix(name, "timing_s/"), name == "perf/time_per_step":
		return "s"
	case strings.HasPrefix(name, "timing_per_token_ms/"):
		return "ms"
	case strings.Contains(name, "entropy"), strings.Contains(name, "kl"), strings.Contains(name, "log_z"), strings.Contains(name, "log_prob"):
		return "nats"
	case strings.HasPrefix(name, "response_length"), strings.HasPrefix(name, "prompt_length"), name == "perf/total_num_tokens":
		return "tokens"
	case name == "perf/throughput":
		return "tokens/s"
	}
	return ""
}

// setHeadline stores the results that lists show: of the first suite, pass@1, the
// largest pass@k and the distinct correct solutions, or what an enumerable task has
// instead.
func (x *execution) setHeadline(ctx context.Context) error {
	evals, err := x.DB.Evals(ctx, x.run.ID)
	if err != nil || len(evals) == 0 {
		return err
	}
	protocol, err := x.p.Protocol()
	if err != nil {
		return err
	}
	f := x.p.Config.Run.Eval.Final
	wanted := []string{"pass@1"}
	if n := len(f.PassK); n > 0 && f.PassK[n-1] > 1 {
		wanted = append(wanted, "pass@"+itoa(f.PassK[n-1]))
	}
	wanted = append(wanted, "distinct_correct")
	if x.p.Config.Run.Task.Kind == "outcomes" {
		wanted = []string{"kl_target", "pass@1", "policy_entropy"}
	}
	suite := x.suiteName(f.Suites[0])
	var list []store.Headline
	for _, name := range wanted {
		for _, e := range evals {
			if e.Metric == name && e.SuiteName == suite && e.Protocol == protocol {
				list = append(list, store.Headline{Name: name, Value: e.Value})
			}
		}
	}
	return x.DB.SetHeadline(ctx, x.run.ID, list)
}
