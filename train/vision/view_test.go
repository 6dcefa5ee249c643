package vision

import (
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/picture"
)

// Views of a gallery have features of their own towers. A change of weights drops them, also those that are still
// being computed, and the gradient of features reaches the weights.
func TestViews(t *testing.T) {
	c := tiny(Qwen3VL)
	be := ref.New[float32]()
	g := NewGallery(50, small(), nil, 0)
	file := &counted{raw: drawing(t, 8, 8, 1)}
	im, err := g.Add("a", 8, 8, file.read)
	if err != nil {
		t.Fatal(err)
	}
	p, err := small().Patches(file.raw)
	if err != nil {
		t.Fatal(err)
	}
	a, b := learning(t, be, c, rough(c)), learning(t, be, c, rough(c))
	one, other := g.View(a.tower, 1<<20), g.View(b.tower, 1<<20)
	first := one.Features(be, im)
	if f := one.Features(be, im); file.reads != 1 || !slices.Equal(f, a.tower.Encode(be, p)) || one.Of(im.First) != im {
		t.Errorf("features are read %d times, equal %t", file.reads, slices.Equal(f, first))
	}
	changes := one.own.changes
	be.Copy(a.params, kernels.Host(slices.Repeat([]float32{0.25}, a.params.Len())))
	one.Refresh()
	g.keep(&one.own, g.of(im.First), first, changes) // who began before the change ends after it
	if f := one.Features(be, im); slices.Equal(f, first) || !slices.Equal(f, a.tower.Encode(be, p)) {
		t.Error("features of old weights are kept")
	}
	if !slices.Equal(other.Features(be, im), first) {
		t.Error("another tower's features change, too")
	}
	d := slices.Repeat([]float32{1}, len(first))
	other.Backward(be, im, d)
	got := b.list(b.grads)
	be.Zero(b.grads)
	b.tower.Backward(be, picture.Patches{Rows: p.Rows, Columns: p.Columns, Values: p.Values}, d)
	if want := b.list(b.grads); !slices.Equal(got, want) || slices.Max(want) == 0 {
		t.Error("the gradient of features does not reach the weights")
	}
	brought, err := g.Hold("b", 8, 8, drawing(t, 8, 8, 2))
	if err != nil {
		t.Fatal(err)
	}
	held := one.own.held
	one.Features(be, brought)
	g.Keep(0, 0)
	if g.Release("b"); held == 0 || one.own.held != held || len(one.own.kept) != 1 {
		t.Errorf("%d bytes of features are kept when an image is dropped, want %d", one.own.held, held)
	}
	if one.Close(); len(g.views) != 1 || one.own.held != 0 {
		t.Errorf("%d views are left, with %d bytes", len(g.views), one.own.held)
	}
}
