package rl

import (
	"math"
	"testing"
)

// TestGoldenMetrics covers the metrics of batches. Validation metrics are in
// eval/stat and checked there.
func TestGoldenMetrics(t *testing.T) {
	not := func(where string) goldenCheck {
		return func(*goldenCase) goldenResult { return goldenResult{notYet: where} }
	}
	inStat := not("checked in eval/stat")
	goldenFamily(t, "metrics", map[string]goldenCheck{
		"compute_data_metrics":           both(goldenData[float32], goldenData[float64]),
		"compute_variance_proxy_metrics": both(goldenVarianceProxies[float32], goldenVarianceProxies[float64]),
		"calculate_debug_metrics":        both(goldenProbDiff[float32], goldenProbDiff[float64]),
		"reduce_metrics":                 goldenReduce,
		"Metric.aggregate/aggregate_dp":  goldenAggregate,

		"bootstrap_metric":                         inStat,
		"calc_maj_val":                             inStat,
		"process_validation_metrics":               inStat,
		"RayPPOTrainer._val_metrics_update":        inStat,
		"numpy.random.seed":                        inStat,
		"numpy.random.choice(replace=True)":        inStat,
		"compute_timing_metrics":                   goldenTiming,
		"compute_throughout_metrics":               goldenThroughput,
		"compute_rollout_moe_load_balance_metrics": goldenExperts,
		"compute_spec_decode_metrics":              goldenDrafts,
	})
}

func goldenData[T Float](c *goldenCase) goldenResult {
	rows := c.rows("response_mask")
	prompt, response := int(c.param("prompt_width", 0)), int(c.param("response_width", 0))
	d := Data[T]{
		Rows: rows, Mask: c.mask("response_mask"), Adv: input[T](c, "advantages"), Ret: input[T](c, "returns"),
		Score: make([]T, rows.Len()), Reward: make([]T, rows.Len()), MaxPrompt: prompt, MaxResponse: response,
	}
	RowSums(d.Score, input[T](c, "token_level_scores"), rows)
	RowSums(d.Reward, input[T](c, "token_level_rewards"), rows)
	attention := c.mask("attention_mask")
	for i := range rows.Len() {
		row := attention[i*(prompt+response) : (i+1)*(prompt+response)]
		d.PromptLen = append(d.PromptLen, countTrue(row[:prompt]))
		d.ResponseLen = append(d.ResponseLen, countTrue(row[prompt:]))
	}
	if c.flag("use_critic") {
		d.Value = input[T](c, "values")
	}
	if c.has("num_turns") {
		for i, n := range c.tensor("num_turns").Data {
			d.Turns = append(d.Turns, int(n))
			d.ToolCalls = append(d.ToolCalls, int(c.tensor("tool_call_counts").Data[i]))
		}
	}
	return goldenResult{metrics: DataMetrics(d)}
}

// goldenExperts counts the routes of the completions: the trailing positions of a
// recorded sequence.
func goldenExperts(c *goldenCase) goldenResult {
	routes, rows := c.tensor("routed_experts"), c.rows("response_mask")
	positions, layers := routes.Shape[1], routes.Shape[2]
	width := layers * routes.Shape[3]
	var expert []int
	for i := range rows.Len() {
		end := (i + 1) * positions * width
		for _, e := range routes.Data[end-(rows[i+1]-rows[i])*width : end] {
			expert = append(expert, int(e))
		}
	}
	load := ExpertLoads(expert, c.mask("response_mask"), rows, layers, int(c.param("num_experts", 0)))
	var flat []float64
	for _, layer := range load {
		for _, n := range layer {
			flat = append(flat, float64(n))
		}
	}
	return goldenResult{outputs: map[string][]float64{"load_counts": flat}, metrics: ExpertMetrics(load)}
}

// goldenDrafts leaves out the rows that verl added to fill a batch up.
func goldenDrafts(c *goldenCase) goldenResult {
	var real []bool
	c.decode("non_padding_mask", c.Inputs["non_padding_mask"], &real)
	count := func(field string) (list []int) {
		for i, n := range c.ints(field) {
			if real == nil || real[i] {
				list = append(list, n)
			}
		}
		return list
	}
	return goldenResult{metrics: DraftMetrics(count("drafts"), count("accepts"), count("verifies"))}
}

func goldenReduce(c *goldenCase) goldenResult {
	var lists map[string][]float64
	c.decode("metrics", c.Inputs["metrics"], &lists)
	var m []Metric
	for name, values := range lists {
		m = append(m, Metric{name, Reduce(name, values)})
	}
	return goldenResult{metrics: m}
}

func goldenVarianceProxies[T Float](c *goldenCase) goldenResult {
	if !c.has("sum_pi_squared") {
		return goldenResult{} // nothing to compute them from, and nothing recorded
	}
	b := &Batch[T]{Rows: c.rows("response_mask"), Mask: c.mask("response_mask"),
		OldLogProb: input[T](c, "old_log_probs"), Adv: input[T](c, "advantages")}
	if c.has("rollout_is_weights") {
		b.Weight = input[T](c, "rollout_is_weights")
	}
	return goldenResult{metrics: VarianceProxies(b, input[T](c, "sum_pi_squared"), c.param("gradient_norm", math.NaN()))}
}

func goldenProbDiff[T Float](c *goldenCase) goldenResult {
	return goldenResult{metrics: ProbDiff(input[T](c, "rollout_log_probs"), input[T](c, "old_log_probs"), c.mask("response_mask"))}
}

// goldenAggregate reduces the values of micro-batches, and then of ranks, by a name
// that says how. A sum, which our statistics carry from one micro-batch to the next,
// is over them only: ranks are averaged.
func goldenAggregate(c *goldenCase) goldenResult {
	var ranks [][]float64
	c.decode("values_per_rank", c.Inputs["values_per_rank"], &ranks)
	how := c.text("aggregation")
	var each []float64
	for _, values := range ranks {
		if how == "sum" {
			each = append(each, float64(len(values))*Reduce(how, values))
		} else {
			each = append(each, Reduce(how, values))
		}
	}
	return goldenResult{outputs: map[string][]float64{"rank0": each[:1], "dp": {Reduce(how, each)}}}
}

func (c *goldenCase) laps() []Lap {
	var seconds map[string]float64
	c.decode("timing_raw", c.Inputs["timing_raw"], &seconds)
	var laps []Lap
	for phase, s := range seconds {
		laps = append(laps, Lap{phase, s})
	}
	return laps
}

func goldenTiming(c *goldenCase) goldenResult {
	mask := c.tensor("attention_mask")
	width := mask.Shape[len(mask.Shape)-1]
	tokens, completion := 0, 0
	for i, on := range mask.Data {
		if on != 0 {
			tokens++
			if i%width >= width-int(c.param("response_width", 0)) {
				completion++
			}
		}
	}
	return goldenResult{metrics: TimingMetrics(c.laps(), completion, tokens)}
}

func goldenThroughput(c *goldenCase) goldenResult {
	var perRow []int
	c.decode("global_token_num", c.Inputs["global_token_num"], &perRow)
	tokens, step := 0, 0.0
	for _, n := range perRow {
		tokens += n
	}
	for _, l := range c.laps() {
		if l.Phase == "step" {
			step = l.Seconds
		}
	}
	return goldenResult{metrics: ThroughputMetrics(tokens, step, int(c.param("n_gpus", 0)))}
}
