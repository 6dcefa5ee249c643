package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// bitsCase is a folder whose query maps are in 4 bits of bitsandbytes.
func bitsCase(r *rand.Rand, kind string, block, nested int, dtype DType) quantCase {
	const n = quantSide * quantSide
	x := quantCase{dtype: dtype, want: make([]float32, n), quantized: jsonObject{"quant_method": "bitsandbytes",
		"load_in_4bit": true, "load_in_8bit": false, "bnb_4bit_quant_type": kind, "bnb_4bit_use_double_quant": nested > 0}}
	table := fourBitValues(kind)
	state := jsonObject{"quant_type": kind, "blocksize": block, "dtype": torchName(dtype), "shape": []int{quantSide, quantSide}}
	scales := randomScales(r, F32, (n+block-1)/block)
	add := func(end string, dtype DType, raw string) {
		shape := []int{len(raw) * 8 / dtype.bits()}
		if end == "" {
			shape = append(shape, 1)
		}
		x.query = append(x.query, source(queryLayer+".weight"+end, dtype, shape, raw))
	}
	if nested > 0 {
		state["nested_blocksize"], state["nested_dtype"], state["nested_offset"] = nested, "float32", 0.03125+1./(1<<20)
		values := make([]float32, 256)
		for i := range values {
			values[i] = float32(i-128) / 129
		}
		outer, codes := randomScales(r, F32, (len(scales)+nested-1)/nested), []byte{}
		for i := range scales {
			c := byte(r.IntN(256))
			codes = append(codes, c)
			scales[i] = float32(values[c]*outer[i/nested]) + (0.03125 + 1./(1<<20))
		}
		add(".absmax", "U8", string(codes))
		add(".nested_absmax", F32, typed(F32, outer...))
		add(".nested_quant_map", F32, typed(F32, values...))
	} else {
		add(".absmax", F32, typed(F32, scales...))
	}
	codes := make([]byte, n/2)
	for i := range n {
		q := r.IntN(16)
		codes[i/2] |= byte(q << (4 * (1 - i%2)))
		x.want[i] = rounding(dtype, table[q]*scales[i/block])
	}
	add("", "U8", string(codes))
	add(".quant_map", F32, typed(F32, table...))
	add(".quant_state.bitsandbytes__"+kind, "U8", string(compact(state)))
	return x
}

// Modules in bitsandbytes are weights to everybody.
func TestBitsFolder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, dtype := range []DType{F16, BF16, F32} {
		bitsCase(r, "nf4", 64, 0, dtype).check(t)
		bitsCase(r, "fp4", 64, 256, dtype).check(t)
	}
	bitsCase(r, "nf4", 128, 3, BF16).check(t)
	bitsCase(r, "nf4", 4096, 0, BF16).check(t) // one block, which is not full
	old := bitsCase(r, "fp4", 64, 0, F16)
	delete(old.quantized, "quant_method")
	dir, _ := quantFolder(t, F16, old.quantized, old.query...)
	if _, err := ReadConfig(dir); err != nil {
		t.Error(err)
	}
	// The same bytes, stored as other numbers.
	other := bitsCase(r, "nf4", 64, 0, BF16)
	i := slices.IndexFunc(other.query, func(s Source) bool { return s.Name == queryLayer+".weight" })
	var raw sliceWriter
	if err := other.query[i].Raw(&raw); err != nil {
		t.Fatal(err)
	}
	for _, dtype := range []DType{BF16, "I8"} {
		x := other
		x.query = slices.Clone(other.query)
		x.query[i] = source(queryLayer+".weight", dtype, []int{len(raw.bytes) * 8 / dtype.bits(), 1}, string(raw.bytes))
		x.check(t)
	}
}

// bitsEight is a folder whose query maps are in LLM.int8.
func bitsEight(r *rand.Rand, dtype DType) quantCase {
	const n = quantSide
	x := quantCase{dtype: dtype, want: make([]float32, n*n), quantized: jsonObject{"quant_method": "bitsandbytes",
		"load_in_8bit": true}}
	scales, codes := randomScales(r, F32, n), []byte{}
	for i := range x.want {
		q := r.IntN(255) - 127
		codes = append(codes, byte(q))
		x.want[i] = rounding(dtype, float32(float32(q)*scales[i/n])*float32(7.874015718698502e-3))
	}
	x.query = []Source{source(queryLayer+".weight", "I8", []int{n, n}, string(codes)),
		source(queryLayer+".SCB", F32, []int{n}, typed(F32, scales...)),
		source(queryLayer+".weight_format", "U8", nil, "\x00")}
	return x
}

func TestBitsEightFolder(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, dtype := range []DType{F16, BF16, F32} {
		bitsEight(r, dtype).check(t)
	}
}

func TestBitsRefuses(t *testing.T) {
	const n = quantSide
	r := rand.New(rand.NewPCG(3, 3))
	x := bitsCase(r, "nf4", 64, 4, BF16)
	zero := string(make([]byte, 4096))
	const end = ".weight.quant_state.bitsandbytes__nf4"
	state := func(format string, args ...any) func(q *[]Source) {
		text := fmt.Sprintf(format, args...)
		return instead(end, "U8", []int{len(text)}, text)
	}
	good := `{"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [32, 32], "nested_blocksize": 4, "nested_dtype": "float32", "nested_offset": 0.1}`
	but := func(old, new string) func(q *[]Source) {
		if !strings.Contains(good, old) {
			t.Fatal(old)
		}
		return state("%s", strings.Replace(good, old, new, 1))
	}
	x.refuses(t, map[string]refusal{
		"another kind":          {change: jsonObject{"bnb_4bit_quant_type": "nf3"}, want: `bnb_4bit_quant_type is "nf3"`},
		"both":                  {change: jsonObject{"load_in_8bit": true}, want: "one of load_in_4bit and load_in_8bit"},
		"neither":               {change: jsonObject{"load_in_4bit": false}, want: "one of load_in_4bit and load_in_8bit"},
		"half a state":          {query: state("%s", good[:30]), want: "is not the JSON of a quant_state"},
		"no state":              {query: instead(end, "U8", []int{0}, ""), want: "and elements"},
		"a long state":          {query: instead(end, "U8", []int{maxQuantState + 1}, strings.Repeat(" ", maxQuantState+1)), want: "more than any quant_state"},
		"a state of floats":     {query: instead(end, F32, []int{4}, zero[:16]), want: "only U8 can be read"},
		"another quant_type":    {query: but("nf4", "int4"), want: `has quant_type "int4"`},
		"no blocks":             {query: but("64", "0"), want: "has blocks of 0 elements"},
		"odd blocks":            {query: but("64", "63"), want: "has blocks of 63 elements"},
		"large blocks":          {query: but("64", "4611686018427387904"), want: "has blocks of"},
		"negative blocks":       {query: but(`size": 4`, `size": -4`), want: "nested scales in float32 and blocks of -4"},
		"nested halves":         {query: but("float32", "float16"), want: "nested scales in float16"},
		"another dtype":         {query: but("bfloat16", "int8"), want: `has dtype "int8"`},
		"a vector":              {query: but("[32, 32]", "[1024]"), want: "should be a matrix"},
		"a huge shape":          {query: but("[32, 32]", "[4611686018427387904, 32]"), want: "elements of 4 bits"},
		"a large shape":         {query: but("[32, 32]", "[32, 33]"), want: "says that it has [32 33] elements of 4 bits"},
		"a negative shape":      {query: but("[32, 32]", "[-32, -32]"), want: "should be a matrix"},
		"no weight":             {query: without(".weight"), want: "without " + queryLayer + ".weight, which is missing"},
		"no map":                {query: without(".weight.quant_map"), want: "quant_map, which is missing"},
		"another map":           {query: instead(".weight.quant_map", F32, []int{16}, zero[:64]), want: "quant_map has other values"},
		"a short map":           {query: instead(".weight.quant_map", F32, []int{8}, zero[:32]), want: "has 8 values, not 16"},
		"no scales":             {query: without(".weight.absmax"), want: "absmax, which is missing"},
		"fewer scales":          {query: instead(".weight.absmax", "U8", []int{15}, zero[:15]), want: "has 15 scales, but the weight 16 blocks"},
		"scales of their own":   {query: instead(".weight.absmax", F32, []int{16}, zero[:64]), want: "only U8 can be read"},
		"no nested scales":      {query: without(".weight.nested_absmax"), want: "nested_absmax, which is missing"},
		"fewer nested scales":   {query: instead(".weight.nested_absmax", F32, []int{3}, zero[:12]), want: "has 3 scales"},
		"no nested map":         {query: without(".weight.nested_quant_map"), want: "nested_quant_map, which is missing"},
		"a map of another size": {query: instead(".weight.nested_quant_map", F32, []int{16}, zero[:64]), want: "has 16 values, not 256"},
	})
	bitsEight(r, BF16).refuses(t, map[string]refusal{
		"int8 without scales":    {query: without(".SCB"), want: queryLayer + ".SCB, which is missing"},
		"int8 with fewer scales": {query: instead(".SCB", F32, []int{n - 1}, zero[:4*n-4]), want: "its shape should be [32]"},
		"tiles":                  {query: instead(".weight_format", "U8", nil, "\x02"), want: "is 2: only 0, rows, is supported"},
	})
}
