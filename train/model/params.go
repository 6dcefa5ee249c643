package model

import (
	"fmt"
	"slices"
	"strings"

	"exp/kernels"
)

// Tensor is a named view of the arena.
type Tensor struct {
	Name  string // Hugging Face name
	Shape []int
	off   int  // first element in the arena
	table bool // TowerTensor.Table
}

// Offset returns the tensor's first element in the arena.
func (t Tensor) Offset() int { return t.off }

// Len returns the number of elements.
func (t Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Auxiliary reports whether the tensor belongs to a head that a plain language model does
// not have. Merging writes such tensors to separate files.
func (t Tensor) Auxiliary() bool { return t.prefix() != "" }

// AdapterB reports whether the tensor is the B of an adapter, which starts at 0.
func (t Tensor) AdapterB() bool { return strings.HasSuffix(t.Name, ".lora_B.weight") }

// prefix returns the auxiliary head that the tensor belongs to: "proj_z", "score", or "".
func (t Tensor) prefix() string {
	for _, p := range []string{"proj_z", "score"} {
		if len(t.Name) > len(p) && t.Name[:len(p)] == p && t.Name[len(p)] == '.' {
			return p
		}
	}
	return ""
}

// linearSpec is a linear map of the backbone: tensors of one input width whose rows are
// contiguous and multiplied together. The zero value is no map.
type linearSpec struct {
	names []string // of the tensors, without ".weight"
	rows  []int    // of each tensor
	in    int
}

// out returns the total number of rows.
func (s linearSpec) out() (n int) {
	for _, r := range s.rows {
		n += r
	}
	return n
}

// weights returns the names of the first and the last tensor.
func (s linearSpec) weights() (first, last string) {
	return s.names[0] + ".weight", s.names[len(s.names)-1] + ".weight"
}

// vector reports whether the tensor is none of a linear map's weights: a norm, a bias, or what linear
// attention has besides its maps.
func (t Tensor) vector() bool { return len(t.Shape) != 2 || t.Constant() }

// Hidden reports whether the tensor is a matrix that maps activations to activations: neither a table of
// tokens or positions, nor the output head or an auxiliary one, nor a vector, a filter of pixels or a constant.
func (t Tensor) Hidden() bool {
	tables := []string{embedName, outputName, layerTable, positionTable}
	return !t.vector() && !t.Auxiliary() && !t.table && !slices.Contains(tables, t.Name)
}

// layerLinears are the linear maps of a layer; qkv and o are the first and the last of its attention, linear
// or not. gateUp and down belong to a dense layer, the
// others to a sparse one; a layer of Nemotron-H lacks either kind: expert i at experts[2i]
// and experts[2i+1], the shared one last.
type layerLinears struct {
	qkv, o, gateUp, down linearSpec
	// Between qkv and o, of latent attention or of gates; or of a layer's embeddings; or of Mamba-2 beside attention.
	inner   []linearSpec
	router  linearSpec
	experts []linearSpec
}

// linears returns the linear maps of layer l under their Hugging Face names.
func (c Config) linears(l int) layerLinears {
	shares := c.shares(l)
	c = c.at(l)
	p := fmt.Sprintf("model.layers.%d.", l)
	attn, _, dense := c.Names.parts(p)
	fused, out := c.attentionMaps()
	kv := c.KVHeads * c.Head
	x := layerLinears{
		qkv: linearSpec{[]string{attn + "q_proj", attn + "k_proj", attn + "v_proj"},
			[]int{c.Heads * c.Head, kv, kv}, c.Width},
		o: linearSpec{[]string{attn + out}, []int{c.Width}, c.Heads * c.Head},
	}
	x.inner = c.perLayerLinears(p)
	switch {
	case !c.mixes(l):
		x.qkv, x.o = linearSpec{}, linearSpec{}
	case shares:
		x.qkv.names, x.qkv.rows = x.qkv.names[:1], x.qkv.rows[:1]
	case c.Parallel:
		in, out := c.deltaLinears(p)
		x.inner = []linearSpec{in, out}
	case c.linear(l):
		x.qkv, x.o = c.deltaLinears(p)
	case c.latent():
		x.qkv, x.inner, x.o = c.latentLinears(attn)
	case c.OutputGate:
		x.qkv.rows[0] *= 2
	case c.Fused:
		x.qkv = linearSpec{[]string{attn + fused}, []int{c.QKV()}, c.Width}
	case c.keyValues():
		x.qkv.names, x.qkv.rows = x.qkv.names[:2], x.qkv.rows[:2]
	case c.GateMap:
		x.inner = []linearSpec{c.gateMap(l)}
	}
	if c.dense(l) {
		if c.Names == LlamaNames {
			dense, _, _, _ = c.FeedForwardNames(p)
		}
		x.gateUp, x.down = c.feedForward(dense, c.FFN)
	}
	if !c.feeds(l) || !c.sparse(l) {
		return x
	}
	mlp, router, shared, _ := c.sparseNames(p)
	x.router = linearSpec{[]string{router}, []int{c.Experts.Count}, c.Width}
	add := func(prefix string, width int) {
		gateUp, down := c.feedForward(prefix, width)
		x.experts = append(x.experts, gateUp, down)
	}
	for e := range c.Experts.Count {
		add(fmt.Sprintf("%sexperts.%d.", mlp, e), c.Experts.FFN)
	}
	switch {
	case c.Experts.Shared > 0 && c.Experts.Ungated:
		add(shared, c.Experts.Shared)
	case c.Experts.Shared > 0:
		x.router.names, x.router.rows = append(x.router.names, mlp+"shared_expert_gate"), append(x.router.rows, 1)
		add(mlp+"shared_expert.", c.Experts.Shared)
	}
	return x
}

// FeedForwardNames returns how the names of a layer's feed-forward part begin, where the layer's own
// do, and the last parts of a gated block's: gate, up and down.
func (c Config) FeedForwardNames(layer string) (begin, gate, up, down string) {
	switch {
	case c.Names == LFMNames:
		return layer + "feed_forward.", "w1", "w3", "w2"
	case c.Experts.Mixtral:
		return layer + "block_sparse_moe.", "w1", "w3", "w2"
	}
	return layer + "mlp.", "gate_proj", "up_proj", "down_proj"
}

// feedForward returns the linear maps of a block of the given width.
func (c Config) feedForward(prefix string, width int) (gateUp, down linearSpec) {
	gate, up, out := c.feedForwardMaps()
	gateUp = linearSpec{[]string{prefix + gate, prefix + up}, []int{width, width}, c.Width}
	if up == "" {
		gateUp = linearSpec{[]string{prefix + gate}, []int{c.Gate.Factors() * width}, c.Width}
	}
	return gateUp, linearSpec{[]string{prefix + out}, []int{c.Width}, width}
}

// norms returns the names of a layer's norms before and after its two blocks, "" for those that
// the family lacks.
func (c Config) norms(l int) (before1, after1, before2, after2 string) {
	p := fmt.Sprintf("model.layers.%d.", l)
	switch {
	case c.bareNorms(), c.Norm == PlainLayerNorm:
		return "", "", "", ""
	case c.Branches == OneNorm:
		return p + "input_layernorm.weight", "", "", ""
	case c.Names == NemotronNames:
		return p + "norm.weight", "", "", ""
	case c.Names == BambaNames:
		return p + "input_layernorm.weight", "", p + "pre_ff_layernorm.weight", ""
	case c.Names == LFMNames:
		return p + "operator_norm.weight", "", p + "ffn_norm.weight", ""
	case c.Names == OlmoHybridNames && c.linear(l):
		return p + "attention_layer_norm.weight", "", p + "feedforward_layer_norm.weight", ""
	case c.Names == ApertusNames:
		return p + "attention_layernorm.weight", "", p + "feedforward_layernorm.weight", ""
	case c.NoPreNorms:
		return "", p + "post_attention_layernorm.weight", "", p + "post_feedforward_layernorm.weight"
	case c.Names == AfmoeNames && c.PostNorms:
		return p + "input_layernorm.weight", p + "post_attention_layernorm.weight",
			p + "pre_mlp_layernorm.weight", p + "post_mlp_layernorm.weight"
	case c.Names == HyperNames:
		return p + "input_layernorm.weight", p + "post_norm1.weight",
			p + "post_attention_layernorm.weight", p + "post_norm2.weight"
	case c.Names == VaultNames:
		return p + "input_layernorm.weight", "", p + "pre_feedforward_layernorm.weight", ""
	case c.GLMNorms:
		return p + "input_layernorm.weight", p + "post_self_attn_layernorm.weight",
			p + "post_attention_layernorm.weight", p + "post_mlp_layernorm.weight"
	case c.PostNorms:
		return p + "input_layernorm.weight", p + "post_attention_layernorm.weight",
			p + "pre_feedforward_layernorm.weight", p + "post_feedforward_layernorm.weight"
	}
	return p + "input_layernorm.weight", "", p + "post_attention_layernorm.weight", ""
}

// headNorms returns the names of a layer's norms of queries and of keys, "" if they have no weights.
func (c Config) headNorms(l int) (query, key string) {
	attn := fmt.Sprintf("model.layers.%d.self_attn.", l)
	switch {
	case c.bareNorms():
		return "", ""
	case c.LateQKNorm:
		return attn + "query_layernorm.weight", attn + "key_layernorm.weight"
	case c.Names == LFMNames:
		return attn + "q_layernorm.weight", attn + "k_layernorm.weight"
	}
	return attn + "q_norm.weight", attn + "k_norm.weight"
}

const (
	embedName  = "model.embed_tokens.weight"
	finalNorm  = "model.norm.weight"
	outputName = "lm_head.weight"
)

// layout collects the tensors of an arena.
type layout struct {
	tensors []Tensor
	n       int
}

func (x *layout) add(name string, shape ...int) {
	t := Tensor{Name: name, Shape: shape, off: x.n}
	x.tensors = append(x.tensors, t)
	x.n += t.Len()
}

// group aligns the next tensors, which are used together, to a whole vector.
func (x *layout) group() { x.n = (x.n + kernels.Lanes - 1) / kernels.Lanes * kernels.Lanes }

// one adds a tensor that is used alone.
func (x *layout) one(name string, shape ...int) {
	x.group()
	x.add(name, shape...)
}

// linear adds a linear map, and biases on the rows of its tensors.
func (x *layout) linear(s linearSpec, bias bool) {
	x.group()
	for i, name := range s.names {
		x.add(name+".weight", s.rows[i], s.in)
	}
	if bias {
		x.group()
		for i, name := range s.names {
			x.add(name+".bias", s.rows[i])
		}
	}
}

// Layout returns the tensors of a model in arena order and the arena's length in elements.
// Tensors that are multiplied together (q, k, v and their biases; gate and up) are
// contiguous; tensors used alone start on a whole vector.
func Layout(c Config, h Heads) (tensors []Tensor, n int) {
	x := &layout{}
	x.one(embedName, c.Vocab, c.Width)
	x.tables(c)
	x.positions(c)
	for l := range c.Layers {
		x.layer(c, l)
	}
	x.norm(c, c.finalNorm())
	if h.LM && !c.TieEmbeddings {
		x.one(outputName, c.Vocab, c.OutputWidth())
	}
	x.tower(c)
	x.heads(c, h)
	x.group()
	return x.tensors, x.n
}

func (x *layout) layer(c Config, l int) {
	s := c.linears(l)
	before1, after1, before2, after2 := c.norms(l)
	norm := func(name string) { x.norm(c, name) }
	norm(before1)
	switch {
	case !c.mixes(l):
	case c.Parallel:
		x.delta(c, l, s.inner[0], s.inner[1])
		x.attention(c, l, s)
	case c.linear(l):
		x.delta(c, l, s.qkv, s.o)
	case c.latent():
		x.latent(c, l, s)
	default:
		x.attention(c, l, s)
	}
	norm(after1)
	norm(before2)
	if c.dense(l) {
		x.linear(s.gateUp, c.FFNBias)
		x.linear(s.down, c.FFNBias)
		x.xielu(c, l)
	}
	switch {
	case !c.feeds(l):
	case c.beside(l):
		x.beside(c, l, s)
	case c.sparse(l):
		x.linear(s.router, c.Experts.Bias)
		if c.Experts.Corrected {
			x.one(c.correction(l), c.Experts.correctionShape()...)
		}
		for _, e := range s.experts {
			x.linear(e, c.Experts.Bias)
		}
	}
	norm(after2)
	x.perLayer(c, l, s)
	if c.LayerScales {
		x.one(layerScalar(l), 1)
	}
}

// attention adds the attention of layer l.
func (x *layout) attention(c Config, l int, s layerLinears) {
	shares := c.shares(l)
	c = c.at(l)
	x.linear(s.qkv, c.QKVBias)
	if c.QKNorm && !c.bareNorms() {
		query, key := c.headNorms(l)
		x.one(query, c.queryNorm().Dim)
		if !shares {
			x.one(key, c.keyNorm().Dim)
		}
	}
	if c.HeadLayerNorm {
		query, key := c.headNorms(l)
		x.one(query, c.Heads*c.Head)
		x.one(key, c.KVHeads*c.Head)
	}
	if c.Sinks {
		x.one(sinksName(l), c.Heads)
	}
	if c.GateMap {
		x.linear(c.gateMap(l), false)
	}
	x.linear(s.o, c.OutBias)
}

// correction returns the name of the bias that chooses experts in layer l, and that no gradient changes.
func (c Config) correction(l int) string {
	_, _, _, name := c.sparseNames(fmt.Sprintf("model.layers.%d.", l))
	return name
}

// sinksName returns the name of the scores of layer l's sinks.
func sinksName(l int) string { return fmt.Sprintf("model.layers.%d.self_attn.sinks", l) }

// heads adds the auxiliary heads.
func (x *layout) heads(c Config, h Heads) {
	if h.Hidden {
		x.one(hiddenWeight, c.Width, c.Width)
		x.one(hiddenBias, c.Width)
	}
	if h.Value || h.Score {
		x.one("score.weight", 1, c.Width)
	}
	if h.Value {
		x.one("score.bias", 1)
	}
	if h.LogZ == nil {
		return
	}
	last := h.LogZ.Layers - 1
	for i := range last {
		// Places in the published module list: Linear, GELU, LayerNorm, Dropout.
		x.one(fmt.Sprintf("proj_z.net.%d.weight", 4*i), c.Width, c.Width)
		x.one(fmt.Sprintf("proj_z.net.%d.bias", 4*i), c.Width)
		x.one(fmt.Sprintf("proj_z.net.%d.weight", 4*i+2), c.Width)
		x.one(fmt.Sprintf("proj_z.net.%d.bias", 4*i+2), c.Width)
	}
	x.one(fmt.Sprintf("proj_z.net.%d.weight", 4*last), 1, c.Width)
	x.one(fmt.Sprintf("proj_z.net.%d.bias", 4*last), 1)
}
