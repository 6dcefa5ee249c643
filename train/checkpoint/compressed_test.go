package checkpoint

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// compressedConfig is the quantization_config of one group of modules.
func compressedConfig(format string, weights jsonObject) jsonObject {
	return jsonObject{"quant_method": "compressed-tensors", "format": format, "quantization_status": "compressed",
		"ignore": []string{"lm_head", "re:.*router"}, "sparsity_config": jsonObject{}, "transform_config": jsonObject{},
		"kv_cache_scheme": nil,
		"config_groups":   jsonObject{"group_0": jsonObject{"targets": []string{"Linear"}, "weights": weights, "input_activations": nil}}}
}

// zeroForm is how zero points are stored.
type zeroForm int

const (
	noZeros zeroForm = iota
	packedZeros
	plainZeros
)

// compressedCase is a folder whose query maps are packed integers, by bits, or bytes.
func compressedCase(r *rand.Rand, format string, bits, groups int, zeros zeroForm, listed bool, scales, dtype DType) quantCase {
	const n = quantSide
	size, half := n/groups, 1<<(bits-1)
	x := quantCase{dtype: dtype, want: make([]float32, n*n), quantized: compressedConfig(format,
		jsonObject{"type": "int", "num_bits": bits, "symmetric": zeros == noZeros, "strategy": "group", "group_size": size})}
	factors, zero := randomScales(r, scales, n*groups), make([]int, n*groups)
	inWord := 32 / bits
	packed, bytes := make([]byte, n/inWord*groups*4), []byte{}
	for i := range zero {
		if zeros != noZeros {
			zero[i] = r.IntN(2*half) - half
		}
		o, g := i/groups, i%groups
		setBits(packed, 32*(o/inWord*groups+g)+o%inWord*bits, bits, zero[i]+half)
		bytes = append(bytes, byte(zero[i]))
	}
	order, index := r.Perm(n), []byte{}
	group := func(i int) int {
		if listed {
			return order[i] / size
		}
		return i / size
	}
	for i := range n {
		index = binary.LittleEndian.AppendUint32(index, uint32(group(i)))
	}
	words, codes := make([]byte, n*n*bits/8), []byte{}
	for o := range n {
		for i := range n {
			q, g := r.IntN(2*half)-half, o*groups+group(i)
			setBits(words, (o*n+i)*bits, bits, q+half)
			codes = append(codes, byte(q))
			x.want[o*n+i] = scaledBy(q, zero[g], factors[g], scales, dtype)
		}
	}
	add := func(end string, dtype DType, shape []int, raw string) {
		x.query = append(x.query, source(queryLayer+end, dtype, shape, raw))
	}
	if format == packFormat {
		add(".weight_packed", I32, []int{n, n * bits / 32}, string(words))
		add(".weight_shape", "I64", []int{2}, strings.Repeat("\x20\x00\x00\x00\x00\x00\x00\x00", 2))
	} else {
		add(".weight", "I8", []int{n, n}, string(codes))
	}
	add(".weight_scale", scales, []int{n, groups}, typed(scales, factors...))
	switch zeros {
	case packedZeros:
		add(".weight_zero_point", I32, []int{n / inWord, groups}, string(packed))
	case plainZeros:
		add(".weight_zero_point", "I8", []int{n, groups}, string(bytes))
	}
	if listed {
		add(".weight_g_idx", I32, []int{n}, string(index))
	}
	return x
}

// Modules in compressed-tensors are weights to everybody.
func TestCompressedFolder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, bits := range []int{2, 4, 8} {
		for _, zeros := range []zeroForm{noZeros, packedZeros, plainZeros} {
			for _, listed := range []bool{true, false} {
				compressedCase(r, packFormat, bits, 4, zeros, listed, BF16, BF16).check(t)
			}
		}
	}
	compressedCase(r, packFormat, 4, 1, packedZeros, false, F16, F16).check(t) // one group: channels
	compressedCase(r, packFormat, 4, 2, noZeros, false, F16, BF16).check(t)
	compressedCase(r, "int-quantized", 8, 1, noZeros, false, BF16, BF16).check(t)
	compressedCase(r, "int-quantized", 8, 4, plainZeros, true, F32, BF16).check(t)
	compressedCase(r, naiveFormat, 8, 1, plainZeros, false, F16, F16).check(t)
	ordered := compressedCase(r, packFormat, 4, 4, noZeros, false, BF16, BF16)
	instead(".weight_g_idx", I32, []int{quantSide}, strings.Repeat("\xff", 4*quantSide))(&ordered.query)
	ordered.check(t)
}

// One scale, and one zero point, for a whole matrix; and tensors that only activations use.
func TestCompressedWhole(t *testing.T) {
	const n = quantSide
	x := compressedCase(rand.New(rand.NewPCG(2, 2)), "int-quantized", 8, 1, noZeros, false, BF16, BF16)
	instead(".weight_scale", BF16, []int{1}, typed(BF16, 0.5))(&x.query)
	instead(".weight_zero_point", "I8", []int{1}, "\xfd")(&x.query)
	x.query = append(x.query, source(queryLayer+".input_scale", F32, []int{1}, typed(F32, 9)),
		source(queryLayer+".input_zero_point", "I8", []int{1}, "\x01"),
		source("model.layers.0.self_attn.k_scale", BF16, []int{1}, typed(BF16, 3)))
	var codes sliceWriter
	i := slices.IndexFunc(x.query, func(s Source) bool { return s.Name == queryLayer+".weight" })
	if err := x.query[i].Raw(&codes); err != nil {
		t.Fatal(err)
	}
	for i, c := range codes.bytes {
		x.want[i] = scaledBy(int(int8(c)), -3, 0.5, BF16, BF16)
	}
	group := x.quantized["config_groups"].(jsonObject)["group_0"].(jsonObject)
	group["input_activations"] = jsonObject{"num_bits": 8, "type": "int", "dynamic": true}
	x.quantized["kv_cache_scheme"] = jsonObject{"num_bits": 8, "type": "float"}
	x.check(t)
	dir, _ := quantFolder(t, BF16, x.quantized, x.query...)
	d, err := Describe(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"(input_activations), as vLLM does it: here they are not", "(kv_cache_scheme)"} {
		if !strings.Contains(strings.Join(d.Notes, "\n"), want) {
			t.Errorf("notes are %q, want %q", d.Notes, want)
		}
	}
}

// A row that does not fill its words.
func TestCompressedPadding(t *testing.T) {
	dir := t.TempDir()
	path := writeTensors(t, dir+"/model.safetensors",
		source("a.weight_packed", I32, []int{1, 2}, "\x10\x32\x54\x76\x98\x00\x00\x00"),
		source("a.weight_shape", I32, []int{2}, "\x01\x00\x00\x00\x0a\x00\x00\x00"),
		source("a.weight_scale", BF16, []int{1, 1}, typed(BF16, 1)))
	writeFile(t, dir+"/config.json", compact(jsonObject{"quantization_config": compressedConfig(packFormat,
		jsonObject{"type": "int", "num_bits": 4})}))
	weights := open(t, path)
	p := weights.where["a.weight"]
	raw := make([]byte, p.Bytes())
	if _, err := p.data.ReadAt(raw, 0); err != nil || !slices.Equal(p.Shape, []int{1, 10}) {
		t.Fatal(p, err)
	}
	got := make([]float32, 10)
	if BF16.float32s(got, raw); !slices.Equal(got, []float32{-8, -7, -6, -5, -4, -3, -2, -1, 0, 1}) {
		t.Errorf("got %v", got)
	}
}

func TestCompressedRefuses(t *testing.T) {
	const n = quantSide
	r := rand.New(rand.NewPCG(3, 3))
	x := compressedCase(r, packFormat, 4, 4, packedZeros, true, BF16, BF16)
	zero := string(make([]byte, 4096))
	weights := func(w jsonObject) jsonObject {
		return jsonObject{"config_groups": jsonObject{"group_0": jsonObject{"weights": w}}}
	}
	far := strings.Repeat("\x00", 4*n-4) + "\x04\x00\x00\x00"
	shape := func(out, in byte) string {
		return string([]byte{out, 0, 0, 0, 0, 0, 0, 0, in, 0, 0, 0, 0, 0, 0, 0})
	}
	x.refuses(t, map[string]refusal{
		"marlin":           {change: jsonObject{"format": "marlin-24"}, want: `format of compressed-tensors is "marlin-24"; supported are pack-quantized`},
		"4-bit floats":     {change: weights(jsonObject{"type": "float", "num_bits": 4}), want: "weights of type float and 4 bits in format pack-quantized"},
		"3 bits":           {change: weights(jsonObject{"type": "int", "num_bits": 3}), want: "weights of type int and 3 bits"},
		"bits as text":     {change: weights(jsonObject{"num_bits": "4"}), want: "num_bits is"},
		"names of presets": {change: jsonObject{"config_groups": jsonObject{"W8A8": []string{"Linear"}}}, want: "config_groups of compressed-tensors: W8A8 is"},
		"sparse":           {change: jsonObject{"sparsity_config": jsonObject{"format": "sparse-24-bitmask"}}, want: "sparse weights are not supported"},
		"rotated":          {change: jsonObject{"transform_config": jsonObject{"config_groups": jsonObject{}}}, want: "rotated weights"},
		"no scales":        {query: without(".weight_scale"), want: queryLayer + ".weight_scale, which is missing"},
		"no shape":         {query: without(".weight_shape"), want: queryLayer + ".weight_shape, which is missing"},
		"a long shape":     {query: instead(".weight_shape", "I64", []int{3}, zero[:24]), want: "has 3 numbers"},
		"a shape of zeros": {query: instead(".weight_shape", "I64", []int{2}, zero[:16]), want: "is [0 0], but"},
		"a negative shape": {query: instead(".weight_shape", I32, []int{2}, "\x20\x00\x00\x00\xff\xff\xff\xff"), want: "is [32 -1], but"},
		"other outputs":    {query: instead(".weight_shape", "I64", []int{2}, shape(31, n)), want: "is [31 32], but"},
		"fewer bits":       {query: instead(".weight_shape", "I64", []int{2}, shape(n, 40)), want: "not integers of 2, 4 or 8 bits"},
		"a grid of scales": {query: instead(".weight_scale", BF16, []int{4, 4}, zero[:32]), want: "neither one scale, nor one for each row"},
		"uneven groups":    {query: instead(".weight_scale", BF16, []int{n, 3}, zero[:6*n]), want: "each group of equal size"},
		"a short list":     {query: instead(".weight_g_idx", I32, []int{n - 1}, zero[:4*n-4]), want: "its shape should be [32]"},
		"a far group":      {query: instead(".weight_g_idx", I32, []int{n}, far), want: "column 31 is in group 4, but there are 4 groups"},
		"other zeros":      {query: instead(".weight_zero_point", I32, []int{n, 4}, zero[:16*n]), want: "neither packed nor plain zero points of 32 × 4"},
		"scales of bytes":  {query: instead(".weight_scale", "I8", []int{n, 4}, zero[:4*n]), want: "only F16 BF16 F32 can be read"},
	})
	four := quantCase{dtype: BF16, quantized: compressedConfig(fp4Format, jsonObject{"type": "float", "num_bits": 4}),
		query: []Source{source(queryLayer+".weight_packed", "U8", []int{n, n / 2}, zero[:n*n/2]),
			source(queryLayer+".weight_scale", e4m3, []int{n, n / 16}, zero[:n*n/16]),
			source(queryLayer+".weight_global_scale", F32, []int{1}, typed(F32, 2))}}
	four.want = make([]float32, n*n)
	four.check(t)
	four.refuses(t, map[string]refusal{
		"no scales":       {query: without(".weight_scale"), want: queryLayer + ".weight_scale, which is missing"},
		"no whole scale":  {query: without(".weight_global_scale"), want: "weight_global_scale, which is missing"},
		"a scale of zero": {query: instead(".weight_global_scale", F32, []int{1}, zero[:4]), want: "is 0; scales are divided by it"},
		"two of them":     {query: instead(".weight_global_scale", F32, []int{2}, zero[:8]), want: "its shape should be [1]"},
		"other groups":    {query: instead(".weight_scale", e4m3, []int{n, 1}, zero[:n]), want: "its shape should be [32 2]"},
		"half a group":    {query: instead(".weight_packed", "U8", []int{n, 12}, zero[:12*n]), want: "its rows are not groups of 16"},
	})
	plain := compressedCase(r, "int-quantized", 8, 1, noZeros, false, BF16, BF16)
	plain.refuses(t, map[string]refusal{
		"int8 without scales": {query: without(".weight_scale"), want: queryLayer + ".weight_scale, which is missing"},
		"int8 in three":       {query: instead(".weight", "I8", []int{n, n / 2, 2}, zero[:n*n]), want: "it should have 2 dimensions"},
	})
}
