package rl

import (
	"errors"
	"testing"
)

// TestGoldenPrimitives covers masked reductions and loss aggregation. Functions
// of logits are kernels, not here.
func TestGoldenPrimitives(t *testing.T) {
	goldenFamily(t, "primitives", map[string]goldenCheck{
		"masked_sum":    both(goldenReduction[float32](MaskedSum[float32]), goldenReduction[float64](MaskedSum[float64])),
		"masked_mean":   both(goldenReduction[float32](MaskedMean[float32]), goldenReduction[float64](MaskedMean[float64])),
		"masked_var":    both(goldenVar[float32], goldenVar[float64]),
		"masked_whiten": both(goldenWhiten[float32], goldenWhiten[float64]),
		"agg_loss":      both(goldenAggLoss[float32], goldenAggLoss[float64]),
	})
}

// goldenReduction reduces all, each row (axis -1) or each column (axis 0).
func goldenReduction[T Float](reduce func(x []T, mask []bool) float64) func(c *goldenCase) goldenResult {
	return func(c *goldenCase) goldenResult {
		x, mask := input[T](c, "values"), c.mask("mask")
		rows := c.rows("values")
		var out []float64
		switch axis, set := c.Params["axis"].(float64); {
		case !set:
			out = []float64{reduce(x, mask)}
		case axis == -1:
			for i := range rows.Len() {
				out = append(out, reduce(x[rows[i]:rows[i+1]], mask[rows[i]:rows[i+1]]))
			}
		default:
			for col := range rows[1] {
				var xs []T
				var ms []bool
				for _, start := range rows[:rows.Len()] {
					xs, ms = append(xs, x[start+col]), append(ms, mask[start+col])
				}
				out = append(out, reduce(xs, ms))
			}
		}
		return goldenResult{outputs: map[string][]float64{"out": out}}
	}
}

func goldenVar[T Float](c *goldenCase) goldenResult {
	v, err := MaskedVar(input[T](c, "values"), c.mask("mask"), c.flag("unbiased"))
	return goldenResult{outputs: map[string][]float64{"out": {v}}, err: err}
}

// goldenWhiten takes the gradient of Σ out·cotangent numerically: nothing
// differentiates a whitening, so that there is no code for it.
func goldenWhiten[T Float](c *goldenCase) goldenResult {
	mask := c.mask("mask")
	out := input[T](c, "values")
	err := Whiten(out, mask, c.flag("shift_mean"))

	x, cotangent := input[float64](c, "values"), input[float64](c, "cotangent")
	grad := make([]float64, len(x))
	for i, at := range x {
		grad[i] = derivative(func(v float64) float64 {
			moved := append([]float64(nil), x...)
			moved[i] = v
			if err := Whiten(moved, mask, c.flag("shift_mean")); err != nil {
				return nan
			}
			var sum float64
			for k, y := range moved {
				sum += y * cotangent[k]
			}
			return sum
		}, at)
	}
	return goldenResult{outputs: map[string][]float64{"out": widen(out)}, grads: map[string][]float64{"values": grad}, err: err}
}

// goldenAggLoss aggregates given losses; the gradient is the coefficient.
func goldenAggLoss[T Float](c *goldenCase) goldenResult {
	coef, ranks, err := goldenCoefficients(c, "loss_mask", c.Params)
	if err != nil {
		return goldenResult{err: err}
	}
	loss := 0.0
	mask := c.mask("loss_mask")
	for i, l := range input[T](c, "loss_mat") {
		if mask[i] {
			loss += coef[i] * float64(l)
		}
	}
	if Count(mask, c.rows("loss_mask")).Tokens == 0 && c.text("loss_agg_mode") != "token-sum" {
		// On purpose: verl's mean of a mini-batch with nothing to train on is 0/0, ours is 0.
		if loss != 0 {
			return goldenResult{err: errors.New("the loss of nothing is not 0")}
		}
		loss = nan
	}
	for i := range coef {
		coef[i] *= ranks
	}
	return goldenResult{outputs: map[string][]float64{"loss": {ranks * loss}}, grads: map[string][]float64{"loss_mat": coef}}
}

// goldenCoefficients returns the coefficients for a case's aggregation, and the
// number of data-parallel ranks, which verl multiplies them by and we do not.
func goldenCoefficients(c *goldenCase, maskField string, params map[string]any) (coef []float64, ranks float64, err error) {
	rows, mask := c.rows(maskField), c.mask(maskField)
	mode, err := ParseAggregation(c.text("loss_agg_mode"))
	if err != nil {
		return nil, 0, err
	}
	get := func(name string, otherwise float64) float64 {
		if v, ok := params[name].(float64); ok {
			return v
		}
		return otherwise
	}
	n := Count(mask, rows)
	ranks = get("dp_size", 1)
	if _, ok := params["global_batch_size"].(float64); ranks > 1 && !ok && mode != TokenSum {
		return nil, 0, errors.New("several ranks need counts of the mini-batch") // we have no way to call without
	}
	n.Tokens = int(get("batch_num_tokens", float64(n.Tokens)))
	n.Rows = int(get("global_batch_size", float64(n.Rows)))
	n.Scale = get("loss_scale_factor", float64(rows[1])) // by default the padded width
	coef = make([]float64, len(mask))
	mode.Coefficients(coef, mask, rows, n)
	return coef, ranks, nil
}
