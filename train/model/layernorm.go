package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"exp/kernels"
)

// This file has the norms of GPT-NeoX, GPT-2, Cohere, StarCoder2, StableLM, OLMo 1, Nemotron and Jais 2: LayerNorm
// (Ba, Kiros and Hinton, arXiv:1607.06450) instead of RMSNorm.

// NormKind is what normalises the residual stream.
type NormKind string

const (
	RMSNorm         NormKind = ""
	LayerNorm       NormKind = "layernorm"        // with weight and bias
	WeightLayerNorm NormKind = "layernorm_weight" // Cohere: without bias
	PlainLayerNorm  NormKind = "layernorm_plain"  // OLMo 1: without either
	OffsetLayerNorm NormKind = "layernorm_offset" // Nemotron: LayerNorm that multiplies by 1 + weight
)

// biasedNorms reports whether norms have biases.
func (c Config) biasedNorms() bool { return c.Norm == LayerNorm || c.Norm == OffsetLayerNorm }

// normStats returns how many numbers a norm keeps of a row for its backward pass.
func (c Config) normStats() int {
	if c.Norm == RMSNorm {
		return 1
	}
	return 2
}

// finalNorm returns the name of the weight of the norm before the heads, "" if it has none.
func (c Config) finalNorm() string {
	if c.bareNorms() || c.Norm == PlainLayerNorm {
		return ""
	}
	return finalNorm
}

// biasOf returns the name of the bias that belongs to a weight.
func biasOf(weight string) string { return strings.TrimSuffix(weight, "weight") + "bias" }

// norm adds a norm of the residual stream; nothing for the name "".
func (x *layout) norm(c Config, name string) {
	if name == "" {
		return
	}
	x.one(name, c.Width)
	if c.biasedNorms() {
		x.one(biasOf(name), c.Width)
	}
}

// streamNorm binds a norm of the residual stream. A part that it lacks is constant: ones for a weight, zeros for a
// bias.
func (b *binder) streamNorm(name string) norm {
	C := b.Config.Width
	v := b.vector(name)
	switch b.Config.Norm {
	case LayerNorm, OffsetLayerNorm:
		if name != "" {
			bias := b.vector(biasOf(name))
			v.bias, v.dbias = bias.w, bias.d
		}
	case WeightLayerNorm:
		v.bias = b.zeros.Slice(0, C)
	case PlainLayerNorm:
		v.bias, v.w = b.zeros.Slice(0, C), b.zeros.Slice(C, 2*C)
	}
	return v
}

// layerNormOnes makes the second half of m.zeros ones: the weight of a LayerNorm that has none, or what an
// OffsetLayerNorm adds to its weight, in the first half.
func (m *Model) layerNormOnes() {
	if C := m.Config.Width; m.Config.Norm == PlainLayerNorm || m.Config.Norm == OffsetLayerNorm {
		m.be.Copy(m.zeros.Slice(C, 2*C), kernels.Host(slices.Repeat([]float32{1}, C)))
		m.be.Sync()
	}
}

// factor returns what a LayerNorm multiplies by, which the next call may overwrite.
func (m *Model) factor(w norm) kernels.Buffer {
	C := m.Config.Width
	if m.Config.Norm != OffsetLayerNorm {
		return w.w
	}
	plusOne := m.zeros.Slice(0, C)
	m.be.Copy(plusOne, m.zeros.Slice(C, 2*C))
	m.be.Add(plusOne, w.w)
	return plusOne
}

// layerNorm sets out, floats or operands, to the norm of x. t [N,C], floats, is scratch.
func (m *Model) layerNorm(out, stats, x kernels.Buffer, w norm, t kernels.Buffer) {
	to := out
	if out.DType() != x.DType() {
		to = t
	}
	m.be.LayerNorm(to, stats, x, m.factor(w), w.bias, m.Config.Width, m.Config.NormEps)
	if to != out {
		m.be.Copy(out, to)
	}
}

// layerNormBackward sets dx, which is not dout, and adds to the gradients of w. Frozen weights have theirs in
// m.unread.
func (m *Model) layerNormBackward(dx, dout, x kernels.Buffer, w norm, stats, blocks kernels.Buffer) {
	C := m.Config.Width
	if w.d.Empty() {
		w.d = m.unread.Slice(0, C)
	}
	if w.dbias.Empty() {
		w.dbias = m.unread.Slice(C, 2*C)
	}
	m.be.LayerNormBackward(dx, w.d, w.dbias, dout, x, m.factor(w), stats, blocks, C)
}

// validateLayerNorm reports settings that no family has together.
func (c Config) validateLayerNorm() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("model: "+format, args...)) }
	switch c.Norm {
	case RMSNorm, LayerNorm, WeightLayerNorm, PlainLayerNorm, OffsetLayerNorm:
	default:
		bad("%q is not a kind of norm", string(c.Norm))
	}
	switch c.Branches {
	case InTurn, TwoNorms, OneNorm:
	default:
		bad("blocks cannot join the residual stream as %q", string(c.Branches))
	}
	other := c.UnitOffset || c.PostNorms || c.QKNorm || c.ResidualScale != 0 || c.LayerScales || c.hasLinear() ||
		c.latent() || c.Sparse != nil || c.Parallel || c.PerLayer > 0 || c.bareNorms() || c.NoMixer != nil ||
		c.NoFFN != nil || c.OutputGate || c.GateMap || c.Sinks
	if other && (c.Norm != RMSNorm || c.Branches != InTurn || c.Learned) {
		errs = append(errs, errors.New("model: LayerNorm, blocks side by side and learned positions go with plain "+
			"attention and dense feed-forward blocks alone, without norms after them or of queries and keys"))
	}
	if !c.Learned {
		return errs
	}
	if c.NoRope == nil || slices.Contains(c.NoRope, false) {
		bad("a model with learned positions has no rotary ones")
	}
	if c.EmbedScale != 0 {
		bad("embeddings with learned positions have no scale")
	}
	return errs
}
