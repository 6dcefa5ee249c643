package vision

import (
	"math"
)

// An image of rows × columns patches is a list of patches in the order of Qwen's processor: token after token, row by
// row, and the Merge × Merge patches of a token row by row.

// place returns the row and the column of patch i of an image that has so many columns.
func (c Config) place(i, columns int) (row, column int) {
	token, at, across := i/c.unit(), i%c.unit(), columns/c.Merge
	return token/across*c.Merge + at/c.Merge, token%across*c.Merge + at%c.Merge
}

// windows returns the patches of each window, in order; windows go row by row, and the last of a row or a column may
// be smaller. Without windows it is the whole image.
func (c Config) windows(rows, columns int) [][]int32 {
	down, across, side := rows/c.Merge, columns/c.Merge, c.Window
	if side == 0 {
		side = max(down, across)
	}
	wide := (across + side - 1) / side
	list := make([][]int32, (down+side-1)/side*wide)
	for i := range rows * columns {
		token := i / c.unit()
		w := token/across/side*wide + token%across/side
		list[w] = append(list[w], int32(i))
	}
	return list
}

// rotary returns cos and sin [N,D/2] of an image's patches: the first half of the pairs of a head turns by the row of
// the patch, the second by its column, with frequencies 10000^(-4j/D).
func (c Config) rotary(rows, columns int) (cos, sin []float64) {
	D := c.Width / c.Heads
	quarter := D / 4
	cos, sin = make([]float64, rows*columns*2*quarter), make([]float64, rows*columns*2*quarter)
	for i := range rows * columns {
		row, column := c.place(i, columns)
		for half, at := range [...]int{row, column} {
			for j := range quarter {
				angle := float64(at) * math.Pow(ropeTheta, -4*float64(j)/float64(D))
				to := i*2*quarter + half*quarter + j
				cos[to], sin[to] = math.Cos(angle), math.Sin(angle)
			}
		}
	}
	return cos, sin
}

// between is a place among the learned positions of a side: at low and high with weights 1-share and share.
type between struct {
	low, high int
	share     float64
}

// spread returns the places of n patches along a side, evenly from the first learned position to the last.
func (c Config) spread(n int) []between {
	list := make([]between, n)
	for i := range list {
		at := 0.0
		if n > 1 {
			at = float64(i) * float64(c.Side-1) / float64(n-1)
		}
		low := int(at)
		list[i] = between{low, min(low+1, c.Side-1), at - float64(low)}
	}
	return list
}

// positions sets out [patches from lo to hi, C] to learned positions, bilinearly interpolated between four rows of
// the table [Side²,C].
func (c Config) positions(out []float64, table []float32, rows, columns, lo, hi int) {
	C := c.Width
	downs, acrosses := c.spread(rows), c.spread(columns)
	for i := lo; i < hi; i++ {
		row, column := c.place(i, columns)
		y, x := downs[row], acrosses[column]
		corner := func(row, column int) []float32 { return table[(row*c.Side+column)*C:][:C] }
		a, b := corner(y.low, x.low), corner(y.low, x.high)
		d, e := corner(y.high, x.low), corner(y.high, x.high)
		wa, wb := float64((1-y.share)*(1-x.share)), float64((1-y.share)*x.share)
		wd, we := float64(y.share*(1-x.share)), float64(y.share*x.share)
		o := out[(i-lo)*C:][:C]
		for j := range o { // each product rounded on its own, so that no processor fuses them
			o[j] = float64(float64(wa*float64(a[j]))+float64(wb*float64(b[j]))) + float64(wd*float64(d[j])) +
				float64(we*float64(e[j]))
		}
	}
}

func inverseRoot(n int) float64 { return 1 / math.Sqrt(float64(n)) }
