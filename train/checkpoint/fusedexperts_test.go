package checkpoint

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/model"
)

// ossFolder calls f with the tiny gpt-oss of families.json, and with its tensors as float32s by name.
func ossFolder(t *testing.T, f func(x family, dir string, tokens []int32, values map[string][]float32, c model.Config)) {
	eachFamily(t, func(t *testing.T, x family, dir string, tokens []int32) {
		if x.Name != "gpt-oss" {
			return
		}
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		values := map[string][]float32{}
		for _, w := range waves(c) {
			var b sliceWriter
			if err := w.Raw(&b); err != nil {
				t.Fatal(err)
			}
			values[w.Name] = floatsOf(b.bytes)
		}
		f(x, dir, tokens, values, c)
	})
}

func floatsOf(b []byte) (list []float32) {
	for i := 0; i < len(b); i += 4 {
		list = append(list, math.Float32frombits(binary.LittleEndian.Uint32(b[i:])))
	}
	return list
}

// floatTensor is a source of numbers.
func floatTensor(name string, shape []int, at func(i int) float32) Source {
	n := 1
	for _, d := range shape {
		n *= d
	}
	var raw []byte
	for i := range n {
		raw = appendF32(raw, at(i))
	}
	return source(name, F32, shape, string(raw))
}

// publishedExperts are the experts' tensors of a folder of gpt-oss as transformers writes them.
func publishedExperts(c model.Config, values map[string][]float32) (list []Source) {
	E, C, F := c.Experts.Count, c.Width, c.Experts.FFN
	for l := range c.Layers {
		p := fmt.Sprintf("model.layers.%d.mlp.experts.", l)
		of := func(e int, name string) []float32 { return values[fmt.Sprintf("%s%d.%s", p, e, name)] }
		half := func(j int) string { return []string{"gate_proj", "up_proj"}[j%2] }
		list = append(list,
			floatTensor(p+"gate_up_proj", []int{E, C, 2 * F}, func(i int) float32 {
				e, r, j := i/(C*2*F), i/(2*F)%C, i%(2*F)
				return of(e, half(j)+".weight")[j/2*C+r]
			}),
			floatTensor(p+"gate_up_proj_bias", []int{E, 2 * F}, func(i int) float32 {
				return of(i/(2*F), half(i)+".bias")[i%(2*F)/2]
			}),
			floatTensor(p+"down_proj", []int{E, F, C}, func(i int) float32 {
				return of(i/(F*C), "down_proj.weight")[i%C*F+i/C%F]
			}),
			floatTensor(p+"down_proj_bias", []int{E, C}, func(i int) float32 {
				return of(i/C, "down_proj.bias")[i%C]
			}))
	}
	return list
}

// A published folder of gpt-oss is read, merged, cut over ranks and written again with the bytes that it had.
func TestFusedExperts(t *testing.T) {
	ossFolder(t, func(x family, dir string, tokens []int32, values map[string][]float32, c model.Config) {
		own, err := os.ReadFile(filepath.Join(dir, weightsFile))
		if err != nil {
			t.Fatal(err)
		}
		list := slices.DeleteFunc(waves(c), func(s Source) bool { return strings.Contains(s.Name, expertsOf) })
		writeTensors(t, filepath.Join(dir, weightsFile), append(list, publishedExperts(c, values)...)...)
		published := readFile(t, filepath.Join(dir, weightsFile))

		be := ref.New[float64]()
		m := openGolden(t, be, dir, false)
		got := logitsOf(t, be, m, tokens)
		wantNear(t, got[len(got)-len(x.Logits):], x.Logits, 1e-6)
		m.Close()
		split, err := OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer split.Close()
		var again sliceWriter
		if err := WriteSafetensors(&again, split.Sources()); err != nil {
			t.Fatal(err)
		}
		if string(again.bytes) != string(own) {
			t.Error("the experts are not those that the folder was made of")
		}

		merged, ranks, back := filepath.Join(t.TempDir(), "merged"), filepath.Join(t.TempDir(), "ranks"), filepath.Join(t.TempDir(), "back")
		pack := func(from, to string) {
			found, err := FindContainer(from)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Pack(context.Background(), found, to, PackOptions{}); err != nil {
				t.Fatal(err)
			}
			if string(readFile(t, filepath.Join(to, weightsFile))) != string(published) {
				t.Errorf("%s has other bytes than the published folder", to)
			}
		}
		pack(dir, merged)
		found, err := FindContainer(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Spread(context.Background(), found, ranks, SpreadOptions{FSDP: 3, Prove: true}); err != nil {
			t.Fatal(err)
		}
		pack(ranks, back)

		trained := Trained{Config: c, Heads: model.Heads{LM: true}, Weights: split, Learned: split}
		written := filepath.Join(t.TempDir(), "written")
		if _, err := MergeTensors(be, trained, written, MergeOptions{DType: F32}); err != nil {
			t.Fatal(err)
		}
		if string(readFile(t, filepath.Join(written, weightsFile))) != string(published) {
			t.Error("a trained model is written with other bytes than the published folder")
		}
	})
}

// MXFP4 is widened to BF16: experts are read as if the folder had these numbers, and config.json no longer says
// quantized.
func TestMXFP4Experts(t *testing.T) {
	const E, C, F, L = 3, 64, 32, 1
	dir := t.TempDir()
	config := fmt.Sprintf(`{"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "vocab_size": 11,
		"hidden_size": %d, "intermediate_size": %d, "num_hidden_layers": %d, "num_attention_heads": 2,
		"num_key_value_heads": 1, "head_dim": 4, "num_local_experts": %d, "num_experts_per_tok": 2, "swiglu_limit": 7.0,
		"quantization_config": {"modules_to_not_convert": ["lm_head"], "quant_method": "mxfp4"}, "eos_token_id": 1}`, C, F, L, E)
	writeFile(t, filepath.Join(dir, configFile), []byte(config))
	c, err := ReadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	p := "model.layers.0.mlp.experts."
	want := map[string][]float32{}
	quantized := func(part string, out, in int) (list []Source) {
		var blocks, scales []byte
		for range E * out * in / 2 {
			blocks = append(blocks, byte(r.Uint32()))
		}
		for range E * out * in / 32 {
			scales = append(scales, byte(110+r.IntN(30)))
		}
		names := halves(part)
		for i := range E * out * in {
			nibble := blocks[i/2] >> (4 * (i % 2)) & 15
			v := []float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}[nibble&7] * math.Ldexp(1, int(scales[i/32])-127)
			if nibble > 7 {
				v = -v
			}
			row := i / in % out
			name := fmt.Sprintf("%s%d.%s.weight", p, i/in/out, names[row%len(names)])
			want[name] = append(want[name], float32(v))
		}
		return []Source{source(p+part+"_blocks", "U8", []int{E, out, in / 32, 16}, string(blocks)),
			source(p+part+"_scales", "U8", []int{E, out, in / 32}, string(scales)),
			source(p+part+"_bias", BF16, []int{E, out}, strings.Repeat("\x80\x3f", E*out))}
	}
	list := slices.DeleteFunc(waves(c), func(s Source) bool { return strings.Contains(s.Name, expertsOf) })
	list = append(append(list, quantized("gate_up_proj", 2*F, C)...), quantized("down_proj", C, F)...)
	writeTensors(t, filepath.Join(dir, weightsFile), list...)

	weights, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer weights.Close()
	if err := weights.Fits(c); err != nil {
		t.Fatal(err)
	}
	for name, numbers := range want {
		tensor, _ := weights.Lookup(name)
		got := make([]float32, len(numbers))
		if err := weights.Read(ref.New[float32](), name, kernels.Host(got)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, numbers) || tensor.DType != BF16 {
			t.Errorf("%s is %s, and the numbers are equal: %v", name, tensor.DType, slices.Equal(got, numbers))
		}
	}
	found, err := FindContainer(dir)
	if err != nil {
		t.Fatal(err)
	}
	merged := filepath.Join(t.TempDir(), "merged")
	if _, err := Pack(context.Background(), found, merged, PackOptions{}); err != nil {
		t.Fatal(err)
	}
	if raw := string(readFile(t, filepath.Join(merged, configFile))); strings.Contains(raw, "quantization") || !strings.Contains(raw, `"swiglu_limit": 7.0`) {
		t.Errorf("the merged folder's config.json is %s", raw)
	}
	d, err := Describe(dir)
	if err != nil || !d.Known || !strings.Contains(strings.Join(d.Notes, "\n"), "MXFP4") {
		t.Errorf("described as %+v: %v", d, err)
	}
	other, err := OpenFolder(merged)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, tensor := range weights.List() {
		same := sameBytes(t, weights.raw(tensor.Name), other.raw(tensor.Name))
		if x, _ := other.Lookup(tensor.Name); !same || x.kind() != tensor.kind() {
			t.Errorf("merged %s is %s, want %s with the same bytes", tensor.Name, x.kind(), tensor.kind())
		}
	}
}

// Lists that no fused tensor can hold stay as they are.
func TestFuseExpertsOfAKind(t *testing.T) {
	const p = "model.layers.0.mlp.experts."
	bias := func(name string, d DType, n int) Source { return source(p+name, d, []int{n}, "") }
	whole := []Source{bias("0.down_proj.bias", F32, 4), bias("1.down_proj.bias", F32, 4)}
	if got := fuseExperts(whole, sourceTensor, fusedSource); len(got) != 1 || got[0].kind() != "F32 [2,4]" {
		t.Errorf("two experts became %v", got)
	}
	for name, more := range map[string]Source{
		"another type":    bias("2.down_proj.bias", BF16, 4),
		"another width":   bias("2.down_proj.bias", F32, 5),
		"one left out":    bias("3.down_proj.bias", F32, 4),
		"a gate alone":    bias("0.gate_proj.bias", F32, 4),
		"a gate too much": bias("7.gate_proj.weight", F32, 4),
	} {
		if got := fuseExperts(append(slices.Clone(whole), more), sourceTensor, fusedSource); len(got) != 3 {
			t.Errorf("%s: %d tensors, want the three as they are", name, len(got))
		}
	}
}

// A type that is asked for leaves the bias that chooses experts as it is.
func TestConstantsKeepTheirType(t *testing.T) {
	eachFamily(t, func(t *testing.T, x family, dir string, _ []int32) {
		if x.Name != "glm4-moe" {
			return
		}
		found, err := FindContainer(dir)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "bf16")
		if _, err := Pack(context.Background(), found, to, PackOptions{DType: BF16}); err != nil {
			t.Fatal(err)
		}
		as, err := MergeOptions{DType: BF16}.dtypes(ref.New[float32]())
		if err != nil {
			t.Fatal(err)
		}
		written, err := OpenFolder(to)
		if err != nil {
			t.Fatal(err)
		}
		defer written.Close()
		for _, tensor := range written.List() {
			m := model.Tensor{Name: tensor.Name}
			want := BF16
			if m.Constant() {
				want = F32
			}
			if tensor.DType != want || as(m) != want {
				t.Errorf("%s is %s, and %s when trained; want %s", tensor.Name, tensor.DType, as(m), want)
			}
		}
	})
}

func sameBytes(t *testing.T, a, b io.Reader) bool {
	t.Helper()
	x, err := io.ReadAll(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := io.ReadAll(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(x) == string(y)
}

func TestGptOssRefuses(t *testing.T) {
	base := jsonObject{"architectures": []string{"GptOssForCausalLM"}, "model_type": "gpt_oss", "vocab_size": 11,
		"hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 2, "num_attention_heads": 2,
		"num_key_value_heads": 1, "head_dim": 4, "num_local_experts": 3, "num_experts_per_tok": 2}
	for _, tt := range []struct {
		name, key string
		value     any
		want      string
	}{
		{"another limit", "swiglu_limit", 5.0, "swiglu_limit is 5: only 7"},
		{"another slope", "swiglu_alpha", 1.0, "swiglu_alpha is 1: only 1.702"},
		{"another quantization", "quantization_config", jsonObject{"quant_method": "hqq"}, "of quantized weights only FP8 (E4M3) and"},
		{"no scaling", "rope_scaling", nil, "rope_scaling is null"},
		{"too many experts of a token", "num_experts_per_tok", 4, "num_experts_per_tok is 4 of 3"},
	} {
		changed := jsonObject{tt.key: tt.value}
		for key, v := range base {
			if _, there := changed[key]; !there {
				changed[key] = v
			}
		}
		_, err := ParseConfig(configFile, compact(changed))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	delete(base, "num_experts_per_tok")
	base["experts_per_token"] = 2
	if _, err := ParseConfig(configFile, compact(base)); err == nil || !strings.Contains(err.Error(), "transformers reads num_experts_per_tok") {
		t.Errorf("the other name of the experts of a token: %v", err)
	}
	base["num_experts_per_tok"] = 2
	c, err := ParseConfig(configFile, compact(base))
	if err != nil || c.Rope.Kind != "yarn" || !c.Rope.Exact || c.MaxPositions != 131072 {
		t.Errorf("without rotary settings: %+v, %v", c.Rope, err)
	}
}

// Modules of transformers 5 hold all experts of a layer together, gates before ups, and so do their state dicts.
func TestStateOfExperts(t *testing.T) {
	stacked := 0
	eachFamily(t, func(t *testing.T, x family, dir string, tokens []int32) {
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		var list []Source
		stacks := map[string][]Source{}
		for _, w := range waves(c) { // by name, and so by expert and map
			fused, _, ok := fusedName(w.Name)
			if ok && !c.Experts.Bias {
				stacks[fused] = append(stacks[fused], w)
				continue
			}
			w.Name = strings.Replace(w.Name, ".mlp.moe_statics.", ".mlp.gate.moe_statics.", 1)
			list = append(list, w)
		}
		if len(stacks) == 0 {
			return
		}
		for name, parts := range stacks {
			shape := []int{c.Experts.Count, len(parts) / c.Experts.Count * parts[0].Shape[0], parts[0].Shape[1]}
			list = append(list, stackedSource(Tensor{Name: name, DType: F32, Shape: shape}, parts))
		}
		stacked++
		to := t.TempDir()
		writeFile(t, filepath.Join(to, configFile), readFile(t, filepath.Join(dir, configFile)))
		writeTensors(t, filepath.Join(to, "model.safetensors"), list...)
		sameLogits(t, dir, to, tokens)
	})
	if stacked < 10 {
		t.Errorf("experts of %d models are together, want those of ten or more", stacked)
	}
}
