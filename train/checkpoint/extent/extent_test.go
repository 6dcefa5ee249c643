package extent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/train/checkpoint/fault"
)

// fileOf returns an open file with contents.
func fileOf(t testing.TB, content []byte) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// composed is an extent and the bytes that it should have.
type composed struct {
	e    Extent
	want []byte
}

// compose makes an extent of random structure, and its bytes by plain copying.
func compose(t testing.TB, r *rand.Rand, files []*os.File, contents [][]byte, depth int) composed {
	kind := r.IntN(5)
	if depth == 0 {
		kind = 0
	}
	one := func() composed { return compose(t, r, files, contents, depth-1) }
	switch kind {
	case 1: // one after the other
		var list []Extent
		var want []byte
		for range r.IntN(4) {
			x := one()
			list, want = append(list, x.e), append(want, x.want...)
		}
		return composed{Concat(list...), want}
	case 2: // shares in turn
		steps := 1 + r.IntN(9)
		var list []Extent
		var parts [][]byte
		for range 1 + r.IntN(3) {
			x := one()
			n := len(x.want) / steps * steps
			list, parts = append(list, x.e.Slice(0, int64(n))), append(parts, x.want[:n])
		}
		var want []byte
		for i := range steps {
			for _, p := range parts {
				share := len(p) / steps
				want = append(want, p[i*share:(i+1)*share]...)
			}
		}
		return composed{Interleave(steps, list...), want}
	case 3: // loops
		x := one()
		run := 1 + r.IntN(7)
		var loops []Loop
		span := run
		for range r.IntN(4) {
			l := Loop{int64(1 + r.IntN(6)), int64(r.IntN(2 * span))}
			if span+int(l.N-1)*int(l.Stride) <= len(x.want) {
				span += int(l.N-1) * int(l.Stride)
				loops = append(loops, l)
			}
		}
		if span > len(x.want) {
			return x
		}
		at := r.IntN(len(x.want) - span + 1)
		r.Shuffle(len(loops), func(i, j int) { loops[i], loops[j] = loops[j], loops[i] })
		return composed{Strided(x.e, int64(at), int64(run), loops...), strides(x.want[at:], run, loops)}
	case 4:
		x := one()
		at := r.IntN(len(x.want) + 1)
		n := r.IntN(len(x.want) - at + 1)
		return composed{x.e.Slice(int64(at), int64(n)), x.want[at : at+n]}
	}
	k := r.IntN(len(files))
	at := r.IntN(len(contents[k]))
	n := r.IntN(min(200, len(contents[k])-at))
	return composed{Range(files[k], int64(at), int64(n)), contents[k][at : at+n]}
}

// strides is Strided by plain loops.
func strides(b []byte, run int, loops []Loop) (out []byte) {
	if len(loops) == 0 {
		return b[:run]
	}
	for i := range loops[0].N {
		out = append(out, strides(b[i*loops[0].Stride:], run, loops[1:])...)
	}
	return out
}

func TestRandomCompositions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var files []*os.File
	var contents [][]byte
	for range 3 {
		b := randomBytes(r, 100+r.IntN(400))
		files, contents = append(files, fileOf(t, b)), append(contents, b)
	}
	for i := range 3000 {
		x := compose(t, r, files, contents, 4)
		if x.e.Size() != int64(len(x.want)) {
			t.Fatalf("case %d: size %d, want %d", i, x.e.Size(), len(x.want))
		}
		got, err := io.ReadAll(io.NewSectionReader(x.e, 0, x.e.Size()))
		if err != nil || !bytes.Equal(got, x.want) {
			t.Fatalf("case %d: %v\n got %x\nwant %x", i, err, got, x.want)
		}
		for range 5 { // parts of it
			at := r.IntN(len(x.want) + 1)
			n := r.IntN(len(x.want) - at + 1)
			part := make([]byte, n)
			if _, err := x.e.ReadAt(part, int64(at)); n > 0 && err != nil || !bytes.Equal(part, x.want[at:at+n]) {
				t.Fatalf("case %d: bytes [%d,%d): %v\n got %x\nwant %x", i, at, at+n, err, part, x.want[at:at+n])
			}
			x.visited(t, at, n)
		}
	}
}

// visited checks that the parts of files that are announced hold every byte that is read.
func (x composed) visited(t *testing.T, at, n int) {
	t.Helper()
	have := map[byte]bool{}
	x.e.Visit(int64(at), int64(n), func(f *os.File, at, n int64) bool {
		b := make([]byte, n)
		if _, err := f.ReadAt(b, at); err != nil {
			t.Fatal(err)
		}
		for _, v := range b {
			have[v] = true
		}
		return true
	})
	for _, v := range x.want[at : at+n] {
		if !have[v] {
			t.Fatalf("byte %#x is not in the parts visited", v)
		}
	}
}

// Sizes that make reads go through windows of limited size.
func TestLargeStrides(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const rows, columns, size = 700, 900, 4
	b := randomBytes(r, rows*columns*size)
	whole := Range(fileOf(t, b), 0, int64(len(b)))
	row := int64(columns * size)
	for _, tt := range []struct {
		name  string
		run   int
		loops []Loop
	}{
		{"transposed", size, []Loop{{columns, size}, {rows, row}}},
		{"every other element", size, []Loop{{rows * columns / 2, 2 * size}}},
		{"one column", size, []Loop{{rows, row}}},
		{"columns", 10 * size, []Loop{{rows, row}}},
		{"long runs", 3600 * size, []Loop{{7, 80000}}},
		{"repeated", size, []Loop{{100000, 0}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := strides(b, tt.run, tt.loops)
			e := Strided(whole, 0, int64(tt.run), tt.loops...)
			for _, piece := range []int{len(want), 100_001, 256 << 10} {
				got := make([]byte, 0, len(want))
				for at := 0; at < len(want); at += piece {
					p := make([]byte, min(piece, len(want)-at))
					if _, err := e.ReadAt(p, int64(at)); err != nil {
						t.Fatal(err)
					}
					got = append(got, p...)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("in pieces of %d: other bytes", piece)
				}
			}
		})
	}
}

func TestTruncated(t *testing.T) {
	f := fileOf(t, make([]byte, 10))
	e := Concat(Range(f, 0, 4), Range(f, 8, 4))
	_, err := e.ReadAt(make([]byte, 8), 0)
	if !errors.Is(err, fault.ErrCorrupt) || !strings.Contains(err.Error(), f.Name()) {
		t.Errorf("got %v", err)
	}
	if _, err := e.ReadAt(make([]byte, 1), 8); err != io.EOF {
		t.Errorf("behind the end: %v", err)
	}
	if n, err := e.ReadAt(make([]byte, 7), 0); n != 0 || err == nil || err == io.EOF {
		t.Errorf("across the end of the file: %d, %v", n, err)
	}
}

// Equal recipes and only those have equal texts.
func TestDescribe(t *testing.T) {
	f, g := fileOf(t, make([]byte, 100)), fileOf(t, make([]byte, 100))
	a, b := Range(f, 0, 12), Range(g, 0, 12)
	list := []Extent{{}, a, b, a.Slice(1, 3), Concat(a, b), Concat(b, a), Interleave(3, a, b), Interleave(4, a, b),
		Strided(a, 0, 2, Loop{3, 4}), Strided(a, 2, 2, Loop{3, 4}), Strided(a, 0, 2, Loop{2, 4}),
		Concat(a, b).Slice(1, 20), Concat(a, b).Slice(2, 20)}
	seen := map[string]int{}
	for i, e := range list {
		var w strings.Builder
		e.Describe(&w, func(x *os.File) int { return map[*os.File]int{f: 0, g: 1}[x] })
		if other, ok := seen[w.String()]; ok {
			t.Errorf("%d and %d are both %s", other, i, w.String())
		}
		seen[w.String()] = i
		for k, other := range list {
			if e.Same(other) != (i == k) {
				t.Errorf("%d and %d: same %v", i, k, e.Same(other))
			}
		}
	}
	if got := Concat(b, a, b).Files(); fmt.Sprint(got) != fmt.Sprint([]*os.File{g, f}) {
		t.Errorf("files %v", got)
	}
	if file, at := Concat(b.Slice(3, 2), a).First(); file != g || at != 3 {
		t.Errorf("first byte at %v %d", file, at)
	}
}
