package torchsave

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// Python values to be written.
type (
	// Tuple is Python's tuple.
	Tuple []any
	// List is Python's list.
	List []any
	// Dict is Python's dict, or its OrderedDict; items keep their order.
	Dict struct {
		Ordered bool
		Items   []Item
	}
	// Item is a key of a Dict and its value.
	Item struct {
		Key   string
		Value any
	}
	// Global is a class or function of a module.
	Global struct{ Module, Name string }
	// Call is the result of a function.
	Call struct {
		Func Global
		Args Tuple
	}
	// Object is an object of a class, made without its constructor. A *Dict State sets its
	// attributes; a class with a __setstate__ gets it, whatever it is. nil sets nothing.
	Object struct {
		Class Global
		Args  Tuple // of __new__
		State any
	}
)

// Set adds an item.
func (d *Dict) Set(key string, value any) { d.Items = append(d.Items, Item{key, value}) }

// Opcodes of Python's pickle protocol 2 that are written.
const (
	opProto      = 0x80
	opStop       = '.'
	opMark       = '('
	opNone       = 'N'
	opTrue       = 0x88
	opFalse      = 0x89
	opInt1       = 'K' // one byte
	opInt2       = 'M' // two bytes
	opInt4       = 'J' // four bytes, signed
	opLong1      = 0x8a
	opFloat      = 'G'
	opUnicode    = 'X'
	opEmptyTuple = ')'
	opTuple1     = 0x85
	opTuple      = 't'
	opEmptyList  = ']'
	opAppends    = 'e'
	opEmptyDict  = '}'
	opSetItems   = 'u'
	opGlobal     = 'c'
	opReduce     = 'R'
	opNewObject  = 0x81
	opBuild      = 'b'
	opPersistent = 'Q'
	opPut1       = 'q'
	opPut4       = 'r'
	opGet1       = 'h'
	opGet4       = 'j'
)

// pickler writes a value as a pickle of protocol 2, and collects its storages.
type pickler struct {
	buf      []byte
	memo     map[any]int // by string, Global or pointer
	keys     map[*Content]int
	storages []*Content
	err      error
}

func newPickler() *pickler {
	p := &pickler{memo: map[any]int{}, keys: map[*Content]int{}}
	p.buf = append(p.buf, opProto, 2)
	return p
}

func (p *pickler) op(code byte) { p.buf = append(p.buf, code) }

// put writes a value.
func (p *pickler) put(value any) {
	switch v := value.(type) {
	case nil:
		p.op(opNone)
	case bool:
		if v {
			p.op(opTrue)
		} else {
			p.op(opFalse)
		}
	case int:
		p.integer(v)
	case float64:
		p.op(opFloat)
		p.buf = binary.BigEndian.AppendUint64(p.buf, math.Float64bits(v))
	case string:
		p.once(v, func() {
			p.op(opUnicode)
			p.buf = binary.LittleEndian.AppendUint32(p.buf, uint32(len(v)))
			p.buf = append(p.buf, v...)
		})
	case Tuple:
		p.tuple(v)
	case List:
		p.op(opEmptyList)
		p.marked(v, opAppends)
	case Global:
		p.once(v, func() {
			p.op(opGlobal)
			p.buf = append(p.buf, v.Module+"\n"+v.Name+"\n"...)
		})
	case Call:
		p.put(v.Func)
		p.tuple(v.Args)
		p.op(opReduce)
	case *Dict, *Object, *View:
		p.reference(v)
	default:
		p.fail("a value of type %T cannot be pickled", v)
	}
}

func (p *pickler) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// reference writes a value that may occur more than once.
func (p *pickler) reference(value any) {
	if p.get(value) {
		return
	}
	switch v := value.(type) {
	case *Dict:
		if v.Ordered {
			p.put(Call{Func: Global{"collections", "OrderedDict"}})
		} else {
			p.op(opEmptyDict)
		}
		p.remember(v) // before its items: they may refer to it
		var items []any
		for _, item := range v.Items {
			items = append(items, item.Key, item.Value)
		}
		p.marked(items, opSetItems)
	case *Object:
		p.put(v.Class)
		p.tuple(v.Args)
		p.op(opNewObject)
		p.remember(v)
		if v.State != nil {
			p.put(v.State)
			p.op(opBuild)
		}
	case *View:
		p.view(v)
		p.remember(v)
	}
}

// once writes a value the first time, and a reference to it later.
func (p *pickler) once(value any, write func()) {
	if !p.get(value) {
		write()
		p.remember(value)
	}
}

// get writes a reference to a value, if it has been written.
func (p *pickler) get(value any) bool {
	n, ok := p.memo[value]
	if ok {
		p.indexed(opGet1, opGet4, n)
	}
	return ok
}

// remember gives the value just written a number.
func (p *pickler) remember(value any) {
	n := len(p.memo)
	p.memo[value] = n
	p.indexed(opPut1, opPut4, n)
}

// indexed writes an opcode with a number, in the short form if it fits.
func (p *pickler) indexed(short, long byte, n int) {
	if n < 1<<8 {
		p.buf = append(p.buf, short, byte(n))
		return
	}
	p.op(long)
	p.buf = binary.LittleEndian.AppendUint32(p.buf, uint32(n))
}

func (p *pickler) integer(v int) {
	switch {
	case v >= 0 && v < 1<<8:
		p.buf = append(p.buf, opInt1, byte(v))
	case v >= 0 && v < 1<<16:
		p.op(opInt2)
		p.buf = binary.LittleEndian.AppendUint16(p.buf, uint16(v))
	case int(int32(v)) == v:
		p.op(opInt4)
		p.buf = binary.LittleEndian.AppendUint32(p.buf, uint32(v))
	default:
		p.buf = append(p.buf, opLong1, 8)
		p.buf = binary.LittleEndian.AppendUint64(p.buf, uint64(v))
	}
}

func (p *pickler) tuple(v Tuple) {
	if n := len(v); n <= 3 {
		for _, x := range v {
			p.put(x)
		}
		if n == 0 {
			p.op(opEmptyTuple)
		} else {
			p.op(opTuple1 + byte(n-1))
		}
		return
	}
	p.marked(v, opTuple)
}

// marked writes values between a mark and an opcode that takes them all.
func (p *pickler) marked(values []any, end byte) {
	if len(values) == 0 {
		return
	}
	p.op(opMark)
	for _, v := range values {
		p.put(v)
	}
	p.op(end)
}

// view writes a tensor as the call that rebuilds it.
func (p *pickler) view(v *View) {
	stride := v.Stride
	if stride == nil {
		stride = Contiguous(v.Shape)
	}
	p.put(Global{"torch._utils", "_rebuild_tensor_v2"})
	p.op(opMark)
	p.storage(v.Content)
	p.integer(v.Offset)
	p.tuple(Integers(v.Shape))
	p.tuple(Integers(stride))
	p.op(opFalse)                                           // requires_grad
	p.put(Call{Func: Global{"collections", "OrderedDict"}}) // backward hooks
	p.op(opTuple)
	p.op(opReduce)
}

// storage writes the reference to a storage.
func (p *pickler) storage(s *Content) {
	t, ok := storageTypes()[s.DType]
	if !ok {
		p.fail("torch has no storage for elements of type %s", s.DType)
	}
	key, ok := p.keys[s]
	if !ok {
		key = len(p.storages)
		p.keys[s] = key
		p.storages = append(p.storages, s)
	}
	p.tuple(Tuple{"storage", Global{"torch", t.class}, strconv.Itoa(key), "cpu", s.Len})
	p.op(opPersistent)
}

// DTypeOf returns torch's object for an element type: torch.float32 for "F32".
func DTypeOf(dtype string) Global { return Global{"torch", storageTypes()[dtype].dtype} }

// Integers returns a list as a tuple.
func Integers(list []int) Tuple {
	t := make(Tuple, len(list))
	for i, n := range list {
		t[i] = n
	}
	return t
}

// Contiguous returns the strides of a row-major tensor without gaps.
func Contiguous(shape []int) []int {
	stride := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		stride[i] = n
		n *= max(shape[i], 1)
	}
	return stride
}
