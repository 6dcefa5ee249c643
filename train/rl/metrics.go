package rl

import (
	"math"
	"slices"
	"strings"
)

// Metric is a named number. Names are verl's public ones; lists of metrics have a fixed
// order.
type Metric struct {
	Name  string
	Value float64
}

// Data is a batch in the form of verl's data metrics, after advantages.
type Data[T Float] struct {
	Rows   Rows   // [B+1]
	Mask   []bool // [N]
	Score  []T    // [B] summed token scores, before KL in the reward
	Reward []T    // [B] summed token rewards
	Adv    []T    // [N]
	Ret    []T    // [N]
	Value  []T    // [N]; nil without a critic
	// Lengths in tokens, and their limits.
	PromptLen, ResponseLen []int // [B]
	MaxPrompt, MaxResponse int
	// Turns and tool calls per row; nil if there are none.
	Turns, ToolCalls []int // [B]
}

// DataMetrics returns verl's data metrics (compute_data_metrics in
// metric_utils.py). A row with an empty response is aborted.
//
//	critic/score, critic/rewards           {mean,max,min} over rows not aborted
//	critic/advantages, returns, values     {mean,max,min} over unmasked tokens
//	critic/vf_explained_var                ExplainedVariance
//	response_length, prompt_length         {mean,max,min,clip_ratio} over rows; clip_ratio is
//	                                       the fraction that reaches MaxResponse, MaxPrompt
//	response_length_non_aborted            the same over rows not aborted
//	response/aborted_ratio                 fraction of rows
//	num_turns, tool_call_counts            {min,max,mean} over rows
//
// Statistics of nothing are NaN.
func DataMetrics[T Float](d Data[T]) []Metric {
	rows := d.Rows.Len()
	d.Rows.check(len(d.Mask))
	sameLen(rows, len(d.Score), len(d.Reward), len(d.PromptLen), len(d.ResponseLen))
	sameLen(len(d.Mask), len(d.Adv), len(d.Ret))

	alive := make([]bool, rows)
	for i, n := range d.ResponseLen {
		alive[i] = n > 0
	}
	all := slices.Repeat([]bool{true}, rows)

	var m []Metric
	m = appendExtent(m, "critic/score", d.Score, alive)
	m = appendExtent(m, "critic/rewards", d.Reward, alive)
	m = appendExtent(m, "critic/advantages", d.Adv, d.Mask)
	m = appendExtent(m, "critic/returns", d.Ret, d.Mask)
	if d.Value != nil {
		m = appendExtent(m, "critic/values", d.Value, d.Mask)
		m = append(m, Metric{"critic/vf_explained_var", ExplainedVariance(d.Value, d.Ret, d.Mask)})
	}
	m = appendLength(m, "response_length", d.ResponseLen, all, d.MaxResponse)
	m = appendLength(m, "response_length_non_aborted", d.ResponseLen, alive, d.MaxResponse)
	m = append(m, Metric{"response/aborted_ratio", 1 - float64(countTrue(alive))/float64(rows)})
	m = appendLength(m, "prompt_length", d.PromptLen, all, d.MaxPrompt)
	if d.Turns != nil {
		m = appendExtent(m, "num_turns", d.Turns, all)
	}
	if d.ToolCalls != nil {
		m = appendExtent(m, "tool_call_counts", d.ToolCalls, all)
	}
	return m
}

// appendExtent appends name/mean, name/max and name/min of x where mask is true.
func appendExtent[X Float | int](m []Metric, name string, x []X, mask []bool) []Metric {
	sameLen(len(mask), len(x))
	var sum, n float64
	high, low := math.Inf(-1), math.Inf(1)
	for i, on := range mask {
		if on {
			v := float64(x[i])
			sum += v
			high, low = max(high, v), min(low, v)
			n++
		}
	}
	if n == 0 {
		high, low = math.NaN(), math.NaN()
	}
	return append(m, Metric{name + "/mean", sum / n}, Metric{name + "/max", high}, Metric{name + "/min", low})
}

// appendLength appends the extent of lengths and the fraction equal to limit.
func appendLength(m []Metric, name string, lengths []int, mask []bool, limit int) []Metric {
	m = appendExtent(m, name, lengths, mask)
	var cut, n float64
	for i, on := range mask {
		if on {
			n++
			if lengths[i] == limit {
				cut++
			}
		}
	}
	return append(m, Metric{name + "/clip_ratio", cut / n})
}

// Reduce returns what verl logs for a metric measured several times in a step
// (reduce_metrics): the greatest value if the name contains "max", else the least if it
// contains "min", else the mean. It tests for a substring, so a name ending in "dominant"
// reduces to the least.
func Reduce(name string, values []float64) float64 {
	switch {
	case len(values) == 0:
		return math.NaN()
	case strings.Contains(name, "max"):
		return slices.Max(values)
	case strings.Contains(name, "min"):
		return slices.Min(values)
	}
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
