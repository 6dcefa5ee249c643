package checkpoint

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

// gptqCase is a folder whose query maps are in GPTQ, packed bit by bit.
func gptqCase(r *rand.Rand, bits, size int, lessOne, listed bool, scales, dtype DType) quantCase {
	const n = quantSide
	groups := n / size
	order := r.Perm(n) // the group of an input is its place's
	levels := 1 << bits
	words, zeros, index := make([]byte, n*n*bits/8), make([]byte, groups*n*bits/8), []byte{}
	factors := randomScales(r, scales, groups*n)
	zero := make([]int, groups*n)
	for i := range zero {
		zero[i] = 1 + r.IntN(levels-1)
		stored := zero[i]
		if lessOne {
			stored--
		}
		setBits(zeros, i/n*n*bits+i%n*bits, bits, stored)
	}
	x := quantCase{dtype: dtype, quantized: jsonObject{"quant_method": "gptq", "bits": bits, "group_size": size,
		"desc_act": listed, "sym": false, "checkpoint_format": "gptq_v2"}, want: make([]float32, n*n)}
	if lessOne {
		x.quantized["checkpoint_format"] = "gptq"
	}
	for i := range n {
		g := i / size
		if listed {
			g = order[i] / size
		}
		index = binary.LittleEndian.AppendUint32(index, uint32(g))
		for o := range n {
			q := r.IntN(levels)
			for k := range bits { // integers of a column follow each other in its words, which lie n words apart
				at := i*bits + k
				setBits(words, (at/32*n+o)*32+at%32, 1, q>>k&1)
			}
			x.want[o*n+i] = scaledBy(q, zero[g*n+o], factors[g*n+o], scales, dtype)
		}
	}
	x.query = []Source{source(queryLayer+".qweight", I32, []int{n * bits / 32, n}, string(words)),
		source(queryLayer+".qzeros", I32, []int{groups, n * bits / 32}, string(zeros)),
		source(queryLayer+".scales", scales, []int{groups, n}, typed(scales, factors...)),
		source(queryLayer+".g_idx", I32, []int{n}, string(index))}
	return x
}

// Modules in GPTQ are weights to everybody, with integers of every number of bits, in both formats, and with groups in
// any order.
func TestGPTQFolder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, bits := range gptqBits() {
		for _, lessOne := range []bool{true, false} {
			for _, listed := range []bool{true, false} {
				gptqCase(r, bits, 8, lessOne, listed, F16, F16).check(t)
			}
		}
	}
	one := gptqCase(r, 4, quantSide, true, false, F16, F16)
	one.quantized["group_size"] = -1
	one.check(t)
	gptqCase(r, 4, 16, true, true, F16, BF16).check(t) // rounded in both types
	gptqCase(r, 8, 16, true, false, BF16, BF16).check(t)
	gptqCase(r, 4, 8, false, false, F32, F32).check(t)
	bare := gptqCase(r, 4, 8, true, false, F16, F16)
	bare.query = bare.query[:3] // no g_idx
	delete(bare.quantized, "checkpoint_format")
	bare.check(t)
	other := gptqCase(r, 8, 8, true, false, F16, F16)
	other.quantized["bits"], other.quantized["group_size"] = 4, 128
	other.quantized["dynamic"] = jsonObject{"+:.*q_proj": jsonObject{"bits": 8, "group_size": 8}}
	other.check(t)
}

// In format gptq, 1 is added to whole words: a zero point stored as all ones carries into the next.
func TestGPTQZerosCarry(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	x := gptqCase(r, 4, quantSide, true, false, F16, F16)
	ones := make([]byte, quantSide/2)
	ones[0], ones[1] = 0x0f, 0x0f // outputs 0 and 2 are 15, the others 0
	instead(".qzeros", I32, []int{1, quantSide / 8}, string(ones))(&x.query)
	dir, c := quantFolder(t, F16, x.quantized, x.query...)
	got, _, err := queryWeight(dir, c)
	if err != nil {
		t.Fatal(err)
	}
	for i := 2; i < len(ones); i++ {
		ones[i] = 0x11
	}
	instead(".qzeros", I32, []int{1, quantSide / 8}, "\x20\x20"+string(ones[2:]))(&x.query) // 0, 2, 0, 2 and ones
	x.quantized["checkpoint_format"] = "gptq_v2"
	dir, c = quantFolder(t, F16, x.quantized, x.query...)
	if x.want, _, err = queryWeight(dir, c); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if got[i] != x.want[i] {
			t.Fatalf("row %d, column %d is %v, want %v", i/quantSide, i%quantSide, got[i], x.want[i])
		}
	}
}

func TestGPTQRefuses(t *testing.T) {
	const n = quantSide
	r := rand.New(rand.NewPCG(3, 3))
	x := gptqCase(r, 4, 8, true, true, F16, F16)
	zero := string(make([]byte, 4096))
	far := make([]byte, 4*n)
	far[4*5] = 4
	x.refuses(t, map[string]refusal{
		"5 bits":           {change: jsonObject{"bits": 5}, want: "bits of GPTQ are 5; supported are 2, 3, 4 and 8"},
		"no bits":          {change: jsonObject{"bits": nil}, want: "bits is missing"},
		"bits as text":     {change: jsonObject{"bits": "4"}, want: "bits is"},
		"marlin":           {change: jsonObject{"checkpoint_format": "marlin"}, want: `checkpoint_format of GPTQ is "marlin"`},
		"old marlin":       {change: jsonObject{"is_marlin_format": true}, want: "only gptq and gptq_v2"},
		"two formats":      {change: jsonObject{"format": "gptq_v2"}, want: "another name of it"},
		"no group":         {change: jsonObject{"group_size": 0}, want: "group_size is 0"},
		"words of 16":      {change: jsonObject{"pack_dtype": "int16"}, want: `pack_dtype is "int16"`},
		"rotated":          {change: jsonObject{"rotation": "hadamard"}, want: "rotation"},
		"no scales":        {query: without(".scales"), want: "cannot be read without " + queryLayer + ".scales, which is missing"},
		"no zero points":   {query: without(".qzeros"), want: queryLayer + ".qzeros, which is missing"},
		"no list":          {query: without(".g_idx"), want: "groups out of order (desc_act), but " + queryLayer + ".g_idx"},
		"a short list":     {query: instead(".g_idx", I32, []int{n - 8}, zero[:4*(n-8)]), want: "its shape should be [32]"},
		"a list of halves": {query: instead(".g_idx", F16, []int{n}, zero[:2*n]), want: "only I32 can be read"},
		"a far group":      {query: instead(".g_idx", I32, []int{n}, string(far)), want: "column 5 is in group 4, but there are 4 groups"},
		"more groups":      {query: instead(".scales", F16, []int{5, n}, zero[:10*n]), want: "not the zero points of 4 bits"},
		"fewer groups": {query: func(q *[]Source) {
			instead(".scales", F16, []int{2, n}, zero[:4*n])(q)
			instead(".qzeros", I32, []int{2, n / 8}, zero[:n])(q)
		}, want: "has 2 groups, but 32 inputs in groups of 8 (group_size of config.json) have 4"},
		"other outputs":      {query: instead(".scales", F16, []int{4, n / 2}, zero[:4*n]), want: "not the zero points of 4 bits"},
		"other zero points":  {query: instead(".qzeros", I32, []int{4, n / 4}, zero[:4*n]), want: "not the zero points of 4 bits"},
		"zeros of words":     {query: instead(".qzeros", "I64", []int{2, n / 8}, zero[:2*n]), want: "is I64 [2,4]; only I32 can be read"},
		"scales as integers": {query: instead(".scales", I32, []int{4, n}, zero[:16*n]), want: "only F16 BF16 F32 can be read"},
		"a vector":           {query: instead(".qweight", I32, []int{n}, zero[:4*n]), want: "it should have 2 dimensions"},
		"nothing":            {query: instead(".qweight", I32, []int{0, n}, ""), want: "and elements"},
	})
	three := gptqCase(r, 3, 8, true, false, F16, F16)
	three.refuses(t, map[string]refusal{
		"four words of integers of 3 bits": {query: instead(".qweight", I32, []int{4, n}, zero[:16*n]), want: "not the zero points of 3 bits"},
	})
	halves := gptqCase(r, 4, 8, true, false, F16, F16)
	halves.refuses(t, map[string]refusal{
		"fewer inputs, so another shape": {query: func(q *[]Source) {
			instead(".qweight", I32, []int{2, n}, zero[:8*n])(q)
			without(".g_idx")(q)
		}, want: "has 4 groups, but 16 inputs"},
	})
}

// Maps of GPT-2 are transposed, which no rule says of quantized ones.
func TestGPTQOfGPT2(t *testing.T) {
	_, err := ParseConfig(configFile, compact(jsonObject{"architectures": []string{"GPT2LMHeadModel"}, "n_embd": 8,
		"n_head": 2, "n_layer": 1, "n_positions": 8, "vocab_size": 5,
		"quantization_config": jsonObject{"quant_method": "gptq", "bits": 4}}))
	if err == nil || len(err.(*ConfigError).Problems) != 1 {
		t.Errorf("got %v", err)
	}
}

// AutoGPTQ wrote biases of zeros, which the class does not have. Others stay, and do not fit.
func TestGPTQZeroBiases(t *testing.T) {
	x := gptqCase(rand.New(rand.NewPCG(4, 4)), 4, 8, true, false, F16, F16)
	bias := make([]float32, quantSide)
	instead(".bias", F16, []int{quantSide}, typed(F16, bias...))(&x.query)
	x.check(t)
	bias[3] = 1
	instead(".bias", F16, []int{quantSide}, typed(F16, bias...))(&x.query)
	dir, c := quantFolder(t, F16, x.quantized, x.query...)
	if _, _, err := queryWeight(dir, c); err == nil || !strings.Contains(err.Error(), "unexpected: "+queryLayer+".bias") {
		t.Errorf("got %v", err)
	}
}

// A config.json that does not say how modules are quantized is an error that says what to do.
func TestGPTQUnexplained(t *testing.T) {
	x := gptqCase(rand.New(rand.NewPCG(5, 5)), 4, 8, true, false, F16, F16)
	dir, c := quantFolder(t, F16, nil, x.query...)
	_, _, err := queryWeight(dir, c)
	if e := (*Error)(nil); !errors.As(err, &e) || !strings.Contains(e.Hint, "quantize_config.json") || e.Tensor != queryLayer+".qweight" {
		t.Errorf("got %v", err)
	}
}
