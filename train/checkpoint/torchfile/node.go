package torchfile

import (
	"io"
	"iter"
	"math"
	"strings"
	"unicode/utf8"
)

// Kind is the kind of a Node.
type Kind uint8

// The kinds of nodes. The zero Node is Missing.
const (
	Missing Kind = iota
	None
	Bool
	Int
	Float
	String
	Bytes
	Tuple
	List
	Dict
	Set
	Global  // the name of a class, function or constant
	Storage // a reference to elements in the archive
	Object  // what a global would construct: a tensor, or something opaque

	bigInt     // an integer of more than 64 bits
	globalPair // a global whose two names are strings
)

func (k Kind) String() string {
	names := [...]string{"nothing", "None", "a bool", "an integer", "a float", "a string", "bytes", "a tuple",
		"a list", "a dict", "a set", "a global", "a storage", "an object"}
	if int(k) < len(names) {
		return names[k]
	}
	return "?"
}

// data holds the nodes of a pickle in little memory: a hostile pickle makes one from each
// of its bytes.
type data struct {
	name    string // of the file, for errors
	raw     []byte // the pickle
	text    string // its bytes again once it is decoded: parts of it are names at no cost
	count   int
	chunks  [][]node
	kids    []uint32 // nodes in tuples and runs
	runs    []run
	archive *archive // nil for a bare pickle
}

// node is one value. Its number says where it is; what v means depends on kind:
//
//	Bool, Int, Float          the value
//	String, Bytes, bigInt     span of raw
//	Global                    span of raw: two lines
//	globalPair                two strings
//	Tuple                     first of n kids
//	List, Dict, Set           first and last run, each + 1
//	Storage                   its id
//	Object                    global and arguments
type node struct {
	kind  Kind
	depth uint16
	n     uint32 // Tuple: its length; Object, Dict: the state + 1
	v     uint64
}

// run is a part of a list or dict: kids[from, from+n), then run next-1.
type run struct{ from, n, next uint32 }

const chunkNodes = 1 << 12

func (d *data) add(x node) uint32 {
	if d.count%chunkNodes == 0 {
		// A pickle has at most a node for each byte: a short one needs one short chunk.
		d.chunks = append(d.chunks, make([]node, min(chunkNodes, len(d.raw))))
	}
	d.chunks[d.count/chunkNodes][d.count%chunkNodes] = x
	d.count++
	return uint32(d.count - 1)
}

func (d *data) at(i uint32) *node { return &d.chunks[i/chunkNodes][i%chunkNodes] }

// extend adds items to a list, dict or set.
func (d *data) extend(x *node, list []uint32) {
	if len(list) == 0 {
		return
	}
	from, before := uint32(len(d.kids)), uint32(x.v)
	d.kids = append(d.kids, list...)
	if before > 0 && d.runs[before-1].from+d.runs[before-1].n == from {
		d.runs[before-1].n += uint32(len(list))
		return
	}
	d.runs = append(d.runs, run{from: from, n: uint32(len(list))})
	last := uint32(len(d.runs))
	if before > 0 {
		d.runs[before-1].next = last
		x.v = x.v&^math.MaxUint32 | uint64(last)
	} else {
		x.v = uint64(last)<<32 | uint64(last)
	}
}

// named reports whether node i is a global of that name.
func (d *data) named(i uint32, module, name string) bool {
	switch x := d.at(i); x.kind {
	case Global:
		text := d.bytes(x.v)
		n := len(module)
		return len(text) == n+len(name)+2 && string(text[:n]) == module && text[n] == '\n' &&
			string(text[n+1:len(text)-1]) == name
	case globalPair:
		return string(d.bytes(d.at(uint32(x.v>>32)).v)) == module && string(d.bytes(d.at(uint32(x.v)).v)) == name
	}
	return false
}

// span packs a range of bytes of the pickle.
func span(at, n int) uint64 { return uint64(at)<<32 | uint64(n) }

func (d *data) bytes(v uint64) []byte { return d.raw[v>>32:][:v&math.MaxUint32] }

// Node is a value of a pickle. The zero Node is a missing value. Safe for concurrent
// use.
type Node struct {
	d *data
	i uint32
}

func (n Node) node() node {
	if n.d == nil {
		return node{}
	}
	return *n.d.at(n.i)
}

// Kind returns the kind of n.
func (n Node) Kind() Kind {
	switch k := n.node().kind; k {
	case bigInt:
		return Int
	case globalPair:
		return Global
	default:
		return k
	}
}

// Bool returns the value of a bool.
func (n Node) Bool() (v, ok bool) {
	x := n.node()
	return x.v == 1, x.kind == Bool
}

// Int returns the value of an integer of at most 64 bits.
func (n Node) Int() (v int64, ok bool) {
	x := n.node()
	return int64(x.v), x.kind == Int
}

// Float returns the value of a float or of an integer of at most 64 bits.
func (n Node) Float() (v float64, ok bool) {
	switch x := n.node(); x.kind {
	case Float:
		return math.Float64frombits(x.v), true
	case Int:
		return float64(int64(x.v)), true
	}
	return 0, false
}

// Text returns the value of a string. Invalid UTF-8 becomes U+FFFD, and then it
// has at most maxName bytes: a hostile pickle names one long string many times.
func (n Node) Text() (v string, ok bool) {
	x := n.node()
	if x.kind != String {
		return "", false
	}
	v = n.d.text[x.v>>32:][:x.v&math.MaxUint32]
	if utf8.ValidString(v) {
		return v, true
	}
	return strings.ToValidUTF8(v[:min(len(v), maxName)], "\uFFFD"), true
}

// Len returns the number of items of a tuple, list or set, or of pairs of a dict.
func (n Node) Len() int {
	x := n.node()
	switch x.kind {
	case Tuple:
		return int(x.n)
	case List, Set, Dict:
		total := 0
		for part := range n.runs() {
			total += len(part)
		}
		if x.kind == Dict {
			total /= 2
		}
		return total
	}
	return 0
}

// runs yields the kids of a tuple, list, set or dict in pieces.
func (n Node) runs() iter.Seq[[]uint32] {
	return func(yield func([]uint32) bool) {
		x := n.node()
		switch x.kind {
		case Tuple:
			yield(n.d.kids[x.v:][:x.n])
		case List, Set, Dict:
			for next := uint32(x.v >> 32); next > 0; {
				r := n.d.runs[next-1]
				if !yield(n.d.kids[r.from:][:r.n]) {
					return
				}
				next = r.next
			}
		}
	}
}

// Items yields the items of a tuple, list or set.
func (n Node) Items() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		if n.Kind() == Dict {
			return
		}
		for part := range n.runs() {
			for _, i := range part {
				if !yield(Node{n.d, i}) {
					return
				}
			}
		}
	}
}

// Pairs yields keys and values of a dict in the order of setting; a key may come twice, and
// the later value counts.
func (n Node) Pairs() iter.Seq2[Node, Node] {
	return func(yield func(k, v Node) bool) {
		if n.Kind() != Dict {
			return
		}
		for part := range n.runs() {
			for i := 0; i < len(part); i += 2 {
				if !yield(Node{n.d, part[i]}, Node{n.d, part[i+1]}) {
					return
				}
			}
		}
	}
}

// At returns item i of a tuple, list or set, or a missing node.
func (n Node) At(i int) Node {
	if i < 0 || n.Kind() == Dict {
		return Node{}
	}
	for part := range n.runs() {
		if i < len(part) {
			return Node{n.d, part[i]}
		}
		i -= len(part)
	}
	return Node{}
}

// Get returns the value of a key of a dict, or of the state of an object: an attribute; or a
// missing node. It reads all keys.
func (n Node) Get(key string) Node {
	if n.Kind() == Object {
		n = n.State()
	}
	var found Node
	for k, v := range n.Pairs() {
		if x := k.node(); x.kind == String && string(k.d.bytes(x.v)) == key {
			found = v
		}
	}
	return found
}

// Name returns the name of a global, or of an object's: "argparse.Namespace"; "" for other
// nodes.
func (n Node) Name() string {
	x := n.node()
	switch x.kind {
	case Global:
		return strings.ReplaceAll(strings.ToValidUTF8(strings.TrimSuffix(string(n.d.bytes(x.v)), "\n"), "\uFFFD"),
			"\n", ".")
	case globalPair:
		module, _ := Node{n.d, uint32(x.v >> 32)}.Text()
		name, _ := Node{n.d, uint32(x.v)}.Text()
		return module + "." + name
	case Object:
		if fn := (Node{n.d, uint32(x.v >> 32)}); fn.Kind() == Global {
			return fn.Name()
		}
		return "?"
	}
	return ""
}

// Args returns the arguments of an object, a tuple.
func (n Node) Args() Node {
	if x := n.node(); x.kind == Object {
		return Node{n.d, uint32(x.v)}
	}
	return Node{}
}

// State returns the state of an object or ordered dict: its attributes, if that is a dict.
// If attributes and slots are stored as a pair, it is the part that is present.
func (n Node) State() Node {
	x := n.node()
	if x.kind != Object && x.kind != Dict || x.n == 0 {
		return Node{}
	}
	state := Node{n.d, x.n - 1}
	if state.Kind() == Tuple && state.Len() == 2 {
		for part := range state.Items() {
			if part.Kind() == Dict && part.Len() > 0 {
				return part
			}
		}
	}
	return state
}

// archive is the zip file around a pickle.
type archive struct {
	r       io.ReaderAt
	entries map[string]entry // by their names below data/
}
