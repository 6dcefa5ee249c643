package model

import (
	"fmt"

	"exp/kernels"
)

// Tensor is a named view of the arena.
type Tensor struct {
	Name  string // Hugging Face name
	Shape []int
	off   int // first element in the arena
}

// Len returns the number of elements.
func (t Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Auxiliary reports whether the tensor belongs to a head that a plain language
// model does not have. Merging writes those to files of their own.
func (t Tensor) Auxiliary() bool { return t.prefix() != "" }

// prefix returns the auxiliary head that the tensor belongs to: "proj_z",
// "score", or "".
func (t Tensor) prefix() string {
	for _, p := range []string{"proj_z", "score"} {
		if len(t.Name) > len(p) && t.Name[:len(p)] == p && t.Name[len(p)] == '.' {
			return p
		}
	}
	return ""
}

// Layout returns the tensors of a model in arena order and the arena's length in
// elements. Groups that are multiplied together (q, k, v and their biases; gate
// and up) are contiguous; groups start on whole vectors.
func Layout(c Config, h Heads) (tensors []Tensor, n int) {
	add := func(name string, shape ...int) {
		t := Tensor{Name: name, Shape: shape, off: n}
		tensors = append(tensors, t)
		n += t.Len()
	}
	group := func() { n = (n + kernels.Lanes - 1) / kernels.Lanes * kernels.Lanes }

	group()
	add("model.embed_tokens.weight", c.Vocab, c.Width)
	for l := range c.Layers {
		p := fmt.Sprintf("model.layers.%d.", l)
		group()
		add(p+"input_layernorm.weight", c.Width)
		group()
		add(p+"self_attn.q_proj.weight", c.Heads*c.Head, c.Width)
		add(p+"self_attn.k_proj.weight", c.KVHeads*c.Head, c.Width)
		add(p+"self_attn.v_proj.weight", c.KVHeads*c.Head, c.Width)
		if c.QKVBias {
			group()
			add(p+"self_attn.q_proj.bias", c.Heads*c.Head)
			add(p+"self_attn.k_proj.bias", c.KVHeads*c.Head)
			add(p+"self_attn.v_proj.bias", c.KVHeads*c.Head)
		}
		if c.QKNorm {
			group()
			add(p+"self_attn.q_norm.weight", c.Head)
			group()
			add(p+"self_attn.k_norm.weight", c.Head)
		}
		group()
		add(p+"self_attn.o_proj.weight", c.Width, c.Heads*c.Head)
		group()
		add(p+"post_attention_layernorm.weight", c.Width)
		group()
		add(p+"mlp.gate_proj.weight", c.FFN, c.Width)
		add(p+"mlp.up_proj.weight", c.FFN, c.Width)
		group()
		add(p+"mlp.down_proj.weight", c.Width, c.FFN)
	}
	group()
	add("model.norm.weight", c.Width)
	if h.LM && !c.TieEmbeddings {
		group()
		add("lm_head.weight", c.Vocab, c.Width)
	}
	if h.Value {
		group()
		add("score.weight", 1, c.Width)
		group()
		add("score.bias", 1)
	}
	if z := h.LogZ; z != nil {
		for i := range z.Layers - 1 {
			// Places in the published module list: Linear, GELU, LayerNorm, Dropout.
			group()
			add(fmt.Sprintf("proj_z.net.%d.weight", 4*i), c.Width, c.Width)
			group()
			add(fmt.Sprintf("proj_z.net.%d.bias", 4*i), c.Width)
			group()
			add(fmt.Sprintf("proj_z.net.%d.weight", 4*i+2), c.Width)
			group()
			add(fmt.Sprintf("proj_z.net.%d.bias", 4*i+2), c.Width)
		}
		group()
		add(fmt.Sprintf("proj_z.net.%d.weight", 4*(z.Layers-1)), 1, c.Width)
		group()
		add(fmt.Sprintf("proj_z.net.%d.bias", 4*(z.Layers-1)), 1)
	}
	group()
	return tensors, n
}

// arena is one buffer with the tensors of a layout, and the views that the passes
// use.
type arena struct {
	buf    kernels.Buffer
	byName map[string]kernels.Buffer
}

func newArena(buf kernels.Buffer, tensors []Tensor) arena {
	a := arena{buf: buf, byName: make(map[string]kernels.Buffer, len(tensors))}
	for _, t := range tensors {
		a.byName[t.Name] = buf.Slice(t.off, t.off+t.Len())
	}
	return a
}

// view returns the tensor of that name.
func (a arena) view(name string) kernels.Buffer {
	b, ok := a.byName[name]
	if !ok {
		panic("model: no tensor " + name)
	}
	return b
}

// span returns the contiguous tensors from first to last as one buffer.
func (a arena) span(first, last string, tensors []Tensor) kernels.Buffer {
	lo, hi := -1, -1
	for _, t := range tensors {
		if t.Name == first {
			lo = t.off
		}
		if t.Name == last {
			hi = t.off + t.Len()
		}
	}
	if lo < 0 || hi < lo {
		panic("model: no span " + first + " to " + last)
	}
	return a.buf.Slice(lo, hi)
}
