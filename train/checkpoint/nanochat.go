package checkpoint

import (
	"exp/kernels"
	"exp/train/model"
)

// nanochats are models of nanochat as transformers has them.
func nanochats() []architecture {
	return []architecture{
		{class: "NanoChatForCausalLM", kind: "nanochat",
			words: "nanochat: norms without weights, also of embeddings, and of queries and keys after rotary " +
				"positions, which turn the other way",
			fixed: model.Config{UnitOffset: true, QKNorm: true, LateQKNorm: true, Gate: kernels.ReLU2,
				Names: model.NanoNames},
			eps: 1e-6, theta: 1e4, positions: 2048, vocab: 50304, heads: 6, gate: relu2,
			features: []feature{attentionBias, logitCap(15)},
			write:    []writer{outBias, nanoValues}},
	}
}
