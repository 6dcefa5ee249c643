package checkpoint

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/train/model"
	"exp/train/vision"
)

// adaptedPicture makes a model of text and images with adapters on all maps of the language model and of the tower,
// whose numbers are not zero, and the folder's weights with the tower's.
func adaptedPicture(t *testing.T, x pictured, dir string, be kernels.Backend) (m *model.Model, trained Trained) {
	t.Helper()
	c, err := WithTowerMaps(x.config(t, dir), dir)
	if err != nil {
		t.Fatal(err)
	}
	weights, err := openContainer(dir)
	if err == nil {
		weights, err = weights.WithTower(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { weights.Close() })
	base, err := LoadBackbone(be, c, true, kernels.F32, weights)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(base.Close)
	a := &model.Adapters{Rank: 2, Alpha: 3, Targets: c.AdapterTargets(), Tower: c.TowerMaps()}
	if m, err = model.NewOn(base, model.Heads{LM: true, Adapters: a}, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	fill := make([]float32, m.Params().Len())
	for i := range fill {
		fill[i] = float32(math.Sin(float64(i))) / 8
	}
	be.Copy(m.Params(), kernels.Host(fill))
	m.Refresh()
	learned, err := OpenFile(writeTensors(t, filepath.Join(t.TempDir(), "learned.safetensors"), Weights(be, m, Plain)...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { learned.Close() })
	return m, Trained{Config: c, Heads: m.Heads, Weights: weights, Learned: learned}
}

// Adapters on a vision tower have the names of transformers' modules in PEFT's layout and come back as they were, and
// the merged tower makes the features of the adapted one, to rounding. Models of text cannot have them.
func TestAdaptersOnVisionTowers(t *testing.T) {
	eachPictured(t, func(t *testing.T, x pictured, dir string, v5 bool) {
		if !slices.Contains([]string{"qwen2.5-vl", "internvl", "mistral3", "gemma3"}, x.Name) || !v5 {
			return
		}
		be := openCPU(t, kernels.F32)
		m, trained := adaptedPicture(t, x, dir, be)
		frozen, err := LoadTower(be, dir)
		if err != nil {
			t.Fatal(err)
		}
		defer frozen.Close()
		out := filepath.Join(t.TempDir(), "adapter")
		if _, err := trained.WriteAdapterTensors(be, out, dir); err != nil {
			t.Fatal(err)
		}
		checkModules(t, out, frozen.Config)

		read, err := ReadAdapters(out, trained.Config)
		if err != nil || !read.Uniform || !slices.Equal(read.Shape.Tower, m.Heads.Adapters.Tower) {
			t.Fatalf("%+v, %v", read, err)
		}
		again, err := model.NewOn(m.Base(), model.Heads{LM: true, Adapters: &read.Shape}, false)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if err := read.Load(be, again); err != nil {
			t.Fatal(err)
		}
		for _, x := range m.Tensors() {
			if !slices.Equal(kernels.Elems[float32](again.View(x.Name)), kernels.Elems[float32](m.View(x.Name))) {
				t.Errorf("%s came back as another", x.Name)
			}
		}
		if _, err := ReadAdapters(out, trained.Config.WithoutTower()); err == nil || !strings.Contains(err.Error(), "no adapter can target") {
			t.Errorf("on a model without a tower: %v", err)
		}

		adapted, err := AdaptedTower(frozen, again)
		if err != nil {
			t.Fatal(err)
		}
		defer adapted.Close()
		adapted.Refresh()
		merged := filepath.Join(t.TempDir(), "merged")
		origin, err := ReadOrigin(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := MergeTensors(be, trained, merged, MergeOptions{Origin: origin}); err != nil {
			t.Fatal(err)
		}
		folded, err := LoadTower(be, merged)
		if err != nil {
			t.Fatal(err)
		}
		defer folded.Close()
		p := x.patchesOf(frozen.Config, 0)
		got, want, before := adapted.Encode(be, p), folded.Encode(be, p), frozen.Encode(be, p)
		off, moved, largest := 0.0, 0.0, 0.0
		for i, v := range got {
			off, moved = max(off, math.Abs(float64(v-want[i]))), max(moved, math.Abs(float64(v-before[i])))
			largest = max(largest, math.Abs(float64(v)))
		}
		if !(off <= 1e-4*largest) || moved < 1e-2*largest {
			t.Errorf("features up to %g move by %g, and the merged tower's are off by %g", largest, moved, off)
		}
	})
}

// checkModules checks the names in a folder of adapters on all maps.
func checkModules(t *testing.T, dir string, c vision.Config) {
	t.Helper()
	var settings struct {
		Targets []string `json:"target_modules"`
	}
	if err := json.Unmarshal(readFile(t, filepath.Join(dir, adapterConfigFile)), &settings); err != nil {
		t.Fatal(err)
	}
	for _, name := range c.Kind.Modules() { // of the first block
		if !slices.Contains(settings.Targets, name) {
			t.Errorf("%s is not a target", name)
		}
	}
	written, err := OpenFile(filepath.Join(dir, adapterFile))
	if err != nil {
		t.Fatal(err)
	}
	defer written.Close()
	for _, a := range written.List() {
		name, _ := mapOf(a.Name)
		if !slices.Contains(settings.Targets, name) || strings.Contains(name, "patch_embed") {
			t.Errorf("%s is on no target", a.Name)
		}
	}
	if n := len(written.List()); n != 2*len(settings.Targets) {
		t.Errorf("%d tensors for %d targets", n, len(settings.Targets))
	}
}
