package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/train/model"
)

// merging is a case of merging from files.
type merging struct {
	name   string
	be     kernels.Backend
	c      model.Config
	heads  model.Heads
	base   DType // of the folder that training started from
	dtype  DType // of MergeOptions
	shards int64
}

// Streaming from file to file gives the same files, byte for byte, as merging a model in
// memory.
func TestMergeTensorsIsMerge(t *testing.T) {
	adapters := &model.Adapters{Rank: 3, Alpha: 5, Targets: []string{"q_proj", "v_proj", "o_proj", "gate_proj", "down_proj"}}
	all := model.Heads{LM: true, LogZ: policyHeads.LogZ, Adapters: adapters}
	large := toyLlama
	large.Layers, large.Width, large.FFN, large.Vocab = 1, 64, 16389, 17 // a tensor of more than one chunk
	for _, x := range []merging{
		{"adapters, tied", refBackend(), toyQwen2, all, BF16, "", 0},
		{"adapters, untied", openCPU(t, kernels.F32), toyLlama, all, BF16, "", 0},
		{"adapters in float32", openCPU(t, kernels.F32), toyQwen3, all, BF16, F32, 0},
		{"adapters on float32, to bf16", openCPU(t, kernels.F32), toyQwen2, all, F32, BF16, 0},
		{"adapters, bf16 products", openCPU(t, kernels.BF16), toyLlama, all, BF16, "", 0},
		{"adapters in shards", openCPU(t, kernels.F32), toyLlama, all, BF16, "", 700},
		{"adapters in pieces", openCPU(t, kernels.F32), large, all, BF16, "", 0},
		{"all weights", openCPU(t, kernels.F32), toyQwen2, policyHeads, BF16, "", 0},
		{"all weights, untied, in float32", refBackend(), toyLlama, policyHeads, BF16, F32, 0},
		{"all weights in pieces and shards", openCPU(t, kernels.F32), large, model.Heads{LM: true}, BF16, F16, 1 << 20},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := t.TempDir()
			o := MergeOptions{DType: x.dtype, ShardBytes: x.shards, EndIDs: []int32{1}, Tokenizer: charFiles(t), Origin: x.start(t, filepath.Join(dir, "base"))}
			trained, m := x.train(t, dir)
			want, err := Merge(x.be, m, filepath.Join(dir, "want"), o)
			if err != nil {
				t.Fatal(err)
			}
			got, err := MergeTensors(x.be, trained, filepath.Join(dir, "got"), o)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("files %v, want %v", got, want)
			}
			if got, want := tree(t, filepath.Join(dir, "got")), tree(t, filepath.Join(dir, "want")); !maps.Equal(got, want) {
				t.Errorf("the folders differ: %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
		})
	}
}

// start writes the folder that training starts from.
func (x merging) start(t *testing.T, dir string) *Origin {
	t.Helper()
	m := newModel(t, x.be, x.c, model.Heads{LM: true}, false)
	if _, err := Merge(x.be, m, dir, MergeOptions{DType: x.base, ShardBytes: x.shards}); err != nil {
		t.Fatal(err)
	}
	o, err := ReadOrigin(dir)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// train makes files of trained weights, and the model that they stand for.
func (x merging) train(t *testing.T, dir string) (Trained, *model.Model) {
	t.Helper()
	start, err := OpenFolder(filepath.Join(dir, "base"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { start.Close() })
	heads := x.heads
	heads.Adapters = nil
	m := newModel(t, x.be, x.c, heads, false)
	trained := Trained{Config: x.c, Heads: x.heads, Weights: start}
	path := filepath.Join(dir, "learned.safetensors")
	if x.heads.Adapters == nil {
		trained.Learned = x.saved(t, path, m)
		trained.Weights = trained.Learned
		return trained, m
	}
	base, err := LoadBackbone(x.be, x.c, true, kernels.F32, start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(base.Close)
	a, err := model.NewOn(base, x.heads, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	values := make([]float32, a.Params().Len())
	for i := range values {
		values[i] = float32((i*7919)%1009)/1009 - 0.5
	}
	x.be.Copy(a.Params(), kernels.Host(values))
	a.Refresh()
	trained.Learned = x.saved(t, path, a)
	if err := LoadWeights(x.be, m, start, Plain); err != nil {
		t.Fatal(err)
	}
	for _, tensor := range m.Tensors() {
		if tensor.Auxiliary() {
			x.be.Copy(m.View(tensor.Name), a.View(tensor.Name))
		}
	}
	if err := m.FoldAdapters(a); err != nil {
		t.Fatal(err)
	}
	m.Refresh()
	return trained, m
}

// saved writes a model's tensors and opens them.
func (x merging) saved(t *testing.T, path string, m *model.Model) *Tensors {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(WriteSafetensors(f, Weights(x.be, m, All)), f.Close()); err != nil {
		t.Fatal(err)
	}
	tensors, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tensors.Close() })
	return tensors
}

// Streaming adapters writes what a model with them writes, in PEFT's layout.
func TestWriteAdapterTensors(t *testing.T) {
	x := merging{be: refBackend(), c: toyQwen2, base: F32,
		heads: model.Heads{LM: true, LogZ: policyHeads.LogZ, Adapters: &model.Adapters{Rank: 2, Alpha: 3, Targets: []string{"q_proj"}}}}
	dir := t.TempDir()
	x.start(t, filepath.Join(dir, "base"))
	trained, _ := x.train(t, dir)
	if _, err := trained.WriteAdapterTensors(x.be, filepath.Join(dir, "adapter"), "some/model"); err != nil {
		t.Fatal(err)
	}
	got, err := OpenFile(filepath.Join(dir, "adapter", adapterFile))
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	for _, tensor := range got.List() {
		var have, want bytes.Buffer
		for r, b := range map[io.Reader]*bytes.Buffer{got.raw(tensor.Name): &have, trained.Learned.raw(tensor.Name): &want} {
			if _, err := b.ReadFrom(r); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(have.Bytes(), want.Bytes()) {
			t.Errorf("%s is another", tensor.Name)
		}
	}
	if n, want := len(got.List()), 2*toyQwen2.Layers; n != want {
		t.Errorf("%d tensors, want %d", n, want)
	}
	// PEFT is told how they are scaled, and so are we.
	for _, stabilized := range []bool{false, true} {
		a := *trained.Heads.Adapters
		a.Stabilized = stabilized
		trained.Heads.Adapters = &a
		to := filepath.Join(dir, "scaled")
		if _, err := trained.WriteAdapterTensors(x.be, to, "some/model"); err != nil {
			t.Fatal(err)
		}
		config := string(readFile(t, filepath.Join(to, adapterConfigFile)))
		back, err := ReadAdapters(to, toyQwen2)
		if err != nil {
			t.Fatal(err)
		}
		want := map[bool]float64{false: 1.5, true: 3 / math.Sqrt2}[stabilized]
		if s := back.Shape.Scale(); math.Abs(s-want) > 1e-12 || math.Abs(a.Scale()-want) > 1e-12 ||
			!strings.Contains(config, fmt.Sprintf(`"use_rslora": %v`, stabilized)) {
			t.Errorf("stabilized %v: scales %v and %v, want %v; %s", stabilized, a.Scale(), s, want, config)
		}
	}
}

// One bit that is not what it was is found, and named.
func TestProveSeesABit(t *testing.T) {
	x := merging{be: refBackend(), c: toyQwen2, base: F32, heads: policyHeads}
	dir := t.TempDir()
	o := MergeOptions{Origin: x.start(t, filepath.Join(dir, "base")), Tokenizer: charFiles(t)}
	trained, _ := x.train(t, dir)
	out := filepath.Join(dir, "out")
	if _, err := MergeTensors(x.be, trained, out, o); err != nil {
		t.Fatal(err)
	}
	as, err := o.dtypes(x.be)
	if err != nil {
		t.Fatal(err)
	}
	tensors, _ := model.Layout(x.c, model.Heads{LM: true})
	plain, heads := trained.sources(x.be, tensors, as)
	if err := trained.prove(out, plain, heads); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		file, tensor string
		row, column  int
	}{{weightsFile, "model.embed_tokens.weight", 3, 5}, {weightsFile, "model.norm.weight", 0, 2}, {"proj_z.safetensors", "proj_z.net.0.weight", 1, 0}} {
		path := filepath.Join(out, tt.file)
		f, err := OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		p := f.where[tt.tensor]
		f.Close()
		columns := p.Shape[len(p.Shape)-1]
		flipAt(t, path, p.begin+4*int64(tt.row*columns+tt.column))
		var e *ProbeError
		if err := trained.prove(out, plain, heads); !errors.As(err, &e) || e.What != "elements of "+tt.tensor || e.Row != tt.row || e.Column != tt.column || e.Got^e.Want == 0 {
			t.Errorf("%s: got %v, want a *ProbeError at row %d, column %d", tt.tensor, err, tt.row, tt.column)
		}
		flipAt(t, path, p.begin+4*int64(tt.row*columns+tt.column))
	}
	trained.Config.RopeTheta *= 2
	if err := trained.prove(out, plain, heads); err == nil {
		t.Error("another configuration: no error")
	}
}

// Adapters that do not fit the model, or are not all there, are refused before anything
// is written.
func TestMergeTensorsRefuses(t *testing.T) {
	x := merging{be: refBackend(), c: toyQwen2, base: F32, heads: model.Heads{LM: true, Adapters: &model.Adapters{Rank: 2, Alpha: 3, Targets: []string{"q_proj"}}}}
	dir := t.TempDir()
	o := MergeOptions{Origin: x.start(t, filepath.Join(dir, "base")), Tokenizer: charFiles(t)}
	trained, _ := x.train(t, dir)
	for name, change := range map[string]func(*Trained){
		"another rank": func(x *Trained) { a := *x.Heads.Adapters; a.Rank = 3; x.Heads.Adapters = &a },
		"more targets": func(x *Trained) {
			a := *x.Heads.Adapters
			a.Targets = []string{"q_proj", "k_proj"}
			x.Heads.Adapters = &a
		},
		"a head":          func(x *Trained) { x.Heads.LogZ = policyHeads.LogZ },
		"another model":   func(x *Trained) { x.Config.Layers++ },
		"no output":       func(x *Trained) { x.Heads.LM = false },
		"swapped tensors": func(x *Trained) { x.Weights, x.Learned = x.Learned, x.Weights },
	} {
		changed := trained
		change(&changed)
		out := filepath.Join(dir, "out")
		if _, err := MergeTensors(x.be, changed, out, o); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: a folder was written", name)
		}
	}
}
