// Package checkpointtest writes in-memory models as folders for the tests of other
// packages.
package checkpointtest

import (
	"os"
	"path/filepath"
	"testing"

	"exp/kernels"
	"exp/train/checkpoint"
	"exp/train/model"
)

// WriteFolder writes a language model as Hugging Face folder dir.
func WriteFolder(t testing.TB, be kernels.Backend, m *model.Model, dir string, o checkpoint.MergeOptions) {
	t.Helper()
	if _, err := checkpoint.MergeTensors(be, trained(t, be, m), dir, o); err != nil {
		t.Fatal(err)
	}
}

// WriteAdapters writes the adapters of a model as folder dir in PEFT's layout; base is
// their base_model_name_or_path.
func WriteAdapters(t testing.TB, be kernels.Backend, m *model.Model, dir, base string) {
	t.Helper()
	if _, err := trained(t, be, m).WriteAdapterTensors(be, dir, base); err != nil {
		t.Fatal(err)
	}
}

// trained returns the model as if training had left it in a file.
func trained(t testing.TB, be kernels.Backend, m *model.Model) checkpoint.Trained {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weights.safetensors")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	all := func(model.Tensor) bool { return true }
	if err := checkpoint.WriteSafetensors(f, checkpoint.Weights(be, m, all)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	tensors, err := checkpoint.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tensors.Close(); err != nil {
			t.Error(err)
		}
	})
	return checkpoint.Trained{Config: m.Config, Heads: m.Heads, Weights: tensors, Learned: tensors}
}
