package kerneltest

import (
	"fmt"

	"exp/kernels"
)

func expertChecks() []check {
	return []check{
		{"Route", checkRoute},
		{"Combine", checkCombine},
		{"Combine/order", checkCombineOrder},
	}
}

// routings are numbers of experts around the lanes, few and many choices of them.
func routings() []kernels.Routing {
	var list []kernels.Routing
	for i, E := range append(sizes(), 60, 128) {
		top := []int{1, 2, 4, 8}[i%4]
		list = append(list,
			kernels.Routing{Experts: E, Top: min(top, E), Renorm: i%2 == 0, Shared: i%3 == 0},
			kernels.Routing{Experts: E, Top: min(2, E), Renorm: i%2 == 1, Shared: i%3 != 0})
	}
	return append(list, kernels.Routing{Experts: 33, Top: 33, Renorm: true}, kernels.Routing{Experts: 8, Top: 2,
		Renorm: true}, kernels.Routing{Experts: 64, Top: 8, Shared: true},
		kernels.Routing{Experts: 64, Top: 6, Sigmoid: true, Renorm: true, Shared: true, Ungated: true, Scale: 2.5},
		kernels.Routing{Experts: 48, Top: 4, Sigmoid: true, Groups: 8, TopGroups: 3, Scale: 1.8},
		kernels.Routing{Experts: 128, Top: 8, Sigmoid: true, Renorm: true, Groups: 64, TopGroups: 40, Shared: true},
		kernels.Routing{Experts: 21, Top: 6, Groups: 7, TopGroups: 3, Shared: true, Ungated: true, Scale: 16},
		kernels.Routing{Experts: 5, Top: 2, Groups: 5, TopGroups: 2, Renorm: true, Scale: 0.5},
		kernels.Routing{Experts: 32, Top: 4, Sigmoid: true, Renorm: true, Eps: 0.25})
}

// namedRouting returns the text by which a routing names its data, which must not change.
func namedRouting(r kernels.Routing) any {
	if r.Eps != 0 {
		return r
	}
	return struct {
		Experts, Top                     int
		Renorm, Shared, Sigmoid, Ungated bool
		Groups, TopGroups                int
		Scale                            float64
	}{r.Experts, r.Top, r.Renorm, r.Shared, r.Sigmoid, r.Ungated, r.Groups, r.TopGroups, r.Scale}
}

// routingLogits returns M rows; in the first all experts are as good, in the second every
// third is.
func routingLogits(M int, r kernels.Routing) []float32 {
	x, W := newStream(fmt.Sprint("route", namedRouting(r))).scaled(M*r.Logits(), 2), r.Logits()
	for e := range W {
		x[e] = 1.5
		if e%3 == 0 {
			x[W+e] = 7
		}
	}
	return x
}

// routingBias is what some routings add to choose experts: for others than the best by themselves.
func routingBias(r kernels.Routing) []float32 {
	if !r.Sigmoid || r.Experts == 48 {
		return nil
	}
	return newStream(fmt.Sprint("route bias", namedRouting(r))).scaled(r.Experts, 0.5)
}

func checkRoute(s *subject) error {
	const M = 11
	for _, r := range routings() {
		J := r.Choices()
		z := routingLogits(M, r)
		bias := routingBias(r)
		route := func(c *call, logits kernels.Buffer, M int) {
			var b kernels.Buffer
			if bias != nil {
				b = c.floats("bias", bias)
			}
			c.b.Route(c.outInts("choice", M*J), c.out("weight", M*J), c.out("probs", M*r.Experts), logits, b, r)
		}
		err := s.checkRows(rowCase{
			name: fmt.Sprintf("Route %+v", namedRouting(r)), op: "Route",
			rows: []field{{name: "logits", width: r.Logits(), f: z}},
			run:  func(c *call, in []kernels.Buffer, M int) { route(c, in[0], M) },
		}, M)
		if err != nil {
			return err
		}
		fwd, err := s.reference(func(c *call) { route(c, c.floats("logits", z), M) })
		if err != nil {
			return err
		}
		d := newStream(fmt.Sprint("route backward", namedRouting(r))).floats(M * J)
		err = s.checkRows(rowCase{
			name: fmt.Sprintf("RouteBackward %+v", namedRouting(r)), op: "RouteBackward",
			rows: []field{{name: "dweight", width: J, f: d}, {name: "choice", width: J, i: fwd[0].i},
				{name: "weight", width: J, f: fwd[1].f}, {name: "probs", width: r.Experts, f: fwd[2].f}},
			run: func(c *call, in []kernels.Buffer, M int) {
				c.b.RouteBackward(c.out("dlogits", M*r.Logits()), in[0], in[1], in[2], in[3], r)
			},
		}, M)
		if err != nil {
			return err
		}
	}
	return nil
}

// combination is M rows of C with J choices each.
type combination struct{ M, J, C int }

func combinations() []combination {
	var list []combination
	for i, C := range append(sizes(), 128, 300) {
		list = append(list, combination{9, 1 + i%4, C})
	}
	return append(list, combination{40, 9, 33})
}

// data returns the results of the experts, row by row, weights and gradients.
func (g combination) data() (x, weight, dout []float32) {
	r := newStream(fmt.Sprint("combine", g))
	return r.floats(g.M * g.J * g.C), r.floats(g.M * g.J), r.floats(g.M * g.C)
}

// checkCombine computes rows whose results lie side by side, in another order than the
// choices.
func checkCombine(s *subject) error {
	for _, g := range combinations() {
		J, C := g.J, g.C
		x, weight, dout := g.data()
		slots := func(c *call, M int) kernels.Buffer {
			var list []int32
			for m := range M {
				for j := range J {
					list = append(list, int32(m*J+(j+1)%J))
				}
			}
			return c.ints("slot", list)
		}
		rows := []field{{name: "x", width: J * C, f: x}, {name: "weight", width: J, f: weight}}
		for _, rc := range []rowCase{{
			name: fmt.Sprintf("Combine %+v", g), op: "Combine", rows: rows,
			run: func(c *call, in []kernels.Buffer, M int) {
				c.b.Combine(c.out("out", M*C), in[0], slots(c, M), in[1], C, J)
			},
		}, {
			name: fmt.Sprintf("CombineBackward %+v", g), op: "CombineBackward",
			rows: append(rows, field{name: "dout", width: C, f: dout}),
			run: func(c *call, in []kernels.Buffer, M int) {
				c.b.CombineBackward(c.out("dx", M*J*C), c.out("dweight", M*J), in[2], in[0], slots(c, M), in[1], C, J)
			},
		}} {
			if err := s.checkRows(rc, g.M); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkCombineOrder lays the results of the experts in any order, which must change
// nothing but where their gradients lie.
func checkCombineOrder(s *subject) error {
	for _, g := range combinations() {
		x, weight, dout := g.data()
		slots := func(order []int) (list []int32) {
			for _, at := range order {
				list = append(list, int32(at))
			}
			return list
		}
		both := func(x []float32, order []int) func(c *call) {
			return func(c *call) {
				xb, slot, w := c.floats("x", x), c.ints("slot", slots(order)), c.floats("weight", weight)
				c.b.Combine(c.out("out", g.M*g.C), xb, slot, w, g.C, g.J)
				c.b.CombineBackward(c.out("dx", len(x)), c.out("dweight", g.M*g.J), c.floats("dout", dout), xb, slot,
					w, g.C, g.J)
			}
		}
		n := g.M * g.J
		order := newStream(fmt.Sprint("slots", g)).permutation(n)
		moved := make([]float32, len(x))
		for i, at := range order {
			copy(moved[at*g.C:(at+1)*g.C], x[i*g.C:(i+1)*g.C])
		}
		if err := s.compare("CombineBackward", both(moved, order)); err != nil {
			return fmt.Errorf("%+v: %w", g, err)
		}
		got, err := run(s.b, both(moved, order))
		if err != nil {
			return err
		}
		want, err := run(s.b, both(x, upTo(n)))
		if err != nil {
			return err
		}
		got[1].f = pick(got[1].f, g.C, order)
		if err := same(got, want, exactly); err != nil {
			return fmt.Errorf("%+v: the order of the experts' results changes them: %w", g, err)
		}
	}
	return nil
}
