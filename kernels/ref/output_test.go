package ref

import (
	"math"
	"slices"
	"testing"

	"exp/kernels"
)

func TestLogProbKnown(t *testing.T) {
	// h = [2], w = [0 ln2 0]ᵀ, temperature 2: z = [0 ln2 0], softmax = [¼ ½ ¼],
	// lse = ln 4, entropy = ½·ln 4 + ½·ln 2 = 1.5·ln 2.
	ln2 := math.Ln2
	w := []float64{0, ln2, 0}
	lp, ent, lse := zeros(2), zeros(2), zeros(2)
	LogProb(lp, ent, lse, []float64{2, 2}, w, []int32{0, 1}, 1, kernels.Softmax{Temperature: 2})
	wantNear(t, "logProb", lp, []float64{-2 * ln2, -ln2}, 1e-15)
	wantNear(t, "entropy", ent, []float64{1.5 * ln2, 1.5 * ln2}, 1e-15)
	wantNear(t, "lse", lse, []float64{2 * ln2, 2 * ln2}, 1e-15)

	// Target 1, dLogProb = 4: dz = 4·([0 1 0] - [¼ ½ ¼])/2 = [-½ 1 -½].
	// dh = ln2; dw = 2·dz, added.
	dh, dw := zeros(1), []float64{10, 0, 0}
	LogProbBackward(dh, dw, []float64{4}, []float64{0}, ent[1:], lse[1:], []float64{2}, w, []int32{1}, []int32{0, 1}, 1, kernels.Softmax{Temperature: 2})
	wantNear(t, "dh", dh, []float64{ln2}, 1e-15)
	wantNear(t, "dw", dw, []float64{9, 2, -1}, 1e-14)

	// dEntropy = 8 alone: dz = -8·p·(log p + H)/2 = -4·[¼·(-½ln2) ½·(½ln2) ¼·(-½ln2)]
	// = [½ -1 ½]·ln2; dw = 2·dz.
	dw = zeros(3)
	LogProbBackward(dh, dw, []float64{0}, []float64{8}, ent[1:], lse[1:], []float64{2}, w, []int32{1}, []int32{0, 1}, 1, kernels.Softmax{Temperature: 2})
	wantNear(t, "dw of the entropy", dw, []float64{ln2, -2 * ln2, ln2}, 1e-14)
}

// With several targets each adds its gradient; one may repeat.
func TestLogProbTargets(t *testing.T) {
	// The distribution [¼ ½ ¼] of TestLogProbKnown, targets 1, 0 and 1.
	ln2 := math.Ln2
	w, x := []float64{0, ln2, 0}, kernels.Softmax{Temperature: 2}
	lp, ent, lse := zeros(3), zeros(1), zeros(1)
	LogProb(lp, ent, lse, []float64{2}, w, []int32{1, 0, 1}, 1, x)
	wantNear(t, "logProb", lp, []float64{-ln2, -2 * ln2, -ln2}, 1e-15)

	// dLogProb = [1 2 3]: dz = ([2 4 0] - 6·[¼ ½ ¼])/2 = [¼ ½ -¾]; dh = ln2/2; dw = 2·dz.
	dh, dw := zeros(1), zeros(3)
	LogProbBackward(dh, dw, []float64{1, 2, 3}, []float64{0}, ent, lse, []float64{2}, w, []int32{1, 0, 1}, []int32{0, 1}, 1, x)
	wantNear(t, "dh", dh, []float64{ln2 / 2}, 1e-14)
	wantNear(t, "dw", dw, []float64{0.5, 1, -1.5}, 1e-14)

	// Another row, whose target 2 is none of w's.
	dw = zeros(3)
	LogProbBackward(dh, dw, []float64{1, 3}, []float64{0}, ent, lse, []float64{2}, w, []int32{0, -1}, []int32{0, 1}, 1, x)
	wantNear(t, "dw without a target", dw, []float64{0, -2, -1}, 1e-14)
}

func TestTopTokensKnown(t *testing.T) {
	// z = [0 ln2 0] for the first row, [0 -ln2 0] for the second: equal logits are in the order of their ids.
	ln2 := math.Ln2
	w, x := []float64{0, ln2, 0}, kernels.Softmax{Temperature: 2}
	ids, lp, ent, lse := make([]int32, 4), zeros(4), zeros(2), zeros(2)
	TopTokens(ids, lp, ent, lse, []float64{2, -2}, w, 1, x)
	if want := []int32{1, 0, 0, 2}; !slices.Equal(ids, want) {
		t.Errorf("ids %v, want %v", ids, want)
	}
	wantNear(t, "logProb", lp, []float64{-ln2, -2 * ln2, -math.Log(2.5), -math.Log(2.5)}, 1e-15)
	wantNear(t, "lse", lse, []float64{2 * ln2, math.Log(2.5)}, 1e-15)

	TopTokens(ids[:2], lp[:2], ent[:1], lse[:1], []float64{math.NaN()}, w, 1, x)
	if want := []int32{0, 1}; !slices.Equal(ids[:2], want) || lp[0] == lp[0] {
		t.Errorf("of NaN: ids %v, want %v; scores %v", ids[:2], want, lp[:2])
	}
	wantPanic(t, "ref: TopTokens: length mismatch", func() {
		TopTokens(make([]int32, 4), zeros(4), ent[:1], lse[:1], []float64{2}, w, 1, x)
	})
}

func TestLogProbCapKnown(t *testing.T) {
	// h = [1], w = [0 ln3 0]ᵀ, cap 2: Tanh(ln3/2) = (3-1)/(3+1) = ½, so the logits are
	// [0 1 0], and at temperature 1/ln2 they are [0 ln2 0], as in TestLogProbKnown.
	const ln2, ln3 = math.Ln2, 1.0986122886681098
	w, x := []float64{0, ln3, 0}, kernels.Softmax{Temperature: 1 / ln2, Cap: 2}
	z := zeros(3)
	Logits(z, []float64{1}, w, 1, 2)
	wantNear(t, "logits", z, []float64{0, 1, 0}, 1e-15)
	Logits(z, []float64{1}, w, 1, 0)
	wantNear(t, "logits without a cap", z, w, 0)
	lp, ent, lse := zeros(1), zeros(1), zeros(1)
	LogProb(lp, ent, lse, []float64{1}, w, []int32{1}, 1, x)
	wantNear(t, "logProb", lp, []float64{-ln2}, 1e-15)
	wantNear(t, "entropy", ent, []float64{1.5 * ln2}, 1e-15)
	wantNear(t, "lse", lse, []float64{2 * ln2}, 1e-15)

	// dLogProb = 4: dz = 4·([0 1 0] - [¼ ½ ¼])·ln2 = [-1 2 -1]·ln2, times 1-y² = [1 ¾ 1].
	// dh = 1.5·ln2·ln3; dw = dz.
	dh, dw := zeros(1), []float64{10, 0, 0}
	LogProbBackward(dh, dw, []float64{4}, []float64{0}, ent, lse, []float64{1}, w, []int32{1}, []int32{0, 1}, 1, x)
	wantNear(t, "dh", dh, []float64{1.5 * ln2 * ln3}, 1e-14)
	wantNear(t, "dw", dw, []float64{10 - ln2, 1.5 * ln2, -ln2}, 1e-14)
	dh[0] = 0
	LogProbBackward(dh, nil, []float64{4}, []float64{0}, ent, lse, []float64{1}, w, []int32{1}, []int32{0, 1}, 1, x)
	wantNear(t, "dh of a frozen layer", dh, []float64{1.5 * ln2 * ln3}, 1e-14)
}

func TestLogProbFarFromZero(t *testing.T) {
	// Logits of ±1e4 overflow without the maximum; the answer is the same as for [0 -2e4].
	lp, ent, lse := make([]float32, 2), make([]float32, 2), make([]float32, 2)
	LogProb(lp, ent, lse, []float32{1, 1}, []float32{1e4, -1e4}, []int32{0, 1}, 1, kernels.Softmax{Temperature: 1})
	wantExact(t, "logProb", lp, []float32{0, -2e4})
	wantExact(t, "entropy", ent, []float32{0, 0})
	wantExact(t, "lse", lse, []float32{1e4, 1e4})
}

func TestLogProbGradient(t *testing.T) {
	const R, C, V = 4, 3, 21
	for _, x := range []kernels.Softmax{{Temperature: 1}, {Temperature: 0.7}, {Temperature: 0.7, Cap: 1.5}} {
		r := source(11)
		h, w := normal(r, R*C), normal(r, V*C)
		targets := []int32{0, 20, 7, 7}
		dlp, dent := normal(r, R), normal(r, R)
		lp, ent, lse := zeros(R), zeros(R), zeros(R)
		loss := func() float64 {
			LogProb(lp, ent, lse, h, w, targets, C, x)
			return project(lp, dlp) + project(ent, dent)
		}
		loss()
		dh, dw := normal(r, R*C), normal(r, V*C)
		dw0 := clone(dw)
		LogProbBackward(dh, dw, dlp, dent, clone(ent), clone(lse), h, w, targets, []int32{0, 1, 3, R}, C, x)
		checkGradient(t, loss, limit, argument{"h", h, dh}, argument{"w", w, minus(dw, dw0)})
	}
}

func TestLogProbPanics(t *testing.T) {
	x := zeros(6)
	call := func(R int, target int32, temperature float64) func() {
		return func() {
			LogProb(x[:R], x[:1], x[:1], x[:2], x, []int32{target}, 2, kernels.Softmax{Temperature: temperature})
		}
	}
	wantPanic(t, "ref: LogProb: length mismatch", call(2, 0, 1))
	wantPanic(t, "ref: target out of range", call(1, 3, 1))
	wantPanic(t, "ref: temperature is not positive", call(1, 0, 0))
	wantPanic(t, "ref: scores: length mismatch", func() { LogProb(x[:1], x[:1], x[:2], x[:2], x, []int32{0}, 2, kernels.Softmax{Temperature: 1}) })
	wantPanic(t, "ref: scores: want the same number of targets for each row", func() { LogProb(x[:1], x[:1], x[:1], x[:2], x, nil, 2, kernels.Softmax{Temperature: 1}) })
	wantPanic(t, "ref: Logits: length mismatch", func() { Logits(x[:2], x[:2], x, 2, 0) })
	wantPanic(t, "ref: LogProbBackward: length mismatch", func() {
		LogProbBackward(x[:2], x, x[:1], x[:2], x[:1], x[:1], x[:2], x, []int32{0}, []int32{0, 1}, 2, kernels.Softmax{Temperature: 1})
	})
}
