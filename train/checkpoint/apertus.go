package checkpoint

import (
	"strings"

	"exp/kernels"
	"exp/train/model"
)

// xielu is the name of Apertus's activation in config.json.
const xielu = "xielu"

// apertuses are models of Apertus (arXiv:2509.14233).
func apertuses() []architecture {
	return []architecture{
		{class: "ApertusForCausalLM", kind: "apertus",
			words: "Apertus: norms of queries and keys, feed-forward blocks without gates, a learned activation",
			fixed: model.Config{QKNorm: true, Gate: kernels.XIELU, Names: model.ApertusNames},
			eps:   1e-5, theta: 12e6, positions: 65536, vocab: 131072, gate: xielu,
			features: []feature{attentionBias, apertusKeys, scaledRope("llama3 with factor 8")},
			write:    []writer{outBias}},
	}
}

// apertusKeys refuses settings in the authors' files that transformers ignores.
func apertusKeys(r *settings, _ *model.Config) {
	if !r.flag("qk_norm", true) || r.flag("post_norm", false) || r.flag("mlp_bias", false) {
		r.problem("qk_norm must be true, post_norm and mlp_bias false: transformers ignores other settings in this " +
			"class")
	}
}

// xieluConstant reports whether a name belongs to a constant of xIELU, which transformers stores without a dimension.
func xieluConstant(name string) bool {
	return strings.HasSuffix(name, ".act_fn.beta") || strings.HasSuffix(name, ".act_fn.eps")
}
