// Package checkpointtest writes in-memory models as folders for the tests of other
// packages.
package checkpointtest

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"exp/kernels"
	"exp/train/checkpoint"
	"exp/train/model"
	"exp/train/tokenizer"
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

// WriteBytes writes a small random model that reads bytes, and so any text, as folder dir. template is its chat
// template; empty: it has none.
func WriteBytes(t testing.TB, be kernels.Backend, dir string, positions int, template string) {
	t.Helper()
	tok := tokenizer.Byte{}
	c := model.Config{Vocab: tok.VocabSize(), Layers: 2, Width: 32, Heads: 2, KVHeads: 1, Head: 16, FFN: 48,
		RopeTheta: 1e4, NormEps: 1e-6, QKVBias: true, MaxPositions: positions, InitStd: 0.3}
	m, err := model.New(be, c, model.Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Init(func(label string) uint64 { return uint64(len(label)) })
	files := maps.Clone(tok.Files())
	if template != "" {
		files["chat_template.jinja"] = []byte(template)
	}
	WriteFolder(t, be, m, dir, checkpoint.MergeOptions{Tokenizer: files, EndIDs: tok.EndIDs()})
}
