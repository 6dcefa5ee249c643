package vision

import "math"

// tap is a learned position of a side and its weight.
type tap struct {
	at     int
	weight float64
}

// taps returns, for each of n patches along a side, the learned positions that its own is made from.
func (c Config) taps(n int) [][]tap {
	from := c.fromCorners
	if c.has().learned == areas {
		from = c.fromAreas
	}
	list := make([][]tap, n)
	for i := range list {
		list[i] = from(i, n)
	}
	return list
}

// fromCorners is taps where patches lie evenly from the first learned position to the last: the two around patch i.
func (c Config) fromCorners(i, n int) []tap {
	at := 0.0
	if n > 1 {
		at = float64(i) * float64(c.Side-1) / float64(n-1)
	}
	low := int(at)
	share := at - float64(low)
	return []tap{{low, 1 - share}, {min(low+1, c.Side-1), share}}
}

// fromAreas is taps where n patches and Side positions divide the same length evenly: the four around the middle of
// patch i, with the weights of Keys' cubic convolution with a = -3/4 (R. Keys, "Cubic Convolution Interpolation for
// Digital Image Processing", 1981). Beyond the ends are the first and the last. It is torch's interpolation, bicubic
// without aligned corners.
func (c Config) fromAreas(i, n int) []tap {
	const a = -0.75
	at := (float64(i)+0.5)*float64(c.Side)/float64(n) - 0.5
	low := math.Floor(at)
	var list []tap
	for k := range 4 {
		x := math.Abs(at - low - float64(k-1))
		w := float64(float64(float64((a+2)*x)-(a+3))*float64(x*x)) + 1
		if x >= 1 {
			w = float64(float64(float64(float64(float64(a*x)-5*a)*x)+8*a)*x) - 4*a
		}
		if w != 0 { // three of four are where patches lie on the positions
			list = append(list, tap{min(max(int(low)+k-1, 0), c.Side-1), w})
		}
	}
	return list
}

// eachTap calls f with every learned position, a row of the table [Side²,C], that patches from lo to hi are made from,
// and its weight. n counts the positions of a patch. A tile has all of them, whatever the image.
func (c Config) eachTap(rows, columns, lo, hi int, f func(patch, n, row int, weight float64)) {
	if tiles := c.tiles(rows); tiles > 0 {
		rows /= tiles
	}
	downs, acrosses := c.taps(rows), c.taps(columns)
	for i := lo; i < hi; i++ {
		n := 0
		row, column := c.place(i, columns)
		for _, y := range downs[row%rows] {
			for _, x := range acrosses[column] {
				f(i, n, y.at*c.Side+x.at, float64(y.weight*x.weight))
				n++
			}
		}
	}
}

// positions sets out [patches from lo to hi, C] to learned positions, interpolated between rows of the table
// [Side²,C].
func (c Config) positions(out, table []float64, rows, columns, lo, hi int) {
	C := c.Width
	c.eachTap(rows, columns, lo, hi, func(patch, n, row int, weight float64) {
		o, from := out[(patch-lo)*C:][:C], table[row*C:][:C]
		for j := range o { // each product rounded on its own, so that no processor fuses them
			v := float64(weight * from[j])
			if n > 0 {
				v = o[j] + v
			}
			o[j] = v
		}
	})
}

// positionsBackward adds to dtable [Side²,C] the gradients of the learned positions that patches from lo to hi are
// made from, given theirs, d [patches from lo to hi, C].
func (c Config) positionsBackward(dtable, d []float64, rows, columns, lo, hi int) {
	C := c.Width
	c.eachTap(rows, columns, lo, hi, func(patch, _, row int, weight float64) {
		from, to := d[(patch-lo)*C:][:C], dtable[row*C:][:C]
		for j := range to {
			to[j] += float64(weight * from[j])
		}
	})
}
