package checkpoint

import (
	"fmt"
	"io"
	"maps"
	"strings"

	"exp/train/checkpoint/extent"
)

// This file has the tensors of hybrids with Mamba-2, of Granite MoE and of LFM2. Embedding and last norm have
// Llama's names here, and Granite's experts, which its folders hold together,
//
//	block_sparse_moe.input_linear.weight  [E,2F,C]
//	block_sparse_moe.output_linear.weight [E,C,F]
//
// are block_sparse_moe.experts.K.input_linear.weight [2F,C] and so on.

// ends maps the published names of embeddings and last norms of such models to Llama's.
func ends() map[string]string {
	return map[string]string{"embeddings.weight": "embed_tokens.weight", "norm_f.weight": "norm.weight",
		"final_layernorm.weight": "norm.weight", "embedding_norm.weight": "norm.weight"}
}

// mixer begins the last part of the names of tensors of Nemotron-H's layers, which no other class has.
const mixer = ".mixer."

// feedForward is within the names of Bamba's and LFM2's feed-forward blocks.
const feedForward = ".feed_forward."

// hybridNames gives tensors of hybrids the names of this package.
func (t *Tensors) hybridNames() error {
	hybrid := false
	for name := range t.where {
		for _, part := range []string{mixer, ".mamba.", ".shared_mlp.", ".block_sparse_moe.router.",
			".operator_norm."} {
			hybrid = hybrid || strings.Contains(name, part)
		}
	}
	if !hybrid {
		return nil
	}
	if err := t.rename(hybridName); err != nil {
		return err
	}
	experts := 0
	for name, p := range maps.Clone(t.where) {
		own := p.stacked(name)
		if own == nil {
			own = p.stackedOfLFM(name)
		}
		if own == nil {
			continue
		}
		if experts += len(own); experts > 2*maxExpertsInAll {
			return corrupt(t.path, name, "there are more than %d experts in all", maxExpertsInAll)
		}
		delete(t.where, name)
		for _, x := range own {
			if err := t.put(t.path, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// hybridName returns the name of a published tensor here; layers that predict further tokens are dropped.
func hybridName(name string) (string, bool) {
	if strings.HasPrefix(name, "mtp.") {
		return "", false
	}
	name = strings.Replace(name, "block_sparse_moe.router.weight", "block_sparse_moe.router.layer.weight", 1)
	rest, ok := strings.CutPrefix(name, "backbone.")
	if !ok {
		rest, ok = strings.CutPrefix(name, backbonePrefix)
	}
	if end := ends()[rest]; end != "" {
		rest = end
	}
	if ok {
		rest = backbonePrefix + rest
	}
	return rest, true
}

// stacked returns the experts' weights in p [E,Out,In], nil if the name is another's.
func (p place) stacked(name string) (list []place) {
	layer, part, ok := strings.Cut(name, ".block_sparse_moe.")
	prefix, end := layer+".block_sparse_moe.", strings.TrimSuffix(part, ".weight")
	if !ok {
		layer, part, ok = strings.Cut(name, mixer)
		prefix, end = layer+mixer, part
	}
	switch end { // also as a state dict of transformers 5 has them
	case "experts.gate_up_proj":
		end = "input_linear"
	case "experts.down_proj":
		if end = "output_linear"; strings.HasSuffix(prefix, mixer) {
			end = "down_proj"
		}
	case "experts.up_proj":
		end = "up_proj"
	case "input_linear", "output_linear":
	default:
		return nil
	}
	if !ok || len(p.Shape) != 3 || p.Shape[0] < 1 || p.Shape[0] > maxExperts || p.Len() == 0 {
		return nil
	}
	bytes := p.Bytes() / int64(p.Shape[0])
	for e := range p.Shape[0] {
		list = append(list, p.derived(fmt.Sprintf("%sexperts.%d.%s.weight", prefix, e, end), p.Shape[1:],
			func(x extent.Extent) extent.Extent { return x.Slice(int64(e)*bytes, bytes) }))
	}
	return list
}

// publishHybrid returns a list in which stack has given tensors of hybrids their published names, and has put
// Granite's experts together. It returns a list without such tensors as it is.
func publishHybrid[T any](list []T, of func(T) Tensor, stack func(to Tensor, parts []T) T) []T {
	var out []T
	var order []string
	name, parts := publishedName(list, of), map[string][]T{}
	for _, x := range list {
		t := of(x)
		prefix, rest, ok := strings.Cut(t.Name, ".block_sparse_moe.experts.")
		_, part, more := strings.Cut(rest, ".")
		if ok && more && (part == "input_linear.weight" || part == "output_linear.weight") { // in order
			all := prefix + ".block_sparse_moe." + part
			if parts[all] == nil {
				order = append(order, all)
			}
			parts[all] = append(parts[all], x)
			continue
		}
		if to := name(t.Name); to != t.Name {
			x = stack(Tensor{Name: to, DType: t.DType, Shape: t.Shape}, []T{x})
		}
		out = append(out, x)
	}
	for _, all := range order {
		t := of(parts[all][0])
		shape := append([]int{len(parts[all])}, t.Shape...)
		out = append(out, stack(Tensor{Name: all, DType: t.DType, Shape: shape}, parts[all]))
	}
	return out
}

// publishedName returns the function that gives a tensor of a list its published name.
func publishedName[T any](list []T, of func(T) Tensor) func(name string) string {
	for _, x := range list {
		switch name := of(x).Name; {
		case ofTower(name): // Pixtral's has feed_forward in its names
		case strings.Contains(name, mixer):
			ends := strings.NewReplacer(embedding, "backbone.embeddings.weight", lastNorm, "backbone.norm_f.weight",
				backbonePrefix+"layers.", "backbone.layers.")
			return ends.Replace
		case strings.Contains(name, feedForward) && strings.HasSuffix(name, "_proj.weight"): // Bamba
			return strings.NewReplacer(lastNorm, backbonePrefix+"final_layernorm.weight").Replace
		case strings.Contains(name, feedForward):
			return strings.NewReplacer(lastNorm, backbonePrefix+"embedding_norm.weight").Replace
		}
	}
	return func(name string) string { return name }
}

// lastNorm is the name of the norm after all layers.
const lastNorm = backbonePrefix + "norm.weight"

// stackedPacked, stackedExtent and stackedSource put tensors one after another.
func stackedPacked(to Tensor, parts []packedTensor) packedTensor {
	own := parts[0]
	var data []extent.Extent
	for _, p := range parts {
		data = append(data, p.from.data)
	}
	own.from.Tensor, own.from.composed, own.from.replicas = to, true, nil
	own.from.data = extent.Concat(data...)
	return own
}

func stackedExtent(to Tensor, parts []extent.Tensor) extent.Tensor {
	var data []extent.Extent
	for _, p := range parts {
		data = append(data, p.Data)
	}
	return extent.Tensor{Name: to.Name, Stored: to.Name, DType: string(to.DType), Shape: to.Shape,
		Data: extent.Concat(data...)}
}

func stackedSource(to Tensor, parts []Source) Source {
	return Source{Tensor: to, Raw: func(w io.Writer) error {
		for _, p := range parts {
			if err := p.Raw(w); err != nil {
				return err
			}
		}
		return nil
	}}
}
