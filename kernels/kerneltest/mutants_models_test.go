package kerneltest

import (
	"math"
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// TestFindsModelMutants is TestFindsMutants for what published families need: norms that
// add 1, scaled embeddings, caps, gates, columns, experts.
func TestFindsModelMutants(t *testing.T) {
	r := ref.New[float32]()
	findsMutants(t, []slip{
		{"a norm multiplies by the stored weight", "RMSNorm", false, storedWeight{r}},
		{"a sum's norm multiplies by the stored weight", "AddRMSNorm", false, storedWeight{r}},
		{"a gradient multiplies by the stored weight", "RMSNormBackward", false, storedWeight{r}},
		{"embeddings are not scaled", "Embed", false, unscaled{r}},
		{"gradients of embeddings are not scaled", "EmbedBackward", false, unscaled{r}},
		{"logits have no cap", "Logits", false, uncapped{r}},
		{"scored logits have no cap", "LogProb", false, uncapped{r}},
		{"drawn logits have no cap", "Sample/scores", false, uncapped{r}},
		{"the cap takes no part in draws", "Sample/distribution", false, uncapped{r}},
		{"the cap comes after the temperature", "LogProb", false, capLast{r}},
		{"the gradient does not know the cap", "LogProbBackward", false, flatCap{r}},
		{"a frozen layer's gradient is forgotten", "LogProbBackward", false, noFrozen{r}},
		{"tanh is taken for erf", "Gate", false, erfGate{r}},
		{"the negative part has no limit at zero", "XIELU", false, xieluOf{r, func(a *kernels.Xielu) { a.Eps = 0 }}},
		{"the linear part has no slope", "XIELUBackward", false, xieluOf{r, func(a *kernels.Xielu) { a.Beta = 0 }}},
		{"a parameter's gradient is another's", "XIELUBackward", false, xieluOf{r, func(a *kernels.Xielu) {
			a.DPositive, a.DNegative = a.DNegative, a.DPositive
		}}},
		{"the limit itself is beyond", "Clip", false, tightClip{r}},
		{"silu is multiplied in another order", "Gate/fused", false, looseGate{r}},
		{"a product is rounded before it is added", "AddColumns", true, unfusedColumns{r}},
		{"columns are counted from the first", "TakeColumns", false, firstColumns{r}},
		{"columns are added to the first", "AddColumns", false, firstColumns{r}},
		{"of equal experts the higher number is chosen", "Route", false, lastExpert{r}},
		{"weights are not divided by their sum", "Route", false, unnormed{r}},
		{"a gradient does not know that weights are divided", "RouteBackward", false, unnormed{r}},
		{"experts of all groups are chosen", "Route", false, otherRouting{r, allGroups}},
		{"the bias does not choose", "Route", false, otherRouting{r, noBias}},
		{"weights are not scaled", "Route", false, otherRouting{r, unscaledWeights}},
		{"a gradient does not know that weights are scaled", "RouteBackward", false, otherRouting{r, unscaledWeights}},
		{"too little is added to the sum of the weights", "Route", false, otherRouting{r, usualEps}},
		{"a gradient knows another sum", "RouteBackward", false, otherRouting{r, usualEps}},
		{"rotated channels stay in their order", "JoinLatent", false, inOrder{r}},
		{"a value's missing channels are what was there", "JoinLatent", false, unfilled{r}},
		{"values go to the last channels", "TakeValues", false, lastValues{r}},
		{"results are taken in the order they lie in", "Combine", false, slotless{r}},
		{"results are added in the order they lie in", "Combine/order", true, slotOrder{r}},
		{"gradients are added to what was there", "CombineBackward", false, addedGradients{r}},
	})
}

// storedWeight does not add 1.
type storedWeight struct{ kernels.Backend }

func (b storedWeight) RMSNorm(out, rstd, x, weight kernels.Buffer, s kernels.NormShape, eps float64) {
	s.UnitOffset = false
	b.Backend.RMSNorm(out, rstd, x, weight, s, eps)
}

func (b storedWeight) AddRMSNorm(sum, out, rstd, x, delta, weight kernels.Buffer, s kernels.NormShape, eps float64) {
	s.UnitOffset = false
	b.Backend.AddRMSNorm(sum, out, rstd, x, delta, weight, s, eps)
}

func (b storedWeight) RMSNormBackward(dx, dweight, dout, x, weight, rstd, blocks kernels.Buffer, s kernels.NormShape, set bool) {
	s.UnitOffset = false
	b.Backend.RMSNormBackward(dx, dweight, dout, x, weight, rstd, blocks, s, set)
}

// unscaled embeds at scale 1.
type unscaled struct{ kernels.Backend }

func (b unscaled) Embed(out kernels.Buffer, w kernels.Matrix, ids kernels.Buffer, _ float64) {
	b.Backend.Embed(out, w, ids, 1)
}

func (b unscaled) EmbedBackward(dweight, dout, ids kernels.Buffer, C int, _ float64) {
	b.Backend.EmbedBackward(dweight, dout, ids, C, 1)
}

// uncapped has no caps; in LogProb it has another, so that Sample is not alike.
type uncapped struct{ kernels.Backend }

func (b uncapped) Logits(out, h kernels.Buffer, w kernels.Matrix, _ float64) {
	b.Backend.Logits(out, h, w, 0)
}

func (b uncapped) LogProb(out kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets kernels.Buffer, x kernels.Softmax) {
	x.Cap *= 0.5
	b.Backend.LogProb(out, h, w, targets, x)
}

func (b uncapped) Sample(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, u kernels.Buffer, p kernels.Sampling) {
	p.Cap = 0
	b.Backend.Sample(ids, out, h, w, u, p)
}

// capLast caps z/temperature.
type capLast struct{ kernels.Backend }

func (b capLast) LogProb(out kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets kernels.Buffer, x kernels.Softmax) {
	x.Cap *= x.Temperature // Cap·Tanh(z/(T·Cap)) = T·Cap·Tanh(z/(T·Cap))/T
	b.Backend.LogProb(out, h, w, targets, x)
}

// flatCap takes the gradient of the cap for 1: it equals the gradient of scores without a cap,
// where they are small.
type flatCap struct{ kernels.Backend }

func (b flatCap) LogProbBackward(dh, dw, dLogProb, dEntropy kernels.Buffer, sc kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets, blocks kernels.Buffer, x kernels.Softmax) {
	x.Cap = 0
	b.Backend.LogProbBackward(dh, dw, dLogProb, dEntropy, sc, h, w, targets, blocks, x)
}

// firstTarget takes the other targets' gradients for 0.
type firstTarget struct{ kernels.Backend }

func (b firstTarget) LogProbBackward(dh, dw, dLogProb, dEntropy kernels.Buffer, sc kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets, blocks kernels.Buffer, x kernels.Softmax) {
	d := slices.Clone(kernels.Elems[float32](dLogProb))
	if R := dEntropy.Len(); R > 0 {
		for i := range d {
			if i%(len(d)/R) != 0 {
				d[i] = 0
			}
		}
	}
	b.Backend.LogProbBackward(dh, dw, kernels.Host(d), dEntropy, sc, h, w, targets, blocks, x)
}

// noFrozen does nothing without a gradient of the weights.
type noFrozen struct{ kernels.Backend }

func (b noFrozen) LogProbBackward(dh, dw, dLogProb, dEntropy kernels.Buffer, sc kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets, blocks kernels.Buffer, x kernels.Softmax) {
	if !dw.Empty() {
		b.Backend.LogProbBackward(dh, dw, dLogProb, dEntropy, sc, h, w, targets, blocks, x)
	}
}

// erfGate is the exact GELU.
type erfGate struct{ kernels.Backend }

func (b erfGate) Gate(act, gateUp kernels.Buffer, F int, kind kernels.GateKind) {
	b.Backend.Gate(act, gateUp, F, kind)
	y, x := kernels.Elems[float32](act), kernels.Elems[float32](gateUp)
	for i := range y {
		if kind == kernels.GELUTanh {
			m, f := i/F, i%F
			ref.GELU(y[i:i+1], x[m*2*F+f:m*2*F+f+1])
			y[i] *= x[m*2*F+F+f]
		}
	}
}

// xieluOf has other numbers.
type xieluOf struct {
	kernels.Backend
	change func(a *kernels.Xielu)
}

func (b xieluOf) XIELU(act, x kernels.Buffer, F int, a kernels.Xielu) {
	b.change(&a)
	b.Backend.XIELU(act, x, F, a)
}

func (b xieluOf) XIELUBackward(dx, dalpha, x, dact, blocks kernels.Buffer, F int, a kernels.Xielu) {
	b.change(&a)
	b.Backend.XIELUBackward(dx, dalpha, x, dact, blocks, F, a)
}

// tightClip gives elements at the limit no gradient.
type tightClip struct{ kernels.Backend }

func (b tightClip) ClipBackward(dx, dout, x kernels.Buffer, limit float64) {
	b.Backend.ClipBackward(dx, dout, x, math.Nextafter(limit, 0)*(1-1e-6))
}

// looseGate rounds silu's products in another order.
type looseGate struct{ kernels.Backend }

func (b looseGate) Gate(act, gateUp kernels.Buffer, F int, kind kernels.GateKind) {
	b.Backend.Gate(act, gateUp, F, kind)
	y, x := kernels.Elems[float32](act), kernels.Elems[float32](gateUp)
	for i := range y {
		if kind == kernels.SiLU {
			g, u := x[i/F*2*F+i%F], x[i/F*2*F+F+i%F]
			y[i] = g * float32(ref.Sigmoid(g)*u)
		}
	}
}

// unfusedColumns rounds products.
type unfusedColumns struct{ kernels.Backend }

func (b unfusedColumns) AddColumns(dst, src kernels.Buffer, n, stride, offset int, scale float64) {
	d, s := kernels.Elems[float32](dst), kernels.Elems[float32](src)
	for i := range s {
		d[i/n*stride+offset+i%n] += float32(float32(scale) * s[i])
	}
}

// firstColumns ignores the offset.
type firstColumns struct{ kernels.Backend }

func (b firstColumns) TakeColumns(dst, src kernels.Buffer, n, stride, _ int, scale float64) {
	b.Backend.TakeColumns(dst, src, n, stride, 0, scale)
}

func (b firstColumns) AddColumns(dst, src kernels.Buffer, n, stride, _ int, scale float64) {
	b.Backend.AddColumns(dst, src, n, stride, 0, scale)
}

// lastExpert prefers the higher of two numbers.
type lastExpert struct{ kernels.Backend }

func (b lastExpert) Route(choice, weight, probs, logits, bias kernels.Buffer, r kernels.Routing) {
	b.Backend.Route(choice, weight, probs, logits, bias, r)
	c, p, E, J := kernels.Elems[int32](choice), kernels.Elems[float32](probs), r.Experts, r.Choices()
	for m := range len(p) / E {
		last := &c[m*J+r.Top-1]
		for e := int(*last) + 1; e < E; e++ {
			if p[m*E+e] == p[m*E+int(*last)] {
				*last = int32(e)
			}
		}
	}
}

// inOrder does not know that channels are interleaved.
type inOrder struct{ kernels.Backend }

func (b inOrder) JoinLatent(qkv, q, kv, rope kernels.Buffer, s kernels.LatentShape) {
	s.Interleaved = false
	b.Backend.JoinLatent(qkv, q, kv, rope, s)
}

// unfilled leaves the channels behind a value.
type unfilled struct{ kernels.Backend }

func (b unfilled) JoinLatent(qkv, q, kv, rope kernels.Buffer, s kernels.LatentShape) {
	old := copied(b, qkv)
	b.Backend.JoinLatent(qkv, q, kv, rope, s)
	for v := range q.Len() / s.D() {
		at := (v/s.H*3*s.H + 2*s.H + v%s.H) * s.D()
		copy(kernels.Elems[float32](qkv)[at+s.Value:at+s.D()], kernels.Elems[float32](old)[at+s.Value:])
	}
}

// lastValues takes a head's last channels.
type lastValues struct{ kernels.Backend }

func (b lastValues) TakeValues(out, att kernels.Buffer, s kernels.LatentShape) {
	for v := range att.Len() / s.D() {
		copy(kernels.Elems[float32](out)[v*s.Value:(v+1)*s.Value], kernels.Elems[float32](att)[(v+1)*s.D()-s.Value:])
	}
}

// otherRouting routes by other rules.
type otherRouting struct {
	kernels.Backend
	change func(r *kernels.Routing, bias *kernels.Buffer)
}

func allGroups(r *kernels.Routing, _ *kernels.Buffer)       { r.Groups, r.TopGroups = 0, 0 }
func noBias(_ *kernels.Routing, bias *kernels.Buffer)       { *bias = kernels.Buffer{} }
func unscaledWeights(r *kernels.Routing, _ *kernels.Buffer) { r.Scale = 0 }
func usualEps(r *kernels.Routing, _ *kernels.Buffer)        { r.Eps = 0 }

func (b otherRouting) Route(choice, weight, probs, logits, bias kernels.Buffer, r kernels.Routing) {
	b.change(&r, &bias)
	b.Backend.Route(choice, weight, probs, logits, bias, r)
}

func (b otherRouting) RouteBackward(dlogits, dweight, choice, weight, probs kernels.Buffer, r kernels.Routing) {
	b.change(&r, new(kernels.Buffer))
	b.Backend.RouteBackward(dlogits, dweight, choice, weight, probs, r)
}

// unnormed never divides.
type unnormed struct{ kernels.Backend }

func (b unnormed) Route(choice, weight, probs, logits, bias kernels.Buffer, r kernels.Routing) {
	r.Renorm = false
	b.Backend.Route(choice, weight, probs, logits, bias, r)
}

func (b unnormed) RouteBackward(dlogits, dweight, choice, weight, probs kernels.Buffer, r kernels.Routing) {
	r.Renorm = false
	b.Backend.RouteBackward(dlogits, dweight, choice, weight, probs, r)
}

// slotless takes the results of row m from rows m·J on.
type slotless struct{ kernels.Backend }

func (b slotless) Combine(out, x, slot, weight kernels.Buffer, C, J int) {
	rows := make([]int32, slot.Len())
	for i := range rows {
		rows[i] = int32(i)
	}
	b.Backend.Combine(out, x, kernels.Host(rows), weight, C, J)
}

// slotOrder adds the results of a row by ascending slots.
type slotOrder struct{ kernels.Backend }

func (b slotOrder) Combine(out, x, slot, weight kernels.Buffer, C, J int) {
	s, w := append([]int32(nil), kernels.Elems[int32](slot)...), append([]float32(nil), kernels.Elems[float32](weight)...)
	for m := 0; m < len(s); m += J {
		for i := m; i < m+J; i++ {
			for j := m; j < i; j++ {
				if s[i] < s[j] {
					s[i], s[j], w[i], w[j] = s[j], s[i], w[j], w[i]
				}
			}
		}
	}
	b.Backend.Combine(out, x, kernels.Host(s), kernels.Host(w), C, J)
}

// addedGradients does not overwrite.
type addedGradients struct{ kernels.Backend }

func (b addedGradients) CombineBackward(dx, dweight, dout, x, slot, weight kernels.Buffer, C, J int) {
	old := append([]float32(nil), kernels.Elems[float32](dx)...)
	b.Backend.CombineBackward(dx, dweight, dout, x, slot, weight, C, J)
	for i, v := range old {
		kernels.Elems[float32](dx)[i] += v
	}
}
