package checkpoint

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/kernels"
	"exp/train/model"
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

// The tensors of an arena lie where the layout says; an arena of another length is refused.
func TestArenaTensors(t *testing.T) {
	layout, n := model.Layout(model.Config{Vocab: 2, Width: 2, TieEmbeddings: true}, model.Heads{})
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i) / 8
	}
	dir, err := Write(refBackend(), t.TempDir(), State{Step: 3, Groups: []Group{
		{Name: "actor", Buffers: []NamedBuffer{{Name: "params", Data: kernels.Host(x)}}}}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Tensors("actor", "params", layout, n+1); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprintf("has %d elements, but the model has %d", n, n+1)) {
		t.Errorf("an arena of another length: %v", err)
	}
	for _, name := range [][2]string{{"actor", "m"}, {"critic", "params"}} {
		if _, err := c.Tensors(name[0], name[1], layout, n); err == nil {
			t.Errorf("no %s, and no error", name)
		}
	}
	tensors, err := c.Tensors("actor", "params", layout, n)
	if err != nil {
		t.Fatal(err)
	}
	defer tensors.Close()
	got := map[string][]float32{}
	if err := tensors.Stream([]Want{{Name: layout[0].Name, As: kernels.F32}, {Name: layout[1].Name, As: kernels.F32}},
		func(w Want, piece kernels.Buffer, _ int) error {
			got[w.Name] = append(got[w.Name], kernels.Elems[float32](piece)...)
			return nil
		}); err != nil {
		t.Fatal(err)
	}
	want := map[string][]float32{}
	for _, t := range layout {
		want[t.Name] = x[t.Offset() : t.Offset()+t.Len()]
	}
	if len(layout) != 2 || layout[1].Offset() == 0 {
		t.Fatalf("layout %+v", layout)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
