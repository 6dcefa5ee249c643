package model

import (
	"math/rand/v2"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
)

// A head with a hidden layer takes what the counts say, to the byte.
func TestHiddenCounts(t *testing.T) {
	c, h := anyConfig(rand.New(rand.NewPCG(1, 2))), Heads{Value: true, Hidden: true}
	be, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	base, err := NewBackbone(be, c, false, kernels.F32)
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	before := be.Allocated()
	m, err := NewOn(base, h, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if got, want := be.Allocated()-before, int64(c.AdapterBytes(h, false, be.PackedLen, kernels.F32)); got != want {
		t.Errorf("the heads take %d bytes, counted %d", got, want)
	}
	limit := Capacity{Tokens: 33, Sequences: 3}
	before = be.Allocated()
	ws, err := NewWorkspace(be, c, h, limit, KeepNothing)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	if got, want := be.Allocated()-before, int64(c.WorkspaceBytes(h, limit, KeepNothing, kernels.F32, 1)); got != want {
		t.Errorf("the workspace takes %d bytes, counted %d", got, want)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a hidden layer learns")
			}
		}()
		NewOn(base, h, true)
	}()
}
