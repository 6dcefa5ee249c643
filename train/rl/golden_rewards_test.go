package rl

import (
	"math"
	"testing"
)

// TestGoldenAdvantages covers GAE and GRPO, with verl's vectorized twin, which
// the trainer always calls with std.
func TestGoldenAdvantages(t *testing.T) {
	goldenFamily(t, "advantages", map[string]goldenCheck{
		"gae":                                both(goldenGAE[float32], goldenGAE[float64]),
		"grpo":                               both(goldenGRPO[float32]("index", false), goldenGRPO[float64]("index", false)),
		"grpo_vectorized":                    both(goldenGRPO[float32]("index", false), goldenGRPO[float64]("index", false)),
		"compute_advantage[grpo]":            both(goldenGRPO[float32]("uid", false), goldenGRPO[float64]("uid", false)),
		"compute_advantage[grpo_vectorized]": both(goldenGRPO[float32]("uid", true), goldenGRPO[float64]("uid", true)),
	})
}

func goldenGAE[T Float](c *goldenCase) goldenResult {
	mask := c.mask("response_mask")
	adv, ret := make([]T, len(mask)), make([]T, len(mask))
	GAE(adv, ret, input[T](c, "token_level_rewards"), input[T](c, "values"), mask, c.rows("response_mask"),
		c.param("gamma", 1), c.param("lam", 1))
	err := Whiten(adv, mask, true)
	return goldenResult{outputs: map[string][]float64{"advantages": widen(adv), "returns": widen(ret)}, err: err}
}

func goldenGRPO[T Float](groups string, always bool) func(c *goldenCase) goldenResult {
	return func(c *goldenCase) goldenResult {
		rows, mask := c.rows("response_mask"), c.mask("response_mask")
		score, adv := make([]T, rows.Len()), make([]T, len(mask))
		RowSums(score, input[T](c, "token_level_rewards"), rows)
		GroupAdvantage(score, score, c.groups(groups), always || c.flag("norm_adv_by_std_in_grpo"))
		Spread(adv, score, mask, rows)
		return goldenResult{outputs: map[string][]float64{"advantages": widen(adv), "returns": widen(adv)}}
	}
}

// TestGoldenValueKLReward covers the value loss, the entropy loss, KL estimators,
// KL in the reward and its controllers.
func TestGoldenValueKLReward(t *testing.T) {
	goldenFamily(t, "value_kl_reward", map[string]goldenCheck{
		"compute_value_loss":   both(goldenValueLoss[float32], goldenValueLoss[float64]),
		"compute_entropy_loss": both(goldenEntropyLoss[float32], goldenEntropyLoss[float64]),
		"kl_penalty":           both(goldenKL[float32], goldenKL[float64]),
		"compute_rewards":      both(goldenRewards[float32], goldenRewards[float64]),
		"apply_kl_penalty":     both(goldenRewardKL[float32], goldenRewardKL[float64]),
		"get_kl_controller":    goldenController,
	})
}

func goldenValueLoss[T Float](c *goldenCase) goldenResult {
	coef, ranks, err := goldenCoefficients(c, "response_mask", c.Params)
	if err != nil {
		return goldenResult{err: err}
	}
	for i := range coef {
		coef[i] *= ranks
	}
	var s ValueStats
	grad := make([]T, len(coef))
	ValueLoss(grad, input[T](c, "vpreds"), input[T](c, "values"), input[T](c, "returns"), c.mask("response_mask"), coef,
		c.param("cliprange_value", 0.5), &s)
	return goldenResult{outputs: map[string][]float64{"loss": {s.Loss}, "vf_clipfrac": {s.Metrics()[1].Value}},
		grads: map[string][]float64{"vpreds": widen(grad)}}
}

// goldenEntropyLoss is recorded as a function of logits z: with p = softmax(z),
// H = -Σ p·ln p and dH/dz = -p·(ln p + H).
func goldenEntropyLoss[T Float](c *goldenCase) goldenResult {
	coef, _, err := goldenCoefficients(c, "response_mask", c.Params)
	if err != nil {
		return goldenResult{err: err}
	}
	z := input[T](c, "logits")
	V := len(z) / len(coef)
	entropy, dentropy := make([]T, len(coef)), make([]T, len(coef))
	logp := make([]float64, len(z))
	for t := range coef {
		var total float64
		for _, v := range z[t*V : (t+1)*V] {
			total += math.Exp(float64(v))
		}
		for v := t * V; v < (t+1)*V; v++ {
			logp[v] = float64(z[v]) - math.Log(total)
			entropy[t] -= T(math.Exp(logp[v]) * logp[v])
		}
	}
	var loss float64
	EntropyBonus(dentropy, entropy, c.mask("response_mask"), coef, -1, &loss)
	grad := make([]float64, len(z))
	for v := range grad {
		grad[v] = -float64(dentropy[v/V]) * math.Exp(logp[v]) * (logp[v] + float64(entropy[v/V]))
	}
	return goldenResult{outputs: map[string][]float64{"loss": {loss}}, grads: map[string][]float64{"logits": grad}}
}

func goldenKL[T Float](c *goldenCase) goldenResult {
	kl, err := ParseKL(c.text("kl_penalty"))
	if err != nil {
		return goldenResult{err: err}
	}
	logProb, ref, cotangent := input[T](c, "log_prob"), input[T](c, "ref_log_prob"), input[T](c, "cotangent")
	var out, grad, gradRef []float64
	for i := range logProb {
		value, slope := kl.At(float64(logProb[i]), float64(ref[i]))
		out = append(out, value)
		grad = append(grad, float64(cotangent[i])*slope)
		gradRef = append(gradRef, -float64(cotangent[i])*slope)
	}
	return goldenResult{outputs: map[string][]float64{"out": out}, grads: map[string][]float64{"log_prob": grad, "ref_log_prob": gradRef}}
}

// goldenRewards is an unused function of verl: k1 in the reward, no mask.
func goldenRewards[T Float](c *goldenCase) goldenResult {
	score := input[T](c, "token_level_scores")
	mask := make([]bool, len(score))
	for i := range mask {
		mask[i] = true
	}
	RewardKL(score, score, input[T](c, "old_log_prob"), input[T](c, "ref_log_prob"), mask, c.rows("token_level_scores"),
		KL{Kind: KLK1}, c.param("kl_ratio", 0))
	return goldenResult{outputs: map[string][]float64{"out": widen(score)}}
}

func goldenRewardKL[T Float](c *goldenCase) goldenResult {
	kl, err := ParseKL(c.text("kl_penalty"))
	if err != nil {
		return goldenResult{err: err}
	}
	rows := c.rows("response_mask")
	control, _ := c.Params["kl_ctrl"].(map[string]any)
	coef := control["kl_coef"].(float64)
	reward := input[T](c, "token_level_scores")
	mean := RewardKL(reward, reward, input[T](c, "old_log_probs"), input[T](c, "ref_log_prob"), c.mask("response_mask"), rows, kl, coef)
	return goldenResult{
		outputs: map[string][]float64{
			"token_level_rewards":    widen(reward),
			"controller_value_after": {goldenControl(control).Next(coef, mean, rows.Len())},
		},
		metrics: []Metric{{"actor/reward_kl_penalty", mean}, {"actor/reward_kl_penalty_coeff", coef}},
	}
}

func goldenControl(params map[string]any) KLControl {
	target, _ := params["target_kl"].(float64)
	horizon, _ := params["horizon"].(float64)
	return KLControl{Adaptive: params["type"] == "adaptive", Target: target, Horizon: horizon}
}

func goldenController(c *goldenCase) goldenResult {
	coef := c.param("kl_coef", 0)
	var current []float64
	var steps []int
	c.decode("current_kl", c.Inputs["current_kl"], &current)
	c.decode("n_steps", c.Inputs["n_steps"], &steps)
	var after []float64
	for i, kl := range current {
		coef = goldenControl(c.Params).Next(coef, kl, steps[i])
		after = append(after, coef)
	}
	return goldenResult{outputs: map[string][]float64{"value_after_each_update": after}}
}

// TestGoldenMetrics covers the data metrics and the reduction of metrics.
func TestGoldenMetrics(t *testing.T) {
	goldenFamily(t, "metrics", map[string]goldenCheck{
		"compute_data_metrics": both(goldenData[float32], goldenData[float64]),
		"reduce_metrics":       goldenReduce,
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

func goldenReduce(c *goldenCase) goldenResult {
	var lists map[string][]float64
	c.decode("metrics", c.Inputs["metrics"], &lists)
	var m []Metric
	for name, values := range lists {
		m = append(m, Metric{name, Reduce(name, values)})
	}
	return goldenResult{metrics: m}
}
