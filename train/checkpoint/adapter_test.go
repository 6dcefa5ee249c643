package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/model"
)

// Adapters survive PEFT's layout: shape, names and every bit.
func TestAdaptersRoundTrip(t *testing.T) {
	be := ref.New[float32]()
	b, err := model.NewBackbone(be, toyQwen2, true, kernels.F32)
	if err != nil {
		t.Fatal(err)
	}
	a := &model.Adapters{Rank: 2, Alpha: 3, Targets: []string{"q_proj", "down_proj"}, Dropout: 0.25}
	m, err := model.NewOn(b, model.Heads{LM: true, Adapters: a}, true)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, m.Params().Len())
	for i := range x {
		x[i] = float32(i) / 7
	}
	be.Copy(m.Params(), kernels.Host(x))
	dir := filepath.Join(t.TempDir(), "adapter")
	if _, err := WriteAdapters(be, m, dir, "some/model"); err != nil {
		t.Fatal(err)
	}
	read, err := ReadAdapters(dir, toyQwen2)
	if err != nil {
		t.Fatal(err)
	}
	got := &read.Shape
	slices.Sort(a.Targets)
	if got.Rank != a.Rank || got.Alpha != a.Alpha || got.Dropout != a.Dropout || !slices.Equal(got.Targets, a.Targets) {
		t.Errorf("read %+v, wrote %+v", got, a)
	}
	again, err := model.NewOn(b, model.Heads{LM: true, Adapters: got}, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := read.Load(be, again); err != nil {
		t.Fatal(err)
	}
	for _, tensor := range m.Tensors() {
		if !strings.HasPrefix(tensor.Name, "base_model.model.model.layers.") || !strings.Contains(tensor.Name, ".lora_") {
			t.Errorf("PEFT has no tensor %s", tensor.Name)
		}
		if want, got := kernels.Elems[float32](m.View(tensor.Name)), kernels.Elems[float32](again.View(tensor.Name)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", tensor.Name, got, want)
		}
	}
}

// adapterFolder writes adapters of rank 2 on the q_proj of toyQwen2's two layers, with
// what else is given.
func adapterFolder(t *testing.T, config string, more ...Source) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, adapterConfigFile), []byte(config))
	tensors := more
	for l := range 2 {
		name := fmt.Sprintf("base_model.model.model.layers.%d.self_attn.q_proj", l)
		tensors = append(tensors, source(name+".lora_A.weight", F32, []int{2, 8}, strings.Repeat("\x00\x00\x80\x3f", 16)),
			source(name+".lora_B.weight", F32, []int{8, 2}, strings.Repeat("\x00\x00\x00\x40", 16)))
	}
	slices.SortFunc(tensors, func(a, b Source) int { return strings.Compare(a.Name, b.Name) })
	writeTensors(t, filepath.Join(dir, adapterFile), tensors...)
	return dir
}

// What this program does not compute is refused with every reason at once.
func TestReadAdaptersRefuses(t *testing.T) {
	const good = `"peft_type": "LORA", "r": 2, "lora_alpha": 2, "target_modules": ["q_proj"]`
	zeros := func(n int) string { return strings.Repeat("\x00", 4*n) }
	pair := func(name string, r, in, out int) []Source {
		return []Source{source("base_model.model."+name+".lora_A.weight", F32, []int{r, in}, zeros(r*in)), source("base_model.model."+name+".lora_B.weight", F32, []int{out, r}, zeros(r*out))}
	}
	for _, tt := range []struct {
		name, config string
		more         []Source
		want         []string
	}{
		{"kind", `{"peft_type": "IA3", "r": 2, "lora_alpha": 2}`, nil, []string{`peft_type is "IA3"`}},
		{"several", `{` + good + `, "bias": "all", "use_dora": true, "modules_to_save": ["lm_head"], "lora_bias": true}`,
			nil, []string{"bias is", "use_dora", "modules_to_save", "lora_bias"}},
		{"unknown", `{` + good + `, "some_new_thing": {"on": 1}}`, nil, []string{`some_new_thing is {"on": 1}`}},
		{"init", `{` + good + `, "init_lora_weights": "pissa_niter_4"}`, nil, []string{"pissa_niter_4", "path_initial_model_for_weight_conversion"}},
		{"rank 0", `{"peft_type": "LORA", "r": 0, "lora_alpha": 2}`, nil, []string{"r is 0"}},
		{"other rank", `{"peft_type": "LORA", "r": 3, "lora_alpha": 2, "target_modules": ["q_proj"]}`, nil, []string{"has rank 2, r is 3"}},
		{"alpha", `{"peft_type": "LORA", "r": 2, "lora_alpha": -1}`, nil, []string{"lora_alpha is -1"}},
		{"alpha pattern", `{` + good + `, "alpha_pattern": {"q_proj": 0, "(?=x)": 1}}`, nil, []string{`"q_proj" has 0`, `"(?=x)"`}},
		{"foreign map", `{` + good + `}`, pair("model.layers.0.mlp.fc1", 2, 8, 10), []string{"model.layers.0.mlp.fc1.lora_A", "q_proj, k_proj"}},
		{"head", `{` + good + `}`, pair("lm_head", 2, 8, 11), []string{"lm_head.lora_A"}},
		{"layer", `{` + good + `}`, pair("model.layers.2.self_attn.q_proj", 2, 8, 8), []string{"layers.2.self_attn.q_proj", "2 layers"}},
		{"shape", `{` + good + `}`, pair("model.layers.1.self_attn.k_proj", 2, 8, 8), []string{"k_proj.lora_B.weight is F32 [8,2]", "4 outputs and 8 inputs"}},
		{"some layers", `{` + good + `}`, pair("model.layers.1.self_attn.k_proj", 2, 8, 4), []string{"model.layers.0.self_attn.k_proj is missing"}},
		{"half", `{` + good + `}`, pair("model.layers.1.self_attn.k_proj", 2, 8, 4)[:1], []string{"one half"}},
	} {
		_, err := ReadAdapters(adapterFolder(t, tt.config, tt.more...), toyQwen2)
		var bad *ConfigError
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not name %s", tt.name, err, want)
			}
		}
	}
	dir := adapterFolder(t, `{`+good+`}`)
	if err := os.Rename(filepath.Join(dir, adapterFile), filepath.Join(dir, "adapter_model.bin")); err != nil {
		t.Fatal(err)
	}
	var e *Error
	if _, err := ReadAdapters(dir, toyQwen2); !errors.As(err, &e) || !strings.Contains(e.Hint, "safe_serialization") {
		t.Errorf("pickled adapters: %v", err)
	}
}

// Scales by alpha, by the root of the rank, and by patterns of names.
func TestReadAdaptersScale(t *testing.T) {
	for _, tt := range []struct {
		config  string
		scales  [2]float64 // of layers 0 and 1
		uniform bool
	}{
		{`{"peft_type": "LORA", "r": 2, "lora_alpha": 6, "target_modules": "all-linear"}`, [2]float64{3, 3}, true},
		{`{"peft_type": "LORA", "r": 2, "lora_alpha": 6, "use_rslora": true}`, [2]float64{6 / math.Sqrt2, 6 / math.Sqrt2}, true},
		{`{"peft_type": "LORA", "r": 2, "lora_alpha": 6, "alpha_pattern": {"^model\\.layers\\.1\\..*": 2, "q_proj": 4}}`, [2]float64{2, 1}, false},
		{`{"peft_type": "LORA", "r": 2, "lora_alpha": 6, "alpha_pattern": {"proj": 4}}`, [2]float64{3, 3}, true},
	} {
		a, err := ReadAdapters(adapterFolder(t, tt.config), toyQwen2)
		if err != nil {
			t.Errorf("%s: %v", tt.config, err)
			continue
		}
		for l, want := range tt.scales {
			name := fmt.Sprintf("model.layers.%d.self_attn.q_proj", l)
			if got := a.Scales()[name]; got != want || math.Abs(a.Shape.Scale()-max(tt.scales[0], tt.scales[1])) > 1e-15 || a.Uniform != tt.uniform {
				t.Errorf("%s: layer %d has scale %v, want %v; %+v", tt.config, l, got, want, a.Shape)
			}
		}
	}
}

// Adapters of a smaller rank and another scale are the same map with zeros and a ratio in
// B; a layer without any has zeros.
func TestAdaptersOfSeveralShapes(t *testing.T) {
	be := ref.New[float32]()
	one := []Source{source("base_model.model.model.layers.1.mlp.up_proj.lora_A.weight", F32, []int{1, 8}, strings.Repeat("\x00\x00\x80\x3f", 8)),
		source("base_model.model.model.layers.1.mlp.up_proj.lora_B.weight", F32, []int{10, 1}, strings.Repeat("\x00\x00\x80\x3f", 10))}
	dir := adapterFolder(t, `{"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": "x", "rank_pattern": {"up_proj": 1}, "alpha_pattern": {"up_proj": 1}}`, one...)
	a, err := ReadAdapters(dir, toyQwen2)
	if err != nil {
		t.Fatal(err)
	}
	if a.Shape.Rank != 2 || a.Shape.Scale() != 2 || a.Uniform {
		t.Fatalf("%+v", a)
	}
	b, err := model.NewBackbone(be, toyQwen2, true, kernels.F32)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.NewOn(b, model.Heads{LM: true, Adapters: &a.Shape}, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Load(be, m); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]float32{
		"layers.0.self_attn.q_proj.lora_B.weight": {2, 2, 2, 2, 2, 2},
		"layers.1.mlp.up_proj.lora_A.weight":      {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0},
		"layers.1.mlp.up_proj.lora_B.weight":      {0.5, 0, 0.5, 0, 0.5, 0}, // alpha/rank is 1 and not 2
		"layers.0.mlp.up_proj.lora_B.weight":      {0, 0, 0, 0},
	} {
		if got := kernels.Elems[float32](m.View("base_model.model.model." + name)); !slices.Equal(got[:len(want)], want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// Adapters of the text part of a larger model have its layers one level deeper.
func TestAdaptersOfATextPart(t *testing.T) {
	for _, deeper := range []string{"model.language_model.", "language_model.model."} {
		name := "base_model.model." + deeper + "layers.1.self_attn.q_proj"
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, adapterConfigFile), []byte(`{"peft_type": "LORA", "r": 1, "lora_alpha": 2, "layers_to_transform": 1}`))
		writeTensors(t, filepath.Join(dir, adapterFile), source(name+".lora_A.weight", F32, []int{1, 8}, strings.Repeat("\x00", 32)), source(name+".lora_B.weight", F32, []int{8, 1}, strings.Repeat("\x00", 32)))
		a, err := ReadAdapters(dir, toyQwen2)
		if err != nil || a.Scales()["model.layers.1.self_attn.q_proj"] != 2 || a.Uniform {
			t.Errorf("%s: %+v, %v", deeper, a, err)
		}
	}
}

// Settings that nobody wrote are refused or read, and nothing panics.
func FuzzAdapterSettings(f *testing.F) {
	f.Add(`{"peft_type": "LORA", "r": 2, "lora_alpha": 4, "alpha_pattern": {"a.*": 2}, "rank_pattern": {"b": 1}}`)
	f.Add(`{"peft_type": 7, "r": -1, "alpha_pattern": [1], "target_modules": {"x": null}}`)
	f.Add(`{"r": 1e99, "lora_alpha": "8", "init_lora_weights": "olora", "alpha_pattern": {"(": 2}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, adapterConfigFile), []byte(text))
		set, err := readAdapterSettings(dir)
		if err == nil && len(set.problems) == 0 && !(set.scale("model.layers.0.self_attn.q_proj", 1) > 0) {
			t.Errorf("scale %v of %s", set.scale("model.layers.0.self_attn.q_proj", 1), text)
		}
	})
}
