package picture

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Bounds of tiles: of their sides, in pixels, and of their number.
const (
	mostTile  = 4096
	mostTiles = 256
)

// checkTiles reports tiles that make no sense.
func (s Settings) checkTiles() error {
	side := s.Patch * s.Merge
	switch {
	case s.Tile == 0:
		return nil
	case s.LongSide:
		return s.checkLongSide()
	case s.Square() && (s.MinPixels != s.Tile*s.Tile || s.MaxPixels != s.Tile*s.Tile):
		return fmt.Errorf("min_pixels: %d, max_pixels: %d: the image processor of Gemma 3 brings every image to "+
			"%d×%d pixels", s.MinPixels, s.MaxPixels, s.Tile, s.Tile)
	case s.Tile < 0 || s.Tile > mostTile || s.Tile%side != 0:
		return fmt.Errorf("size: a tile's side of %d pixels is not a multiple of a token's %d up to %d", s.Tile, side,
			mostTile)
	case s.MaxPixels < s.Tile*s.Tile:
		return fmt.Errorf("max_pixels: %d is less than one tile's %d×%d pixels", s.MaxPixels, s.Tile, s.Tile)
	case s.MaxPixels > mostTiles*s.Tile*s.Tile || s.MaxPixels > mostPixels:
		return fmt.Errorf("max_pixels: %d are more than %d tiles or %d million pixels", s.MaxPixels, mostTiles,
			mostPixels/1_000_000)
	case s.MinPixels > s.MaxPixels/(s.Tile*s.Tile)*s.Tile*s.Tile:
		return fmt.Errorf("min_pixels: no whole number of tiles of %d×%d has from %d to %d pixels", s.Tile, s.Tile,
			s.MinPixels, s.MaxPixels)
	}
	return nil
}

// canvas returns how many tiles an image is resized to: with LongSide as cover says, otherwise the arrangement whose
// shape is closest to the image's, transformers' get_optimal_tiled_canvas. Of arrangements of one shape it is the
// largest that has less than twice the image's area, if any larger than the smallest does.
func (s Settings) canvas(width, height int) (across, down int) {
	if s.LongSide {
		return s.cover(width, height)
	}
	area := s.Tile * s.Tile
	least, most := (s.MinPixels+area-1)/area, s.MaxPixels/area
	var list [][2]int
	for w := 1; w <= most; w++ {
		for h := 1; w*h <= most; h++ {
			if w*h >= least {
				list = append(list, [2]int{w, h})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b [2]int) int { return cmp.Compare(a[0]*a[1], b[0]*b[1]) })
	best, shape, of := math.Inf(1), float64(width)/float64(height), [2]int{1, 1}
	for _, x := range list {
		off := math.Abs(shape - float64(x[0])/float64(x[1]))
		if off < best || off == best && float64(width)*float64(height) > 0.5*float64(area*x[0]*x[1]) {
			best, of = off, x
		}
	}
	return of[0], of[1]
}

// tilesOf returns the number of tiles of such an image, with the one that shows the whole.
func (s Settings) tilesOf(width, height int) int {
	across, down := s.canvas(width, height)
	if n := across * down; n > 1 {
		return n + 1
	}
	return 1
}

// stack returns the tiles of an image, one below the other: row by row, and last the whole image if there are several.
// Pixels beyond the last whole patch of a tile are left out.
func (s Settings) stack(m bitmap) bitmap {
	across, down := s.canvas(m.width, m.height)
	side := s.Tile / s.Patch * s.Patch
	out, next := newBitmap(side, side*s.tilesOf(m.width, m.height)), 0
	add := func(from bitmap, x, y int) {
		for row := range side {
			copy(out.row(next), from.row(y + row)[3*x:][:3*side])
			next++
		}
	}
	large, whole := s.sheets(m, across, down)
	for i := range across * down {
		add(large, i%across*s.Tile, i/across*s.Tile)
	}
	if across*down > 1 {
		add(whole, 0, 0)
	}
	return out
}

// sheets returns an image resized to so many tiles and, if they are several, to one.
func (s Settings) sheets(m bitmap, across, down int) (large, whole bitmap) {
	f, from := s.filter(), m
	if s.LongSide {
		w, h := s.longSide(m.width, m.height)
		m = m.resizeWith(f, w, h)
	}
	large = m.resizeWith(f, across*s.Tile, down*s.Tile)
	if across*down == 1 {
		return large, bitmap{}
	}
	if s.LongSide {
		from = large
	}
	return large, from.resizeWith(f, s.Tile, s.Tile)
}
