package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/train/model"
	"exp/train/tokenizer"
)

func charFiles(t *testing.T) map[string][]byte {
	t.Helper()
	c, err := tokenizer.NewChar("0123456789")
	if err != nil {
		t.Fatal(err)
	}
	return c.Files()
}

// A merged folder computes what the model computes, on each backend and for each
// architecture, and has the files that it says.
func TestMerge(t *testing.T) {
	heads := map[string]model.Heads{"plain": {LM: true}, "flowrl": policyHeads, "both": {LM: true, Value: true, LogZ: policyHeads.LogZ}}
	extra := map[string][]string{"plain": nil, "flowrl": {"proj_z.safetensors"}, "both": {"proj_z.safetensors", "value_head.safetensors"}}
	for _, be := range []kernels.Backend{refBackend(), newCPU(t)} {
		for cname, c := range map[string]model.Config{"llama": toyLlama, "qwen2": toyQwen2, "qwen3": toyQwen3} {
			for hname, h := range heads {
				t.Run(be.Name()+"/"+cname+"/"+hname, func(t *testing.T) {
					m := newModel(t, be, c, h, true)
					dir := filepath.Join(t.TempDir(), "run", "merged")
					files, err := Merge(be, m, dir, MergeOptions{Tokenizer: charFiles(t), EndIDs: []int32{0}})
					if err != nil {
						t.Fatal(err)
					}
					checkFiles(t, dir, files)
					want := append([]string{"config.json", "generation_config.json", "model.safetensors", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json"}, extra[hname]...)
					if got := slices.Sorted(maps.Keys(tree(t, dir))); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
						t.Errorf("files %q, want %q", got, want)
					}
					if got := slices.Collect(maps.Keys(tree(t, filepath.Dir(dir)))); len(got) != len(want)+1 {
						t.Errorf("there is more than the folder: %q", got)
					}
				})
			}
		}
	}
}

// checkFiles compares what Merge says of its files with the files.
func checkFiles(t *testing.T, dir string, files []FileInfo) {
	t.Helper()
	if n := len(tree(t, dir)); n != len(files) {
		t.Errorf("%d files are said, %d are there", len(files), n)
	}
	for _, f := range files {
		b := readFile(t, filepath.Join(dir, f.Name))
		if int64(len(b)) != f.Bytes || sha256.Sum256(b) != f.SHA256 {
			t.Errorf("%s is not the file that was said", f.Name)
		}
	}
}

// Equal models give equal folders, and the plain model is without its heads.
func TestMergeIsDeterministic(t *testing.T) {
	be := refBackend()
	var trees []map[string]string
	for _, h := range []model.Heads{{LM: true}, {LM: true}, policyHeads} {
		dir := filepath.Join(t.TempDir(), "m")
		if _, err := Merge(be, newModel(t, be, toyQwen2, h, false), dir, MergeOptions{EndIDs: []int32{3, 5}}); err != nil {
			t.Fatal(err)
		}
		trees = append(trees, tree(t, dir))
	}
	if !maps.Equal(trees[0], trees[1]) {
		t.Error("two merges of one model differ")
	}
	if got := trees[0]["generation_config.json"]; !strings.Contains(got, "3,\n    5") {
		t.Errorf("generation_config.json is %s", got)
	}
	if _, ok := trees[2]["proj_z.safetensors"]; !ok || strings.Contains(trees[2]["model.safetensors"], "proj_z") {
		t.Error("the log Z head is not in its own file alone")
	}
}

// A generation_config.json that came with the tokenizer is kept.
func TestMergeKeepsGenerationConfig(t *testing.T) {
	be := refBackend()
	dir := filepath.Join(t.TempDir(), "m")
	own := []byte(`{"eos_token_id": [7, 8], "temperature": 0.6}`)
	if _, err := Merge(be, newModel(t, be, toyQwen2, model.Heads{LM: true}, false), dir,
		MergeOptions{Tokenizer: map[string][]byte{"generation_config.json": own}, EndIDs: []int32{7}}); err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, filepath.Join(dir, "generation_config.json")); !bytes.Equal(got, own) {
		t.Errorf("got %s, want %s", got, own)
	}
}

func TestMergeTarget(t *testing.T) {
	be := refBackend()
	m := newModel(t, be, toyQwen2, model.Heads{LM: true}, false)
	parent := t.TempDir()
	dir := filepath.Join(parent, "m")
	writeFile(t, filepath.Join(dir, "precious"), []byte("x"))
	writeFile(t, filepath.Join(parent, ".m.partial", "rest"), []byte("of an interrupted merge"))
	before := tree(t, dir)

	_, err := Merge(be, m, dir, MergeOptions{})
	var e *Error
	if !errors.Is(err, ErrExists) || !errors.As(err, &e) || e.Path != dir || e.Hint == "" {
		t.Errorf("got %v, want ErrExists about %s with a hint", err, dir)
	}
	if !maps.Equal(tree(t, dir), before) {
		t.Error("what was there changed")
	}
	if _, err := Merge(be, m, dir, MergeOptions{Replace: true}); err != nil {
		t.Fatal(err)
	}
	got := tree(t, parent)
	if _, ok := got["m/precious"]; ok || got["m/config.json"] == "" {
		t.Errorf("after replacing: %q", slices.Sorted(maps.Keys(got)))
	}
	if _, ok := got[".m.partial"]; ok {
		t.Error("the replaced folder is still there")
	}
}

func TestMergeRefuses(t *testing.T) {
	be := refBackend()
	both, one := toyQwen2, toyQwen2
	both.QKNorm = true
	one.MaxPositions = 1
	tests := []struct {
		name  string
		model *model.Model
		files map[string][]byte
		want  string
	}{
		{"critic", newModel(t, be, toyLlama, model.Heads{Value: true}, false), nil, "no output projection"},
		{"no such architecture", newModel(t, be, both, model.Heads{LM: true}, false), nil, "no Hugging Face class computes"},
		{"single position", newModel(t, be, one, model.Heads{LM: true}, false), nil, "single position"},
		{"weights from the tokenizer", newModel(t, be, toyLlama, model.Heads{LM: true}, false), map[string][]byte{"model.safetensors": nil}, `"model.safetensors"`},
		{"outside", newModel(t, be, toyLlama, model.Heads{LM: true}, false), map[string][]byte{"../x": nil}, `"../x"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			parent := t.TempDir()
			_, err := Merge(be, tt.model, filepath.Join(parent, "m"), MergeOptions{Tokenizer: tt.files})
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an *Error that says %q", err, tt.want)
			}
			if len(tree(t, parent)) > 0 {
				t.Error("something was written")
			}
		})
	}
}

// The probe sees one changed bit of any tensor in the folder.
func TestProbeSeesEveryTensor(t *testing.T) {
	be := newCPU(t)
	h := model.Heads{LM: true, Value: true, LogZ: policyHeads.LogZ}
	for cname, c := range map[string]model.Config{"llama": toyLlama, "qwen2": toyQwen2, "qwen3": toyQwen3} {
		m := newModel(t, be, c, h, false)
		dir := filepath.Join(t.TempDir(), "m")
		if _, err := Merge(be, m, dir, MergeOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, tensor := range m.Tensors() {
			want, ok := map[string]string{"proj_z": "log Z", "score": "values"}[headOf(tensor.Name)]
			if !ok {
				want = "logits"
			}
			restore := flip(t, dir, tensor)
			var e *ProbeError
			if err := probe(be, m, dir, asModel(be)); !errors.As(err, &e) || e.What != want {
				t.Errorf("%s: %s changed: got %v, want a *ProbeError about %s", cname, tensor.Name, err, want)
			}
			restore()
		}
		if err := probe(be, m, dir, asModel(be)); err != nil {
			t.Errorf("%s: with nothing changed: %v", cname, err)
		}
	}
}

// flip changes one bit of a tensor in a merged folder, until restore is called.
func flip(t *testing.T, dir string, tensor model.Tensor) (restore func()) {
	t.Helper()
	path := filepath.Join(dir, weightsFile)
	if file, ok := headFiles()[headOf(tensor.Name)]; ok {
		path = filepath.Join(dir, file)
	}
	x, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := x.where[tensor.Name].begin + 4*int64(tensor.Len()/2) + 3 // the exponent of an element
	x.Close()
	b := readFile(t, path)
	b[at] ^= 0x40
	writeFile(t, path, b)
	return func() {
		b[at] ^= 0x40
		writeFile(t, path, b)
	}
}

// A folder that fails the probe does not appear, and what was there stays.
func TestMergeFailsTheProbe(t *testing.T) {
	be := refBackend()
	m := newModel(t, be, toyQwen2, policyHeads, false)
	parent := t.TempDir()
	dir := filepath.Join(parent, "m")
	writeFile(t, filepath.Join(dir, "precious"), nil)
	before := tree(t, parent)
	_, err := system().merge(be, m, dir, MergeOptions{Replace: true}, func(be kernels.Backend, m *model.Model, dir string, _ dtypes) error {
		flip(t, dir, m.Tensors()[0])
		return probe(be, m, dir, asModel(be))
	})
	var e *ProbeError
	if !errors.As(err, &e) || e.What != "logits" || e.Got == e.Want {
		t.Errorf("got %v, want a *ProbeError about logits", err)
	}
	if after := tree(t, parent); !maps.Equal(after, before) {
		t.Errorf("left %q", slices.Collect(maps.Keys(after)))
	}
}

func TestMergeProbeSeesStalePacks(t *testing.T) {
	be := newCPU(t)
	m := newModel(t, be, toyQwen2, model.Heads{LM: true}, false)
	be.Zero(m.View("model.layers.0.mlp.down_proj.weight")) // and no Refresh
	dir := filepath.Join(t.TempDir(), "m")
	_, err := Merge(be, m, dir, MergeOptions{})
	var e *ProbeError
	if !errors.As(err, &e) || e.What != "logits" || e.Got == e.Want {
		t.Errorf("got %v, want a *ProbeError about logits", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
}

func TestCompareNamesTheFirstDifference(t *testing.T) {
	raw := func(last byte) answer {
		b := make([]byte, 2*3*4)
		b[4*4+1] = last // row 1, column 1 of 3
		return answer{what: "logits", columns: 3, size: 4, raw: b}
	}
	var e *ProbeError
	if err := compare("d", raw(1), raw(2)); !errors.As(err, &e) || e.Row != 1 || e.Column != 1 || e.Got != 0x100 || e.Want != 0x200 {
		t.Errorf("got %v", err)
	}
	if err := compare("d", raw(1), raw(1)); err != nil {
		t.Errorf("equal answers: %v", err)
	}
	short := raw(1)
	short.raw = short.raw[:8]
	if err := compare("d", short, raw(1)); !errors.As(err, &e) {
		t.Errorf("another length: %v", err)
	}
}

func TestLoadHeadsOfAPlainFolder(t *testing.T) {
	be := refBackend()
	dir := filepath.Join(t.TempDir(), "m")
	if _, err := Merge(be, newModel(t, be, toyQwen2, model.Heads{LM: true}, false), dir, MergeOptions{}); err != nil {
		t.Fatal(err)
	}
	policy := newModel(t, be, toyQwen2, policyHeads, false)
	if err := LoadFolder(be, policy, dir); err != nil {
		t.Fatal(err)
	}
	var e *Error
	if err := LoadHeads(be, policy, dir); !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &e) || e.Hint == "" {
		t.Errorf("got %v, want fs.ErrNotExist with a hint", err)
	}
}
