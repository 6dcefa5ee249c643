//go:build cuda

package cuda

/*
#include "args.h"
#include "device.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"os"
	"unsafe"

	"exp/kernels"
)

// Products (wgmma.h) and attention by wgmma, in class matrix/16x25 on devices of compute capability 9.0. They should
// have the bits of mma.sync, which other kernels use: Open compares them and decides.

// wgmmaVariable names the environment variable that keeps products and attention off wgmma, where it is "0".
const wgmmaVariable = "EXP_WGMMA"

// wgmmaModules have the kernels of wgmmaTiles, thinTiles, slimTiles and wgmmaHeads.
var wgmmaModules = [...]string{"wgmmamatmul.ptx", "wgmmathin.ptx", "wgmmaslim.ptx", "wgmmaattention.ptx",
	"wgmmaattentiondq.ptx", "wgmmaattentiondkv.ptx"}

// pickWithWgmma is pickTiles where wgmma has the bits of mma.sync: it chooses the family with the largest share.
func pickWithWgmma(rows, columns int, forward bool) tiles {
	if forward && rows <= slimTiles.rows {
		return slimTiles
	}
	best := pickTiles(rows, columns, forward)
	for _, t := range []tiles{wgmmaTiles, thinTiles} {
		if (forward || t != thinTiles) && t.share(rows, columns) > best.share(rows, columns) {
			best = t
		}
	}
	return best
}

// mapped are arguments behind the maps of two factors.
type mapped struct {
	maps [2]C.struct_tensor_map
	of   [C.MAPPED_ROOM]byte
}

// Rows of the boxes in which the kernels fetch factors.
const (
	boxTerms    = 64  // of a factor whose rows are terms
	wgmmaBox    = 128 // of another, by a block of wgmmaTiles
	turnedBox   = 64  // a weight's, by a block of thinTiles or slimTiles
	turnedGates = 8   // its gates and ups
)

// launchWgmma queues a product by wgmma. Two blocks share a tile, and go on with others until none is left.
func (b *Backend) launchWgmma(p product) {
	var boxes [2]int
	for i, s := range []side{p.x, p.y} {
		if boxes[i] = boxTerms; s.byTerms {
			boxes[i] = wgmmaBox
		}
	}
	b.launchMapped(wgmmaTiles, 2, b.multiprocessors, p, [2]side{p.x, p.y}, boxes)
}

// launchTurned queues a forward product by wgmma for few rows. Two blocks share a tile, and each fetches half of
// the rows of x for all. The weight is the first factor.
func (b *Backend) launchTurned(t tiles, p product) {
	const cluster = 2
	box := turnedBox
	if p.name == "matmul_swiglu" {
		box = turnedGates
	}
	b.launchMapped(t, cluster, int(b.multiprocessors), p, [2]side{p.y, p.x}, [2]int{box, t.rows / cluster})
}

// launchMapped queues a product on clusters of blocks, of which the device has room for some, with maps of two
// factors.
func (b *Backend) launchMapped(t tiles, cluster, room int, p product, factors [2]side, boxes [2]int) {
	var args mapped
	if p.rows == 0 {
		return
	}
	for i, s := range factors {
		if b.err == nil {
			b.keep("map a factor of "+p.name, C.device_map(b.ctx(), unsafe.Pointer(&args.maps[i]), s.at.at,
				C.long(s.rows), C.long(s.width), s.at.pitch, C.int(boxes[i])))
		}
	}
	copy(args.of[:], unsafe.Slice((*byte)(p.args), p.bytes))
	clusters := min(t.of(p.rows, p.columns), max(1, room/cluster))
	b.launchShared(t.family+p.name, cluster*clusters, t.threads, t.shared, unsafe.Pointer(&args))
}

// openWgmma decides whether products are by wgmma.
func (b *Backend) openWgmma() error {
	switch {
	case !b.class.matrix || b.about.Major != 9 || b.about.Minor != 0:
		b.noWgmma = fmt.Sprintf("compute capability %d.%d has none", b.about.Major, b.about.Minor)
		return nil
	case os.Getenv(wgmmaVariable) == "0":
		b.noWgmma = wgmmaVariable + " is 0"
		return nil
	}
	for _, m := range wgmmaModules {
		if err := b.loadModule(m); err != nil {
			b.noWgmma = err.Error()
			return nil
		}
	}
	said, err := b.compareWgmma()
	if err != nil {
		return err
	}
	if b.noWgmma = said; said == "" {
		b.pick, b.wgmmaAttention = pickWithWgmma, long
	}
	return nil
}

// Products says how products are computed: "wgmma", or "mma.sync" and why. In other classes it is empty.
func (b *Backend) Products() string {
	switch {
	case !b.class.matrix:
		return ""
	case b.noWgmma == "":
		return "wgmma, with the bits of mma.sync"
	}
	return "mma.sync, not wgmma: " + b.noWgmma
}

// compareWgmma computes small products by mma.sync and by wgmma, and says where they differ, or why wgmma cannot be
// used. After an error the device is lost.
func (b *Backend) compareWgmma() (said string, err error) {
	var held []kernels.Buffer
	said = b.differences(func(t kernels.DType, n int) kernels.Buffer {
		x, err := b.Alloc(t, n)
		if b.err == nil {
			b.err = err
		}
		held = append(held, x)
		return x
	})
	var failure *kernels.DeviceError
	if errors.As(b.err, &failure) && failure.Lasting {
		failure.Help = "set " + wgmmaVariable + "=0, which keeps products and attention off wgmma, and report this " +
			"with the output of exp doctor --json"
		return "", b.err
	}
	if b.err != nil {
		said, b.err = b.err.Error(), nil
	}
	rooms := []*kernels.Buffer{&b.left, &b.right, &b.weights, &b.workspace}
	for _, room := range rooms {
		held = append(held, *room)
		*room = kernels.Buffer{}
	}
	for _, x := range held {
		b.Free(x)
	}
	b.peak = b.allocated
	return said, b.err
}

// differences compares products for each way in which factors lie, with sums of all blocks and warps, several tiles
// one after another, and gradient blocks that end within a step; and attention with maxima that rise, and an infinite
// value that some rows do not see. Stages are filled again.
func (b *Backend) differences(alloc func(t kernels.DType, n int) kernels.Buffer) string {
	const M, N, K = 136, 264, 136
	const rows, narrow, wide, infinite = 400, 24, 88, 330
	seed := uint32(1)
	fill := func(n int, infinite ...int) kernels.Buffer {
		x, v := alloc(kernels.F32, n), make([]float32, n)
		for i := range v {
			seed = seed*1664525 + 1013904223
			v[i] = math.Float32frombits(seed&0x807fffff | (115+seed>>8%24)<<23) // so that sums cut addends off
		}
		for _, i := range infinite {
			v[i] = float32(math.Inf(1))
		}
		if b.err == nil {
			b.Copy(x, kernels.Host(v))
		}
		return x
	}
	x, y, m := fill(M*K), fill(M*N), kernels.Matrix{W: fill(N * K), Out: N, In: K}
	gateUp := alloc(kernels.BF16, M*N)
	m.Packed = alloc(kernels.BF16, N*pitch(K))
	dqkv := alloc(kernels.BF16, 3*wide*rows)
	out, rounded, blocks := alloc(kernels.F32, N*K), alloc(kernels.BF16, M*N), alloc(kernels.I32, 3)
	first := 3 * wide * rows // element of the narrow heads
	heads := fill(first+3*narrow*rows, 3*wide*infinite+2*wide, first+3*narrow*infinite+2*narrow)
	qkv, stats, offsets := alloc(kernels.BF16, heads.Len()), alloc(kernels.F32, 2*rows), alloc(kernels.I32, 3)
	if b.err != nil {
		return ""
	}
	b.Pack(m)
	b.Copy(qkv, heads)
	b.Copy(blocks, kernels.Host([]int32{0, 41, M}))
	b.Copy(offsets, kernels.Host([]int32{0, 30, rows}))
	defer func(pick func(rows, columns int, forward bool) tiles, n int) {
		b.pick, b.multiprocessors, b.wgmmaAttention = pick, n, never
	}(b.pick, b.multiprocessors)
	b.multiprocessors = 2 // one cluster does all tiles
	matMul := func(out kernels.Buffer) { b.MatMul(out, x, m, kernels.Buffer{}) }
	gate := func(out kernels.Buffer) { b.MatMulSwiGLU(out, gateUp, x, m) }
	attention := func(D, first int, gradients bool) func(out kernels.Buffer) {
		s := kernels.AttentionShape{H: 1, K: 1, D: D, Scale: 0x1p-19}
		on, results := qkv.Slice(first, first+rows*s.Stride()), rounded.Slice(0, rows*D)
		return func(out kernels.Buffer) {
			b.Attention(results, stats, on, offsets, kernels.Buffer{}, s)
			if gradients {
				b.AttentionBackward(out, results, results, stats, on, offsets, kernels.Buffer{}, s)
			}
		}
	}
	for _, op := range []comparison{
		{"MatMul", wgmmaTiles, out.Slice(0, M*N), matMul},
		{"MatMul to bf16", wgmmaTiles, rounded, matMul},
		{"MatMul of few rows", thinTiles, out.Slice(0, M*N), matMul},
		{"MatMul of fewer rows", slimTiles, out.Slice(0, M*N), matMul},
		{"MatMulSwiGLU", wgmmaTiles, rounded.Slice(0, int(M*N/2)), gate},
		{"MatMulSwiGLU of few rows", thinTiles, rounded.Slice(0, int(M*N/2)), gate},
		{"MatMulSwiGLU of fewer rows", slimTiles, rounded.Slice(0, int(M*N/2)), gate},
		{"Attention of narrow heads", matrixTiles, rounded.Slice(0, rows*narrow), attention(narrow, first, false)},
		{"Attention of wide heads", matrixTiles, rounded.Slice(0, rows*wide), attention(wide, 0, false)},
		{"gradients of narrow heads", matrixTiles, dqkv.Slice(0, 3*rows*narrow), attention(narrow, first, true)},
		{"gradients of wide heads", matrixTiles, dqkv, attention(wide, 0, true)},
		{"MatMulDX", wgmmaTiles, out.Slice(0, M*K), func(out kernels.Buffer) { b.MatMulDX(out, y, m) }},
		{"MatMulDW", wgmmaTiles, out, func(out kernels.Buffer) { b.MatMulDW(out, kernels.Buffer{}, y, x, blocks) }},
	} {
		if said := b.compare(op, stats, m.W); said != "" || b.err != nil { // DW adds to it, the others replace it
			return said
		}
	}
	return ""
}

// comparison is an operation that sets out, by mma.sync and with products on tiles of a family.
type comparison struct {
	name   string
	family tiles
	out    kernels.Buffer
	run    func(out kernels.Buffer)
}

// compare computes an operation by mma.sync and by wgmma, and says where its result or attention's statistics differ.
// The result begins as `before`, as far as that goes.
func (b *Backend) compare(op comparison, stats, before kernels.Buffer) string {
	var results [2][]float32
	n := op.out.Len()
	for i, t := range []tiles{matrixTiles, op.family} {
		b.pick = func(int, int, bool) tiles { return t }
		b.wgmmaAttention = func(int, int, int) bool { return i > 0 }
		results[i] = make([]float32, n+stats.Len())
		some := min(n, before.Len())
		b.Copy(op.out.Slice(0, some), before.Slice(0, some))
		b.Zero(stats)
		op.run(op.out)
		b.Copy(kernels.Host(results[i][:n]), op.out)
		b.Copy(kernels.Host(results[i][n:]), stats)
	}
	if b.drain(); b.err != nil {
		return ""
	}
	for i, v := range results[1] {
		if w := results[0][i]; math.Float32bits(v) != math.Float32bits(w) && (v == v || w == w) {
			what, at := "element", i
			if i >= n {
				what, at = "statistic", i-n
			}
			return fmt.Sprintf("%s %d of %s is %g, by mma.sync %g", what, at, op.name, v, w)
		}
	}
	return ""
}
