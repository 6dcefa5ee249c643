package ref

// GatherRows sets out[r] = x[rows[r]]; out [R,C], x [M,C], rows [R].
func GatherRows[T Float](out, x []T, rows []int32, C int) {
	if len(out) != len(rows)*C || len(x)%C != 0 {
		panic("ref: GatherRows: length mismatch")
	}
	for r, m := range rows {
		checkRow(int(m), len(x)/C)
		copy(out[r*C:(r+1)*C], x[int(m)*C:(int(m)+1)*C])
	}
}

// ScatterRows sets dx [M,C] to zero, then adds dout[r] to dx[rows[r]], r ascending;
// dout [R,C], rows [R]. It is the backward pass of GatherRows.
func ScatterRows[T Float](dx, dout []T, rows []int32, C int) {
	if len(dout) != len(rows)*C || len(dx)%C != 0 {
		panic("ref: ScatterRows: length mismatch")
	}
	clear(dx)
	for r, m := range rows {
		checkRow(int(m), len(dx)/C)
		addTo(dx[int(m)*C:(int(m)+1)*C], dout[r*C:(r+1)*C])
	}
}

// SegmentMean sets out[j] [C] to the mean of rows segments[2j] to segments[2j+1]
// (exclusive) of x [M,C]: the plain sum in row order from 0, divided by their
// number; 0 for an empty segment.
func SegmentMean[T Float](out, x []T, segments []int32, C int) {
	if len(out) != len(segments)/2*C || len(segments)%2 != 0 || len(x)%C != 0 {
		panic("ref: SegmentMean: length mismatch")
	}
	clear(out)
	for j := 0; j < len(segments)/2; j++ {
		lo, hi := segment(segments, j, len(x)/C)
		o := out[j*C : (j+1)*C]
		for m := lo; m < hi; m++ {
			addTo(o, x[m*C:(m+1)*C])
		}
		if lo == hi {
			continue
		}
		for c := range o {
			o[c] /= T(hi - lo)
		}
	}
}

// SegmentMeanBackward adds dout[j]/n to each of the n rows of segment j of dx
// [M,C], j ascending.
func SegmentMeanBackward[T Float](dx, dout []T, segments []int32, C int) {
	if len(dout) != len(segments)/2*C || len(segments)%2 != 0 || len(dx)%C != 0 {
		panic("ref: SegmentMeanBackward: length mismatch")
	}
	for j := 0; j < len(segments)/2; j++ {
		lo, hi := segment(segments, j, len(dx)/C)
		for m := lo; m < hi; m++ {
			for c, d := range dout[j*C : (j+1)*C] {
				dx[m*C+c] += d / T(hi-lo)
			}
		}
	}
}

func segment(segments []int32, j, M int) (lo, hi int) {
	lo, hi = int(segments[2*j]), int(segments[2*j+1])
	if lo < 0 || hi < lo || hi > M {
		panic("ref: segment out of range")
	}
	return lo, hi
}

func checkRow(m, M int) {
	if m < 0 || m >= M {
		panic("ref: row out of range")
	}
}
