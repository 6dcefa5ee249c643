package model

import "exp/kernels"

// expert is one feed-forward block of a mixture.
type expert struct{ gateUp, down linear }

// expertRows returns the widths of gateUp of an expert, and of the shared one.
func (c Config) expertRows() (own, shared int) {
	return c.Gate.Factors() * c.Experts.FFN, c.Gate.Factors() * c.Experts.Shared
}

// mixture holds the parameters of a sparse layer's feed-forward block: the router, whose
// last row is the gate of the shared expert if it has one, and the experts, the shared one
// last.
type mixture struct {
	router  linear
	bias    kernels.Buffer // [E] that chooses experts; empty for none
	experts []expert
}

// mixtureActs are a sparse layer's activations for M rows. Rows are sorted by expert:
// expert e has the sorted rows offsets[e] to offsets[e+1]; the shared expert, which all
// rows go to, has the last M in their own order.
type mixtureActs struct {
	logits, weight, probs kernels.Buffer // [M,Logits], [M,J], [M,E], floats
	choice, slot          kernels.Buffer // [M,J]: expert of each choice, and its sorted row
	rows                  kernels.Buffer // [M·Top] row of each sorted row
	x                     kernels.Buffer // [M·Top,C] operands: the rows, sorted
	gateUp, act           kernels.Buffer // [M·Top,2F], [M·Top,F] operands; without a gate [M·Top,F]
	sharedGateUp          kernels.Buffer // [M,2Fs] operands, likewise
	sharedAct             kernels.Buffer // [M,Fs] operands
	y                     kernels.Buffer // [M·J,C] floats: the experts' results, sorted

	offsets []int32 // [E+1] on the host
	host    []int32 // scratch: choice, slot and rows
}

func (a *mixtureActs) alloc(c Config, M int, f, o, i func(n int) kernels.Buffer) {
	r := c.routing()
	J, N := r.Choices(), M*r.Top
	a.logits, a.weight, a.probs = f(M*r.Logits()), f(M*J), f(M*r.Experts)
	a.choice, a.slot, a.rows = i(M*J), i(M*J), i(N)
	own, shared := c.expertRows()
	a.x, a.gateUp, a.act = o(N*c.Width), o(N*own), o(N*c.Experts.FFN)
	if r.Shared {
		a.sharedGateUp, a.sharedAct = o(M*shared), o(M*c.Experts.Shared)
	}
	a.y = f(M * J * c.Width)
}

// cut returns the buffers cut to M rows.
func (a *mixtureActs) cut(c Config, M int) mixtureActs {
	r := c.routing()
	J, N := r.Choices(), M*r.Top
	own, shared := c.expertRows()
	b := *a
	for _, x := range []struct {
		b *kernels.Buffer
		n int
	}{
		{&b.logits, M * r.Logits()}, {&b.weight, M * J}, {&b.probs, M * r.Experts}, {&b.choice, M * J},
		{&b.slot, M * J}, {&b.rows, N},
		{&b.x, N * c.Width}, {&b.gateUp, N * own}, {&b.act, N * c.Experts.FFN},
		{&b.sharedGateUp, M * shared}, {&b.sharedAct, M * c.Experts.Shared}, {&b.y, M * J * c.Width},
	} {
		if !x.b.Empty() {
			*x.b = x.b.Slice(0, x.n)
		}
	}
	return b
}

// route chooses the experts of rows x [M,C] and sorts the rows by them. It waits for the
// device, because the host sizes each product.
func (a *mixtureActs) route(be kernels.Backend, c Config, router *linear, bias, x kernels.Buffer) {
	r := c.routing()
	M, J := x.Len()/c.Width, r.Choices()
	be.MatMul(a.logits, x, router.w, router.bias)
	if c.Experts.Beside {
		be.TakeColumns(a.logits, a.logits, r.Logits(), r.Logits(), 0, c.routerScale())
	}
	be.Route(a.choice, a.weight, a.probs, a.logits, bias, r)
	if need := M*J + M*J + M*r.Top; cap(a.host) < need {
		a.host = make([]int32, need)
	}
	choice, slot, rows := a.host[:M*J], a.host[M*J:2*M*J], a.host[2*M*J:2*M*J+M*r.Top]
	be.Copy(kernels.Host(choice), a.choice)
	be.Sync()
	a.offsets = append(a.offsets[:0], make([]int32, r.Experts+1)...)
	for i, e := range choice {
		if i%J < r.Top {
			a.offsets[e+1]++
		}
	}
	for e := range r.Experts {
		a.offsets[e+1] += a.offsets[e]
	}
	next := append([]int32(nil), a.offsets[:r.Experts]...)
	for i, e := range choice {
		m := int32(i / J)
		if i%J == r.Top {
			slot[i] = int32(M*r.Top) + m
			continue
		}
		slot[i], rows[next[e]] = next[e], m
		next[e]++
	}
	be.Copy(a.slot, kernels.Host(slot))
	be.Copy(a.rows, kernels.Host(rows))
	be.Sync()
}

// forward sets out [M,C] to the mixture of x [M,C]; the router reads routed [M,C]. scales [E] multiply the experts'
// results, unless it is nil.
func (y *mixture) forward(be kernels.Backend, c Config, a *mixtureActs, out, x, routed kernels.Buffer,
	scales []float32) {
	a.route(be, c, &y.router, y.bias, routed)
	be.GatherRows(a.x, x, a.rows, c.Width)
	r, C, F := c.routing(), c.Width, c.Experts.FFN
	own, _ := c.expertRows()
	for e := range r.Experts {
		lo, hi := int(a.offsets[e]), int(a.offsets[e+1])
		if lo == hi {
			continue
		}
		act := a.act.Slice(lo*F, hi*F)
		y.experts[e].gate(be, c, act, a.gateUp.Slice(lo*own, hi*own), a.x.Slice(lo*C, hi*C))
		be.MatMul(a.y.Slice(lo*C, hi*C), act, y.experts[e].down.w, y.experts[e].down.bias)
		scaleRows(be, a.y.Slice(lo*C, hi*C), scales, e, C)
	}
	if r.Shared {
		shared := &y.experts[r.Experts]
		shared.gate(be, c, a.sharedAct, a.sharedGateUp, x)
		be.MatMul(a.y.Slice(a.x.Len(), a.y.Len()), a.sharedAct, shared.down.w, kernels.Buffer{})
	}
	be.Combine(out, a.y, a.slot, a.weight, C, r.Choices())
}

// scaleRows multiplies rows x [M,C] by the number of expert e, if it has one.
func scaleRows(be kernels.Backend, x kernels.Buffer, scales []float32, e, C int) {
	if scales != nil && scales[e] != 1 {
		be.TakeColumns(x, x, C, C, 0, float64(scales[e]))
	}
}

// gate computes an expert's activations act [M,F] and gateUp [M,2F], without a gate [M,F].
func (y *expert) gate(be kernels.Backend, c Config, act, gateUp, x kernels.Buffer) {
	if c.fusedGate() {
		be.MatMulSwiGLU(act, gateUp, x, y.gateUp.w)
		return
	}
	be.MatMul(gateUp, x, y.gateUp.w, y.gateUp.bias)
	be.Gate(act, gateUp, y.down.w.In, c.Gate)
}

// mixtureGrads is the working memory of a backward pass.
type mixtureGrads struct {
	dy, dx           kernels.Buffer // [M·J,C] floats
	dweight, dlogits kernels.Buffer // [M,J], [M,Logits] floats
	dAct             kernels.Buffer // [M·J, widest expert] operands
	t                kernels.Buffer // [M,C] floats
	blocks           indexBuffer    // of the rows of one expert
}

func (g *mixtureGrads) alloc(c Config, M int, f, o func(n int) kernels.Buffer) {
	r := c.routing()
	J := r.Choices()
	g.dy, g.dx, g.dweight, g.dlogits = f(M*J*c.Width), f(M*J*c.Width), f(M*J), f(M*r.Logits())
	if !c.fusedGate() {
		g.dAct = o(M * J * max(c.Experts.FFN, c.Experts.Shared))
	}
	g.t = f(M * c.Width)
}

// backward sets dx [M,C] to the gradient of forward's x and dRouted to routed's, or adds the second to dx if dRouted
// is empty, and adds to the parameters' gradients. blocks are the gradient blocks of the rows, on the host and on the
// device.
func (y *mixture) backward(be kernels.Backend, c Config, a *mixtureActs, g *mixtureGrads, dx, dRouted, dout, x,
	routed, blocks kernels.Buffer, hostBlocks []int32, scales []float32) {
	r, C, F := c.routing(), c.Width, c.Experts.FFN
	M, J := x.Len()/C, r.Choices()
	N := M * r.Top
	dy, dxs := g.dy.Slice(0, M*J*C), g.dx.Slice(0, N*C)
	dweight, dlogits := g.dweight.Slice(0, M*J), g.dlogits.Slice(0, M*r.Logits())
	be.CombineBackward(dy, dweight, dout, a.y, a.slot, a.weight, C, J)
	rows := a.host[2*M*J : 2*M*J+N]
	width, _ := c.expertRows()
	for e := range r.Experts {
		lo, hi := int(a.offsets[e]), int(a.offsets[e+1])
		if lo == hi {
			continue
		}
		g.blocks.host = expertBlocks(g.blocks.host[:0], rows[lo:hi], hostBlocks)
		own := g.blocks.upload(be)
		be.Sync()
		scaleRows(be, dy.Slice(lo*C, hi*C), scales, e, C)
		y.experts[e].backward(be, c, g, dxs.Slice(lo*C, hi*C), dy.Slice(lo*C, hi*C), a.x.Slice(lo*C, hi*C),
			a.gateUp.Slice(lo*width, hi*width), a.act.Slice(lo*F, hi*F), own)
	}
	be.ScatterRows(dx, dxs, a.rows, C)
	t := g.t.Slice(0, M*C)
	if r.Shared {
		y.experts[r.Experts].backward(be, c, g, t, dy.Slice(N*C, M*J*C), x, a.sharedGateUp, a.sharedAct, blocks)
		be.Add(dx, t)
	}
	be.RouteBackward(dlogits, dweight, a.choice, a.weight, a.probs, r)
	if !dRouted.Empty() {
		be.TakeColumns(dlogits, dlogits, r.Logits(), r.Logits(), 0, c.routerScale())
		y.router.backward(be, dRouted, dlogits, routed, blocks, nil)
		return
	}
	y.router.backward(be, t, dlogits, routed, blocks, nil)
	be.Add(dx, t)
}

// backward takes dy [M,C] through one expert: it sets dx [M,C] and overwrites gateUp.
func (y *expert) backward(be kernels.Backend, c Config, g *mixtureGrads, dx, dy, x, gateUp, act,
	blocks kernels.Buffer) {
	if c.fusedGate() {
		if !y.down.dw.Empty() {
			be.MatMulDW(y.down.dw, kernels.Buffer{}, dy, act, blocks)
		}
		be.MatMulDXSwiGLU(gateUp, gateUp, dy, y.down.w)
	} else {
		dAct := g.dAct.Slice(0, act.Len())
		y.down.backward(be, dAct, dy, act, blocks, nil)
		be.GateBackward(gateUp, gateUp, dAct, y.down.w.In, c.Gate)
	}
	y.gateUp.backward(be, dx, gateUp, x, blocks, nil)
}

// expertBlocks appends the offsets of the gradient blocks of an expert's rows: each block
// of all rows yields one block here, unless it sent no row to the expert. So the sum over
// rows does not depend on how a mini-batch is cut.
func expertBlocks(offsets []int32, rows, all []int32) []int32 {
	offsets = append(offsets, 0)
	n, b := 0, 1
	for i, m := range rows {
		for m >= all[b] {
			if i > n {
				offsets = append(offsets, int32(i))
				n = i
			}
			b++
		}
	}
	return append(offsets, int32(len(rows)))
}
