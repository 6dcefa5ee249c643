package torchfile

import (
	"encoding/binary"
	"math/bits"
	"os"

	"exp/train/checkpoint/extent"
	"exp/train/checkpoint/fault"
)

// Tensor is a view of a storage, which holds all its elements.
type Tensor struct {
	DType   string // as safetensors spells it
	Shape   []int
	Strides []int // elements
	Offset  int   // elements
	Key     string
	At      int64 // where storage Key begins in the reader
	Bytes   int64 // size of the storage

	size int64 // bytes of an element
	node Node
}

// Len returns the number of elements.
func (t Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Contiguous reports whether the elements lie in row-major order without gaps.
func (t Tensor) Contiguous() bool {
	step := 1
	for k := len(t.Shape) - 1; k >= 0; k-- {
		if t.Shape[k] != 1 && t.Strides[k] != step {
			return t.Len() == 0
		}
		step *= t.Shape[k]
	}
	return true
}

// Extent returns the elements in row-major order. f is the file whose reader Open had.
func (t Tensor) Extent(f *os.File) extent.Extent {
	storage := extent.Range(f, t.At, t.Bytes)
	begin, n := int64(t.Offset)*t.size, int64(t.Len())*t.size
	if t.Contiguous() {
		return storage.Slice(min(begin, t.Bytes), n)
	}
	loops := make([]extent.Loop, len(t.Shape))
	for k, d := range t.Shape {
		loops[k] = extent.Loop{N: int64(d), Stride: int64(t.Strides[k]) * t.size}
	}
	return extent.Strided(storage, begin, t.size, loops...)
}

// MaxTensors bounds how many tensors a reader should take from the pickle of n: more than
// any model has, and so few that a small file cannot fill the memory. A new tensor takes at
// least a hundred bytes of a pickle; another name for an existing one takes less.
func (n Node) MaxTensors() int {
	if n.d == nil {
		return 0
	}
	return min(1024+len(n.d.raw)/64, 1<<16)
}

// Functions that a pickle names to make tensors.
const (
	rebuildTensor      = "torch._utils._rebuild_tensor_v2" // storage, offset, size, stride, grad, hooks, metadata
	rebuildUntyped     = "torch._utils._rebuild_tensor_v3" // the same, but dtype before metadata
	rebuildParameter   = "torch._utils._rebuild_parameter" // data, grad, hooks
	rebuildWithState   = "torch._utils._rebuild_parameter_with_state"
	rebuildFromType    = "torch._tensor._rebuild_from_type_v2" // function, type, arguments, state
	rebuildFromTypeOld = "torch._tensor._rebuild_from_type"    // function, type, arguments
	rebuildWrapper     = "torch._utils._rebuild_wrapper_subclass"
)

// IsTensor reports whether n is meant to be a tensor, on its own or of several ranks. It
// may still be damaged.
func (n Node) IsTensor() bool {
	switch n.Name() {
	case rebuildTensor, rebuildUntyped, rebuildParameter, rebuildWithState, rebuildFromType, rebuildFromTypeOld:
		return n.Kind() == Object
	}
	return false
}

// Tensor returns n as a tensor, saved alone or as a parameter. For any other node, the error
// names what n is.
func (n Node) Tensor() (Tensor, error) {
	if n.d == nil {
		return Tensor{}, fault.Refuse("pickle", "", "", "no tensor is there")
	}
	fn, args := n.Name(), n.Args()
	for range maxDepth {
		switch fn {
		case rebuildParameter, rebuildWithState:
			n = args.At(0)
			fn, args = n.Name(), n.Args()
		case rebuildFromType, rebuildFromTypeOld:
			if args.At(0).Name() == rebuildWrapper {
				return Tensor{}, n.refuse("is a part of a distributed tensor (%s)", args.At(1).Name())
			}
			fn, args = args.At(0).Name(), args.At(2)
		case rebuildTensor:
			return n.view(args, dtype{}, args.At(6))
		case rebuildUntyped:
			t := dtypeOf(args.At(6).Name())
			if t.name == "" {
				return Tensor{}, n.refuse("has elements of type %s, which is not supported", args.At(6).describe())
			}
			return n.view(args, t, args.At(7))
		default:
			return Tensor{}, n.refuse("is %s, not a tensor", n.describe())
		}
	}
	return Tensor{}, n.bad("parameters nested deeper than %d", maxDepth)
}

func (n Node) refuse(format string, args ...any) error {
	return fault.Refuse(n.file(), "", "", format, args...)
}

func (n Node) bad(format string, args ...any) error {
	return fault.Corrupt(n.file(), "", format, args...)
}

func (n Node) file() string {
	if n.d == nil {
		return ""
	}
	return n.d.name
}

// describe names a node for errors.
func (n Node) describe() string {
	if name := n.Name(); name != "" {
		return fault.ShortName(name)
	}
	return n.Kind().String()
}

// maxAxes bounds the axes of a tensor, as torch does.
const maxAxes = 64

// view reads storage, offset, size and stride. The type is the storage's unless as is set.
func (n Node) view(args Node, as dtype, metadata Node) (t Tensor, err error) {
	t, err = n.storage(args.At(0))
	if err != nil {
		return t, err
	}
	if as.name != "" {
		t.DType, t.size = as.name, as.bytes
	}
	if t.DType == "" {
		return t, n.bad("an untyped storage without an element type")
	}
	offset, ok := args.At(1).Int()
	size, fits := args.At(2).ints(maxAxes)
	strides, fit := args.At(3).ints(maxAxes)
	if !ok || !fits || !fit || offset < 0 || len(size) != len(strides) {
		return t, n.bad("a tensor without an offset, a size and strides")
	}
	for _, v := range metadata.Pairs() {
		if set, ok := v.Bool(); ok && set {
			return t, n.refuse("is stored conjugated or negated; save it with resolve_conj().resolve_neg()")
		}
	}
	t.Offset, t.Shape, t.Strides = int(offset), size, strides
	return t, n.within(t, offset)
}

// maxExpanded bounds tensors with more elements than their storage, such as an expanded
// scalar: small files must not make large ones.
const maxExpanded = 1 << 24

// within checks that a view lies in its storage.
func (n Node) within(t Tensor, offset int64) error {
	last, count := uint64(offset), uint64(1)
	for k, d := range t.Shape {
		if d < 0 || t.Strides[k] < 0 {
			return n.bad("a tensor with size %v and strides %v", t.Shape, t.Strides)
		}
		hi, lo := bits.Mul64(count, uint64(d))
		if hi != 0 || lo > 1<<59 {
			return n.bad("a tensor of size %v is too large", t.Shape)
		}
		count = lo
	}
	if count == 0 {
		return nil
	}
	for k, d := range t.Shape {
		hi, lo := bits.Mul64(uint64(t.Strides[k]), uint64(d-1))
		if hi != 0 || lo > 1<<59 || last > 1<<59 {
			return n.bad("a tensor of size %v and strides %v is too large", t.Shape, t.Strides)
		}
		last += lo
	}
	if has := uint64(t.Bytes / t.size); last >= has {
		return n.bad("a tensor of size %v goes up to element %d of a storage of %d", t.Shape, last, has)
	} else if count > has && count > maxExpanded {
		return n.bad("a tensor of size %v repeats a storage of %d elements too often", t.Shape, has)
	}
	return nil
}

// storage reads a reference to a storage: ("storage", class, key, location, count).
func (n Node) storage(ref Node) (t Tensor, err error) {
	if ref.Kind() != Storage {
		return t, n.bad("a tensor without a storage")
	}
	id := Node{ref.d, uint32(ref.node().v)}
	tag, _ := id.At(0).Text()
	key, ok := id.At(2).Text()
	count, counted := id.At(4).Int()
	if id.Kind() != Tuple || tag != "storage" || !ok || !counted || count < 0 {
		return t, n.bad("a reference that is not to a storage")
	}
	as, ok := storageType(id.At(1).Name())
	if !ok {
		return t, n.refuse("its storage is %s, which is not supported", id.At(1).describe())
	}
	if n.d.archive == nil {
		return t, n.bad("a tensor in a pickle without storages")
	}
	e, ok := n.d.archive.entries[key]
	if !ok {
		return t, n.bad("the archive has no storage %q", fault.ShortName(key))
	}
	at, size, err := e.locate(n.d.name)
	if err != nil {
		return t, err
	}
	if count != size/as.bytes || size%as.bytes != 0 {
		return t, n.bad("storage %q has %d bytes, not %d elements of %d", fault.ShortName(key), size, count, as.bytes)
	}
	return Tensor{DType: as.name, Key: key, At: at, Bytes: size, size: as.bytes, node: n}, nil
}

// ints returns the integers of a tuple or list of at most limit items.
func (n Node) ints(limit int) ([]int, bool) {
	if k := n.Kind(); k != Tuple && k != List || n.Len() > limit {
		return nil, false
	}
	list := []int{}
	for x := range n.Items() {
		v, ok := x.Int()
		if !ok {
			return nil, false
		}
		list = append(list, int(v))
	}
	return list, true
}

// integers reads the elements of a small tensor of integers.
func (t Tensor) integers() ([]int, error) {
	const most = 1 << 16
	n := t.Len()
	if !t.Contiguous() || n > most || t.DType != "I32" && t.DType != "I64" {
		return nil, t.node.bad("a list of ranks is a tensor %s %v", t.DType, t.Shape)
	}
	raw := make([]byte, int64(n)*t.size)
	if _, err := t.node.d.archive.r.ReadAt(raw, t.At+int64(t.Offset)*t.size); err != nil && n > 0 {
		return nil, fault.File("read", t.node.file(), err)
	}
	list := make([]int, n)
	for i := range list {
		if t.DType == "I32" {
			list[i] = int(int32(binary.LittleEndian.Uint32(raw[4*i:])))
		} else {
			list[i] = int(binary.LittleEndian.Uint64(raw[8*i:]))
		}
	}
	return list, nil
}
