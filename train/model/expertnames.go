package model

import "strings"

// ExpertNames says how a family names the parts of a sparse layer besides its experts.
type ExpertNames string

// The schemes of families that differ from Qwen's and DeepSeek's, which have none.
const (
	ErnieNames   ExpertNames = "ernie"    // ERNIE 4.5: the correction is [1,E]
	HunyuanNames ExpertNames = "hunyuan"  // Hunyuan MoE
	HunyuanThree ExpertNames = "hunyuan3" // Hunyuan 3
	ExaoneNames  ExpertNames = "exaone"   // K-EXAONE
)

// sparseParts are the names below the layer's feed-forward part.
type sparseParts struct{ router, correction, shared string }

const correctionPart = "e_score_correction_bias"

func (x Experts) names() sparseParts {
	n := sparseParts{"gate", "gate." + correctionPart, "shared_experts"}
	switch {
	case x.Bias:
		n.router = "router"
	case x.Beside:
		n.router = "router.proj"
	case x.Mixtral: // MiniMax-M2
		n.correction = correctionPart
	}
	switch x.Names {
	case ErnieNames:
		n.correction = "moe_statics." + correctionPart
	case HunyuanNames:
		n.router, n.shared = "gate.wg", "shared_mlp"
	case HunyuanThree:
		n = sparseParts{"router.gate", "expert_bias", "shared_mlp"}
	case ExaoneNames:
		n.correction = correctionPart
	}
	return n
}

// correctionShape returns the shape of the bias that chooses experts.
func (x Experts) correctionShape() []int {
	if x.Names == ErnieNames {
		return []int{1, x.Count}
	}
	return []int{x.Count}
}

// Constant reports whether no gradient changes the tensor.
func (t Tensor) Constant() bool {
	for _, part := range []string{correctionPart, "expert_bias", layerScalarPart, expertScalePart,
		"act_fn." + xieluBeta, "act_fn." + xieluEps} {
		if hasPart(t.Name, part) {
			return true
		}
	}
	return false
}

// hasPart reports whether a name ends with a part.
func hasPart(name, part string) bool { return strings.HasSuffix(name, "."+part) }
