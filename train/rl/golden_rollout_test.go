package rl

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestGoldenRolloutCorrection covers weights, rejection, statistics, presets and
// refused settings. verl counts rows with nothing unmasked: CountEmptyRows.
func TestGoldenRolloutCorrection(t *testing.T) {
	correct := both(goldenCorrection[float32], goldenCorrection[float64])
	checks := map[string]goldenCheck{
		"compute_rollout_correction_and_rejection_mask": correct,
		"compute_rollout_correction_and_add_to_batch":   correct,
		"compute_rollout_corr_metrics_from_logprobs":    correct,
		// The default of the class, where our zero value only measures.
		"RolloutCorrectionConfig": goldenPreset(Correction{Weights: SequenceWeights, High: 2}),
	}
	for name, preset := range CorrectionPresets() {
		checks["RolloutCorrectionConfig."+name] = goldenPreset(preset)
	}
	goldenFamily(t, "rollout_correction", checks)
}

// goldenSettings parses verl's settings.
func goldenSettings(params map[string]any) (c Correction, err error) {
	text := func(name, otherwise string) string {
		if v := params[name]; v != nil {
			return fmt.Sprint(v)
		}
		return otherwise
	}
	if name := text("rollout_is", "none"); name != "none" {
		var err1, err2 error
		c.Weights, err1 = ParseRolloutWeights(name)
		c.Low, c.High, err2 = ParseRolloutBounds(text("rollout_is_threshold", "2"))
		err = errors.Join(err1, err2)
	}
	if options, ok := params["rollout_rs"].(string); ok && err == nil {
		c.Reject, err = ParseRejections(options, text("rollout_rs_threshold", ""))
	}
	c.Normalize, _ = params["rollout_is_batch_normalize"].(bool)
	if bypass, _ := params["bypass_mode"].(bool); bypass {
		c.Bypass = map[string]BypassLoss{"ppo_clip": BypassPPO, "reinforce": BypassReinforce}[text("loss_type", "ppo_clip")]
	}
	return c, err
}

// goldenPreset compares a preset with the settings of a case.
func goldenPreset(preset Correction) goldenCheck {
	return func(c *goldenCase) goldenResult {
		var params map[string]any
		c.decode("config", c.Outputs["config"], &params)
		want, err := goldenSettings(params)
		if err == nil && !reflect.DeepEqual(preset, want) {
			err = fmt.Errorf("preset %+v, want %+v", preset, want)
		}
		return goldenResult{err: err, outputs: map[string][]float64{"config": {}}}
	}
}

func goldenCorrection[T Float](c *goldenCase) goldenResult {
	if strings.HasSuffix(c.Name, "empty_mask") {
		return goldenResult{err: nothingToCorrect(input[T](c, "old_log_prob"), input[T](c, "rollout_log_prob"))}
	}
	settings, err := goldenSettings(c.Params)
	if err != nil {
		return goldenResult{err: err}
	}
	settings.CountEmptyRows = true
	mask, rows := c.mask("response_mask"), c.rows("response_mask")
	weight, keep := make([]T, len(mask)), make([]bool, len(mask))
	var s CorrectionStats
	Correct(weight, keep, input[T](c, "old_log_prob"), input[T](c, "rollout_log_prob"), mask, rows, settings, &s)
	kept := make([]float64, len(keep))
	for t, on := range keep {
		if on {
			kept[t] = 1
		}
	}
	if settings.Weights == NoWeights && string(c.Outputs["rollout_is_weights"]) == "null" {
		c.Outputs["rollout_is_weights"] = json.RawMessage("[]")
		weight = nil
	}
	return goldenResult{metrics: s.Metrics(),
		outputs: map[string][]float64{"rollout_is_weights": widen(weight), "modified_response_mask": kept}}
}

// nothingToCorrect stands for verl's exception: a micro-batch may well be empty,
// so ours returns, with statistics that are NaN.
func nothingToCorrect[T Float](old, roll []T) error {
	var s CorrectionStats
	Correct(nil, make([]bool, len(old)), old, roll, make([]bool, len(old)), Rows{0, len(old)}, Correction{}, &s)
	for _, m := range s.Metrics() {
		if m.Name == "rollout_corr/training_ppl" && m.Value != m.Value {
			return errors.New("no tokens")
		}
	}
	return nil
}
