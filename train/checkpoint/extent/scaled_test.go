package extent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"exp/train/checkpoint/fault"
)

// in returns a number in a type, as bytes.
func in(kind string, v float32) []byte {
	bits, _ := rounded(kind, v)
	return binary.LittleEndian.AppendUint32(nil, bits)[:floatSize(kind)]
}

// randomScaling returns a matrix of quantized numbers, and its elements by the formula.
func randomScaling(t testing.TB, r *rand.Rand) (Scaling, []byte) {
	t.Helper()
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	rows, cols := 1+r.IntN(9), 1+r.IntN(40)
	s := Scaling{Cols: cols, Levels: []int{4, 16, 256}[r.IntN(3)], GroupCols: 1 + r.IntN(cols),
		ScaleType: pick("F16", "BF16", "F32"), Type: pick("F16", "BF16", "F32"), Values: Integers(r.IntN(9), false)}
	s.Groups = (cols + s.GroupCols - 1) / s.GroupCols
	n := rows*cols - r.IntN(cols)
	codes, zeros := randomBytes(r, n), randomBytes(r, rows*s.Groups)
	for i := range codes {
		codes[i] %= byte(s.Levels - 1)
	}
	var scales, index []byte
	factors := make([]float32, rows*s.Groups)
	for i := range factors {
		_, factors[i] = rounded(s.ScaleType, float32(r.NormFloat64()/50))
		scales = append(scales, in(s.ScaleType, factors[i])...)
	}
	group := make([]int, cols)
	listed := r.IntN(3) == 0
	for c := range group {
		if group[c] = c / s.GroupCols; listed {
			group[c] = r.IntN(s.Groups)
		}
		index = binary.LittleEndian.AppendUint32(index, uint32(group[c]))
	}
	at := func(b []byte) Extent { return Range(fileOf(t, b), 0, int64(len(b))) }
	s.Codes, s.Scales = at(codes), at(scales)
	if listed {
		s.Index, s.GroupCols = at(index), 0
	}
	if r.IntN(2) == 0 {
		s.Zeros, s.ZeroValues = at(zeros), Integers(0, r.IntN(2) == 0)
	}
	if r.IntN(4) == 0 {
		s.Factor, s.Offset, s.Divisor = 1./127, 0.25, 3
	}
	var want []byte
	for i, c := range codes {
		g := i/cols*s.Groups + group[i%cols]
		v, scale := s.Values.Of[c], factors[g]
		if s.Zeros.size > 0 {
			v -= s.ZeroValues.Of[zeros[g]]
		}
		if s.Divisor != 0 {
			scale /= s.Divisor
		}
		if _, v = rounded(s.ScaleType, float32(v*scale)); s.Factor != 0 {
			v = float32(float32(v*s.Factor) + s.Offset)
		}
		want = append(want, in(s.Type, v)...)
	}
	return s, want
}

// Any part that is read has the elements of the formula.
func TestScaled(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		s, want := randomScaling(t, r)
		e := Scaled(s)
		for range 4 {
			lo := r.IntN(len(want))
			got := make([]byte, 1+r.IntN(len(want)-lo))
			if _, err := e.ReadAt(got, int64(lo)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want[lo:lo+len(got)]) {
				t.Fatalf("%+v: bytes %d to %d are %x, want %x", s, lo, lo+len(got), got, want[lo:lo+len(got)])
			}
		}
		if e.Grain() == 0 || e.Slice(1, 1).Grain() != e.Grain() || s.Codes.Grain() != 0 {
			t.Error("the grain does not fit scattered codes")
		}
	}
}

// Products are rounded once in the type of the scales and once in the result's, which may differ from rounding at once.
func TestScaledRoundsTwice(t *testing.T) {
	file := fileOf(t, append([]byte{15}, in("F16", 1+1./1024)...))
	e := Scaled(Scaling{Codes: Range(file, 0, 1), Cols: 1, Groups: 1, GroupCols: 1, Values: Integers(0, false),
		Scales: Range(file, 1, 2), ScaleType: "F16", Type: "F32"})
	got := make([]byte, 4)
	if _, err := e.ReadAt(got, 0); err != nil {
		t.Fatal(err)
	}
	// 15·(1+2⁻¹⁰) = 15.0146484375 has 14 bits; 11 remain, in steps of 2⁻⁷
	if v := math.Float32frombits(binary.LittleEndian.Uint32(got)); v != 15.015625 {
		t.Errorf("got %v, want 15.015625", v)
	}
}

// Long reads take several steps, which begin with a row where they can.
func TestScaledInSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, cols := range []int{scratchBytes + 5, 777, 64} {
		rows := 3 * scratchBytes / cols
		if cols > scratchBytes {
			rows = 3
		}
		codes, scales := randomBytes(r, rows*cols), []byte{}
		for i := range codes {
			codes[i] %= 16
		}
		for i := range rows {
			scales = append(scales, in("F32", float32(i+1))...)
		}
		e := Scaled(Scaling{Codes: Range(fileOf(t, codes), 0, int64(len(codes))), Cols: cols, Levels: 16, Groups: 1,
			GroupCols: cols, Values: Integers(8, false), ScaleType: "F32", Type: "F32",
			Scales: Range(fileOf(t, scales), 0, int64(len(scales)))})
		got := make([]byte, 4*len(codes)-1)
		if _, err := e.ReadAt(got, 1); err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(codes); i++ {
			want := (float32(codes[i]) - 8) * float32(i/cols+1)
			if v := math.Float32frombits(binary.LittleEndian.Uint32(got[4*i-1:])); v != want {
				t.Fatalf("%d columns: element %d is %v, want %v", cols, i, v, want)
			}
		}
	}
}

// A list of groups that points elsewhere is an error, which names its file; below zero it may mean that there is none.
func TestScaledGroupList(t *testing.T) {
	file := fileOf(t, []byte{1, 2, 3, 4, 0x00, 0x3c, 0x00, 0x40, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0,
		0xff, 0xff, 0xff, 0xff})
	s := Scaling{Codes: Range(file, 0, 4), Cols: 4, Groups: 2, Values: Integers(0, false), Scales: Range(file, 4, 4),
		ScaleType: "F16", Type: "F16"}
	list := func(at ...int64) Extent {
		var e Extent
		for _, i := range at {
			e = Concat(e, Range(file, 8+4*i, 4))
		}
		return e
	}
	for _, x := range []struct {
		index Extent
		even  int
		want  string // 1, 2, 3 and 4 times 1 or 2
	}{
		{list(0, 1, 2, 1), 0, "003c004400420048"}, {list(0, 0, 1, 1), 0, "003c004000460048"},
		{list(4, 4, 4, 4), 2, "003c004000460048"}, {list(0, 1, 3, 1), 0, "column 2 is in group 2, but there are 2 groups"},
		{list(0, 1, 4, 1), 0, "column 2 is in group -1, but there are 2 groups"},
	} {
		s.Index, s.GroupCols = x.index, x.even
		got := make([]byte, 8)
		_, err := Scaled(s).ReadAt(got, 0)
		text := fmt.Sprintf("%x", got)
		if err != nil {
			text = err.Error()
			if !errors.Is(err, fault.ErrCorrupt) {
				t.Errorf("%v does not tell of damage", err)
			}
		}
		if !strings.HasSuffix(text, x.want) {
			t.Errorf("got %s, want %s", text, x.want)
		}
	}
}

func TestScaledPanics(t *testing.T) {
	file := fileOf(t, make([]byte, 64))
	good := Scaling{Codes: Range(file, 0, 8), Cols: 4, Groups: 2, GroupCols: 2, Values: Integers(0, false),
		Scales: Range(file, 0, 8), ScaleType: "F16", Type: "F16"}
	Scaled(good)
	for what, change := range map[string]func(s *Scaling){
		"no columns":           func(s *Scaling) { s.Cols = 0 },
		"no groups":            func(s *Scaling) { s.Groups = 0 },
		"no width":             func(s *Scaling) { s.GroupCols = 0 },
		"too few scales":       func(s *Scaling) { s.Scales = Range(file, 0, 6) },
		"another type":         func(s *Scaling) { s.ScaleType = "I32" },
		"another result":       func(s *Scaling) { s.Type = "F8_E4M3" },
		"too few zero points":  func(s *Scaling) { s.Zeros = Range(file, 0, 3) },
		"too few listed":       func(s *Scaling) { s.Index = Range(file, 0, 12) },
		"columns of no groups": func(s *Scaling) { s.GroupCols = 1 },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", what)
				}
			}()
			bad := good
			change(&bad)
			Scaled(bad)
		}()
	}
}

// BenchmarkScaled reads a matrix of 4 bits in groups of 128, as GPTQ, AWQ and compressed-tensors have it.
func BenchmarkScaled(b *testing.B) {
	const rows, cols, groups = 4096, 4096, 32
	r := rand.New(rand.NewPCG(1, 1))
	words := fileOf(b, randomBytes(r, rows*cols/2))
	scales := fileOf(b, bytes.Repeat(in("F16", 0.01), rows*groups))
	packed := Range(words, 0, rows*cols/2)
	turned := func(n, across int64) Extent {
		return Strided(packed, 0, 4, Loop{N: across, Stride: 4}, Loop{N: n, Stride: across * 4})
	}
	for name, codes := range map[string]Extent{
		"rows":  Unpack(packed, Packing{Bits: 4, Rows: rows, Cols: cols, RowBytes: cols / 2}),
		"gptq":  Unpack(turned(cols/8, rows), Packing{Bits: 4, Rows: rows, Cols: cols, RowBytes: cols / 2}),
		"awq":   Unpack(turned(cols, rows/8), Packing{Bits: 4, Rows: rows, Cols: cols, Order: []int{0, 4, 1, 5, 2, 6, 3, 7}}),
		"bytes": Range(fileOf(b, randomBytes(r, rows*cols)), 0, rows*cols),
	} {
		b.Run(name, func(b *testing.B) {
			levels := 16
			if name == "bytes" {
				levels = 256
			}
			e := Scaled(Scaling{Codes: codes, Cols: cols, Levels: levels, Groups: groups, GroupCols: 128,
				Values: Integers(8, false), ScaleType: "F16", Type: "F16",
				Scales: Strided(Range(scales, 0, rows*groups*2), 0, 2, Loop{N: rows, Stride: 2}, Loop{N: groups, Stride: 2 * rows})})
			got := make([]byte, e.Grain())
			b.SetBytes(e.Size())
			for b.Loop() {
				for at := int64(0); at < e.Size(); at += e.Grain() {
					if _, err := e.ReadAt(got, at); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
