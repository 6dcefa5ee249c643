package torchfile

import (
	"bytes"
	"encoding/binary"

	"exp/train/checkpoint/fault"
)

// Limits of a pickle. Pickles of real checkpoints have some 10,000 nodes and depth 20.
const (
	maxPickle = 256 << 20
	maxNodes  = 10_000_000
	maxDepth  = 1000
	maxName   = 1000 // bytes of a global
)

// maxRoom bounds the items that there is room for from the start.
const maxRoom = 1 << 22

// Values with one shared node per pickle: integers from 0, and these.
const (
	sharedInts = 256
	sharedNone = iota + sharedInts - 1
	sharedFalse
	sharedTrue
	sharedTuple // empty
)

// machine runs the opcodes of a pickle, each at most once.
type machine struct {
	*data
	pos   int
	op    int // position of the current opcode
	stack []uint32
	marks []int    // stack heights
	memo  []uint32 // node + 1; 0 is unset
	// shared are the nodes, + 1, of values that come often and never change.
	shared [sharedTuple + 1]uint32
	// paired counts the items of ordered dicts that were given as lists.
	paired int
}

// Decode decodes a bare pickle, such as .metadata of torch's distributed checkpoints. name
// is for errors. Tensors in it have no storages and cannot be read.
func Decode(name string, pickle []byte) (Node, error) { return decode(&data{name: name, raw: pickle}) }

func decode(d *data) (Node, error) {
	if len(d.raw) > maxPickle {
		return Node{}, fault.Corrupt(d.name, "", "the pickle has %d bytes, over the limit of %d", len(d.raw),
			maxPickle)
	}
	// Every push takes a byte, and so does every item. Memory that is not touched costs
	// nothing, growing slices would leave garbage of their size.
	room := min(len(d.raw), maxRoom)
	d.kids = make([]uint32, 0, room)
	m := &machine{data: d, stack: make([]uint32, 0, room)}
	for {
		m.op = m.pos
		code, err := m.take(1)
		if err != nil {
			return Node{}, err
		}
		if code[0] == opStop {
			root, err := m.pop()
			d.text = string(d.raw)
			return Node{d, root}, err
		}
		if err := m.step(code[0]); err != nil {
			return Node{}, err
		}
	}
}

// bad returns an error at the current opcode.
func (m *machine) bad(format string, args ...any) error {
	return fault.Corrupt(m.name, "", "pickle, byte %d: "+format, append([]any{m.op}, args...)...)
}

// take returns the next n bytes.
func (m *machine) take(n uint64) ([]byte, error) {
	if n > uint64(len(m.raw)-m.pos) {
		return nil, m.bad("the pickle ends here, %d bytes too early", n-uint64(len(m.raw)-m.pos))
	}
	b := m.raw[m.pos : m.pos+int(n)]
	m.pos += int(n)
	return b, nil
}

// uint returns a little-endian number of n bytes.
func (m *machine) uint(n uint64) (uint64, error) {
	b, err := m.take(n)
	var v uint64
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v, err
}

// skipLine skips the bytes up to the next newline.
func (m *machine) skipLine() error {
	n := bytes.IndexByte(m.raw[m.pos:], '\n')
	if n < 0 {
		return m.bad("a name without an end")
	}
	_, err := m.take(uint64(n) + 1)
	return err
}

func (m *machine) push(i uint32) error {
	m.stack = append(m.stack, i)
	return nil
}

// add makes a node and pushes it.
func (m *machine) add(x node) error {
	i, err := m.make(x)
	if err != nil {
		return err
	}
	return m.push(i)
}

// addShared is add for a value that never changes: equal values share one node.
func (m *machine) addShared(which int, x node) error {
	if i := m.shared[which]; i > 0 {
		return m.push(i - 1)
	}
	i, err := m.make(x)
	if err != nil {
		return err
	}
	m.shared[which] = i + 1
	return m.push(i)
}

// make makes a node.
func (m *machine) make(x node) (uint32, error) {
	if m.count >= maxNodes {
		return 0, m.bad("over the limit of %d objects", maxNodes)
	}
	if x.depth > maxDepth {
		return 0, m.bad("nested deeper than %d", maxDepth)
	}
	return m.data.add(x), nil
}

// floor is the height below which the stack belongs to an outer mark.
func (m *machine) floor() int {
	if len(m.marks) == 0 {
		return 0
	}
	return m.marks[len(m.marks)-1]
}

func (m *machine) pop() (uint32, error) {
	if len(m.stack) <= m.floor() {
		return 0, m.bad("the stack is empty")
	}
	i := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return i, nil
}

func (m *machine) top() (uint32, error) {
	if len(m.stack) <= m.floor() {
		return 0, m.bad("the stack is empty")
	}
	return m.stack[len(m.stack)-1], nil
}

// popN returns the n uppermost nodes. They are valid until the next push.
func (m *machine) popN(n int) ([]uint32, error) {
	if len(m.stack)-m.floor() < n {
		return nil, m.bad("the stack is empty")
	}
	list := m.stack[len(m.stack)-n:]
	m.stack = m.stack[:len(m.stack)-n]
	return list, nil
}

// popMark returns the nodes above the last mark. They are valid until the next push.
func (m *machine) popMark() ([]uint32, error) {
	if len(m.marks) == 0 {
		return nil, m.bad("no mark")
	}
	at := m.marks[len(m.marks)-1]
	m.marks = m.marks[:len(m.marks)-1]
	list := m.stack[at:]
	m.stack = m.stack[:at]
	return list, nil
}

// below returns the depth of something that holds the nodes.
func (m *machine) below(list ...uint32) uint16 {
	depth := uint16(0)
	for _, i := range list {
		depth = max(depth, m.at(i).depth)
	}
	return depth + 1
}

// tuple pushes a tuple.
func (m *machine) tuple(list []uint32, err error) error {
	if err != nil {
		return err
	}
	x := node{kind: Tuple, depth: m.below(list...), n: uint32(len(list)), v: uint64(len(m.kids))}
	m.kids = append(m.kids, list...)
	return m.add(x)
}

// text pushes a string or bytes whose length is a number of size bytes.
func (m *machine) text(kind Kind, size uint64) error {
	n, err := m.uint(size)
	if err != nil {
		return err
	}
	at := m.pos
	if _, err := m.take(n); err != nil {
		return err
	}
	return m.add(node{kind: kind, v: span(at, int(n))})
}

// long pushes an integer in two's complement whose length is a number of size bytes.
func (m *machine) long(size uint64) error {
	n, err := m.uint(size)
	if err != nil {
		return err
	}
	at := m.pos
	b, err := m.take(n)
	if err != nil {
		return err
	}
	if n > 8 {
		return m.add(node{kind: bigInt, v: span(at, int(n))})
	}
	var word [8]byte
	if n > 0 && b[n-1] >= 0x80 {
		word = [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	}
	copy(word[:], b)
	return m.add(node{kind: Int, v: binary.LittleEndian.Uint64(word[:])})
}

func (m *machine) float() error {
	b, err := m.take(8)
	if err != nil {
		return err
	}
	return m.add(node{kind: Float, v: binary.BigEndian.Uint64(b)})
}

// global pushes a name: two lines.
func (m *machine) global() error {
	at := m.pos
	if err := m.skipLine(); err != nil {
		return err
	}
	if err := m.skipLine(); err != nil {
		return err
	}
	if m.pos-at > maxName {
		return m.bad("a name of %d bytes", m.pos-at)
	}
	return m.add(node{kind: Global, v: span(at, m.pos-at)})
}

// stackGlobal pushes a name: two strings.
func (m *machine) stackGlobal() error {
	list, err := m.popN(2)
	if err != nil {
		return err
	}
	for _, i := range list {
		if x := m.at(i); x.kind != String || len(m.data.bytes(x.v)) > maxName {
			return m.bad("the name of a global is not a short string")
		}
	}
	return m.add(node{kind: globalPair, v: uint64(list[0])<<32 | uint64(list[1])})
}

// persistent pushes a reference to what the archive holds outside of the pickle.
func (m *machine) persistent() error {
	id, err := m.pop()
	if err != nil {
		return err
	}
	return m.add(node{kind: Storage, depth: m.below(id), v: uint64(id)})
}

// put remembers the uppermost node.
func (m *machine) put(index uint64) error {
	i, err := m.top()
	if err != nil {
		return err
	}
	if index > uint64(m.pos) { // every object took a byte
		return m.bad("memo %d after only %d bytes", index, m.pos)
	}
	for uint64(len(m.memo)) <= index {
		m.memo = append(m.memo, 0)
	}
	m.memo[index] = i + 1
	return nil
}

// get pushes a remembered node.
func (m *machine) get(index uint64) error {
	if index >= uint64(len(m.memo)) || m.memo[index] == 0 {
		return m.bad("memo %d is not set", index)
	}
	return m.push(m.memo[index] - 1)
}
