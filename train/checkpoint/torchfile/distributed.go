package torchfile

import "slices"

// Distributed is a tensor of several ranks: torch's DTensor, as one rank stores it.
type Distributed struct {
	DType string
	Shape []int // of the whole
	// Mesh lists the ranks, row-major, with MeshShape its shape and MeshNames the names of
	// its axes; all are nil if the file does not say.
	Mesh      []int
	MeshShape []int
	MeshNames []string
	// Placements has an entry for each axis of the mesh: how it divides the tensor.
	Placements []Placement
	Local      Tensor // the part of this rank
}

// Placement says how an axis of a mesh divides a tensor.
type Placement struct {
	Replicated bool
	Axis       int // of the tensor, if not replicated
}

// Distributed returns n as a distributed tensor; ok is false if it is something else.
func (n Node) Distributed() (x Distributed, ok bool, err error) {
	args := n.Args()
	if n.Name() != rebuildFromType || args.At(0).Name() != rebuildWrapper {
		return x, false, nil
	}
	switch args.At(1).Name() {
	case "torch.distributed.tensor.DTensor", "torch.distributed._tensor.api.DTensor",
		"torch.distributed.tensor._api.DTensor", "torch.distributed._tensor.DTensor":
	default:
		return x, true, n.refuse("is a tensor of type %s, which is not supported", args.At(1).describe())
	}
	// (DTensor, dtype, size, stride, offset, layout, device, requires_grad)
	whole, state := args.At(2), args.At(3)
	if state.Kind() == Tuple { // (attributes, slots)
		for part := range state.Items() {
			if part.Get("_local_tensor").Kind() != Missing {
				state = part
				break
			}
		}
	}
	if x.DType = whole.At(1).DType(); x.DType == "" {
		return x, true, n.refuse("has elements of type %s, which is not supported", whole.At(1).describe())
	}
	if x.Shape, ok = whole.At(2).ints(maxAxes); !ok || slices.Min(append(x.Shape, 0)) < 0 {
		return x, true, n.bad("a distributed tensor without a size")
	}
	if x.Local, err = state.Get("_local_tensor").Tensor(); err != nil {
		return x, true, err
	}
	spec := state.Get("_spec")
	if err := n.placements(spec.Get("placements"), &x); err != nil {
		return x, true, err
	}
	return x, true, n.mesh(spec.Get("mesh"), &x)
}

// placements reads how the axes of the mesh divide the tensor.
func (n Node) placements(list Node, x *Distributed) error {
	if list.Kind() != Tuple && list.Kind() != List {
		return n.bad("a distributed tensor without placements")
	}
	if list.Len() > maxAxes {
		return n.bad("a distributed tensor on a mesh of %d axes", list.Len())
	}
	for p := range list.Items() {
		_, class := cutLast(p.Name())
		switch class {
		case "Replicate":
			x.Placements = append(x.Placements, Placement{Replicated: true})
			continue
		case "Shard":
		default:
			return n.refuse("is placed as %s; only Shard and Replicate are supported", p.describe())
		}
		axis, ok := p.Get("dim").Int()
		if !ok {
			axis, ok = p.Args().At(0).Int()
		}
		if !ok || axis < 0 || axis >= int64(max(len(x.Shape), 1)) {
			return n.bad("a distributed tensor of %d axes that is cut along axis %d", len(x.Shape), axis)
		}
		x.Placements = append(x.Placements, Placement{Axis: int(axis)})
	}
	return nil
}

// mesh reads the arrangement of the ranks.
func (n Node) mesh(mesh Node, x *Distributed) (err error) {
	for _, key := range []string{"mesh_dim_names", "_mesh_dim_names"} {
		names := mesh.Get(key)
		if names.Len() > maxAxes {
			return n.bad("a distributed tensor on a mesh of %d axes", names.Len())
		}
		for name := range names.Items() {
			text, _ := name.Text()
			x.MeshNames = append(x.MeshNames, text)
		}
	}
	ranks, layout := mesh.Get("mesh"), mesh.Get("_layout")
	switch {
	case ranks.Kind() != Missing:
		x.Mesh, x.MeshShape, err = ranks.rankList()
	case layout.Kind() != Missing: // torch 2.10 and newer
		x.Mesh, x.MeshShape, err = n.laidOut(layout, mesh.Get("_rank_map"))
	default:
		return nil
	}
	if err == nil && len(x.MeshShape) != len(x.Placements) {
		err = n.bad("a distributed tensor with %d placements on a mesh of %d axes", len(x.Placements),
			len(x.MeshShape))
	}
	return err
}

// rankList reads a tensor of ranks.
func (n Node) rankList() (ranks, shape []int, err error) {
	t, err := n.Tensor()
	if err != nil {
		return nil, nil, err
	}
	ranks, err = t.integers()
	return ranks, t.Shape, err
}

// laidOut reads a mesh that is stored as all ranks and a layout: for each axis sizes and
// strides in the list of ranks. An axis has no sizes if it has one rank only, and several if
// it was made of several axes: the last one runs fastest.
func (n Node) laidOut(layout, all Node) (mesh, shape []int, err error) {
	ranks, _, err := all.rankList()
	if err != nil {
		return nil, nil, err
	}
	mesh = []int{0}
	add := func(size, stride Node) bool {
		sizes, ok := size.oneOrMore()
		strides, fits := stride.oneOrMore()
		if !ok || !fits || len(sizes) != len(strides) || len(shape) == maxAxes {
			return false
		}
		length := 1
		for k, s := range sizes {
			if s < 1 || len(mesh) > len(ranks)/s || strides[k] < 0 || strides[k] > len(ranks) {
				return false
			}
			mesh = repeat(mesh, s, strides[k])
			length *= s
		}
		shape = append(shape, length)
		return true
	}
	ok := true
	if axes := layout.Get("axes"); axes.Kind() == Tuple {
		for axis := range axes.Items() {
			ok = ok && add(axis.Get("shape"), axis.Get("stride"))
		}
	} else if sizes := layout.Get("shape"); sizes.Kind() == Tuple {
		for k := range sizes.Len() {
			ok = ok && add(sizes.At(k), layout.Get("stride").At(k))
		}
	} else {
		ok = add(sizes, layout.Get("stride"))
	}
	if !ok || len(mesh) != len(ranks) {
		return nil, nil, n.refuse("is on a part of the mesh of all %d ranks, which is not supported", len(ranks))
	}
	for i, at := range mesh {
		if at >= len(ranks) {
			return nil, nil, n.bad("a mesh that is larger than its %d ranks", len(ranks))
		}
		mesh[i] = ranks[at]
	}
	return mesh, shape, nil
}

// repeat returns every place with size-1 more behind it, stride apart.
func repeat(places []int, size, stride int) []int {
	var list []int
	for _, at := range places {
		for i := range size {
			list = append(list, at+i*stride)
		}
	}
	return list
}

// oneOrMore returns an integer, or those of a tuple.
func (n Node) oneOrMore() ([]int, bool) {
	if n.Kind() == Tuple {
		return n.ints(maxAxes)
	}
	v, ok := n.Int()
	return []int{int(v)}, ok
}
