package picture

import (
	"errors"
	"fmt"
	"math"
)

// This file has sizes that depend on the longer side of an image: Pixtral's, and the tiles of Idefics3
// (arXiv:2408.12637 §2.2) and SmolVLM (arXiv:2504.05299 §2.3).

// mostLongSide is the longest side that an image is brought to, transformers' MAX_IMAGE_SIZE.
const mostLongSide = 4096

// fitted is resized for Pixtral, transformers' get_resize_output_image_size there.
func (s Settings) fitted(height, width int) (h, w int, err error) {
	f := s.Patch * s.Merge
	most := math.Floor(math.Sqrt(float64(s.MaxPixels)))
	if ratio := max(float64(height)/most, float64(width)/most); ratio > 1 {
		height, width = int(float64(height)/ratio), int(float64(width)/ratio)
	}
	if height < 1 || width < 1 {
		return 0, 0, fmt.Errorf("an image so long that at %.0f pixels nothing of its other side is left", most)
	}
	h, w = (height+f-1)/f*f, (width+f-1)/f*f
	if h*w > mostPixels {
		return 0, 0, fmt.Errorf("an image would be resized to %d×%d, more than %d million pixels", w, h,
			mostPixels/1_000_000)
	}
	return h, w, nil
}

// edge returns the length that the longer side of an image is brought to.
func (s Settings) edge() int { return min(int(math.Sqrt(float64(s.MaxPixels))), mostLongSide) }

// checkLongSide is checkTiles for such tiles.
func (s Settings) checkLongSide() error {
	k := (s.edge() + s.Tile - 1) / max(s.Tile, 1)
	switch {
	case s.Tile < s.Patch || s.Tile > mostTile || s.Tile/s.Patch%s.Merge != 0:
		return fmt.Errorf("max_image_size: tiles of %d pixels a side (%d at most) have %d patches of %d pixels a "+
			"side, and a token has %d", s.Tile, mostTile, s.Tile/s.Patch, s.Patch, s.Merge)
	case k*k > mostTiles:
		return fmt.Errorf("max_pixels: %d are more than %d tiles of %d×%d pixels", s.MaxPixels, mostTiles, s.Tile,
			s.Tile)
	case s.MinPixels != 1:
		return errors.New("min_pixels: the image processors of Idefics3 and SmolVLM bring every image to one " +
			"length, and max_pixels is its square")
	}
	return nil
}

// longSide returns the size that an image has before it is brought to whole tiles: its longer side is edge, and the
// other one keeps the shape, rounded down, and up to an even number.
func (s Settings) longSide(width, height int) (w, h int) {
	shape := float64(width) / float64(height)
	even := func(side float64) int { return max((int(side)+1)/2*2, 1) }
	if width >= height {
		w = s.edge()
		return w, even(float64(w) / shape)
	}
	h = s.edge()
	return even(float64(h) * shape), h
}

// cover returns how many tiles an image is resized to: those that cover its longer side, after longSide, and those
// that cover the other one at the scale that makes the longer side whole tiles.
func (s Settings) cover(width, height int) (across, down int) {
	if s.Uncut {
		return 1, 1
	}
	width, height = s.longSide(width, height)
	shape := float64(width) / float64(height)
	tiles := func(side int) int { return (side + s.Tile - 1) / s.Tile }
	if width >= height {
		across = tiles(width)
		return across, tiles(int(float64(across*s.Tile) / shape))
	}
	down = tiles(height)
	return tiles(int(float64(down*s.Tile) * shape)), down
}

// Tiling returns how many rows and columns of tiles an image is cut into; zeros if it is one tile.
func (s Settings) Tiling(width, height int) (rows, columns int, err error) {
	if err := s.readable(width, height); err != nil {
		return 0, 0, err
	}
	if columns, rows = s.canvas(width, height); rows*columns == 1 {
		return 0, 0, nil
	}
	return rows, columns, nil
}
