package vision

import (
	"fmt"

	"exp/kernels"
)

// This file has the maps and norms of towers, under the names that transformers gives to their tensors, without
// "model." and "visual." before them.

// scope says what a map's rows are.
type scope int

const (
	rowwise scope = iota // patches and, with tiles, a row for each
	patchwise
	tokenwise
)

// linearSpec is a linear map: tensors of one input width whose rows are multiplied together.
type linearSpec struct {
	names []string // without ".weight"
	rows  []int    // of each
	in    int
	shape []int // of a row in the files; nil: [in]
	// turned says that a row lies in the files channel by channel, each of all patches of a token; in memory a patch
	// follows another.
	turned bool
	bias   bool
	across bool // the files have it [in,out], under its name alone; so has memory, and products are of MatMulDX
	scope  scope
}

// tensors returns the names of the tensors.
func (s linearSpec) tensors() []string {
	if s.across {
		return s.names
	}
	return ending(s.names, ".weight")
}

// sides returns the rows and columns of the matrix in memory.
func (s linearSpec) sides() (out, in int) {
	if s.across {
		return s.in, s.out()
	}
	return s.out(), s.in
}

// adapts reports whether the map can have adapters. Filters of pixels cannot, nor matrices that are not modules.
func (s linearSpec) adapts() bool { return s.shape == nil && !s.across }

// out returns the number of rows.
func (s linearSpec) out() (n int) {
	for _, r := range s.rows {
		n += r
	}
	return n
}

// single returns a map of one tensor.
func single(name string, out, in int, bias bool) linearSpec {
	return linearSpec{names: []string{name}, rows: []int{out}, in: in, bias: bias}
}

// normSpec is a norm.
type normSpec struct {
	name  string // without ".weight"
	width int    // 0: no norm
	layer bool   // a LayerNorm, with a bias, not an RMSNorm
	eps   float64
	plus  bool // an RMSNorm that multiplies by 1 + weight, as Gemma's
}

// shape returns the vectors that an RMSNorm works on.
func (s normSpec) shape() kernels.NormShape {
	return kernels.NormShape{Heads: 1, Dim: s.width, Stride: s.width, UnitOffset: s.plus}
}

// norm returns a norm of blocks.
func (c Config) norm(name string) normSpec {
	x := normSpec{name: name, width: c.Width, layer: c.has().layerNorms && !c.RMS, eps: normEps}
	if c.Eps > 0 {
		x.eps = c.Eps
	}
	return x
}

// blockSpec is the maps and norms of a block.
type blockSpec struct {
	norm1, norm2        normSpec
	queries, keys       normSpec // of all heads together
	qkv, proj, up, down linearSpec
	scale1, scale2      string // factors of the channels that a block adds (LayerScale, arXiv:2103.17239); "": none
}

// block returns the specifications of layer l.
func (c Config) block(l int) blockSpec {
	switch c.Kind {
	case InternVL:
		return c.internBlock(fmt.Sprintf("vision_tower.encoder.layer.%d.", l))
	case Idefics3:
		return c.siglipBlock(fmt.Sprintf("vision_model.encoder.layers.%d.", l))
	case Pixtral:
		return c.pixtralBlock(fmt.Sprintf("vision_tower.transformer.layers.%d.", l))
	case Gemma3:
		return c.siglipBlock(fmt.Sprintf("vision_tower.encoder.layers.%d.", l))
	}
	p, glm := fmt.Sprintf("blocks.%d.", l), c.Kind == GLM4V
	x := blockSpec{norm1: c.norm(p + "norm1"), norm2: c.norm(p + "norm2"),
		qkv:  single(p+"attn.qkv", 3*c.Width, c.Width, c.Bias || !glm),
		proj: single(p+"attn.proj", c.Width, c.Width, !glm)}
	up, down := []string{p + "mlp.fc1"}, p+"mlp.fc2"
	switch c.Kind {
	case Qwen25VL, GLM4V:
		up, down = []string{p + "mlp.gate_proj", p + "mlp.up_proj"}, p+"mlp.down_proj"
	case Qwen3VL:
		up, down = []string{p + "mlp.linear_fc1"}, p+"mlp.linear_fc2"
	}
	x.up = linearSpec{names: up, in: c.Width, bias: !glm}
	for range up {
		x.up.rows = append(x.up.rows, c.FFN)
	}
	x.down = single(down, c.Width, c.FFN, !glm)
	return x
}

// internBlock is block for InternViT, whose tensors' names begin with p.
func (c Config) internBlock(p string) blockSpec {
	C, a := c.Width, p+"attention."
	x := blockSpec{norm1: c.norm(p + "layernorm_before"), norm2: c.norm(p + "layernorm_after"),
		qkv: linearSpec{names: []string{a + "q_proj", a + "k_proj", a + "v_proj"}, rows: []int{C, C, C}, in: C,
			bias: c.Bias},
		proj: single(a+"projection_layer", C, C, true),
		up:   single(p+"mlp.fc1", c.FFN, C, true), down: single(p+"mlp.fc2", C, c.FFN, true),
		scale1: p + "lambda_1", scale2: p + "lambda_2"}
	if c.QKNorm {
		x.queries = normSpec{name: a + "q_norm", width: C, eps: normEps}
		x.keys = normSpec{name: a + "k_norm", width: C, eps: normEps}
	}
	return x
}

// siglipBlock is block for SigLIP (arXiv:2303.15343), whose tensors' names begin with p.
func (c Config) siglipBlock(p string) blockSpec {
	C, a := c.Width, p+"self_attn."
	return blockSpec{norm1: c.norm(p + "layer_norm1"), norm2: c.norm(p + "layer_norm2"),
		qkv: linearSpec{names: []string{a + "q_proj", a + "k_proj", a + "v_proj"}, rows: []int{C, C, C}, in: C,
			bias: true},
		proj: single(a+"out_proj", C, C, true),
		up:   single(p+"mlp.fc1", c.FFN, C, true), down: single(p+"mlp.fc2", C, c.FFN, true)}
}

// pixtralBlock is block for Pixtral, whose tensors' names begin with p.
func (c Config) pixtralBlock(p string) blockSpec {
	C, a, m := c.Width, p+"attention.", p+"feed_forward."
	return blockSpec{norm1: c.norm(p + "attention_norm"), norm2: c.norm(p + "ffn_norm"),
		qkv:  linearSpec{names: []string{a + "q_proj", a + "k_proj", a + "v_proj"}, rows: []int{C, C, C}, in: C},
		proj: single(a+"o_proj", C, C, false),
		up:   linearSpec{names: []string{m + "gate_proj", m + "up_proj"}, rows: []int{c.FFN, c.FFN}, in: C},
		down: single(m+"down_proj", C, c.FFN, false)}
}

// mergerSpec is what makes features of the patches of a token: W2·a(W1·norm(x)), or W2·norm(x) without fc1. With join
// the token is join·norm(x) first, and with proj, too, GELU(middle(proj·join·norm(x))). In towers whose tokens are
// means of patches x is the mean.
type mergerSpec struct {
	norm       normSpec // of a patch or, as wide as the next map's input, of a token
	join, proj linearSpec
	middle     normSpec
	fc1, fc2   linearSpec
	activation string
}

// merger returns the merger of deep features k, or the last one for -1.
func (c Config) merger(k int) mergerSpec {
	wide := c.Width * c.unit()
	x := mergerSpec{activation: GELU}
	switch c.Kind {
	case GLM4V:
		x.norm, x.activation = c.norm("post_layernorm"), SiLU
		x.join = single("downsample", c.Out, wide, true)
		x.join.shape, x.join.turned = []int{c.Width, c.Merge, c.Merge}, true
		x.proj = single("merger.proj", c.Out, c.Out, false)
		x.middle = normSpec{name: "merger.post_projection_norm", width: c.Out, layer: true, eps: laterEps}
		x.fc1 = linearSpec{names: []string{"merger.gate_proj", "merger.up_proj"}, rows: []int{c.Inner, c.Inner},
			in: c.Out}
		x.fc2 = single("merger.down_proj", c.Out, c.Inner, false)
	case InternVL:
		const p = "multi_modal_projector."
		x.norm = normSpec{name: p + "layer_norm", width: wide, layer: true, eps: laterEps}
		x.fc1, x.fc2 = single(p+"linear_1", c.Out, wide, true), single(p+"linear_2", c.Out, c.Out, true)
	case Idefics3:
		x.norm = c.norm("vision_model.post_layernorm")
		x.fc2 = single("connector.modality_projection.proj", c.Out, wide, false)
	case Pixtral:
		const p = "multi_modal_projector."
		x.norm = c.norm(p + "norm")
		x.norm.eps = c.MergerEps
		x.join = single(p+"patch_merger.merging_layer", c.Width, wide, false)
		x.join.turned = true
		x.fc1, x.fc2 = single(p+"linear_1", c.Out, c.Width, false), single(p+"linear_2", c.Out, c.Out, false)
	case Gemma3:
		const p = "multi_modal_projector.mm_"
		x.norm = c.norm(p + "soft_emb_norm")
		x.norm.layer, x.norm.plus = false, true
		x.fc2 = single(p+"input_projection_weight", c.Out, c.Width, false)
		x.fc2.across = true
	default:
		names, width := [3]string{"merger.ln_q", "merger.mlp.0", "merger.mlp.2"}, c.Width
		if c.Kind == Qwen3VL {
			p := "merger."
			if k >= 0 {
				p, width = fmt.Sprintf("deepstack_merger_list.%d.", k), wide
			}
			names = [3]string{p + "norm", p + "linear_fc1", p + "linear_fc2"}
		}
		x.norm = c.norm(names[0])
		x.norm.width = width
		x.fc1, x.fc2 = single(names[1], wide, wide, true), single(names[2], c.Out, wide, true)
	}
	for _, m := range []*linearSpec{&x.join, &x.proj, &x.fc1, &x.fc2} {
		m.scope = tokenwise
	}
	return x
}

// mergers returns all of them, the last one first.
func (c Config) mergers() (list []mergerSpec) {
	for k := -1; k < len(c.Deep); k++ {
		list = append(list, c.merger(k))
	}
	return list
}

// patches returns the map from pixels.
func (c Config) patches() linearSpec {
	x := single("patch_embed.proj", c.Width, c.pixels(), c.Kind == Qwen3VL || c.Kind == GLM4V)
	x.shape, x.scope = []int{c.Channels, c.Frames, c.Patch, c.Patch}, patchwise
	name := map[Kind]string{InternVL: "vision_tower.embeddings.patch_embeddings.projection",
		Idefics3: "vision_model.embeddings.patch_embedding", Pixtral: "vision_tower.patch_conv",
		Gemma3: "vision_tower.embeddings.patch_embedding"}[c.Kind]
	if name != "" {
		x.names, x.bias, x.shape = []string{name}, c.Kind != Pixtral, []int{c.Channels, c.Patch, c.Patch}
	}
	return x
}

// first returns the norm between the map from pixels and learned positions.
func (c Config) first() (x normSpec) {
	switch c.Kind {
	case GLM4V:
		return c.norm("post_conv_layernorm")
	case Pixtral:
		return c.norm("vision_tower.ln_pre")
	}
	return x
}

// last returns the norm between blocks and mergers.
func (c Config) last() (x normSpec) {
	if c.Last {
		x = c.norm("vision_tower.layernorm")
		x.layer = true
	}
	if c.Kind == Gemma3 {
		x = c.norm("vision_tower.post_layernorm")
	}
	return x
}

// maps returns all linear maps.
func (c Config) maps() (list []linearSpec) {
	list = append(list, c.patches())
	for l := range c.Layers {
		x := c.block(l)
		list = append(list, x.qkv, x.proj, x.up, x.down)
	}
	for _, m := range c.mergers() {
		for _, x := range []linearSpec{m.join, m.proj, m.fc1, m.fc2} {
			if x.names != nil {
				list = append(list, x)
			}
		}
	}
	return list
}

// norms returns all norms.
func (c Config) norms() (list []normSpec) {
	add := func(all ...normSpec) {
		for _, x := range all {
			if x.width > 0 {
				list = append(list, x)
			}
		}
	}
	add(c.first())
	for l := range c.Layers {
		x := c.block(l)
		add(x.norm1, x.norm2, x.queries, x.keys)
	}
	add(c.last())
	for _, m := range c.mergers() {
		add(m.norm, m.middle)
	}
	return list
}

// factors returns the names of all factors of channels, [C].
func (c Config) factors() (list []string) {
	for l := range c.Layers {
		if x := c.block(l); x.scale1 != "" {
			list = append(list, x.scale1, x.scale2)
		}
	}
	return list
}

// onHost returns the tensors that stay in the host's memory, as float64: learned positions of Side² patches, where
// tiles have a class behind its position, and the class.
func (c Config) onHost() []Tensor {
	n := c.Side * c.Side
	switch {
	case c.Side == 0:
		return nil
	case c.Kind == InternVL:
		return []Tensor{{"vision_tower.embeddings.position_embeddings", []int{1, 1 + n, c.Width}},
			{"vision_tower.embeddings.cls_token", []int{1, 1, c.Width}}}
	case c.Kind == GLM4V:
		return []Tensor{{"embeddings.position_embedding.weight", []int{n, c.Width}}}
	case c.Kind == Gemma3:
		return []Tensor{{"vision_tower.embeddings.position_embedding.weight", []int{n, c.Width}}}
	case c.Kind == Idefics3:
		return []Tensor{{"vision_model.embeddings.position_embedding.weight", []int{n, c.Width}}}
	}
	return []Tensor{{"pos_embed.weight", []int{n, c.Width}}}
}
