package vision

import "fmt"

// Names of tensors.
const (
	patchMap      = "patch_embed.proj"
	positionTable = "pos_embed.weight"
)

// linearSpec is a linear map: tensors of one input width whose rows are multiplied together.
type linearSpec struct {
	names  []string // without ".weight"
	rows   []int    // of each
	in     int
	bias   bool
	merged bool // its rows are tokens, not patches
}

// out returns the number of rows.
func (s linearSpec) out() (n int) {
	for _, r := range s.rows {
		n += r
	}
	return n
}

// normSpec is a norm.
type normSpec struct {
	name  string // without ".weight"
	width int
}

// layerNorms reports whether norms are LayerNorms, with biases, not RMSNorms.
func (c Config) layerNorms() bool { return c.Kind != Qwen25VL }

// blockSpec is the maps and norms of a block.
type blockSpec struct {
	norm1, norm2        normSpec
	qkv, proj, up, down linearSpec
}

// block returns the specifications of layer l.
func (c Config) block(l int) blockSpec {
	p := fmt.Sprintf("blocks.%d.", l)
	x := blockSpec{norm1: normSpec{p + "norm1", c.Width}, norm2: normSpec{p + "norm2", c.Width},
		qkv:  linearSpec{names: []string{p + "attn.qkv"}, rows: []int{3 * c.Width}, in: c.Width, bias: true},
		proj: linearSpec{names: []string{p + "attn.proj"}, rows: []int{c.Width}, in: c.Width, bias: true},
		up:   linearSpec{rows: []int{c.FFN}, in: c.Width, bias: true},
		down: linearSpec{rows: []int{c.Width}, in: c.FFN, bias: true}}
	switch c.Kind {
	case Qwen25VL:
		x.up.names, x.up.rows = []string{p + "mlp.gate_proj", p + "mlp.up_proj"}, []int{c.FFN, c.FFN}
		x.down.names = []string{p + "mlp.down_proj"}
	case Qwen3VL:
		x.up.names, x.down.names = []string{p + "mlp.linear_fc1"}, []string{p + "mlp.linear_fc2"}
	default:
		x.up.names, x.down.names = []string{p + "mlp.fc1"}, []string{p + "mlp.fc2"}
	}
	return x
}

// mergerSpec is what makes features of the patches of a token.
type mergerSpec struct {
	norm     normSpec // of a patch or, as wide as fc1's input, of a token
	fc1, fc2 linearSpec
}

// merger returns the one of deep features k, or the last one for -1.
func (c Config) merger(k int) mergerSpec {
	wide := c.Width * c.unit()
	names, norm := [3]string{"merger.ln_q", "merger.mlp.0", "merger.mlp.2"}, c.Width
	if c.Kind == Qwen3VL {
		p := "merger."
		if k >= 0 {
			p, norm = fmt.Sprintf("deepstack_merger_list.%d.", k), wide
		}
		names = [3]string{p + "norm", p + "linear_fc1", p + "linear_fc2"}
	}
	return mergerSpec{norm: normSpec{names[0], norm},
		fc1: linearSpec{names: names[1:2], rows: []int{wide}, in: wide, bias: true, merged: true},
		fc2: linearSpec{names: names[2:], rows: []int{c.Out}, in: wide, bias: true, merged: true}}
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
	return linearSpec{names: []string{patchMap}, rows: []int{c.Width}, in: c.pixels(), bias: c.Kind == Qwen3VL}
}

// maps returns all linear maps.
func (c Config) maps() (list []linearSpec) {
	list = append(list, c.patches())
	for l := range c.Layers {
		x := c.block(l)
		list = append(list, x.qkv, x.proj, x.up, x.down)
	}
	for _, m := range c.mergers() {
		list = append(list, m.fc1, m.fc2)
	}
	return list
}

// norms returns all norms.
func (c Config) norms() (list []normSpec) {
	for l := range c.Layers {
		x := c.block(l)
		list = append(list, x.norm1, x.norm2)
	}
	for _, m := range c.mergers() {
		list = append(list, m.norm)
	}
	return list
}
