package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"exp/kernels"
)

// This file has the layers with linear attention: Gated DeltaNet (kernels.Recurrence). Where other
// layers have
//
//	x += Wo · Attention(…)
//
// they have, with p = Wqkv · PreNorm(x) of queries, keys, values, gates and the logits of two more gates per
// head,
//
//	x += Wo · GatedNorm(DeltaRule(ShortConv(p), DeltaGates(p)), p)
//
// and layers with Mamba-2 (kernels.DeltaShape.Scan) GroupedNorm instead of GatedNorm. Layers of LFM2 have a gated
// short convolution (kernels.DeltaShape.Conv), which keeps no state but its last inputs:
//
//	x += Wo · GatedConv(p)
//
// In layers of Falcon-H1 Mamba-2 is beside attention (parallel.go).
//
// Layers of OLMo Hybrid have Gated DeltaNet, whose tensors have names of their own and which may write twice as much
// (scaleWrites).

// delta holds the parameters of such a layer besides its linear maps, and their gradients. A gated short convolution
// has conv alone.
type delta struct {
	conv, logs, bias, norm norm // [Mixed,Taps], [Values], [Values], [ValueDim]
	convBias, skip         norm // of a scan: [Mixed], [Values]; its norm is [Out], or empty
}

// deltaPrefix returns how the names of such a layer's tensors begin, where the layer's own begin with p.
func (c Config) deltaPrefix(p string) string {
	if _, own, _ := c.Names.parts(p); c.Delta.Scan || c.Delta.Conv {
		return own
	}
	return p + "linear_attn."
}

// deltaLast returns the last parts of the names of such a layer's output projection and of the norm before it.
func (c Config) deltaLast() (out, norm string) {
	if c.Names == OlmoHybridNames {
		return "o_proj", "o_norm.weight"
	}
	return "out_proj", "norm.weight"
}

// deltaLinears returns the linear maps of such a layer, whose names begin with p.
func (c Config) deltaLinears(p string) (in, out linearSpec) {
	d := c.Delta
	p = c.deltaPrefix(p)
	last, _ := c.deltaLast()
	out = linearSpec{[]string{p + last}, []int{c.Width}, d.Out()}
	if d.Scan || d.Conv {
		return linearSpec{[]string{p + "in_proj"}, []int{d.Stride()}, c.Width}, out
	}
	in = linearSpec{[]string{p + "in_proj_qkv", p + "in_proj_z", p + "in_proj_b", p + "in_proj_a"},
		[]int{d.Mixed(), d.Out(), d.Values, d.Values}, c.Width}
	if c.Names == OlmoHybridNames {
		keys := d.Keys * d.KeyDim
		return linearSpec{[]string{p + "q_proj", p + "k_proj", p + "v_proj", p + "g_proj", p + "b_proj", p + "a_proj"},
			[]int{keys, keys, d.Out(), d.Out(), d.Values, d.Values}, c.Width}, out
	}
	if d.ByKey {
		in.names, in.rows = []string{p + "in_proj_qkvz", p + "in_proj_ba"}, []int{d.Mixed() + d.Out(), 2 * d.Values}
	}
	return in, out
}

// delta adds the tensors of such a layer, whose linear maps are given.
func (x *layout) delta(c Config, l int, in, out linearSpec) {
	p, d := c.deltaPrefix(fmt.Sprintf("model.layers.%d.", l)), c.Delta
	x.linear(in, false)
	x.group()
	for _, conv := range c.convWeights() {
		x.add(p+conv.name, conv.rows, 1, d.Taps)
	}
	if d.Conv {
		x.linear(out, false)
		return
	}
	if d.Scan {
		x.one(p+"conv1d.bias", d.Mixed())
	}
	x.one(p+"A_log", d.Values)
	x.one(p+"dt_bias", d.Values)
	_, norm := c.deltaLast()
	switch {
	case !d.Scan:
		x.one(p+norm, d.ValueDim)
	case c.ScanNorm == NoScanNorm:
		x.one(p+"D", d.Values)
	default:
		x.one(p+"D", d.Values)
		x.one(p+norm, d.Out())
	}
	x.linear(out, c.ScanBias)
}

// convWeight is a tensor of a short convolution's weights: the last part of its name, and its channels.
type convWeight struct {
	name string
	rows int
}

// convWeights returns a layer's convolution weights, which follow one another.
func (c Config) convWeights() []convWeight {
	d := c.Delta
	switch {
	case d.Conv:
		return []convWeight{{"conv.weight", d.Mixed()}}
	case c.Names == OlmoHybridNames:
		keys := d.Keys * d.KeyDim
		return []convWeight{{"q_conv1d.weight", keys}, {"k_conv1d.weight", keys}, {"v_conv1d.weight", d.Out()}}
	}
	return []convWeight{{"conv1d.weight", d.Mixed()}}
}

// delta binds them.
func (b *binder) delta(l int) *delta {
	p := b.Config.deltaPrefix(fmt.Sprintf("model.layers.%d.", l))
	convs := b.Config.convWeights()
	conv := b.vectors(p+convs[0].name, p+convs[len(convs)-1].name)
	if b.Config.Delta.Conv {
		return &delta{conv: conv}
	}
	y := &delta{conv: conv, logs: b.vector(p + "A_log"), bias: b.vector(p + "dt_bias")}
	if _, norm := b.Config.deltaLast(); b.Config.ScanNorm != NoScanNorm {
		y.norm = b.vector(p + norm)
	}
	if b.Config.Delta.Scan {
		y.convBias, y.skip = b.vector(p+"conv1d.bias"), b.vector(p+"D")
	}
	return y
}

// deltaInitial sets out to the initial values of a tensor of linear attention, except the weights of linear
// maps, and reports whether t is such a tensor.
func deltaInitial(out []float32, t Tensor, c Config, seed uint64) bool {
	p, name, ok := strings.Cut(strings.TrimPrefix(t.Name, "model.layers."), ".")
	name, inside := strings.CutPrefix(name, c.deltaPrefix(""))
	if _, err := strconv.Atoi(p); !ok || !inside || err != nil || !c.hasLinear() {
		return false
	}
	switch name {
	case "conv.weight", "conv1d.weight", "q_conv1d.weight", "k_conv1d.weight", "v_conv1d.weight":
		normal(out, seed, c.InitStd)
	case "conv1d.bias":
	case "A_log":
		uniform(out, seed, 1)
		for i, v := range out {
			out[i] = float32(math.Log(0.01 + 15.99*(float64(v)+1)/2))
			if c.Delta.Scan {
				out[i] = float32(math.Log(float64(i + 1)))
			}
		}
	case "dt_bias", "norm.weight", "o_norm.weight", "D":
		for i := range out {
			out[i] = 1
		}
		if name == "dt_bias" && c.Names == OlmoHybridNames {
			timeSteps(out, seed)
		}
	default:
		return false
	}
	return true
}

// timeSteps sets out to numbers whose Softplus is from 0.001 to 0.1, its logarithm uniform.
func timeSteps(out []float32, seed uint64) {
	const low, high = 0.001, 0.1
	uniform(out, seed, 1)
	for i, v := range out {
		dt := low * math.Pow(high/low, (float64(v)+1)/2)
		out[i] = float32(dt + math.Log(-math.Expm1(-dt)))
	}
}

// maxTaps bounds the width of a short convolution.
const maxTaps = 16

// validateDelta reports invalid settings of linear attention.
func (c Config) validateDelta() (errs []error) {
	if !c.hasLinear() {
		return nil
	}
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("model: "+format, args...)) }
	d := c.Delta
	if d.Taps < 1 || d.Taps > maxTaps {
		bad("the convolution of linear attention has %d taps, must be from 1 to %d", d.Taps, maxTaps)
	}
	if (c.PostNorms || c.WideQKNorm) && c.Names != OlmoHybridNames || (c.QKVBias || c.OutBias) && !c.Parallel ||
		c.Fused {
		bad("linear attention is not supported with norms after the blocks, biases or fused projections")
	}
	if (d.Scan || d.Conv) && (c.DoubleWrites || c.DeltaEps != 0) || c.DeltaEps < 0 {
		bad("only Gated DeltaNet can write twice as much, or have a norm with an eps of its own, which is %g",
			c.DeltaEps)
	}
	if d.Conv {
		if d.Scan || d.ByKey || d.Keys != 0 || d.KeyDim != 0 || d.Out() < 1 {
			bad("a gated convolution has %d channels and no keys or states", d.Out())
		}
		return errs
	}
	if d.Keys < 1 || d.Values < 1 || d.Values%d.Keys != 0 {
		bad("linear attention has %d value heads, must be a multiple of its %d key heads", d.Values, d.Keys)
	}
	if d.KeyDim < 1 || d.ValueDim < 1 {
		bad("linear attention has heads of %d and %d channels, must be at least 1", d.KeyDim, d.ValueDim)
	}
	if d.Scan && d.ByKey || d.Low < 0 || d.High < 0 || d.High > 0 && d.High < d.Low {
		bad("time steps are limited to %g to %g", d.Low, d.High)
	}
	return errs
}

// linear reports whether layer l has linear attention.
func (c Config) linear(l int) bool { return c.Linear != nil && c.Linear[l] }

// hasLinear reports whether any layer does.
func (c Config) hasLinear() bool { return slices.Contains(c.Linear, true) }

// Recurrent reports whether any layer keeps a state of a sequence instead of its keys and values.
func (c Config) Recurrent() bool { return c.hasLinear() }

// attentionLayers returns the number of layers with keys and values.
func (c Config) attentionLayers() (n int) {
	for l := range c.Layers {
		if c.attends(l) {
			n++
		}
	}
	return n
}

// linearLayers returns the number of layers with linear attention.
func (c Config) linearLayers() (n int) {
	for _, linear := range c.Linear {
		if linear {
			n++
		}
	}
	return n
}

// Projected returns the width of an attention layer's row of queries, their gates if it has any, keys and
// values.
func (c Config) Projected() int {
	if c.Global.Head > 0 {
		return c.most(Config.Projected)
	}
	if c.keyValues() {
		return (c.Heads + c.KVHeads) * c.Head
	}
	if c.OutputGate {
		return c.QKV() + c.Heads*c.Head
	}
	return c.QKV()
}

// WidestMap returns the most outputs of a layer's linear maps.
func (c Config) WidestMap() int {
	n := max(c.Projected(), c.Gate.Factors()*c.most(func(c Config) int { return c.FFN }))
	if c.latent() {
		n = max(c.Heads*c.Head, c.kvb(), c.kva(), c.Latent.QueryRank, 2*c.FFN)
	}
	if c.hasLinear() {
		n = max(n, c.Delta.Stride())
	}
	return n
}

// LargestMap returns the most weights of a linear map, or a little more.
func (c Config) LargestMap() (n int) {
	if !c.latent() {
		return int(c.Width * c.WidestMap())
	}
	for _, s := range c.allLinears() {
		n = max(n, int(s.out()*s.in))
	}
	return n
}

// WidestFloats returns the most floats of a row that linear maps make.
func (c Config) WidestFloats() int { return max(c.Width, c.kva(), c.Latent.QueryRank) }

// layerParts says which kinds of attention activations serve, whether a feed-forward block, and whether both in
// one layer.
type layerParts struct{ attention, linear, feeds, both bool }

// parts returns the kinds that the model has, partsOf layer l's.
func (c Config) parts() layerParts {
	return layerParts{c.attentionLayers() > 0, c.hasLinear(), c.some(c.feeds), c.hasBoth()}
}

func (c Config) partsOf(l int) layerParts {
	mixes, feeds := c.mixes(l), c.feeds(l)
	return layerParts{c.attends(l), c.linear(l), feeds, mixes && feeds}
}

// deltaActs are a layer's activations for N rows.
type deltaActs struct {
	x, u        kernels.Buffer // [N,Stride], [N,Mixed]: before and after the convolution; the others only with states
	gates       kernels.Buffer // [N,Gates]
	writes      kernels.Buffer // [N,Values] scratch, where these are doubled
	out, normed kernels.Buffer // [N,Out]
	rstd        kernels.Buffer // [N,Values], of a scan's gated output [N,Keys]

	// Of a scan whose output has its norm before the gate: [N,Out], [Keys,N].
	ungated, rstdGroups kernels.Buffer
}

// deltaNorms returns the number of norms of a row.
func (c Config) deltaNorms() int {
	if c.Delta.Scan && c.ScanNorm == NormAfterGate {
		return c.Delta.Keys
	}
	return c.Delta.Values
}

func (a *deltaActs) alloc(c Config, N int, f, o func(n int) kernels.Buffer) {
	s := c.Delta
	a.x, a.u = o(N*s.Stride()), o(N*s.Mixed())
	if s.Conv {
		return
	}
	a.gates = f(N * s.Gates())
	a.out, a.normed, a.rstd = o(N*s.Out()), o(N*s.Out()), f(N*c.deltaNorms())
	if c.DoubleWrites {
		a.writes = f(N * s.Values)
	}
	if c.ScanNorm == NormBeforeGate {
		a.ungated, a.rstdGroups = o(N*s.Out()), f(N*s.Keys)
	}
}

// cut cuts the buffers to n rows.
func (a *deltaActs) cut(c Config, n int) {
	s := c.Delta
	if a.x.Empty() {
		return
	}
	a.x, a.u = a.x.Slice(0, n*s.Stride()), a.u.Slice(0, n*s.Mixed())
	if s.Conv {
		return
	}
	a.gates = a.gates.Slice(0, n*s.Gates())
	a.out, a.normed = a.out.Slice(0, n*s.Out()), a.normed.Slice(0, n*s.Out())
	a.rstd = a.rstd.Slice(0, n*c.deltaNorms())
	if !a.writes.Empty() {
		a.writes = a.writes.Slice(0, n*s.Values)
	}
	if !a.ungated.Empty() {
		a.ungated, a.rstdGroups = a.ungated.Slice(0, n*s.Out()), a.rstdGroups.Slice(0, n*s.Keys)
	}
}

// joined returns what the output projection of linear attention reads.
func (a *deltaActs) joined(s kernels.DeltaShape) kernels.Buffer {
	if s.Conv {
		return a.u
	}
	return a.normed
}

// joined returns the output projection's input; of a layer with both kinds of attention, the plain one's.
func (a *acts) joined(c Config, y *layer) kernels.Buffer {
	switch {
	case y.delta != nil && !c.Parallel:
		return a.delta.joined(c.Delta)
	case c.OutputGate || c.GateMap:
		return a.gated
	case c.latent():
		return a.latent.values
	}
	return a.att
}

// deltaMemory is what a layer keeps of many sequences, in slots: the last inputs of the convolution, operands or of
// a gated one floats, and the states. It is empty in training.
type deltaMemory struct{ tails, states kernels.Buffer }

// linearAttention computes a layer's activations from a.n1 up to what the output projection reads.
func (m *Model) linearAttention(y *layer, a *acts, low *LowRank, memory deltaMemory, r kernels.Runs) {
	be, s, d := m.be, m.Config.Delta, &a.delta
	in, _ := y.deltaMaps()
	in.apply(be, d.x, a.n1, low)
	m.scaleProjected(d.x, d.u)
	p := y.delta
	if s.Conv {
		be.GatedConv(d.u, d.x, p.conv.w, memory.tails, r, s)
		return
	}
	be.ShortConv(d.u, d.x, p.conv.w, p.convBias.w, memory.tails, r, s)
	be.DeltaGates(d.gates, d.x, p.logs.w, p.bias.w, p.skip.w, s)
	m.scaleWrites(d.gates, d.writes, 2)
	be.DeltaRule(d.out, d.u, d.gates, memory.states, r, s)
	if s.Scan {
		m.normScan(p, d)
		return
	}
	be.GatedNorm(d.normed, d.rstd, d.out, d.x, p.norm.w, s, cmp.Or(m.Config.DeltaEps, m.Config.NormEps))
}

// scaleWrites multiplies what value heads write, or its gradient, in gates [N,Gates] by a power of 2 if the model
// doubles it. This is exact: fma(by-1, w, w). t [N,Values] is scratch.
func (m *Model) scaleWrites(gates, t kernels.Buffer, by float64) {
	if s := m.Config.Delta; m.Config.DoubleWrites {
		m.be.TakeColumns(t, gates, s.Values, s.Gates(), s.Values, 1)
		m.be.AddColumns(gates, t, s.Values, s.Gates(), s.Values, by-1)
	}
}

// linearAttentionBackward sets dNorm, the gradient of a.n1, from dout, the gradient of the output
// projection's result.
func (m *Model) linearAttentionBackward(ws *Workspace, y *layer, a *acts, dNorm, dout, blocks kernels.Buffer) {
	be, s, d, n := m.be, m.Config.Delta, &a.delta, ws.n
	dOut, dx := ws.dAtt.Slice(0, n*s.Out()), ws.dProjected.Slice(0, n*s.Stride())
	in, out := y.deltaMaps()
	out.backward(be, dOut, dout, d.joined(s), blocks, &ws.low)
	p, r := y.delta, ws.runs()
	if s.Conv {
		be.GatedConvBackward(dx, m.gradient(p.conv, 0), dOut, d.x, p.conv.w, blocks, r, s)
		in.backward(be, dNorm, dx, a.n1, blocks, &ws.low)
		return
	}
	dMixed, dGates := ws.dMixed.Slice(0, n*s.Mixed()), ws.dGates.Slice(0, n*s.Gates())
	if s.Scan {
		m.normScanBackward(p, d, dx, dOut, blocks)
	} else {
		be.GatedNormBackward(dOut, dx, m.gradient(p.norm, 0), dOut, d.out, d.x, p.norm.w, d.rstd, blocks, s)
	}
	be.DeltaRuleBackward(dMixed, dGates, dOut, d.u, d.gates, r, s)
	m.scaleWrites(d.gates, d.writes, 0.5) // as DeltaGates made them
	m.scaleWrites(dGates, d.writes, 2)
	be.DeltaGatesBackward(dx, m.gradient(p.logs, 0), m.gradient(p.bias, s.Values), m.gradient(p.skip, 2*s.Values),
		dGates, d.gates, d.x, p.logs.w, p.bias.w, blocks, s)
	be.ShortConvBackward(dx, m.gradient(p.conv, 0), m.gradient(p.convBias, s.Mixed()*s.Taps), dMixed, d.x, p.conv.w,
		p.convBias.w, blocks, r, s)
	m.scaleProjected(dx, dMixed)
	in.backward(be, dNorm, dx, a.n1, blocks, &ws.low)
}

// gradient returns the gradient of w, which goes to the sink from element `at` if w is frozen.
func (m *Model) gradient(w norm, at int) kernels.Buffer {
	switch {
	case w.w.Empty():
		return kernels.Buffer{}
	case w.d.Empty():
		return m.unread.Slice(at, at+w.w.Len())
	}
	return w.d
}

// allocAttentionGradients makes room for the gradients of a layer's attention, linear or not.
func (ws *Workspace) allocAttentionGradients(alloc, operand func(n int) kernels.Buffer) {
	c, N := ws.c, ws.cap.Tokens
	out, projected := 0, 0
	if c.attentionLayers() > 0 {
		ws.dqkv, out = operand(N*c.most(Config.QKV)), c.HeadsWidth()
		if c.OutputGate || c.Global.KeyValues || c.SharedKV > 0 {
			projected = c.Projected()
		}
		if c.GateMap {
			projected = 2 * c.Heads * c.Head
		}
	}
	if c.latent() {
		ws.latentGrads.alloc(c, N, alloc, operand)
	}
	if c.hasLinear() {
		out, projected = max(out, c.Delta.Out()), max(projected, c.Delta.Stride())
		if !c.Delta.Conv {
			ws.dMixed, ws.dGates = operand(N*c.Delta.Mixed()), alloc(N*c.Delta.Gates())
		}
	}
	ws.dAtt = operand(N * out)
	if projected > 0 {
		ws.dProjected = operand(N * projected)
	}
}

// runs returns the runs of a step's rows: neighbours of one sequence, from its slot.
func (d *Decoder) runs(st Step) kernels.Runs {
	if !d.c.hasLinear() {
		return kernels.Runs{}
	}
	d.runEnds.host, d.runSlots.host = append(d.runEnds.host[:0], 0), d.runSlots.host[:0]
	for m, seq := range st.Seq {
		if m+1 < len(st.Seq) && st.Seq[m+1] == seq {
			continue
		}
		first := d.runEnds.host[len(d.runEnds.host)-1]
		slot := st.States[seq]
		if st.Pos[first] == 0 {
			slot = -1 - slot
		}
		d.runEnds.host, d.runSlots.host = append(d.runEnds.host, int32(m+1)), append(d.runSlots.host, slot)
	}
	return kernels.Runs{Offsets: d.runEnds.upload(d.be), Slots: d.runSlots.upload(d.be)}
}

// CopyStates copies slot pairs[2i] to slot pairs[2i+1] in all layers.
func (m *Model) CopyStates(d *Decoder, x *Cache, pairs []int32) {
	if len(pairs) == 0 {
		return
	}
	v := d.pairs.Slice(0, len(pairs))
	m.be.Copy(v, kernels.Host(pairs))
	for _, memory := range x.memory {
		if !memory.tails.Empty() {
			m.be.CopyStates(memory.tails, v, m.Config.Delta.Tail())
		}
		if !memory.states.Empty() {
			m.be.CopyStates(memory.states, v, m.Config.Delta.State())
		}
	}
	m.be.Sync()
}
