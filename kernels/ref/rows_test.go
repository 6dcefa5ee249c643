package ref

import "testing"

func TestRowsKnown(t *testing.T) {
	x := []float32{1, 2, 3, 4, 5, 6} // three rows of two
	out := make([]float32, 4)
	GatherRows(out, x, []int32{2, 0}, 2)
	wantExact(t, "gather", out, []float32{5, 6, 1, 2})
	dx := []float32{9, 9, 9, 9, 9, 9}
	ScatterRows(dx, out, []int32{2, 0}, 2)
	wantExact(t, "scatter", dx, []float32{1, 2, 0, 0, 5, 6})

	mean := []float32{7, 7, 7, 7, 7, 7}
	SegmentMean(mean, x, []int32{0, 2, 1, 1, 0, 3}, 2)
	// Rows 0-1: [(1+3)/2 (2+4)/2]; empty; all: [9/3 12/3].
	wantExact(t, "mean", mean, []float32{2, 3, 0, 0, 3, 4})

	dx = []float32{0, 0, 0, 0, 100, 0}
	SegmentMeanBackward(dx, []float32{2, 4, 50, 50, 3, 6}, []int32{0, 2, 1, 1, 0, 3}, 2)
	// Rows 0-1 get [2 4]/2, all get [3 6]/3, added.
	wantExact(t, "mean backward", dx, []float32{2, 4, 2, 4, 101, 2})
}

func TestRowsGradient(t *testing.T) {
	const M, C = 6, 3
	r := source(10)
	x := normal(r, M*C)
	rows := []int32{4, 0, 5}
	segments := []int32{0, 4, 2, 2, 3, 6, 5, 6}

	c, out := normal(r, len(rows)*C), zeros(len(rows)*C)
	dx := normal(r, M*C)
	ScatterRows(dx, c, rows, C)
	checkGradient(t, func() float64 {
		GatherRows(out, x, rows, C)
		return project(out, c)
	}, limit, argument{"x of GatherRows", x, dx})

	y, cy, dy := normal(r, len(rows)*C), normal(r, M*C), zeros(len(rows)*C)
	scattered := zeros(M * C)
	GatherRows(dy, cy, rows, C)
	checkGradient(t, func() float64 {
		ScatterRows(scattered, y, rows, C)
		return project(scattered, cy)
	}, limit, argument{"dout of ScatterRows", y, dy})

	cm, mean := normal(r, len(segments)/2*C), zeros(len(segments)/2*C)
	dm := normal(r, M*C)
	dm0 := clone(dm)
	SegmentMeanBackward(dm, cm, segments, C)
	checkGradient(t, func() float64 {
		SegmentMean(mean, x, segments, C)
		return project(mean, cm)
	}, limit, argument{"x of SegmentMean", x, minus(dm, dm0)})
}

func TestRowsPanics(t *testing.T) {
	x := zeros(6)
	wantPanic(t, "ref: GatherRows: length mismatch", func() { GatherRows(x, x, []int32{0}, 2) })
	wantPanic(t, "ref: ScatterRows: length mismatch", func() { ScatterRows(x, x, []int32{0}, 2) })
	wantPanic(t, "ref: row out of range", func() { GatherRows(x[:2], x, []int32{3}, 2) })
	wantPanic(t, "ref: row out of range", func() { ScatterRows(x, x[:2], []int32{-1}, 2) })
	wantPanic(t, "ref: SegmentMean: length mismatch", func() { SegmentMean(x[:2], x, []int32{0, 1, 2}, 2) })
	wantPanic(t, "ref: segment out of range", func() { SegmentMean(x[:2], x, []int32{0, 4}, 2) })
	wantPanic(t, "ref: segment out of range", func() { SegmentMeanBackward(x, x[:2], []int32{2, 1}, 2) })
	wantPanic(t, "ref: SegmentMeanBackward: length mismatch", func() { SegmentMeanBackward(x, x[:4], []int32{2, 1}, 2) })
}
