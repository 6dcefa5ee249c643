// Package extent composes the bytes of tensors from ranges of files. Trainers cut a tensor
// over the files of their ranks; an Extent puts it together without copying it: Range is a
// piece of a file, and Concat, Interleave, Strided and Slice rearrange pieces. Bytes are
// read when somebody asks for them.
package extent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	"exp/train/checkpoint/fault"
)

// Tensor is an array whose elements lie in files, little-endian and row-major.
type Tensor struct {
	Name   string
	Stored string // its name in the files; empty for Name
	DType  string // as safetensors spells it: "BF16", "F32", "F8_E4M3"
	Shape  []int  // empty for a scalar
	Data   Extent
	// Replicas must hold the same bytes as Data: copies that other ranks stored. Whoever
	// reads the elements compares them first.
	Replicas []Extent
}

// Extent is a sequence of bytes that lie in files. The zero value is empty. Safe for
// concurrent use as long as the files are open.
type Extent struct {
	node node
	size int64
}

// node is one way to compose bytes. Arguments are within its size.
type node interface {
	// read fills p with the bytes from off.
	read(p []byte, off int64) error
	// visit calls f for the parts of files that hold n bytes from off, or more than
	// those, about in reading order, until f returns false.
	visit(off, n int64, f func(file *os.File, at, n int64) bool) bool
	// describe writes how the bytes are composed; files are numbered by number.
	describe(w io.Writer, number func(*os.File) int)
}

// Range returns n bytes of a file. It does not check that the file has them; reading does.
func Range(f *os.File, at, n int64) Extent { return Extent{part{f, at}, n} }

// Size returns the number of bytes.
func (e Extent) Size() int64 { return e.size }

// ReadAt implements io.ReaderAt. Other errors than io.EOF are *fault.Error: a file that has
// shrunk since it was opened is corrupt.
func (e Extent) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("extent: negative offset")
	}
	if off >= e.size {
		return 0, io.EOF
	}
	n := min(int64(len(p)), e.size-off)
	if err := e.node.read(p[:n], off); err != nil {
		return 0, err
	}
	if n < int64(len(p)) {
		return int(n), io.EOF
	}
	return int(n), nil
}

// Visit calls f for the parts of files that hold n bytes from off, about in reading order,
// until f returns false. Neighbouring bytes may be included.
func (e Extent) Visit(off, n int64, f func(file *os.File, at, n int64) bool) {
	if n = min(n, e.size-off); n > 0 {
		e.node.visit(off, n, f)
	}
}

// First returns the file of the first byte and its offset there; nil if e is empty.
func (e Extent) First() (file *os.File, at int64) {
	e.Visit(0, 1, func(f *os.File, begin, _ int64) bool {
		file, at = f, begin
		return false
	})
	return file, at
}

// Files returns the files that e reads, in the order of their first use.
func (e Extent) Files() []*os.File {
	var list []*os.File
	e.Describe(io.Discard, func(f *os.File) int {
		for i, g := range list {
			if f == g {
				return i
			}
		}
		list = append(list, f)
		return len(list) - 1
	})
	return list
}

// Describe writes the recipe of e: equal texts mean equal bytes while the files, which are
// named by their numbers, do not change.
func (e Extent) Describe(w io.Writer, number func(*os.File) int) {
	fmt.Fprintf(w, "%d", e.size)
	if e.size > 0 {
		e.node.describe(w, number)
	}
}

// Same reports whether two extents are composed in the same way from the same files, so
// that their bytes need no comparison.
func (e Extent) Same(other Extent) bool {
	var a, b strings.Builder
	files := map[*os.File]int{}
	number := func(f *os.File) int {
		if _, ok := files[f]; !ok {
			files[f] = len(files)
		}
		return files[f]
	}
	e.Describe(&a, number)
	other.Describe(&b, number)
	return a.String() == b.String()
}

// Slice returns n bytes of e from at. It panics if e does not have them.
func (e Extent) Slice(at, n int64) Extent {
	switch {
	case at < 0 || n < 0 || at > e.size-n:
		panic("extent: slice out of range")
	case n == 0:
		return Extent{}
	case n == e.size:
		return e
	}
	switch x := e.node.(type) {
	case part:
		return Extent{part{x.file, x.at + at}, n}
	case slice:
		return Extent{slice{x.of, x.at + at}, n}
	}
	return Extent{slice{e.node, at}, n}
}

// part is a range of a file from at.
type part struct {
	file *os.File
	at   int64
}

func (x part) read(p []byte, off int64) error {
	_, err := x.file.ReadAt(p, x.at+off)
	if errors.Is(err, io.EOF) {
		return fault.Corrupt(x.file.Name(), "", "the file ends before it")
	}
	if err != nil {
		return fault.File("read", x.file.Name(), err)
	}
	return nil
}

func (x part) visit(off, n int64, f func(file *os.File, at, n int64) bool) bool {
	return f(x.file, x.at+off, n)
}

func (x part) describe(w io.Writer, number func(*os.File) int) {
	fmt.Fprintf(w, "@%d:%d", number(x.file), x.at)
}

// slice is the part of a node from at.
type slice struct {
	of node
	at int64
}

func (x slice) read(p []byte, off int64) error { return x.of.read(p, x.at+off) }

func (x slice) visit(off, n int64, f func(file *os.File, at, n int64) bool) bool {
	return x.of.visit(x.at+off, n, f)
}

func (x slice) describe(w io.Writer, number func(*os.File) int) {
	fmt.Fprintf(w, "[%d:](", x.at)
	x.of.describe(w, number)
	io.WriteString(w, ")")
}

// concat holds extents one after the other; ends[i] is the offset after parts[i].
type concat struct {
	parts []Extent
	ends  []int64
}

// Concat returns the extents one after the other.
func Concat(parts ...Extent) Extent {
	var c concat
	var size int64
	for _, p := range parts {
		if p.size > 0 {
			size += p.size
			c.parts, c.ends = append(c.parts, p), append(c.ends, size)
		}
	}
	if len(c.parts) < 2 {
		return append(c.parts, Extent{})[0]
	}
	return Extent{c, size}
}

// overlap calls f for the parts that hold n bytes from off, with the bytes of the part.
func (x concat) overlap(off, n int64, f func(e Extent, at, n int64) bool) bool {
	i := sort.Search(len(x.ends), func(i int) bool { return x.ends[i] > off })
	for ; n > 0; i++ {
		at := off - (x.ends[i] - x.parts[i].size)
		take := min(n, x.parts[i].size-at)
		if !f(x.parts[i], at, take) {
			return false
		}
		off, n = off+take, n-take
	}
	return true
}

func (x concat) read(p []byte, off int64) (err error) {
	x.overlap(off, int64(len(p)), func(e Extent, at, n int64) bool {
		err = e.node.read(p[:n], at)
		p = p[n:]
		return err == nil
	})
	return err
}

func (x concat) visit(off, n int64, f func(file *os.File, at, n int64) bool) bool {
	return x.overlap(off, n, func(e Extent, at, n int64) bool { return e.node.visit(at, n, f) })
}

func (x concat) describe(w io.Writer, number func(*os.File) int) {
	io.WriteString(w, "+(")
	for _, e := range x.parts {
		e.Describe(w, number)
		io.WriteString(w, ",")
	}
	io.WriteString(w, ")")
}
