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

// Embed implements kernels.Linear.
func (b *Backend) Embed(out kernels.Buffer, w kernels.Matrix, ids kernels.Buffer, scale float64) {
	check(out, ids.Len()*w.In)
	args := C.struct_embed_args{out: floats(out), ids: ints(ids), M: C.long(ids.Len()), C: C.long(w.In),
		pitch: C.long(w.In), scale: C.float(scale), round: flag(b.class.matrix)}
	if b.class.matrix && w.W.Empty() {
		check(w.Packed, w.Out*pitch(w.In))
		args.w, args.pitch = array(w.Packed), C.long(pitch(w.In))
	} else {
		args.w = weightsOf(w)
	}
	b.launchWide("embed", ids.Len(), w.In, unsafe.Pointer(&args))
}

// EmbedBackward implements kernels.Linear.
func (b *Backend) EmbedBackward(dweight, dout, ids kernels.Buffer, channels int, scale float64) {
	check(dout, ids.Len()*channels)
	rowsOf(dweight, channels)
	if ids.Empty() {
		return
	}
	b.addRows(dweight, dout, ids, channels, scale)
}

// addRows adds scaled rows of src to rows `at` of dst.
func (b *Backend) addRows(dst, src, at kernels.Buffer, channels int, scale float64) {
	M, slices := at.Len(), (channels+sliceColumns-1)/sliceColumns
	b.launchWarps("embed_backward", M*slices, unsafe.Pointer(&C.struct_embed_backward_args{dweight: floats(dst),
		dout: floats(src), ids: ints(at), M: C.long(M), C: C.long(channels), scale: C.float(scale)}))
}

// sliceColumns is the number of columns that a warp of embed_backward works on.
const sliceColumns = 256
