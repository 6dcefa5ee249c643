package eval

import "exp/train/rollout"

// Prefixes of the metrics of the problems of a kind, where a suite has several.
const (
	PassPrefix   = "pass@1/"      // + kind
	RewardPrefix = "reward_mean/" // + kind
)

// KindMetrics returns pass@1 and the mean reward, with intervals, over the items of each kind of problems
// (rollout.Problem.Kind), in the order of kinds; none if the problems have no kinds.
func KindMetrics(items []Item, problems []rollout.Problem, kinds []string, seed uint64) ([]Metric, error) {
	of := map[string]string{}
	for i := range problems {
		of[problems[i].ID] = problems[i].Kind
	}
	var out []Metric
	for _, kind := range kinds {
		var own []Item
		for _, it := range items {
			if of[it.ProblemID] == kind {
				own = append(own, it)
			}
		}
		if len(own) == 0 {
			continue
		}
		list, err := Summarize(own, nil, seed)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			switch m.Name {
			case "pass@1":
				m.Name = PassPrefix + kind
			case "reward_mean":
				m.Name = RewardPrefix + kind
			default:
				continue
			}
			out = append(out, m)
		}
	}
	return out, nil
}
