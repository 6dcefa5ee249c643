package megatron

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"exp/train/checkpoint/extent"
)

// The model's own names begin after what trainers nest it in.
func TestModelPrefix(t *testing.T) {
	for _, tt := range []struct {
		names []string
		want  string
	}{
		{[]string{"model.embed_tokens.weight", "lm_head.weight"}, ""},
		{[]string{"embed_tokens.weight"}, ""},
		{[]string{"model.model.embed_tokens.weight"}, "model."},
		{[]string{"app.model.model.embed_tokens.weight"}, "app.model."},
		{[]string{"model.model.language_model.embed_tokens.weight"}, "model."},
		{[]string{"model.language_model.model.embed_tokens.weight"}, "model."},
		{[]string{"_orig_mod.model._fsdp_wrapped_module.embed_tokens.weight"}, ""},
		{[]string{"my_embed_tokens.weight", "x.tok_embeddings.weight"}, "!"},
		{[]string{"model.model.embed_tokens.weight", "ema.model.embed_tokens.weight"}, "!"},
	} {
		got, err := modelPrefix("x", tt.names)
		if err != nil {
			got = "!"
		}
		if got != tt.want {
			t.Errorf("%s: %q, %v, want %q", tt.names, got, err, tt.want)
		}
	}
	for name, want := range map[string]bool{"optim.state.model.norm.weight.momentum_buffer": true, "app.optimizer.state.0.step": true,
		"state.0.exp_avg": true, "model.norm.weight": false} {
		if stateful(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// Kernels of convolutions and stacks of experts are cut along the first axis alone.
func TestFlatten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bytes")
	if err := os.WriteFile(path, []byte("abcdefghijkl"), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	chunk := func(at, rows, columns int, from, size int64) storedChunk {
		return storedChunk{offsets: []int{at, 0, 0}, sizes: []int{rows, 1, columns}, data: extent.Range(f, from, size)}
	}
	x := &stacked{dtype: "U8", shape: []int{3, 1, 4}, chunks: []storedChunk{chunk(2, 1, 4, 0, 4), chunk(0, 2, 4, 4, 8)}}
	if err := x.flatten(); err != nil {
		t.Fatal(err)
	}
	all := map[string]extent.Tensor{}
	if x.shape = x.flat(); !slices.Equal(x.shape, []int{3, 4}) {
		t.Errorf("shape %v", x.shape)
	}
	if err := x.slice("x", "x", nil, all); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 12)
	if _, err := all["x"].Data.ReadAt(got, 0); err != nil || string(got) != "efghijklabcd" {
		t.Errorf("%q, %v", got, err)
	}
	cut := &stacked{shape: []int{3, 1, 4}, chunks: []storedChunk{chunk(0, 3, 2, 0, 6)}}
	if err := cut.flatten(); fmt.Sprint(err) != "has 3 axes and is cut along another than the first" {
		t.Error(err)
	}
}
