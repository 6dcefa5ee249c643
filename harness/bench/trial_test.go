package bench

import (
	"testing"

	"exp/train/model"
)

// A trial of a small model measures its shape, and the one of a large model something smaller.
func TestTry(t *testing.T) {
	be := device(t, 2)
	c := model.Config{Vocab: 40, Layers: 2, Width: 16, Heads: 2, KVHeads: 1, Head: 8, FFN: 24, MaxPositions: 64}
	x, err := Try(t.Context(), be, TrialOf(c, 40, 500))
	if err != nil {
		t.Fatal(err)
	}
	m := x.Model
	if m.Layers != 2 || m.Width != 16 || m.KVHeads != 1 || m.Vocab != 40 || x.Length != 40 || x.Sequences != 6 || x.Drawn != 32 ||
		!(x.Forward > 0 && x.Backward > 0 && x.Update > 0 && x.Sampling > 0) {
		t.Errorf("%+v", x)
	}
	left := be.Allocated() // workspaces of operations
	if _, err := Try(t.Context(), be, TrialOf(c, 40, 500)); err != nil || be.Allocated() != left {
		t.Errorf("%v, %d bytes are left", err, be.Allocated()-left)
	}
	large := trialModel(model.Config{Vocab: 152064, Layers: 28, Width: 3584, Heads: 28, KVHeads: 4, Head: 128, FFN: 18944}, 256)
	if n, _ := model.Parameters(large, model.Heads{LM: true}); large.Width != 512 || large.Layers != 1 || n > 8e6 || large.Heads != 4 ||
		large.KVHeads != 1 || large.FFN != 2706 {
		t.Errorf("%d parameters: %+v", n, large)
	}
}
