package fsdp

import (
	"slices"

	"exp/train/checkpoint/extent"
	"exp/train/checkpoint/fault"
	"exp/train/checkpoint/torchfile"
)

// assemble puts a tensor together from the parts of all ranks.
func assemble(name string, ranks []rank, wanted Wanted) (extent.Tensor, error) {
	var spread []torchfile.Distributed
	var plain []torchfile.Tensor
	for _, r := range ranks {
		n := r.tensors[name]
		x, ok, err := n.Distributed()
		if err != nil {
			return extent.Tensor{}, err
		}
		if ok {
			spread = append(spread, x)
			continue
		}
		t, err := n.Tensor()
		if err != nil {
			return extent.Tensor{}, err
		}
		plain = append(plain, t)
	}
	switch {
	case len(plain) == 0:
		return distributed(name, ranks, spread)
	case len(spread) > 0:
		return extent.Tensor{}, ranks[0].bad(name, "is a distributed tensor on some ranks and a "+
			"plain one on others")
	}
	return whole(name, ranks, plain, wanted)
}

// distributed puts together what DTensors describe.
func distributed(name string, ranks []rank, parts []torchfile.Distributed) (extent.Tensor, error) {
	first := parts[0]
	out := extent.Tensor{Name: name, DType: first.DType, Shape: first.Shape}
	for i, p := range parts {
		same := p.DType == first.DType && p.Local.DType == first.DType && slices.Equal(p.Shape, first.Shape) &&
			slices.Equal(p.Placements, first.Placements) && slices.Equal(p.Mesh, first.Mesh) &&
			slices.Equal(p.MeshShape, first.MeshShape)
		if !same {
			return out, ranks[i].bad(name, "is another tensor than on rank 0: %s %v, not %s %v, or "+
				"cut in another way", p.Local.DType, p.Shape, first.DType, first.Shape)
		}
	}
	group, cut, err := members(name, ranks, first)
	if err != nil {
		return out, err
	}
	if cut < 0 { // every rank has the whole
		for k, i := range group {
			local := parts[i].Local
			if !slices.Equal(local.Shape, first.Shape) {
				return out, ranks[i].bad(name, "is a copy of shape %v, not %v", local.Shape,
					first.Shape)
			}
			if e := local.Extent(ranks[i].file); k == 0 {
				out.Data = e
			} else {
				out.Replicas = append(out.Replicas, e)
			}
		}
		return out, nil
	}
	locals := make([]torchfile.Tensor, len(group))
	files := make([]rank, len(group))
	for k, i := range group {
		locals[k], files[k] = parts[i].Local, ranks[i]
	}
	out.Data, err = join(name, files, locals, first.Shape, cut)
	return out, err
}

// members returns the ranks that together hold a tensor, in order, and the axis that cuts
// it; -1 if each rank holds the whole. In a mesh of copies and pieces it chooses the first
// copy.
func members(name string, ranks []rank, x torchfile.Distributed) (group []int, cut int, err error) {
	cutting := -1 // the axis of the mesh
	for k, p := range x.Placements {
		if p.Replicated || k < len(x.MeshShape) && x.MeshShape[k] == 1 { // one rank has the whole
			continue
		}
		if cutting >= 0 {
			return nil, 0, fault.Refuse(ranks[0].file.Name(), name, "merge it with verl's own model merger",
				"is cut along two axes of the mesh %v, which is not supported", x.MeshNames)
		}
		cutting = k
	}
	mesh, shape := x.Mesh, x.MeshShape
	if mesh == nil { // this torch does not write it: one axis of all ranks
		for i := range ranks {
			mesh = append(mesh, i)
		}
		shape = []int{len(ranks)}
		if len(x.Placements) != 1 {
			return nil, 0, ranks[0].bad(name, "has no mesh of ranks")
		}
	}
	if len(mesh) > len(ranks) {
		return nil, 0, ranks[0].bad(name, "is on a mesh of %d ranks, but there are %d", len(mesh), len(ranks))
	}
	for i, r := range mesh {
		if r < 0 || r >= len(ranks) || slices.Contains(mesh[:i], r) {
			return nil, 0, ranks[0].bad(name, "is on a mesh of the ranks %v, but there are %d ranks",
				mesh, len(ranks))
		}
	}
	if cutting < 0 {
		return mesh, -1, nil
	}
	step := 1
	for _, n := range shape[cutting+1:] {
		step *= n
	}
	for i := range shape[cutting] { // index 0 on the other axes
		group = append(group, mesh[i*step])
	}
	return group, x.Placements[cutting].Axis, nil
}

// join puts pieces one after the other along an axis. torch.chunk cuts: a rank may have
// fewer rows than the others, or none, then often with another shape.
func join(name string, ranks []rank, parts []torchfile.Tensor, shape []int, axis int) (extent.Extent, error) {
	if len(shape) == 0 {
		return extent.Extent{}, ranks[0].bad(name, "is a scalar, but cut into pieces")
	}
	rows, before := 0, 1
	for _, n := range shape[:axis] {
		before *= n
	}
	var list []extent.Extent
	for i, p := range parts {
		if p.Len() == 0 {
			continue
		}
		fits := slices.Clone(shape)
		if len(p.Shape) == len(shape) {
			fits[axis] = p.Shape[axis]
		}
		if !slices.Equal(p.Shape, fits) {
			return extent.Extent{}, ranks[i].bad(name, "is a piece of shape %v, which does not fit "+
				"into %v cut along axis %d", p.Shape, shape, axis)
		}
		rows += p.Shape[axis]
		list = append(list, p.Extent(ranks[i].file))
	}
	if whole := (torchfile.Tensor{Shape: shape}); whole.Len() == 0 {
		return extent.Extent{}, nil
	}
	if rows != shape[axis] {
		return extent.Extent{}, ranks[0].bad(name, "the pieces of all ranks have %d rows along "+
			"axis %d together, but the whole has %d", rows, axis, shape[axis])
	}
	return extent.Interleave(before, list...), nil
}

// whole puts together plain tensors: copies, unless the model's configuration says that
// they are pieces. A tensor without dimensions has none.
func whole(name string, ranks []rank, parts []torchfile.Tensor, wanted Wanted) (extent.Tensor, error) {
	first := parts[0]
	out := extent.Tensor{Name: name, DType: first.DType, Shape: first.Shape, Data: first.Extent(ranks[0].file)}
	same, rows := true, 0
	for i, p := range parts {
		if p.DType != first.DType {
			return out, ranks[i].bad(name, "is %s, but %s on rank 0", p.DType, first.DType)
		}
		same = same && slices.Equal(p.Shape, first.Shape)
		if len(p.Shape) > 0 {
			rows += p.Shape[0]
		}
	}
	shape, known := wanted(name)
	switch {
	case len(parts) == 1:
		return out, nil
	case same && (!known || slices.Equal(shape, first.Shape) || len(first.Shape) == 0):
		for i, p := range parts[1:] {
			out.Replicas = append(out.Replicas, p.Extent(ranks[i+1].file))
		}
		return out, nil
	case known && len(shape) > 0 && rows == shape[0]:
		var err error
		out.Shape = shape
		out.Data, err = join(name, ranks, parts, shape, 0)
		return out, err
	case known:
		return out, ranks[0].bad(name, "is %v on rank 0 and has %d rows on all ranks, but the "+
			"configuration wants %v", first.Shape, rows, shape)
	}
	return out, fault.Refuse(ranks[0].file.Name(), name, "give the model's configuration with --hf-config DIR",
		"has other shapes on other ranks, and without a configuration it is not known whether they are pieces")
}
