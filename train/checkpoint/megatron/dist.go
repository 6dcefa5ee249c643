package megatron

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"exp/train/checkpoint/extent"
	"exp/train/checkpoint/fault"
	"exp/train/checkpoint/torchfile"
)

// Files of torch's distributed checkpoints, as megatron-core writes them.
const (
	metadataFile = ".metadata"
	commonFile   = "common.pt"
	maxMetadata  = 256 << 20
)

// stacked is a tensor of all layers, and of all experts if they are stacked too, in chunks.
type stacked struct {
	dtype  string
	shape  []int
	chunks []storedChunk
}

// storedChunk is a box of a stacked tensor and its elements.
type storedChunk struct {
	offsets, sizes []int
	data           extent.Extent
}

// metadata decodes the file that says where tensors lie, and returns how many parts so large a file may have.
func (c *Checkpoint) metadata(dir string) (root torchfile.Node, limit int, err error) {
	path := filepath.Join(dir, metadataFile)
	f, size, err := c.open(path)
	if err != nil {
		return root, 0, err
	}
	if size > maxMetadata {
		return root, 0, fault.Corrupt(path, "", "has %d bytes, over the limit of %d", size, maxMetadata)
	}
	raw := make([]byte, size)
	if _, err := f.ReadAt(raw, 0); err != nil {
		return root, 0, fault.File("read", path, err)
	}
	root, err = torchfile.Decode(path, raw)
	return root, few + len(raw)/32, err
}

// readDistributed reads a checkpoint of torch_dist: as if one rank held the whole model.
func (c *Checkpoint) readDistributed(dir string) (*ranks, error) {
	root, parts, err := c.metadata(dir)
	if err != nil {
		return nil, err
	}
	r := &ranks{path: dir, grid: Grid{1, 1, 1, 1}}
	if r.args, err = c.commonArgs(filepath.Join(dir, commonFile)); err != nil {
		return nil, err
	}
	tensors, err := c.stacks(dir, filepath.Join(dir, metadataFile), root, parts, isWeight)
	if err != nil {
		return nil, err
	}
	all := map[string]extent.Tensor{}
	limit := int(min(few+c.bytes/64, maxSlices))
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		if err := tensors[name].unstack(name, limit, all); err != nil {
			return nil, fault.Corrupt(filepath.Join(dir, metadataFile), name, "%v", err)
		}
	}
	r.chunks = map[Rank][]map[string]extent.Tensor{{}: {all}}
	r.count()
	return r, nil
}

// commonArgs reads the arguments; nil if there are none.
func (c *Checkpoint) commonArgs(path string) (Args, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, nil
	}
	f, size, err := c.open(path)
	if err != nil {
		return nil, err
	}
	root, err := torchfile.Open(path, f, 0, size)
	if err != nil {
		return nil, err
	}
	args := readArgs(root.Get("args"))
	for _, axis := range []string{"tensor", "pipeline", "virtual_pipeline", "expert"} {
		delete(args, axis+"_model_parallel_size") // of the writer: the files do not depend on it
	}
	delete(args, "expert_tensor_parallel_size")
	return args, nil
}

// stacks locates the chunks of all wanted tensors, at most limit: each takes some 100 bytes of the
// pickle, unless one is named again and again.
func (c *Checkpoint) stacks(dir, path string, root torchfile.Node, limit int, wanted func(name string) bool) (
	map[string]*stacked, error) {
	list := map[string]*stacked{}
	for k, v := range root.Get("state_dict_metadata").Pairs() {
		name, _ := k.Text()
		size := v.Get("size")
		if size.Kind() == torchfile.Missing || ignored(name) || !wanted(name) {
			continue // bytes, and states of optimizers
		}
		if limit -= v.Get("chunks").Len(); limit < 0 || len(name) > maxName {
			return nil, fault.Corrupt(path, name, "has too many parts for so small a file, or too long a name")
		}
		shape, ok := integers(size)
		if !ok {
			return nil, fault.Corrupt(path, name, "has no size")
		}
		list[name] = &stacked{dtype: v.Get("properties").State().At(0).DType(), shape: shape}
		for chunk := range v.Get("chunks").Items() {
			offsets, ok := integers(chunk.Get("offsets"))
			sizes, fits := integers(chunk.Get("sizes"))
			if !ok || !fits || len(offsets) != len(shape) || len(sizes) != len(shape) {
				return nil, fault.Corrupt(path, name, "has a chunk without a place")
			}
			list[name].chunks = append(list[name].chunks, storedChunk{offsets: offsets, sizes: sizes})
		}
	}
	where := map[string]torchfile.Node{}
	for k, v := range root.Get("storage_data").Pairs() {
		name, _ := k.Get("fqn").Text()
		offset, ok := integers(k.Get("offset"))
		if list[name] != nil && ok {
			where[name+fmt.Sprint(offset)] = v
		}
	}
	files := map[string]*os.File{}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		t := list[name]
		for i := range t.chunks {
			place, ok := where[name+fmt.Sprint(t.chunks[i].offsets)]
			if !ok {
				return nil, fault.Corrupt(path, name, "its chunk at %v is in no file", t.chunks[i].offsets)
			}
			if err := c.locate(dir, name, t, &t.chunks[i], place, files); err != nil {
				return nil, named(name, err)
			}
		}
	}
	return list, nil
}

// isWeight reports whether a name is one of the model, not of an optimizer.
func isWeight(name string) bool {
	for _, prefix := range []string{"module.", "model."} {
		name = strings.TrimPrefix(name, prefix)
	}
	return strings.HasPrefix(name, "decoder.") || strings.HasPrefix(name, "embedding.") ||
		strings.HasPrefix(name, "output_layer.")
}

// locate finds the elements of a chunk: a torch.save archive of one tensor in a file.
func (c *Checkpoint) locate(dir, name string, t *stacked, chunk *storedChunk, place torchfile.Node,
	files map[string]*os.File) error {
	base, _ := place.Get("relative_path").Text()
	at, ok := place.Get("offset").Int()
	length, fits := place.Get("length").Int()
	if base == "" || base != filepath.Base(base) || !filepath.IsLocal(base) {
		return fault.Corrupt(filepath.Join(dir, metadataFile), name, "%q is not a file of this folder", base)
	}
	path := filepath.Join(dir, base)
	if steps := place.Get("transform_descriptors"); steps.Len() > 0 {
		how, _ := steps.At(0).Text()
		return fault.Refuse(path, name, "save it again without _extensions of its FileSystemWriter",
			"its elements went through %q; only plain ones are supported", how)
	}
	if files[base] == nil {
		f, _, err := c.open(path)
		if err != nil {
			return err
		}
		files[base] = f
	}
	f := files[base]
	info, err := f.Stat()
	if err != nil {
		return fault.File("read", path, err)
	}
	if !ok || !fits || at < 0 || length < 0 || at > info.Size()-length {
		return fault.Corrupt(path, name, "its chunk of %d bytes at %d is beyond the end", length, at)
	}
	root, err := torchfile.Open(path, f, at, length)
	if err != nil {
		return err
	}
	x, err := root.Tensor()
	if err != nil {
		return err
	}
	if x.DType != t.dtype || !slices.Equal(x.Shape, chunk.sizes) {
		return fault.Corrupt(path, name, "its chunk at %v is %s %v, not %s %v", chunk.offsets, x.DType, x.Shape,
			t.dtype, chunk.sizes)
	}
	chunk.data = x.Extent(f)
	return nil
}

// integers returns the small integers of a tuple.
func integers(n torchfile.Node) ([]int, bool) {
	list := []int{}
	if n.Kind() != torchfile.Tuple && n.Kind() != torchfile.List || n.Len() > 8 {
		return nil, false
	}
	for x := range n.Items() {
		v, ok := x.Int()
		if !ok || v < 0 || v > math.MaxInt32 {
			return nil, false
		}
		list = append(list, int(v))
	}
	return list, true
}

// unstack adds the tensors of single layers and experts to all, by canonical name, which
// then holds at most limit.
func (t *stacked) unstack(name string, limit int, all map[string]extent.Tensor) error {
	plain := Canonical(name)
	var prefix, rest string
	lead := 0
	layer, tail, numbered := cutLayer(plain)
	_, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(layer, layersPrefix), "."))
	if numbered && err != nil {
		prefix, rest, lead = layersPrefix, strings.TrimPrefix(plain, layersPrefix), 1
	} else {
		prefix, rest = layer, tail
	}
	experts := strings.HasPrefix(rest, stackedExperts+"linear_fc")
	if experts {
		lead++
	}
	if lead == 0 {
		return t.slice(plain, name, nil, all)
	}
	if len(t.shape) <= lead {
		return fmt.Errorf("has %d axes, too few for a stack of layers or experts", len(t.shape))
	}
	return t.each(lead, limit-len(all), func(index []int) error {
		at := index
		to := prefix
		if prefix == layersPrefix {
			to, at = fmt.Sprintf("%s%d.", prefix, at[0]), at[1:]
		}
		if experts {
			to += fmt.Sprintf("mlp.experts.local_experts.%d.%s", at[0], strings.TrimPrefix(rest, stackedExperts))
		} else {
			to += rest
		}
		return t.slice(Canonical(to), name, index, all)
	})
}

// stackedExperts begins the names of experts that are stacked.
const stackedExperts = "mlp.experts.experts."

// Limits on the content of a checkpoint. Even a small file may hold few; above few, the limit
// grows with the file's bytes, or a small file could fill the memory.
const (
	few       = 1 << 10
	maxSlices = 1 << 18 // tensors in all stacks
	maxName   = 1 << 10
)

// each calls f for every index of the leading axes, if there are at most limit.
func (t *stacked) each(lead, limit int, f func(index []int) error) error {
	total := 1
	for _, n := range t.shape[:lead] {
		if total *= n; n > limit || total > limit {
			return fmt.Errorf("is a stack of %v: too many tensors for so small a file", t.shape[:lead])
		}
	}
	for i := range total {
		index := make([]int, lead)
		for k, rest := lead-1, i; k >= 0; k-- {
			index[k] = rest % t.shape[k]
			rest /= t.shape[k]
		}
		if err := f(index); err != nil {
			return err
		}
	}
	return nil
}

// slice adds the tensor at an index of the leading axes.
func (t *stacked) slice(name, stored string, index []int, all map[string]extent.Tensor) error {
	lead := len(index)
	shape := t.shape[lead:]
	if len(shape) > 2 {
		return fmt.Errorf("has %d axes more than a matrix", len(shape)-2)
	}
	var tiles []tile
	for _, c := range t.chunks {
		part, ok := c.part(index)
		if !ok {
			continue
		}
		rows, cols := sides(c.sizes[lead:])
		x := tile{rows: rows, cols: cols, data: part}
		x.row, x.col = origin(c.offsets[lead:])
		tiles = append(tiles, x)
	}
	rows, columns := sides(shape)
	data, err := compose(rows, columns, tiles)
	if err != nil {
		return err
	}
	if _, twice := all[name]; twice {
		return fmt.Errorf("is %s, and so is another tensor", name)
	}
	all[name] = extent.Tensor{Name: name, Stored: stored, DType: t.dtype, Shape: shape, Data: data}
	return nil
}

// origin returns the first row and column of a box.
func origin(offsets []int) (row, col int) {
	if len(offsets) > 0 {
		row = offsets[0]
	}
	if len(offsets) > 1 {
		col = offsets[1]
	}
	return row, col
}

// part returns the elements of the chunk at an index of the leading axes.
func (c storedChunk) part(index []int) (extent.Extent, bool) {
	at, total := 0, 1
	for k, i := range index {
		i -= c.offsets[k]
		if i < 0 || i >= c.sizes[k] {
			return extent.Extent{}, false
		}
		at, total = at*c.sizes[k]+i, total*c.sizes[k]
	}
	each := c.data.Size() / int64(total)
	return c.data.Slice(int64(at)*each, each), true
}
