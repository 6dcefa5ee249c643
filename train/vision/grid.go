package vision

import "math"

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

// whole returns the rows of each segment without windows. A segment is the image, or one of its tiles, whose class row
// comes first if it has one.
func (c Config) whole(rows, columns int) [][]int32 {
	n, tiles := rows*columns, c.tiles(rows)
	all := count(n + c.extra(rows))
	if tiles == 0 {
		return [][]int32{all}
	}
	list := make([][]int32, tiles)
	for i := range list {
		if n < len(all) {
			list[i] = append(list[i], all[n+i])
		}
		list[i] = append(list[i], all[i*n/tiles:(i+1)*n/tiles]...)
	}
	return list
}

// tiles returns the tiles of an image of so many rows of patches; 0 if it is not cut into some.
func (c Config) tiles(rows int) int {
	if c.has().tiled {
		return rows / c.Side
	}
	return 0
}

// extra returns the rows beyond the patches of an image of so many rows of patches: one for each tile with a class.
func (c Config) extra(rows int) int {
	if c.has().class {
		return c.tiles(rows)
	}
	return 0
}

// rotary returns cos and sin [N,D/2] of an image's patches: the first half of the pairs of a head turns by the row of
// the patch, the second by its column, with frequencies 10000^(-4j/D), or in Pixtral 10000^(-(4j+2)/D) by the column.
func (c Config) rotary(rows, columns int) (cos, sin []float64) {
	D := c.Width / c.Heads
	quarter := D / 4
	cos, sin = make([]float64, rows*columns*2*quarter), make([]float64, rows*columns*2*quarter)
	for i := range rows * columns {
		row, column := c.place(i, columns)
		for half, at := range [...]int{row, column} {
			for j := range quarter {
				power := 4 * j
				if c.has().between {
					power += 2 * half
				}
				angle := float64(at) * math.Pow(ropeTheta, -float64(power)/float64(D))
				to := i*2*quarter + half*quarter + j
				cos[to], sin[to] = math.Cos(angle), math.Sin(angle)
			}
		}
	}
	return cos, sin
}

func inverseRoot(n int) float64 { return 1 / math.Sqrt(float64(n)) }
