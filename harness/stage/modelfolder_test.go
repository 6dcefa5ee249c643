package stage

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/checkpoint"
	"exp/train/checkpoint/checkpointtest"
	"exp/train/model"
)

// The text part of a model of text and images is the plain model: the same architecture
// and, whatever the container's names, the same digest and types.
func TestTextPart(t *testing.T) {
	c := model.Config{Vocab: 11, Layers: 3, Width: 8, Heads: 2, KVHeads: 1, Head: 4, FFN: 10, RopeTheta: 1e6, LocalTheta: 1e4, NormEps: 1e-6, QKNorm: true, UnitOffset: true, PostNorms: true,
		TieEmbeddings: true, Gate: kernels.GELUTanh, QueryScale: 0.5, EmbedScale: 2.8284271247461903, Window: 2, Windowed: []bool{true, false, true}, MaxPositions: 16, InitStd: 0.5}
	be := ref.New[float32]()
	m, err := model.New(be, c, model.Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Init(func(label string) uint64 { return uint64(len(label)) })
	plain, whole := filepath.Join(t.TempDir(), "plain"), t.TempDir()
	checkpointtest.WriteFolder(t, be, m, plain, checkpoint.MergeOptions{DType: checkpoint.BF16})
	insideLarger(t, plain, whole)
	part := &config.Run{Model: config.Model{Init: "pretrained", Base: whole, Part: config.PartText}}
	own := &config.Run{Model: config.Model{Init: "pretrained", Base: plain, Part: "whole"}}
	if _, err := ReadArchitecture(&config.Run{Model: config.Model{Base: whole}}); err == nil || !strings.Contains(err.Error(), "model.part: text") {
		t.Errorf("the whole model: %v", err)
	}
	a, err := ReadArchitecture(part)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := ReadArchitecture(own); err != nil || a.Layers != b.Layers || a.LocalTheta != b.LocalTheta || a.QueryScale != b.QueryScale || !slices.Equal(a.Windowed, b.Windowed) {
		t.Errorf("architecture %+v, want %+v; %v", a, b, err)
	}
	got, err := modelDigest(part, true)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := modelDigest(own, true); err != nil || got != want {
		t.Errorf("digest %s, want %s; %v", got, want, err)
	}
	o, err := checkpoint.ReadOrigin(whole)
	if err != nil {
		t.Fatal(err)
	}
	if err := textTypes(part, o); err != nil || o.DTypes["model.embed_tokens.weight"] != checkpoint.BF16 {
		t.Errorf("types %v, %v", o.DTypes, err)
	}
	if notes := StartNotes(part); len(notes) == 0 || !strings.Contains(strings.Join(notes, " "), "vision tower is left out") {
		t.Errorf("notes %q", notes)
	}
}

// insideLarger writes the model in from as the text part of one of text and images.
func insideLarger(t *testing.T, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(from, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	conf := `{"architectures": ["Lfm2VlForConditionalGeneration"], "model_type": "lfm2_vl", "vision_config": {}, "text_config": ` + string(raw) + `}`
	x, err := checkpoint.OpenFolder(from)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	list := []checkpoint.Source{{Tensor: checkpoint.Tensor{Name: "vision_tower.weight", DType: checkpoint.F32, Shape: []int{1}},
		Raw: func(w io.Writer) error { _, err := w.Write(make([]byte, 4)); return err }}}
	for _, s := range x.Sources() {
		s.Name = "language_model." + s.Name
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b checkpoint.Source) int { return strings.Compare(a.Name, b.Name) })
	var b strings.Builder
	if err := checkpoint.WriteSafetensors(&b, list); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"config.json": conf, "model.safetensors": b.String()} {
		if err := os.WriteFile(filepath.Join(to, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// All reasons against a model fit on the line of a configuration's error.
func TestOneLine(t *testing.T) {
	err := &checkpoint.ConfigError{Path: "config.json", Problems: []string{"one", "two", "three"}}
	if got := oneLine(err); !strings.HasSuffix(got, "not supported: one; two; three") {
		t.Error(got)
	}
}
