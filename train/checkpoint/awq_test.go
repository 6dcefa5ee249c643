package checkpoint

import (
	"math/rand/v2"
	"testing"
)

// awqCase is a folder whose query maps are in AWQ, packed bit by bit.
func awqCase(r *rand.Rand, size int, scales, dtype DType) quantCase {
	const n = quantSide
	groups := n / size
	places := []int{0, 4, 1, 5, 2, 6, 3, 7} // of outputs in a word
	words, zeros := make([]byte, n*n/2), make([]byte, groups*n/2)
	factors := randomScales(r, scales, groups*n)
	zero := make([]int, groups*n)
	for i := range zero {
		zero[i] = r.IntN(16)
		setBits(zeros, (i/8*8+places[i%8])*4, 4, zero[i])
	}
	x := quantCase{dtype: dtype, quantized: jsonObject{"quant_method": "awq", "bits": 4, "group_size": size,
		"version": "GEMM", "zero_point": true, "modules_to_not_convert": []string{"lm_head"}}, want: make([]float32, n*n)}
	for i := range n {
		for o := range n {
			q, g := r.IntN(16), i/size
			setBits(words, (i*n+o/8*8+places[o%8])*4, 4, q)
			x.want[o*n+i] = scaledBy(q, zero[g*n+o], factors[g*n+o], scales, dtype)
		}
	}
	x.query = []Source{source(queryLayer+".qweight", I32, []int{n, n / 8}, string(words)),
		source(queryLayer+".qzeros", I32, []int{groups, n / 8}, string(zeros)),
		source(queryLayer+".scales", scales, []int{groups, n}, typed(scales, factors...))}
	return x
}

// Modules in AWQ are weights to everybody.
func TestAWQFolder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	awqCase(r, 8, F16, F16).check(t)
	awqCase(r, 16, F16, BF16).check(t)
	awqCase(r, 16, BF16, BF16).check(t)
	one := awqCase(r, quantSide, F16, F16)
	one.quantized["group_size"] = -1
	delete(one.quantized, "version")
	one.check(t)
	old := awqCase(r, 8, F16, F16)
	old.quantized = jsonObject{"quant_method": "awq", "w_bit": 4, "q_group_size": 8, "version": "gemm"}
	old.check(t)
}

func TestAWQRefuses(t *testing.T) {
	const n = quantSide
	x := awqCase(rand.New(rand.NewPCG(3, 3)), 8, F16, F16)
	zero := string(make([]byte, 4096))
	x.refuses(t, map[string]refusal{
		"another version":   {change: jsonObject{"version": "gemv_fast"}, want: `version of AWQ is "gemv_fast"; only gemm is supported`},
		"another format":    {change: jsonObject{"version": nil, "format": "llm-awq"}, want: `version of AWQ is "llm-awq"`},
		"3 bits":            {change: jsonObject{"bits": 3}, want: "bits of AWQ are 3"},
		"no group":          {change: jsonObject{"group_size": -2}, want: "group_size is -2"},
		"bits as text":      {change: jsonObject{"bits": "4"}, want: "bits is"},
		"no scales":         {query: without(".scales"), want: queryLayer + ".scales, which is missing"},
		"no zero points":    {query: without(".qzeros"), want: queryLayer + ".qzeros, which is missing"},
		"other outputs":     {query: instead(".scales", F16, []int{4, n / 2}, zero[:4*n]), want: "its shape should be [4 32]"},
		"other zero points": {query: instead(".qzeros", I32, []int{4, n}, zero[:16*n]), want: "its shape should be [4 4]"},
		"other groups":      {change: jsonObject{"group_size": 16}, query: func(*[]Source) {}, want: "has 4 groups, but 32 inputs in groups of 16"},
		"GPTQ's layout":     {query: instead(".qweight", I32, []int{n / 8, n}, zero[:n*n/2]), want: "its shape should be [4 256]"},
	})
}
