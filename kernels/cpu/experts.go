package cpu

// #include "level/args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// Route chooses the experts of each row.
func (b *Backend) Route(choice, weight, probs, logits, bias kernels.Buffer, r kernels.Routing) {
	g, m := b.routing(choice, weight, probs, logits, r)
	if !bias.Empty() {
		check(bias, r.Experts)
	}
	g.choice, g.weight, g.probs, g.logits = ints(choice), floats(weight), floats(probs), floats(logits)
	g.bias = floats(bias)
	b.queued(rowCall{kernel: b.k.route, args: unsafe.Pointer(g), size: unsafe.Sizeof(*g), m: m, perRow: 1,
		grain: rowGrain(16 * r.Experts), joins: true},
		use{choice, byRow | writes}, use{weight, byRow | writes}, use{probs, byRow | writes}, use{logits, byRow},
		use{bias, reads})
}

// RouteBackward computes the gradients of Route.
func (b *Backend) RouteBackward(dlogits, dweight, choice, weight, probs kernels.Buffer, r kernels.Routing) {
	g, m := b.routing(choice, weight, probs, dlogits, r)
	check(dweight, weight.Len())
	b.flush() // completes choice
	J := r.Choices()
	for i, e := range kernels.Elems[int32](choice) {
		if i%J < r.Top && (e < 0 || int(e) >= r.Experts) {
			panic("cpu: RouteBackward: no such expert")
		}
	}
	g.choice, g.weight, g.probs, g.dlogits, g.dweight = ints(choice), floats(weight), floats(probs), floats(dlogits),
		floats(dweight)
	b.run(b.k.route_backward, unsafe.Pointer(g), m, rowGrain(8*r.Experts))
}

// routing fills the arguments that Route and RouteBackward share and returns the number of
// rows.
func (b *Backend) routing(choice, weight, probs, logits kernels.Buffer,
	r kernels.Routing) (*C.struct_route_args, int) {
	r.Check()
	m := probs.Len() / r.Experts
	check(probs, m*r.Experts)
	check(choice, m*r.Choices())
	check(weight, m*r.Choices())
	check(logits, m*r.Logits())
	g := &b.a.route
	g.experts, g.top, g.renorm, g.shared = C.long(r.Experts), C.long(r.Top), flag(r.Renorm), flag(r.Shared)
	g.sigmoid, g.gated = flag(r.Sigmoid), flag(r.Shared && !r.Ungated)
	g.scale, g.eps = C.float(r.Factor()), C.float(r.Added())
	g.groups, g.top_groups, g.bias = C.long(r.Groups), C.long(r.TopGroups), nil
	return g, m
}

// Combine adds up the experts' results.
func (b *Backend) Combine(out, x, slot, weight kernels.Buffer, C_, J int) {
	g, m := b.combination(out, x, slot, weight, C_, J)
	g.out = floats(out)
	b.queued(rowCall{kernel: b.k.combine, args: unsafe.Pointer(g), size: unsafe.Sizeof(*g), m: m, perRow: 1,
		grain: rowGrain((J + 1) * C_), joins: true},
		use{out, byRow | writes}, use{x, reads}, use{slot, byRow}, use{weight, byRow})
}

// CombineBackward computes the gradients of Combine.
func (b *Backend) CombineBackward(dx, dweight, dout, x, slot, weight kernels.Buffer, C_, J int) {
	g, m := b.combination(dout, x, slot, weight, C_, J)
	check(dx, x.Len())
	check(dweight, weight.Len())
	g.dx, g.dweight, g.dout = floats(dx), floats(dweight), floats(dout)
	b.run(b.k.combine_backward, unsafe.Pointer(g), m, rowGrain(2*J*C_))
}

// combination fills the arguments that Combine and CombineBackward share and returns the
// number of rows. It panics if a slot is not a row of x; the host wrote the slots, so it
// need not flush the queue.
func (b *Backend) combination(out, x, slot, weight kernels.Buffer, c, J int) (*C.struct_combine_args, int) {
	m := out.Len() / c
	check(out, m*c)
	check(x, m*J*c)
	check(slot, m*J)
	check(weight, m*J)
	g := &b.a.combine
	g.x, g.slot, g.weight, g.c, g.j = floats(x), ints(slot), floats(weight), C.long(c), C.long(J)
	for _, s := range kernels.Elems[int32](slot) {
		if s < 0 || int(s) >= m*J {
			panic("cpu: Combine: no such row")
		}
	}
	return g, m
}
