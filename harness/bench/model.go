package bench

import (
	"fmt"

	"exp/kernels"
	"exp/train/model"
)

// Model is an architecture in the style of Qwen2: biases on queries, keys and values,
// tied embeddings.
type Model struct {
	Name    string `json:"name"`
	Layers  int    `json:"layers"`
	Width   int    `json:"width"`
	Heads   int    `json:"heads"`
	KVHeads int    `json:"kv_heads"`
	FFN     int    `json:"ffn"`
	Vocab   int    `json:"vocab"`
}

// HeadSize is the head size of all models.
const HeadSize = 64

// Models returns the named architectures that other engines were measured on, smallest
// first.
func Models() []Model {
	return []Model{
		{"1M", 4, 128, 2, 1, 512, 2048},
		{"10M", 8, 256, 4, 2, 1024, 8192},
		{"50M", 12, 512, 8, 2, 2048, 8192},
	}
}

// config returns the architecture with enough positions for the measurements.
func (m Model) config(o Options) model.Config {
	return model.Config{Vocab: m.Vocab, Layers: m.Layers, Width: m.Width, Heads: m.Heads, KVHeads: m.KVHeads,
		Head: HeadSize, FFN: m.FFN,
		RopeTheta: 1e4, NormEps: 1e-6, QKVBias: true, TieEmbeddings: true, MaxPositions: o.positions(), InitStd: 0.02}
}

// linear is a linear layer W [out,in] that occurs count times in a model.
type linear struct {
	layer          string
	out, in, count int
}

func linears(c model.Config) []linear {
	return []linear{
		{"qkv", c.QKV(), c.Width, c.Layers},
		{"o", c.Width, c.Heads * c.Head, c.Layers},
		{"gate_up", 2 * c.FFN, c.Width, c.Layers},
		{"down", c.Width, c.FFN, c.Layers},
		{"output", c.Vocab, c.Width, 1},
	}
}

// linearWeights returns N, the number of weights in all linear layers.
func linearWeights(c model.Config) int {
	n := 0
	for _, l := range linears(c) {
		n += l.out * l.in * l.count
	}
	return n
}

// ParseDType returns the operand type with the given name, as in model.dtype. It alone
// knows which types can be measured.
func ParseDType(name string) (kernels.DType, error) {
	for _, t := range DTypes() {
		if t.String() == name {
			return t, nil
		}
	}
	return 0, fmt.Errorf("unknown dtype %q: want f32 or bf16", name)
}

// DTypeNames returns the names that ParseDType knows.
func DTypeNames() (names []string) {
	for _, t := range DTypes() {
		names = append(names, t.String())
	}
	return names
}

// DTypes returns the operand types that can be measured.
func DTypes() []kernels.DType { return []kernels.DType{kernels.F32, kernels.BF16} }

// stream generates ordinary numbers, whose values do not affect the time, with a
// multiplicative congruential generator.
type stream uint32

func (s *stream) next() uint32 {
	*s = *s*1664525 + 1013904223 // Numerical Recipes, §7.1
	return uint32(*s) >> 8
}

// floats returns n numbers in [-scale, scale).
func (s *stream) floats(n int, scale float32) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = (float32(s.next())/(1<<23) - 1) * scale
	}
	return x
}

// ids returns n token ids below vocab.
func (s *stream) ids(n, vocab int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(int(s.next()) % vocab)
	}
	return x
}
