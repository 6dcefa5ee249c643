package torchfile

// Opcodes of pickles (Python's pickletools) that torch.save and megatron-core write, and
// their companions in protocols 3 to 5.
const (
	opMark            = '('
	opStop            = '.'
	opBinFloat        = 'G'
	opBinInt          = 'J'
	opBinInt1         = 'K'
	opBinInt2         = 'M'
	opNone            = 'N'
	opBinPersID       = 'Q'
	opReduce          = 'R'
	opBinUnicode      = 'X'
	opAppend          = 'a'
	opBuild           = 'b'
	opGlobal          = 'c'
	opAppends         = 'e'
	opBinGet          = 'h'
	opLongBinGet      = 'j'
	opBinPut          = 'q'
	opLongBinPut      = 'r'
	opSetItem         = 's'
	opTuple           = 't'
	opSetItems        = 'u'
	opEmptyTuple      = ')'
	opEmptyList       = ']'
	opEmptyDict       = '}'
	opBinBytes        = 'B'
	opShortBinBytes   = 'C'
	opProto           = 0x80
	opNewObj          = 0x81
	opTuple1          = 0x85
	opTuple2          = 0x86
	opTuple3          = 0x87
	opNewTrue         = 0x88
	opNewFalse        = 0x89
	opLong1           = 0x8a
	opLong4           = 0x8b
	opShortBinUnicode = 0x8c
	opBinUnicode8     = 0x8d
	opEmptySet        = 0x8f
	opAddItems        = 0x90
	opStackGlobal     = 0x93
	opMemoize         = 0x94
	opFrame           = 0x95
)

// step runs one opcode.
func (m *machine) step(code byte) error {
	switch code {
	case opProto:
		v, err := m.uint(1)
		if err == nil && v > 5 {
			err = m.bad("protocol %d is not supported", v)
		}
		return err
	case opFrame: // its contents follow as if there were no frame
		n, err := m.uint(8)
		if err == nil && n > uint64(len(m.raw)-m.pos) {
			err = m.bad("a frame of %d bytes, but %d are left", n, len(m.raw)-m.pos)
		}
		return err
	case opMark:
		if len(m.marks) >= maxDepth {
			return m.bad("nested deeper than %d", maxDepth)
		}
		m.marks = append(m.marks, len(m.stack))
		return nil
	case opBinPut, opLongBinPut, opMemoize, opBinGet, opLongBinGet:
		return m.remember(code)
	case opTuple, opEmptyTuple, opTuple1, opTuple2, opTuple3, opEmptyList, opEmptyDict, opEmptySet:
		return m.collection(code)
	case opAppend, opAppends, opSetItem, opSetItems, opAddItems:
		return m.fill(code)
	case opGlobal:
		return m.global()
	case opStackGlobal:
		return m.stackGlobal()
	case opReduce, opNewObj:
		return m.construct()
	case opBuild:
		return m.build()
	case opBinPersID:
		return m.persistent()
	}
	return m.plain(code)
}

// plain pushes a value without parts.
func (m *machine) plain(code byte) error {
	switch code {
	case opNone:
		return m.addShared(sharedNone, node{kind: None})
	case opNewTrue:
		return m.addShared(sharedTrue, node{kind: Bool, v: 1})
	case opNewFalse:
		return m.addShared(sharedFalse, node{kind: Bool})
	case opBinInt, opBinInt1, opBinInt2:
		v, err := m.uint(map[byte]uint64{opBinInt: 4, opBinInt1: 1, opBinInt2: 2}[code])
		if err != nil {
			return err
		}
		if code == opBinInt {
			v = uint64(int64(int32(v)))
		}
		if v < sharedInts {
			return m.addShared(int(v), node{kind: Int, v: v})
		}
		return m.add(node{kind: Int, v: v})
	case opLong1:
		return m.long(1)
	case opLong4:
		return m.long(4)
	case opBinFloat:
		return m.float()
	case opShortBinUnicode:
		return m.text(String, 1)
	case opBinUnicode:
		return m.text(String, 4)
	case opBinUnicode8:
		return m.text(String, 8)
	case opShortBinBytes:
		return m.text(Bytes, 1)
	case opBinBytes:
		return m.text(Bytes, 4)
	}
	return m.bad("opcode %#02x is not supported", code)
}

// remember runs an opcode of the memo.
func (m *machine) remember(code byte) error {
	if code == opMemoize {
		return m.put(uint64(len(m.memo)))
	}
	size := uint64(1)
	if code == opLongBinPut || code == opLongBinGet {
		size = 4
	}
	index, err := m.uint(size)
	if err != nil {
		return err
	}
	if code == opBinPut || code == opLongBinPut {
		return m.put(index)
	}
	return m.get(index)
}

// collection pushes a tuple, or an empty list, dict or set.
func (m *machine) collection(code byte) error {
	switch code {
	case opTuple:
		return m.tuple(m.popMark())
	case opEmptyTuple:
		return m.addShared(sharedTuple, node{kind: Tuple, depth: 1})
	case opTuple1:
		return m.tuple(m.popN(1))
	case opTuple2:
		return m.tuple(m.popN(2))
	case opTuple3:
		return m.tuple(m.popN(3))
	case opEmptyList:
		return m.add(node{kind: List, depth: 1})
	case opEmptyDict:
		return m.add(node{kind: Dict, depth: 1})
	}
	return m.add(node{kind: Set, depth: 1})
}

// fill adds items to a list, dict or set. Items of an opaque object are not kept.
func (m *machine) fill(code byte) error {
	var list []uint32
	var err error
	switch code {
	case opAppend:
		list, err = m.popN(1)
	case opSetItem:
		list, err = m.popN(2)
	default:
		list, err = m.popMark()
	}
	if err != nil {
		return err
	}
	to, err := m.top()
	if err != nil {
		return err
	}
	x := m.at(to)
	want := List
	switch code {
	case opSetItem, opSetItems:
		want = Dict
		if len(list)%2 != 0 {
			return m.bad("a key without a value")
		}
	case opAddItems:
		want = Set
	}
	if x.kind == Object {
		return nil
	}
	if x.kind != want {
		return m.bad("items for something that takes none")
	}
	x.depth = max(x.depth, m.below(list...))
	if x.depth > maxDepth {
		return m.bad("nested deeper than %d", maxDepth)
	}
	m.extend(x, list)
	return nil
}

// construct pushes what calling a global gives: a dict or tuple for the globals that mean
// one, else an object.
func (m *machine) construct() error {
	list, err := m.popN(2)
	if err != nil {
		return err
	}
	fn, args := list[0], Node{m.data, list[1]}
	if m.at(list[1]).kind != Tuple {
		return m.bad("arguments that are not a tuple")
	}
	only := args.At(0)
	switch {
	case m.named(fn, "collections", "OrderedDict") && args.Len() < 2:
		return m.orderedDict(args)
	case m.named(fn, "collections", "defaultdict"):
		return m.add(node{kind: Dict, depth: 1})
	case m.named(fn, "torch", "Size") && args.Len() == 1 && (only.Kind() == Tuple || only.Kind() == List):
		return m.push(only.i)
	}
	return m.add(node{kind: Object, depth: m.below(fn, args.i), v: uint64(fn)<<32 | uint64(args.i)})
}

// orderedDict pushes a dict with the pairs that its only argument may list.
func (m *machine) orderedDict(args Node) error {
	var pairs []uint32
	for list := range args.Items() {
		for pair := range list.Items() {
			if (pair.Kind() != Tuple && pair.Kind() != List) || pair.Len() != 2 {
				return m.bad("an ordered dict of something other than pairs")
			}
			pairs = append(pairs, pair.At(0).i, pair.At(1).i)
		}
	}
	x := node{kind: Dict, depth: m.below(pairs...)}
	if m.paired += len(pairs); m.paired > len(m.raw) { // one list must not fill many dicts
		return m.bad("more pairs than the pickle has bytes")
	}
	m.extend(&x, pairs)
	return m.add(x)
}

// build sets the state of an object or of an ordered dict.
func (m *machine) build() error {
	state, err := m.pop()
	if err != nil {
		return err
	}
	to, err := m.top()
	if err != nil {
		return err
	}
	x := m.at(to)
	if x.kind != Object && x.kind != Dict || x.n != 0 {
		return m.bad("a state for something that takes none, or a second one")
	}
	x.n = state + 1
	if x.depth = max(x.depth, m.below(state)); x.depth > maxDepth {
		return m.bad("nested deeper than %d", maxDepth)
	}
	return nil
}
