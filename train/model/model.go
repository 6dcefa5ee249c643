package model

import (
	"errors"
	"fmt"
	"math"

	"exp/kernels"
)

// Model is a set of parameters on a backend, ready to be multiplied with. A
// trainable model has a gradient for each parameter. It is used by one goroutine
// at a time.
type Model struct {
	Config Config
	Heads  Heads

	be        kernels.Backend
	trainable bool
	tensors   []Tensor
	params    arena
	grads     arena          // empty unless trainable
	tied      kernels.Buffer // gradient of the embedding as input, when it is also the output
	owned     []kernels.Buffer

	layers   []layer
	embed    kernels.Matrix // [V,C]
	norm     kernels.Buffer // [C]
	output   kernels.Matrix // [V,C]
	value    kernels.Matrix // [1,C]
	logZ     []logZLayer
	cos, sin kernels.Buffer // [MaxPositions, D/2]

	dEmbed, dNorm, dOutput kernels.Buffer
}

// layer holds the parameters of one layer and, where trainable, their gradients.
type layer struct {
	norm1, qkvBias, qNorm, kNorm, norm2    kernels.Buffer
	qkv, o, gateUp, down                   kernels.Matrix
	dNorm1, dQKV, dQKVBias, dQNorm, dKNorm kernels.Buffer
	dO, dNorm2, dGateUp, dDown             kernels.Buffer
}

// New allocates a model with all parameters zero. The error says that the device
// has no room or that the configuration is impossible.
func New(be kernels.Backend, c Config, h Heads, trainable bool) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := &Model{Config: c, Heads: h, be: be, trainable: trainable}
	var n int
	m.tensors, n = Layout(c, h)

	var errs []error
	allocAs := func(t kernels.DType, n int) kernels.Buffer {
		b, err := be.Alloc(t, n)
		if err != nil {
			errs = append(errs, fmt.Errorf("model: %w", err))
			return kernels.Buffer{}
		}
		m.owned = append(m.owned, b)
		return b
	}
	alloc := func(n int) kernels.Buffer { return allocAs(be.Float(), n) }
	buf := alloc(n)
	var gradBuf kernels.Buffer
	if trainable {
		gradBuf = alloc(n)
		if h.LM && c.TieEmbeddings {
			m.tied = alloc(c.Vocab * c.Width)
		}
	}
	m.cos, m.sin = alloc(c.MaxPositions*c.Head/2), alloc(c.MaxPositions*c.Head/2)
	if len(errs) > 0 {
		m.Close()
		return nil, errors.Join(errs...)
	}
	m.params = newArena(buf, m.tensors)
	if trainable {
		m.grads = newArena(gradBuf, m.tensors)
	}
	m.bind(func(n int) kernels.Buffer { return allocAs(be.Operand(), n) })
	if len(errs) > 0 {
		m.Close()
		return nil, errors.Join(errs...)
	}
	m.fillRope()
	return m, nil
}

// bind makes the views that the passes use, and room for packed weights by alloc.
func (m *Model) bind(alloc func(n int) kernels.Buffer) {
	c := m.Config
	matrix := func(w kernels.Buffer, out, in int) kernels.Matrix {
		p, pt := m.be.PackedLen(out, in)
		mx := kernels.Matrix{W: w, Out: out, In: in}
		if p > 0 {
			mx.Packed = alloc(p)
		}
		if pt > 0 && m.trainable {
			mx.PackedT = alloc(pt)
		}
		return mx
	}
	grad := func(name string) kernels.Buffer {
		if !m.trainable {
			return kernels.Buffer{}
		}
		return m.grads.view(name)
	}
	gradSpan := func(first, last string) kernels.Buffer {
		if !m.trainable {
			return kernels.Buffer{}
		}
		return m.grads.span(first, last, m.tensors)
	}
	m.embed = kernels.Matrix{W: m.params.view("model.embed_tokens.weight"), Out: c.Vocab, In: c.Width}
	m.dEmbed = grad("model.embed_tokens.weight")
	m.norm, m.dNorm = m.params.view("model.norm.weight"), grad("model.norm.weight")
	for l := range c.Layers {
		p := fmt.Sprintf("model.layers.%d.", l)
		attn, mlp := p+"self_attn.", p+"mlp."
		var y layer
		y.norm1, y.dNorm1 = m.params.view(p+"input_layernorm.weight"), grad(p+"input_layernorm.weight")
		y.qkv = matrix(m.params.span(attn+"q_proj.weight", attn+"v_proj.weight", m.tensors), c.QKV(), c.Width)
		y.dQKV = gradSpan(attn+"q_proj.weight", attn+"v_proj.weight")
		if c.QKVBias {
			y.qkvBias = m.params.span(attn+"q_proj.bias", attn+"v_proj.bias", m.tensors)
			y.dQKVBias = gradSpan(attn+"q_proj.bias", attn+"v_proj.bias")
		}
		if c.QKNorm {
			y.qNorm, y.dQNorm = m.params.view(attn+"q_norm.weight"), grad(attn+"q_norm.weight")
			y.kNorm, y.dKNorm = m.params.view(attn+"k_norm.weight"), grad(attn+"k_norm.weight")
		}
		y.o, y.dO = matrix(m.params.view(attn+"o_proj.weight"), c.Width, c.Heads*c.Head), grad(attn+"o_proj.weight")
		y.norm2 = m.params.view(p + "post_attention_layernorm.weight")
		y.dNorm2 = grad(p + "post_attention_layernorm.weight")
		y.gateUp = matrix(m.params.span(mlp+"gate_proj.weight", mlp+"up_proj.weight", m.tensors), 2*c.FFN, c.Width)
		y.dGateUp = gradSpan(mlp+"gate_proj.weight", mlp+"up_proj.weight")
		y.down, y.dDown = matrix(m.params.view(mlp+"down_proj.weight"), c.Width, c.FFN), grad(mlp+"down_proj.weight")
		m.layers = append(m.layers, y)
	}
	if m.Heads.LM {
		name := "lm_head.weight"
		if c.TieEmbeddings {
			name = "model.embed_tokens.weight"
		}
		m.output, m.dOutput = matrix(m.params.view(name), c.Vocab, c.Width), grad(name)
		if m.trainable && c.TieEmbeddings {
			m.dEmbed = m.tied
		}
	}
	if m.Heads.Value {
		m.value = matrix(m.params.view("score.weight"), 1, c.Width)
	}
	m.bindLogZ(matrix, grad)
}

// fillRope computes the rotary tables: the angle of pair i at position p is
// p·theta^(-2i/D) (arXiv:2104.09864), computed in float64.
func (m *Model) fillRope() {
	half := m.Config.Head / 2
	n := m.Config.MaxPositions * half
	cos, sin := make([]float64, n), make([]float64, n)
	for i := range half {
		freq := math.Pow(m.Config.RopeTheta, -2*float64(i)/float64(m.Config.Head))
		for p := range m.Config.MaxPositions {
			angle := float64(p) * freq
			cos[p*half+i], sin[p*half+i] = math.Cos(angle), math.Sin(angle)
		}
	}
	m.be.Copy(m.cos, kernels.Host(cos))
	m.be.Copy(m.sin, kernels.Host(sin))
	m.be.Sync()
}

// Close frees the model's memory.
func (m *Model) Close() {
	for _, b := range m.owned {
		m.be.Free(b)
	}
	m.owned = nil
}

// Tensors returns the parameters in arena order.
func (m *Model) Tensors() []Tensor { return m.tensors }

// Trainable reports whether the model has gradients.
func (m *Model) Trainable() bool { return m.trainable }

// Params returns the arena of parameters, [n] as Layout says. After writing to it
// call Refresh.
func (m *Model) Params() kernels.Buffer { return m.params.buf }

// Grads returns the arena of gradients.
func (m *Model) Grads() kernels.Buffer { return m.grads.buf }

// View returns the parameter of that name; it panics if there is none.
func (m *Model) View(name string) kernels.Buffer { return m.params.view(name) }

// Grad returns the gradient of that parameter; it panics if there is none.
func (m *Model) Grad(name string) kernels.Buffer { return m.grads.view(name) }

// Refresh makes the packed copies of the weights follow the parameters. It must be
// called after every change of them.
func (m *Model) Refresh() {
	for i := range m.layers {
		y := &m.layers[i]
		for _, w := range []kernels.Matrix{y.qkv, y.o, y.gateUp, y.down} {
			m.pack(w)
		}
	}
	if m.Heads.LM {
		m.pack(m.output)
	}
	if m.Heads.Value {
		m.pack(m.value)
	}
	for _, z := range m.logZ {
		m.pack(z.linear)
	}
}

func (m *Model) pack(w kernels.Matrix) {
	if !w.Packed.Empty() {
		m.be.Pack(w)
	}
}

// CopyFrom sets every parameter that both models have to src's value, and
// refreshes. The models may differ in their heads, not in their backbone.
func (m *Model) CopyFrom(src *Model) {
	for _, t := range m.tensors {
		if from, ok := src.params.byName[t.Name]; ok {
			m.be.Copy(m.params.view(t.Name), from)
		}
	}
	m.Refresh()
}

// ZeroGrads clears all gradients.
func (m *Model) ZeroGrads() {
	m.be.Zero(m.grads.buf)
	if !m.tied.Empty() {
		m.be.Zero(m.tied)
	}
}

// FinishGrads must be called once after the last backward pass of a mini-batch:
// with tied embeddings it adds the gradient of the embedding as input to that as
// output. They are kept apart until then so that the order of the sum does not
// depend on how the mini-batch was cut.
func (m *Model) FinishGrads() {
	if !m.tied.Empty() {
		m.be.Add(m.grads.view("model.embed_tokens.weight"), m.tied)
	}
}
