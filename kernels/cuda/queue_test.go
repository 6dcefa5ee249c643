//go:build cuda

package cuda

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"exp/kernels"
)

// decoder is a stand-in for a model's decode step: some rows go up, layers of a few operations follow, and
// results come down.
type decoder struct {
	b            *Backend
	x, h, act, y kernels.Buffer
	rstd, weight kernels.Buffer
	up, down     kernels.Matrix
}

const (
	decodeRows, decodeWidth = 3, 24
	decodeLayers            = 20
	layerLaunches           = 4
)

func newDecoder(t *testing.T, b *Backend) *decoder {
	alloc := func(n int) kernels.Buffer {
		x, err := b.Alloc(kernels.F32, n)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Free(x) })
		return x
	}
	d := &decoder{b: b, rstd: alloc(decodeRows), weight: alloc(decodeWidth)}
	for _, x := range []*kernels.Buffer{&d.x, &d.h, &d.act, &d.y} {
		*x = alloc(decodeRows * decodeWidth)
	}
	fill := func(x kernels.Buffer) {
		v := make([]float32, x.Len())
		for i := range v {
			v[i] = float32(math.Sin(float64(i + x.Len())))
		}
		b.Copy(x, kernels.Host(v))
	}
	fill(d.weight)
	for _, w := range []*kernels.Matrix{&d.up, &d.down} {
		*w = kernels.Matrix{W: alloc(decodeWidth * decodeWidth), Out: decodeWidth, In: decodeWidth}
		fill(w.W)
	}
	b.Sync()
	return d
}

// step returns what a step computes of inputs that depend on k.
func (d *decoder) step(k int) []float32 {
	in, out := make([]float32, decodeRows*decodeWidth), make([]float32, decodeRows*decodeWidth)
	for i := range in {
		in[i] = float32(k + i%5)
	}
	d.b.Copy(d.x, kernels.Host(in))
	for range decodeLayers {
		d.b.RMSNorm(d.h, d.rstd, d.x, d.weight, kernels.NormShape{Heads: 1, Dim: decodeWidth, Stride: decodeWidth}, 1e-6)
		d.b.MatMul(d.act, d.h, d.up, kernels.Buffer{})
		d.b.MatMul(d.y, d.act, d.down, kernels.Buffer{})
		d.b.Add(d.x, d.y)
	}
	d.b.Copy(kernels.Host(out), d.x)
	d.b.Sync()
	return out
}

// step has the counts of a step (struct queue_counts).
type step struct{ crossings, launches, changes, starts, replayed int }

// since returns the counts of b from a time on.
func since(from step, b *Backend) step {
	c := b.queued.counts
	return step{int(c.crossings) - from.crossings, int(c.launches) - from.launches, int(c.changes) - from.changes,
		int(c.starts) - from.starts, int(c.replayed) - from.replayed}
}

// A decode step takes two calls of C. From its second time on its launches are two graphs, of
// which nothing changes but the data, and its bits stay.
func TestReplay(t *testing.T) {
	b, plain := open(t), open(t)
	plain.queued.least = math.MaxInt32
	b.queued.least, b.queued.sights = 8, 1
	d, want := newDecoder(t, b), newDecoder(t, plain)
	for k := range 6 {
		if k == 5 { // other arguments
			d.act = newDecoder(t, b).act
		}
		before, old := since(step{}, b), since(step{}, plain)
		got, same := d.step(k), want.step(k)
		for i := range got {
			if math.Float32bits(got[i]) != math.Float32bits(same[i]) || got[i] == 0 {
				t.Fatalf("step %d: element %d is %v, without graphs %v", k, i, got[i], same[i])
			}
		}
		const launches = decodeLayers * layerLaunches
		first := step{crossings: 2, launches: launches}
		if n := since(old, plain); n != first {
			t.Errorf("step %d without graphs: %+v, want %+v", k, n, first)
		}
		counts := first
		if k > 0 {
			counts = step{crossings: 2, starts: 2, replayed: launches}
		}
		if k == 5 {
			counts.changes = 2 * decodeLayers
		}
		if n := since(before, b); n != counts {
			t.Errorf("step %d: %+v, want %+v", k, n, counts)
		}
	}
}

// Many runs have graphs side by side, wherever their hashes put them.
func TestReplayMany(t *testing.T) {
	b := open(t)
	b.queued.least, b.queued.sights = 8, 1
	d := newDecoder(t, b)
	const runs, full = 48, 64 // launches that fill a queue
	pass := func() step {
		before := since(step{}, b)
		for range runs * full {
			b.Add(d.x, d.y)
		}
		b.Sync()
		return since(before, b)
	}
	first, second := pass(), pass()
	if first.starts != 0 || second.starts != runs || second.replayed != runs*full {
		t.Errorf("the first pass %+v, the second %+v, which has no graph for some of %d runs", first, second, runs)
	}
}

// An error in a replayed step names its operation, as without graphs.
func failReplay(t *testing.T) {
	b := open(t)
	b.queued.least, b.queued.sights = 8, 1
	d := newDecoder(t, b)
	for k := range 4 {
		func() {
			defer func() {
				err, _ := recover().(error)
				if (err != nil) != (k == 3) {
					t.Errorf("step %d: %v", k, err)
				}
				if k < 3 {
					return
				}
				wantError(t, err, launchSize, "exp doctor")
				if e := (*kernels.DeviceError)(nil); errors.As(err, &e) && e.Op != "chain_matmul" {
					t.Errorf("the failure is that of %s", e.Op)
				}
			}()
			d.step(k)
		}()
	}
	if graphs := b.queued.counts.starts > 0; graphs == strings.Contains(os.Getenv(fakeVariable), "graphs=0") {
		t.Errorf("graphs were started: %v", graphs)
	}
}
