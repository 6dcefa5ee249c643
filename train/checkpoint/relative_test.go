package checkpoint

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels/ref"
	"exp/train/model"
)

// relativeFolder replaces a family's names of tensors by those of its authors.
type relativeFolder struct {
	names *strings.Replacer
	fused string                     // of queries, keys and values; empty: they are apart
	extra []Source                   // tensors that hold no weights
	order func(c model.Config) []int // whose rows follow one another: 0 of the queries, 1 of the keys, 2 of the values
}

// relativeFolders lists them by the names of families. The logits of InternLM2 in testdata/families.json are those of
// a model written in torch, in float64, as arXiv:2403.17297 §2.2 describes it (with biases also those of
// transformers' Llama, to 5·10⁻⁸), those of Ling and Sarvam those of the layers in the authors' public file, run with
// another embedding and head, since transformers has none of these classes.
func relativeFolders() map[string]relativeFolder {
	exaone := strings.NewReplacer("model.embed_tokens", "transformer.wte", "model.layers", "transformer.h", "model.norm",
		"transformer.ln_f", "self_attn.o_proj", "attn.attention.out_proj", "self_attn", "attn.attention",
		"input_layernorm", "ln_1", "post_attention_layernorm", "ln_2", "gate_proj", "c_fc_0", "up_proj", "c_fc_1",
		"down_proj", "c_proj")
	intern := relativeFolder{fused: ".attention.wqkv.", order: func(c model.Config) (heads []int) {
		for range c.KVHeads {
			heads = append(append(heads, slices.Repeat([]int{0}, c.Heads/c.KVHeads)...), 1, 2)
		}
		return heads
	}, names: strings.NewReplacer("embed_tokens", "tok_embeddings", "lm_head", "output", "self_attn.o_proj", "attention.wo",
		"input_layernorm", "attention_norm", "post_attention_layernorm", "ffn_norm", "mlp.gate_proj", "feed_forward.w1",
		"mlp.up_proj", "feed_forward.w3", "mlp.down_proj", "feed_forward.w2")}
	ling := relativeFolder{fused: ".attention.query_key_value.", order: func(c model.Config) (heads []int) {
		return append(append(slices.Repeat([]int{0}, c.Heads), slices.Repeat([]int{1}, c.KVHeads)...),
			slices.Repeat([]int{2}, c.KVHeads)...)
	}, names: strings.NewReplacer("embed_tokens", "word_embeddings", "self_attn.o_proj", "attention.dense",
		"self_attn.q_norm", "attention.query_layernorm", "self_attn.k_norm", "attention.key_layernorm",
		"gate.e_score_correction_bias", "gate.expert_bias")}
	return map[string]relativeFolder{"internlm2": intern, "internlm2-bias": intern, "ling": ling, "sarvam": ling,
		"exaone": {names: exaone, extra: []Source{source("transformer.rotary.inv_freq", F32, []int{1}, "abcd")}}}
}

// published returns a family's weights under their authors' names.
func (f relativeFolder) published(t *testing.T, c model.Config) (list []Source) {
	parts := map[string][3][]byte{}
	width := map[string]int{}
	for _, x := range waves(c) {
		var b bytes.Buffer
		if err := x.Raw(&b); err != nil {
			t.Fatal(err)
		}
		layer, rest, own := strings.Cut(x.Name, ".self_attn.")
		at := slices.Index([]string{"q_proj.", "k_proj.", "v_proj."}, rest[:min(len(rest), 7)])
		if !own || at < 0 || f.fused == "" {
			list = append(list, source(f.names.Replace(x.Name), x.DType, x.Shape, b.String()))
			continue
		}
		name := layer + f.fused + rest[7:]
		three := parts[name]
		three[at] = b.Bytes()
		parts[name], width[name] = three, x.Len()/x.Shape[0]
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		three, raw := parts[name], ""
		head := 4 * c.Head * width[name]
		for _, k := range f.order(c) {
			raw, three[k] = raw+string(three[k][:head]), three[k][head:]
		}
		shape := []int{c.QKV()}
		if strings.HasSuffix(name, ".weight") {
			shape = append(shape, c.Width)
		}
		list = append(list, source(name, F32, shape, raw))
	}
	return append(list, f.extra...)
}

// A relative under its authors' names is read as the class that it is, and written as that.
func TestRelatives(t *testing.T) {
	folders := relativeFolders()
	eachFamily(t, func(t *testing.T, x family, dir string, tokens []int32) {
		folder, ok := folders[x.Name]
		if !ok {
			return
		}
		delete(folders, x.Name)
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		writeTensors(t, filepath.Join(dir, weightsFile), folder.published(t, c)...)
		be := ref.New[float64]()
		m := openGolden(t, be, dir, false)
		got := logitsOf(t, be, m, tokens)
		wantNear(t, got[len(got)-len(x.Logits):], x.Logits, 1e-6)
		m.Close()

		origin, err := ReadOrigin(dir)
		if err != nil {
			t.Fatal(err)
		}
		weights, err := OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer weights.Close()
		to := trainedFolder(t, c, weights, MergeOptions{Origin: origin})
		text := string(readFile(t, filepath.Join(to, configFile)))
		parts := []string{`"LlamaForCausalLM"`, `"model_type": "llama"`, `"num_hidden_layers"`}
		if c.Sparse != nil {
			parts = []string{`"Glm4MoeForCausalLM"`, `"model_type": "glm4_moe"`, `"n_routed_experts"`}
		}
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("the written config.json lacks %s: %s", part, text)
			}
		}
		if strings.Contains(text, "auto_map") {
			t.Errorf("the written config.json names code of the authors: %s", text)
		}
		if _, err := OpenFolder(to); err != nil {
			t.Error(err)
		}
		if folder.fused == "" {
			return
		}
		if err := os.Remove(filepath.Join(dir, configFile)); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenFolder(dir); err == nil || !strings.Contains(err.Error(), "no config.json says how many there are") {
			t.Errorf("rows in an order of heads without config.json: %v", err)
		}
	})
	for name := range folders {
		t.Errorf("testdata/families.json has no %s", name)
	}
}

func TestRelativesRefuse(t *testing.T) {
	ling := jsonObject{"architectures": []string{"BailingMoeV2ForCausalLM"}, "vocab_size": 11, "hidden_size": 8,
		"intermediate_size": 6, "num_hidden_layers": 2}
	intern := jsonObject{"architectures": []string{"InternLM2ForCausalLM"}, "vocab_size": 11, "hidden_size": 8,
		"intermediate_size": 6, "num_hidden_layers": 2, "num_attention_heads": 2}
	for _, tt := range []struct {
		name          string
		base, changes jsonObject
		want          string
	}{
		{"nothing of Ling", ling, nil, ""},
		{"nothing of InternLM2", intern, nil, ""},
		{"biases after attention", ling, jsonObject{"use_bias": true}, "use_bias is true: only false is supported"},
		{"a normalised head", ling, jsonObject{"norm_head": true}, "norm_head is true"},
		{"plain probabilities", ling, jsonObject{"norm_topk_prob": false}, "norm_topk_prob is false"},
		{"one expert a token", ling, jsonObject{"num_experts_per_tok": 1}, "num_experts_per_tok is 1"},
		{"a wide shared expert", ling, jsonObject{"moe_shared_expert_intermediate_size": 1024},
			"moe_shared_expert_intermediate_size is 1024, and moe_intermediate_size 512"},
		{"another score", ling, jsonObject{"score_function": "softmax"}, `scoring_func is "softmax"`},
		{"other positions", intern, jsonObject{"rope_scaling": jsonObject{"type": "ntk", "factor": 2}}, `rope type "ntk"`},
	} {
		changed := maps.Clone(tt.base)
		maps.Copy(changed, tt.changes)
		_, err := ParseConfig(configFile, compact(changed))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	c, err := ParseConfig(configFile, compact(ling))
	if err != nil || c.Rotary != 0 || c.Experts.Groups != 8 || c.Experts.Scale != 1 || !c.QKNorm || c.RopeTheta != 6e5 {
		t.Errorf("a file of Ling without settings: %+v, %v; want its own defaults", c, err)
	}
	c, err = ParseConfig(configFile, compact(intern))
	if err != nil || !c.OutBias || !c.QKVBias || c.FFNBias {
		t.Errorf("a file of InternLM2 without settings: %+v, %v; want biases of attention", c, err)
	}
}

// Rows of queries, keys and values that config.json does not explain are an error that names the tensor.
func TestRelativesNeedTheirHeads(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, configFile), []byte(`{"architectures": ["InternLM2ForCausalLM"], "hidden_size": 8,
		"num_attention_heads": 4, "num_key_value_heads": 2}`))
	name := "model.layers.0.attention.wqkv.weight"
	writeTensors(t, filepath.Join(dir, weightsFile), source(name, F32, []int{3, 1}, "abcdabcdabcd"))
	_, err := OpenFolder(dir)
	if err == nil || !strings.Contains(err.Error(), "it has 16 rows: 4 query heads and 2 key heads of 2 channels") {
		t.Errorf("got %v", err)
	}
}
