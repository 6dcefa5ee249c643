package kerneltest

import (
	"encoding/binary"
	"flag"
	"fmt"
	"hash"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/kernels"
	"exp/kernels/ref"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

// TestReferenceBitsAreFrozen holds a digest of everything that the reference of
// each class computes in the suite against the recorded one. The bits of a class
// must not depend on the machine, the compiler or what it fuses; and when they
// change on purpose, so must the class. A changed case of the suite changes them
// too. Each check is computed in one of the classes; EXP_TEST_ALL=1 computes it in all.
func TestReferenceBitsAreFrozen(t *testing.T) {
	every := 3
	if *update || os.Getenv("EXP_TEST_ALL") != "" {
		every = 1
	}
	var got string
	computed := map[string]bool{}
	for turn, r := range []kernels.Backend{ref.New[float32](), ref.NewMixed(), ref.NewMatrix()} {
		for i, c := range checks() {
			if sampled(i, turn, every) {
				computed[r.Class()+" "+c.name] = true
				got += digests(t, r, c)
			}
		}
	}
	path := filepath.Join("testdata", "bits.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want string
	for line := range strings.Lines(string(golden)) {
		if check, _, _ := strings.Cut(line, ":"); every == 1 || computed[check] {
			want += line
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bits differ (-want +got):\n%s", diff)
	}
}

// digests returns one line for every operation that reference r computes in check c.
func digests(t *testing.T, r kernels.Backend, c check) string {
	digests := map[string]hash.Hash64{}
	b := &watched{Backend: r, after: func(op string, out, _ []kernels.Buffer) {
		if digests[op] == nil {
			digests[op] = fnv.New64a()
		}
		for _, x := range out {
			digest(digests[op], x)
		}
	}}
	s := newSubject(b, true)
	s.itself = true
	if err := s.check(c, known); err != nil {
		t.Fatalf("%s: %s: %v", r.Class(), c.name, err)
	}
	var lines []string
	for op, h := range digests {
		lines = append(lines, fmt.Sprintf("%s %s: %s %016x\n", r.Class(), c.name, op, h.Sum64()))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// digest adds the bits of x to h, every NaN as the same one: its sign and
// payload differ between machines.
func digest(h hash.Hash64, x kernels.Buffer) {
	var b []byte
	switch x.DType() {
	case kernels.I32:
		for _, v := range kernels.Elems[int32](x) {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
	case kernels.BF16:
		for _, v := range kernels.Bits(x) {
			if v&0x7fff > 0x7f80 {
				v = 0x7fc0
			}
			b = binary.LittleEndian.AppendUint16(b, v)
		}
	case kernels.F64:
		for _, v := range kernels.Elems[float64](x) {
			if v != v {
				v = math.NaN()
			}
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	default:
		for _, v := range kernels.Elems[float32](x) {
			if v != v {
				v = bandNaN()
			}
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	h.Write(b)
}
