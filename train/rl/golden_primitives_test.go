package rl

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
)

// TestGoldenPrimitives covers masked reductions, loss aggregation, groups, and values
// derived from a token's logits. Kernels compute those elsewhere; this test checks the
// plain formulas that the losses assume.
func TestGoldenPrimitives(t *testing.T) {
	goldenFamily(t, "primitives", map[string]goldenCheck{
		"masked_sum":    both(goldenReduction[float32](MaskedSum[float32]), goldenReduction[float64](MaskedSum[float64])),
		"masked_mean":   both(goldenReduction[float32](MaskedMean[float32]), goldenReduction[float64](MaskedMean[float64])),
		"masked_var":    both(goldenVar[float32], goldenVar[float64]),
		"masked_whiten": both(goldenWhiten[float32], goldenWhiten[float64]),
		"agg_loss":      both(goldenAggLoss[float32], goldenAggLoss[float64]),

		"group_mean_std": goldenGroupStats,
		"as_torch_index": goldenPartition,

		"logprobs_from_logits":                 goldenLogits(func(p softmax) (float64, []float64) { return p.logProb, p.dLogProb() }),
		"entropy_from_logits":                  goldenLogits(func(p softmax) (float64, []float64) { return p.entropy, p.dEntropy() }),
		"calculate_sum_pi_squared_from_logits": goldenLogits(func(p softmax) (float64, []float64) { return p.sumSquares, p.dSumSquares() }),
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
// differentiates a whitening, so it needs no code.
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

// goldenGroupStats has groups in the order of their labels, ours are in order of
// appearance. An epsilon that bounds the variance from below is not ours: where a
// std is below stdMin the advantage is 0.
func goldenGroupStats(c *goldenCase) goldenResult {
	var labels []string
	c.decode("labels", c.Inputs["labels"], &labels)
	sorted := slices.Compact(slices.Sorted(slices.Values(labels)))
	score, out := input[float64](c, "scores"), make(map[string][]float64)
	for _, l := range labels {
		out["index"] = append(out["index"], float64(slices.Index(sorted, l)))
	}
	groups := groupMembers(c.groups("labels"))
	slices.SortFunc(groups, func(a, b []int) int { return int(out["index"][a[0]] - out["index"][b[0]]) })
	for _, members := range groups {
		mean, std := groupStats(score, members)
		out["mean"] = append(out["mean"], mean)
		out["std"] = append(out["std"], max(std, math.Sqrt(c.param("eps", 0))))
		out["count"] = append(out["count"], float64(len(members)))
	}
	return goldenResult{outputs: out}
}

// goldenPartition checks that verl's numbers part the rows into the groups that the
// labels do: whatever the numbers, they are all that a group is to us.
func goldenPartition(c *goldenCase) goldenResult {
	var labels []any
	c.decode("index", c.Inputs["index"], &labels)
	number := make([]int, len(labels))
	for i, l := range labels {
		number[i] = slices.IndexFunc(labels, func(x any) bool { return x == l })
	}
	want := c.numbers(c.Outputs["out"])
	theirs := make([]int, len(want))
	for i, v := range want {
		theirs[i] = int(v)
	}
	if got, want := groupMembers(number), groupMembers(theirs); !slices.EqualFunc(got, want, slices.Equal) {
		return goldenResult{err: fmt.Errorf("groups %v, want %v", got, want)}
	}
	return goldenResult{outputs: map[string][]float64{"out": want}}
}

// softmax holds what the tests read off a token's logits.
type softmax struct {
	p       []float64 // [V] probabilities
	label   int
	logProb float64 // ln p[label]
	entropy float64 // -Σ p·ln p
	// sumSquares is Σ p², which OptimalTokenBaseline reads.
	sumSquares float64
}

func newSoftmax(z []float64, label int) softmax {
	top, total := slices.Max(z), 0.0
	for _, v := range z {
		total += math.Exp(v - top)
	}
	s := softmax{label: label, logProb: z[label] - top - math.Log(total)}
	for _, v := range z {
		p := math.Exp(v-top) / total
		s.p = append(s.p, p)
		s.entropy -= p * (v - top - math.Log(total))
		s.sumSquares += p * p
	}
	return s
}

// The gradients by the logits, [V].

func (s softmax) dLogProb() []float64 { // onehot - p
	return s.gradient(func(p float64) float64 { return -p }, 1)
}

func (s softmax) dEntropy() []float64 { // -p·(ln p + H)
	return s.gradient(func(p float64) float64 { return -p * (math.Log(p) + s.entropy) }, 0)
}

func (s softmax) dSumSquares() []float64 { // 2·p·(p - Σp²)
	return s.gradient(func(p float64) float64 { return 2 * p * (p - s.sumSquares) }, 0)
}

func (s softmax) gradient(of func(p float64) float64, atLabel float64) []float64 {
	var grad []float64
	for _, p := range s.p {
		grad = append(grad, of(p))
	}
	grad[s.label] += atLabel
	return grad
}

// goldenLogits computes a value per token, and the gradient of its sum weighted by
// the cotangent, by logits before they are divided by the temperature.
func goldenLogits(read func(p softmax) (value float64, grad []float64)) goldenCheck {
	return func(c *goldenCase) goldenResult {
		z, labels, cotangent := input[float64](c, "logits"), c.tensor("labels").floats(), input[float64](c, "cotangent")
		V, temperature := len(z)/len(labels), c.param("temperature", 1)
		for i := range z {
			z[i] /= temperature
		}
		var out, dz []float64
		for t, label := range labels {
			value, grad := read(newSoftmax(z[t*V:(t+1)*V], int(label)))
			out = append(out, value)
			for _, g := range grad {
				dz = append(dz, cotangent[t]*g/temperature)
			}
		}
		return goldenResult{outputs: map[string][]float64{"out": out}, grads: map[string][]float64{"logits": dz}}
	}
}
