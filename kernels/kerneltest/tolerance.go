package kerneltest

import (
	"fmt"

	"exp/kernels"
)

// tolerance bounds the difference of a float output from the reference:
// |got-want| ≤ abs + rel·|want|. The zero value asks for the same bits.
type tolerance struct{ abs, rel float64 }

// exactly asks for the same bits.
var exactly = tolerance{}

func (t tolerance) text() string {
	if t == exactly {
		return ""
	}
	return fmt.Sprintf("; |difference| ≤ %.3g + %.3g·|want|", t.abs, t.rel)
}

// bound is a tolerance in units of the roundoff of the backend's float type, so
// that one table serves every type, and why it is that large.
type bound struct {
	abs, rel float64
	why      string
}

// toleranceOf returns the tolerance of an operation on a backend that is not of
// class "cpu/fma". Inputs of the suite are of order 1.
func toleranceOf(op string, t kernels.DType) tolerance {
	b, ok := bounds()[op]
	if !ok {
		panic("kerneltest: no tolerance for " + op)
	}
	u := roundoff(t)
	return tolerance{b.abs * u, b.rel * u}
}

func bounds() map[string]bound {
	const (
		moved  = "data is moved, not computed"
		single = "a few roundings of one element"
		chain  = "n ≤ 4100 terms of order 1: partial sums grow as √n, so does the number of roundings that do not " +
			"cancel: n·u"
		norm     = "a root of a mean of squares: a few u; the mean's own error is below u·log n"
		softmax  = "exp multiplies the error of a score of order 10 by 1; sums are of positive terms"
		gradient = "differences of order-1 terms that may cancel, summed over ≤ 300 rows"
		update   = "ten roundings of an element, a quotient and a root among them, and coefficients that are " +
			"rounded once"
	)
	return map[string]bound{
		"Copy":                {0, 0, moved},
		"Add":                 {0, 1, single},
		"Embed":               {0, 4, single},
		"EmbedBackward":       {64, 16, "plain sums of ≤ 100 rows"},
		"MatMul":              {4096, 16, chain},
		"MatMulDX":            {4096, 16, chain},
		"MatMulSwiGLU":        {65536, 64, chain + "; then a product of two such sums, of order 30"},
		"MatMulDXSwiGLU":      {8192, 64, chain + "; times a gate of order 10"},
		"MatMulDW":            {4096, 16, chain},
		"RMSNorm":             {4, 16, norm},
		"AddRMSNorm":          {8, 16, norm},
		"RMSNormBackward":     {512, 32, gradient},
		"LayerNorm":           {64, 32, norm + "; x-mean cancels"},
		"LayerNormBackward":   {2048, 64, gradient + "; rstd of two elements reaches 30"},
		"GELU":                {1, 2, single},
		"GELUBackward":        {1, 4, single},
		"Dropout":             {0, 2, single},
		"Rope":                {8, 4, "two products that may cancel"},
		"Attention":           {256, 64, softmax},
		"AttentionBackward":   {2048, 128, softmax + "; " + gradient},
		"AppendKV":            {0, 0, moved},
		"PagedAttention":      {256, 64, softmax},
		"CopyPages":           {0, 0, moved},
		"GatherRows":          {0, 0, moved},
		"ScatterRows":         {16, 16, "plain sums of a few rows"},
		"SegmentMean":         {64, 16, "plain sums of ≤ 100 rows"},
		"SegmentMeanBackward": {2, 4, single},
		"LogProb":             {512, 32, softmax + "; logits are chains of ≤ 64 terms"},
		"LogProbBackward":     {4096, 64, softmax + "; " + gradient},
		"Sample":              {512, 32, softmax},
		"TopTokens":           {512, 32, softmax},
		"Logits":              {4096, 16, chain},
		"Gate":                {4, 16, single + "; exp multiplies the error of an argument of order 10 by 1"},
		"GateBackward":        {16, 32, single + "; two products"},
		"TakeColumns":         {0, 4, single},
		"AddColumns":          {8, 4, "two numbers of order 1 that may cancel"},
		"Route":               {4, 64, softmax},
		"RouteBackward":       {64, 64, softmax + "; differences that may cancel"},
		"Combine":             {32, 16, "≤ 9 products of order 1"},
		"CombineBackward":     {256, 16, "a sum of ≤ 300 products of order 1"},
		"ShortConv":           {16, 32, "≤ 4 products of order 1; exp"},
		"ShortConvBackward":   {512, 64, gradient},
		"GatedConv":           {16, 16, "≤ 6 products of order 1"},
		"GatedConvBackward":   {512, 64, gradient},
		"DeltaGates":          {16, 64, "exp multiplies the error of an argument of order 10"},
		"DeltaGatesBackward":  {512, 128, gradient},
		"DeltaRule":           {4096, 256, chain + "; states of ≤ 100 rows"},
		"DeltaRuleBackward":   {65536, 1024, chain + "; " + gradient},
		"GatedNorm":           {16, 32, norm},
		"GatedNormBackward":   {512, 64, gradient},
		"GroupedNorm":         {16, 32, norm},
		"GroupedNormBackward": {512, 64, gradient},
		"CopyStates":          {0, 0, moved},
		"SplitGates":          {0, 0, moved},
		"JoinGates":           {0, 0, moved},
		"OutputGate":          {0, 16, single},
		"OutputGateBackward":  {16, 32, single},
		"JoinLatent":          {0, 0, moved},
		"SplitLatent":         {64, 16, "plain sums of ≤ 16 heads"},
		"TakeValues":          {0, 0, moved},
		"PutValues":           {0, 0, moved},
		"Sink":                {4, 64, softmax},
		"SinkBackward":        {512, 64, softmax + "; " + gradient},
		"XIELU":               {4, 4, single},
		"XIELUBackward":       {512, 64, gradient},
		"Clip":                {0, 0, moved},
		"ClipBackward":        {0, 0, moved},
		"AdamW":               {16, 64, update},
		"SumSquares":          {0, 1, "summed in float64 whatever the float type; only inputs round"},
	}
}
