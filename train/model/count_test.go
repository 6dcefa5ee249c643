package model

import (
	"math/rand/v2"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/kernels/ref"
)

// TestParametersOfABias counts the bias of an output projection once, and none of the zeros next to it.
func TestParametersOfABias(t *testing.T) {
	c := variants["phi"]
	with, _ := Parameters(c, Heads{LM: true})
	c.OutputBias = false
	without, _ := Parameters(c, Heads{LM: true})
	if with != without+c.Vocab {
		t.Errorf("the bias has %d parameters, want %d", with-without, c.Vocab)
	}
}

// The counts equal the allocations, to the byte.
func TestCounts(t *testing.T) {
	for seed := range uint64(32) {
		r := rand.New(rand.NewPCG(seed, 9))
		c := anyVariant(r)
		if seed >= 20 {
			c = anyHybrid(r)
		}
		h := anyHeads(r)
		level, operand := cpu.Level(r.IntN(int(cpu.BestLevel())+1)), []kernels.DType{kernels.F32, kernels.BF16}[seed%2]
		be, err := cpu.Open(cpu.Options{Level: &level, Threads: 1, Operand: operand})
		if err != nil {
			t.Fatal(err)
		}
		defer be.Close()
		count := func(what string, want int, made interface{ Close() }, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			if got := be.Allocated(); got != int64(want) {
				t.Errorf("seed %d, %+v %+v: %s takes %d bytes, counted %d", seed, c, h, what, got, want)
			}
			made.Close()
		}
		trainable := r.IntN(2) == 0
		m, err := New(be, c, h, trainable)
		count("model", c.ModelBytes(h, trainable, be.PackedLen, operand, 1), m, err)
		limit, keep := Capacity{Tokens: 1 + r.IntN(99), Sequences: 1 + r.IntN(9), Taught: r.IntN(4)}, Keep(r.IntN(3))
		ws, err := NewWorkspace(be, c, h, limit, keep)
		count("workspace", c.WorkspaceBytes(h, limit, keep, operand, 1), ws, err)
		pages := 1 + r.IntN(9)
		x, err := NewCache(be, c, pages, 16, 3)
		if err != nil {
			t.Fatal(err)
		}
		idle := c.cacheElements(pages, 16)
		for _, p := range x.layers {
			idle -= p.Keys.Len() + p.Values.Len()
		}
		if idle < 0 || idle >= 2*64*c.Layers { // each buffer of keys or values may end before its cache line
			t.Errorf("seed %d, %+v: %d elements of the cache belong to no layer", seed, c, idle)
		}
		count("cache", c.CacheBytes(pages, 16, operand, 1)+3*c.StateBytes(operand), x, err)
		rows, table := 1+r.IntN(30), 1+r.IntN(30)
		d, err := NewDecoder(be, c, Heads{LM: true}, rows, table)
		count("decoder", c.DecoderBytes(Heads{LM: true}, rows, table, operand), d, err)
	}
}

// counting counts the bytes that it allocates.
type counting struct {
	kernels.Backend
	bytes int
}

func (c *counting) Alloc(t kernels.DType, n int) (kernels.Buffer, error) {
	c.bytes += n * t.Size()
	return c.Backend.Alloc(t, n)
}

// A backend that multiplies from the weights holds them once, in the type that they are stored in,
// but for padding between tensors.
func TestCountsWithoutPacking(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 10))
		c, lm, dtype := anyConfig(r), seed%3 > 0, []kernels.DType{kernels.F32, kernels.BF16}[seed%2]
		be := &counting{Backend: ref.New[float32]()}
		b, err := NewBackbone(be, c, lm, dtype)
		if err != nil {
			t.Fatal(err)
		}
		b.Close()
		want := c.BackboneBytes(lm, dtype, be.PackedLen, kernels.F32, 1)
		padding := 128 * 4 * (len(b.Tensors()) + 1)
		if packed, _ := be.PackedLen(7, 9); packed != 0 || be.bytes > want+padding || want > be.bytes+padding {
			t.Errorf("seed %d, %+v: %d bytes, counted %d", seed, c, be.bytes, want)
		}
	}
}

// Adapters of rank 3 on a map from 8 to 16 and on one from 8 to 8, in 5 layers.
func TestAdapterWork(t *testing.T) {
	c := Config{Vocab: 9, Layers: 5, Width: 8, Heads: 2, KVHeads: 2, Head: 4, FFN: 16, MaxPositions: 8}
	for targets, want := range map[string]AdapterWork{
		"up_proj": {5 * 6 * 24, 5 * 6 * 56, 5 * 72, 5 * 112}, "o_proj": {5 * 6 * 16, 5 * 6 * 40, 5 * 40, 5 * 80},
	} {
		a := &Adapters{Rank: 3, Alpha: 3, Targets: []string{targets}}
		if got := a.Work(c); got != want {
			t.Errorf("%s: %+v, want %+v", targets, got, want)
		}
	}
	if got := (*Adapters)(nil).Work(c); got != (AdapterWork{}) {
		t.Errorf("no adapters do %+v", got)
	}
}

// Of a workspace's buffers, batches use what a smaller workspace has.
func TestReachedBytes(t *testing.T) {
	c, h := variants["phi"], Heads{LM: true}
	limit, less := Capacity{Tokens: 99, Sequences: 9}, Capacity{Tokens: 7, Sequences: 9}
	bytes := func(resident func(bytes, used int) int) int {
		return c.ReachedBytes(h, limit, less, KeepAll, kernels.F32, 1, resident)
	}
	all, used := bytes(func(bytes, _ int) int { return bytes }), bytes(func(_, used int) int { return used })
	if want := c.WorkspaceBytes(h, limit, KeepAll, kernels.F32, 1); all != want {
		t.Errorf("%d bytes, want %d", all, want)
	}
	if want := c.WorkspaceBytes(h, less, KeepAll, kernels.F32, 1); used != want || used >= all {
		t.Errorf("%d bytes are used, want %d", used, want)
	}
}
