package ref

import (
	"testing"

	"exp/kernels"
)

func TestColumnsKnown(t *testing.T) {
	// Columns 1 and 2 of two rows of 4.
	wide := []float32{1, 2, 3, 4, 5, 6, 7, 8}
	narrow := make([]float32, 4)
	TakeColumns(narrow, wide, 2, 4, 1, 0.5)
	wantExact(t, "taken", narrow, []float32{1, 1.5, 3, 3.5})
	// 2+2·1 3+2·1.5; 6+2·3 7+2·3.5
	AddColumns(wide, narrow, 2, 4, 1, 2)
	wantExact(t, "added", wide, []float32{1, 4, 6, 4, 5, 12, 14, 8})

	// fma: -(1+2⁻²²) + (1+2⁻²³)² = 2⁻⁴⁶, which a rounded product would lose.
	one := []float32{-(1 + 0x1p-22)}
	AddColumns(one, []float32{1 + 0x1p-23}, 1, 1, 0, 1+0x1p-23)
	wantExact(t, "fused", one, []float32{0x1p-46})
	// scale is rounded to float32 first: 1+2⁻³⁰ is 1.
	TakeColumns(one, []float32{3}, 1, 1, 0, 1+0x1p-30)
	wantExact(t, "rounded scale", one, []float32{3})
}

func TestColumnsPanics(t *testing.T) {
	x := zeros(8)
	const message = "ref: columns: length mismatch"
	wantPanic(t, message, func() { TakeColumns(x[:4], x, 2, 4, 3, 1) })
	wantPanic(t, message, func() { TakeColumns(x[:4], x, 2, 4, -1, 1) })
	wantPanic(t, message, func() { TakeColumns(x[:3], x, 2, 4, 0, 1) })
	wantPanic(t, message, func() { AddColumns(x, x[:2], 2, 4, 0, 1) })
	wantPanic(t, message, func() { AddColumns(x, x[:0], 0, 4, 0, 1) })
}

// A range is taken from one type and added to another; the rest of the row stays.
func TestMixedColumns(t *testing.T) {
	b := NewMixed()
	place := func(d kernels.DType, x ...float32) kernels.Buffer {
		buf, err := b.Alloc(d, len(x))
		if err != nil {
			t.Fatal(err)
		}
		b.Copy(buf, kernels.Host(x))
		return buf
	}
	// 3·(1+2⁻⁷) = 3+3·2⁻⁷ has 9 bits: a tie between 3+2⁻⁶ and 3+2·2⁻⁶, to even.
	half := place(kernels.BF16, 0, 0)
	b.TakeColumns(half, place(kernels.F32, 9, 1+0x1p-7, 2), 2, 3, 1, 3)
	wantExact(t, "taken", wide(half), []float32{3 + 0x1p-5, 6})
	// 256 + 3 = 259 has 9 bits: a tie between 258 and 260, to even.
	row := place(kernels.BF16, 1, 256, 1)
	b.AddColumns(row, place(kernels.F32, 1), 1, 3, 1, 3)
	wantExact(t, "added", wide(row), []float32{1, 260, 1})
}
