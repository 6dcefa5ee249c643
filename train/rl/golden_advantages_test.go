package rl

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// TestGoldenAdvantages covers every advantage estimator and PF-PPO's resampling.
// A vectorized twin of verl is the same function of ours.
func TestGoldenAdvantages(t *testing.T) {
	goldenFamily(t, "advantages", map[string]goldenCheck{
		"gae":                                    both(goldenGAE[float32], goldenGAE[float64]),
		"grpo":                                   goldenPerRow(goldenGRPO[float32], goldenGRPO[float64]),
		"grpo_vectorized":                        goldenPerRow(goldenGRPO[float32], goldenGRPO[float64]),
		"grpo_passk":                             goldenPerRow(goldenPassK[float32], goldenPassK[float64]),
		"rloo":                                   goldenPerRow(goldenRLOO[float32](false), goldenRLOO[float64](false)),
		"rloo_vectorized":                        goldenPerRow(goldenRLOO[float32](true), goldenRLOO[float64](true)),
		"opo":                                    goldenPerRow(goldenOPO[float32], goldenOPO[float64]),
		"gpg":                                    goldenPerRow(goldenGPG[float32], goldenGPG[float64]),
		"gdpo":                                   both(goldenGDPO[float32], goldenGDPO[float64]),
		"reinforce_plus_plus":                    both(goldenReinforcePlusPlus[float32], goldenReinforcePlusPlus[float64]),
		"reinforce_plus_plus_baseline":           both(goldenReinforceBaseline[float32], goldenReinforceBaseline[float64]),
		"remax":                                  both(goldenReMax[float32], goldenReMax[float64]),
		"optimal_token_baseline":                 both(goldenTokenBaseline[float32](true), goldenTokenBaseline[float64](true)),
		"tir_optimal_token_baseline":             both(goldenTokenBaseline[float32](false), goldenTokenBaseline[float64](false)),
		"compute_advantage[grpo]":                goldenPerRow(goldenGRPO[float32], goldenGRPO[float64]),
		"compute_advantage[grpo_vectorized]":     goldenPerRow(goldenGRPO[float32], goldenGRPO[float64]),
		"compute_advantage[rloo]":                goldenPerRow(goldenRLOO[float32](false), goldenRLOO[float64](false)),
		"compute_advantage[gdpo]":                both(goldenGDPO[float32], goldenGDPO[float64]),
		"compute_advantage[reinforce_plus_plus]": both(goldenReinforcePlusPlus[float32], goldenReinforcePlusPlus[float64]),
		"compute_pf_ppo_reweight_data":           both(goldenResampling[float32], goldenResampling[float64]),
	})
}

// goldenAdvantages holds what a case of an estimator records.
func goldenAdvantages[T Float](adv, ret []T, err error) goldenResult {
	return goldenResult{outputs: map[string][]float64{"advantages": widen(adv), "returns": widen(ret)}, err: err}
}

// goldenIndex returns the groups of a case, which the trainer calls uid.
func goldenIndex(c *goldenCase) []int {
	if c.has("uid") {
		return c.groups("uid")
	}
	return c.groups("index")
}

func goldenGAE[T Float](c *goldenCase) goldenResult {
	mask := c.mask("response_mask")
	adv, ret := make([]T, len(mask)), make([]T, len(mask))
	GAE(adv, ret, input[T](c, "token_level_rewards"), input[T](c, "values"), mask, c.rows("response_mask"),
		c.setting(discount, 1), c.setting(lambda, 1))
	err := Whiten(adv, mask, true)
	return goldenAdvantages(adv, ret, err)
}

// goldenPerRow is an estimator of one advantage per row from the summed rewards,
// which are in score; the returns are the advantages.
func goldenPerRow(f32 func(c *goldenCase, score []float32) error, f64 func(c *goldenCase, score []float64) error) goldenCheck {
	return both(func(c *goldenCase) goldenResult { return goldenSpread(c, f32) }, func(c *goldenCase) goldenResult { return goldenSpread(c, f64) })
}

func goldenSpread[T Float](c *goldenCase, estimate func(c *goldenCase, score []T) error) goldenResult {
	rows, mask := c.rows("response_mask"), c.mask("response_mask")
	score, adv := make([]T, rows.Len()), make([]T, len(mask))
	RowSums(score, input[T](c, "token_level_rewards"), rows)
	err := estimate(c, score)
	Spread(adv, score, mask, rows)
	return goldenAdvantages(adv, adv, err)
}

// goldenGRPO knows that verl's trainer does not pass the flag to the vectorized
// twin.
func goldenGRPO[T Float](c *goldenCase, score []T) error {
	scale := c.flag(scaleStd.Verl[0]) || c.text("adv_estimator") == "grpo_vectorized"
	GroupAdvantage(score, score, goldenIndex(c), scale)
	return nil
}

func goldenPassK[T Float](c *goldenCase, score []T) error {
	return PassKAdvantage(score, score, goldenIndex(c), c.flag("config.norm_adv_by_std_in_grpo"))
}

func goldenRLOO[T Float](dropAlone bool) func(c *goldenCase, score []T) error {
	return func(c *goldenCase, score []T) error {
		RLOO(score, score, goldenIndex(c), dropAlone)
		return nil
	}
}

func goldenOPO[T Float](c *goldenCase, score []T) error {
	OPO(score, score, goldenIndex(c), c.mask("response_mask"), c.rows("response_mask"))
	return nil
}

func goldenGPG[T Float](c *goldenCase, score []T) error {
	GPGAdvantage(score, score, goldenIndex(c), c.param("f_norm", 1))
	return nil
}

// goldenGDPO takes the components that the case names, or all; without any, the
// one reward. Dispatched by the trainer, verl's flag does not arrive.
func goldenGDPO[T Float](c *goldenCase) goldenResult {
	rows, mask := c.rows("response_mask"), c.mask("response_mask")
	scale := c.flag(scaleStd.Verl[0]) || len(c.Params) == 0 || c.text("adv_estimator") == "gdpo"
	var score [][]T
	var weight []float64
	if c.has("components") {
		var components map[string][]T
		c.decode("components", c.Inputs["components"], &components)
		keys := slices.Sorted(maps.Keys(components))
		if list, ok := c.Params["gdpo_reward_keys"].([]any); ok {
			keys = nil
			for _, k := range list {
				keys = append(keys, k.(string))
			}
		}
		for _, k := range keys {
			score = append(score, components[k])
		}
	} else {
		score = [][]T{make([]T, rows.Len())}
		RowSums(score[0], input[T](c, "token_level_rewards"), rows)
	}
	if list, ok := c.Params[GDPOWeights.Verl[0]].([]any); ok {
		for _, w := range list {
			weight = append(weight, w.(float64))
		}
	}
	adv := make([]T, len(mask))
	err := GDPO(adv, score, weight, goldenIndex(c), mask, rows, scale)
	return goldenAdvantages(adv, adv, err)
}

func goldenReinforcePlusPlus[T Float](c *goldenCase) goldenResult {
	mask := c.mask("response_mask")
	adv, ret := make([]T, len(mask)), make([]T, len(mask))
	err := ReinforcePlusPlus(adv, ret, input[T](c, "token_level_rewards"), mask, c.rows("response_mask"), c.setting(discount, 1))
	return goldenAdvantages(adv, ret, err)
}

func goldenReinforceBaseline[T Float](c *goldenCase) goldenResult {
	rows, mask := c.rows("response_mask"), c.mask("response_mask")
	score, adv := make([]T, rows.Len()), make([]T, len(mask))
	RowSums(score, input[T](c, "token_level_rewards"), rows)
	err := ReinforcePlusPlusBaseline(adv, score, goldenIndex(c), mask, rows)
	return goldenAdvantages(adv, adv, err)
}

func goldenReMax[T Float](c *goldenCase) goldenResult {
	mask := c.mask("response_mask")
	adv, ret := make([]T, len(mask)), make([]T, len(mask))
	ReMax(adv, ret, input[T](c, "token_level_rewards"), input[T](c, "reward_baselines"), mask, c.rows("response_mask"))
	return goldenAdvantages(adv, ret, nil)
}

func goldenTokenBaseline[T Float](columns bool) func(c *goldenCase) goldenResult {
	return func(c *goldenCase) goldenResult {
		b := &Batch[T]{Rows: c.rows("response_mask"), Mask: c.mask("response_mask"), OldLogProb: input[T](c, "old_log_probs")}
		if c.has("rollout_is_weights") {
			b.Weight = input[T](c, "rollout_is_weights")
		}
		adv, ret := make([]T, len(b.Mask)), make([]T, len(b.Mask))
		OptimalTokenBaseline(adv, ret, b, input[T](c, "token_level_rewards"), input[T](c, "sum_pi_squared"), goldenIndex(c),
			TokenBaseline{Columns: columns, KeepTail: !c.flag("handle_zero_tail")})
		return goldenAdvantages(adv, ret, nil)
	}
}

// goldenResampling cannot repeat the recorded draw, which is of another generator:
// it gives ours the uniform numbers that lie in the middle of the drawn rows'
// shares.
func goldenResampling[T Float](c *goldenCase) goldenResult {
	by, err := ParseReweighting(c.text(pfPPOMethod.Verl[0]))
	if err != nil {
		return goldenResult{err: err}
	}
	rows := c.rows("token_level_scores")
	scores := input[T](c, "token_level_scores")
	score, weight := make([]T, rows.Len()), make([]float64, rows.Len())
	RowSums(score, scores, rows)
	ResamplingWeights(weight, score, by, c.setting(pfPPOPower, 2))

	var before []float64
	total := 0.0
	for _, w := range weight {
		before = append(before, total)
		total += w
	}
	var uniform []float64
	for _, i := range c.tensor("drawn_indices").Data {
		uniform = append(uniform, (before[int(i)]+weight[int(i)]/2)/total)
	}
	drawn := make([]int, len(uniform))
	Resample(drawn, weight, uniform)

	// Each row of scores is all zeros but for one: the sums of the picked rows tell
	// which rows they are.
	picked := make([]T, len(drawn))
	RowSums(picked, PickRows(scores, rows, drawn), rows.Pick(drawn))
	var out []float64
	for k, i := range drawn {
		if picked[k] != score[i] {
			return goldenResult{err: fmt.Errorf("row %d of the picked has score %g, row %d has %g", k, picked[k], i, score[i])}
		}
		out = append(out, float64(i))
	}
	if by != WeighPower {
		c.RTol = max(c.RTol, 1e-7) // upstream these weights are float32 in every case
	}
	if err := goldenSameLabels(c, drawn); err != nil {
		return goldenResult{err: err}
	}
	return goldenResult{outputs: map[string][]float64{"weights": weight, "resampled_rows": out}}
}

// goldenSameLabels checks the one recorded output that is text, and removes it: a row
// has one label, however often it is drawn. The labels of all rows are not among
// the inputs.
func goldenSameLabels(c *goldenCase, drawn []int) error {
	var labels []string
	c.decode("resampled_uid", c.Outputs["resampled_uid"], &labels)
	delete(c.Outputs, "resampled_uid")
	of := make(map[int]string)
	for k, i := range drawn {
		if label, ok := of[i]; ok && label != labels[k] {
			return fmt.Errorf("row %d is of %s and of %s", i, label, labels[k])
		}
		of[i] = labels[k]
	}
	return nil
}
