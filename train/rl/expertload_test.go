package rl

import (
	"fmt"
	"math"
	"testing"
)

// Two rows of three and two tokens, one of them masked, two layers, two of four experts
// each: the last unmasked token of a row does not count.
func TestExpertLoads(t *testing.T) {
	expert := []int{
		0, 1 /**/, 0, 0,
		2, 3 /**/, 0, 2, // masked
		3, 3 /**/, 3, 3, // the last of its row
		0, 1 /**/, 0, 2,
		1, 1 /**/, 1, 1, // the last of its row
	}
	load := ExpertLoads(expert, []bool{on, off, on, on, on}, Rows{0, 3, 5}, 2, 4)
	if got := fmt.Sprint(load); got != "[[2 2 0 0] [3 0 1 0]]" {
		t.Fatal(got)
	}
	// Means of 1: v is 1, 1, -1, -1 and 2, -1, 0, -1.
	want := map[string]float64{
		"max_vio/layer_0": 1, "min_vio/layer_0": -1, "avg_vio/layer_0": 1,
		"max_vio/layer_1": 2, "min_vio/layer_1": -1, "avg_vio/layer_1": 1,
		"max_vio/avg": 1.5, "max_vio/max": 2, "min_vio/avg": -1, "min_vio/max": -1, "avg_vio/avg": 1, "avg_vio/max": 1,
	}
	list := ExpertMetrics(load)
	for _, m := range list {
		if w, ok := want[m.Name[len("rollout/moe/"):]]; !ok || m.Value != w {
			t.Errorf("%s is %v, want %v", m.Name, m.Value, w)
		}
	}
	if len(list) != len(want) {
		t.Errorf("%d metrics, want %d", len(list), len(want))
	}
	if got := ExpertMetrics(ExpertLoads(nil, nil, Rows{0}, 2, 4)); got != nil {
		t.Errorf("of no tokens: %v", got)
	}
	if !panics(func() { ExpertLoads([]int{0, 1, 2}, []bool{on, on}, Rows{0, 2}, 1, 4) }) {
		t.Error("three experts of two tokens do not panic")
	}
}

func TestDraftMetrics(t *testing.T) {
	// rates 1/2, 0 and 1; lengths 1 + 2/4, 0 and 1 + 3/1
	m := DraftMetrics([]int{4, 0, 3}, []int{2, 0, 3}, []int{4, 0, 1})
	if len(m) != 2 || math.Abs(m[0].Value-5.5/3) > 1e-15 || m[1].Value != 0.5 {
		t.Error(m)
	}
	if DraftMetrics(nil, nil, nil) != nil {
		t.Error("metrics of no completions")
	}
}

// ExpertLoads counts how often a sampler's mixture of experts sent a completion's
// tokens to each expert: [L][E] of L layers and E experts. expert is [N][L][K], the K
// experts of each token of the batch in each layer. A row's last unmasked token does
// not count, as in verl: it was sampled and never went through the layers.
func ExpertLoads(expert []int, mask []bool, rows Rows, layers, experts int) [][]int {
	rows.check(len(mask))
	if layers < 1 || len(mask) > 0 && len(expert)%int(len(mask)*layers) != 0 {
		panic("rl: length mismatch")
	}
	load := make([][]int, layers)
	for l := range load {
		load[l] = make([]int, experts)
	}
	width := len(expert) / max(1, len(mask)) // L·K
	for i := range rows.Len() {
		last := rows[i+1] - 1
		for last >= rows[i] && !mask[last] {
			last--
		}
		for t := rows[i]; t < last; t++ {
			if !mask[t] {
				continue
			}
			for j, e := range expert[int(t*width):int((t+1)*width)] {
				load[j/(width/layers)][e]++
			}
		}
	}
	return load
}

// ExpertMetrics are verl's rollout/moe metrics of loads [L][E]. With v an expert's load
// over the mean of its layer, less 1:
//
//	max_vio   the greatest v        min_vio   the least v        avg_vio   the mean of |v|
//
// of each layer, and their mean and maximum over layers. Nil if a layer has no load.
//
// Our own models have no experts; this is for rollouts of models that do.
func ExpertMetrics(load [][]int) []Metric {
	var list []Metric
	var total [3]struct{ sum, most float64 }
	names := [3]string{"max_vio", "min_vio", "avg_vio"}
	for l, counts := range load {
		sum := 0
		for _, n := range counts {
			sum += n
		}
		if sum == 0 {
			return nil
		}
		mean := float64(sum) / float64(len(counts))
		most, least, size := -1.0, float64(len(counts)), 0.0
		for _, n := range counts {
			v := float64(n)/mean - 1
			most, least, size = max(most, v), min(least, v), size+math.Abs(v)
		}
		for k, x := range [3]float64{most, least, size / float64(len(counts))} {
			list = append(list, Metric{fmt.Sprintf("rollout/moe/%s/layer_%d", names[k], l), x})
			if total[k].sum += x; l == 0 || x > total[k].most {
				total[k].most = x
			}
		}
	}
	for k, t := range total {
		if len(load) > 0 {
			list = append(list, Metric{"rollout/moe/" + names[k] + "/avg", t.sum / float64(len(load))}, Metric{"rollout/moe/" + names[k] + "/max", t.most})
		}
	}
	return list
}
