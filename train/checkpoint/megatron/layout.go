package megatron

import (
	"fmt"
	"strings"
)

// Tensor is a tensor of one rank.
type Tensor struct {
	Name  string // with Transformer Engine's names of norms, and sequential experts
	Shape []int  // [rows] or [rows, columns]
	// Blocks tile the tensor from its first row to its last; each spans all columns.
	Blocks []Block
}

// Block is a rectangle of a rank's tensor and the equal rectangle of a Hugging Face tensor.
// A vector is one column.
type Block struct {
	Name       string // of the Hugging Face tensor
	Row, Col   int    // where it begins there
	At         int    // its first row in the rank's tensor
	Rows, Cols int
	Pad        bool // padding: all rows are copies of row Row
}

const (
	embedding = "model.embed_tokens.weight"
	lmHead    = "lm_head.weight"
	finalNorm = "model.norm.weight"
)

// Chunk lists the tensors of a chunk on a rank, in the order of Megatron's modules.
func (l *Layout) Chunk(r Rank, chunk int) []Tensor {
	c := &chunkOf{Layout: l, Rank: r}
	first, last := r.PP == 0 && chunk == 0, r.PP == l.Grid.PP-1 && chunk == l.Grid.VP-1
	if first {
		c.vocab("embedding.word_embeddings.weight", embedding)
	}
	layer, n := l.layers(r.PP, chunk)
	for i := range n {
		c.layer(layer+i, fmt.Sprintf("decoder.layers.%d.", i))
	}
	if last {
		c.whole("decoder.final_layernorm.weight", finalNorm, l.Config.Width)
		switch {
		case !l.Config.TieEmbeddings:
			c.vocab(outputLayer, lmHead)
		case !first: // a stage's own copy of the embedding
			c.vocab(outputLayer, embedding)
		}
	}
	return c.tensors
}

// outputLayer is Megatron's name of the output projection.
const outputLayer = "output_layer.weight"

// chunkOf collects the tensors of a chunk.
type chunkOf struct {
	*Layout
	Rank
	tensors []Tensor
}

// rows is a run of rows of a Hugging Face tensor.
type rows struct {
	name  string
	at, n int
}

// layer adds a layer: number in the model, and where its names begin in the chunk.
func (c *chunkOf) layer(number int, to string) {
	from := fmt.Sprintf("model.layers.%d.", number)
	m := c.Config
	c.whole(to+"self_attention.linear_qkv.layer_norm_weight", from+"input_layernorm.weight", m.Width)
	c.byRows(to+"self_attention.linear_qkv.weight", m.Width, c.qkv(from, "weight"))
	if m.QKVBias {
		c.byRows(to+"self_attention.linear_qkv.bias", 0, c.qkv(from, "bias"))
	}
	if m.QKNorm {
		c.whole(to+"self_attention.q_layernorm.weight", from+"self_attn.q_norm.weight", m.Head)
		c.whole(to+"self_attention.k_layernorm.weight", from+"self_attn.k_norm.weight", m.Head)
	}
	c.byColumns(to+"self_attention.linear_proj.weight", from+"self_attn.o_proj.weight", m.Width, m.Heads*m.Head)
	if m.OutBias {
		c.whole(to+"self_attention.linear_proj.bias", from+"self_attn.o_proj.bias", m.Width)
	}
	mlp, _, _, _ := m.FeedForwardNames(from)
	if m.Sparse != nil && m.Sparse[number] {
		c.whole(to+"pre_mlp_layernorm.weight", from+"post_attention_layernorm.weight", m.Width)
		c.experts(to+"mlp.", mlp)
		return
	}
	c.whole(to+"mlp.linear_fc1.layer_norm_weight", from+"post_attention_layernorm.weight", m.Width)
	c.feedForward(to+"mlp.", mlp, m.FFN, m.FFNBias)
}

// qkv returns the rows of the fused projection of queries, keys and values: per group of
// query heads that share a key head, its queries, keys and values.
func (c *chunkOf) qkv(from, kind string) []rows {
	m := c.Config
	q, k, v := rows{name: "q_proj."}, rows{name: "k_proj."}, rows{name: "v_proj."}
	if m.Fused { // one tensor: all queries, then all keys, then all values
		fused := "qkv_proj."
		q, k, v = rows{name: fused}, rows{name: fused, at: m.Heads * m.Head},
			rows{name: fused, at: (m.Heads + m.KVHeads) * m.Head}
	}
	var list []rows
	for g := range m.KVHeads {
		for _, part := range []struct {
			rows
			n int
		}{{q, m.Heads / m.KVHeads * m.Head}, {k, m.Head}, {v, m.Head}} {
			list = append(list, rows{from + "self_attn." + part.name + kind, part.at + g*part.n, part.n})
		}
	}
	return list
}

// feedForward adds a gated block of width channels.
func (c *chunkOf) feedForward(to, from string, width int, bias bool) {
	_, first, second, last := c.Config.FeedForwardNames("")
	gate, up := rows{from + first + ".", 0, width}, rows{from + second + ".", 0, width}
	if c.Config.Fused {
		fused := from + "gate_up_proj."
		gate, up = rows{fused, 0, width}, rows{fused, width, width}
	}
	fc1 := func(kind string, columns int) {
		gate, up := gate, up
		gate.name, up.name = gate.name+kind, up.name+kind
		share := append(c.share([]rows{gate}), c.share([]rows{up})...)
		c.add(to+"linear_fc1."+kind, columns, share)
	}
	fc1("weight", c.Config.Width)
	if bias {
		fc1("bias", 0)
	}
	c.byColumns(to+"linear_fc2.weight", from+last+".weight", c.Config.Width, width)
	if bias {
		c.whole(to+"linear_fc2.bias", from+last+".bias", c.Config.Width)
	}
}

// experts adds the feed-forward part of a sparse layer.
func (c *chunkOf) experts(to, from string) {
	m := c.Config
	c.byReplica(to+"router.weight", from+"gate.weight", m.Experts.Count, m.Width)
	n := m.Experts.Count / c.Grid.EP
	for k := range n {
		c.feedForward(fmt.Sprintf("%sexperts.local_experts.%d.", to, k),
			fmt.Sprintf("%sexperts.%d.", from, c.EP*n+k), m.Experts.FFN, false)
	}
	if m.Experts.Shared > 0 {
		c.byReplica(to+"shared_experts.gate_weight", from+"shared_expert_gate.weight", 1, m.Width)
		c.feedForward(to+"shared_experts.", from+"shared_expert.", m.Experts.Shared, false)
	}
}

// vocab adds a matrix with a row per token of the vocabulary.
func (c *chunkOf) vocab(name, from string) {
	n := c.Padded / c.Grid.TP
	first, vocab := c.TP*n, c.Config.Vocab
	t := Tensor{Name: name, Shape: []int{n, c.Config.Width}}
	block := Block{Name: from, Row: first, Rows: min(n, max(vocab-first, 0)), Cols: c.Config.Width}
	if block.Rows > 0 {
		t.Blocks = append(t.Blocks, block)
	}
	if block.Rows < n {
		t.Blocks = append(t.Blocks, Block{Name: from, Row: vocab - 1, At: block.Rows, Rows: n - block.Rows,
			Cols: c.Config.Width, Pad: true})
	}
	c.tensors = append(c.tensors, t)
}

// whole adds a vector of n elements that every rank has.
func (c *chunkOf) whole(name, from string, n int) { c.add(name, 0, []rows{{from, 0, n}}) }

// byReplica adds a matrix that every rank has.
func (c *chunkOf) byReplica(name, from string, n, columns int) {
	c.add(name, columns, []rows{{from, 0, n}})
}

// byRows adds this rank's share of the rows in a list; columns is 0 for a vector.
func (c *chunkOf) byRows(name string, columns int, list []rows) { c.add(name, columns, c.share(list)) }

// byColumns adds this rank's share of the columns of a matrix of n rows.
func (c *chunkOf) byColumns(name, from string, n, columns int) {
	share := columns / c.Grid.TP
	c.tensors = append(c.tensors, Tensor{Name: name, Shape: []int{n, share},
		Blocks: []Block{{Name: from, Col: c.TP * share, Rows: n, Cols: share}}})
}

// add adds a tensor of the rows in a list; columns is 0 for a vector.
func (c *chunkOf) add(name string, columns int, list []rows) {
	t := Tensor{Name: name}
	at := 0
	for _, r := range list {
		t.Blocks = append(t.Blocks, Block{Name: r.name, Row: r.at, At: at, Rows: r.n, Cols: max(columns, 1)})
		at += r.n
	}
	t.Shape = []int{at, columns}
	if columns == 0 {
		t.Shape = t.Shape[:1]
	}
	c.tensors = append(c.tensors, t)
}

// share returns this rank's equal share of the rows in a list.
func (c *chunkOf) share(list []rows) []rows {
	total := 0
	for _, r := range list {
		total += r.n
	}
	n := total / c.Grid.TP
	return cut(list, c.TP*n, (c.TP+1)*n)
}

// cut returns rows [lo, hi) of a list.
func cut(list []rows, lo, hi int) []rows {
	var out []rows
	at := 0
	for _, r := range list {
		from, to := max(lo, at), min(hi, at+r.n)
		if from < to {
			out = append(out, rows{r.name, r.at + from - at, to - from})
		}
		at += r.n
	}
	return out
}

// Canonical returns one name for the names that versions and specs of Megatron give a
// tensor: norms of Transformer Engine or local ones, sequential or grouped experts, with or
// without the prefix of a wrapping module.
func Canonical(name string) string {
	for _, prefix := range []string{"module.", "model."} {
		name = strings.TrimPrefix(name, prefix)
	}
	layer, rest, ok := cutLayer(name)
	if !ok {
		return name
	}
	switch rest {
	case "input_layernorm.weight":
		rest = "self_attention.linear_qkv.layer_norm_weight"
	case "mlp.linear_fc1.layer_norm_weight":
		rest = "pre_mlp_layernorm.weight"
	}
	for _, fc := range []string{"linear_fc1", "linear_fc2"} {
		if expert, ok := strings.CutPrefix(rest, "mlp.experts."+fc+".weight"); ok && expert != "" {
			rest = "mlp.experts.local_experts." + expert + "." + fc + ".weight"
		}
	}
	return layer + rest
}

// layersPrefix begins the names of layers.
const layersPrefix = "decoder.layers."

// cutLayer cuts "decoder.layers.N." off a name.
func cutLayer(name string) (layer, rest string, ok bool) {
	const prefix = layersPrefix
	if !strings.HasPrefix(name, prefix) {
		return "", "", false
	}
	digits, rest, ok := strings.Cut(name[len(prefix):], ".")
	return prefix + digits + ".", rest, ok
}
