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

// latentShape returns the shape for kernels, and the rows of wide [M,H·D].
func latentShape(wide kernels.Buffer, s kernels.LatentShape) (C.struct_latent_shape, int) {
	s.Check()
	return C.struct_latent_shape{H: C.long(s.H), nope: C.long(s.Nope), rope: C.long(s.Rope), value: C.long(s.Value),
		interleaved: flag(s.Interleaved)}, rowsOf(wide, s.H*s.D())
}

// JoinLatent implements kernels.Latent.
func (b *Backend) JoinLatent(qkv, q, kv, rope kernels.Buffer, s kernels.LatentShape) {
	b.moveLatent("join_latent", qkv, q, kv, rope, s)
}

// SplitLatent implements kernels.Latent.
func (b *Backend) SplitLatent(dq, dkv, drope, dqkv kernels.Buffer, s kernels.LatentShape) {
	b.moveLatent("split_latent", dqkv, dq, dkv, drope, s)
}

func (b *Backend) moveLatent(kernel string, qkv, q, kv, rope kernels.Buffer, s kernels.LatentShape) {
	shape, M := latentShape(q, s)
	check(qkv, 3*q.Len())
	check(kv, M*s.H*(s.Nope+s.Value))
	check(rope, M*s.Rope)
	b.launch(kernel, q.Len(), unsafe.Pointer(&C.struct_latent_args{qkv: b.operand(qkv), q: b.operand(q),
		kv: b.operand(kv), rope: b.operand(rope), s: shape, M: C.long(M)}))
}

// TakeValues implements kernels.Latent.
func (b *Backend) TakeValues(out, att kernels.Buffer, s kernels.LatentShape) {
	b.moveValues(att, out, s, false)
}

// PutValues implements kernels.Latent.
func (b *Backend) PutValues(att, out kernels.Buffer, s kernels.LatentShape) {
	b.moveValues(att, out, s, true)
}

func (b *Backend) moveValues(att, out kernels.Buffer, s kernels.LatentShape, back bool) {
	shape, M := latentShape(att, s)
	check(out, M*s.H*s.Value)
	b.launch("move_values", att.Len(), unsafe.Pointer(&C.struct_move_values_args{att: b.operand(att),
		out: b.operand(out), s: shape, M: C.long(M), back: flag(back)}))
}
