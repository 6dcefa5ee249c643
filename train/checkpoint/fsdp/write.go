package fsdp

import (
	"fmt"
	"io"

	"exp/train/checkpoint/extent"
	"exp/train/checkpoint/torchsave"
)

// Rows returns the rows [first, first+n) of a tensor that a rank holds, as torch.chunk
// cuts them: equal runs, the last ones shorter or empty.
func Rows(rows, rank, world int) (first, n int) {
	c := (rows + world - 1) / world
	first = min(rank*c, rows)
	return first, min(c, rows-first)
}

// Files returns the files of a checkpoint of world ranks by name. A tensor without dimensions, a module's buffer, is
// whole on every rank.
func Files(tensors []extent.Tensor, world int) map[string]func(w io.Writer) error {
	files := map[string]func(w io.Writer) error{configFile: func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "{\n    \"FSDP_version\": 2,\n    \"world_size\": %d\n}", world)
		return err
	}}
	for rank := range world {
		files[stem(rank, world)+".pt"] = func(w io.Writer) error { return writeRank(w, tensors, rank, world) }
	}
	return files
}

func stem(rank, world int) string { return fmt.Sprintf("model_world_size_%d_rank_%d", world, rank) }

// writeRank writes the file of a rank: a state dict of DTensors that are cut into rows over a
// mesh with one axis, or of plain tensors if there is one rank. Tensors stored under one
// name share a storage.
func writeRank(w io.Writer, tensors []extent.Tensor, rank, world int) error {
	state := &torchsave.Dict{Ordered: true}
	m := mesh(rank, world)
	contents := map[string]*torchsave.Content{} // by the tensor's Stored name
	for _, t := range tensors {
		if len(t.Shape) == 0 {
			state.Set(t.Name, &torchsave.View{Content: contentOf(t.DType, 1, t.Data), Shape: []int{}})
			continue
		}
		first, n := Rows(t.Shape[0], rank, world)
		c, ok := contents[t.Stored]
		if !ok {
			c = rowsOf(t, first, n)
			contents[t.Stored] = c
		}
		local := &torchsave.View{Content: c, Shape: append([]int{n}, t.Shape[1:]...)}
		if world == 1 {
			state.Set(t.Name, local)
			continue
		}
		state.Set(t.Name, dtensor(t, local, m))
	}
	return torchsave.Write(w, stem(rank, world), state)
}

// rowsOf returns n rows of a tensor as a storage.
func rowsOf(t extent.Tensor, first, n int) *torchsave.Content {
	row := t.Data.Size() / int64(max(t.Shape[0], 1))
	part := t.Data.Slice(int64(first)*row, int64(n)*row)
	length := n
	for _, d := range t.Shape[1:] {
		length *= d
	}
	return contentOf(t.DType, length, part)
}

// contentOf returns a storage of n elements.
func contentOf(dtype string, n int, part extent.Extent) *torchsave.Content {
	return &torchsave.Content{DType: dtype, Len: n, Raw: func(w io.Writer) error {
		_, err := io.CopyBuffer(w, onlyReader{io.NewSectionReader(part, 0, part.Size())}, make([]byte, 1<<20))
		return err
	}}
}

// onlyReader hides everything but Read, so that io.CopyBuffer uses its buffer.
type onlyReader struct{ io.Reader }

const tensorModule = "torch.distributed.tensor"

// mesh returns the DeviceMesh of all ranks, as torch 2.9 pickles it.
func mesh(rank, world int) *torchsave.Object {
	ranks, flat := make([]byte, 4*world), make(torchsave.Tuple, world)
	for i := range world {
		ranks[4*i], ranks[4*i+1], ranks[4*i+2] = byte(i), byte(i>>8), byte(i>>16)
		flat[i] = i
	}
	content := &torchsave.Content{DType: "I32", Len: world, Raw: func(w io.Writer) error {
		_, err := w.Write(ranks)
		return err
	}}
	state := &torchsave.Dict{}
	state.Set("device_type", "cuda")
	state.Set("mesh", &torchsave.View{Content: content, Shape: []int{world}})
	state.Set("mesh_dim_names", torchsave.Tuple{"fsdp"})
	state.Set("_flatten_mesh_list", flat)
	state.Set("_thread_id", nil)
	state.Set("_dim_group_names", torchsave.List{"0"}) // the group of all ranks
	state.Set("_coordinate_on_dim", torchsave.List{rank})
	return &torchsave.Object{Class: torchsave.Global{Module: "torch.distributed.device_mesh", Name: "DeviceMesh"},
		State: state}
}

// dtensor returns the call that rebuilds a DTensor from this rank's rows.
func dtensor(t extent.Tensor, local *torchsave.View, mesh *torchsave.Object) torchsave.Call {
	class := torchsave.Global{Module: tensorModule, Name: "DTensor"}
	dtype := torchsave.DTypeOf(t.DType)
	shape, stride := torchsave.Integers(t.Shape), torchsave.Integers(torchsave.Contiguous(t.Shape))
	strided := torchsave.Call{Func: torchsave.Global{Module: "torch.serialization", Name: "_get_layout"},
		Args: torchsave.Tuple{"torch.strided"}}
	device := torchsave.Call{Func: torchsave.Global{Module: "torch", Name: "device"}, Args: torchsave.Tuple{"cpu"}}

	dim := &torchsave.Dict{}
	dim.Set("dim", 0)
	shard := &torchsave.Object{Class: torchsave.Global{Module: tensorModule + ".placement_types", Name: "Shard"},
		State: dim}
	size := torchsave.Call{Func: torchsave.Global{Module: "torch", Name: "Size"}, Args: torchsave.Tuple{shape}}
	meta := &torchsave.Object{Class: torchsave.Global{Module: tensorModule + "._dtensor_spec", Name: "TensorMeta"},
		Args: torchsave.Tuple{size, stride, dtype}}
	fields := &torchsave.Dict{}
	fields.Set("mesh", mesh)
	fields.Set("placements", torchsave.Tuple{shard})
	fields.Set("tensor_meta", meta)
	fields.Set("_hash", nil) // torch computes it when it needs one
	spec := &torchsave.Object{Class: torchsave.Global{Module: tensorModule + "._dtensor_spec", Name: "DTensorSpec"},
		State: fields}

	state := &torchsave.Dict{}
	state.Set("_local_tensor", local)
	state.Set("_spec", spec)
	return torchsave.Call{Func: torchsave.Global{Module: "torch._tensor", Name: "_rebuild_from_type_v2"},
		Args: torchsave.Tuple{
			torchsave.Global{Module: "torch._utils", Name: "_rebuild_wrapper_subclass"}, class,
			torchsave.Tuple{class, dtype, shape, stride, 0, strided, device, false},
			torchsave.Tuple{nil, state},
		}}
}
