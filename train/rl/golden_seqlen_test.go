package rl

import (
	"fmt"
	"slices"
	"testing"
)

// TestGoldenSeqlenBalancing covers the partitions and their metrics. What is not
// compared: greedy_partition, which verl defines and does not call; groups kept
// together, which its trainers use where a prefix is shared over ranks; rounding up.
func TestGoldenSeqlenBalancing(t *testing.T) {
	not := func(why string) goldenCheck {
		return func(*goldenCase) goldenResult { return goldenResult{notYet: why} }
	}
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
		"rearrange_micro_batches":       goldenMicroBatches,
		"greedy_partition":              not("verl does not call it"),
		"get_group_balanced_partitions": not("no ranks that share prefixes"),
		"ceildiv/roundup_divisible":     not("integer division"),
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

// goldenMicroBatches: verl's micro-batches are the partition of the workloads, the
// large ones put in the middle.
func goldenMicroBatches(c *goldenCase) goldenResult {
	length := c.ints("seqlen_list")
	total := 0
	work := make([]int, len(length))
	for i, n := range length {
		total += n
		work[i] = Workload(n)
	}
	limit := int(c.param("max_token_len", 0))
	n := max(min(len(length), (total+limit-1)/limit), int(c.param("min_num_micro_batch", 0)))
	if by := int(c.param("num_batches_divided_by", 1)); n%by != 0 {
		n += by - n%by
	}
	parts := Partition(work, n, false)
	if balance, set := c.Params["use_dynamic_bsz_balance"].(bool); balance || !set {
		sum := func(p []int) (s int) {
			for _, i := range p {
				s += work[i]
			}
			return s
		}
		slices.SortStableFunc(parts, func(a, b []int) int {
			if x, y := sum(a), sum(b); x != y {
				return y - x
			}
			return b[0] - a[0]
		})
		var even, odd [][]int
		for i, p := range parts {
			if i%2 == 0 {
				even = append(even, p)
			} else {
				odd = append(odd, p)
			}
		}
		slices.Reverse(even)
		parts = append(even, odd...)
	}
	return c.sameParts("micro_batch_indices", parts, false)
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
