//go:build cuda

package cuda

/*
#include "args.h"
*/
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// routingOf returns the routing of M rows. It panics if the lengths do not match.
func routingOf(choice, weight, probs, logits kernels.Buffer, r kernels.Routing) (routing C.struct_routing, M int) {
	r.Check()
	M = rowsOf(probs, r.Experts)
	check(choice, M*r.Choices())
	check(weight, M*r.Choices())
	check(logits, M*r.Logits())
	return C.struct_routing{M: C.long(M), experts: C.long(r.Experts), top: C.long(r.Top), groups: C.long(r.Groups),
		top_groups: C.long(r.TopGroups), renorm: flag(r.Renorm), shared: flag(r.Shared),
		gated: flag(r.Shared && !r.Ungated), sigmoid: flag(r.Sigmoid), scale: C.float(r.Factor()),
		eps: C.float(r.Added())}, M
}

// Route implements kernels.Experts.
func (b *Backend) Route(choice, weight, probs, logits, bias kernels.Buffer, r kernels.Routing) {
	routing, M := routingOf(choice, weight, probs, logits, r)
	if !bias.Empty() {
		check(bias, r.Experts)
	}
	b.launch("route", M, unsafe.Pointer(&C.struct_route_args{choice: ints(choice), weight: floats(weight),
		probs: floats(probs), logits: floats(logits), bias: floats(bias), r: routing}))
}

// RouteBackward implements kernels.Experts.
func (b *Backend) RouteBackward(dlogits, dweight, choice, weight, probs kernels.Buffer, r kernels.Routing) {
	routing, M := routingOf(choice, weight, probs, dlogits, r)
	check(dweight, weight.Len())
	b.launch("route_backward", M, unsafe.Pointer(&C.struct_route_backward_args{dlogits: floats(dlogits),
		dweight: floats(dweight), weight: floats(weight), probs: floats(probs), choice: ints(choice), r: routing}))
}

// Combine implements kernels.Experts.
func (b *Backend) Combine(out, x, slot, weight kernels.Buffer, channels, J int) {
	M := rowsOf(out, channels)
	check(slot, M*J)
	check(weight, M*J)
	check(x, M*J*channels)
	b.launch("combine", out.Len(), unsafe.Pointer(&C.struct_combine_args{out: floats(out), x: floats(x),
		weight: floats(weight), slot: ints(slot), M: C.long(M), C: C.long(channels), J: C.long(J)}))
}

// CombineBackward implements kernels.Experts.
func (b *Backend) CombineBackward(dx, dweight, dout, x, slot, weight kernels.Buffer, channels, J int) {
	M := rowsOf(dout, channels)
	check(slot, M*J)
	check(weight, M*J)
	check(dweight, M*J)
	check(x, M*J*channels)
	check(dx, x.Len())
	args := C.struct_combine_backward_args{dx: floats(dx), dweight: floats(dweight), dout: floats(dout), x: floats(x),
		weight: floats(weight), slot: ints(slot), M: C.long(M), C: C.long(channels), J: C.long(J)}
	b.launch("combine_dx", x.Len(), unsafe.Pointer(&args))
	b.launch("combine_dw", M*J, unsafe.Pointer(&args))
}
