// Package model is the decoder-only transformer of the Llama and Qwen families,
// with explicit forward and backward passes over packed sequences, written
// against kernels.Backend alone: the same code runs on every device and, on the
// float64 reference, under finite differences.
//
// Per layer, on the residual stream x [N,C]:
//
//	x += Wo · Attention(Rope(QKNorm?(Wqkv · RMSNorm(x) + bqkv?)))
//	x += Wdown · SwiGLU(Wgateup · RMSNorm(x))
//
// then a final RMSNorm and up to three heads: the output projection (log-probs),
// a value head (PPO's critic), and FlowRL's log Z head.
//
// All parameters lie in one arena, as named views under their Hugging Face names;
// gradients lie in a second arena of the same layout. A Model holds parameters, a
// Workspace the activations of one micro-batch, a Cache and a Decoder what
// sampling needs. Nothing is allocated per step.
package model

import (
	"errors"
	"fmt"
	"math"

	"exp/kernels"
)

// Config is the architecture. Dims as in package kernels.
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

	// What other families do differently. The zero value is Llama's block.
	Rope       RopeScaling      // of the rotary frequencies
	Rotary     int              // Phi: channels of a head that are rotated; 0: all
	OutBias    bool             // Llama's attention_bias: a bias on the attention output, too
	FFNBias    bool             // Llama's mlp_bias: biases on gate, up and down
	Fused      bool             // Phi-3: one tensor for q, k and v, one for gate and up
	Window     int              // positions that a windowed layer sees, itself included
	Windowed   []bool           // [L] layers with a window; nil: none
	LocalTheta float64          // Gemma 3: unscaled rotary base of windowed layers; 0: as the others
	Gate       kernels.GateKind // activation of the feed-forward block
	UnitOffset bool             // Gemma: norms multiply by 1 + weight
	PostNorms  bool             // Gemma: norms of what attention and feed-forward add to the stream
	EmbedScale float64          // Gemma: multiplies the embedding; 0: 1
	QueryScale float64          // multiplies attention scores; 0: 1/sqrt(Head)
	ScoreCap   float64          // Gemma 2: soft cap of attention scores; 0: none
	LogitCap   float64          // Gemma 2: soft cap of logits; 0: none
	Experts    Experts          // mixture of experts of the sparse layers
	Sparse     []bool           // [L] layers with experts instead of one feed-forward block; nil: none
}

// Experts describes the feed-forward block of a sparse layer: Count blocks of width
// FFN, Top of which compute a token, and one of width Shared that always does, behind
// a gate of its own (Qwen2-MoE).
type Experts struct {
	Count, Top int
	FFN        int
	Shared     int  // 0: no shared expert
	Renorm     bool // the weights of the chosen are divided by their sum (norm_topk_prob)
}

// RopeScaling changes the rotary frequencies f_j = theta^(-2j/R) for sequences longer
// than the model was first trained on. Kind is config.json's rope_type; the zero value
// changes nothing.
type RopeScaling struct {
	Kind       string  // "", "linear", "llama3", "yarn", "dynamic", "longrope"
	Factor     float64 // s
	Original   int     // n: positions before scaling, of llama3, yarn, dynamic and longrope
	LowFactor  float64 // llama3
	HighFactor float64 // llama3
	BetaFast   float64 // yarn
	BetaSlow   float64 // yarn
	Attention  float64 // yarn, longrope: multiplies cos and sin; 0: none
	// Short and Long divide each frequency of longrope, [R/2]: Short for sequences of at
	// most Original tokens.
	Short, Long []float64
}

// Validate reports every setting that no model can have.
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
	positive("ffn", c.FFN)
	positive("max_positions", c.MaxPositions)
	if c.KVHeads > 0 && c.Heads%c.KVHeads != 0 {
		errs = append(errs, fmt.Errorf("model: heads %d is no multiple of kv_heads %d", c.Heads, c.KVHeads))
	}
	if c.Head%2 != 0 {
		errs = append(errs, fmt.Errorf("model: head_size %d is odd; rotary embedding pairs components", c.Head))
	}
	if !(c.RopeTheta > 0) || !(c.NormEps > 0) || !(c.InitStd >= 0) {
		errs = append(errs, fmt.Errorf("model: rope_theta %g and norm_eps %g must be positive, init_std %g not negative",
			c.RopeTheta, c.NormEps, c.InitStd))
	}
	return errors.Join(errs...)
}

// QKV returns the width of a row of queries, keys and values.
func (c Config) QKV() int { return (c.Heads + 2*c.KVHeads) * c.Head }

// attention returns the layout of such a row.
func (c Config) attention() kernels.AttentionShape {
	return kernels.AttentionShape{H: c.Heads, K: c.KVHeads, D: c.Head, Scale: 1 / math.Sqrt(float64(c.Head))}
}

// Heads says which heads a model has beside its backbone.
type Heads struct {
	LM    bool        // output projection: a policy
	Value bool        // value head: a critic
	LogZ  *LogZConfig // FlowRL's log Z head, nil for none
}

// LogZConfig is FlowRL's learned log partition function (arXiv:2509.15207): the
// mean of the final hidden states over the prompt goes through Layers-1 blocks
// of Linear, GELU, LayerNorm (eps 1e-5), Dropout at the model's width, and one
// Linear to a scalar.
type LogZConfig struct {
	Layers  int     // linear layers, at least 1; 3 in the published recipes
	Dropout float64 // drop probability during updates; 0.1
	// PoolAll takes the mean over the whole prompt. The published code leaves the
	// last prompt token out.
	PoolAll bool
	// Detach stops the gradient at the hidden states. The published code does not.
	Detach bool
}
