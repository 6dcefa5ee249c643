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

// Tower holds the weights of a vision tower in the layout that the backend multiplies from. They never change, but by
// Refresh. Several goroutines may encode at once, each on a backend of its own that reaches the weights.
type Tower struct {
	Config Config
	DType  kernels.DType // of the matrices

	be        kernels.Backend
	learns    bool      // has an arena
	adapters  *Adapters // on weights of another tower; nil: none
	trainable bool      // has gradients
	owned     []kernels.Buffer
	patches   linear
	first     norm
	blocks    []block
	last      norm
	mergers   []merger  // the last one first, then the deep features'
	table     []float64 // learned positions
	class     []float64 // the row of each tile, with its position
	tables    []learned // onHost, of a learning tower
}

type linear struct {
	w         kernels.Matrix
	bias      kernels.Buffer // empty: none
	dw, dbias kernels.Buffer // gradients, of a learning tower
	turn      *turn          // of a learning tower's turned map; nil in others
	low       lowRank
	across    bool // w is [in,out]
}

// set sets the size of the matrix.
func (y *linear) set(s linearSpec) {
	y.w.Out, y.w.In = s.sides()
	y.across = s.across
}

type norm struct {
	normSpec
	w, bias   kernels.Buffer // an RMSNorm has no bias
	dw, dbias kernels.Buffer // gradients, of a learning tower
}

type block struct {
	norm1, norm2, queries, keys norm
	qkv, proj, up, down         linear
	scale1, scale2              factors
}

// factors are factors of channels [C]; empty: none.
type factors struct {
	w, dw kernels.Buffer
}

type merger struct {
	norm, middle         norm
	join, proj, fc1, fc2 linear
	activation           string
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
	unit  int // patches of a token, which lie in rows of the files channel by channel; 0: rows stay
}

// allocate makes room for all weights but those on the host, and returns the steps that load them.
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
		y.set(s)
		dtype, stored := t.be.Operand(), t.DType
		if dtype == kernels.F32 {
			dtype = t.DType // BF16 weights give the bits of float32 ones
		}
		if stored == kernels.F32 {
			stored = t.be.Float()
		}
		if n, _ := t.be.PackedLen(s.sides()); n > 0 {
			r.add(&y.w.Packed, dtype, n)
		} else {
			r.add(&y.w.W, stored, s.out()*s.in)
		}
		f := fill{names: s.tensors(), w: &y.w, len: s.out() * s.in}
		if s.turned {
			f.unit = c.unit()
		}
		list = append(list, f)
		if s.bias {
			vector(&y.bias, s.out(), ending(s.names, ".bias")...)
		}
	}
	normal := func(y *norm, s normSpec) {
		if y.normSpec = s; s.width == 0 {
			return
		}
		if vector(&y.w, s.width, s.name+".weight"); s.layer {
			vector(&y.bias, s.width, s.name+".bias")
		}
	}
	t.parts(normal, matrix, func(y *factors, name string) { vector(&y.w, c.Width, name) })
	var err error
	t.owned, err = r.take(t.be, kernels.WeightRoom)
	return list, err
}

// parts calls functions with all norms, maps and factors of channels that the tower has.
func (t *Tower) parts(normal func(*norm, normSpec), matrix func(*linear, linearSpec),
	scale func(*factors, string)) {
	c := t.Config
	matrix(&t.patches, c.patches())
	normal(&t.first, c.first())
	for l := range t.blocks {
		y, s := &t.blocks[l], c.block(l)
		normal(&y.norm1, s.norm1)
		normal(&y.norm2, s.norm2)
		normal(&y.queries, s.queries)
		normal(&y.keys, s.keys)
		matrix(&y.qkv, s.qkv)
		matrix(&y.proj, s.proj)
		matrix(&y.up, s.up)
		matrix(&y.down, s.down)
		if s.scale1 != "" {
			scale(&y.scale1, s.scale1)
			scale(&y.scale2, s.scale2)
		}
	}
	normal(&t.last, c.last())
	for k, s := range c.mergers() {
		y := &t.mergers[k]
		y.activation = s.activation
		normal(&y.norm, s.norm)
		if s.join.names != nil {
			matrix(&y.join, s.join)
		}
		if s.proj.names != nil {
			matrix(&y.proj, s.proj)
			normal(&y.middle, s.middle)
		}
		if s.fc1.names != nil {
			matrix(&y.fc1, s.fc1)
		}
		matrix(&y.fc2, s.fc2)
	}
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
	return t.loadHost(read)
}

// loadHost reads what stays in the host's memory.
func (t *Tower) loadHost(read Read) error {
	var tables [][]float64
	for _, s := range t.Config.onHost() {
		x, err := read(s.Name)
		if err != nil {
			return err
		}
		if x.Len() != s.Len() {
			return fmt.Errorf("vision: %s has %d elements, not %d", s.Name, x.Len(), s.Len())
		}
		tables = append(tables, floats(x))
	}
	t.setHost(tables)
	return nil
}

// setHost keeps the tensors of onHost.
func (t *Tower) setHost(tables [][]float64) {
	if len(tables) > 0 {
		t.table = tables[0]
	}
	if len(tables) > 1 {
		t.class = t.class[:0]
		for j, v := range tables[1] {
			t.class = append(t.class, v+t.table[j])
		}
		t.table = t.table[t.Config.Width:]
	}
}

// read returns the elements of a step's tensors, one tensor after another.
func (f fill) read(read Read) (kernels.Buffer, error) {
	x, err := f.joined(read)
	if err != nil || f.unit == 0 || x.Len() != f.len {
		return x, err
	}
	if x.DType() == kernels.BF16 {
		return kernels.HostBits(patchwiseRows(kernels.Bits(x), f.w.In, f.unit)), nil
	}
	return kernels.Host(patchwiseRows(kernels.Elems[float32](x), f.w.In, f.unit)), nil
}

// patchwiseRows returns rows [in/unit,unit] as rows [unit,in/unit].
func patchwiseRows[T any](x []T, in, unit int) []T {
	out, C := make([]T, len(x)), in/unit
	for i := range out {
		row, at := i/in*in, i%in
		out[i] = x[row+at%C*unit+at/C]
	}
	return out
}

func (f fill) joined(read Read) (kernels.Buffer, error) {
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

// floats returns the elements of host memory.
func floats(x kernels.Buffer) (list []float64) {
	if x.DType() == kernels.F32 {
		for _, v := range kernels.Elems[float32](x) {
			list = append(list, float64(v))
		}
		return list
	}
	for _, b := range kernels.Bits(x) {
		list = append(list, float64(widened(b)))
	}
	return list
}
