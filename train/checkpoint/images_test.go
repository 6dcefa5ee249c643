package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/model"
	"exp/train/picture"
	"exp/train/vision"
)

// pictured is a tiny model of testdata/images.json, which images.py wrote. Weights of the language model are waves,
// and so are the vision tower's, by the names of package vision. Number i of image k's patches is
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
	if len(all.Models) != 14 {
		t.Fatalf("%d models", len(all.Models))
	}
	for _, x := range all.Models {
		for _, v5 := range []bool{false, true} {
			if !v5 && (x.Name == "qwen3-vl" || x.onRequest() || strings.HasPrefix(x.Name, "glm4v") ||
				x.Name == "internvl-6b" || x.split()) {
				continue // transformers 4 has the names of 5 in most of these classes, but experts of Qwen3-VL turned
			}
			t.Run(x.Name+map[bool]string{true: "/transformers 5"}[v5], func(t *testing.T) {
				dir := t.TempDir()
				writeFile(t, filepath.Join(dir, configFile), compact(x.Config))
				writeTensors(t, filepath.Join(dir, weightsFile), x.weights(t, dir, v5)...)
				f(t, x, dir, v5)
			})
		}
	}
}

// onRequest reports whether images of its class are read on request alone.
func (x pictured) onRequest() bool { return strings.HasPrefix(x.Name, "qwen3.5") }

// split reports whether its images are Idefics3's tiles.
func (x pictured) split() bool { return x.Name == "idefics3" || x.Name == "smolvlm" }

// inner begins the names of its language model's tensors as transformers 5 writes them.
func (x pictured) inner() string {
	if x.split() {
		return textModel
	}
	return languageModel
}

// config returns the architecture with images.
func (x pictured) config(t *testing.T, dir string) model.Config {
	t.Helper()
	read := ReadConfig
	if x.onRequest() {
		read = ReadImageConfig
	}
	c, err := read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// weights returns the tensors of such a model under the names of a layout. Qwen3.5 has layers that predict further
// tokens in its files, which are not read.
func (x pictured) weights(t *testing.T, dir string, v5 bool) []Source {
	t.Helper()
	c := x.config(t, dir)
	tower, err := readTower(dir)
	if err != nil {
		t.Fatal(err)
	}
	moe := c.Experts.Count > 0
	list := stackExperts(waves(c), c, !v5)
	if x.onRequest() {
		list = append(fusedExperts(list), source("mtp.fc.weight", F32, []int{1}, "abcd"))
	}
	for i := range list {
		rest, inner := strings.CutPrefix(list[i].Name, backbonePrefix)
		switch {
		case inner && (v5 || moe):
			list[i].Name = x.inner() + rest
		case !v5 && (tower.Kind == vision.InternVL || tower.Kind == vision.Pixtral || tower.Kind == vision.Gemma3):
			list[i].Name = "language_model." + list[i].Name
		}
	}
	for _, x := range towerWaves(tower) {
		names := storedNames(x.Name)
		x.Name = names[1]
		if tower.Kind == vision.Gemma3 {
			x.Name = names[len(names)-1] // as published
		}
		if v5 || moe {
			x.Name = names[0]
		}
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

// painted are images whose features are computed beforehand (model.Images).
type painted struct {
	images   []model.Image
	features [][]float32
}

func (x *painted) Of(id int32) model.Image {
	for _, im := range x.images {
		if id >= im.First && id < im.First+int32(im.Tokens()) {
			return im
		}
	}
	panic("no image")
}

func (x *painted) Features(_ kernels.Backend, im model.Image) []float32 {
	return x.features[slices.Index(x.images, im)]
}

// show gives the model its images, and returns its tokens with the ids of the images' tokens for placeholders.
func (x pictured) show(t *testing.T, be kernels.Backend, dir string, m *model.Model) []int32 {
	t.Helper()
	tower, err := LoadTower(be, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tower.Close()
	placeholder, err := ImageToken(dir)
	if err != nil {
		t.Fatal(err)
	}
	all, next := &painted{}, int32(m.Config.Vocab)
	for k, im := range x.Images {
		all.images = append(all.images, model.Image{First: next, Rows: im.Rows / tower.Config.Merge,
			Columns: im.Columns / tower.Config.Merge})
		all.features = append(all.features, tower.Encode(be, x.patchesOf(tower.Config, k)))
		next += int32(all.images[k].Tokens())
	}
	m.SetImages(all)
	tokens, id := slices.Clone(x.Tokens), int32(m.Config.Vocab)
	for i := range tokens {
		if tokens[i] == placeholder {
			tokens[i] = id
			id++
		}
	}
	if id != next {
		t.Fatalf("%d tokens of images, of %d", id-int32(m.Config.Vocab), next-int32(m.Config.Vocab))
	}
	return tokens
}

// Logits of a sequence that shows two images are transformers'. Features are float32 even on a float64 reference.
func TestModelsOfImagesComputeAsTransformers(t *testing.T) {
	eachPictured(t, func(t *testing.T, x pictured, dir string, _ bool) {
		for _, b := range []struct {
			be    kernels.Backend
			limit float64
		}{{ref.New[float64](), 2e-6}, {openCPU(t, kernels.F32), 2e-5}} {
			c := x.config(t, dir)
			m, err := model.New(b.be, c, model.Heads{LM: true}, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := LoadFolder(b.be, m, dir); err != nil {
				t.Fatal(err)
			}
			got := logitsOf(t, b.be, m, x.show(t, b.be, dir, m))
			worst := 0.0
			for i, row := range x.Rows {
				for v, w := range x.Logits[i] {
					worst = max(worst, math.Abs(got[row*c.Vocab+v]-w))
				}
			}
			if !(worst <= b.limit) {
				t.Errorf("%s: logits differ by %g from transformers'", b.be.Name(), worst)
			}
			m.Close()
		}
	})
}

// ReadConfig says how a model reads images, and OpenFolder has its language model under plain names.
func TestLanguageModelsOfImages(t *testing.T) {
	want := map[string]model.ImageSettings{"qwen2-vl": {Sections: [3]int{3, 2, 1}},
		"qwen2.5-vl":   {Sections: [3]int{3, 2, 1}},
		"qwen3-vl":     {Sections: [3]int{4, 2, 2}, Interleaved: true, Deep: 2},
		"qwen3-vl-moe": {Sections: [3]int{4, 2, 2}, Interleaved: true, Deep: 1},
		"qwen3.5":      {Sections: [3]int{3, 2, 1}, Interleaved: true},
		"qwen3.5-moe":  {Sections: [3]int{3, 2, 1}, Interleaved: true},
		"glm4v":        {Sections: [3]int{1, 1, 1}},
		"glm4v-moe":    {Sections: [3]int{1, 1, 1}},
		"internvl":     {Flat: true},
		"internvl-6b":  {Flat: true},
		"idefics3":     {Flat: true, Module: "text_model"},
		"smolvlm":      {Flat: true, Module: "text_model"},
		"mistral3":     {Flat: true},
		"gemma3":       {Flat: true, Block: 4}}
	eachPictured(t, func(t *testing.T, x pictured, dir string, _ bool) {
		c := x.config(t, dir)
		if c.Images != want[x.Name] {
			t.Fatal(c.Images)
		}
		readText, openText := ReadTextConfig, OpenTextFolder
		if x.onRequest() {
			readText, openText = ReadConfig, OpenFolder
		} else if _, err := ReadImageConfig(dir); err == nil || !strings.Contains(err.Error(), "are read anyway") {
			t.Errorf("its images on request: %v", err)
		}
		if strings.HasPrefix(x.Name, "glm4v") { // GLM-4.6V has the same parts
			other := maps.Clone(x.Config)
			other["architectures"], other["model_type"] = []string{"Glm46VForConditionalGeneration"}, "glm46v"
			if got, err := parseConfig(configFile, compact(other), usual); err != nil || !reflect.DeepEqual(got, c) {
				t.Errorf("as GLM-4.6V it is %+v (%v)", got, err)
			}
		}
		text, err := readText(dir)
		if err != nil || text.ReadsImages() {
			t.Fatal(text, err)
		}
		if text.Images = c.Images; !reflect.DeepEqual(text, c) {
			t.Errorf("the text part is %+v, the whole %+v", text, c)
		}
		text.Images = model.ImageSettings{}
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
		part, err := openText(dir)
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
		c := x.config(t, dir)
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
		from, to := writtenTensors(t, dir), writtenTensors(t, out)
		for name, raw := range from {
			if _, tower := towerName(name); !tower {
				from[name] = string(twice([]byte(raw)))
			}
		}
		delete(from, "mtp.fc.weight")
		if !maps.Equal(from, to) {
			t.Errorf("tensors %v, want %v, or other elements", sortedKeys(to), sortedKeys(from))
		}
		o.Origin, o.Replace = nil, true
		if _, err := MergeTensors(be, trained, out, o); !errors.Is(err, errNoTower) {
			t.Errorf("without a source: %v", err)
		}
	})
}

// The files of ranks of another trainer have the names of the whole.
func TestShapesOfModelsOfImages(t *testing.T) {
	eachPictured(t, func(t *testing.T, x pictured, dir string, v5 bool) {
		wanted := (&Container{Texts: dir}).wanted()
		for _, s := range x.weights(t, dir, v5) {
			if strings.Contains(s.Name, expertsOf) || strings.HasPrefix(s.Name, "mtp.") { // all of a layer in one
				continue
			}
			if shape, ok := wanted(s.Name); !ok || !slices.Equal(shape, s.Shape) {
				t.Errorf("%s has shape %v, not %v", s.Name, shape, s.Shape)
			}
		}
		if shape, ok := wanted("model.layers.9.mlp.up_proj.weight"); ok {
			t.Errorf("no layer 9, but a shape %v", shape)
		}
	})
}

// The text part alone is written as a plain language model, and exp merge copies the whole folder.
func TestPartsOfModelsOfImages(t *testing.T) {
	plain := map[string]string{"qwen2-vl": "Qwen2ForCausalLM", "qwen2.5-vl": "Qwen2ForCausalLM",
		"qwen3-vl": "Qwen3ForCausalLM", "qwen3-vl-moe": "Qwen3MoeForCausalLM",
		"qwen3.5": "Qwen3_5ForCausalLM", "qwen3.5-moe": "Qwen3_5MoeForCausalLM", "glm4v": "Glm4ForCausalLM",
		"glm4v-moe": "Glm4MoeForCausalLM", "internvl": "Qwen2ForCausalLM", "internvl-6b": "Qwen3ForCausalLM",
		"idefics3": "LlamaForCausalLM", "smolvlm": "LlamaForCausalLM", "mistral3": "MistralForCausalLM",
		"gemma3": "Gemma3ForCausalLM"}
	eachPictured(t, func(t *testing.T, x pictured, dir string, _ bool) {
		readText, openText := ReadTextConfig, OpenTextFolder
		if x.onRequest() {
			readText, openText = ReadConfig, OpenFolder
		}
		c, err := readText(dir)
		if err != nil {
			t.Fatal(err)
		}
		weights, err := openText(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer weights.Close()
		origin, err := ReadOrigin(dir)
		if err != nil {
			t.Fatal(err)
		}
		trained := Trained{Config: c, Heads: model.Heads{LM: true}, Weights: weights, Learned: weights}
		out := filepath.Join(t.TempDir(), "text")
		if _, err := MergeTensors(openCPU(t, kernels.F32), trained, out, MergeOptions{Origin: origin}); err != nil {
			t.Fatal(err)
		}
		if class := classIn(out); class != plain[x.Name] {
			t.Errorf("the text part is a %s", class)
		}
		if got, err := ReadConfig(out); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%+v, %v", got, err)
		}
		from, err := FindContainer(dir)
		if err != nil {
			t.Fatal(err)
		}
		all := filepath.Join(t.TempDir(), "all")
		if _, err := Pack(t.Context(), from, all, PackOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := openPlain(t, all).holds(openPlain(t, dir).Sources()); err != nil {
			t.Error(err)
		}
		if _, err := ReadConfig(all); err != nil {
			t.Error(err)
		}
	})
}

// Adapters have the names of modules in transformers 5, and a pattern that leaves the vision tower alone: PEFT 0.21
// loads them so. They come back as they were.
func TestAdaptersOfModelsOfImages(t *testing.T) {
	eachPictured(t, func(t *testing.T, x pictured, dir string, _ bool) {
		be := openCPU(t, kernels.F32)
		c := x.config(t, dir)
		weights, err := OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer weights.Close()
		base, err := LoadBackbone(be, c, true, kernels.F32, weights)
		if err != nil {
			t.Fatal(err)
		}
		defer base.Close()
		block := "mlp.gate_proj"
		if x.onRequest() { // whose experts have no adapters
			block = "linear_attn.out_proj"
		} else if c.FusedFFN {
			block = "mlp.gate_up_proj"
		}
		a := &model.Adapters{Rank: 2, Alpha: 3, Targets: []string{"q_proj", block[strings.Index(block, ".")+1:]}}
		m, err := model.NewOn(base, model.Heads{LM: true, Adapters: a}, true)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		fill := make([]float32, m.Params().Len())
		for i := range fill {
			fill[i] = float32(i%11) / 7
		}
		be.Copy(m.Params(), kernels.Host(fill))
		file := writeTensors(t, filepath.Join(t.TempDir(), "learned.safetensors"), Weights(be, m, Plain)...)
		learned, err := OpenFile(file)
		if err != nil {
			t.Fatal(err)
		}
		defer learned.Close()
		trained := Trained{Config: c, Heads: m.Heads, Weights: weights, Learned: learned}
		out := filepath.Join(t.TempDir(), "adapter")
		if _, err := trained.WriteAdapterTensors(be, out, dir); err != nil {
			t.Fatal(err)
		}
		var settings struct {
			Targets string `json:"target_modules"`
		}
		if err := json.Unmarshal(readFile(t, filepath.Join(out, adapterConfigFile)), &settings); err != nil {
			t.Fatal(err)
		}
		targets := regexp.MustCompile("^(?:" + settings.Targets + ")$")
		for name, want := range map[string]bool{x.inner() + "layers.2.self_attn.q_proj": true,
			x.inner() + "layers.0." + block: true, x.inner() + "layers.0.mlp.up_proj": false,
			"model.visual.blocks.0." + block: false, "model.vision_model.encoder.layers.0.self_attn.q_proj": false} {
			if got := targets.MatchString(name); got != want {
				t.Errorf("%s targets %s: %v", settings.Targets, name, got)
			}
		}
		written, err := OpenFile(filepath.Join(out, adapterFile))
		if err != nil {
			t.Fatal(err)
		}
		defer written.Close()
		for _, a := range written.List() {
			if !strings.HasPrefix(a.Name, "base_model.model."+x.inner()+"layers.") {
				t.Errorf("PEFT has no tensor %s", a.Name)
			}
		}
		read, err := ReadAdapters(out, c)
		if err != nil || !read.Uniform {
			t.Fatal(read, err)
		}
		again, err := model.NewOn(base, model.Heads{LM: true, Adapters: &read.Shape}, false)
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
	})
}

// A published file of transformers 4: settings of the text model lie next to vision_config.
func TestPublishedModelOfImages(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, configFile), []byte(`{"architectures": ["Qwen2_5_VLForConditionalGeneration"],
		"attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151645, "vision_start_token_id": 151652,
		"vision_end_token_id": 151653, "vision_token_id": 151654, "image_token_id": 151655, "video_token_id": 151656,
		"hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 11008,
		"max_position_embeddings": 128000, "max_window_layers": 70, "model_type": "qwen2_5_vl",
		"num_attention_heads": 16, "num_hidden_layers": 36, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
		"rope_theta": 1000000.0, "sliding_window": 32768, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
		"use_cache": true, "use_sliding_window": false, "vision_config": {"depth": 32, "hidden_act": "silu",
		"hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "in_chans": 3, "out_hidden_size": 2048,
		"patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14, "window_size": 112,
		"fullatt_block_indexes": [7, 15, 23, 31], "tokens_per_second": 2, "temporal_patch_size": 2},
		"rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}, "vocab_size": 151936}`))
	c, err := ReadConfig(dir)
	if want := (model.ImageSettings{Sections: [3]int{16, 24, 24}}); err != nil || c.Images != want || c.Width != 2048 ||
		!c.TieEmbeddings || !c.QKVBias {
		t.Errorf("%+v, %v", c, err)
	}
	tower, err := readTower(dir)
	want := vision.Config{Kind: vision.Qwen25VL, Layers: 32, Width: 1280, Heads: 16, FFN: 3420, Activation: "silu",
		Channels: 3, Patch: 14, Frames: 2, Merge: 2, Out: 2048, Window: 4, Full: []int{7, 15, 23, 31}}
	if diff := gocmp.Diff(want, tower); err != nil || diff != "" {
		t.Error(diff, err)
	}
	writeFile(t, filepath.Join(dir, "preprocessor_config.json"), []byte(`{"min_pixels": 3136, "max_pixels": 12845056,
		"patch_size": 14, "temporal_patch_size": 2, "merge_size": 2, "image_processor_type": "Qwen2VLImageProcessor"}`))
	if _, s, err := ReadVision(dir); err != nil || s.MaxPixels != 12845056 {
		t.Errorf("%+v, %v", s, err)
	}
	writeFile(t, filepath.Join(dir, "preprocessor_config.json"), []byte(`{"patch_size": 16,
		"image_processor_type": "Qwen2VLImageProcessor"}`))
	if _, _, err := ReadVision(dir); err == nil || !strings.Contains(err.Error(), "patches of 14 pixels") {
		t.Errorf("patches of two sizes: %v", err)
	}
	raw, err := wholeJSON(readFile(t, filepath.Join(dir, configFile)), c, F32)
	if err != nil || !strings.Contains(string(raw), `"torch_dtype": "float32"`) {
		t.Errorf("%s, %v", raw, err)
	}
}

// Published files of other families: GLM-4.1V-9B-Thinking, InternVL3-1B-hf, SmolVLM2-500M-Video-Instruct,
// SmolVLM2-2.2B-Instruct and Idefics3-8B-Llama3, the last two shortened to what counts. Files of Idefics3 and SmolVLM
// leave out defaults of LlamaConfig.
func TestPublishedModelsOfOtherTowers(t *testing.T) {
	for name, tt := range map[string]struct {
		config, processor, other string
		tower                    vision.Config
		images                   model.ImageSettings
		tokens                   [2]int // of an image of 1000×600 pixels
	}{
		"glm": {`{"architectures": ["Glm4vForConditionalGeneration"], "model_type": "glm4v", "attention_bias": true,
			"image_token_id": 151343, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 13696,
			"max_position_embeddings": 65536, "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 2,
			"rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"vocab_size": 151552, "partial_rotary_factor": 0.5, "rope_scaling": {"type": "default", "mrope_section": [8, 12, 12]},
			"vision_config": {"hidden_size": 1536, "depth": 24, "num_heads": 12, "attention_bias": false,
			"intermediate_size": 13696, "hidden_act": "silu", "hidden_dropout_prob": 0.0, "image_size": 336, "patch_size": 14,
			"out_hidden_size": 4096, "rms_norm_eps": 1e-05, "spatial_merge_size": 2, "temporal_patch_size": 2}}`,
			`{"size": {"shortest_edge": 12544, "longest_edge": 9633792}, "patch_size": 14, "temporal_patch_size": 2,
			"merge_size": 2, "image_processor_type": "Glm4vImageProcessor"}`,
			`{"patch_size": 14, "image_processor_type": "Qwen2VLImageProcessor"}`,
			vision.Config{Kind: vision.GLM4V, Layers: 24, Width: 1536, Heads: 12, FFN: 4096, Activation: "silu", Channels: 3,
				Patch: 14, Frames: 2, Merge: 2, Out: 4096, Side: 24, Inner: 13696, Eps: 1e-5},
			model.ImageSettings{Sections: [3]int{8, 12, 12}}, [2]int{21, 36}},
		"internvl": {`{"architectures": ["InternVLForConditionalGeneration"], "model_type": "internvl", "downsample_ratio": 0.5,
			"image_seq_length": 256, "image_token_id": 151667, "projector_hidden_act": "gelu", "torch_dtype": "bfloat16",
			"text_config": {"architectures": ["Qwen2ForCausalLM"], "hidden_act": "silu", "hidden_size": 896,
			"intermediate_size": 4864, "max_position_embeddings": 32768, "model_type": "qwen2", "num_attention_heads": 14,
			"num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
			"rope_scaling": {"factor": 2.0, "rope_type": "dynamic", "type": "dynamic"}, "sliding_window": null,
			"use_sliding_window": false, "vocab_size": 151674}, "vision_config": {"architectures": ["InternVisionModel"],
			"attention_bias": true, "hidden_act": "gelu", "hidden_size": 1024, "image_size": [448, 448],
			"intermediate_size": 4096, "layer_norm_eps": 1e-06, "layer_scale_init_value": 0.1, "model_type": "internvl_vision",
			"norm_type": "layer_norm", "num_attention_heads": 16, "num_channels": 3, "num_hidden_layers": 24,
			"patch_size": [14, 14], "use_absolute_position_embeddings": true, "use_mask_token": false,
			"use_mean_pooling": true, "use_qk_norm": false}, "vision_feature_layer": -1,
			"vision_feature_select_strategy": "default"}`,
			`{"crop_to_patches": false, "min_patches": 1, "max_patches": 12, "size": {"height": 448, "width": 448},
			"image_processor_type": "GotOcr2ImageProcessorFast"}`,
			`{"size": {"height": 224, "width": 224}, "image_processor_type": "GotOcr2ImageProcessor"}`,
			vision.Config{Kind: vision.InternVL, Layers: 24, Width: 1024, Heads: 16, FFN: 4096, Activation: "gelu", Channels: 3,
				Patch: 14, Frames: 1, Merge: 2, Out: 896, Side: 32, Eps: 1e-6, Bias: true},
			model.ImageSettings{Flat: true}, [2]int{7 * 16, 16}}, // 3×2 tiles and the whole
		"smolvlm2-500m": {`{"architectures": ["SmolVLMForConditionalGeneration"], "image_token_id": 49190,
			"model_type": "smolvlm", "pad_token_id": 128002, "scale_factor": 4, "text_config": {
			"architectures": ["VLlama3ForCausalLM"], "head_dim": 64, "hidden_size": 960, "intermediate_size": 2560,
			"is_llama_config": true, "max_position_embeddings": 8192, "model_type": "llama", "neftune_noise_alpha": 0.0,
			"num_attention_heads": 15, "num_hidden_layers": 32, "num_key_value_heads": 5, "pad_token_id": 2,
			"pixel_shuffle_factor": 4, "qk_layer_norms": false, "rms_norm_eps": 1e-05, "rope_interleaved": false,
			"rope_theta": 100000, "torch_dtype": "bfloat16", "use_resampler": false, "vocab_size": 49280},
			"tie_word_embeddings": false, "torch_dtype": "float32", "transformers_version": "4.47.1", "use_cache": false,
			"use_reentrant_checkpointing": false, "vision_config": {"hidden_size": 768, "image_size": 512,
			"max_image_size": {"longest_edge": 512}, "model_type": "smolvlm_vision", "num_attention_heads": 12,
			"patch_size": 16, "size": {"longest_edge": 2048}, "tie_word_embeddings": false, "use_base_siglip": false},
			"vocab_size": 49280}`,
			`{"do_convert_rgb": true, "do_image_splitting": true, "do_normalize": true, "do_pad": true, "do_rescale": true,
			"do_resize": true, "image_mean": [0.5, 0.5, 0.5], "image_processor_type": "SmolVLMImageProcessor",
			"image_std": [0.5, 0.5, 0.5], "max_image_size": {"longest_edge": 512}, "processor_class": "SmolVLMProcessor",
			"resample": 1, "rescale_factor": 0.00392156862745098, "size": {"longest_edge": 2048},
			"video_sampling": {"fps": 1, "max_frames": 64, "video_size": {"longest_edge": 512}}}`,
			`{"image_processor_type": "SmolVLMImageProcessor"}`,
			vision.Config{Kind: vision.Idefics3, Layers: 12, Width: 768, Heads: 12, FFN: 3072, Activation: "gelu_pytorch_tanh",
				Channels: 3, Patch: 16, Frames: 1, Merge: 4, Out: 960, Side: 32, Eps: 1e-6},
			model.ImageSettings{Flat: true, Module: "text_model"}, [2]int{13 * 8, 8}}, // 4×3 tiles and the whole
		"smolvlm2-2.2b": {`{"architectures": ["SmolVLMForConditionalGeneration"], "image_token_id": 49190,
			"model_type": "smolvlm", "scale_factor": 3, "text_config": {"architectures": ["VLlama3ForCausalLM"],
			"head_dim": 64, "hidden_size": 2048, "intermediate_size": 8192, "max_position_embeddings": 8192,
			"model_type": "llama", "num_hidden_layers": 24, "rms_norm_eps": 1e-05, "rope_theta": 130000,
			"vocab_size": 49280}, "tie_word_embeddings": false, "vision_config": {"hidden_size": 1152, "image_size": 384,
			"intermediate_size": 4304, "model_type": "smolvlm_vision", "num_hidden_layers": 27, "patch_size": 14}}`,
			`{"image_processor_type": "SmolVLMImageProcessor", "max_image_size": {"longest_edge": 384},
			"size": {"longest_edge": 1536}}`,
			`{"image_processor_type": "GotOcr2ImageProcessor", "size": {"height": 378, "width": 378}}`,
			vision.Config{Kind: vision.Idefics3, Layers: 27, Width: 1152, Heads: 16, FFN: 4304, Activation: "gelu_pytorch_tanh",
				Channels: 3, Patch: 14, Frames: 1, Merge: 3, Out: 2048, Side: 27, Eps: 1e-6},
			model.ImageSettings{Flat: true, Module: "text_model"}, [2]int{13 * 9, 9}},
		"idefics3-8b": {`{"architectures": ["Idefics3ForConditionalGeneration"], "image_token_id": 128257,
			"model_type": "idefics3", "scale_factor": 2, "text_config": {"architectures": ["VLlama3ForCausalLM"],
			"intermediate_size": 14336, "max_position_embeddings": 10240, "model_type": "llama", "num_key_value_heads": 8,
			"rms_norm_eps": 1e-05, "rope_theta": 500000.0, "vocab_size": 128259}, "tie_word_embeddings": false,
			"vision_config": {"hidden_size": 1152, "image_size": 364, "intermediate_size": 4304, "model_type": "idefics3",
			"num_hidden_layers": 27, "patch_size": 14}}`,
			`{"image_processor_type": "Idefics3ImageProcessor", "max_image_size": {"longest_edge": 364},
			"size": {"longest_edge": 1456}}`,
			`{"image_processor_type": "Idefics3ImageProcessor", "max_image_size": {"longest_edge": 384}}`,
			vision.Config{Kind: vision.Idefics3, Layers: 27, Width: 1152, Heads: 16, FFN: 4304, Activation: "gelu_pytorch_tanh",
				Channels: 3, Patch: 14, Frames: 1, Merge: 2, Out: 4096, Side: 26, Eps: 1e-6},
			model.ImageSettings{Flat: true, Module: "text_model"}, [2]int{13 * 13, 13}},
		"gemma3-4b": {`{"architectures": ["Gemma3ForConditionalGeneration"], "boi_token_index": 255999,
			"eoi_token_index": 256000, "eos_token_id": [1, 106], "image_token_index": 262144, "initializer_range": 0.02,
			"mm_tokens_per_image": 256, "model_type": "gemma3", "text_config": {"hidden_size": 2560,
			"intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34,
			"rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024}, "torch_dtype": "bfloat16",
			"transformers_version": "4.50.0.dev0", "vision_config": {"hidden_size": 1152, "image_size": 896,
			"intermediate_size": 4304, "model_type": "siglip_vision_model", "num_attention_heads": 16,
			"num_hidden_layers": 27, "patch_size": 14, "vision_use_head": false}}`,
			`{"do_convert_rgb": null, "do_normalize": true, "do_pan_and_scan": null, "do_rescale": true, "do_resize": true,
			"image_mean": [0.5, 0.5, 0.5], "image_processor_type": "Gemma3ImageProcessor", "image_seq_length": 256,
			"image_std": [0.5, 0.5, 0.5], "pan_and_scan_max_num_crops": null, "pan_and_scan_min_crop_size": null,
			"pan_and_scan_min_ratio_to_activate": null, "processor_class": "Gemma3Processor", "resample": 2,
			"rescale_factor": 0.00392156862745098, "size": {"height": 896, "width": 896}}`,
			`{"image_processor_type": "GotOcr2ImageProcessor", "size": {"height": 896, "width": 896}}`,
			vision.Config{Kind: vision.Gemma3, Layers: 27, Width: 1152, Heads: 16, FFN: 4304, Activation: "gelu_pytorch_tanh",
				Channels: 3, Patch: 14, Frames: 1, Merge: 4, Out: 2560, Side: 64, Eps: 1e-6},
			model.ImageSettings{Flat: true, Block: 256}, [2]int{16, 16}},
	} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "preprocessor_config.json"), []byte(tt.processor))
		defaults := strings.NewReplacer(`, "mrope_section": [8, 12, 12]`, "", `"use_mean_pooling": true, `, "", `"image_size": 336, `, "")
		for _, text := range []string{defaults.Replace(tt.config), tt.config} {
			writeFile(t, filepath.Join(dir, configFile), []byte(text))
			if c, err := ReadConfig(dir); err != nil || c.Images != tt.images {
				t.Errorf("%s: %+v, %v", name, c.Images, err)
			}
			if c, err := readTower(dir); err != nil || gocmp.Diff(tt.tower, c) != "" {
				t.Errorf("%s: %+v, %v", name, c, err)
			}
		}
		tower, s, err := ReadVision(dir)
		if diff := gocmp.Diff(tt.tower, tower); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
		if rows, columns, err := s.Tokens(1000, 600); err != nil || [2]int{rows, columns} != tt.tokens {
			t.Errorf("%s: %d×%d tokens (%v), want %v", name, rows, columns, err, tt.tokens)
		}
		if tower.Kind == vision.Idefics3 {
			writeFile(t, filepath.Join(dir, processorFile), []byte(`{"image_seq_len": 65}`))
			if _, _, err := ReadVision(dir); err == nil || !strings.Contains(err.Error(), "image_seq_len in processor_config.json is 65") {
				t.Errorf("%s with 65 tokens: %v", name, err)
			}
		}
		if tower.Kind == vision.Gemma3 {
			writeFile(t, filepath.Join(dir, processorFile), []byte(`{"image_seq_length": 255}`))
			if _, _, err := ReadVision(dir); err == nil || !strings.Contains(err.Error(), "image_seq_length in processor_config.json is 255") {
				t.Errorf("%s with 255 tokens: %v", name, err)
			}
		}
		writeFile(t, filepath.Join(dir, "preprocessor_config.json"), []byte(tt.other))
		if _, _, err := ReadVision(dir); err == nil || !strings.Contains(err.Error(), "the image processor") {
			t.Errorf("%s, another processor: %v", name, err)
		}
	}
}

// A tower of BF16 stays BF16 in memory, a tensor that it lacks is named, and so is one too many.
func TestTowersOfFiles(t *testing.T) {
	eachPictured(t, func(t *testing.T, x pictured, dir string, v5 bool) {
		be := openCPU(t, kernels.F32)
		c, err := readTower(dir)
		if err != nil {
			t.Fatal(err)
		}
		all := x.weights(t, dir, v5)
		half := make([]Source, len(all))
		for i, s := range all {
			half[i] = s
			half[i].DType = BF16
			half[i].Raw = func(w io.Writer) error {
				var b bytes.Buffer
				err := s.Raw(&b)
				raw := make([]byte, b.Len()/2)
				for i := range raw {
					raw[i] = b.Bytes()[i/2*4+2+i%2]
				}
				return errors.Join(err, errOf(w.Write(raw)))
			}
		}
		path := filepath.Join(dir, weightsFile)
		writeTensors(t, path, half...)
		tower, err := LoadTower(be, dir)
		if err != nil || tower.DType != kernels.BF16 {
			t.Fatal(tower, err)
		}
		defer tower.Close()
		wide := ref.New[float32]()
		other, err := LoadTower(wide, dir)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if p := x.patchesOf(c, 0); !slices.Equal(tower.Encode(be, p), other.Encode(wide, p)) {
			t.Error("other bits than the reference")
		}
		lost := c.Tensors()[1].Name
		i := slices.IndexFunc(all, func(s Source) bool { return slices.Contains(storedNames(lost), s.Name) })
		writeTensors(t, path, slices.Delete(slices.Clone(all), i, i+1)...)
		if _, err := LoadTower(be, dir); err == nil || !strings.Contains(err.Error(), "missing: "+lost) {
			t.Errorf("without a tensor: %v", err)
		}
		writeTensors(t, path, append(slices.Clone(all), source("visual.blocks.0.attn.qkv.scales", F32, []int{1}, "\x00\x00\x00\x00"))...)
		if _, err := LoadTower(be, dir); err == nil || !strings.Contains(err.Error(), "unexpected: blocks.0.attn.qkv.scales") {
			t.Errorf("with a tensor too many: %v", err)
		}
		writeTensors(t, path, append(slices.Clone(all), source("visual.rotary_pos_emb.inv_freq", F32, []int{1}, "\x00\x00\x00\x00"))...)
		learning, err := OpenWithTower(dir) // of an old file, with a table that nothing reads
		if err != nil {
			t.Fatal(err)
		}
		for name := range learning.where {
			if strings.HasSuffix(name, inverseFrequencies) {
				t.Errorf("%s is among the tensors to learn", name)
			}
		}
		if err := learning.Close(); err != nil {
			t.Error(err)
		}
		text := slices.DeleteFunc(slices.Clone(all), func(s Source) bool { _, ok := towerName(s.Name); return ok })
		writeTensors(t, path, text...)
		if _, err := LoadTower(be, dir); err == nil || !strings.Contains(err.Error(), "there is no vision tower") {
			t.Errorf("without a tower: %v", err)
		}
	})
}

func errOf(_ int, err error) error { return err }

// doubled is a source of twice the float32 numbers of another.
func doubled(raw func(w io.Writer) error) func(w io.Writer) error {
	return func(w io.Writer) error {
		var b bytes.Buffer
		if err := raw(&b); err != nil {
			return err
		}
		return errOf(w.Write(twice(b.Bytes())))
	}
}

func twice(raw []byte) (out []byte) {
	list := make([]float32, len(raw)/4)
	decode(list, raw)
	for _, v := range list {
		out = appendF32(out, 2*v)
	}
	return out
}

// writtenTensors returns the bytes of the tensors in a folder's file by their names there.
func writtenTensors(t *testing.T, dir string) map[string]string {
	t.Helper()
	raw := readFile(t, filepath.Join(dir, weightsFile))
	n := binary.LittleEndian.Uint64(raw)
	var header map[string]struct {
		At [2]int `json:"data_offsets"`
	}
	if err := json.Unmarshal(raw[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	delete(header, "__metadata__")
	list := map[string]string{}
	for name, x := range header {
		list[name] = string(raw[8+n:][x.At[0]:x.At[1]])
	}
	return list
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
		"square":  {"Qwen3VL", func(_, _, tower object) { tower["num_position_embeddings"] = 5 }, "no square number"},
		"layers":  {"Qwen3VL", func(_, _, tower object) { tower["deepstack_visual_indexes"] = []int{1, 0} }, "do not ascend"},
		"width":   {"Qwen3VL", func(_, _, tower object) { tower["out_hidden_size"] = 25 }, "have 25 channels, but hidden_size is 24"},
		"tower":   {"Qwen2VL", func(whole, _, _ object) { delete(whole, "vision_config") }, "vision_config is missing"},
		"small":   {"Glm4v", func(_, _, tower object) { tower["image_size"] = 13 }, "it holds no patch of 14 pixels"},
		"gates":   {"Glm4v", func(_, _, tower object) { tower["hidden_act"] = "gelu" }, `activation "gelu"`},
		"mask":    {"InternVL", func(_, _, tower object) { tower["use_mask_token"] = true }, "use_mask_token is true"},
		"oblong":  {"InternVL", func(_, _, tower object) { tower["image_size"] = []int{448, 224} }, "[448,224], not a number or two equal"},
		"tile":    {"InternVL", func(_, _, tower object) { tower["image_size"] = 450 }, "not a multiple of patch_size"},
		"norm":    {"InternVL", func(_, _, tower object) { tower["norm_type"] = "none" }, `norm_type is "none"`},
		"ratio":   {"InternVL", func(whole, _, _ object) { whole["downsample_ratio"] = 0.4 }, "downsample_ratio is 0.4"},
		"layer":   {"InternVL", func(whole, _, _ object) { whole["vision_feature_layer"] = -2 }, "vision_feature_layer -2"},
		"tokens":  {"InternVL", func(whole, _, _ object) { whole["image_seq_length"] = 64 }, "a tile of 32·32 patches has 256 tokens"},
		"rows":    {"SmolVLM", func(_, _, tower object) { tower["patch_size"] = 16 }, "a tile has 14 patches a side, no multiple of scale_factor, 3"},
		"oss":     {"InternVL", func(_, text, _ object) { text["model_type"] = "gpt_oss" }, `"gpt_oss": the language model is not`},
		"inside":  {"InternVL", func(_, text, _ object) { text["model_type"] = "moshi" }, `model_type is "moshi": the language model`},
		"gelu":    {"Mistral3", func(_, _, tower object) { delete(tower, "hidden_act") }, "only silu is supported"},
		"biases":  {"Mistral3", func(whole, _, _ object) { whole["multimodal_projector_bias"] = true }, "multimodal_projector_bias true"},
		"pixtral": {"Mistral3", func(_, _, tower object) { tower["rope_theta"] = 5 }, "rope_theta 5: only pixtral with 10000"},
		"pool":    {"Gemma3", func(whole, _, _ object) { whole["mm_tokens_per_image"] = 5 }, "mm_tokens_per_image 5: the sides"},
		"short windows": {"Gemma3", func(_, text, _ object) { text["sliding_window"] = 3 },
			"4 tokens of an image see each other, in windows of 3"},
		"class": {"Gemma4", func(whole, _, _ object) { whole["model_type"] = "gemma4" },
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
			if tt.class != "Gemma4" {
				whole["model_type"] = map[string]string{"Qwen2VL": "qwen2_vl", "Qwen2_5_VL": "qwen2_5_vl", "Qwen3VL": "qwen3_vl",
					"Glm4v": "glm4v", "InternVL": "internvl", "SmolVLM": "smolvlm", "Mistral3": "mistral3",
					"Gemma3": "gemma3"}[tt.class]
				switch tt.class {
				case "Glm4v":
					text["partial_rotary_factor"] = 1.0
				case "InternVL":
					text["model_type"] = "qwen3"
					delete(text, "rope_scaling")
					tower["num_hidden_layers"], tower["num_attention_heads"] = 2, 2
				case "Mistral3":
					text["model_type"] = "mistral"
					delete(text, "rope_scaling")
					tower["num_attention_heads"], tower["hidden_act"] = 2, "silu"
				case "Gemma3":
					text["model_type"], whole["mm_tokens_per_image"] = "gemma3_text", 4
					text["layer_types"] = []string{"sliding_attention", "full_attention"}
					delete(text, "rope_scaling")
					tower["num_attention_heads"], tower["image_size"], tower["patch_size"] = 2, 16, 4
				case "SmolVLM":
					text["model_type"], whole["scale_factor"] = "llama", 3
					delete(text, "rope_scaling")
					tower["num_attention_heads"], tower["image_size"], tower["patch_size"] = 2, 224, 18
				}
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

// What is read of a model of text and images makes sense, and is what a merged folder says again.
func FuzzImageConfig(f *testing.F) {
	var all struct {
		Models []struct{ Config json.RawMessage }
	}
	if err := json.Unmarshal(readFile(f, filepath.Join("testdata", "images.json")), &all); err != nil {
		f.Fatal(err)
	}
	for _, x := range all.Models {
		f.Add([]byte(x.Config))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := parseConfig("f", raw, withImages)
		if err != nil || !c.ReadsImages() {
			return
		}
		if err := c.Validate(); err != nil {
			t.Fatalf("accepted %+v: %v", c, err)
		}
		r := &settings{}
		if err := json.Unmarshal(raw, &r.values); err != nil {
			t.Fatal(err)
		}
		x, _ := r.imageClass()
		if tower := r.tower(x); tower.Validate() != nil || tower.Params() < 1 || tower.Out != c.Width {
			t.Fatalf("accepted %+v", tower)
		}
		again, err := wholeJSON(raw, c, BF16)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseConfig("f", again, withImages); err != nil || !gocmp.Equal(got, c) {
			t.Fatalf("written and read: %+v, %v; want %+v", got, err, c)
		}
	})
}
