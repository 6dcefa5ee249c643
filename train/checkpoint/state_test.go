package checkpoint

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"exp/kernels"
)

// toyState is a checkpoint of two groups, filled with numbers that depend on the
// step.
func toyState(t *testing.T, be kernels.Backend, step int) State {
	t.Helper()
	buffer := func(name string, n int, shape ...int) NamedBuffer {
		b, err := be.Alloc(kernels.F32, n)
		if err != nil {
			t.Fatal(err)
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(step) + float32(i)/8
		}
		be.Copy(b, kernels.Host(x))
		be.Sync()
		return NamedBuffer{Name: name, Shape: shape, Data: b}
	}
	return State{
		Step:  step,
		Extra: json.RawMessage(`{"updates": 7, "chain": "<&>"}`),
		Groups: []Group{
			{Name: "policy", Buffers: []NamedBuffer{buffer("w", 6, 2, 3), buffer("b", 3)}},
			{Name: "policy.adamw", Buffers: []NamedBuffer{buffer("m", 16), buffer("v", 16)}},
		},
	}
}

// emptyGroups returns groups with the shapes of s's and zero values.
func emptyGroups(t *testing.T, be kernels.Backend, s State) []Group {
	t.Helper()
	groups := make([]Group, len(s.Groups))
	for i, g := range s.Groups {
		groups[i].Name = g.Name
		for _, b := range g.Buffers {
			zero, err := be.Alloc(b.Data.DType(), b.Data.Len())
			if err != nil {
				t.Fatal(err)
			}
			groups[i].Buffers = append(groups[i].Buffers, NamedBuffer{Name: b.Name, Shape: b.Shape, Data: zero})
		}
	}
	return groups
}

// mustWrite writes a checkpoint of that step to root.
func mustWrite(t *testing.T, root string, step int) string {
	t.Helper()
	be := refBackend()
	dir, err := Write(be, root, toyState(t, be, step))
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(root, stepDir(step)); dir != want {
		t.Fatalf("wrote %s, want %s", dir, want)
	}
	return dir
}
