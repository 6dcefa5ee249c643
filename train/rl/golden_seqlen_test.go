package rl

import (
	"fmt"
	"slices"
	"testing"
)

// TestGoldenSeqlenBalancing covers the partitions, their metrics, and micro-batches.
func TestGoldenSeqlenBalancing(t *testing.T) {
	goldenFamily(t, "seqlen_balancing", map[string]goldenCheck{
		"calculate_workload": func(c *goldenCase) goldenResult {
			var out []float64
			for _, n := range c.ints("seqlen_list") {
				out = append(out, float64(Workload(n)))
			}
			return goldenResult{outputs: map[string][]float64{"workload": out}}
		},
		// The raw order of items within a partition is of the program, not of the result.
		"karmarkar_karp":                                     goldenParts,
		"get_seqlen_balanced_partitions":                     goldenParts,
		"get_seqlen_balanced_partitions(calculate_workload)": goldenParts,
		"log_seqlen_unbalance": func(c *goldenCase) goldenResult {
			var parts [][]int
			c.decode("partitions", c.Inputs["partitions"], &parts)
			return goldenResult{metrics: LengthMetrics(c.ints("seqlen_list"), parts)}
		},
		"rearrange_micro_batches": goldenMicroBatches,
		"greedy_partition": func(c *goldenCase) goldenResult {
			return c.sameParts("partitions", GreedyPartition(c.ints("seqlen_list"), int(c.param("k_partitions", 0)), c.flag("equal_size")), true)
		},
		"get_group_balanced_partitions": func(c *goldenCase) goldenResult {
			work := c.ints("seqlen_list")
			for i, n := range work {
				work[i] = Workload(n)
			}
			return c.sameParts("partitions", GroupPartition(work, c.groups("uid_list"), int(c.param("k_partitions", 0))), true)
		},
		"ceildiv/roundup_divisible": func(c *goldenCase) goldenResult {
			var a, b int
			c.decode("a", c.Inputs["a"], &a)
			c.decode("b", c.Inputs["b"], &b)
			return goldenResult{outputs: map[string][]float64{"ceildiv": {float64(ceilDiv(a, b))}, "roundup": {float64(roundUp(a, b))}}}
		},
	})
}

func (c *goldenCase) ints(field string) []int {
	var list []int
	c.decode(field, c.Inputs[field], &list)
	return list
}

// goldenParts compares the partitions as lists.
func goldenParts(c *goldenCase) goldenResult {
	weight := c.ints("seqlen_list")
	if c.Function == "get_seqlen_balanced_partitions(calculate_workload)" {
		for i, n := range weight {
			weight[i] = Workload(n)
		}
	}
	return c.sameParts("partitions", Partition(weight, int(c.param("k_partitions", 0)), c.flag("equal_size")), true)
}

func goldenMicroBatches(c *goldenCase) goldenResult {
	centered, set := c.Params["use_dynamic_bsz_balance"].(bool)
	s := MicroBatchSizes{Tokens: int(c.param("max_token_len", 0)), Least: int(c.param("min_num_micro_batch", 0)), Multiple: int(c.param("num_batches_divided_by", 1))}
	return c.sameParts("micro_batch_indices", MicroBatches(c.ints("seqlen_list"), s, centered || !set), false)
}

// sameParts compares lists of indices with a recorded output. sorted ignores the order
// within each.
func (c *goldenCase) sameParts(name string, got [][]int, sorted bool) goldenResult {
	var want [][]int
	c.decode(name, c.Outputs[name], &want)
	for _, p := range want {
		if sorted {
			slices.Sort(p)
		}
	}
	if !slices.EqualFunc(got, want, slices.Equal[[]int]) {
		return goldenResult{err: fmt.Errorf("%v, want %v", got, want)}
	}
	c.Outputs = nil // compared
	return goldenResult{}
}

// Differencing by hand.
func TestPartition(t *testing.T) {
	for _, tt := range []struct {
		weight []int
		parts  int
		equal  bool
		want   [][]int
	}{
		{[]int{4, 5, 6, 7, 8}, 2, false, [][]int{{0, 1, 3}, {2, 4}}}, // 8-7 = 1, 6-5 = 1, 4-1 = 3, 3-1 = 2: 16 and 14, where 15 and 15 are best
		{[]int{2, 2, 4}, 2, false, [][]int{{0, 1}, {2}}},
		{[]int{9, 1, 1, 1}, 2, true, [][]int{{0, 1}, {2, 3}}},
		{nil, 2, false, [][]int{nil, nil}},
		{[]int{3, 1}, 1, true, [][]int{{0, 1}}},
	} {
		got := Partition(tt.weight, tt.parts, tt.equal)
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%v over %d: %v, want %v", tt.weight, tt.parts, got, tt.want)
		}
	}
}

// The other rules, by hand.
func TestPartitionRules(t *testing.T) {
	for _, tt := range []struct{ got, want [][]int }{
		{GreedyPartition([]int{3, 1, 1, 5, 1}, 2, false), [][]int{{0, 4}, {1, 2, 3}}}, // 3 | 1 | 1+1 | 1+1+5 | 3+1
		{GreedyPartition([]int{9, 1, 1, 1}, 2, true), [][]int{{0, 3}, {1, 2}}},        // 9 | 1 | 1+1; then the part with fewer
		{GroupPartition([]int{1, 1, 4, 4, 2, 2, 3, 3}, []int{7, 7, 1, 1, 5, 5, 2, 2}, 2), // groups of 2, 8, 4, 6: 2+8, 4+6
			[][]int{{4, 5, 6, 7}, {0, 1, 2, 3}}},
		{MicroBatches([]int{1, 2, 3, 10}, MicroBatchSizes{Tokens: 6}, false), [][]int{{3}, {2}, {0, 1}}}, // 16/6, up, is 3
		{MicroBatches([]int{10, 10}, MicroBatchSizes{Tokens: 100, Least: 1, Multiple: 2}, false), [][]int{{1}, {0}}},
		{MicroBatches([]int{1, 2, 3, 4}, MicroBatchSizes{Tokens: 1, Least: 4}, true), [][]int{{1}, {3}, {2}, {0}}}, // by work 4 3 2 1: of even places 2 4, of odd 3 1
	} {
		if fmt.Sprint(tt.got) != fmt.Sprint(tt.want) {
			t.Errorf("%v, want %v", tt.got, tt.want)
		}
	}
	for name, f := range map[string]func(){
		"no parts":                  func() { GreedyPartition([]int{1}, 0, false) },
		"three items of two parts":  func() { GreedyPartition([]int{1, 1, 1}, 2, true) },
		"three groups of two parts": func() { GroupPartition([]int{1, 1, 1}, []int{0, 1, 2}, 2) },
		"groups of other items":     func() { GroupPartition([]int{1, 1}, []int{0}, 1) },
	} {
		if !panics(f) {
			t.Errorf("%s: does not panic", name)
		}
	}
}
