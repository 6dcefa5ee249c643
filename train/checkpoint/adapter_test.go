package checkpoint

import (
	"bytes"
	"errors"
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
	got, err := ReadAdapters(dir, toyQwen2)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(a.Targets)
	if got.Rank != a.Rank || got.Alpha != a.Alpha || got.Dropout != a.Dropout || !slices.Equal(got.Targets, a.Targets) {
		t.Errorf("read %+v, wrote %+v", got, a)
	}
	again, err := model.NewOn(b, model.Heads{LM: true, Adapters: got}, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := LoadAdapters(be, again, dir); err != nil {
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

// What this program does not compute is refused with every reason at once.
func TestReadAdaptersRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, config string
		want         []string
	}{
		{"kind", `{"peft_type": "IA3", "r": 2, "lora_alpha": 2, "target_modules": ["q_proj"]}`, []string{"IA3"}},
		{"several", `{"peft_type": "LORA", "r": 2, "lora_alpha": 2, "target_modules": ["q_proj"], "bias": "all", "use_dora": true, "modules_to_save": ["lm_head"]}`,
			[]string{"bias", "use_dora", "modules_to_save"}},
		{"ranks", `{"peft_type": "LORA", "r": 2, "lora_alpha": 2, "target_modules": ["q_proj"], "rank_pattern": {"q_proj": 4}}`, []string{"several ranks"}},
		{"target", `{"peft_type": "LORA", "r": 2, "lora_alpha": 2, "target_modules": "fc1"}`, []string{`"fc1"`, "q_proj"}},
		{"rank", `{"peft_type": "LORA", "r": 0, "lora_alpha": 2, "target_modules": ["q_proj"]}`, []string{"rank 0"}},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, adapterConfigFile), []byte(tt.config), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := ReadAdapters(dir, toyQwen2)
		var bad *ConfigError
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		for _, want := range tt.want {
			if !bytes.Contains([]byte(err.Error()), []byte(want)) {
				t.Errorf("%s: %q does not name %s", tt.name, err, want)
			}
		}
	}
}

// Scales of rank-stabilised adapters, and PEFT's word for all linear maps.
func TestReadAdaptersScale(t *testing.T) {
	dir := t.TempDir()
	config := `{"peft_type": "LORA", "r": 4, "lora_alpha": 6, "use_rslora": true, "target_modules": "all-linear"}`
	if err := os.WriteFile(filepath.Join(dir, adapterConfigFile), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	a, err := ReadAdapters(dir, toyQwen2)
	if err != nil || a.Scale() != 3 || len(a.Targets) != 7 { // 6/√4
		t.Errorf("%+v, %v", a, err)
	}
}
