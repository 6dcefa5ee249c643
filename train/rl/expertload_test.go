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
