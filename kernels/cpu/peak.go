package cpu

// #include "level/args.h"
import "C"

import (
	"fmt"
	"time"
	"unsafe"

	"exp/kernels"
)

// peakRounds is the length of a chain in peak_fma: with AVX-512 a unit takes some ten
// microseconds, much longer than handing it to a thread.
const peakRounds = 4000

// PeakFLOPS measures, for about d, the rate of float32 multiply-adds on registers over
// all threads, in floating-point operations per second; one multiply-add counts as two.
// In class "cpu/bf16" it measures tile sums or products of pairs if the level has them.
// No operation of this backend can be faster at its level. Other programs on the same
// processors slow it down as they would any operation.
func (b *Backend) PeakFLOPS(d time.Duration) float64 {
	if b.tiles != nil && b.tiles.peak != nil {
		return b.peakTiles(d)
	}
	chains := int(b.k.peak_chains)
	start := make([]float32, (chains+2)*kernels.Lanes)
	for i := range start {
		start[i] = 1 + float32(i%7)/8
	}
	for i := range kernels.Lanes {
		start[chains*kernels.Lanes+i] = 0.5 // scale: the chains stay near 2·shift
	}
	src, out := b.mustAlloc(len(start)), b.mustAlloc(b.pool.n*chains*kernels.Lanes)
	defer b.Free(src)
	defer b.Free(out)
	b.Copy(src, kernels.Host(start))
	units := 16 * b.pool.n
	b.peakFMA(out, src, peakRounds, units) // wakes the threads
	n, from := 0, time.Now()
	for n == 0 || time.Since(from) < d {
		b.peakFMA(out, src, peakRounds, units)
		n++
	}
	return float64(n*units) * float64(2*kernels.Lanes*chains*peakRounds) / time.Since(from).Seconds()
}

// peakTiles is PeakFLOPS for the instructions that multiply BF16.
func (b *Backend) peakTiles(d time.Duration) float64 {
	const rounds = 4000 // about a dozen cycles each
	units := 4 * b.pool.n
	g := &b.a.peak
	g.rounds = rounds
	b.run(b.tiles.peak, unsafe.Pointer(g), units, 1) // wakes the threads
	n, from := 0, time.Now()
	for n == 0 || time.Since(from) < d {
		b.run(b.tiles.peak, unsafe.Pointer(g), units, 1)
		n++
	}
	return float64(n*units*rounds) * float64(b.tiles.peak_flops) / time.Since(from).Seconds()
}

// peakFMA runs the chains of each unit from src [chains+2,Lanes] and leaves the
// chains of each thread's last unit in out [threads,chains,Lanes].
func (b *Backend) peakFMA(out, src kernels.Buffer, rounds, units int) {
	chains := int(b.k.peak_chains)
	check(src, (chains+2)*kernels.Lanes)
	check(out, b.pool.n*chains*kernels.Lanes)
	g := &b.a.peak
	g.out, g.src, g.rounds = floats(out), floats(src), C.long(rounds)
	b.run(b.k.peak_fma, unsafe.Pointer(g), units, 1)
}

// readBlock is the number of elements that a unit of peak_read sums, 1 MiB, and
// readBlocks the number of blocks that ReadBandwidth reads: far more than second-level
// caches hold, though a large third-level cache may hold them.
const (
	readBlock  = C.PEAK_READ
	readBlocks = 128
)

// ReadBandwidth measures, for about d, the bytes per second that all threads together
// read sequentially from 128 MiB of memory.
func (b *Backend) ReadBandwidth(d time.Duration) float64 {
	src, out := b.mustAlloc(readBlocks*readBlock), b.mustAlloc(readBlocks)
	defer b.Free(src)
	defer b.Free(out)
	b.Zero(src) // pages that nobody has written are one page of zeros, which a cache holds
	b.peakRead(out, src)
	n, from := 0, time.Now()
	for n == 0 || time.Since(from) < d {
		b.peakRead(out, src)
		n++
	}
	return float64(n*readBlocks*readBlock*kernels.F32.Size()) / time.Since(from).Seconds()
}

// peakRead sets out[u] to the sum of block u of src, readBlock elements each.
func (b *Backend) peakRead(out, src kernels.Buffer) {
	check(src, out.Len()*readBlock)
	g := &b.a.peak
	g.out, g.src = floats(out), floats(src)
	b.run(b.k.peak_read, unsafe.Pointer(g), out.Len(), 1)
}

// mustAlloc returns n float32. It panics if out of memory, as operations do when their
// workspace cannot grow.
func (b *Backend) mustAlloc(n int) kernels.Buffer {
	buf, err := b.Alloc(kernels.F32, n)
	if err != nil {
		panic(fmt.Errorf("cpu: peak: %w", err))
	}
	return buf
}
