package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/model"
)

// eachHybrid is eachFamily for hybrids with Mamba-2 or short convolutions, and OLMo Hybrid.
func eachHybrid(t *testing.T, f func(t *testing.T, x family, c model.Config, dir string, tokens []int32)) {
	eachFamily(t, func(t *testing.T, x family, dir string, tokens []int32) {
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		if a, _ := architectureNamed("", x.Config["model_type"].(string)); a.mixed {
			f(t, x, c, dir, tokens)
		}
	})
}

// What training writes has the tensors that transformers has, and reads back with the same bits.
func TestHybridsArePublished(t *testing.T) {
	want := map[string]map[string][]int{
		"nemotron-h":     {"backbone.embeddings.weight": {11, 12}, "backbone.norm_f.weight": {12}, "backbone.layers.0.mixer.D": {4}},
		"nemotron-h-moe": {"backbone.layers.1.mixer.experts.5.up_proj.weight": {7, 12}, "backbone.layers.1.mixer.gate.weight": {6, 12}},
		"granite-hybrid": {"model.norm.weight": {12}, "model.layers.0.shared_mlp.input_linear.weight": {14, 12}},
		"granite-hybrid-moe": {"model.layers.0.block_sparse_moe.input_linear.weight": {5, 20, 12},
			"model.layers.0.block_sparse_moe.output_linear.weight": {5, 12, 10},
			"model.layers.0.block_sparse_moe.router.layer.weight":  {5, 12}},
		"bamba": {"model.final_layernorm.weight": {12}, "model.layers.1.feed_forward.up_proj.weight": {10, 12}},
		"falcon-h1": {"model.final_layernorm.weight": {12}, "model.layers.1.mamba.in_proj.weight": {50, 12},
			"model.layers.1.self_attn.k_proj.weight": {12, 12}, "model.layers.0.pre_ff_layernorm.weight": {12}},
		"lfm2": {"model.embedding_norm.weight": {12}, "model.layers.0.conv.conv.weight": {12, 1, 3},
			"model.layers.1.self_attn.out_proj.weight": {12, 8}, "model.layers.1.self_attn.q_layernorm.weight": {4}},
		"olmo-hybrid": {"model.layers.0.attention_layer_norm.weight": {12}, "model.layers.0.linear_attn.v_conv1d.weight": {20, 1, 3},
			"model.layers.0.linear_attn.q_conv1d.weight": {12, 1, 3}, "model.layers.1.post_attention_layernorm.weight": {12}},
		"lfm2-moe": {"model.layers.0.feed_forward.w3.weight": {10, 12}, "model.layers.1.feed_forward.expert_bias": {6},
			"model.layers.1.feed_forward.experts.5.w2.weight": {12, 7}, "model.layers.1.feed_forward.gate.weight": {6, 12}},
	}
	eachHybrid(t, func(t *testing.T, x family, c model.Config, dir string, tokens []int32) {
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
		sameLogits(t, dir, to, tokens)
		packed := filepath.Join(t.TempDir(), "packed")
		found, err := FindContainer(to)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Pack(t.Context(), found, packed, PackOptions{}); err != nil {
			t.Fatal(err)
		}
		sameLogits(t, dir, packed, tokens)
		for _, at := range []string{to, packed} {
			shapes := storedShapes(t, filepath.Join(at, "model.safetensors"))
			for name, shape := range want[x.Name] {
				if !slices.Equal(shapes[name], shape) {
					t.Errorf("%s is %v, want %v", name, shapes[name], shape)
				}
			}
			for name := range shapes {
				if strings.Contains(name, "embed_tokens") && c.Names == model.NemotronNames ||
					strings.Contains(name, "block_sparse_moe.experts.") {
					t.Errorf("%s has another name in transformers", name)
				}
			}
		}
	})
}

// storedShapes returns the shapes of the tensors of a file by the names in its header.
func storedShapes(t *testing.T, path string) map[string][]int {
	t.Helper()
	raw := readFile(t, path)
	n := binary.LittleEndian.Uint64(raw)
	var header map[string]struct{ Shape []int }
	if err := json.Unmarshal(raw[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	shapes := map[string][]int{}
	for name, x := range header {
		shapes[name] = x.Shape
	}
	return shapes
}

// sameLogits checks that two folders give the same logits.
func sameLogits(t *testing.T, dir, to string, tokens []int32) {
	t.Helper()
	be := ref.New[float64]()
	want, got := openGolden(t, be, dir, false), openGolden(t, be, to, false)
	defer want.Close()
	defer got.Close()
	if diff := gocmp.Diff(logitsOf(t, be, want, tokens), logitsOf(t, be, got, tokens)); diff != "" {
		t.Errorf("logits (-want +got):\n%s", diff)
	}
}

// Published folders of Nemotron-H say backbone and Infinity, which is not JSON, and have tensors of layers that predict
// further tokens; a state dict of transformers 5 has experts together, and so have published folders of Granite.
func TestPublishedHybrids(t *testing.T) {
	eachHybrid(t, func(t *testing.T, x family, c model.Config, dir string, tokens []int32) {
		if c.Names == model.LFMNames {
			return // see TestStateOfLFM
		}
		plain := t.TempDir()
		raw := strings.ReplaceAll(string(readFile(t, filepath.Join(dir, configFile))), `{"__float__":"Infinity"}`, "Infinity")
		endless := strings.HasPrefix(x.Name, "nemotron") || x.Name == "falcon-h1" || x.Name == "falcon-h1-norm"
		if endless != strings.Contains(raw, "0,Infinity]") {
			t.Fatalf("config.json is %s", raw)
		}
		writeFile(t, filepath.Join(plain, configFile), []byte(raw))
		var list []Source
		stacks := map[string][]Source{}
		for _, w := range waves(c) {
			prefix, rest, ok := strings.Cut(w.Name, ".experts.")
			_, part, more := strings.Cut(rest, ".")
			if ok && more {
				name := prefix + ".experts." + map[string]string{"input_linear.weight": "gate_up_proj",
					"output_linear.weight": "down_proj", "up_proj.weight": "up_proj", "down_proj.weight": "down_proj"}[part]
				stacks[name] = append(stacks[name], w)
				continue
			}
			if c.Names == model.NemotronNames {
				w.Name = strings.Replace(w.Name, "model.", "backbone.", 1)
				w.Name = strings.NewReplacer("embed_tokens", "embeddings", "backbone.norm", "backbone.norm_f").Replace(w.Name)
			}
			list = append(list, w)
		}
		for name, parts := range stacks {
			if c.Names == model.NemotronNames {
				name = strings.Replace(name, "model.", "backbone.", 1)
			}
			shape := append([]int{len(parts)}, parts[0].Shape...)
			list = append(list, stackedSource(Tensor{Name: name, DType: F32, Shape: shape}, parts))
		}
		if c.Names == model.NemotronNames {
			list = append(list, source("mtp.layers.0.norm.weight", F32, []int{1}, "abcd"))
		}
		writeTensors(t, filepath.Join(plain, "model.safetensors"), list...)
		got, err := ReadConfig(plain)
		if diff := gocmp.Diff(c, got); diff != "" || err != nil {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
		weights, err := OpenFolder(plain)
		if err != nil {
			t.Fatal(err)
		}
		defer weights.Close()
		if err := weights.Fits(c); err != nil {
			t.Fatal(err)
		}
		sameLogits(t, dir, plain, tokens)
	})
}

// Names of layers' types before transformers 5, and a width of heads that is to be computed.
func TestHybridSpellings(t *testing.T) {
	eachHybrid(t, func(t *testing.T, x family, c model.Config, dir string, tokens []int32) {
		changes := jsonObject{"mamba_d_head": "auto"}
		if c.Names == model.NemotronNames {
			types := []string{"mamba", "mlp", "mamba", "attention", "mlp"}
			if x.Name == "nemotron-h-moe" {
				types = []string{"linear_attention", "moe", "mamba", "full_attention", "moe"}
			}
			changes = jsonObject{"layers_block_type": types, "hybrid_override_pattern": nil, "num_hidden_layers": nil}
		}
		config := maps.Clone(x.Config)
		maps.Copy(config, changes)
		got, err := ParseConfig(configFile, compact(config))
		if diff := gocmp.Diff(c, got); diff != "" || err != nil {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	})
}

func TestHybridsRefuse(t *testing.T) {
	nemotron := jsonObject{"architectures": []string{"NemotronHForCausalLM"}, "model_type": "nemotron_h", "vocab_size": 11,
		"hidden_size": 8, "intermediate_size": 6, "hybrid_override_pattern": "M*-E", "num_attention_heads": 2,
		"num_key_value_heads": 2, "n_routed_experts": 4, "num_experts_per_tok": 2}
	granite := jsonObject{"architectures": []string{"GraniteMoeHybridForCausalLM"}, "model_type": "granitemoehybrid",
		"vocab_size": 11, "hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 2, "num_attention_heads": 2,
		"layer_types": []string{"mamba", "attention"}, "mamba_n_heads": 4, "num_local_experts": 0}
	bamba := maps.Clone(granite)
	maps.Copy(bamba, jsonObject{"architectures": []string{"BambaForCausalLM"}, "model_type": "bamba", "layer_types": nil,
		"num_local_experts": nil, "num_key_value_heads": 2})
	for _, tt := range []struct {
		name    string
		base    jsonObject
		changes jsonObject
		want    string
	}{
		{"nothing", nemotron, nil, ""},
		{"nothing of Granite", granite, nil, ""},
		{"nothing of Bamba", bamba, nil, ""},
		{"an unknown letter", nemotron, jsonObject{"hybrid_override_pattern": "M|-"}, `layer 1 is "|"; supported are M or mamba`},
		{"no pattern", nemotron, jsonObject{"hybrid_override_pattern": nil}, "hybrid_override_pattern, or layers_block_type, is missing"},
		{"another activation", nemotron, jsonObject{"mlp_hidden_act": "silu"}, `mlp_hidden_act is "silu": only "relu2"`},
		{"this activation elsewhere", granite, jsonObject{"hidden_act": "relu2"}, `hidden_act is "relu2"; supported are silu`},
		{"the convolutions' activation", granite, jsonObject{"hidden_act": "gelu_new"}, "hidden_act must be silu"},
		{"the convolutions' activation in Bamba", bamba, jsonObject{"hidden_act": "gelu_new"}, "hidden_act must be silu"},
		{"any activation without convolutions", granite, jsonObject{"hidden_act": "gelu_new",
			"layer_types": []string{"attention", "attention"}}, ""},
		{"an old name of limits", nemotron, jsonObject{"mamba_dt_limit": []float64{0, 0.1}}, "time_step_limit is [0,0.1]"},
		{"an old name of the convolution's biases", nemotron, jsonObject{"mamba_conv_bias": false}, "use_conv_bias is false"},
		{"a scale of 0", nemotron, jsonObject{"hybrid_override_pattern": "M*E-", "routed_scaling_factor": 0}, "routed_scaling_factor is 0, must be positive"},
		{"two names of a number", nemotron, jsonObject{"num_local_experts": 2},
			"n_routed_experts is 4, but num_local_experts, another name of it, is 2"},
		{"biases", nemotron, jsonObject{"use_bias": true}, "use_bias is true: only false is supported"},
		{"no bias of the convolution", granite, jsonObject{"mamba_conv_bias": false}, "mamba_conv_bias is false: only true is supported"},
		{"biases of attention", granite, jsonObject{"attention_bias": true}, "linear attention is not supported with norms after the blocks, biases"},
		{"experts on latent vectors", nemotron, jsonObject{"moe_latent_size": 4}, "moe_latent_size"},
		{"limits that are ignored", nemotron, jsonObject{"time_step_limit": []float64{0, 0.1}}, "time_step_limit is [0,0.1]: transformers ignores it"},
		{"limits in no order", granite, jsonObject{"time_step_limit": []float64{1, 0.1}}, "must be two numbers in order"},
		{"one limit", bamba, jsonObject{"time_step_limit": []float64{1}}, "must have two numbers"},
		{"groups that do not divide", granite, jsonObject{"mamba_n_groups": 3}, "4 heads, which is not a multiple of their 3 groups"},
		{"heads of another width", granite, jsonObject{"mamba_d_head": 3}, "must be mamba_expand 2 times hidden_size 8"},
		{"no state", bamba, jsonObject{"mamba_d_state": 0}, "mamba_d_state is 0"},
		{"a window", granite, jsonObject{"sliding_window": 4}, "sliding_window: windows are not supported in this class"},
		{"other positions", granite, jsonObject{"position_embedding_type": "alibi"}, `position_embedding_type is "alibi"`},
		{"too few types", granite, jsonObject{"layer_types": []string{"mamba"}}, "layer_types has 1 entries"},
		{"a layer beyond the last", bamba, jsonObject{"attn_layer_indices": []int{2}}, "attn_layer_indices has layer 2 of 2"},
		{"another part rotated", bamba, jsonObject{"rope_parameters": jsonObject{"rope_theta": 1e4, "rope_type": "default",
			"partial_rotary_factor": 1.0}}, "partial_rotary_factor is 1: transformers takes 0.5"},
		{"a layer without attention", granite, jsonObject{"layer_types": []string{"mamba", "mlp"}}, `layer 1 is "mlp"`},
	} {
		changed := maps.Clone(tt.base)
		maps.Copy(changed, tt.changes)
		_, err := ParseConfig(configFile, compact(changed))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// Their words name what their layers have.
func TestHybridWords(t *testing.T) {
	eachHybrid(t, func(t *testing.T, x family, c model.Config, dir string, _ []int32) {
		text := strings.Join(Words(c, x.Config["architectures"].([]any)[0].(string)), "\n")
		for part, on := range map[string]bool{"layers have Mamba-2: 4 heads of ": c.Delta.Scan,
			"layers have a gated short convolution of width": c.Delta.Conv,
			"squared ReLU": c.Gate == kernels.ReLU2, "have a feed-forward block alone": c.NoMixer != nil,
			"linear attention:": c.Names == model.OlmoHybridNames, "writes twice as much": c.DoubleWrites, "no rotary positions": c.NoRope != nil} {
			if strings.Contains(text, part) != on {
				t.Errorf("%q in the words of %s is %v:\n%s", part, x.Name, !on, text)
			}
		}
	})
}
