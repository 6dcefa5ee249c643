package ref

// Clip sets out[i] to x[i], to limit if it is above that, or to -limit if it is below that; a NaN stays one. out may
// be x.
func Clip[T Float](out, x []T, limit float64) {
	if len(out) != len(x) {
		panic("ref: Clip: length mismatch")
	}
	most := T(limit)
	for i, v := range x {
		switch {
		case v > most:
			v = most
		case v < -most:
			v = -most
		}
		out[i] = v
	}
}

// ClipBackward sets dx[i] to dout[i], or to 0 where x[i] is beyond the limit. dx may be dout.
func ClipBackward[T Float](dx, dout, x []T, limit float64) {
	if len(dx) != len(x) || len(dout) != len(x) {
		panic("ref: ClipBackward: length mismatch")
	}
	most := T(limit)
	for i, v := range x {
		d := dout[i]
		if v > most || v < -most {
			d = 0
		}
		dx[i] = d
	}
}
