// Package model is the decoder-only transformer of the published families (Llama,
// Qwen, Mistral, GLM, Granite, Gemma, Phi, OLMo, gpt-oss, DeepSeek, mixtures of experts, linear attention), with
// explicit forward and backward passes over packed sequences, written against kernels.Backend alone: the same
// code runs on every device and, on the float64 reference, under finite differences.
//
// Per layer, on the residual stream x [N,C]:
//
//	x += PostNorm?(Wo · Attention(Rope?(QKNorm?(Wqkv · PreNorm?(x) + bqkv?))) + bo?)
//	x += PostNorm?(Wdown · Gate(Wgateup · PreNorm?(x)))     or a mixture of experts
//
// with linear attention, Mamba-2 or a short convolution instead of the first in some layers of some families
// (delta.go), one of the two alone in a layer of Nemotron-H, attention beside Mamba-2 in Falcon-H1 (parallel.go), and
// what AFMoE (attentiongate.go), Apertus (xielu.go) and Gemma 4 add (gemma4.go, perlayer.go); in GPT-NeoX, GPT-2,
// Cohere and others LayerNorm (layernorm.go), both blocks side by side (branches.go) or learned positions
// (positions.go); then a final norm and up to three heads: the output projection (log-probs), a value head (PPO's
// critic), and FlowRL's log Z head. Every linear map of a layer may have a low-rank adapter.
//
// The trainable parameters lie in one arena, as named views under their Hugging Face names;
// gradients lie in a second arena of the same layout. Frozen weights may instead lie in a
// Backbone that several models share. A Model holds parameters, a Workspace the activations
// of one micro-batch, a Cache and a Decoder the memory of sampling. No step allocates.
package model

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"exp/kernels"
)

// Config is the architecture. Dimensions are named as in package kernels.
type Config struct {
	Vocab   int // V
	Layers  int // L
	Width   int // C, residual stream
	Heads   int // H, query heads
	KVHeads int // K, key/value heads; divides Heads
	Head    int // D, head size; even
	FFN     int // F, feed-forward width

	RopeTheta     float64 // base of the rotary frequencies
	NormEps       float64 // added to the mean square in RMSNorm
	QKVBias       bool    // Qwen2: biases on queries, keys and values
	QKNorm        bool    // Qwen3: RMSNorm on each query and key head
	TieEmbeddings bool    // the output projection is the token embedding
	MaxPositions  int     // longest sequence, in tokens
	InitStd       float64 // standard deviation of random initial weights

	// Deviations of other families. The zero value is Llama's block.
	Rope       RopeScaling      // of the rotary frequencies
	Rotary     int              // Phi: channels of a head that are rotated; 0: all
	OutBias    bool             // Llama's attention_bias: a bias on the attention output, too
	FFNBias    bool             // Llama's mlp_bias: biases on gate, up and down
	Fused      bool             // Phi-3: one tensor for q, k and v, and one for gate and up
	Window     int              // positions that a windowed layer sees, itself included
	Windowed   []bool           // [L] layers with a window; nil: none
	LocalTheta float64          // Gemma 3: unscaled rotary base of windowed layers; 0: same as the others
	Gate       kernels.GateKind // activation of the feed-forward block
	UnitOffset bool             // Gemma: norms multiply by 1 + weight
	PostNorms  bool             // Gemma: norms of the attention and feed-forward outputs
	NoPreNorms bool             // OLMo 2: the blocks read the residual stream as it is; needs PostNorms
	WideQKNorm bool             // OLMo 2: QKNorm is one norm over all query heads and one over all key heads
	NoRope     []bool           // [L] SmolLM3: layers without rotary positions; nil: none
	EmbedScale float64          // Gemma: multiplies the embedding; 0: 1
	QueryScale float64          // multiplies attention scores; 0: 1/sqrt(Head)
	ScoreCap   float64          // Gemma 2: soft cap of attention scores; 0: none
	LogitCap   float64          // Gemma 2: soft cap of logits; 0: none
	Experts    Experts          // mixture of experts of the sparse layers
	Sparse     []bool           // [L] layers with experts instead of one feed-forward block; nil: none

	// Qwen3-Next and Qwen3.5: layers whose attention is linear (delta.go), and the gate of the others.
	// JSON, from which digests are made, leaves them out of other models.
	Linear     []bool             `json:",omitempty"` // [L] layers with linear attention; nil: none
	Delta      kernels.DeltaShape `json:",omitzero"`  // of those layers
	OutputGate bool               `json:",omitempty"` // a query head comes with a gate of the head's output

	// OLMo Hybrid: linear attention writes twice as much, so that a step may turn a state's sign, and the norm of its
	// output has an eps of its own; 0: NormEps.
	DoubleWrites bool    `json:",omitempty"`
	DeltaEps     float64 `json:",omitempty"`

	Latent Latent `json:",omitzero"` // DeepSeek: latent attention (latent.go)

	Sinks bool `json:",omitempty"` // gpt-oss: each query head has a sink of its attention (kernels.Sequence)

	// Interleaved says that rotary positions turn channels 2i and 2i+1 of a head together (GLM, ERNIE).
	Interleaved bool `json:",omitempty"`
	FusedFFN    bool `json:",omitempty"` // GLM: one tensor for gate and up
	GLMNorms    bool `json:",omitempty"` // GLM-4: PostNorms under names of its own
	LateQKNorm  bool `json:",omitempty"` // Hunyuan: QKNorm after the rotary positions
	// Granite's multipliers: of what a block adds to the residual stream, and 1 over that of the logits; 0: 1.
	ResidualScale float64 `json:",omitempty"`
	LogitDivisor  float64 `json:",omitempty"`

	// Gemma 4 (gemma4.go).
	Global      Global `json:",omitzero"`  // heads of layers without a window
	ValueNorm   bool   `json:",omitempty"` // values are divided by their root mean square
	LayerScales bool   `json:",omitempty"` // a number multiplies each layer's output
	PerLayer    int    `json:",omitempty"` // P: channels of a token's embedding for each layer (perlayer.go)
	SharedKV    int    `json:",omitempty"` // so many last layers read the keys and values of earlier ones
	WideFFN     bool   `json:",omitempty"` // and their feed-forward blocks have width 2F

	// Hybrids with Mamba-2 (Linear layers whose Delta.Scan is set).
	Names   LayerNames `json:",omitempty"` // of the layers' tensors
	NoMixer []bool     `json:",omitempty"` // [L] Nemotron-H: layers that are a feed-forward block alone; nil: none
	NoFFN   []bool     `json:",omitempty"` // [L] Nemotron-H: layers without one; nil: none

	GateMap bool `json:",omitempty"` // AFMoE: a map of its own makes gates of attention's output (attentiongate.go)

	// Falcon-H1 (parallel.go).
	Parallel    bool        `json:",omitempty"` // every layer has attention beside its Mamba-2
	Multipliers Multipliers `json:",omitzero"`
	ScanNorm    ScanNorm    `json:",omitempty"` // of Mamba-2's output
	ScanBias    bool        `json:",omitempty"` // a bias on the map of that output

	// GPT-NeoX, GPT-2, Cohere and others (layernorm.go, branches.go, positions.go).
	Norm     NormKind `json:",omitempty"` // of the residual stream
	Branches Branches `json:",omitempty"` // how a layer's two blocks join it
	Learned  bool     `json:",omitempty"` // a learned vector for each position is added to embeddings

	OutputBias bool `json:",omitempty"` // Phi: a bias on the output projection (outputbias.go)

	// OLMo 1 and Command R+ (headnorm.go).
	ClipQKV       float64 `json:",omitempty"` // the largest value of queries, keys and values; 0: none
	HeadLayerNorm bool    `json:",omitempty"` // LayerNorm of each query and key head

	Images ImageSettings `json:",omitzero"` // of models of text and images (images.go)
	// Tower has the weights of the vision tower that the model trains, in groups that are used together (tower.go);
	// nil: the tower is frozen, or there is none.
	Tower [][]TowerTensor `json:",omitempty"`
}

// Experts describes the feed-forward block of a sparse layer: Count blocks of width FFN,
// Top of them compute a token, and one of width Shared always does, with its own gate
// (Qwen2-MoE).
type Experts struct {
	Count, Top int
	FFN        int
	Shared     int  // 0: no shared expert
	Renorm     bool // divide the weights of the chosen experts by their sum (norm_topk_prob)
	Mixtral    bool // the tensors have Mixtral's names: block_sparse_moe, w1, w2, w3
	// Bias is gpt-oss's: the router, which is called router, and gates, ups and downs have biases.
	Bias bool `json:",omitempty"`

	// DeepSeek-V3's and GLM-4.5's routing (kernels.Routing).
	Sigmoid   bool    `json:",omitempty"` // instead of a softmax
	Corrected bool    `json:",omitempty"` // a bias that no gradient changes chooses experts, with their probabilities
	Ungated   bool    `json:",omitempty"` // the shared expert has no gate
	Eps       float64 `json:",omitempty"` // Renorm adds it to the sum; 0: kernels.RoutingEps
	Groups    int     `json:",omitempty"` // of which a token's experts are in TopGroups; 0: one
	TopGroups int     `json:",omitempty"`
	Scale     float64 `json:",omitempty"` // multiplies the weights of the chosen experts; 0: 1

	Names  ExpertNames `json:",omitempty"` // of the tensors
	Beside bool        `json:",omitempty"` // Gemma 4: sparse layers have a feed-forward block, too (gemma4.go)
}

// RopeScaling changes the rotary frequencies f_j = theta^(-2j/R) for sequences longer
// than the model was first trained on. Kind is config.json's rope_type; the zero value
// changes nothing.
type RopeScaling struct {
	Kind       string  // "", "linear", "llama3", "yarn", "dynamic", "longrope", "proportional"
	Factor     float64 // s
	Original   int     // n: positions before scaling, of llama3, yarn, dynamic and longrope
	LowFactor  float64 // llama3
	HighFactor float64 // llama3
	BetaFast   float64 // yarn
	BetaSlow   float64 // yarn
	Attention  float64 // yarn, longrope: multiplies cos and sin; 0: none
	// Exact is yarn's truncate: false: the channels that bound the blend are not rounded.
	Exact bool `json:",omitempty"`
	// Turned is proportional's: so many channels of a head turn, the frequencies of the others are 0.
	Turned int `json:",omitempty"`
	// QueryBeta is Ministral 3's: transformers multiplies a query at position p by 1 + QueryBeta·log(1 +
	// ⌊p/Original⌋). Only sequences of at most Original tokens are supported, where that is 1.
	QueryBeta float64 `json:",omitempty"`
	// Short and Long divide each frequency of longrope, [R/2]: Short for sequences of at
	// most Original tokens.
	Short, Long []float64
}

// Validate reports every invalid setting.
func (c Config) Validate() error {
	var errs []error
	positive := func(name string, v int) {
		if v < 1 {
			errs = append(errs, fmt.Errorf("model: %s is %d, must be at least 1", name, v))
		}
	}
	positive("vocab", c.Vocab)
	positive("layers", c.Layers)
	positive("width", c.Width)
	positive("heads", c.Heads)
	positive("kv_heads", c.KVHeads)
	positive("head_size", c.Head)
	if c.listed() && c.anyDense() {
		positive("ffn", c.FFN)
	}
	positive("max_positions", c.MaxPositions)
	if c.KVHeads > 0 && c.Heads%c.KVHeads != 0 {
		errs = append(errs, fmt.Errorf("model: heads %d is not a multiple of kv_heads %d", c.Heads, c.KVHeads))
	}
	if c.Head%2 != 0 {
		errs = append(errs, fmt.Errorf("model: head_size %d is odd; rotary embedding pairs components", c.Head))
	}
	if !(c.RopeTheta > 0) || !(c.NormEps > 0) || !(c.InitStd >= 0) {
		errs = append(errs, fmt.Errorf("model: rope_theta %g and norm_eps %g must be positive, init_std %g not "+
			"negative",
			c.RopeTheta, c.NormEps, c.InitStd))
	}
	return errors.Join(append(errs, c.validateVariants()...)...)
}

// listed reports whether lists of layers are complete.
func (c Config) listed() bool {
	for _, list := range [][]bool{c.Sparse, c.NoMixer, c.NoFFN} {
		if list != nil && len(list) != c.Layers {
			return false
		}
	}
	return true
}

// validateVariants does so for settings of particular families.
func (c Config) validateVariants() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("model: "+format, args...)) }
	if c.Rotary%2 != 0 || c.Rotary < 0 || c.Rotary > c.Head {
		bad("%d of %d channels of a head are rotated; the number must be even and at most all", c.Rotary, c.Head)
	}
	for name, list := range map[string][]bool{"windowed": c.Windowed, "sparse": c.Sparse,
		"without rotary positions": c.NoRope, "with linear attention": c.Linear,
		"without attention": c.NoMixer, "without a feed-forward block": c.NoFFN} {
		if list != nil && len(list) != c.Layers {
			bad("%d entries say which layers are %s; the model has %d layers", len(list), name, c.Layers)
		}
	}
	if slices.Contains(c.Windowed, true) && c.Window < 1 {
		bad("windowed layers have a window of %d positions", c.Window)
	}
	if slices.Contains(c.Sparse, true) {
		if x := c.Experts; x.Count < 1 || x.Top < 1 || x.Top > x.Count || x.FFN < 1 || x.Shared < 0 {
			bad("invalid experts: %d of width %d, %d per token, shared expert of width %d", x.Count, x.FFN,
				x.Top, x.Shared)
		}
		if c.FFNBias {
			bad("experts have no biases")
		}
		if x := c.Experts; x.Groups != 0 || x.TopGroups != 0 {
			if x.Groups < 1 || x.Groups > kernels.MaxGroups || x.TopGroups < 1 || x.TopGroups > x.Groups ||
				x.Count%max(x.Groups, 1) != 0 || int(x.Top*x.Groups) > int(x.TopGroups*x.Count) {
				bad("%d experts cannot be in %d groups, at most %d, of which %d have the %d of a token", x.Count,
					x.Groups, kernels.MaxGroups, x.TopGroups, x.Top)
			}
		}
		if c.Experts.Bias && (c.Experts.Mixtral || c.Experts.Shared > 0 || c.fusedGate()) {
			bad("experts with biases have names of their own, no shared expert and another gate than silu")
		}
	}
	if c.NoPreNorms && !c.PostNorms {
		bad("the blocks have norms neither before nor after them")
	}
	if (c.WideQKNorm || c.LateQKNorm) && !c.QKNorm {
		bad("the norms of queries and keys cannot be wide or late: there are none")
	}
	if c.GLMNorms && (!c.PostNorms || c.NoPreNorms) {
		bad("GLM-4's norms are before and after the blocks")
	}
	if c.ResidualScale != 0 && (c.PostNorms || c.hasLinear() && !c.Delta.Scan) {
		bad("norms after the blocks, or linear attention, cannot be together with a scale of the residual stream")
	}
	errs = append(append(append(errs, c.validateDelta()...), c.validateLatent()...), c.validateGlobal()...)
	errs = append(append(append(errs, c.validatePerLayer()...), c.validateNames()...), c.validateGateMap()...)
	errs = append(append(errs, c.validateNano()...), c.validateParallel()...)
	errs = append(append(errs, c.validateLayerNorm()...), c.validateXielu()...)
	errs = append(append(errs, c.validateHeadNorm()...), c.validateOutputBias())
	if c.ScoreCap < 0 || c.LogitCap < 0 || c.QueryScale < 0 || c.EmbedScale < 0 || c.LocalTheta < 0 ||
		c.ResidualScale < 0 || c.LogitDivisor < 0 {
		bad("caps, scales and the local rotary base cannot be negative")
	}
	errs = append(errs, c.Images.validate(c)...)
	return append(errs, c.Rope.validate(c)...)
}

// rotated returns the number of rotated channels of a head.
func (c Config) rotated() int {
	if c.Rotary > 0 {
		return c.Rotary
	}
	return c.Head
}

// windowed reports whether layer l sees only a window.
func (c Config) windowed(l int) bool { return c.Windowed != nil && c.Windowed[l] }

// sparse reports whether layer l has a mixture of experts.
func (c Config) sparse(l int) bool { return c.Sparse != nil && c.Sparse[l] }

// rotates reports whether layer l has rotary positions.
func (c Config) rotates(l int) bool { return c.NoRope == nil || !c.NoRope[l] }

// routing returns a sparse layer's rule for choosing experts.
func (c Config) routing() kernels.Routing {
	x := c.Experts
	return kernels.Routing{Experts: x.Count, Top: x.Top, Renorm: x.Renorm, Shared: x.Shared > 0,
		Sigmoid: x.Sigmoid, Ungated: x.Ungated, Groups: x.Groups, TopGroups: x.TopGroups, Scale: x.Scale,
		Eps: x.Eps}
}

// residualScale returns the factor of what a block adds to the residual stream. Nothing multiplies by it: the
// engine's residual stream is the model's divided by it, so that embeddings are divided by it, and norms, which
// take away any factor, add eps divided by its square.
func (c Config) residualScale() float64 { return cmp.Or(c.ResidualScale, 1) }

// embedScale returns the factor of embeddings.
func (c Config) embedScale() float64 { return cmp.Or(c.EmbedScale, 1) / c.residualScale() }

// residualEps returns what norms of the residual stream add to its mean square.
func (c Config) residualEps() float64 { return c.NormEps / (c.residualScale() * c.residualScale()) }

// softmax returns how logits become a distribution at a temperature.
func (c Config) softmax(temperature float64) kernels.Softmax {
	return kernels.Softmax{Temperature: temperature * c.logitDivisor(), Cap: c.LogitCap}
}

// sampling returns p for the engine's logits. The most probable token is the first of the likeliest tokens at
// the temperature at which scores are wanted.
func (c Config) sampling(p kernels.Sampling) kernels.Sampling {
	if c.scalesLogits() && p.Temperature == 0 {
		p.Temperature, p.TopK = 1, 1
	}
	x := c.softmax(p.Temperature)
	p.Temperature, p.Cap = x.Temperature, x.Cap
	return p
}

// norm returns the shape of a norm over the residual stream.
func (c Config) norm() kernels.NormShape {
	return kernels.NormShape{Heads: 1, Dim: c.Width, Stride: c.Width, UnitOffset: c.UnitOffset}
}

// fusedGate reports whether MatMulSwiGLU computes the first half of a dense feed-forward
// block without adapters.
func (c Config) fusedGate() bool {
	return c.Gate == kernels.SiLU && !c.FFNBias && cmp.Or(c.Multipliers.Gate, 1) == 1
}

// QKV returns the width of a row of queries, keys and values.
func (c Config) QKV() int { return (c.Heads + 2*c.KVHeads) * c.Head }

// attention returns the layout of such a row of layer l, and its window.
func (c Config) attention(l int) kernels.AttentionShape {
	c = c.at(l)
	s := kernels.AttentionShape{H: c.Heads, K: c.KVHeads, D: c.Head, Scale: c.QueryScale, Cap: c.ScoreCap,
		Rotary: c.Rotary, Interleaved: c.Interleaved}
	if s.Scale == 0 {
		s.Scale = 1 / math.Sqrt(float64(c.Head))
	}
	s.Scale *= cmp.Or(c.Multipliers.Key, 1)
	if c.windowed(l) {
		s.Window = c.Window
	}
	return s
}

// Heads are the parts of a model outside its backbone.
type Heads struct {
	LM       bool        // output projection: a policy
	Value    bool        // value head: a critic
	Score    bool        // score head: a reward model, a value head without bias
	Hidden   bool        // the value head has a hidden layer (valuehidden.go), and cannot learn
	LogZ     *LogZConfig // FlowRL's log Z head, nil for none
	Adapters *Adapters   // on the backbone's linear maps, nil for none; only on a Backbone
}

// LogZConfig is FlowRL's learned log partition function (arXiv:2509.15207): the
// mean of the final hidden states over the prompt goes through Layers-1 blocks
// of Linear, GELU, LayerNorm (eps 1e-5), Dropout at the model's width, and one
// Linear to a scalar.
type LogZConfig struct {
	Layers  int     // linear layers, at least 1; 3 in the published recipes
	Dropout float64 // drop probability during updates; 0.1
	// PoolAll averages over the whole prompt. The published code leaves the last prompt
	// token out.
	PoolAll bool
	// Detach stops the gradient at the hidden states. The published code does not.
	Detach bool
}
