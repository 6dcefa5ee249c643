package torchfile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"exp/train/checkpoint/fault"
)

// Pickles by hand: each function returns the opcodes that push a value.

func pickled(parts ...string) []byte { return []byte("\x80\x02" + strings.Join(parts, "") + ".") }

func text(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

func integer(n int) string {
	return "\x8a\x08" + string(binary.LittleEndian.AppendUint64(nil, uint64(int64(n))))
}

func tuple(items ...string) string { return "(" + strings.Join(items, "") + "t" }

func list(items ...string) string { return "](" + strings.Join(items, "") + "e" }

func dict(items ...string) string { return "}(" + strings.Join(items, "") + "u" }

func global(module, name string) string { return "c" + module + "\n" + name + "\n" }

func call(fn string, args ...string) string { return fn + tuple(args...) + "R" }

func ints(v ...int) string {
	var items []string
	for _, n := range v {
		items = append(items, integer(n))
	}
	return tuple(items...)
}

func storage(class, key string, n int) string {
	module, name := cutLast(class)
	return tuple(text("storage"), global(module, name), text(key), text("cpu"), integer(n)) + "Q"
}

// tensor is a call of _rebuild_tensor_v2.
func tensor(storage string, offset int, size, stride []int) string {
	return call(global("torch._utils", "_rebuild_tensor_v2"), storage, integer(offset), ints(size...), ints(stride...),
		"\x89", global("collections", "OrderedDict")+")R")
}

// packed returns an archive as torch.save writes it.
func packed(t testing.TB, pickle []byte, storages map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	add := func(name string, content []byte) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: "top/" + name, Method: zip.Store})
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	add("data.pkl", pickle)
	add("byteorder", []byte("little"))
	for key, content := range storages {
		add("data/"+key, content)
	}
	add("version", []byte("3\n"))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(b []byte) (Node, error) { return Open("x.pt", bytes.NewReader(b), 0, int64(len(b))) }

// show renders a node as text.
func show(n Node) string {
	switch n.Kind() {
	case Bool:
		v, _ := n.Bool()
		return fmt.Sprint(v)
	case Int:
		if v, ok := n.Int(); ok {
			return fmt.Sprint(v)
		}
		return "big"
	case Float:
		v, _ := n.Float()
		return fmt.Sprintf("%g", v)
	case String:
		v, _ := n.Text()
		return fmt.Sprintf("%q", v)
	case Bytes:
		v, _ := n.Bytes()
		return fmt.Sprintf("b%q", v)
	case Dict:
		var parts []string
		for k, v := range n.Pairs() {
			parts = append(parts, show(k)+": "+show(v))
		}
		return "{" + strings.Join(parts, ", ") + "}" + state(n)
	case Tuple, List, Set:
		var parts []string
		for v := range n.Items() {
			parts = append(parts, show(v))
		}
		return map[Kind]string{Tuple: "(", List: "[", Set: "<"}[n.Kind()] + strings.Join(parts, ", ") +
			map[Kind]string{Tuple: ")", List: "]", Set: ">"}[n.Kind()]
	case Global:
		return n.Name()
	case Object:
		return n.Name() + show(n.Args()) + state(n)
	}
	return n.Kind().String()
}

func state(n Node) string {
	if s := n.State(); s.Kind() != Missing {
		return "/" + show(s)
	}
	return ""
}

func TestDecode(t *testing.T) {
	for _, tt := range []struct{ name, pickle, want string }{
		{"none", "N", "None"},
		{"bools", "\x88\x89\x86", "(true, false)"},
		{"integers", "K\xffM\xff\xffJ\xff\xff\xff\xff\x87", "(255, 65535, -1)"},
		{"long integers", "\x8a\x00\x8a\x01\x80\x8a\x02\x80\x00\x87", "(0, -128, 128)"},
		{"a long integer of 4 length bytes", "\x8b\x02\x00\x00\x00\x00\x01", "256"},
		{"an integer beyond 64 bits", "\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01", "big"},
		{"a float", "G\x3f\xe0\x00\x00\x00\x00\x00\x00", "0.5"},
		{"strings", text("é") + "\x8c\x02ab\x8d\x01\x00\x00\x00\x00\x00\x00\x00c\x87", `("é", "ab", "c")`},
		{"bytes", "C\x02\x00\xffB\x01\x00\x00\x00z\x86", `(b"\x00\xff", b"z")`},
		{"a list", "](K\x01K\x02eK\x03a", "[1, 2, 3]"},
		{"a list in batches", "](K\x01e(K\x02K\x03e", "[1, 2, 3]"},
		{"a set", "\x8f(K\x01K\x02\x90", "<1, 2>"},
		{"a dict", "}" + text("a") + "K\x01s(" + text("b") + "K\x02" + text("c") + ")u", `{"a": 1, "b": 2, "c": ()}`},
		{"an ordered dict", global("collections", "OrderedDict") + ")R" + text("a") + "K\x01s", `{"a": 1}`},
		{"an ordered dict of pairs", call(global("collections", "OrderedDict"), list(tuple(text("a"), "K\x01"),
			list(text("b"), "K\x02"))), `{"a": 1, "b": 2}`},
		{"an ordered dict with attributes", global("collections", "OrderedDict") + ")R}" + text("_metadata") + "K\x01sb",
			`{}/{"_metadata": 1}`},
		{"a default dict", call(global("collections", "defaultdict"), global("builtins", "list")) + "K\x01K\x02s",
			"{1: 2}"},
		{"a size", call(global("torch", "Size"), ints(2, 3)), "(2, 3)"},
		{"memo", "]q\x00K\x07ah\x00\x86", "([7], [7])"},
		{"memo shared", "K\x07r\x00\x00\x00\x00j\x00\x00\x00\x00\x86", "(7, 7)"},
		{"memoize", "K\x07\x94h\x00\x86", "(7, 7)"},
		{"a global of the stack", "\x8c\x01m\x8c\x01n\x93", "m.n"},
		{"an object", global("argparse", "Namespace") + ")\x81}" + text("tp") + "K\x02sb",
			`argparse.Namespace()/{"tp": 2}`},
		{"attributes and slots", global("a", "B") + ")\x81N}" + text("x") + "K\x02s\x86b", `a.B()/{"x": 2}`},
		{"items of something opaque", call(global("collections", "deque")) + "K\x01a", "collections.deque()"},
		{"a frame", "\x95\x01\x00\x00\x00\x00\x00\x00\x00N", "None"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, err := Decode("x", pickled(tt.pickle))
			if err != nil {
				t.Fatal(err)
			}
			if got := show(n); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestDecodeErrors(t *testing.T) {
	deep := strings.Repeat("]", maxDepth+2) + strings.Repeat("a", maxDepth+1)
	for _, tt := range []struct{ name, pickle, want string }{
		{"empty", "", "byte 2: the stack is empty"},
		{"an opcode that runs code by name", "i" + "os\nsystem\n", "byte 2: opcode 0x69 is not supported"},
		{"an old string", "S'x'\n", "opcode 0x53 is not supported"},
		{"a long string", "X\xff\xff\xff\xff", "the pickle ends here, 4294967294 bytes too early"},
		{"a string of 8 length bytes", "\x8d\xff\xff\xff\xff\xff\xff\xff\xff", "too early"},
		{"a long frame", "\x95\xff\xff\xff\xff\xff\xff\xff\xff", "a frame of"},
		{"a newer protocol", "\x80\x06", "protocol 6 is not supported"},
		{"a tuple of too few", "N\x86", "the stack is empty"},
		{"no mark", "Nt", "no mark"},
		{"below a mark", "N(\x85", "the stack is empty"},
		{"memo not set", "h\x00", "memo 0 is not set"},
		{"memo too far", "Nr\xff\xff\xff\xff", "memo 4294967295 after only 8 bytes"},
		{"a key without a value", "}(Nu", "a key without a value"},
		{"items for a tuple", ")Na", "items for something that takes none"},
		{"a list as a dict", "]NNs", "items for something that takes none"},
		{"a state for a number", "K\x01}b", "a state for something that takes none"},
		{"two states", global("a", "B") + ")\x81}b}b", "or a second one"},
		{"arguments", global("a", "B") + "NR", "arguments that are not a tuple"},
		{"a name without an end", "cabc", "a name without an end"},
		{"a long name", global(strings.Repeat("a", maxName), "b"), "a name of 1003 bytes"},
		{"a name of the stack", "K\x01K\x02\x93", "not a short string"},
		{"deep lists", deep, "nested deeper than 1000"},
		{"deep tuples", ")" + strings.Repeat("\x85", maxDepth+1), "nested deeper than 1000"},
		{"deep marks", strings.Repeat("(", maxDepth+1), "nested deeper than 1000"},
		{"a list in itself", "]q\x00" + strings.Repeat("h\x00a", maxDepth+1), "nested deeper than 1000"},
		{"pairs", call(global("collections", "OrderedDict"), list("N")), "something other than pairs"},
		{"no end", "N\x85\x85)", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pickle := pickled(tt.pickle)
			if tt.want == "" {
				pickle, tt.want = pickle[:len(pickle)-1], "the pickle ends here"
			}
			n, err := Decode("some.pkl", pickle)
			if err == nil {
				t.Fatalf("got %s", show(n))
			}
			if !errors.Is(err, fault.ErrCorrupt) || !strings.Contains(err.Error(), tt.want) ||
				!strings.Contains(err.Error(), "some.pkl") {
				t.Errorf("got %q, want %q", err, tt.want)
			}
		})
	}
}

// One list of pairs, given to many ordered dicts, must not fill the memory.
func TestOrderedDictsOfOneList(t *testing.T) {
	pairs := "](" + strings.Repeat("NN\x86", 1000) + "eq\x00"
	dicts := strings.Repeat(global("collections", "OrderedDict")+"h\x00\x85R", 1000)
	if _, err := Decode("x", pickled(pairs, "("+dicts+"t")); err == nil || !strings.Contains(err.Error(), "pairs") {
		t.Errorf("got %v", err)
	}
}

// Bytes returns the value of bytes. The caller must not change them.
func (n Node) Bytes() (v []byte, ok bool) {
	if x := n.node(); x.kind == Bytes {
		return n.d.bytes(x.v), true
	}
	return nil, false
}
