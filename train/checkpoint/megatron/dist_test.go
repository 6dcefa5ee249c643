package megatron

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/train/checkpoint/extent"
)

// layerStack is a stack of n layers of one number, in one chunk. Its elements are zeros.
func layerStack(t *testing.T, n int) *stacked {
	t.Helper()
	path := filepath.Join(t.TempDir(), "zeros")
	if err := os.WriteFile(path, make([]byte, 4*n), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &stacked{dtype: "F32", shape: []int{n, 1}, chunks: []storedChunk{{offsets: []int{0, 0}, sizes: []int{n, 1},
		data: extent.Range(f, 0, int64(4*n))}}}
}

// A small file cannot stack more tensors than its bytes allow, in one stack or in many.
func TestUnstackLimit(t *testing.T) {
	all := map[string]extent.Tensor{}
	const limit = 100
	for name, want := range map[string]int{"x.a": 60, "x.b": 40} {
		if err := layerStack(t, want).unstack("decoder.layers."+name, limit, all); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := all["decoder.layers.59.x.a"]; !ok || len(all) != limit {
		t.Errorf("%d tensors", len(all))
	}
	for _, n := range []int{1, 1 << 20} {
		err := layerStack(t, n).unstack("decoder.layers.x.c", limit, all)
		if err == nil || !strings.Contains(err.Error(), "too many tensors") || len(all) != limit {
			t.Errorf("a stack of %d more: %v, %d tensors", n, err, len(all))
		}
	}
}
