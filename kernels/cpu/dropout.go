package cpu

// #include "level/args.h"
import "C"

import (
	"math"
	"unsafe"

	"exp/kernels"
)

// Dropout drops elements by the counters of their rows' keys.
func (b *Backend) Dropout(out, x, keys kernels.Buffer, C_ int, layer uint32, p float64) {
	m := out.Len() / C_
	check(out, m*C_)
	check(x, m*C_)
	check(keys, 2*m)
	if !(p >= 0 && p < 1) {
		panic("cpu: Dropout: p is not in [0,1)")
	}
	g := &b.a.dropout
	g.out, g.x, g.keys = floats(out), floats(x), ints(keys)
	g.c, g.layer, g.scale = C.long(C_), C.uint32_t(layer), C.float(1/(1-p))
	g.limit = C.uint32_t(math.Ceil(p * (1 << 24))) // a 24-bit word is below p if it is below this
	b.run(b.k.dropout, unsafe.Pointer(g), m, rowGrain(8*C_))
}
