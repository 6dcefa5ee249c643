package cpu

// #include "level/args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// latent fills what the operations on latent attention share, and returns the rows of wide [M,H·D].
func (b *Backend) latent(wide kernels.Buffer, s kernels.LatentShape, all ...kernels.Buffer) (*C.struct_latent_args,
	int) {
	s.Check()
	m := wide.Len() / (s.H * s.D())
	check(wide, m*s.H*s.D())
	g := &b.a.latent
	*g = C.struct_latent_args{}
	g.h, g.nope, g.rope, g.value = C.long(s.H), C.long(s.Nope), C.long(s.Rope), C.long(s.Value)
	g.interleaved, g.bf16 = flag(s.Interleaved), isBF16(append(all, wide)...)
	return g, m
}

// JoinLatent makes the rows that attention reads.
func (b *Backend) JoinLatent(qkv, q, kv, rope kernels.Buffer, s kernels.LatentShape) {
	b.moveLatent(b.k.join_latent, qkv, q, kv, rope, s)
}

// SplitLatent takes their gradients apart.
func (b *Backend) SplitLatent(dq, dkv, drope, dqkv kernels.Buffer, s kernels.LatentShape) {
	b.moveLatent(b.k.split_latent, dqkv, dq, dkv, drope, s)
}

func (b *Backend) moveLatent(kernel C.kernel, qkv, q, kv, rope kernels.Buffer, s kernels.LatentShape) {
	g, m := b.latent(q, s, qkv, kv, rope)
	check(qkv, 3*q.Len())
	check(kv, m*s.H*(s.Nope+s.Value))
	check(rope, m*s.Rope)
	g.qkv, g.q, g.kv, g.k_rope = qkv.Addr(), q.Addr(), kv.Addr(), rope.Addr()
	b.run(kernel, unsafe.Pointer(g), m, rowGrain(4*s.H*s.D()))
}

// TakeValues takes the values' channels out of the attention's.
func (b *Backend) TakeValues(out, att kernels.Buffer, s kernels.LatentShape) {
	b.moveValues(att, out, s, false)
}

// PutValues puts them back, among zeros.
func (b *Backend) PutValues(att, out kernels.Buffer, s kernels.LatentShape) {
	b.moveValues(att, out, s, true)
}

func (b *Backend) moveValues(att, out kernels.Buffer, s kernels.LatentShape, back bool) {
	g, m := b.latent(att, s, out)
	check(out, m*s.H*s.Value)
	g.qkv, g.kv, g.back = att.Addr(), out.Addr(), flag(back)
	b.run(b.k.move_values, unsafe.Pointer(g), m, rowGrain(2*s.H*s.D()))
}
