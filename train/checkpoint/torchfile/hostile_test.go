package torchfile

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Hostile files of 1 MB take less than 64 MB: all that is ever allocated is counted.
func TestMemory(t *testing.T) {
	const size, limit = 1 << 20, 64 << 20
	repeat := func(unit string) string { return strings.Repeat(unit, size/len(unit)) }
	for _, tt := range []struct{ name, pickle string }{
		{"none", repeat("N")},
		{"dicts", repeat("}")},
		{"a list item by item", "]" + repeat("Na")},
		{"a list of dicts, item by item", "]" + repeat("}a")},
		{"a dict pair by pair", "}" + repeat("NNs")},
		{"one large tuple", "(" + repeat("N") + "t"},
		{"many tuples of one", "N" + repeat("\x85\x940")},
		{"tuples of one of the same", "Nq\x00" + repeat("h\x00\x85")},
		{"tuples of three of the same", "Nq\x00" + repeat("h\x00h\x00h\x00\x87")},
		{"memo", repeat("N\x94")},
		{"objects", "ca\nb\nq\x00)q\x01" + repeat("h\x00h\x01R")},
		{"objects of a long name", "c" + strings.Repeat("a", maxName-10) + "\nb\nq\x00)q\x01" + repeat("h\x00h\x01R")},
		{"ordered dicts", "ccollections\nOrderedDict\nq\x00)q\x01" + repeat("h\x00h\x01R")},
		{"names", repeat("ca\nb\n")},
		{"empty strings", repeat("\x8c\x00")},
		{"one long string", text(repeat("x"))},
		{"storages", "Nq\x00" + repeat("h\x00Q")},
		{"frames", repeat("\x95\x00\x00\x00\x00\x00\x00\x00\x00")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pickle := pickled(tt.pickle)
			allocated(t, limit, func() {
				if n, err := Decode("x", pickle); err == nil {
					visitAll(n, 100_000)
				}
			})
		})
	}
	t.Run("entries", func(t *testing.T) {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for i := 0; b.Len() < size/2; i++ { // as much again is the directory
			if _, err := z.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("a/data/%d", i)}); err != nil {
				t.Fatal(err)
			}
			if err := z.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		allocated(t, limit, func() {
			if _, err := open(b.Bytes()); err == nil {
				t.Error("an archive without a pickle was read")
			}
		})
	})
}

// allocated checks that f allocates less than limit bytes.
func allocated(t *testing.T, limit uint64, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > limit {
		t.Errorf("%d MB were allocated", n>>20)
	}
}

// visitAll asks for everything that nodes can be asked for.
func visitAll(n Node, budget int) int {
	if budget--; budget < 0 {
		return budget
	}
	n.Name()
	n.Bytes()
	n.Float()
	n.DType()
	n.Get("model")
	if x, err := n.Tensor(); err == nil {
		x.Contiguous()
	}
	if _, ok, err := n.Distributed(); ok && err == nil {
		n.Distributed()
	}
	budget = visitIf(n.Args(), budget)
	budget = visitIf(n.State(), budget)
	for k, v := range n.Pairs() {
		if budget = visitAll(v, visitAll(k, budget)); budget < 0 {
			return budget
		}
	}
	for x := range n.Items() {
		if budget = visitAll(x, budget); budget < 0 {
			return budget
		}
	}
	return budget
}

func visitIf(n Node, budget int) int {
	if n.Kind() == Missing {
		return budget
	}
	return visitAll(n, budget)
}

// FuzzOpen changes archives: no panic, and no read beyond the file, whatever they hold.
func FuzzOpen(f *testing.F) {
	x := tensor(storage("torch.FloatStorage", "0", 12), 0, []int{4, 3}, []int{1, 4})
	for _, pickle := range []string{x, dict(text("w"), x, text("n"), integer(3)), list(x, "N"),
		call(global("torch._utils", "_rebuild_parameter"), x, "\x88", "N")} {
		f.Add(packed(f, pickled(pickle), map[string][]byte{"0": floats(12)}))
	}
	files, _ := filepath.Glob("../../../../shared/data/models/pytorch/*.pt")
	for _, path := range files {
		if b, err := os.ReadFile(path); err == nil {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &bounded{Reader: bytes.NewReader(b), t: t}
		n, err := Open("x", r, 0, int64(len(b)))
		if err != nil {
			return
		}
		visitAll(n, 1000)
		if x, err := n.Tensor(); err == nil && (x.At < 0 || x.At+x.Bytes > int64(len(b))) {
			t.Errorf("a storage at %d of %d bytes in a file of %d", x.At, x.Bytes, len(b))
		}
	})
}

// FuzzDecode changes bare pickles.
func FuzzDecode(f *testing.F) {
	x := tensor(storage("torch.FloatStorage", "0", 12), 0, []int{4, 3}, []int{1, 4})
	for _, pickle := range []string{x, dict(text("w"), x, text("n"), integer(3)), "]q\x00(K\x01h\x00e",
		global("a", "B") + ")\x81}" + text("tp") + "K\x02sb", "\x8c\x01m\x8c\x01n\x93"} {
		f.Add(pickled(pickle))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := Decode("x", b)
		if err == nil {
			visitAll(n, 1000)
		}
	})
}

// bounded reports reads that begin or end outside of the file.
type bounded struct {
	*bytes.Reader
	t *testing.T
}

func (r *bounded) ReadAt(p []byte, at int64) (int, error) {
	if at < 0 || len(p) > 256<<20 {
		r.t.Errorf("%d bytes are read at %d", len(p), at)
	}
	return r.Reader.ReadAt(p, at)
}
