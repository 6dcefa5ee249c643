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
// too.
func TestReferenceBitsAreFrozen(t *testing.T) {
	got := digests(t, ref.New[float32]()) + digests(t, ref.NewMixed()) + digests(t, ref.NewMatrix())

	path := filepath.Join("testdata", "bits.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("bits differ (-want +got):\n%s", diff)
	}
}

// digests returns one line for every operation of reference r.
func digests(t *testing.T, r kernels.Backend) string {
	digests := map[string]hash.Hash64{}
	part := "" // of the suite, with lines of its own: cases that came later than the others
	b := &watched{Backend: r, after: func(op string, out, _ []kernels.Buffer) {
		op += part
		if digests[op] == nil {
			digests[op] = fnv.New64a()
		}
		for _, x := range out {
			digest(digests[op], x)
		}
	}}
	s := newSubject(b, true)
	s.itself = true
	for _, c := range checks() {
		part = ""
		switch {
		case strings.Contains(c.name, "adjusted"):
			part = " adjusted"
		case strings.Contains(c.name, "masked"):
			part = " masked"
		case strings.HasPrefix(c.name, "FullAttention"):
			part = " full"
		case strings.HasPrefix(c.name, "AheadAttention"):
			part = " ahead"
		case strings.HasPrefix(c.name, "Flushed"):
			part = " flushed"
		case c.name == "SegmentMean/floats":
			part = " floats"
		}
		if err := s.check(c, known); err != nil {
			t.Fatalf("%s: %s: %v", r.Class(), c.name, err)
		}
	}
	var lines []string
	for op, h := range digests {
		lines = append(lines, fmt.Sprintf("%-9s %-20s %016x\n", r.Class(), op, h.Sum64()))
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
