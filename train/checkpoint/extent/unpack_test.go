package extent

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// bitsAt returns n bits of b from a bit on, the lowest first.
func bitsAt(b []byte, at, n int) (v int) {
	for i := range n {
		v |= int(b[(at+i)/8]>>((at+i)%8)&1) << i
	}
	return v
}

// unpackedBy returns the integers of a packing, bit by bit.
func unpackedBy(b []byte, p Packing) []byte {
	b = slices.Clone(b)
	mask := 1<<p.Bits - 1
	wide := uint64(0) // p.Plus in every integer of a word
	for at := 0; at < 32; at += p.Bits {
		wide += uint64(p.Plus) << at
	}
	if 32%p.Bits == 0 {
		for i := 0; i+4 <= len(b); i += 4 {
			word := uint64(bitsAt(b, 8*i, 32)) + wide
			for k := range 4 {
				b[i+k] = byte(word >> (8 * k))
			}
		}
	}
	var list []byte
	for r := range p.Rows {
		for c := range p.Cols {
			var v int
			switch {
			case p.RowBytes == 0:
				in := 32 / p.Bits
				k := r % in
				if p.Order != nil {
					k = p.Order[k]
				}
				v = bitsAt(b, 32*(r/in*p.Cols+c)+k*p.Bits, p.Bits)
			case p.HighFirst:
				v = bitsAt(b, 8*r*p.RowBytes+(c^1)*4, 4)
			default:
				v = bitsAt(b, 8*r*p.RowBytes+c*p.Bits, p.Bits)
			}
			if 32%p.Bits != 0 {
				v = (v + p.Plus) & mask
			}
			list = append(list, byte(v))
		}
	}
	return list
}

// Whatever part is read, the integers are those that one finds bit by bit.
func TestUnpack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	content := randomBytes(r, 4000)
	file := fileOf(t, content)
	for range 3000 {
		p := Packing{Bits: 1 + r.IntN(8), Rows: 1 + r.IntN(20), Cols: 1 + r.IntN(20), Plus: r.IntN(2)}
		if p.RowBytes = (p.Cols*p.Bits + 31) / 32 * 4; r.IntN(2) == 0 && 32%p.Bits == 0 {
			p.RowBytes = 0
			if r.IntN(2) == 0 {
				p.Order = r.Perm(32 / p.Bits)
			}
		} else if r.IntN(2) == 0 {
			p.RowBytes, p.Plus = (p.Cols*p.Bits+7)/8, 0
		}
		if p.Bits == 4 && p.RowBytes > 0 {
			p.HighFirst = r.IntN(2) == 0
		}
		n := p.Rows * p.RowBytes
		if n == 0 {
			n = 4 * ((p.Rows*p.Bits + 31) / 32) * p.Cols
		}
		at := r.IntN(len(content) - n)
		e := Unpack(Range(file, int64(at), int64(n)), p)
		want := unpackedBy(content[at:at+n], p)
		lo := r.IntN(len(want))
		got := make([]byte, 1+r.IntN(len(want)-lo))
		if _, err := e.ReadAt(got, int64(lo)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want[lo:lo+len(got)]) {
			t.Fatalf("%+v: integers %d to %d are %v, want %v", p, lo, lo+len(got), got, want[lo:lo+len(got)])
		}
	}
}

// Long rows and many rows take several reads.
func TestUnpackInSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	content := randomBytes(r, 3*scratchBytes)
	file := fileOf(t, content)
	for _, p := range []Packing{
		{Bits: 4, Rows: 2, Cols: 3 * scratchBytes, RowBytes: 3 * scratchBytes / 2, HighFirst: true},
		{Bits: 3, Rows: 3, Cols: scratchBytes * 2, RowBytes: scratchBytes},
		{Bits: 4, Rows: 3 * scratchBytes / 4, Cols: 8, RowBytes: 4},
		{Bits: 8, Rows: 4, Cols: 3 * scratchBytes / 4},
		{Bits: 4, Rows: 8 * 3 * 64, Cols: scratchBytes / 4 / 64, Order: []int{0, 2, 4, 6, 1, 3, 5, 7}},
	} {
		n := p.Rows * p.RowBytes
		if n == 0 {
			n = 4 * (p.Rows * p.Bits / 32) * p.Cols
		}
		e, want := Unpack(Range(file, 0, int64(n)), p), unpackedBy(content[:n], p)
		for _, lo := range []int{0, 1, p.Cols - 1} {
			got := make([]byte, len(want)-lo)
			if _, err := e.ReadAt(got, int64(lo)); err != nil || !slices.Equal(got, want[lo:]) {
				t.Errorf("%+v from %d on: %v, or other integers", p, lo, err)
			}
		}
	}
}

func TestUnpackPanics(t *testing.T) {
	file := fileOf(t, make([]byte, 64))
	for _, p := range []Packing{
		{Bits: 9, Rows: 1, Cols: 1, RowBytes: 64}, {Bits: 0, Rows: 1, Cols: 1, RowBytes: 64},
		{Bits: 4, Rows: 2, Cols: 64, RowBytes: 31}, {Bits: 4, Rows: 2, Cols: 65, RowBytes: 32},
		{Bits: 3, Rows: 8, Cols: 16}, {Bits: 4, Rows: 9, Cols: 16}, {Bits: 2, Rows: 2, Cols: 8, RowBytes: 32, HighFirst: true},
		{Bits: 4, Rows: 64, Cols: 2, RowBytes: 1, Plus: 1},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v does not panic", p)
				}
			}()
			Unpack(Range(file, 0, 64), p)
		}()
	}
}
