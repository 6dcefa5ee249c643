package model

import (
	"maps"
)

// Published returns the architecture of a model by its name on the Hugging Face hub, so a
// plan can count parameters and memory without the weights. The numbers come from
// https://huggingface.co/NAME/blob/main/config.json. A model whose weights are present is
// described by its own config.json instead.
func Published(name string) (Config, bool) {
	c, ok := published()[name]
	return c, ok
}

func published() map[string]Config {
	m := qwen25()
	maps.Copy(m, distilled())
	maps.Copy(m, qwen3())
	maps.Copy(m, llamas())
	return m
}

// qwen25 are the base models of arXiv:2412.15115 and the mathematics models of
// arXiv:2409.12122. The three smallest tie their embeddings and have no rows
// beyond 151,936; the vocabulary itself has 151,665 entries in all of them.
func qwen25() map[string]Config {
	qwen := func(layers, width, heads, kvHeads, ffn int) Config {
		return Config{
			Vocab: 152064, Layers: layers, Width: width, Heads: heads, KVHeads: kvHeads, Head: width / heads,
			FFN:       ffn,
			RopeTheta: 1e6, NormEps: 1e-6, QKVBias: true, MaxPositions: 131072, InitStd: 0.02,
		}
	}
	small := func(c Config, positions int) Config {
		c.Vocab, c.TieEmbeddings, c.MaxPositions = 151936, true, positions
		return c
	}
	math := func(c Config) Config {
		c.RopeTheta, c.MaxPositions = 1e4, 4096
		return c
	}
	large := func(c Config) Config {
		c.NormEps = 1e-5
		return c
	}
	return map[string]Config{
		"Qwen/Qwen2.5-0.5B":      small(qwen(24, 896, 14, 2, 4864), 32768),
		"Qwen/Qwen2.5-1.5B":      small(qwen(28, 1536, 12, 2, 8960), 131072),
		"Qwen/Qwen2.5-3B":        small(qwen(36, 2048, 16, 2, 11008), 32768),
		"Qwen/Qwen2.5-7B":        qwen(28, 3584, 28, 4, 18944),
		"Qwen/Qwen2.5-14B":       large(qwen(48, 5120, 40, 8, 13824)),
		"Qwen/Qwen2.5-32B":       large(qwen(64, 5120, 40, 8, 27648)),
		"Qwen/Qwen2.5-Math-1.5B": math(small(qwen(28, 1536, 12, 2, 8960), 4096)),
		"Qwen/Qwen2.5-Math-7B":   math(qwen(28, 3584, 28, 4, 18944)),
	}
}

// distilled are the Qwen models of arXiv:2501.12948: the two smaller ones start from
// Qwen2.5-Math, hence its rotary base; the 1.5B one has its own output projection.
func distilled() map[string]Config {
	base := qwen25()
	from := func(name string) Config {
		c := base[name]
		c.MaxPositions, c.TieEmbeddings = 131072, false
		return c
	}
	return map[string]Config{
		"deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": from("Qwen/Qwen2.5-Math-1.5B"),
		"deepseek-ai/DeepSeek-R1-Distill-Qwen-7B":   from("Qwen/Qwen2.5-Math-7B"),
		"deepseek-ai/DeepSeek-R1-Distill-Qwen-14B":  from("Qwen/Qwen2.5-14B"),
		"deepseek-ai/DeepSeek-R1-Distill-Qwen-32B":  from("Qwen/Qwen2.5-32B"),
	}
}

// qwen3 are the dense models of arXiv:2505.09388, table 1. Their heads have 128 channels at
// every width.
func qwen3() map[string]Config {
	qwen := func(layers, width, heads, ffn int, tie bool) Config {
		return Config{
			Vocab: 151936, Layers: layers, Width: width, Heads: heads, KVHeads: 8, Head: 128, FFN: ffn,
			RopeTheta: 1e6, NormEps: 1e-6, QKNorm: true, TieEmbeddings: tie, MaxPositions: 40960, InitStd: 0.02,
		}
	}
	return map[string]Config{
		"Qwen/Qwen3-0.6B": qwen(28, 1024, 16, 3072, true),
		"Qwen/Qwen3-1.7B": qwen(28, 2048, 16, 6144, true),
		"Qwen/Qwen3-4B":   qwen(36, 2560, 32, 9728, true),
		"Qwen/Qwen3-8B":   qwen(36, 4096, 32, 12288, false),
		"Qwen/Qwen3-14B":  qwen(40, 5120, 40, 17408, false),
		"Qwen/Qwen3-32B":  qwen(64, 5120, 64, 25600, false),
	}
}

// llamas are models of the Llama family without scaled rotary positions
// (arXiv:2307.09288, arXiv:2407.21783).
func llamas() map[string]Config {
	return map[string]Config{
		"meta-llama/Llama-2-7b-hf": {
			Vocab: 32000, Layers: 32, Width: 4096, Heads: 32, KVHeads: 32, Head: 128, FFN: 11008,
			RopeTheta: 1e4, NormEps: 1e-5, MaxPositions: 4096, InitStd: 0.02,
		},
		"meta-llama/Meta-Llama-3-8B": {
			Vocab: 128256, Layers: 32, Width: 4096, Heads: 32, KVHeads: 8, Head: 128, FFN: 14336,
			RopeTheta: 5e5, NormEps: 1e-5, MaxPositions: 8192, InitStd: 0.02,
		},
	}
}
