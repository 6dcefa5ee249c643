package cpu

import (
	"math"
	"testing"
	"time"

	"exp/kernels"
	"exp/kernels/ref"
)

// The chains are computed, all of them and to their end: what PeakFLOPS counts is
// done.
func TestPeakFMA(t *testing.T) {
	for l := AVX512; l >= Portable; l-- {
		if !l.Supported() {
			continue
		}
		const threads, rounds = 2, 5
		b := open(t, l, threads)
		chains := int(b.k.peak_chains)
		start := make([]float32, (chains+2)*kernels.Lanes)
		for i := range start {
			start[i] = 0.5 + float32(i)/64
		}
		src, out := b.mustAlloc(len(start)), b.mustAlloc(threads*chains*kernels.Lanes)
		defer b.Free(src)
		defer b.Free(out)
		b.Copy(src, kernels.Host(start))
		b.peakFMA(out, src, rounds, 1)
		got := kernels.Elems[float32](out)
		for i := range chains * kernels.Lanes {
			want, lane := start[i], i%kernels.Lanes
			for range rounds {
				want = ref.FMA(want, start[chains*kernels.Lanes+lane], start[(chains+1)*kernels.Lanes+lane])
			}
			if got[i] != want {
				t.Fatalf("%s: element %d is %g, want %g", l, i, got[i], want)
			}
		}
	}
}

func TestPeakRead(t *testing.T) {
	for l := AVX512; l >= Portable; l-- {
		if !l.Supported() {
			continue
		}
		b := open(t, l, 2)
		const blocks = 3
		block := b.mustAlloc(blocks * readBlock)
		out := b.mustAlloc(blocks)
		defer b.Free(block)
		defer b.Free(out)
		x := kernels.Elems[float32](block)
		for i := range x {
			x[i] = float32(i / readBlock)
		}
		b.peakRead(out, block)
		for u, got := range kernels.Elems[float32](out) {
			if want := float32(u * readBlock); got != want {
				t.Errorf("%s: block %d sums to %g, want %g", l, u, got, want)
			}
		}
	}
}

// A rate is a rate: no operation of the backend is faster than its peak.
func TestPeak(t *testing.T) {
	b := open(t, BestLevel(), 1)
	before := b.Allocated()
	flops, bytes := b.PeakFLOPS(time.Millisecond), b.ReadBandwidth(time.Millisecond)
	for name, rate := range map[string]float64{"FLOP": flops, "bytes": bytes} {
		if !(rate > 1e8) || math.IsInf(rate, 0) {
			t.Errorf("%g %s a second", rate, name)
		}
	}
	t.Logf("%s: %.0f GFLOP/s, %.1f GB/s on one thread", b.Name(), flops/1e9, bytes/1e9)
	if b.Allocated() != before {
		t.Errorf("%d bytes were not freed", b.Allocated()-before)
	}
}

// A level that multiplies BF16 by instructions of its own has the peak of these: four tile
// sums of 16 × 16 × 32 products a round, or 24 products of 16 pairs.
func TestPeakOfOperands(t *testing.T) {
	flops := map[Level]float64{AMX: 4 * 2 * 16 * 16 * 32, AVX512BF16: 24 * 16 * 4}
	eachTileLevel(t, func(t *testing.T, b *Backend) {
		if got := float64(b.tiles.peak_flops); got != flops[b.level] || (b.tiles.peak != nil) != (got != 0) {
			t.Errorf("%g operations a round, want %g", got, flops[b.level])
		}
		if got := b.PeakFLOPS(time.Millisecond); !(got > 0) {
			t.Errorf("%g FLOP/s", got)
		}
	})
}
