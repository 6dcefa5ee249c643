package rl

import "testing"

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

		"DAPORewardManager.run_single": goldenOverlong,
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
		c.setting(ValueClip, 0.5), &s)
	return goldenResult{outputs: map[string][]float64{"loss": {s.Loss}, "vf_clipfrac": {s.Metrics()[1].Value}},
		grads: map[string][]float64{"vpreds": widen(grad)}}
}

// goldenEntropyLoss is recorded as a function of logits.
func goldenEntropyLoss[T Float](c *goldenCase) goldenResult {
	coef, _, err := goldenCoefficients(c, "response_mask", c.Params)
	if err != nil {
		return goldenResult{err: err}
	}
	z := widen(input[T](c, "logits"))
	V := len(z) / len(coef)
	entropy, dentropy := make([]T, len(coef)), make([]T, len(coef))
	for t := range coef {
		entropy[t] = T(newSoftmax(z[t*V:(t+1)*V], 0).entropy)
	}
	var loss float64
	EntropyBonus(dentropy, entropy, c.mask("response_mask"), coef, -1, &loss)
	var grad []float64
	for t, d := range dentropy {
		for _, g := range newSoftmax(z[t*V:(t+1)*V], 0).dEntropy() {
			grad = append(grad, float64(d)*g)
		}
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
