package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"exp/train/checkpoint/extent"
	"exp/train/model"
)

// This file has the tensors of families whose folders have other names for them, other orders of their elements or
// other shapes. GPT-NeoX's query_key_value has the rows of the first head's queries, keys and values, then the second
// head's; here all queries come first. GPT-2's weights of linear maps are transposed, [In,Out].
// In Apertus constants have no dimension, and in Command R+ norms of queries and keys have two. In Phi the output
// projection's bias is a tensor of its own.

// naming says how a family's published names begin where names here begin otherwise; longer beginnings come first.
type naming struct {
	here, published []string // one for one
	layers          string   // how the names of layers begin
	dropped         []string // ends of names of tensors that hold no weights
	head            int      // channels of a head, if norms of queries and keys are published as [heads,head]
}

// namingFor returns the naming of a configuration's models.
func namingFor(c model.Config) (naming, bool) {
	if c.HeadLayerNorm {
		return naming{layers: layersHere, head: c.Head}, true
	}
	return namingOf(c.Names)
}

func namingOf(n model.LayerNames) (naming, bool) {
	switch n {
	case model.NeoXNames:
		return naming{here: []string{embedding, backbonePrefix + "norm.", lmHead},
			published: []string{"gpt_neox.embed_in.weight", "gpt_neox.final_layer_norm.", "embed_out.weight"},
			layers:    "gpt_neox.layers.",
			dropped:   []string{".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"}}, true
	case model.GPT2Names:
		return naming{here: []string{embedding, backbonePrefix + "embed_positions.", backbonePrefix + "norm."},
			published: []string{"transformer.wte.weight", "transformer.wpe.", "transformer.ln_f."},
			layers:    "transformer.h.", dropped: []string{".attn.bias", ".attn.masked_bias"}}, true
	case model.ApertusNames:
		return naming{layers: layersHere}, true
	case model.PhiNames:
		return naming{here: []string{backbonePrefix + "norm."}, published: []string{phiNorm}, layers: layersHere}, true
	}
	return naming{}, false
}

// gpt2Norms replaces GPT-2's names of a layer's norms by those here.
func gpt2Norms() *strings.Replacer {
	return strings.NewReplacer(".ln_1.", ".input_layernorm.", ".ln_2.", ".post_attention_layernorm.")
}

// phiNorm begins the names of Phi's last norm, and lmHeadBias names the bias of its output projection.
const (
	phiNorm    = backbonePrefix + "final_layernorm."
	lmHeadBias = "lm_head.bias"
)

const layersHere = backbonePrefix + "layers."

// toHere returns the name here of a published tensor, which may lack the first part of its name.
func (n naming) toHere(name string) (string, bool) {
	for _, end := range n.dropped {
		if strings.HasSuffix(name, end) {
			return "", false
		}
	}
	adapter, rest := "", name
	if cut, ok := strings.CutPrefix(name, adapterPrefix); ok {
		adapter, rest = adapterPrefix, cut
	}
	first, _, _ := strings.Cut(n.layers, ".")
	for i, from := range append(n.published, n.layers) {
		to := append(n.here, layersHere)[i]
		for _, begin := range []string{from, strings.TrimPrefix(from, first+".")} {
			if cut, ok := strings.CutPrefix(rest, begin); ok {
				if i == len(n.published) {
					cut = strings.TrimPrefix(gpt2Norms().Replace("."+cut), ".")
				}
				return adapter + to + cut, true
			}
		}
	}
	return name, true
}

// toPublished returns the published name of a tensor.
func (n naming) toPublished(name string) string {
	adapter, rest := "", name
	if cut, ok := strings.CutPrefix(name, adapterPrefix); ok {
		adapter, rest = adapterPrefix, cut
	}
	for i, from := range n.here {
		if cut, ok := strings.CutPrefix(rest, from); ok {
			return adapter + n.published[i] + cut
		}
	}
	if cut, ok := strings.CutPrefix(rest, layersHere); ok {
		if n.layers == "transformer.h." {
			norms := strings.NewReplacer(".input_layernorm.", ".ln_1.", ".post_attention_layernorm.", ".ln_2.")
			cut = norms.Replace(cut)
		}
		return adapter + n.layers + cut
	}
	return name
}

// order is another order of the elements of a tensor: runs of so many bytes, at the places of loops (extent.Strided).
type order struct {
	run   int64
	loops []extent.Loop
	heads int   // in whose order rows are; 0: in none
	from  int64 // bytes before the first run
}

// extent returns the elements in that order.
func (o order) extent(x extent.Extent) extent.Extent {
	return extent.Strided(x, o.from, o.run, o.loops...)
}

// bytes does so for elements in memory.
func (o order) bytes(b []byte) []byte {
	out, first, second := make([]byte, 0, len(b)), o.loops[0], o.loops[1]
	for i := range first.N {
		for j := range second.N {
			at := o.from + i*first.Stride + j*second.Stride
			out = append(out, b[at:at+o.run]...)
		}
	}
	return out
}

// fusedHeads reports whether rows of a tensor are those of GPT-NeoX's query_key_value.
func fusedHeads(name string) bool {
	return strings.Contains(name, ".query_key_value.") && !strings.HasSuffix(name, ".lora_A.weight")
}

// headNorm reports whether a name belongs to a norm of queries or keys.
func headNorm(name string) bool {
	return strings.HasSuffix(name, ".self_attn.q_norm.weight") || strings.HasSuffix(name, ".self_attn.k_norm.weight")
}

// transposedMap reports whether a name belongs to a weight of GPT-2's linear maps.
func transposedMap(name string) bool {
	for _, end := range []string{".c_attn.weight", ".c_proj.weight", ".c_fc.weight"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// ordered returns the order and the shape that a tensor has published, or here if it is published; same if it is the
// same.
func (n naming) ordered(t Tensor, heads int, published bool) (o order, shape []int, same bool) {
	size := int64(t.DType.bits() / 8)
	switch {
	case n.layers == "transformer.h." && transposedMap(t.Name) && len(t.Shape) == 2:
		rows, columns := int64(t.Shape[0]), int64(t.Shape[1])
		return order{run: size, loops: []extent.Loop{{N: columns, Stride: size}, {N: rows, Stride: columns * size}}},
			[]int{t.Shape[1], t.Shape[0]}, false
	case n.layers == "gpt_neox.layers." && fusedHeads(t.Name) && len(t.Shape) > 0 && heads > 0 && t.Len() > 0 &&
		t.Shape[0]%(3*heads) == 0:
		H, D := int64(heads), int64(t.Shape[0]/(3*heads))
		run := D * int64(t.Len()/t.Shape[0]) * size // the rows of a head's queries, keys or values
		parts := []extent.Loop{{N: H, Stride: run}, {N: 3, Stride: H * run}}
		if published {
			parts = []extent.Loop{{N: 3, Stride: run}, {N: H, Stride: 3 * run}}
		}
		return order{run: run, loops: parts, heads: heads}, t.Shape, false
	case n.layers == layersHere && headNorm(t.Name) && published == (len(t.Shape) == 2) && t.Len() > 0 &&
		(published || n.head > 0):
		if shape = []int{t.Len()}; !published {
			shape = []int{t.Len() / n.head, n.head}
		}
		return order{run: size * int64(t.Len()), loops: []extent.Loop{{N: 1}, {N: 1}}}, shape, false
	case n.layers == layersHere && xieluConstant(t.Name) && t.Len() == 1 && published == (len(t.Shape) == 0):
		if shape = []int{}; published {
			shape = []int{1}
		}
		return order{run: size, loops: []extent.Loop{{N: 1}, {N: 1}}}, shape, false
	}
	return order{}, t.Shape, true
}

// inOrder puts the elements x of a published tensor into the order that they have here.
func (n naming) inOrder(x []float32, t Tensor, heads int) {
	t.DType = F32
	o, _, same := n.ordered(t, heads, true)
	if same {
		return
	}
	old, to, run := slices.Clone(x), 0, int(o.run)/4
	for i := range o.loops[0].N {
		for j := range o.loops[1].N {
			at := int(i*o.loops[0].Stride+j*o.loops[1].Stride) / 4
			to += copy(x[to:to+run], old[at:at+run])
		}
	}
}

// publishedAs returns the family whose published names these are.
func (t *Tensors) publishedAs() (n naming, ok bool) {
	for family, mark := range map[model.LayerNames][]string{
		model.NeoXNames:    {"gpt_neox.embed_in.weight", "embed_in.weight"},
		model.GPT2Names:    {"transformer.wpe.weight", "wpe.weight"},
		model.PhiNames:     {phiNorm + "weight", "final_layernorm.weight"},
		model.ApertusNames: {layersHere + "0.mlp.act_fn.alpha_p", "layers.0.mlp.act_fn.alpha_p"}} {
		for _, name := range mark {
			if _, there := t.where[name]; there {
				return namingOf(family)
			}
		}
	}
	for _, name := range []string{layersHere + "0.self_attn.q_norm.weight", "layers.0.self_attn.q_norm.weight"} {
		if p, there := t.where[name]; there && len(p.Shape) == 2 {
			return naming{layers: layersHere}, true
		}
	}
	return naming{}, false
}

// publishedNames gives tensors of GPT-NeoX and GPT-2 the names and the order that they have here.
func (t *Tensors) publishedNames() error {
	n, ok := t.publishedAs()
	if !ok {
		return nil
	}
	if err := t.rename(n.toHere); err != nil {
		return err
	}
	if slices.Equal(n.published, []string{phiNorm}) {
		if err := t.joinOutputBias(); err != nil {
			return err
		}
	}
	heads := 0
	for name, p := range maps.Clone(t.where) {
		if p.DType.bits()%8 != 0 {
			continue
		}
		if n.layers == "gpt_neox.layers." && fusedHeads(name) && heads == 0 {
			var err error
			if heads, err = t.attentionHeads(name); err != nil {
				return err
			}
		}
		o, shape, same := n.ordered(p.Tensor, heads, true)
		if same {
			continue
		}
		delete(t.where, name)
		if err := t.put(t.path, p.derived(name, shape, o.extent)); err != nil {
			return err
		}
	}
	return nil
}

// joinOutputBias makes the bias of an output projection a column of its weight, and adds columns of zeros
// (model.Config.OutputBias).
func (t *Tensors) joinOutputBias() error {
	weight, ok := t.where[lmHead]
	bias, there := t.where[lmHeadBias]
	if !ok && !there {
		return nil
	}
	if !ok || !there || len(weight.Shape) != 2 || !slices.Equal(bias.Shape, weight.Shape[:1]) ||
		weight.DType != bias.DType || bias.DType.bits()%8 != 0 || weight.Len() == 0 {
		return corrupt(t.path, lmHead, "is %s, and its bias %s: the class has both, of one type", weight.Tensor,
			bias.Tensor)
	}
	delete(t.where, lmHead)
	delete(t.where, lmHeadBias)
	rows, columns, size := weight.Shape[0], weight.Shape[1], int64(bias.DType.bits()/8)
	pad := (model.Config{OutputBias: true}).OutputWidth()
	zeros := extent.Zeros(int64(rows) * int64(pad-1) * size)
	return t.put(t.path, weight.derived(lmHead, []int{rows, columns + pad}, func(e extent.Extent) extent.Extent {
		return extent.Interleave(rows, e, bias.data, zeros)
	}))
}

// attentionHeads returns the number of heads in the model's config.json, in whose order the named tensor's rows are.
func (t *Tensors) attentionHeads(name string) (heads int, err error) {
	if heads := t.notedHeads(); heads > 0 {
		return heads, nil
	}
	if r, err := t.settingsNearby(); err == nil {
		r.maybe(headsKey, &heads)
	}
	if heads < 1 || heads > maxHeads {
		return 0, &Error{Op: "read", Path: t.path, Tensor: name,
			Err:  fmt.Errorf("its rows are in the order of heads, and no config.json says how many there are"),
			Hint: "put the model's config.json, with num_attention_heads, next to its weights"}
	}
	return heads, nil
}

// settingsNearby returns the settings of the config.json of the model that the tensors belong to.
func (t *Tensors) settingsNearby() (*settings, error) {
	dir := TextsFolder(t.path)
	raw, err := readSmall(filepath.Join(dir, configFile), maxConfig)
	if err != nil { // the weights may be one file in the folder
		raw, err = readSmall(filepath.Join(filepath.Dir(dir), configFile), maxConfig)
	}
	r := &settings{}
	if err == nil {
		err = json.Unmarshal(raw, &r.values)
	}
	return r, err
}

// headsKey is the number of heads in the metadata of a file whose rows are in their order.
const headsKey = "num_attention_heads"

// notedHeads returns that number, 0 if no file has it.
func (t *Tensors) notedHeads() int {
	for _, f := range t.files {
		var prefix [8]byte
		if _, err := f.ReadAt(prefix[:], 0); err != nil {
			continue
		}
		n := binary.LittleEndian.Uint64(prefix[:])
		if n > maxHeader {
			continue // another format
		}
		var header struct {
			Metadata map[string]string `json:"__metadata__"`
		}
		raw := make([]byte, n)
		if _, err := f.ReadAt(raw, 8); err != nil || json.Unmarshal(raw, &header) != nil {
			continue
		}
		if heads, err := strconv.Atoi(header.Metadata[headsKey]); err == nil && heads > 0 && heads <= maxHeads {
			return heads
		}
	}
	return 0
}

// publish returns a list of tensors of a model of configuration c under their published names, where turn has put the
// elements of some into their published order.
func publish[T any](list []T, of func(T) Tensor, stack func(to Tensor, parts []T) T,
	turn func(to Tensor, x T, o order) T, c model.Config) []T {
	list = publishHybrid(list, of, stack)
	n, ok := namingFor(c)
	if !ok {
		return list
	}
	var out []T
	for _, x := range list {
		t := of(x)
		if c.OutputBias && t.Name == lmHead && len(t.Shape) == 2 {
			weight, bias := outputParts(t, c.Width)
			out = append(out, turn(Tensor{Name: lmHead, DType: t.DType, Shape: []int{t.Shape[0], c.Width}}, x, weight),
				turn(Tensor{Name: lmHeadBias, DType: t.DType, Shape: t.Shape[:1]}, x, bias))
			continue
		}
		o, shape, same := n.ordered(t, c.Heads, false)
		to := Tensor{Name: n.toPublished(t.Name), DType: t.DType, Shape: shape}
		if same {
			out = append(out, stack(to, []T{x}))
		} else {
			out = append(out, turn(to, x, o))
		}
	}
	return out
}

// outputParts returns the places of the weight and the bias in an output projection with a bias.
func outputParts(t Tensor, width int) (weight, bias order) {
	rows, size := int64(t.Shape[0]), int64(t.DType.bits()/8)
	loops := []extent.Loop{{N: rows, Stride: int64(t.Shape[1]) * size}, {N: 1}}
	return order{run: int64(width) * size, loops: loops}, order{run: size, loops: loops, from: int64(width) * size}
}

// turnedPacked, turnedExtent and turnedSource put a tensor's elements into another order.
func turnedPacked(to Tensor, x packedTensor, o order) packedTensor {
	x.from.Tensor, x.from.composed, x.from.replicas = to, true, nil
	x.from.data = o.extent(x.from.data)
	return x
}

func turnedExtent(to Tensor, x extent.Tensor, o order) extent.Tensor {
	return extent.Tensor{Name: to.Name, Stored: to.Name, DType: string(to.DType), Shape: to.Shape,
		Data: o.extent(x.Data)}
}

func turnedSource(to Tensor, x Source, o order) Source {
	return Source{Tensor: to, heads: o.heads, Raw: func(w io.Writer) error {
		var b bytes.Buffer
		if err := x.Raw(&b); err != nil {
			return err
		}
		_, err := w.Write(o.bytes(b.Bytes()))
		return err
	}}
}
