package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/harness/inspect"
	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/checkpoint"
	"exp/train/checkpoint/checkpointtest"
	"exp/train/model"
)

// Adapters are described with the model that they are for, or alone where it is not here.
func TestInspectAdapters(t *testing.T) {
	peft := filepath.Join("..", "..", "harness", "inspect", "testdata", "peft")
	base, uniform := filepath.Join(peft, "base"), filepath.Join(peft, "uniform")
	e := exp(t, "inspect", base, "--adapter", uniform, "--json")
	e.succeeds(t)
	var d struct{ Data inspect.Report }
	if err := json.Unmarshal([]byte(e.stdout), &d); err != nil {
		t.Fatal(err)
	}
	want := inspect.Adapter{Path: uniform, Base: "testdata/peft/base", Rank: 2, Alpha: 3, Targets: []string{"down_proj", "q_proj", "v_proj"}, Parameters: 192, Trainable: true}
	if got := d.Data.Adapter; got == nil || fmt.Sprint(*got) != fmt.Sprint(want) || !d.Data.Computable {
		t.Errorf("got %+v, want %+v; computable %v", got, want, d.Data.Computable)
	}
	exp(t, "inspect", base, "--adapter", filepath.Join(peft, "patterns")).says(t, "LoRA: rank 3, alpha 6", "usable for evaluation and merging")
	alone := exp(t, "inspect", uniform, "--tensors")
	alone.says(t, "LoRA adapters", "base: testdata/peft/base", "no folder of that name here", "layers.1.self_attn.v_proj.lora_B.weight")
	exp(t, "inspect", uniform, "--adapter", uniform).refuses(t, 2, "itself a folder of adapters")
	dir, _, _ := tinyFolder(t)
	exp(t, "inspect", dir, "--adapter", uniform).says(t, "unsupported", "adapters: base_model.model.model.layers.0.mlp.down_proj.lora_A.weight is F32 [2,12]")

	ids := filepath.Join(t.TempDir(), "ids.json")
	if err := os.WriteFile(ids, []byte(`{"sequences": [[1, 2]]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.safetensors")
	exp(t, "inspect", base, "--adapter", uniform, "--logits", ids, "--out", out).succeeds(t)
	exp(t, "inspect", uniform, "--logits", ids, "--out", out).refuses(t, 3, "testdata/peft/base", "exp inspect MODEL --adapter "+uniform)
}

// The text part of a model of text and images has the logits of the plain model; without
// asking for it the folder is refused with what to ask for.
func TestInspectText(t *testing.T) {
	be := ref.New[float32]()
	c := model.Config{Vocab: 11, Layers: 3, Width: 8, Heads: 2, KVHeads: 1, Head: 4, FFN: 10, RopeTheta: 1e6, LocalTheta: 1e4, NormEps: 1e-6, QKNorm: true, UnitOffset: true, PostNorms: true,
		TieEmbeddings: true, Gate: kernels.GELUTanh, QueryScale: 0.5, EmbedScale: 2.8284271247461903, Window: 2, Windowed: []bool{true, false, true}, MaxPositions: 16, InitStd: 0.5}
	m, err := model.New(be, c, model.Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Init(func(label string) uint64 { return uint64(len(label)) })
	plain, whole := filepath.Join(t.TempDir(), "plain"), t.TempDir()
	checkpointtest.WriteFolder(t, be, m, plain, checkpoint.MergeOptions{})
	withVision(t, plain, whole)
	exp(t, "inspect", whole).says(t, "unsupported", "--part text")
	text := exp(t, "inspect", whole, "--part", "text")
	text.says(t, "Gemma 3", "the vision tower is left out", "41 × F32")
	if strings.Contains(text.stdout, "unsupported") {
		t.Errorf("the text part is refused:\n%s", text.stdout)
	}
	exp(t, "inspect", plain, "--part", "text").says(t, "it has no text part to")
	exp(t, "inspect", plain, "--part", "images").says(t, "unsupported", "images are not supported in this class")
	exp(t, "inspect", plain, "--part", "sound").refuses(t, 2, "--part sound: want text, images or whole")

	ids := filepath.Join(t.TempDir(), "ids.json")
	if err := os.WriteFile(ids, []byte(`{"sequences": [[1, 2, 3, 4, 5]]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	var outs [2]string
	for i, args := range [][]string{{plain}, {whole, "--part", "text"}} {
		out := filepath.Join(t.TempDir(), "out.safetensors")
		exp(t, append(append([]string{"inspect"}, args...), "--logits", ids, "--out", out)...).succeeds(t)
		raw, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		outs[i] = string(raw)
	}
	if outs[0] != outs[1] {
		t.Error("the text part has other logits than the plain model")
	}
}

// withVision writes the model in from as the text part of a Lfm2VlForConditionalGeneration.
func withVision(t *testing.T, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(from, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	config := `{"architectures": ["Lfm2VlForConditionalGeneration"], "model_type": "lfm2_vl", ` +
		`"vision_config": {"model_type": "siglip2_vision_model"}, "text_config": ` + string(raw) + `}`
	if err := os.WriteFile(filepath.Join(to, "config.json"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	x, err := checkpoint.OpenFolder(from)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	var list []checkpoint.Source
	for _, s := range x.Sources() {
		s.Name = "language_model." + s.Name
		list = append(list, s)
	}
	list = append(list, checkpoint.Source{Tensor: checkpoint.Tensor{Name: "vision_tower.weight", DType: checkpoint.F32, Shape: []int{1}},
		Raw: func(w io.Writer) error { _, err := w.Write(make([]byte, 4)); return err }})
	slices.SortFunc(list, func(a, b checkpoint.Source) int { return strings.Compare(a.Name, b.Name) })
	f, err := os.Create(filepath.Join(to, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := checkpoint.WriteSafetensors(f, list); err != nil {
		t.Fatal(err)
	}
}

// tinyAdapters writes adapters for a folder, with B random, and returns their folder.
func tinyAdapters(t *testing.T, dir string) string {
	t.Helper()
	be := ref.New[float32]()
	c, err := checkpoint.ReadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := model.NewBackbone(be, c, true, kernels.F32)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	m, err := model.NewOn(b, model.Heads{LM: true, Adapters: &model.Adapters{Rank: 1, Alpha: 4, Targets: []string{"q_proj", "up_proj"}}}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	x := kernels.Elems[float32](m.Params())
	for i := range x {
		x[i] = float32(i%7-3) / 4
	}
	out := filepath.Join(t.TempDir(), "adapter")
	checkpointtest.WriteAdapters(t, be, m, out, dir)
	return out
}
