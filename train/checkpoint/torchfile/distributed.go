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
	for p := range list.Items() {
		_, class, _ := cutLast(p.Name())
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
func (n Node) mesh(mesh Node, x *Distributed) error {
	ranks := mesh.Get("mesh")
	if ranks.Kind() == Missing {
		return nil
	}
	t, err := ranks.Tensor()
	if err != nil {
		return err
	}
	if x.Mesh, err = t.integers(); err != nil {
		return err
	}
	x.MeshShape = t.Shape
	for name := range mesh.Get("mesh_dim_names").Items() {
		text, _ := name.Text()
		x.MeshNames = append(x.MeshNames, text)
	}
	if len(x.MeshShape) != len(x.Placements) {
		return n.bad("a distributed tensor with %d placements on a mesh of %d axes", len(x.Placements),
			len(x.MeshShape))
	}
	return nil
}
