package kerneltest

import "exp/kernels"

// gateBenchmarks measure gates by themselves, on rows of training and of decoding.
func gateBenchmarks() []benchmark {
	const F = 1024
	var list []benchmark
	for _, M := range []int{64, 2048} {
		for kind, name := range []string{"silu", "gelu-tanh", "clamped"} {
			r, kind := benchStream("bench gate"), kernels.GateKind(kind)
			dims := dimsOf("M", M, "F", F, "kind", name)
			list = append(list, benchmark{"Gate", dims, 0, 12 * M * F, func(c *call) func() {
				act, gateUp := c.outOperands("act", M*F), c.operands("gateUp", r.floats(M*2*F))
				return func() { c.b.Gate(act, gateUp, F, kind) }
			}}, benchmark{"GateBackward", dims, 0, 20 * M * F, func(c *call) func() {
				d, gateUp, dact := c.outOperands("dgateUp", M*2*F), c.operands("gateUp", r.floats(M*2*F)),
					c.operands("dact", r.floats(M*F))
				return func() { c.b.GateBackward(d, gateUp, dact, F, kind) }
			}})
		}
	}
	return list
}

// columnBenchmarks move one map's queries, keys and values within the columns of all.
func columnBenchmarks() []benchmark {
	const M, n, stride, offset = 2048, 256, 768, 256
	r, dims := benchStream("bench columns"), dimsOf("M", M, "n", n, "stride", stride)
	return []benchmark{
		{"TakeColumns", dims, 0, 8 * M * n, func(c *call) func() {
			dst, src := c.outOperands("dst", M*n), c.operands("src", r.floats(M*stride))
			return func() { c.b.TakeColumns(dst, src, n, stride, offset, 1) }
		}},
		{"AddColumns", dims, 0, 12 * M * n, func(c *call) func() {
			dst, src := c.inoutOperands("dst", r.floats(M*stride)), c.operands("src", r.floats(M*n))
			return func() { c.b.AddColumns(dst, src, n, stride, offset, 0) }
		}},
	}
}

// expertBenchmarks have the experts of Mixtral, Qwen1.5-MoE and Qwen3-MoE.
func expertBenchmarks() []benchmark {
	const M, C = 2048, 256
	var list []benchmark
	for _, x := range []kernels.Routing{{Experts: 8, Top: 2, Renorm: true}, {Experts: 60, Top: 4, Shared: true},
		{Experts: 128, Top: 8, Renorm: true}} {
		r, J, E := benchStream("bench experts"), x.Choices(), x.Experts
		dims := dimsOf("M", M, "E", E, "J", J)
		routed := func(c *call) (choice, weight, probs kernels.Buffer) {
			return c.outInts("choice", M*J), c.out("weight", M*J), c.out("probs", M*E)
		}
		list = append(list, benchmark{"Route", dims, 0, 8 * M * E, func(c *call) func() {
			choice, weight, probs := routed(c)
			logits := c.floats("logits", r.floats(M*x.Logits()))
			return func() { c.b.Route(choice, weight, probs, logits, kernels.Buffer{}, x) }
		}}, benchmark{"RouteBackward", dims, 0, 8 * M * E, func(c *call) func() {
			choice, weight, probs := routed(c)
			c.b.Route(choice, weight, probs, c.floats("logits", r.floats(M*x.Logits())), kernels.Buffer{}, x)
			dlogits, dweight := c.out("dlogits", M*x.Logits()), c.floats("dweight", r.floats(M*J))
			return func() { c.b.RouteBackward(dlogits, dweight, choice, weight, probs, x) }
		}})
		slots := func(c *call) kernels.Buffer {
			var list []int32
			for _, at := range r.permutation(M * J) {
				list = append(list, int32(at))
			}
			return c.ints("slot", list)
		}
		dims = dimsOf("M", M, "C", C, "J", J)
		list = append(list, benchmark{"Combine", dims, 0, 4 * M * (J + 1) * C, func(c *call) func() {
			out, x, w, slot := c.out("out", M*C), c.floats("x", r.floats(M*J*C)),
				c.floats("weight", r.positive(M*J)), slots(c)
			return func() { c.b.Combine(out, x, slot, w, C, J) }
		}}, benchmark{"CombineBackward", dims, 0, 4 * M * (2*J + 1) * C, func(c *call) func() {
			dx, dw, dout := c.out("dx", M*J*C), c.out("dweight", M*J), c.floats("dout", r.floats(M*C))
			x, w, slot := c.floats("x", r.floats(M*J*C)), c.floats("weight", r.positive(M*J)), slots(c)
			return func() { c.b.CombineBackward(dx, dw, dout, x, slot, w, C, J) }
		}})
	}
	return list
}
