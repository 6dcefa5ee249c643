package vision

import (
	"errors"
	"fmt"
	"slices"

	"exp/kernels"
)

// Read returns a tensor's elements in host memory: BF16 for a matrix of a BF16 tower, else F32. The slice must stay
// valid until the next call. Config.Tensors has the names.
type Read func(name string) (kernels.Buffer, error)

// Tower holds the weights of a vision tower, which never change, in the layout that the backend multiplies from.
// Several goroutines may encode at once, each on a backend of its own that reaches the weights.
type Tower struct {
	Config Config
	DType  kernels.DType // of the matrices

	be      kernels.Backend
	owned   []kernels.Buffer
	patches linear
	blocks  []block
	mergers []merger // the last one first, then the deep features'
	table   []float32
}

type linear struct {
	w    kernels.Matrix
	bias kernels.Buffer // empty: none
}

type norm struct {
	w, bias kernels.Buffer // an RMSNorm has no bias
	width   int
}

type block struct {
	norm1, norm2        norm
	qkv, proj, up, down linear
}

type merger struct {
	norm     norm
	fc1, fc2 linear
}

// New loads a tower. dtype is the memory type of its matrices: kernels.F32 or kernels.BF16. It returns an error if the
// device has no room, the configuration is impossible, or read fails.
func New(be kernels.Backend, c Config, dtype kernels.DType, read Read) (*Tower, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if dtype != kernels.F32 && dtype != kernels.BF16 {
		panic("vision: a tower is f32 or bf16")
	}
	t := &Tower{Config: c, DType: dtype, be: whole(be)}
	fills, err := t.allocate()
	if err == nil {
		err = t.load(fills, read)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// whole returns the device that be is a rank's share of (package tensor): each rank has a tower of its own and encodes
// alone, whatever the others do.
func whole(be kernels.Backend) kernels.Backend {
	if x, ok := be.(interface{ Whole() kernels.Backend }); ok {
		return x.Whole()
	}
	return be
}

// Close frees the weights.
func (t *Tower) Close() {
	for _, b := range t.owned {
		t.be.Free(b)
	}
	t.owned = nil
}

// fill is a step of loading: tensors one after another that set a vector or a matrix.
type fill struct {
	names []string
	into  *kernels.Buffer // of a vector
	w     *kernels.Matrix // of a matrix, instead
	len   int
}

// allocate makes room for all weights but the learned positions, and returns the steps that load them.
func (t *Tower) allocate() ([]fill, error) {
	c := t.Config
	t.blocks, t.mergers = make([]block, c.Layers), make([]merger, 1+len(c.Deep))
	var r rooms
	var list []fill
	vector := func(into *kernels.Buffer, n int, names ...string) {
		r.add(into, t.be.Float(), n)
		list = append(list, fill{names: names, into: into, len: n})
	}
	matrix := func(y *linear, s linearSpec) {
		y.w = kernels.Matrix{Out: s.out(), In: s.in}
		dtype, stored := t.be.Operand(), t.DType
		if dtype == kernels.F32 {
			dtype = t.DType // BF16 weights give the bits of float32 ones
		}
		if stored == kernels.F32 {
			stored = t.be.Float()
		}
		if n, _ := t.be.PackedLen(s.out(), s.in); n > 0 {
			r.add(&y.w.Packed, dtype, n)
		} else {
			r.add(&y.w.W, stored, s.out()*s.in)
		}
		list = append(list, fill{names: ending(s.names, ".weight"), w: &y.w, len: s.out() * s.in})
		if s.bias {
			vector(&y.bias, s.out(), ending(s.names, ".bias")...)
		}
	}
	normal := func(y *norm, s normSpec) {
		y.width = s.width
		if vector(&y.w, s.width, s.name+".weight"); c.layerNorms() {
			vector(&y.bias, s.width, s.name+".bias")
		}
	}
	matrix(&t.patches, c.patches())
	for l := range t.blocks {
		y, s := &t.blocks[l], c.block(l)
		normal(&y.norm1, s.norm1)
		normal(&y.norm2, s.norm2)
		matrix(&y.qkv, s.qkv)
		matrix(&y.proj, s.proj)
		matrix(&y.up, s.up)
		matrix(&y.down, s.down)
	}
	for k, s := range c.mergers() {
		y := &t.mergers[k]
		normal(&y.norm, s.norm)
		matrix(&y.fc1, s.fc1)
		matrix(&y.fc2, s.fc2)
	}
	var err error
	t.owned, err = r.take(t.be, kernels.WeightRoom)
	return list, err
}

func ending(names []string, end string) []string {
	list := slices.Clone(names)
	for i := range list {
		list[i] += end
	}
	return list
}

// load sets all weights.
func (t *Tower) load(fills []fill, read Read) error {
	for _, f := range fills {
		x, err := f.read(read)
		if err != nil {
			return err
		}
		if x.Len() != f.len {
			return fmt.Errorf("vision: %s has %d elements, not %d", f.names[0], x.Len(), f.len)
		}
		if f.w == nil {
			t.be.Copy(*f.into, x)
		} else {
			t.pack(*f.w, x)
		}
		t.be.Sync()
	}
	if t.Config.Side == 0 {
		return nil
	}
	x, err := read(positionTable)
	if err != nil {
		return err
	}
	if x.Len() != t.Config.Side*t.Config.Side*t.Config.Width {
		return fmt.Errorf("vision: %s has %d elements for %d² positions", positionTable, x.Len(), t.Config.Side)
	}
	t.table = floats(nil, x)
	return nil
}

// read returns the elements of a step's tensors, one tensor after another.
func (f fill) read(read Read) (kernels.Buffer, error) {
	var wide []float32
	var half []uint16
	for i, name := range f.names {
		x, err := read(name)
		if err != nil || len(f.names) == 1 {
			return x, err
		}
		if x.DType() == kernels.BF16 {
			half = append(half, kernels.Bits(x)...)
		} else {
			wide = append(wide, kernels.Elems[float32](x)...)
		}
		if i > 0 && len(wide) > 0 && len(half) > 0 {
			return x, errors.New("vision: " + name + " has another type than " + f.names[0])
		}
	}
	if len(half) > 0 {
		return kernels.HostBits(half), nil
	}
	return kernels.Host(wide), nil
}

// packElems is the elements that are packed together, as a model's are.
const packElems = 1 << 20

// pack sets a matrix to x [Out,In], some rows at a time.
func (t *Tower) pack(w kernels.Matrix, x kernels.Buffer) {
	step := max(1, packElems/w.In/kernels.PackAlign) * kernels.PackAlign
	for lo := 0; lo < w.Out; lo += step {
		hi := min(lo+step, w.Out)
		t.be.PackRows(w, lo, x.Slice(lo*w.In, hi*w.In))
		t.be.Sync()
	}
}

// floats appends the elements of host memory to list.
func floats(list []float32, x kernels.Buffer) []float32 {
	if x.DType() == kernels.F32 {
		return append(list, kernels.Elems[float32](x)...)
	}
	for _, b := range kernels.Bits(x) {
		list = append(list, widened(b))
	}
	return list
}

// rooms are buffers allocated together, one allocation for each type.
type rooms []room

type room struct {
	into *kernels.Buffer
	t    kernels.DType
	n    int
}

func (r *rooms) add(into *kernels.Buffer, t kernels.DType, n int) { *r = append(*r, room{into, t, n}) }

// roomAlign is the elements that buffers are aligned to, so that none share a cache line.
const roomAlign = 128

func aligned(n int) int { return (n + roomAlign - 1) / roomAlign * roomAlign }

// lengths returns the elements of each type.
func (r rooms) lengths() map[kernels.DType]int {
	all := map[kernels.DType]int{}
	for _, x := range r {
		all[x.t] += aligned(x.n)
	}
	return all
}

// take allocates everything and returns the buffers to free; on an error it frees them itself.
func (r rooms) take(be kernels.Backend, part kernels.Part) (owned []kernels.Buffer, err error) {
	left := map[kernels.DType]kernels.Buffer{}
	for _, t := range []kernels.DType{kernels.F32, kernels.F64, kernels.BF16, kernels.I32} {
		n := r.lengths()[t]
		if n == 0 {
			continue
		}
		all, err := be.Alloc(t, n)
		if err != nil {
			for _, x := range owned {
				be.Free(x)
			}
			return nil, &kernels.RoomError{Part: part, Err: err}
		}
		owned, left[t] = append(owned, all), all
	}
	for _, x := range r {
		all := left[x.t]
		*x.into, left[x.t] = all.Slice(0, x.n), all.Slice(aligned(x.n), all.Len())
	}
	return owned, nil
}
