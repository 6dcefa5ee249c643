package model

import (
	"fmt"
	"math"

	"exp/kernels"
	"exp/train/rl/exact"
)

// This file has Apertus's activation, xIELU (Huang and Schlag, arXiv:2411.13010), whose numbers belong to the layer.
// alpha_p and alpha_n are learned, beta and eps are constant; as transformers has them,
//
//	Positive = Softplus(alpha_p)      Negative = beta + Softplus(alpha_n)
//
// A step reads them to the host, where they become kernels.Xielu.

// xieluNames returns the names of a layer's numbers, in the order in which they lie in the arena.
func xieluNames(l int) []string {
	p := fmt.Sprintf("model.layers.%d.mlp.act_fn.", l)
	return []string{p + "alpha_p", p + "alpha_n", p + xieluBeta, p + xieluEps}
}

const xieluBeta, xieluEps = "beta", "eps"

// xielu adds them.
func (x *layout) xielu(c Config, l int) {
	if c.Gate != kernels.XIELU {
		return
	}
	x.group()
	for _, name := range xieluNames(l) {
		x.add(name, 1)
	}
}

// xielu returns the gradient of a layer's learned numbers [2]; nothing if they are frozen.
func (b *binder) xielu(l int) kernels.Buffer {
	if b.Config.Gate != kernels.XIELU || b.base != nil || !b.trainable {
		return kernels.Buffer{}
	}
	names := xieluNames(l)
	return b.grads.span(names[0], names[1])
}

// xieluInitial sets out to the initial value of such a number, if t is one, as transformers has it.
func xieluInitial(out []float32, t Tensor) bool {
	const alpha, beta, eps = 0.8, 0.5, -1e-6
	for name, v := range map[string]float64{"alpha_p": inverseSoftplus(alpha),
		"alpha_n": inverseSoftplus(alpha - beta), xieluBeta: beta, xieluEps: eps} {
		if hasPart(t.Name, "act_fn."+name) {
			out[0] = float32(v)
			return true
		}
	}
	return false
}

// inverseSoftplus returns the x whose Softplus is y.
func inverseSoftplus(y float64) float64 { return math.Log(math.Expm1(y)) }

// xieluFrom returns what a layer's numbers alpha_p, alpha_n, beta and eps mean.
func xieluFrom(x [4]float64) kernels.Xielu {
	softplus := func(v float64) float64 { return max(v, 0) + exact.Log1p(exact.Exp(-math.Abs(v))) }
	slope := func(v float64) float64 { return 1 / (1 + exact.Exp(-v)) }
	return kernels.Xielu{Positive: softplus(x[0]), Negative: x[2] + softplus(x[1]), Beta: x[2], Eps: x[3],
		DPositive: slope(x[0]), DNegative: slope(x[1])}
}

// readXielu reads the numbers of all layers.
func (m *Model) readXielu() []kernels.Xielu {
	raw := make([][4]float64, m.Config.Layers)
	half := make([][4]float32, m.Config.Layers)
	for l := range raw {
		names := xieluNames(l)
		from := m.params
		if m.base != nil {
			from = m.base.vectors
		}
		v := from.span(names[0], names[3])
		if m.be.Float() == kernels.F64 {
			m.be.Copy(kernels.Host(raw[l][:]), v)
		} else {
			m.be.Copy(kernels.Host(half[l][:]), v)
		}
	}
	m.be.Sync()
	list := make([]kernels.Xielu, len(raw))
	for l := range list {
		if m.be.Float() != kernels.F64 {
			for i, v := range half[l] {
				raw[l][i] = float64(v)
			}
		}
		list[l] = xieluFrom(raw[l])
	}
	return list
}

// validateXielu reports settings that no family has together with the activation.
func (c Config) validateXielu() (errs []error) {
	if (c.Names == ApertusNames) != (c.Gate == kernels.XIELU) {
		errs = append(errs, fmt.Errorf("model: xIELU is the activation of layers with Apertus's names"))
	}
	if c.Gate == kernels.XIELU && (c.Sparse != nil || c.NoFFN != nil || c.PerLayer > 0 || c.PostNorms || c.FFNBias ||
		c.LayerScales) {
		errs = append(errs, fmt.Errorf("model: xIELU goes with dense feed-forward blocks, without biases and norms "+
			"after the blocks, in all layers"))
	}
	return errs
}
