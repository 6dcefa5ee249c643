package run

import (
	"context"
	"slices"

	"exp/experiments/store"
	"exp/harness/metric"
	"exp/harness/stage"
	"exp/train/rl"
)

// onProgress selects the metrics for a step's progress line, under the catalogue's
// headings.
func onProgress(measured []rl.Metric) []rl.Metric {
	value := make(map[string]float64, len(measured))
	for _, m := range measured {
		value[m.Name] = m.Value
	}
	var list []rl.Metric
	for _, m := range metric.ShownIn(metric.OnProgress) {
		if v, ok := value[m.Name]; ok {
			list = append(list, rl.Metric{Name: m.Heading, Value: v})
		}
	}
	return list
}

// listedResults is the number of results in a run's row.
const listedResults = 3

// listed returns the evaluation results that lists show, in catalogue order.
func listed(names []string) []string {
	list := metric.Among(names, metric.InLists)
	return list[:min(len(list), listedResults)]
}

// factsOf returns what the last line of a stage shows: its facts, and the evaluation
// results that lists show.
func factsOf(out *stage.Outcome) []rl.Metric {
	if out.Evaluation == nil {
		return out.Facts
	}
	var names []string
	value := map[string]float64{}
	for _, m := range out.Evaluation.Metrics {
		names = append(names, m.Name)
		value[m.Name] = m.Value
	}
	list := slices.Clone(out.Facts)
	for _, name := range listed(names) {
		list = append(list, rl.Metric{Name: name, Value: value[name]})
	}
	return list
}

// setHeadline stores the results of the first suite for lists. A run without an
// evaluation under its protocol keeps its former ones.
func (x *execution) setHeadline(ctx context.Context) error {
	names, value, err := scores(ctx, x.DB, x.p, x.run.ID, "")
	if err != nil || len(names) == 0 {
		return err
	}
	var list []store.Headline
	for _, name := range listed(names) {
		list = append(list, store.Headline{Name: name, Value: value[name]})
	}
	return x.DB.SetHeadline(ctx, x.run.ID, list)
}
