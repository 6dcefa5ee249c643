package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/model"
	"exp/train/picture"
	"exp/train/vision"
)

// pictured is a tiny model of testdata/images.json, which images.py wrote. Weights of the language model are waves,
// and so are those of the vision tower, by the names of package vision. Number i of image k's patches is
// sin(0.003·i² + k).
type pictured struct {
	Name   string
	Config jsonObject
	Images []struct {
		Rows, Columns int       // of patches
		Features      int       // numbers in all, [1+Deep][tokens][width]
		Every7th      []float64 // of them
	}
	Tokens []int32     // with the config's image_token_id for each token of an image
	Rows   []int       // of Logits
	Logits [][]float64 // after the tokens of Rows
}

// eachPictured calls f with every model and its folder, in a layout of transformers 4 or 5.
func eachPictured(t *testing.T, f func(t *testing.T, x pictured, dir string, v5 bool)) {
	var all struct{ Models []pictured }
	if err := json.Unmarshal(readFile(t, filepath.Join("testdata", "images.json")), &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Models) != 3 {
		t.Fatalf("%d models", len(all.Models))
	}
	for _, x := range all.Models {
		for _, v5 := range []bool{false, true} {
			t.Run(x.Name+map[bool]string{true: "/transformers 5"}[v5], func(t *testing.T) {
				dir := t.TempDir()
				writeFile(t, filepath.Join(dir, configFile), compact(x.Config))
				writeTensors(t, filepath.Join(dir, weightsFile), picturedWeights(t, dir, v5)...)
				f(t, x, dir, v5)
			})
		}
	}
}

// picturedWeights returns the tensors of such a model under the names of a layout.
func picturedWeights(t *testing.T, dir string, v5 bool) []Source {
	t.Helper()
	c, err := ReadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	tower, err := readTower(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := waves(c)
	for i := range list {
		if rest, ok := strings.CutPrefix(list[i].Name, backbonePrefix); ok && v5 {
			list[i].Name = languageModel + rest
		}
	}
	prefix := "visual."
	if v5 {
		prefix = "model.visual."
	}
	for _, x := range towerWaves(tower) {
		x.Name = prefix + x.Name
		list = append(list, x)
	}
	return list
}

// towerWaves are the weights of a tower.
func towerWaves(c vision.Config) (list []Source) {
	tensors := c.Tensors()
	slices.SortFunc(tensors, func(a, b vision.Tensor) int { return cmp.Compare(a.Name, b.Name) })
	for k, x := range tensors {
		var raw []byte
		for i := range x.Len() {
			v := math.Sin(0.37*float64(i)*float64(1+k%3)+float64(k)) / 2
			if strings.Contains(x.Name, "norm") || strings.Contains(x.Name, "ln_q") {
				v = 1 + 0.6*v
			}
			raw = appendF32(raw, float32(v))
		}
		list = append(list, source(x.Name, F32, x.Shape, string(raw)))
	}
	return list
}

// patchesOf returns image k of a model.
func (x pictured) patchesOf(c vision.Config, k int) picture.Patches {
	im := x.Images[k]
	p := picture.Patches{Rows: im.Rows, Columns: im.Columns,
		Values: make([]float32, im.Rows*im.Columns*c.Channels*c.Frames*c.Patch*c.Patch)}
	for i := range p.Values {
		p.Values[i] = float32(math.Sin(float64(0.003*float64(i)*float64(i)) + float64(k)))
	}
	return p
}

func TestTowersComputeAsTransformers(t *testing.T) {
	eachPictured(t, func(t *testing.T, x pictured, dir string, _ bool) {
		for _, b := range []struct {
			be    kernels.Backend
			limit float64 // of the largest feature
		}{{ref.New[float64](), 1e-9}, {ref.New[float32](), 1e-5}, {openCPU(t, kernels.F32), 1e-5}} {
			tower, err := LoadTower(b.be, dir)
			if err != nil {
				t.Fatal(err)
			}
			for k, im := range x.Images {
				got := make([]float64, im.Features)
				tower.EncodeInto(b.be, x.patchesOf(tower.Config, k), kernels.Host(got))
				worst, largest := 0.0, 0.0
				for i, w := range im.Every7th {
					worst, largest = max(worst, math.Abs(got[7*i]-w)), max(largest, math.Abs(w))
				}
				if !(worst <= b.limit*largest) {
					t.Errorf("%s, image %d: features differ by %g from transformers' up to %g", b.be.Name(), k, worst,
						largest)
				}
			}
			tower.Close()
		}
	})
}

// The reference in float32 and the fast backend give the same bits.
func TestTowersHaveOneResult(t *testing.T) {
	eachPictured(t, func(t *testing.T, x pictured, dir string, _ bool) {
		var want [][]float32
		for _, be := range []kernels.Backend{ref.New[float32](), openCPU(t, kernels.F32)} {
			tower, err := LoadTower(be, dir)
			if err != nil {
				t.Fatal(err)
			}
			for k := range x.Images {
				got := tower.Encode(be, x.patchesOf(tower.Config, k))
				if be.Name() == "ref" {
					want = append(want, got)
				} else if !slices.Equal(got, want[k]) {
					t.Errorf("%s, image %d: other bits than the reference", be.Name(), k)
				}
			}
			tower.Close()
		}
	})
}

// ReadConfig says how a model reads images, and OpenFolder has its language model under plain names.
func TestLanguageModelsOfImages(t *testing.T) {
	want := map[string]model.ImageSettings{"qwen2-vl": {Sections: [3]int{3, 2, 1}},
		"qwen2.5-vl": {Sections: [3]int{3, 2, 1}},
		"qwen3-vl":   {Sections: [3]int{4, 2, 2}, Interleaved: true, Deep: 2}}
	eachPictured(t, func(t *testing.T, x pictured, dir string, _ bool) {
		c, err := ReadConfig(dir)
		if err != nil || c.Images != want[x.Name] {
			t.Fatal(c.Images, err)
		}
		text, err := ReadTextConfig(dir)
		if err != nil || text.ReadsImages() {
			t.Fatal(text, err)
		}
		if id, err := ImageToken(dir); err != nil || id != 7 {
			t.Fatal(id, err)
		}
		whole, err := OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer whole.Close()
		if err := whole.Fits(c); err != nil {
			t.Fatal(err)
		}
		part, err := OpenTextFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer part.Close()
		if err := errors.Join(whole.holds(waves(c)), part.holds(waves(text))); err != nil {
			t.Error(err)
		}
		tower, err := OpenTower(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer tower.Close()
		settings, _ := readTower(dir)
		if err := tower.holds(towerWaves(settings)); err != nil {
			t.Error(err)
		}
	})
}

// A merged folder keeps the class, every key of config.json, the processor's files and the vision tower's bits next to
// the trained weights, all under the names of its source.
func TestMergedModelsOfImages(t *testing.T) {
	eachPictured(t, func(t *testing.T, x pictured, dir string, _ bool) {
		be := openCPU(t, kernels.F32)
		texts := map[string][]byte{"preprocessor_config.json": []byte(`{"patch_size": 4}`),
			"video_preprocessor_config.json": []byte("{}")}
		for name, text := range texts {
			writeFile(t, filepath.Join(dir, name), text)
		}
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		learned := waves(c)
		for i := range learned { // as if training had doubled each number
			learned[i].Raw = doubled(learned[i].Raw)
		}
		file := writeTensors(t, filepath.Join(t.TempDir(), "learned.safetensors"), learned...)
		weights, err := OpenFile(file)
		if err != nil {
			t.Fatal(err)
		}
		defer weights.Close()
		origin, err := ReadOrigin(dir)
		if err != nil {
			t.Fatal(err)
		}
		trained := Trained{Config: c, Heads: model.Heads{LM: true}, Weights: weights, Learned: weights}
		out := filepath.Join(t.TempDir(), "merged")
		o := MergeOptions{Tokenizer: charFiles(t), EndIDs: []int32{2}, Origin: origin}
		o.Tokenizer["chat_template.json"] = []byte("{}")
		if _, err := MergeTensors(be, trained, out, o); err != nil {
			t.Fatal(err)
		}
		for name, text := range texts {
			if got := readFile(t, filepath.Join(out, name)); string(got) != string(text) {
				t.Errorf("%s is %s", name, got)
			}
		}
		if got := readFile(t, filepath.Join(out, configFile)); !sameJSON(got, x.Config) {
			t.Errorf("config.json is %s", got)
		}
		from, to := openPlain(t, dir), openPlain(t, out)
		if len(from.List()) != len(to.List()) {
			t.Fatalf("%d tensors, the source has %d", len(to.List()), len(from.List()))
		}
		for _, x := range from.Sources() {
			_, tower := towerName(x.Name)
			if !tower {
				x.Raw = doubled(x.Raw)
			}
			var want, got strings.Builder
			if err := errors.Join(x.Raw(&want), copyRaw(&got, to, x.Name)); err != nil {
				t.Fatal(err)
			}
			if want.String() != got.String() {
				t.Errorf("%s: other elements", x.Name)
			}
		}
		o.Origin, o.Replace = nil, true
		if _, err := MergeTensors(be, trained, out, o); !errors.Is(err, errNoTower) {
			t.Errorf("without a source: %v", err)
		}
	})
}

// doubled is a source of twice the float32 numbers of another.
func doubled(raw func(w io.Writer) error) func(w io.Writer) error {
	return func(w io.Writer) error {
		var b bytes.Buffer
		if err := raw(&b); err != nil {
			return err
		}
		list := make([]float32, b.Len()/4)
		decode(list, b.Bytes())
		for i := range list {
			list[i] *= 2
		}
		return binary.Write(w, binary.LittleEndian, list)
	}
}

func openPlain(t *testing.T, dir string) *Tensors {
	t.Helper()
	x, err := OpenFile(filepath.Join(dir, weightsFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

func copyRaw(w io.Writer, t *Tensors, name string) error {
	if _, ok := t.Lookup(name); !ok {
		return errors.New("no tensor " + name)
	}
	_, err := io.Copy(w, t.raw(name))
	return err
}

// What a tower or the positions of images do not compute is refused by name.
func TestImagesAreRefused(t *testing.T) {
	type object = jsonObject
	for name, tt := range map[string]struct {
		class  string
		change func(whole, text, tower object)
		want   string
	}{
		"rope": {"Qwen2_5_VL", func(_, text, _ object) {
			text["rope_scaling"] = object{"type": "yarn", "factor": 4.0, "mrope_section": []int{3, 2, 1},
				"original_max_position_embeddings": 64}
		}, `rope type "yarn" is not supported with images`},
		"no sections": {"Qwen2VL", func(_, text, _ object) { text["rope_scaling"] = object{"type": "default"} },
			"mrope_section is []"},
		"sections": {"Qwen2VL", func(_, text, _ object) {
			text["rope_scaling"] = object{"type": "mrope", "mrope_section": []int{3, 2, 2}}
		}, "sections [3 2 2] are 7 rotary pairs"},
		"apart": {"Qwen3VL", func(_, text, _ object) {
			text["rope_scaling"] = object{"type": "mrope", "mrope_section": []int{3, 2, 1}, "mrope_interleaved": false}
		}, "mrope_interleaved is false"},
		"activation": {"Qwen2_5_VL", func(_, _, tower object) { tower["hidden_act"] = "gelu" }, `activation "gelu"`},
		"grey":       {"Qwen2VL", func(_, _, tower object) { tower["in_channels"] = 1 }, "in_channels is 1"},
		"heads":      {"Qwen2VL", func(_, _, tower object) { tower["num_heads"] = 5 }, "24 channels in 5 heads"},
		"quantized": {"Qwen2VL", func(_, _, tower object) { tower["quantization_config"] = object{"bits": 4} },
			"quantized vision tower"},
		"turns": {"Qwen2VL", func(_, _, tower object) { tower["rope_parameters"] = object{"rope_theta": 2e4} },
			"only axial with theta 10000"},
		"square": {"Qwen3VL", func(_, _, tower object) { tower["num_position_embeddings"] = 5 }, "no square number"},
		"layers": {"Qwen3VL", func(_, _, tower object) { tower["deepstack_visual_indexes"] = []int{1, 0} }, "do not ascend"},
		"width":  {"Qwen3VL", func(_, _, tower object) { tower["out_hidden_size"] = 25 }, "have 25 channels, but hidden_size is 24"},
		"tower":  {"Qwen2VL", func(whole, _, _ object) { delete(whole, "vision_config") }, "vision_config is missing"},
		"class": {"Gemma3", func(whole, _, _ object) { whole["model_type"] = "gemma3" },
			"only its text part is supported"},
	} {
		t.Run(name, func(t *testing.T) {
			text := object{"vocab_size": 9, "hidden_size": 24, "intermediate_size": 6, "num_hidden_layers": 2,
				"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 12, "rms_norm_eps": 1e-6,
				"max_position_embeddings": 64, "rope_theta": 1e4, "rope_scaling": object{"type": "mrope", "mrope_section": []int{3, 2, 1}}}
			tower := object{"depth": 2, "num_heads": 2, "hidden_size": 24, "out_hidden_size": 24, "embed_dim": 24,
				"intermediate_size": 8, "mlp_ratio": 2, "num_position_embeddings": 4, "deepstack_visual_indexes": []int{0},
				"fullatt_block_indexes": []int{1}}
			whole := object{"architectures": []string{tt.class + "ForConditionalGeneration"}, "text_config": text,
				"vision_config": tower}
			if tt.class != "Gemma3" {
				whole["model_type"] = map[string]string{"Qwen2VL": "qwen2_vl", "Qwen2_5_VL": "qwen2_5_vl", "Qwen3VL": "qwen3_vl"}[tt.class]
				dir := t.TempDir()
				writeFile(t, filepath.Join(dir, configFile), compact(whole))
				if c, err := ReadConfig(dir); err != nil || !c.ReadsImages() {
					t.Fatalf("before the change: %v", err)
				}
			}
			tt.change(whole, text, tower)
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, configFile), compact(whole))
			if _, err := ReadConfig(dir); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
