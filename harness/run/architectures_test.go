package run

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"exp/harness/stage"
	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/checkpoint"
	"exp/train/checkpoint/checkpointtest"
	"exp/train/model"
)

// linearFolder is a folder with the texts of dir and a toy of Qwen3.5's architecture.
func linearFolder(t *testing.T, dir string) string { return linearFolderOf(t, dir, 16) }

// linearFolderOf is one with keys of so many channels.
func linearFolderOf(t *testing.T, dir string, channels int) string {
	t.Helper()
	c := model.Config{Layers: 2, Width: 32, Heads: 2, KVHeads: 1, Head: 16, FFN: 48, RopeTheta: 1e4,
		NormEps: 1e-6, QKNorm: true, UnitOffset: true, OutputGate: true, TieEmbeddings: true, MaxPositions: 256,
		InitStd: 0.1, Rotary: 4, Linear: []bool{true, false},
		Delta: kernels.DeltaShape{Keys: 1, Values: 2, KeyDim: channels, ValueDim: 16, Taps: 4}}
	return toyFolder(t, dir, c)
}

// toyFolder is a folder with the texts of dir and a toy of an architecture, for its tokens.
func toyFolder(t *testing.T, dir string, c model.Config) string {
	t.Helper()
	old, err := checkpoint.ReadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	c.Vocab = old.Vocab
	be := ref.New[float32]()
	m, err := model.New(be, c, model.Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Init(func(label string) uint64 { return uint64(len(label)) })
	for _, b := range m.Constants() {
		for i := range b.Len() {
			kernels.Elems[float32](b)[i] += float32(i%3+1) / 16
		}
	}
	to := filepath.Join(t.TempDir(), "toy")
	checkpointtest.WriteFolder(t, be, m, to, checkpoint.MergeOptions{DType: checkpoint.F32})
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json", "generation_config.json",
		"special_tokens_map.json", "chat_template.jinja"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// A model with linear attention learns, with all weights and by adapters, with and without recomputation and
// in both classes of the CPU: what the sampler draws has the trainer's bits (every step checks it), the run can
// be verified, and the merged folder has the architecture.
func TestLinearAttention(t *testing.T) {
	learns(t, linearFolder(t, publishedFolder(t)), [][]string{{"grpo"}, {"flowrl", "compute.recompute=true"},
		{"grpo", "model.dtype=bf16"}, {"ppo", "compute.recompute=true"}})
}

// The same for OLMo Hybrid, whose linear attention has norms before it and writes twice as much.
func TestOlmoHybrid(t *testing.T) {
	learns(t, olmoHybridFolder(t, publishedFolder(t)), [][]string{{"grpo"}, {"flowrl", "compute.recompute=true"},
		{"grpo", "model.dtype=bf16"}, {"ppo", "compute.recompute=true"}})
}

// olmoHybridFolder is a folder with the texts of dir and a toy of OLMo Hybrid's architecture.
func olmoHybridFolder(t *testing.T, dir string) string {
	t.Helper()
	return toyFolder(t, dir, model.Config{Layers: 3, Width: 32, Heads: 2, KVHeads: 1, Head: 16, FFN: 48, RopeTheta: 1e4,
		NormEps: 1e-6, QKNorm: true, WideQKNorm: true, PostNorms: true, NoPreNorms: true, MaxPositions: 256, InitStd: 0.1,
		Names: model.OlmoHybridNames, NoRope: []bool{true, true, true}, Linear: []bool{true, false, true},
		DoubleWrites: true, DeltaEps: 1e-5,
		Delta: kernels.DeltaShape{Keys: 1, Values: 2, KeyDim: 8, ValueDim: 16, Taps: 4}})
}

// The same for sinks, and experts with biases.
func TestGptOss(t *testing.T) {
	learns(t, ossFolder(t, publishedFolder(t)), [][]string{{"flowrl"}, {"ppo", "compute.recompute=true"},
		{"grpo", "model.dtype=bf16"}})
}

// The same for experts chosen by a Sigmoid and a bias, which no training changes.
func TestGLM(t *testing.T) {
	learns(t, glmFolder(t, publishedFolder(t)), [][]string{{"grpo"}, {"ppo", "train.optim.weight_decay=0.1"}})
}

// glmFolder is a folder with the texts of dir and a toy of GLM-4.5's architecture, whose first layer has no experts.
func glmFolder(t *testing.T, dir string) string {
	t.Helper()
	return toyFolder(t, dir, model.Config{Layers: 2, Width: 32, Heads: 4, KVHeads: 2, Head: 16, FFN: 48,
		RopeTheta: 1e4, NormEps: 1e-5, QKNorm: true, Rotary: 8, MaxPositions: 256, InitStd: 0.1, Sparse: []bool{false, true},
		Experts: model.Experts{Count: 6, Top: 2, FFN: 24, Shared: 24, Renorm: true, Sigmoid: true, Corrected: true,
			Ungated: true, Groups: 3, TopGroups: 2, Scale: 1.5}})
}

// The same for norms and rotary positions of GLM-4, for Granite's multipliers, for Hunyuan's late norms and for Arcee's
// blocks without gates.
func TestOtherPlaces(t *testing.T) {
	plain := model.Config{Layers: 2, Width: 32, Heads: 4, KVHeads: 2, Head: 16, FFN: 48, RopeTheta: 1e4, NormEps: 1e-5,
		MaxPositions: 256, InitStd: 0.1}
	glm, granite, hunyuan, arcee := plain, plain, plain, plain
	glm.QKVBias, glm.Rotary, glm.Interleaved, glm.FusedFFN, glm.PostNorms, glm.GLMNorms = true, 8, true, true, true, true
	granite.EmbedScale, granite.QueryScale, granite.ResidualScale, granite.LogitDivisor = 12, 0.1, 0.22, 2
	hunyuan.QKNorm, hunyuan.LateQKNorm, hunyuan.TieEmbeddings = true, true, true
	arcee.Gate = kernels.ReLU2
	for _, c := range []model.Config{glm, granite, hunyuan, arcee} {
		learns(t, toyFolder(t, publishedFolder(t), c), [][]string{{"grpo"}, {"flowrl", "compute.recompute=true"}})
	}
}

// The same for experts of ERNIE 4.5, Hunyuan, FlexOlmo and Granite.
func TestOtherExperts(t *testing.T) {
	plain := model.Config{Layers: 2, Width: 32, Heads: 4, KVHeads: 2, Head: 16, FFN: 48, RopeTheta: 1e4, NormEps: 1e-5,
		MaxPositions: 256, InitStd: 0.1, Sparse: []bool{true, true}}
	ernie, hunyuan, three, flex := plain, plain, plain, plain
	ernie.Interleaved, ernie.Sparse = true, []bool{false, true}
	ernie.Experts = model.Experts{Count: 6, Top: 2, FFN: 24, Shared: 48, Renorm: true, Corrected: true, Ungated: true,
		Names: model.ErnieNames}
	hunyuan.QKNorm, hunyuan.LateQKNorm = true, true
	hunyuan.Experts = model.Experts{Count: 6, Top: 2, FFN: 48, Shared: 48, Renorm: true, Ungated: true,
		Names: model.HunyuanNames}
	three.QKNorm, three.Sparse = true, []bool{false, true}
	three.Experts = model.Experts{Count: 6, Top: 2, FFN: 24, Shared: 24, Renorm: true, Sigmoid: true, Corrected: true,
		Ungated: true, Scale: 1.5, Names: model.HunyuanThree}
	flex.QKNorm, flex.WideQKNorm, flex.PostNorms, flex.NoPreNorms = true, true, true, true
	flex.Experts = model.Experts{Count: 6, Top: 2, FFN: 48}
	granite := plain
	granite.EmbedScale, granite.QueryScale, granite.ResidualScale, granite.LogitDivisor = 12, 0.1, 0.22, 2
	granite.Names, granite.Experts = model.GraniteNames, model.Experts{Count: 6, Top: 2, FFN: 48, Renorm: true}
	for _, c := range []model.Config{ernie, hunyuan, three, flex, granite} {
		learns(t, toyFolder(t, publishedFolder(t), c), [][]string{{"grpo"},
			{"flowrl", "compute.recompute=true", "train.optim.weight_decay=0.1"}})
	}
}

// The same for AFMoE: gates of attention's output, layers without rotary positions, and norms after the blocks.
func TestAfmoe(t *testing.T) {
	learns(t, toyFolder(t, publishedFolder(t), model.Config{Layers: 2, Width: 32, Heads: 4, KVHeads: 2, Head: 16, FFN: 48,
		RopeTheta: 1e4, NormEps: 1e-5, MaxPositions: 256, InitStd: 0.1, PostNorms: true, QKNorm: true, EmbedScale: math.Sqrt(32),
		Names: model.AfmoeNames, GateMap: true, Window: 8, Windowed: []bool{true, false}, NoRope: []bool{false, true},
		Sparse: []bool{false, true}, Experts: model.Experts{Count: 6, Top: 2, FFN: 24, Shared: 24, Renorm: true,
			Sigmoid: true, Corrected: true, Ungated: true, Scale: 2.5}}), [][]string{{"grpo"},
		{"flowrl", "compute.recompute=true", "train.optim.weight_decay=0.1"}, {"grpo", "model.dtype=bf16"}, {"ppo"}})
}

// The same for nanochat, whose norms have no weights.
func TestNanochat(t *testing.T) {
	learns(t, toyFolder(t, publishedFolder(t), model.Config{Layers: 2, Width: 32, Heads: 4, KVHeads: 2, Head: 8, FFN: 48,
		RopeTheta: 1e4, NormEps: 1e-6, MaxPositions: 256, InitStd: 0.1, UnitOffset: true, QKNorm: true, LateQKNorm: true,
		Gate: kernels.ReLU2, Names: model.NanoNames, LogitCap: 15}), [][]string{{"grpo"},
		{"flowrl", "compute.recompute=true", "train.optim.weight_decay=0.1"}, {"grpo", "model.dtype=bf16"}, {"ppo"}})
}

// The same for Apertus, whose activation is learned: its numbers change, beta and eps do not.
func TestApertus(t *testing.T) {
	learns(t, toyFolder(t, publishedFolder(t), model.Config{Layers: 2, Width: 32, Heads: 4, KVHeads: 2, Head: 8, FFN: 48,
		RopeTheta: 1e4, NormEps: 1e-5, MaxPositions: 256, InitStd: 0.1, QKNorm: true, Gate: kernels.XIELU,
		Names: model.ApertusNames}), [][]string{{"grpo"},
		{"flowrl", "compute.recompute=true", "train.optim.weight_decay=0.1"}, {"grpo", "model.dtype=bf16"}, {"ppo"}})
}

// The same for LayerNorm: GPT-NeoX, GPT-2, Cohere 2, StarCoder2, StableLM, OLMo, Command R+ and Phi-2.
func TestLayerNorms(t *testing.T) {
	for i, c := range layerNorms() {
		recipes := [][]string{{"grpo"}, {"flowrl", "compute.recompute=true", "train.optim.weight_decay=0.1"}}
		if i < 3 {
			recipes = append(recipes, []string{"grpo", "model.dtype=bf16"}, []string{"ppo", "compute.recompute=true"})
		}
		learns(t, toyFolder(t, publishedFolder(t), c), recipes)
	}
}

// layerNorms are toys of these families.
func layerNorms() []model.Config {
	plain := model.Config{Layers: 2, Width: 32, Heads: 4, KVHeads: 2, Head: 8, FFN: 48, RopeTheta: 1e4, NormEps: 1e-5,
		MaxPositions: 256, InitStd: 0.1, Norm: model.LayerNorm}
	neoX, gpt2, cohere, star, stable, olmo := plain, plain, plain, plain, plain, plain
	neoX.KVHeads, neoX.Rotary, neoX.Fused, neoX.QKVBias, neoX.OutBias, neoX.FFNBias = 4, 2, true, true, true, true
	neoX.Gate, neoX.Names, neoX.Branches = kernels.PlainGELU, model.NeoXNames, model.TwoNorms
	gpt2.KVHeads, gpt2.Fused, gpt2.QKVBias, gpt2.OutBias, gpt2.FFNBias = 4, true, true, true, true
	gpt2.Gate, gpt2.Names, gpt2.Learned = kernels.PlainGELUTanh, model.GPT2Names, true
	gpt2.NoRope, gpt2.TieEmbeddings = []bool{true, true}, true
	cohere.Norm, cohere.Branches, cohere.Interleaved, cohere.LogitDivisor = model.WeightLayerNorm, model.OneNorm, true, 4
	cohere.TieEmbeddings, cohere.Window, cohere.Windowed, cohere.NoRope = true, 8, []bool{true, false}, []bool{false, true}
	star.QKVBias, star.OutBias, star.FFNBias, star.Gate = true, true, true, kernels.PlainGELUTanh
	star.Names = model.StarNames
	stable.QKVBias, stable.Branches, stable.Rotary = true, model.OneNorm, 4
	olmo.Norm = model.PlainLayerNorm
	command, clipped := cohere, olmo
	command.HeadLayerNorm, command.Window, command.Windowed, command.NoRope = true, 0, nil, nil
	clipped.ClipQKV = 0.5
	phi := star
	phi.Names, phi.Branches, phi.OutputBias, phi.Rotary = model.PhiNames, model.OneNorm, true, 4
	return []model.Config{neoX, gpt2, cohere, star, stable, olmo, command, clipped, phi}
}

// Gemma 4 learns with heads of two sizes and with experts beside its feed-forward blocks.
func TestGemmaFour(t *testing.T) {
	for _, c := range gemmaFours() {
		learns(t, toyFolder(t, publishedFolder(t), c), [][]string{{"grpo"}, {"flowrl", "compute.recompute=true"},
			{"grpo", "model.dtype=bf16"}, {"ppo", "train.optim.weight_decay=0.1"}})
	}
}

// gemmaFours are toys of Gemma 4: dense, with experts, and with embeddings for each layer.
func gemmaFours() []model.Config {
	dense := model.Config{Layers: 2, Width: 32, Heads: 4, KVHeads: 2, Head: 8, FFN: 48, RopeTheta: 1e6, LocalTheta: 1e4,
		NormEps: 1e-6, MaxPositions: 256, InitStd: 0.1, TieEmbeddings: true, PostNorms: true, QKNorm: true,
		Gate: kernels.GELUTanh, EmbedScale: math.Sqrt(32), QueryScale: 1, LogitCap: 30, ValueNorm: true, LayerScales: true,
		Window: 8, Windowed: []bool{true, false}, Global: model.Global{Head: 16, KVHeads: 1, KeyValues: true},
		Rope: model.RopeScaling{Kind: "proportional", Factor: 1, Turned: 4}}
	sparse := dense
	sparse.Sparse = []bool{true, true}
	sparse.Experts = model.Experts{Count: 6, Top: 2, FFN: 24, Renorm: true, Beside: true}
	small := dense
	small.Global = model.Global{Head: 16, KVHeads: 2}
	small.PerLayer, small.SharedKV, small.WideFFN = 8, 2, true
	small.Layers, small.Windowed = 4, []bool{true, false, true, false}
	return []model.Config{dense, sparse, small}
}

// The same for latent attention, with such experts.
func TestLatentAttention(t *testing.T) {
	learns(t, toyFolder(t, publishedFolder(t), model.Config{Layers: 2, Width: 32, Heads: 4, KVHeads: 4, Head: 24, FFN: 48,
		RopeTheta: 1e4, NormEps: 1e-6, Rotary: 8, MaxPositions: 256, InitStd: 0.1, Sparse: []bool{false, true},
		Latent: model.Latent{Rank: 20, QueryRank: 12, Nope: 16, Rope: 8, Value: 16, Interleaved: true, NormEps: 1e-6},
		Experts: model.Experts{Count: 6, Top: 2, FFN: 24, Shared: 48, Renorm: true, Sigmoid: true, Corrected: true,
			Ungated: true, Scale: 1.5}}), [][]string{{"grpo"}, {"flowrl", "compute.recompute=true"},
		{"grpo", "model.dtype=bf16"}, {"ppo"}})
}

// The same for a model that is published in FP8.
func TestFP8Folder(t *testing.T) {
	c := model.Config{Layers: 2, Width: 32, Heads: 4, KVHeads: 2, Head: 16, FFN: 48, RopeTheta: 1e4, NormEps: 1e-5,
		MaxPositions: 256, InitStd: 0.1}
	learns(t, fp8Folder(t, toyFolder(t, publishedFolder(t), c)), [][]string{{"grpo"}, {"flowrl"}})
}

// The same for one in GPTQ.
func TestGPTQFolder(t *testing.T) {
	c := model.Config{Layers: 2, Width: 32, Heads: 4, KVHeads: 2, Head: 16, FFN: 48, RopeTheta: 1e4, NormEps: 1e-5,
		MaxPositions: 256, InitStd: 0.1}
	learns(t, gptqFolder(t, toyFolder(t, publishedFolder(t), c)), [][]string{{"grpo"}, {"flowrl"}})
}

// fp8Folder is a copy of a folder whose projections are in FP8, each with one scale, 1/64.
func fp8Folder(t *testing.T, dir string) string {
	t.Helper()
	var values [127]float64 // of the elements that are not negative
	for b := range values {
		if values[b] = math.Ldexp(8+float64(b%8), b/8-10); b < 8 {
			values[b] = math.Ldexp(float64(b), -9)
		}
	}
	return quantizedFolder(t, dir, `{"quant_method": "fp8", "weight_block_size": null}`,
		func(x checkpoint.Tensor, floats []float32, add adder) {
			var elements []byte
			for _, v := range floats {
				at, found := slices.BinarySearch(values[:], math.Abs(float64(v))*64)
				if !found && at > 0 {
					at--
				}
				if v < 0 {
					at |= 128
				}
				elements = append(elements, byte(at))
			}
			add("", "F8_E4M3", x.Shape, elements)
			add("_scale_inv", checkpoint.F32, nil, binary.LittleEndian.AppendUint32(nil, math.Float32bits(1./64)))
		})
}

// gptqFolder is a copy of a folder whose projections are in GPTQ of 4 bits, with one group of inputs, whose scales are
// 1/32, a bfloat16.
func gptqFolder(t *testing.T, dir string) string {
	t.Helper()
	return quantizedFolder(t, dir, `{"quant_method": "gptq", "bits": 4, "group_size": -1}`,
		func(x checkpoint.Tensor, floats []float32, add adder) {
			out, in := x.Shape[0], x.Shape[1]
			words := make([]uint32, in/8*out)
			for i, v := range floats {
				q := min(max(math.Round(float64(v)*32), -8), 7) + 8
				words[i%in/8*out+i/in] |= uint32(q) << (4 * (i % in % 8))
			}
			var packed, scales []byte
			for _, w := range words {
				packed = binary.LittleEndian.AppendUint32(packed, w)
			}
			for range out {
				scales = binary.LittleEndian.AppendUint16(scales, 0x3d00)
			}
			add("qweight", checkpoint.I32, []int{in / 8, out}, packed)
			add("qzeros", checkpoint.I32, []int{1, out / 8}, bytes.Repeat([]byte{0x77}, out/2))
			add("scales", checkpoint.BF16, []int{1, out}, scales)
		})
}

// adder adds a tensor to a folder: of that name, or that end of the name of a weight.
type adder func(end string, dtype checkpoint.DType, shape []int, raw []byte)

// quantizedFolder is a copy of a folder whose projections are other tensors.
func quantizedFolder(t *testing.T, dir, quantization string,
	quantize func(x checkpoint.Tensor, floats []float32, add adder)) string {
	t.Helper()
	weights, err := checkpoint.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer weights.Close()
	var list []checkpoint.Source
	add := func(name string, dtype checkpoint.DType, shape []int, raw []byte) {
		list = append(list, checkpoint.Source{Tensor: checkpoint.Tensor{Name: name, DType: dtype, Shape: shape},
			Raw: func(w io.Writer) error { _, err := w.Write(raw); return err }})
	}
	for _, x := range weights.List() {
		floats := make([]float32, x.Len())
		if err := weights.Read(ref.New[float32](), x.Name, kernels.Host(floats)); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(x.Name, "_proj.") {
			quantize(x, floats, func(end string, dtype checkpoint.DType, shape []int, raw []byte) {
				name := x.Name + end
				if end != "" && end[0] != '_' {
					name = strings.TrimSuffix(x.Name, "weight") + end
				}
				add(name, dtype, shape, raw)
			})
			continue
		}
		var wide []byte
		for _, v := range floats {
			wide = binary.LittleEndian.AppendUint32(wide, math.Float32bits(v))
		}
		add(x.Name, checkpoint.F32, x.Shape, wide)
	}
	slices.SortFunc(list, func(a, b checkpoint.Source) int { return strings.Compare(a.Name, b.Name) })
	to := filepath.Join(t.TempDir(), "quantized")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := checkpoint.WriteSafetensors(&file, list); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	config = bytes.Replace(config, []byte("{"), []byte(`{"quantization_config": `+quantization+`, `), 1)
	for name, text := range map[string][]byte{"model.safetensors": file.Bytes(), "config.json": config} {
		if err := os.WriteFile(filepath.Join(to, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// ossFolder is a folder with the texts of dir and a toy of gpt-oss's architecture.
func ossFolder(t *testing.T, dir string) string {
	t.Helper()
	return toyFolder(t, dir, model.Config{Layers: 2, Width: 32, Heads: 4, KVHeads: 2, Head: 16, FFN: 24,
		RopeTheta: 15e4, NormEps: 1e-5, QKVBias: true, OutBias: true, Sinks: true, MaxPositions: 256, InitStd: 0.1,
		Window: 6, Windowed: []bool{true, false}, Sparse: []bool{true, true}, Gate: kernels.Clamped,
		Rope:    model.RopeScaling{Kind: "yarn", Factor: 4, Original: 64, BetaFast: 32, BetaSlow: 1, Attention: 1.1, Exact: true},
		Experts: model.Experts{Count: 5, Top: 2, FFN: 24, Renorm: true, Bias: true}})
}

// learns runs a model by several recipes, the first half by adapters and the others with all weights, and verifies
// the runs.
func learns(t *testing.T, dir string, recipes [][]string) {
	t.Helper()
	data := verlFile(t)
	want, err := checkpoint.ReadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	labs := map[kernels.DType]*lab{kernels.F32: newLab(t), kernels.BF16: labOf(t, kernels.BF16)}
	for i, more := range recipes {
		sets := loraSets(dir, data, more[0])
		if i >= len(recipes)/2 { // all weights learn
			sets = slices.DeleteFunc(sets, func(s string) bool { return strings.HasPrefix(s, "train.lora=") })
		}
		l := labs[kernels.F32]
		if slices.Contains(more, "model.dtype=bf16") {
			l = labs[kernels.BF16]
		}
		p := l.plan(0, append(sets, append(more[1:], fmt.Sprint("name=toy", i))...)...)
		res, _ := l.execute(p)
		for kind, use := range l.memoryOf(res.Run.ID) {
			p, planned := float64(use.Peak), float64(use.Planned)
			t.Logf("%v, %s: %.2f times the planned memory", more, kind, p/planned)
			if !(p > 0 && p <= 1.05*planned && planned <= 1.25*p) {
				t.Errorf("%v, %s: peak %d bytes, planned %d: %.2f times", more, kind, use.Peak, use.Planned, p/planned)
			}
		}
		merged := filepath.Join(l.db.RunDir(res.Run.RID), stage.MergedDir)
		if got, err := checkpoint.ReadConfig(merged); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: merged architecture %+v, %v; want %+v", more, got, err, want)
		}
		sameConstants(t, dir, merged)
		if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
			t.Errorf("%v: verify: %+v", more, v)
		}
	}
}

// sameConstants checks that a merged folder has the base's parameters that no gradient changes.
func sameConstants(t *testing.T, base, merged string) {
	t.Helper()
	var of [2]map[string][]float32
	for i, dir := range []string{base, merged} {
		weights, err := checkpoint.OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		of[i] = map[string][]float32{}
		for _, x := range weights.List() {
			if (model.Tensor{Name: x.Name}).Constant() {
				of[i][x.Name] = make([]float32, x.Len())
				if err := weights.Read(ref.New[float32](), x.Name, kernels.Host(of[i][x.Name])); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := weights.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(of[0], of[1]) {
		t.Errorf("constants were %v and are %v", of[0], of[1])
	}
}

// Keys that do not fit into a GPU's shared memory are refused before any work, with what to do.
func TestLinearAttentionTooWideForGPU(t *testing.T) {
	plain, data := publishedFolder(t), verlFile(t)
	for channels, want := range map[int]string{16: "", 1000: "kernels for linear attention with keys of 1000 and values of 16 channels"} {
		r := smoke(t, loraSets(linearFolderOf(t, plain, channels), data, "grpo")...)
		for on, refused := range map[string]bool{"cpu": false, "cuda": want != ""} {
			r.Run.Compute.Device = on
			text := fmt.Sprint(Require(r, Alone()))
			if strings.Contains(text, "kernels for linear attention") != refused || refused && (!strings.Contains(text, want) ||
				!strings.Contains(text, "to do    compute on the CPU: compute.device: cpu")) {
				t.Errorf("%d channels on %s: %s", channels, on, text)
			}
		}
		r.Run.Train.Steps = 0 // sampling alone needs less
		if text := fmt.Sprint(Require(r, Alone())); strings.Contains(text, "kernels for linear") {
			t.Errorf("%d channels, without training: %s", channels, text)
		}
	}
}

// hybridFolders are folders with the texts of dir and toys of Nemotron-H with experts and of Granite 4.
func hybridFolders(t *testing.T, dir string) []string {
	t.Helper()
	plain := model.Config{Layers: 2, Width: 32, Heads: 4, KVHeads: 2, Head: 16, FFN: 48, RopeTheta: 1e4, NormEps: 1e-5,
		MaxPositions: 256, InitStd: 0.1,
		Delta: kernels.DeltaShape{Keys: 2, Values: 4, KeyDim: 16, ValueDim: 16, Taps: 4, Scan: true}}
	nemotron, granite := plain, plain
	nemotron.Layers, nemotron.Names, nemotron.Gate, nemotron.Delta.Low = 4, model.NemotronNames, kernels.ReLU2, 0.001
	nemotron.NoMixer, nemotron.NoFFN = []bool{false, true, false, true}, []bool{true, false, true, false}
	nemotron.Linear, nemotron.NoRope = []bool{true, false, false, false}, slices.Repeat([]bool{true}, 4)
	nemotron.Sparse = []bool{false, false, false, true}
	nemotron.Experts = model.Experts{Count: 6, Top: 2, FFN: 24, Shared: 24, Renorm: true, Sigmoid: true, Corrected: true,
		Ungated: true, Scale: 1.5}
	granite.Names, granite.Linear, granite.NoRope = model.GraniteNames, []bool{true, false}, []bool{true, true}
	granite.EmbedScale, granite.QueryScale, granite.ResidualScale, granite.LogitDivisor = 12, 0.1, 0.22, 2
	granite.TieEmbeddings, granite.Sparse = true, []bool{true, true}
	granite.Experts = model.Experts{Count: 5, Top: 2, FFN: 24, Shared: 48, Renorm: true, Ungated: true}
	granite.FFN = granite.Experts.Shared
	return []string{toyFolder(t, dir, nemotron), toyFolder(t, dir, granite)}
}

// Hybrids with Mamba-2 learn, too.
func TestHybrids(t *testing.T) {
	for _, dir := range hybridFolders(t, publishedFolder(t)) {
		learns(t, dir, [][]string{{"grpo"}, {"flowrl", "compute.recompute=true"}, {"grpo", "model.dtype=bf16"},
			{"ppo", "compute.recompute=true"}})
	}
}

// lfmFolders are folders with the texts of dir and toys of LFM2, dense and with experts.
func lfmFolders(t *testing.T, dir string) []string {
	t.Helper()
	dense := model.Config{Layers: 3, Width: 32, Heads: 2, KVHeads: 1, Head: 16, FFN: 48, RopeTheta: 1e6, NormEps: 1e-5,
		QKNorm: true, TieEmbeddings: true, MaxPositions: 256, InitStd: 0.1, Names: model.LFMNames,
		Linear: []bool{true, false, true}, Delta: kernels.DeltaShape{Values: 1, ValueDim: 32, Taps: 3, Conv: true}}
	sparse := dense
	sparse.Sparse = []bool{false, true, true}
	sparse.Experts = model.Experts{Count: 6, Top: 2, FFN: 24, Renorm: true, Sigmoid: true, Corrected: true, Scale: 1,
		Eps: 1e-6}
	return []string{toyFolder(t, dir, dense), toyFolder(t, dir, sparse)}
}

// So do models with gated short convolutions.
func TestShortConvolutions(t *testing.T) {
	for _, dir := range lfmFolders(t, publishedFolder(t)) {
		learns(t, dir, [][]string{{"grpo"}, {"flowrl", "compute.recompute=true"}, {"grpo", "model.dtype=bf16"},
			{"ppo", "compute.recompute=true"}})
	}
}

// falconFolder is a folder with the texts of dir and a toy of Falcon-H1.
func falconFolder(t *testing.T, dir string) string {
	t.Helper()
	return toyFolder(t, dir, model.Config{Layers: 2, Width: 32, Heads: 4, KVHeads: 2, Head: 16, FFN: 48, RopeTheta: 1e11,
		NormEps: 1e-5, MaxPositions: 256, InitStd: 0.1, Names: model.BambaNames, Linear: []bool{true, true}, Parallel: true,
		ScanNorm: model.NoScanNorm, EmbedScale: 5.7, Multipliers: model.Multipliers{Logits: 0.3, Key: 0.4, AttentionIn: 1.1,
			AttentionOut: 0.9, ScanIn: 1.25, ScanOut: 0.24, Scan: [5]float64{0.35, 0.25, 0.36, 0.5, 0.37}, Gate: 0.88, Down: 0.59},
		Delta: kernels.DeltaShape{Keys: 1, Values: 4, KeyDim: 16, ValueDim: 12, Taps: 4, Scan: true}})
}

// Falcon-H1 learns, too.
func TestFalcon(t *testing.T) {
	learns(t, falconFolder(t, publishedFolder(t)), [][]string{{"grpo"}, {"flowrl", "compute.recompute=true"},
		{"grpo", "model.dtype=bf16"}, {"ppo", "compute.recompute=true"}})
}
