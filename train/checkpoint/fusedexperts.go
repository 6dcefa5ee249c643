package checkpoint

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"exp/train/checkpoint/extent"
)

// This file has the experts of gpt-oss. Its folders hold all experts of a layer in one tensor, where a row is
// what goes in, and gates and ups alternate:
//
//	experts.gate_up_proj [E,C,2F]   experts.gate_up_proj_bias [E,2F]
//	experts.down_proj    [E,F,C]    experts.down_proj_bias    [E,C]
//
// or, in MXFP4, with rows of what comes out,
//
//	experts.gate_up_proj_blocks [E,2F,C/32,16], …_scales [E,2F,C/32]
//	experts.down_proj_blocks    [E,C,F/32,16],  …_scales [E,C,F/32]
//
// The model has experts.K.gate_proj.weight [F,C] and so on.

const expertsOf = ".mlp.experts."

// splitFused replaces such tensors by one for each expert and map.
func (t *Tensors) splitFused() error {
	experts := 0
	for name := range maps.Clone(t.where) {
		prefix, ok := strings.CutSuffix(name, "gate_up_proj_bias")
		if !ok || !strings.HasSuffix(prefix, expertsOf) {
			continue
		}
		for _, part := range []string{"gate_up_proj", "down_proj"} {
			var own []place
			if p, ok := t.where[prefix+part]; ok {
				own = append(own, p.transposedExperts(prefix, part, true)...)
			} else if blocks, ok := t.where[prefix+part+"_blocks"]; ok {
				scales := t.where[prefix+part+"_scales"]
				own = append(own, blocks.widenedExperts(scales, prefix, part)...)
			}
			if own == nil {
				continue
			}
			if experts += len(own); experts > 6*maxExpertsInAll {
				return corrupt(t.path, prefix+part, "there are more than %d experts in all", maxExpertsInAll)
			}
			bias := t.where[prefix+part+"_bias"]
			own = append(own, bias.expertBiases(prefix, part)...)
			for _, end := range []string{"", "_bias", "_blocks", "_scales"} {
				delete(t.where, prefix+part+end)
			}
			for _, p := range own {
				if err := t.put(t.path, p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// halves returns the maps that a fused tensor has.
func halves(part string) []string {
	if part == "gate_up_proj" {
		return []string{"gate_proj", "up_proj"}
	}
	return []string{"down_proj"}
}

// derived returns a tensor of that name and shape whose bytes part makes of p's.
func (p place) derived(name string, shape []int, part func(e extent.Extent) extent.Extent) place {
	own := p
	own.Name, own.Shape, own.composed, own.split, own.replicas = name, shape, true, true, nil
	own.data = part(p.data)
	for _, r := range p.replicas {
		own.replicas = append(own.replicas, part(r))
	}
	if f, at := own.data.First(); f != nil {
		own.file, own.begin = f, at
	}
	return own
}

// splitTurned replaces a tensor [E,In,Out], in which gates come before ups, by one for each expert and map.
func (t *Tensors) splitTurned(prefix, part string) error {
	own := t.where[prefix+part].transposedExperts(prefix, part, false)
	if own == nil {
		return nil
	}
	delete(t.where, prefix+part)
	for _, p := range own {
		if err := t.put(t.path, p); err != nil {
			return err
		}
	}
	return nil
}

// transposedExperts returns the weights in p [E,In,Out], nil if it has another shape. Gates and ups alternate, or
// gates come first.
func (p place) transposedExperts(prefix, part string, alternate bool) (list []place) {
	names := halves(part)
	if len(p.Shape) != 3 || p.Shape[0] > maxExperts || p.Shape[2]%len(names) != 0 || p.Len() == 0 {
		return nil
	}
	size := int64(p.DType.bits() / 8)
	E, in, out := p.Shape[0], int64(p.Shape[1]), int64(p.Shape[2])
	n := int64(len(names))
	first, next := int64(1), n // from a gate to its up, and to the next gate
	if !alternate {
		first, next = out/n, 1
	}
	for i := range E * len(names) {
		e, k := int64(i/len(names)), int64(i%len(names))
		list = append(list, p.derived(fmt.Sprintf("%s%d.%s.weight", prefix, e, names[k]),
			[]int{int(out / n), int(in)}, func(x extent.Extent) extent.Extent {
				return extent.Strided(x, (e*in*out+k*first)*size, size, extent.Loop{N: out / n, Stride: next * size},
					extent.Loop{N: in, Stride: out * size})
			}))
	}
	return list
}

// widenedExperts returns the weights in MXFP4 blocks p [E,Out,In/32,16] with scales [E,Out,In/32], nil if they
// have other shapes.
func (p place) widenedExperts(scales place, prefix, part string) (list []place) {
	names := halves(part)
	if len(p.Shape) != 4 || p.DType != "U8" || scales.DType != "U8" || p.Shape[0] > maxExperts || p.Shape[3] != 16 ||
		p.Shape[1]%len(names) != 0 || !slices.Equal(p.Shape[:3], scales.Shape) || len(p.replicas) > 0 {
		return nil
	}
	out, groups, n := int64(p.Shape[1]), int64(p.Shape[2]), int64(len(names))
	p.DType = BF16
	for i := range p.Shape[0] * len(names) {
		e, k := int64(i/len(names)), int64(i%len(names))
		rows := func(x extent.Extent, row int64) extent.Extent {
			return extent.Strided(x, (e*out+k)*row, row, extent.Loop{N: out / n, Stride: n * row})
		}
		list = append(list, p.derived(fmt.Sprintf("%s%d.%s.weight", prefix, e, names[k]),
			[]int{int(out / n), int(groups * 32)}, func(x extent.Extent) extent.Extent {
				return extent.MXFP4(rows(x, groups*16), rows(scales.data, groups))
			}))
	}
	return list
}

// expertBiases returns the biases in p [E,Out], nil if it has another shape.
func (p place) expertBiases(prefix, part string) (list []place) {
	names := halves(part)
	if len(p.Shape) != 2 || p.Shape[0] > maxExperts || p.Shape[1]%len(names) != 0 {
		return nil
	}
	size, out, n := int64(p.DType.bits()/8), int64(p.Shape[1]), int64(len(names))
	for i := range p.Shape[0] * len(names) {
		e, k := int64(i/len(names)), int64(i%len(names))
		list = append(list, p.derived(fmt.Sprintf("%s%d.%s.bias", prefix, e, names[k]), []int{int(out / n)},
			func(x extent.Extent) extent.Extent {
				return extent.Strided(x, (e*out+k)*size, size, extent.Loop{N: out / n, Stride: n * size})
			}))
	}
	return list
}

// fusedName returns the name of the fused tensor that holds an expert's, and where: by expert, gates before ups.
func fusedName(name string) (fused string, at int, ok bool) {
	prefix, rest, ok := strings.Cut(name, expertsOf)
	number, part, more := strings.Cut(rest, ".")
	e, err := strconv.Atoi(number)
	if !ok || !more || err != nil {
		return "", 0, false
	}
	part, kind, _ := strings.Cut(part, ".")
	switch part {
	case "gate_proj", "up_proj":
		at, part = 2*e, "gate_up_proj"
		if strings.HasPrefix(rest[len(number)+1:], "up") {
			at++
		}
	case "down_proj":
		at = e
	default:
		return "", 0, false
	}
	if kind == "bias" {
		part += "_bias"
	}
	return prefix + expertsOf + part, at, true
}

// fuseExperts returns a list in which join has put together the tensors of gpt-oss's or Gemma 4's experts, as
// transformers has them. It returns a list without such experts as it is.
func fuseExperts[T any](list []T, of func(T) Tensor, join func(fused Tensor, parts []T) T) []T {
	nameOf, first := fusedName, expertsOf+"0.down_proj.bias"
	switch {
	case slices.ContainsFunc(list, func(x T) bool { return strings.HasSuffix(of(x).Name, first) }):
	case slices.ContainsFunc(list, func(x T) bool { _, _, ok := stackedName(of(x).Name); return ok }):
		nameOf = stackedName
	default:
		return list
	}
	parts := map[string]map[int]T{}
	var out []T
	var order []string
	for _, x := range list {
		fused, at, ok := nameOf(of(x).Name)
		if !ok {
			out = append(out, x)
			continue
		}
		if parts[fused] == nil {
			parts[fused] = map[int]T{}
			order = append(order, fused)
		}
		parts[fused][at] = x
	}
	for _, name := range order {
		n := 1 // tensors of an expert
		if strings.Contains(name, "gate_up_proj") {
			n = 2
		}
		sorted := make([]T, len(parts[name]))
		first := of(parts[name][slices.Min(slices.Collect(maps.Keys(parts[name])))])
		for at, x := range parts[name] {
			t := of(x)
			alike := t.DType == first.DType && slices.Equal(t.Shape, first.Shape)
			if at >= len(sorted) || len(sorted)%n != 0 || !alike {
				return list // not all of a kind: no class has them so
			}
			sorted[at] = x
		}
		shape := []int{len(sorted) / n, n * first.Shape[0]}
		switch stacked := !strings.Contains(name, expertsOf); {
		case stacked:
			shape = append(shape, first.Shape[1])
		case len(first.Shape) == 2:
			shape = []int{len(sorted) / n, first.Shape[1], n * first.Shape[0]}
		}
		out = append(out, join(Tensor{Name: name, DType: first.DType, Shape: shape}, sorted))
	}
	return out
}

// fusedData puts together the data of the parts of a fused tensor.
func fusedData(fused Tensor, parts []extent.Extent) extent.Extent {
	if !strings.Contains(fused.Name, expertsOf) {
		return extent.Concat(parts...)
	}
	size, n := int64(fused.DType.bits()/8), len(parts)/fused.Shape[0]
	rows := fused.Shape[len(fused.Shape)-1] / n
	var experts []extent.Extent
	for i := 0; i < len(parts); i += n {
		x := extent.Interleave(rows, parts[i:i+n]...)
		if in := int64(fused.Shape[1]); len(fused.Shape) == 3 {
			x = extent.Strided(x, 0, size, extent.Loop{N: in, Stride: size},
				extent.Loop{N: int64(n * rows), Stride: in * size})
		}
		experts = append(experts, x)
	}
	return extent.Concat(experts...)
}

// fusedPacked puts together the parts of a fused tensor that files are copied to.
func fusedPacked(fused Tensor, parts []packedTensor) packedTensor {
	own := parts[0]
	var data []extent.Extent
	for _, p := range parts {
		data = append(data, p.from.data)
	}
	own.from.Tensor, own.from.composed, own.from.replicas = fused, true, nil
	own.from.data = fusedData(fused, data)
	return own
}

// fusedExtent puts together the parts of a fused tensor that is cut over ranks.
func fusedExtent(fused Tensor, parts []extent.Tensor) extent.Tensor {
	var data []extent.Extent
	for _, p := range parts {
		data = append(data, p.Data)
	}
	return extent.Tensor{Name: fused.Name, Stored: fused.Name, DType: string(fused.DType), Shape: fused.Shape,
		Data: fusedData(fused, data)}
}

func describedExtent(x extent.Tensor) Tensor {
	return Tensor{Name: x.Name, DType: DType(x.DType), Shape: x.Shape}
}

// fusedSource puts together the parts of a fused tensor, an expert at a time.
func fusedSource(fused Tensor, parts []Source) Source {
	n := len(parts) / fused.Shape[0]
	size := fused.DType.bits() / 8
	if !strings.Contains(fused.Name, expertsOf) {
		return Source{Tensor: fused, Raw: func(w io.Writer) error {
			for _, p := range parts {
				if err := p.Raw(w); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	return Source{Tensor: fused, Raw: func(w io.Writer) error {
		raw := make([][]byte, n)
		for i := 0; i < len(parts); i += n {
			for k, p := range parts[i : i+n] {
				b := sliceWriter{raw[k][:0]}
				if err := p.Raw(&b); err != nil {
					return err
				}
				raw[k] = b.bytes
			}
			width := 1
			if len(fused.Shape) == 3 {
				width = fused.Shape[1]
			}
			if err := writeTransposed(w, raw, width, size); err != nil {
				return err
			}
		}
		return nil
	}}
}

type sliceWriter struct{ bytes []byte }

func (w *sliceWriter) Write(b []byte) (int, error) {
	w.bytes = append(w.bytes, b...)
	return len(b), nil
}

// writeTransposed writes matrices [rows,width] of elements of some bytes as one [width, rows·len(raw)], whose
// elements come from each in turn.
func writeTransposed(w io.Writer, raw [][]byte, width, size int) error {
	const atOnce = 32 // columns: a line of the cache
	rows, n := len(raw[0])/size/width, len(raw)
	out := make([]byte, min(atOnce, width)*rows*n*size)
	for lo := 0; lo < width; lo += atOnce {
		columns := min(atOnce, width-lo)
		for k, from := range raw {
			for r := range rows {
				for c := range columns {
					at := (c*rows*n + r*n + k) * size
					copy(out[at:at+size], from[(r*width+lo+c)*size:])
				}
			}
		}
		if _, err := w.Write(out[:columns*rows*n*size]); err != nil {
			return err
		}
	}
	return nil
}

func sourceTensor(x Source) Tensor { return x.Tensor }
