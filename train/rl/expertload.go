package rl

import (
	"fmt"
	"math"
)

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
