package eval

import (
	"slices"

	"exp/train/rollout"
)

// Prefixes of the metrics of a group of problems, where a suite has several.
const (
	PassPrefix   = "pass@1/"      // + kind
	RewardPrefix = "reward_mean/" // + kind
	SourcePrefix = "source/"      // + data source
)

// MostSources is the largest number of data sources that have metrics of their own.
const MostSources = 100

// KindMetrics returns pass@1 and the mean reward, with intervals, over the items of each kind of problems
// (rollout.Problem.Kind), in the order of kinds; none if the problems have no kinds.
func KindMetrics(items []Item, problems []rollout.Problem, kinds []string, seed uint64) ([]Metric, error) {
	of := map[string]string{}
	for i := range problems {
		of[problems[i].ID] = problems[i].Kind
	}
	return groupMetrics(items, of, kinds, seed, map[string]string{"pass@1": PassPrefix, "reward_mean": RewardPrefix})
}

// SourceMetrics returns pass@1 with an interval over the items of each data source (rollout.Problem.DataSource), such
// as the contests of a file or the subjects of MMLU, sorted. Problems of one source, or of more than MostSources, have
// none.
func SourceMetrics(items []Item, problems []rollout.Problem, seed uint64) ([]Metric, error) {
	of := map[string]string{}
	var sources []string
	for i := range problems {
		source := problems[i].DataSource("")
		of[problems[i].ID] = source
		if source != "" && !slices.Contains(sources, source) {
			if sources = append(sources, source); len(sources) > MostSources {
				return nil, nil
			}
		}
	}
	if len(sources) < 2 {
		return nil, nil
	}
	slices.Sort(sources)
	return groupMetrics(items, of, sources, seed, map[string]string{"pass@1": SourcePrefix})
}

// groupMetrics returns metrics over the items of each group, in the order of groups; of has the group of each problem,
// prefixes what stands before a group's name by metric. A group without items has none.
func groupMetrics(items []Item, of map[string]string, groups []string, seed uint64,
	prefixes map[string]string) ([]Metric, error) {
	own := map[string][]Item{}
	for _, it := range items {
		own[of[it.ProblemID]] = append(own[of[it.ProblemID]], it)
	}
	var out []Metric
	for _, group := range groups {
		if len(own[group]) == 0 {
			continue
		}
		list, err := Summarize(own[group], nil, seed)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			if prefix, ok := prefixes[m.Name]; ok {
				m.Name = prefix + group
				out = append(out, m)
			}
		}
	}
	return out, nil
}
