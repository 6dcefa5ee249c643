package model

import (
	"math/rand/v2"
	"testing"

	"exp/kernels/cpu"
)

// The counts are what is allocated, to the element.
func TestCounts(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 9))
		c, h := anyConfig(r), anyHeads(r)
		be := openCPU(t, cpu.Level(r.IntN(int(cpu.BestLevel())+1)), 1)
		count := func(what string, want int, made interface{ Close() }, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			if got := be.Allocated(); got != int64(4*want) {
				t.Errorf("seed %d, %+v %+v: %s takes %d bytes, counted %d", seed, c, h, what, got, 4*want)
			}
			made.Close()
		}
		trainable := r.IntN(2) == 0
		m, err := New(be, c, h, trainable)
		count("model", c.ModelLen(h, trainable, be.PackedLen), m, err)
		limit, keep := Capacity{Tokens: 1 + r.IntN(99), Sequences: 1 + r.IntN(9)}, Keep(r.IntN(3))
		ws, err := NewWorkspace(be, c, h, limit, keep)
		count("workspace", c.WorkspaceLen(h, limit, keep), ws, err)
		pages := 1 + r.IntN(9)
		x, err := NewCache(be, c, pages, 16)
		count("cache", c.CacheLen(pages, 16), x, err)
		rows, table := 1+r.IntN(30), 1+r.IntN(30)
		d, err := NewDecoder(be, c, rows, table)
		count("decoder", c.DecoderLen(rows, table), d, err)
	}
}
