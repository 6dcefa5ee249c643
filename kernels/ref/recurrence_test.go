package ref

import (
	"fmt"
	"math"
	"testing"

	"exp/kernels"
)

// deltaShapes are one head, heads that share keys, Qwen3-Next's layout and Mamba-2's.
func deltaShapes() []kernels.DeltaShape {
	return []kernels.DeltaShape{
		{Keys: 1, Values: 1, KeyDim: 1, ValueDim: 1, Taps: 1},
		{Keys: 2, Values: 4, KeyDim: 3, ValueDim: 5, Taps: 4},
		{Keys: 2, Values: 4, KeyDim: 3, ValueDim: 2, Taps: 3, ByKey: true},
		{Keys: 1, Values: 2, KeyDim: 2, ValueDim: 19, Taps: 2},
		{Keys: 2, Values: 4, KeyDim: 3, ValueDim: 5, Taps: 4, Scan: true, Low: 0.4, High: 2.5},
		{Keys: 1, Values: 3, KeyDim: 18, ValueDim: 2, Taps: 3, Scan: true},
	}
}

// deltaBatches are offsets and groups of 9 rows.
func deltaBatches() [][2][]int32 {
	return [][2][]int32{
		{{0, 9}, nil},
		{{0, 2, 2, 9}, nil},
		{{0, 3, 5, 6, 6, 9}, {0, 4, 5}},
		{{0, 1, 4, 9}, {0, 3}},
	}
}

const deltaTestRows = 9

func TestShortConvKnown(t *testing.T) {
	// One channel each of q, k and v; taps 2, 3. Channel q has inputs 1, 4: y = 3·1, then
	// 2·1+3·4 = 14; SiLU(y) = y/(1+exp(-y)).
	s := kernels.DeltaShape{Keys: 1, Values: 1, KeyDim: 1, ValueDim: 1, Taps: 2}
	x := make([]float64, 2*s.Stride())
	x[0], x[s.Stride()] = 1, 4
	w := []float64{2, 3, 0, 0, 0, 0}
	u := zeros(2 * s.Mixed())
	ShortConv(u, x, w, nil, nil, []int32{0, 2}, nil, nil, s)
	silu := func(y float64) float64 { return y / (1 + math.Exp(-y)) }
	wantNear(t, "u", u, []float64{silu(3), 0, 0, silu(14), 0, 0}, 1e-14)
	ShortConv(u, x, w, []float64{-1, 2, 0}, nil, []int32{0, 2}, nil, nil, s)
	wantNear(t, "u with a bias", u, []float64{silu(2), silu(2), 0, silu(13), silu(2), 0}, 1e-14)
}

func TestDeltaGatesKnown(t *testing.T) {
	// a+bias = ln 3: Softplus = ln 4; logs = ln 2: e = -2·ln 4, gate 1/16. b = ln 3: 3/4.
	s := kernels.DeltaShape{Keys: 1, Values: 1, KeyDim: 1, ValueDim: 1, Taps: 1}
	gates := zeros(2)
	DeltaGates(gates, []float64{0, 0, 0, 0, math.Log(3), math.Log(3) - 1}, []float64{math.Ln2}, []float64{1}, nil, s)
	wantNear(t, "gates", gates, []float64{1. / 16, 0.75}, 1e-15)
	for _, x := range []float64{-800, -40, -20, -3, 0, 1, 19, 30, 800} {
		want := max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
		if got := Softplus(x); math.Abs(got-want) > 3e-9*want {
			t.Errorf("Softplus(%g) = %g, want %g", x, got, want)
		}
		if got := Softplus(float32(x)); math.Abs(float64(got)-want) > 4e-7*want && want > 1e-37 {
			t.Errorf("Softplus(%g) = %g in float32, want %g", x, got, want)
		}
	}
}

func TestDeltaRuleKnown(t *testing.T) {
	// Keys and queries of one channel scale to ±1. Row 1 writes half of v = 8: S = 4, read by q = -1
	// as -4. Row 2 keeps a quarter, 1, and moves it halfway to v = 5 along k = -1: it predicts -1,
	// d = (5+1)/2 = 3, S = 1-3 = -2, read by q = 1.
	s := kernels.DeltaShape{Keys: 1, Values: 1, KeyDim: 1, ValueDim: 1, Taps: 1}
	u := []float64{-3000, 7000, 8, 500, -400, 5}
	out := zeros(2)
	DeltaRule(out, u, []float64{0.1, 0.5, 0.25, 0.5}, nil, []int32{0, 2}, nil, nil, s)
	wantNear(t, "out", out, []float64{-4, -2}, 1e-9)
}

// scanShape is a Mamba-2 head of two channels with a state of one.
func scanShape() kernels.DeltaShape {
	return kernels.DeltaShape{Keys: 1, Values: 1, KeyDim: 1, ValueDim: 2, Taps: 1, Scan: true}
}

func TestScanGatesKnown(t *testing.T) {
	// dt+bias = ln 3: w = Softplus = ln 4; logs = ln 2: it keeps exp(-2·ln 4) = 1/16. With limits of 1/2 and 1,
	// w is 1, and for dt+bias = -10 it is 1/2: exp(-2) and exp(-1).
	s := scanShape()
	x := make([]float64, 2*s.Stride())
	x[s.Write(0)], x[s.Stride()+s.Write(0)] = math.Log(3)-1, -11
	gates := zeros(6)
	DeltaGates(gates, x, []float64{math.Ln2}, []float64{1}, []float64{7}, s)
	wantNear(t, "gates", gates[:3], []float64{1. / 16, 2 * math.Ln2, 7}, 1e-15)
	s.Low, s.High = 0.5, 1
	DeltaGates(gates, x, []float64{math.Ln2}, []float64{1}, []float64{7}, s)
	wantNear(t, "limited gates", gates, []float64{math.Exp(-2), 1, 7, math.Exp(-1), 0.5, 7}, 1e-15)
}

func TestScanKnown(t *testing.T) {
	// Rows are x, B, C. Row 1 writes w·B·x = 0.5·2·(4, 6) = (4, 6), which C = 3 reads as (12, 18), and adds
	// D·x = 10·(4, 6). Row 2 keeps a quarter, (1, 1.5), and writes 2·(-1)·(1, 0): S = (-1, 1.5), read by C = 1.
	out := zeros(4)
	DeltaRule(out, []float64{4, 6, 2, 3, 1, 0, -1, 1}, []float64{0.1, 0.5, 10, 0.25, 2, 0}, nil, []int32{0, 2}, nil,
		nil, scanShape())
	wantExact(t, "out", out, []float64{52, 78, -1, 1.5})
}

func TestGroupedNormKnown(t *testing.T) {
	// The gate ln 3 gives g = ln 3·3/4. With x = (3, 4)/g, y is (3, 4), whose mean square is 12.5.
	s := scanShape()
	g := math.Log(3) * 0.75
	p := zeros(s.Stride())
	p[0], p[1] = math.Log(3), math.Log(3)
	out, rstd := zeros(2), zeros(1)
	GroupedNorm(out, rstd, []float64{3 / g, 4 / g}, p, []float64{1, 2}, s, 12.5)
	wantNear(t, "out", out, []float64{3. / 5, 8. / 5}, 1e-14)
	wantNear(t, "rstd", rstd, []float64{1. / 5}, 1e-15)
}

func TestGroupedNormGradient(t *testing.T) {
	const M, eps = deltaTestRows, 0.1
	for _, s := range deltaShapes() {
		if !s.Scan {
			continue
		}
		r := source(13)
		x, p, w, c := normal(r, M*s.Out()), normal(r, M*s.Stride()), normal(r, s.Out()), normal(r, M*s.Out())
		out, rstd, dx, dp, dw := zeros(len(c)), zeros(M*s.Keys), zeros(len(x)), zeros(len(p)), zeros(len(w))
		loss := func() float64 {
			GroupedNorm(out, rstd, x, p, w, s, eps)
			return project(out, c)
		}
		loss()
		GroupedNormBackward(dx, dp, dw, c, x, p, w, rstd, []int32{0, 4, M}, s)
		checkGradient(t, loss, limit, argument{"x", x, dx}, argument{"p", p, dp}, argument{"weight", w, dw})
	}
}

func TestGatedNormKnown(t *testing.T) {
	// x = 3, 4 has mean square 12.5; the gate ln 3 gives ln 3·3/4.
	s := kernels.DeltaShape{Keys: 1, Values: 1, KeyDim: 1, ValueDim: 2, Taps: 1}
	p := zeros(s.Stride())
	p[4], p[5] = math.Log(3), math.Log(3)
	out, rstd := zeros(2), zeros(1)
	GatedNorm(out, rstd, []float64{3, 4}, p, []float64{1, 2}, s, 12.5)
	g := math.Log(3) * 0.75
	wantNear(t, "out", out, []float64{3 * g / 5, 8 * g / 5}, 1e-14)
	wantNear(t, "rstd", rstd, []float64{1. / 5}, 1e-15)
}

func TestOutputGateKnown(t *testing.T) {
	// Two query heads of one channel, each with its gate, then a key and a value.
	s := kernels.AttentionShape{H: 2, K: 1, D: 1}
	x := []float64{5, 0, 6, math.Log(3), 7, 8}
	qkv, out := zeros(4), zeros(2)
	SplitGates(qkv, x, s)
	wantExact(t, "qkv", qkv, []float64{5, 6, 7, 8})
	OutputGate(out, []float64{2, 4}, x, s)
	wantNear(t, "out", out, []float64{1, 3}, 1e-15)
	dx := zeros(6)
	JoinGates(dx, qkv, s)
	wantExact(t, "dx", dx, []float64{5, 0, 6, 0, 7, 8})

	// A query of two channels and its gate alone. Sigmoid(ln 3) = 3/4: the gate's gradients are 3·2/4 and 4·4·3/16.
	s = kernels.AttentionShape{H: 1, K: 0, D: 2}
	x = []float64{math.NaN(), math.NaN(), 0, math.Log(3)}
	OutputGate(out, []float64{2, 4}, x, s)
	wantNear(t, "out", out, []float64{1, 3}, 1e-15)
	datt, dx := zeros(2), zeros(4)
	OutputGateBackward(datt, dx, []float64{3, 4}, []float64{2, 4}, x, s)
	wantNear(t, "datt", datt, []float64{1.5, 3}, 1e-15)
	wantNear(t, "dx", dx, []float64{0, 0, 1.5, 3}, 1e-15)
	wantPanic(t, "ref: query heads are not a multiple of key/value heads", func() { SplitGates(qkv, x, s) })
}

// eachDelta calls f for every shape and batch.
func eachDelta(t *testing.T, f func(t *testing.T, s kernels.DeltaShape, offsets, groups []int32)) {
	for i, s := range deltaShapes() {
		for j, b := range deltaBatches() {
			t.Run(fmt.Sprint(i, j), func(t *testing.T) { f(t, s, b[0], b[1]) })
		}
	}
}

func TestShortConvGradient(t *testing.T) {
	eachDelta(t, func(t *testing.T, s kernels.DeltaShape, offsets, groups []int32) {
		const M = deltaTestRows
		r := source(7)
		x, w, c := normal(r, M*s.Stride()), normal(r, s.Mixed()*s.Taps), normal(r, M*s.Mixed())
		u, dx, dw := zeros(len(c)), zeros(len(x)), normal(r, len(w))
		bias := normal(r, s.Mixed())
		start, db := clone(dw), zeros(len(bias))
		ShortConvBackward(dx, dw, db, c, x, w, bias, []int32{0, 4, M}, offsets, groups, s)
		checkGradient(t, func() float64 {
			ShortConv(u, x, w, bias, nil, offsets, groups, nil, s)
			return project(u, c)
		}, limit, argument{"x", x, dx}, argument{"weight", w, minus(dw, start)}, argument{"bias", bias, db})
	})
}

func TestDeltaGatesGradient(t *testing.T) {
	const M = deltaTestRows
	for _, s := range deltaShapes() {
		r := source(8)
		x, logs, bias, c := normal(r, M*s.Stride()), normal(r, s.Values), normal(r, s.Values), normal(r, M*s.Gates())
		skip := normal(r, s.Values)
		x[s.Forget(0)] = 25 // above SoftplusLinear
		gates, dx, dl, db, ds := zeros(len(c)), zeros(len(x)), zeros(s.Values), zeros(s.Values), zeros(s.Values)
		loss := func() float64 {
			DeltaGates(gates, x, logs, bias, skip, s)
			return project(gates, c)
		}
		loss()
		DeltaGatesBackward(dx, dl, db, ds, c, gates, x, logs, bias, []int32{0, 4, M}, s)
		checkGradient(t, loss, limit, argument{"x", x, dx}, argument{"logs", logs, dl}, argument{"bias", bias, db},
			argument{"skip", skip, ds})
	}
}

func TestDeltaRuleGradient(t *testing.T) {
	eachDelta(t, func(t *testing.T, s kernels.DeltaShape, offsets, groups []int32) {
		const M = deltaTestRows
		r := source(9)
		u, gates, c := normal(r, M*s.Mixed()), normal(r, M*s.Gates()), normal(r, M*s.Out())
		for i, g := range gates {
			gates[i] = Sigmoid(g)
		}
		for i := range u { // a short query or key bends sharply
			u[i] += math.Copysign(0.5, u[i])
		}
		out, du, dg := zeros(len(c)), normal(r, len(u)), normal(r, len(gates))
		DeltaRuleBackward(du, dg, c, u, gates, offsets, groups, s)
		checkGradient(t, func() float64 {
			DeltaRule(out, u, gates, nil, offsets, groups, nil, s)
			return project(out, c)
		}, 1e-8, argument{"u", u, du}, argument{"gates", gates, dg})
	})
}

func TestGatedNormGradient(t *testing.T) {
	const M, eps = deltaTestRows, 0.1
	for _, s := range deltaShapes() {
		r := source(10)
		x, p, w, c := normal(r, M*s.Out()), normal(r, M*s.Stride()), normal(r, s.ValueDim), normal(r, M*s.Out())
		out, rstd, dx, dp, dw := zeros(len(c)), zeros(M*s.Values), zeros(len(x)), zeros(len(p)), zeros(len(w))
		loss := func() float64 {
			GatedNorm(out, rstd, x, p, w, s, eps)
			return project(out, c)
		}
		loss()
		GatedNormBackward(dx, dp, dw, c, x, p, w, rstd, []int32{0, 4, M}, s)
		checkGradient(t, loss, limit, argument{"x", x, dx}, argument{"p", p, dp}, argument{"weight", w, dw})
	}
}

func TestOutputGateGradient(t *testing.T) {
	s, r := kernels.AttentionShape{H: 4, K: 2, D: 3}, source(11)
	const M = 3
	x, att, c, cq := normal(r, M*(s.Stride()+s.H*s.D)), normal(r, M*s.H*s.D), normal(r, M*s.H*s.D), normal(r, M*s.Stride())
	qkv, out, dx, datt := zeros(len(cq)), zeros(len(c)), zeros(len(x)), zeros(len(att))
	JoinGates(dx, cq, s)
	OutputGateBackward(datt, dx, c, att, x, s)
	checkGradient(t, func() float64 {
		SplitGates(qkv, x, s)
		OutputGate(out, att, x, s)
		return project(out, c) + project(qkv, cq)
	}, limit, argument{"x", x, dx}, argument{"att", att, datt})
}

// Sequences that are computed in steps, from slots, and after a prefix that others share have the bits of
// whole ones.
func TestRecurrenceInSteps(t *testing.T) {
	for _, s := range deltaShapes() {
		r := source(12)
		x, w := floats32(normal(r, 7*s.Stride())), floats32(normal(r, s.Mixed()*s.Taps))
		bias, gates := floats32(normal(r, s.Mixed())), floats32(normal(r, 7*s.Gates()))
		for i := range gates {
			gates[i] = Sigmoid(gates[i])
		}
		u, out := make([]float32, 7*s.Mixed()), make([]float32, 7*s.Out())
		whole := []int32{0, 7}
		ShortConv(u, x, w, bias, nil, whole, nil, nil, s)
		DeltaRule(out, u, gates, nil, whole, nil, nil, s)

		tails, states := floats32(normal(r, 3*s.Tail())), floats32(normal(r, 3*s.State()))
		u2, out2 := make([]float32, len(u)), make([]float32, len(out))
		at := 0
		for i, n := range []int{2, 1, 3, 1} {
			slot := int32(2)
			if i == 0 {
				slot = -1 - slot
			}
			to := at + n
			ShortConv(u2[at*s.Mixed():to*s.Mixed()], x[at*s.Stride():to*s.Stride()], w, bias, tails, []int32{0, int32(n)}, nil,
				[]int32{slot}, s)
			DeltaRule(out2[at*s.Out():to*s.Out()], u2[at*s.Mixed():to*s.Mixed()], gates[at*s.Gates():to*s.Gates()],
				states, []int32{0, int32(n)}, nil, []int32{slot}, s)
			at = to
		}
		wantExact(t, "u in steps", u2, u)
		wantExact(t, "out in steps", out2, out)

		ShortConv(u2, x, w, bias, nil, []int32{0, 4, 7}, []int32{0, 2}, nil, s)
		DeltaRule(out2, u2, gates, nil, []int32{0, 4, 7}, []int32{0, 2}, nil, s)
		wantExact(t, "u after a prefix", u2, u)
		wantExact(t, "out after a prefix", out2, out)
	}
}

func floats32(x []float64) []float32 {
	y := make([]float32, len(x))
	convert(y, x)
	return y
}
