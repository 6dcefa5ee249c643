package checkpoint

import (
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/model"
)

// fp8Folder is a llama of width 4 whose query maps are FP8: rows of 1, 2, -1 and 448, and of the same in reverse.
func fp8Folder(t *testing.T, quantized jsonObject, scales ...Source) (dir string, c model.Config) {
	t.Helper()
	dir = t.TempDir()
	config := jsonObject{"architectures": []string{"LlamaForCausalLM"}, "vocab_size": 5, "hidden_size": 4,
		"intermediate_size": 6, "num_hidden_layers": 1, "num_attention_heads": 2, "quantization_config": quantized}
	writeFile(t, filepath.Join(dir, configFile), compact(config))
	delete(config, "quantization_config")
	c, err := ParseConfig(configFile, compact(config))
	if err != nil {
		t.Fatal(err)
	}
	list := waves(c)
	for i, x := range list {
		if strings.HasSuffix(x.Name, "q_proj.weight") {
			list[i] = source(x.Name, e4m3, x.Shape, strings.Repeat("\x38\x40\xb8\x7e\x7e\xb8\x40\x38", 2))
		}
	}
	writeTensors(t, filepath.Join(dir, "model.safetensors"), append(list, scales...)...)
	return dir, c
}

const queryMap = "model.layers.0.self_attn.q_proj.weight"

// floats are numbers in a file.
func floats(list ...float32) string {
	var raw []byte
	for _, v := range list {
		raw = appendF32(raw, v)
	}
	return string(raw)
}

// Weights in FP8 are BF16 to everybody, in blocks, rows or as a whole, and a merged folder says no more of FP8.
func TestFP8Folder(t *testing.T) {
	blocks := func(n int) jsonObject {
		return jsonObject{"quant_method": "fp8", "weight_block_size": []int{n, n}, "activation_scheme": "dynamic"}
	}
	group := jsonObject{"weights": jsonObject{"type": "float", "num_bits": 8, "strategy": "channel"}}
	for name, x := range map[string]struct {
		quantized jsonObject
		scales    []Source
		want      [16]float32 // factors
	}{
		"blocks of 3": {blocks(3), []Source{source(queryMap+"_scale_inv", F32, []int{2, 2}, floats(2, 3, 5, 0.5))},
			[16]float32{2, 2, 2, 3, 2, 2, 2, 3, 2, 2, 2, 3, 5, 5, 5, 0.5}},
		"rows": {jsonObject{"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": jsonObject{"group_0": group}},
			[]Source{source(queryMap+"_scale", BF16, []int{4, 1}, "\x00\x3f\x80\x3f\x00\x40\x80\x40")},
			[16]float32{0.5, 0.5, 0.5, 0.5, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4}},
		"one scale, and one of activations": {jsonObject{"quant_method": "fp8", "weight_block_size": nil},
			[]Source{source(queryMap+"_scale_inv", F32, nil, floats(0.75)),
				source("model.layers.0.self_attn.q_proj.activation_scale", F32, nil, floats(9))},
			[16]float32{0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75}},
		"MiniMax's word, and blocks of 128": {jsonObject{"quant_method": "fp8", "fmt": "float8_e4m3fn"},
			[]Source{source(queryMap+"_scale_inv", F32, []int{1, 1}, floats(0.75))},
			[16]float32{0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75}},
		"powers of two": {blocks(2), []Source{source(queryMap+"_scale_inv", "F8_E8M0", []int{2, 2}, "\x7f\x80\x7e\x7f")},
			[16]float32{1, 1, 2, 2, 1, 1, 2, 2, 0.5, 0.5, 1, 1, 0.5, 0.5, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, c := fp8Folder(t, x.quantized, x.scales...)
			if got, err := ReadConfig(dir); err != nil || got.Width != 4 {
				t.Fatal(got, err)
			}
			be := ref.New[float32]()
			want := []float32{1, 2, -1, 448, 448, -1, 2, 1, 1, 2, -1, 448, 448, -1, 2, 1}
			for i, f := range x.want {
				want[i] = math.Float32frombits(math.Float32bits(want[i]*f) &^ 0xffff) // no product has more bits
			}
			check := func(dir string) {
				t.Helper()
				weights, err := OpenFolder(dir)
				if err != nil {
					t.Fatal(err)
				}
				defer weights.Close()
				if err := weights.Fits(c); err != nil {
					t.Fatal(err)
				}
				got := make([]float32, 16)
				if err := weights.Read(be, queryMap, kernels.Host(got)); err != nil || !slices.Equal(got, want) {
					t.Errorf("%s: %v, %v; want %v", dir, got, err, want)
				}
			}
			check(dir)
			merged, _ := packed(t, dir, PackOptions{})
			check(merged)
			if a, b := digestsIn(t, dir), digestsIn(t, merged); !reflect.DeepEqual(a, b) {
				t.Errorf("digests are %v, and %v when widened", a, b)
			}
			if text := string(readFile(t, filepath.Join(merged, configFile))); strings.Contains(text, "quantization") {
				t.Errorf("the merged config.json is %s", text)
			}
		})
	}
}

// block8 is a group of weights in blocks of n rows.
func block8(n any) jsonObject {
	if _, ok := n.(int); ok {
		n = []any{n, 8}
	}
	return jsonObject{"weights": jsonObject{"type": "float", "num_bits": 8, "block_structure": n}}
}

func TestFP8Refuses(t *testing.T) {
	fp8 := jsonObject{"quant_method": "fp8", "weight_block_size": []int{3, 3}}
	for name, x := range map[string]struct {
		scales Source
		want   string
	}{
		"no scales":    {source("other_scale_inv", F32, []int{1}, floats(1)), "F8_E4M3"},
		"another grid": {source(queryMap+"_scale_inv", F32, []int{3, 1}, floats(1, 1, 1)), "of shape [4 4], but scales of shape [3 1] fit neither rows, nor the whole, nor the blocks of 3 × 3"},
		"a list":       {source(queryMap+"_scale_inv", F32, []int{4}, floats(1, 1, 1, 1)), "these are no matrix"},
		"integers":     {source(queryMap+"_scale_inv", I32, []int{1}, floats(1)), "with scales in I32; only F32"},
	} {
		dir, c := fp8Folder(t, fp8, x.scales)
		weights, err := OpenFolder(dir)
		if err == nil {
			err = weights.Fits(c)
			weights.Close()
		}
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: got %v, want %q", name, err, x.want)
		}
	}
	for what, quantized := range map[string]jsonObject{"nothing": nil, "blocks of 3": fp8} {
		dir, _ := fp8Folder(t, quantized, source(queryMap+"_scale_inv", F32, []int{2, 1}, floats(1, 2)))
		weights, err := OpenFolder(dir)
		if err == nil {
			weights.Close()
		}
		if bad := err != nil && strings.Contains(err.Error(), "nor blocks of which config.json says no size"); bad != (quantized == nil) || errors.Is(err, ErrCorrupt) {
			t.Errorf("two scales of four rows, config.json says %s: %v", what, err)
		}
	}
	for name, q := range map[string]jsonObject{
		"E5M2":           {"quant_method": "fp8", "fmt": "e5m2"},
		"experts in FP4": {"quant_method": "fp8", "expert_dtype": "fp4"},
		"blocks of none": {"quant_method": "fp8", "weight_block_size": []int{0, 128}},
		"integers":       {"quant_method": "compressed-tensors", "format": "pack-quantized"},
		"two sizes of blocks": {"quant_method": "compressed-tensors", "format": "float-quantized",
			"config_groups": jsonObject{"group_0": block8(8), "group_1": block8(16)}},
		"blocks by another name": {"quant_method": "compressed-tensors", "format": "float-quantized",
			"config_groups": jsonObject{"group_0": block8("8x8")}},
		"four bits": {"quant_method": "compressed-tensors", "format": "float-quantized",
			"config_groups": jsonObject{"group_0": jsonObject{"weights": jsonObject{"type": "float", "num_bits": 4}}}},
	} {
		dir, _ := fp8Folder(t, q)
		want := "of quantized weights only FP8"
		if name == "four bits" {
			want = "weights of type float and 4 bits in format float-quantized"
		}
		if _, err := ReadConfig(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// digestsIn returns the digests of a folder's tensors.
func digestsIn(t *testing.T, dir string) []TensorDigest {
	t.Helper()
	weights, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer weights.Close()
	list, err := weights.Digests(nil)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Classes that are only merged: FP8 of another method stays as it is, and FP8 that is half understood is refused.
func TestFP8OfUnknownClasses(t *testing.T) {
	scales := source(queryMap+"_scale", F32, nil, floats(0.5))
	for method, fused := range map[string]bool{"modelopt": false, "fp8": true} {
		dir, _ := fp8Folder(t, jsonObject{"quant_method": method}, scales, source("experts.up", e4m3, []int{2}, "\x38\x38"))
		path := filepath.Join(dir, configFile)
		text := strings.ReplaceAll(string(readFile(t, path)), "LlamaForCausalLM", "FooForCausalLM")
		writeFile(t, path, []byte(text))
		if fused {
			c, err := FindContainer(dir)
			if err == nil {
				_, err = Pack(t.Context(), c, filepath.Join(t.TempDir(), "out"), PackOptions{})
			}
			if err == nil || !strings.Contains(err.Error(), `tensor "experts.up": is in FP8 without scales`) {
				t.Errorf("%s: %v", method, err)
			}
			continue
		}
		merged, _ := packed(t, dir, PackOptions{})
		if a, b := digestsIn(t, dir), digestsIn(t, merged); !reflect.DeepEqual(a, b) || !strings.Contains(string(readFile(t, filepath.Join(merged, configFile))), method) {
			t.Errorf("%s: digests are %v, and %v when merged", method, a, b)
		}
		if weights, err := OpenFolder(merged); err != nil || weights.where[queryMap].DType != e4m3 {
			t.Errorf("%s: %v, %v", method, weights, err)
		} else {
			weights.Close()
		}
	}
}

// Where the file says no size of FP8 blocks, it is 128, as in transformers; where it says null, there are none.
func TestFP8BlockSize(t *testing.T) {
	for text, want := range map[string]int{`"quant_method": "fp8"`: 128, `"quant_method": "fp8", "weight_block_size": null`: 0,
		`"quant_method": "fp8", "weight_block_size": [64, 64]`: 64} {
		r := settings{values: map[string]json.RawMessage{quantization: json.RawMessage("{" + text + "}")}}
		if rows, cols, ok := r.fp8(); rows != want || cols != want || !ok {
			t.Errorf("%s: %d × %d, %v; want %d", text, rows, cols, ok, want)
		}
	}
}
