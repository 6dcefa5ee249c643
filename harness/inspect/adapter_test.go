package inspect

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/checkpoint"
)

// Adapters that PEFT wrote have PEFT's logits. testdata/peft was made by transformers
// 4.57.3 and peft 0.21.2 in float32: base is a random Qwen2ForCausalLM, the others are
// get_peft_model of it with normal A and B and what their adapter_config.json says;
// logits.safetensors are the model's for the two sequences below.
func TestLogitsOfPEFT(t *testing.T) {
	base := filepath.Join("testdata", "peft", "base")
	sequences := [][]int32{{3, 1, 4, 1, 5, 9, 2, 6}, {10}}
	plain := logitsOf(t, Folder{Dir: base}, sequences)
	for _, name := range []string{"uniform", "patterns", "stable"} {
		dir := filepath.Join("testdata", "peft", name)
		got := logitsOf(t, Folder{Dir: base, Adapter: dir}, sequences)
		want := readLogits(t, filepath.Join(dir, "logits.safetensors"))
		moved := 0.0
		for i := range want {
			if len(got[i]) != len(want[i]) || len(want[i]) == 0 {
				t.Fatalf("%s: sequence %d has %d logits, want %d", name, i, len(got[i]), len(want[i]))
			}
			for k, w := range want[i] {
				if math.Abs(got[i][k]-w) > 2e-5 {
					t.Fatalf("%s: logit %d of sequence %d is %v, want %v", name, k, i, got[i][k], w)
				}
				moved = max(moved, math.Abs(plain[i][k]-w))
			}
		}
		if moved < 0.1 {
			t.Errorf("%s: the adapter moves no logit by more than %v", name, moved)
		}
	}
}

func logitsOf(t *testing.T, f Folder, sequences [][]int32) [][]float64 {
	t.Helper()
	var b bytes.Buffer
	if err := Logits(ref.New[float32](), f, sequences, &b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "logits.safetensors")
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return readLogits(t, path)
}

func readLogits(t *testing.T, path string) (list [][]float64) {
	t.Helper()
	x, err := checkpoint.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for _, name := range []string{"logits.0", "logits.1"} {
		info, _ := x.Lookup(name)
		out := make([]float64, info.Len())
		if err := x.Read(ref.New[float64](), name, kernels.Host(out)); err != nil {
			t.Fatal(err)
		}
		list = append(list, out)
	}
	return list
}
