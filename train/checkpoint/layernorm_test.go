package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
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

// stored is a tensor as its file has it.
type stored struct {
	Shape  []int
	Values []float32
}

// storedTensors reads a file without this package: names and order are the file's.
func storedTensors(t *testing.T, path string) map[string]stored {
	t.Helper()
	raw := readFile(t, path)
	n := binary.LittleEndian.Uint64(raw)
	var header map[string]struct {
		Shape   []int
		Offsets [2]int `json:"data_offsets"`
	}
	text := string(raw[8 : 8+n])
	if i := strings.Index(text, `"__metadata__"`); i >= 0 { // an object of texts
		end := i + strings.Index(text[i:], "}") + 1
		text = text[:i] + strings.TrimPrefix(text[end:], ",")
	}
	if err := json.Unmarshal([]byte(text), &header); err != nil {
		t.Fatal(err)
	}
	list := map[string]stored{}
	for name, x := range header {
		s := stored{Shape: x.Shape}
		for at := x.Offsets[0]; at < x.Offsets[1]; at += 4 {
			s.Values = append(s.Values, math.Float32frombits(binary.LittleEndian.Uint32(raw[8+int(n)+at:])))
		}
		list[name] = s
	}
	return list
}

// sources returns tensors to write.
func sources(tensors map[string]stored) (list []Source) {
	for name, s := range tensors {
		var raw []byte
		for _, v := range s.Values {
			raw = appendF32(raw, v)
		}
		list = append(list, source(name, F32, s.Shape, string(raw)))
	}
	return list
}

// neoXLayerNames and gpt2LayerNames are what transformers calls the tensors of a layer.
func neoXLayerNames() []string {
	return []string{"input_layernorm.weight", "input_layernorm.bias", "post_attention_layernorm.weight",
		"post_attention_layernorm.bias", "attention.query_key_value.weight", "attention.query_key_value.bias",
		"attention.dense.weight", "attention.dense.bias", "mlp.dense_h_to_4h.weight", "mlp.dense_h_to_4h.bias",
		"mlp.dense_4h_to_h.weight", "mlp.dense_4h_to_h.bias"}
}

func gpt2LayerNames() []string {
	return []string{"ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias", "attn.c_attn.weight", "attn.c_attn.bias",
		"attn.c_proj.weight", "attn.c_proj.bias", "mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_proj.weight", "mlp.c_proj.bias"}
}

// TestPublishedTensors holds the names and the order of the tensors that training writes against transformers'.
func TestPublishedTensors(t *testing.T) {
	eachFamily(t, func(t *testing.T, x family, dir string, _ []int32) {
		var want, layer []string
		first := ""
		switch x.Name {
		case "gpt-neox":
			want = []string{"gpt_neox.embed_in.weight", "gpt_neox.final_layer_norm.weight", "gpt_neox.final_layer_norm.bias",
				"embed_out.weight"}
			first, layer = "gpt_neox.layers.", neoXLayerNames()
		case "gpt2":
			want = []string{"transformer.wte.weight", "transformer.wpe.weight", "transformer.ln_f.weight", "transformer.ln_f.bias"}
			first, layer = "transformer.h.", gpt2LayerNames()
		default:
			return
		}
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		for l := range c.Layers {
			for _, name := range layer {
				want = append(want, first+string(rune('0'+l))+"."+name)
			}
		}
		weights, err := OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer weights.Close()
		to := trainedFolder(t, c, weights, MergeOptions{})
		got := storedTensors(t, filepath.Join(to, "model.safetensors"))
		slices.Sort(want)
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
			t.Fatalf("the file has %q, want %q", names, want)
		}
		here := storedTensors(t, filepath.Join(dir, "model.safetensors"))
		if x.Name == "gpt2" {
			a, b := here["model.layers.1.mlp.c_fc.weight"], got["transformer.h.1.mlp.c_fc.weight"]
			out, in := a.Shape[0], a.Shape[1]
			if !slices.Equal(b.Shape, []int{in, out}) || out == in {
				t.Fatalf("c_fc is %v, want [%d %d]", b.Shape, in, out)
			}
			for i := range out * in {
				if a.Values[i] != b.Values[i%in*out+i/in] {
					t.Fatalf("element %d of c_fc is not transposed", i)
				}
			}
			return
		}
		for _, part := range []string{"weight", "bias"} {
			a, b := here["model.layers.1.attention.query_key_value."+part],
				got["gpt_neox.layers.1.attention.query_key_value."+part]
			width := len(a.Values) / a.Shape[0]
			for row := range a.Shape[0] { // queries, keys and values of each head together
				kind, head, channel := row/(c.Heads*c.Head), row/c.Head%c.Heads, row%c.Head
				at := (head*3+kind)*c.Head + channel
				if !slices.Equal(a.Values[row*width:(row+1)*width], b.Values[at*width:(at+1)*width]) {
					t.Fatalf("row %d of query_key_value.%s is not row %d of the file", row, part, at)
				}
			}
		}
		os.Remove(filepath.Join(to, configFile))
		again, err := OpenFile(filepath.Join(to, "model.safetensors")) // which says how many heads there are
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(again.holds(sources(here)), again.Close()); err != nil {
			t.Error(err)
		}
		writeTensors(t, filepath.Join(to, "model.safetensors"), sources(got)...)
		if _, err := OpenFolder(to); err == nil || !strings.Contains(err.Error(), "in the order of heads") {
			t.Errorf("without config.json: got %v", err)
		}
	})
}

// Published folders compute what the goldens do, also those that AutoModel saves and those with masks.
func TestPublishedFoldersCompute(t *testing.T) {
	eachFamily(t, func(t *testing.T, x family, dir string, tokens []int32) {
		if !strings.HasPrefix(x.Name, "gpt") {
			return
		}
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		weights, err := OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer weights.Close()
		origin, err := ReadOrigin(dir)
		if err != nil {
			t.Fatal(err)
		}
		to := trainedFolder(t, c, weights, MergeOptions{Origin: origin})
		n, _ := namingOf(c.Names)
		first, _, _ := strings.Cut(n.layers, ".")
		tensors := storedTensors(t, filepath.Join(to, "model.safetensors"))
		for _, bare := range []bool{false, true} {
			var list []Source
			for _, x := range sources(tensors) {
				if bare {
					x.Name = strings.TrimPrefix(x.Name, first+".")
				}
				list = append(list, x)
			}
			begin := n.layers
			if bare {
				begin = strings.TrimPrefix(begin, first+".")
			}
			for _, end := range n.dropped {
				list = append(list, source(begin+"0"+end, F32, []int{1}, "abcd"))
			}
			writeTensors(t, filepath.Join(to, "model.safetensors"), list...)
			m := openGolden(t, ref.New[float64](), to, false)
			got := logitsOf(t, ref.New[float64](), m, tokens)
			for i, w := range x.Logits {
				if g := got[len(got)-len(x.Logits)+i]; !(math.Abs(g-w) <= 1e-6) {
					t.Fatalf("bare %v: logit %d is %g, transformers' %g", bare, i, g, w)
				}
			}
			m.Close()
		}
	})
}

// TestPublishedAdapters writes adapters on every linear map under PEFT's names and reads them back.
func TestPublishedAdapters(t *testing.T) {
	eachFamily(t, func(t *testing.T, x family, dir string, _ []int32) {
		var targets []string
		qkv, layer := "", ""
		switch x.Name {
		case "gpt-neox":
			targets = []string{"query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"}
			qkv, layer = "base_model.model.gpt_neox.layers.1.attention.query_key_value", "gpt_neox.layers."
		case "gpt2":
			targets = []string{"c_attn", "c_proj", "c_fc"}
			qkv, layer = "base_model.model.transformer.h.1.attn.c_attn", "transformer.h."
		case "starcoder2":
			targets = []string{"q_proj", "k_proj", "v_proj", "o_proj", "c_fc", "c_proj"}
		case "cohere":
			targets = []string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
		default:
			return
		}
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		if can := c.AdapterTargets(); !slices.Equal(slices.Sorted(slices.Values(can)), slices.Sorted(slices.Values(targets))) {
			t.Fatalf("adapters can be on %q, want %q", can, targets)
		}
		be := ref.New[float32]()
		base, err := model.NewBackbone(be, c, true, kernels.F32)
		if err != nil {
			t.Fatal(err)
		}
		defer base.Close()
		a := &model.Adapters{Rank: 2, Alpha: 4, Targets: targets}
		m, err := model.NewOn(base, model.Heads{LM: true, Adapters: a}, false)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		values := make([]float32, m.Params().Len())
		for i := range values {
			values[i] = float32(math.Sin(float64(i)))
		}
		be.Copy(m.Params(), kernels.Host(values))
		file := filepath.Join(t.TempDir(), "learned.safetensors")
		writeTensors(t, file, Weights(be, m, Plain)...)
		learned, err := OpenFile(file)
		if err != nil {
			t.Fatal(err)
		}
		defer learned.Close()
		to := filepath.Join(t.TempDir(), "adapters")
		if _, err := (Trained{Config: c, Heads: m.Heads, Learned: learned}).WriteAdapterTensors(be, to, dir); err != nil {
			t.Fatal(err)
		}
		files := storedTensors(t, filepath.Join(to, adapterFile))
		for name := range files {
			if !strings.HasPrefix(name, adapterPrefix+layer) {
				t.Errorf("an adapter is called %s", name)
			}
		}
		if x.Name == "gpt-neox" {
			b := files[qkv+".lora_B.weight"]
			here := make([]float32, len(b.Values))
			be.Copy(kernels.Host(here), m.View(adapterPrefix+"model.layers.1.attention.query_key_value.lora_B.weight"))
			for row := range b.Shape[0] {
				kind, head, channel := row/(c.Heads*c.Head), row/c.Head%c.Heads, row%c.Head
				if at := (head*3+kind)*c.Head + channel; !slices.Equal(here[row*2:row*2+2], b.Values[at*2:at*2+2]) {
					t.Fatalf("row %d of lora_B is not row %d of the file", row, at)
				}
			}
		}
		text := string(readFile(t, filepath.Join(to, adapterConfigFile)))
		if want := x.Name == "gpt2"; strings.Contains(text, `"fan_in_fan_out": true`) != want {
			t.Errorf("adapter_config.json is %s", text)
		}
		read, err := ReadAdapters(to, c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := model.NewOn(base, model.Heads{LM: true, Adapters: &read.Shape}, false)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if err := read.Load(be, again); err != nil {
			t.Fatal(err)
		}
		got := make([]float32, again.Params().Len())
		be.Copy(kernels.Host(got), again.Params())
		for _, tensor := range again.Tensors() {
			lo, hi := tensor.Offset(), tensor.Offset()+tensor.Len()
			if !slices.Equal(got[lo:hi], values[lo:hi]) {
				t.Errorf("%s was read with other values", tensor.Name)
			}
		}
	})
}

func TestLayerNormRefuses(t *testing.T) {
	class := func(class, kind string, more jsonObject) jsonObject {
		list := jsonObject{"architectures": []string{class}, "model_type": kind, "vocab_size": 11, "hidden_size": 8,
			"intermediate_size": 6, "num_hidden_layers": 2, "num_attention_heads": 2, "rope_theta": 1e4}
		maps.Copy(list, more)
		return list
	}
	neoX := func(more jsonObject) jsonObject {
		return class("GPTNeoXForCausalLM", "gpt_neox", more)
	}
	gpt2 := func(more jsonObject) jsonObject { return class("GPT2LMHeadModel", "gpt2", more) }
	cohere := func(more jsonObject) jsonObject { return class("CohereForCausalLM", "cohere", more) }
	for _, tt := range []struct {
		name   string
		config jsonObject
		want   string
	}{
		{"GPT-NeoX", neoX(jsonObject{"rotary_pct": 1}), ""},
		{"GPT-NeoX of another activation", neoX(jsonObject{"rotary_pct": 1, "hidden_act": "relu"}), `hidden_act is "relu"; supported in this class are gelu`},
		{"two parts of heads", neoX(jsonObject{"rotary_pct": 1, "rope_parameters": jsonObject{"rope_theta": 1e4,
			"partial_rotary_factor": 0.5}}), "rotary_pct is 1, but rope_parameters says 0.5"},
		{"no channel to rotate", neoX(nil), "1 of 4 channels cannot be rotated in pairs"},
		{"GPT-2", gpt2(nil), ""},
		{"GPT-2 without a scale", gpt2(jsonObject{"scale_attn_weights": false}), "scale_attn_weights"},
		{"GPT-2 with a scale for each layer", gpt2(jsonObject{"scale_attn_by_inverse_layer_idx": true}), "scale_attn_by_inverse_layer_idx"},
		{"GPT-2 with another input", gpt2(jsonObject{"add_cross_attention": true}), "add_cross_attention"},
		{"two widths of GPT-2", gpt2(jsonObject{"n_embd": 16}), "n_embd is 16, but hidden_size, another name of it, is 8"},
		{"Cohere", cohere(nil), ""},
		{"Cohere of other heads", cohere(jsonObject{"head_dim": 6}), "head_dim is 6"},
		{"Cohere without a base", cohere(jsonObject{"rope_theta": nil}), "rope_theta is missing: transformers 4 takes 10000"},
		{"Cohere without logits", cohere(jsonObject{"logit_scale": 0}), "logit_scale is 0, must be from 1e-06"},
		{"StableLM with norms of heads", class("StableLmForCausalLM", "stablelm", jsonObject{"partial_rotary_factor": 1,
			"qk_layernorm": true}), "qk_layernorm: LayerNorm"},
		{"Phi with norms of heads", class("PhiForCausalLM", "phi", jsonObject{"qk_layernorm": true, "hidden_act": "gelu_new"}),
			"qk_layernorm: LayerNorm"},
		{"tied Phi", class("PhiForCausalLM", "phi", jsonObject{"tie_word_embeddings": true, "hidden_act": "gelu_new"}),
			"has no bias"},
		{"OLMo with clipping", class("OlmoForCausalLM", "olmo", jsonObject{"clip_qkv": 0}), "clip_qkv is 0, must be positive"},
		{"Nemotron of another activation", class("NemotronForCausalLM", "nemotron", jsonObject{"hidden_act": "silu"}),
			`hidden_act is "silu": only "relu2" is supported`},
		{"Jais 2 of another activation", class("Jais2ForCausalLM", "jais2", jsonObject{"hidden_act": "gelu"}), `hidden_act is "gelu": only "relu2"`},
		{"StarCoder2 with gates", class("Starcoder2ForCausalLM", "starcoder2", jsonObject{"hidden_act": "silu"}), `hidden_act is "silu"`},
	} {
		_, err := ParseConfig(configFile, compact(tt.config))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}
