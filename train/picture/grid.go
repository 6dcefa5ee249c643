package picture

import (
	"fmt"
	"math"
)

// mostPixels is the largest image that is read or made: 300 MB of pixels. Files of a few kilobytes can claim more.
const mostPixels = 100_000_000

// mostStretched is how many times longer than wide an image may be, as in transformers.
const mostStretched = 200

// Grid returns how many patches an image has after resizing. Both are multiples of Merge. Tiles lie one below the
// other.
func (s Settings) Grid(width, height int) (rows, columns int, err error) {
	if s.Tile > 0 {
		if err := s.readable(width, height); err != nil {
			return 0, 0, err
		}
		side := s.Tile / s.Patch
		return s.tilesOf(width, height) * side, side, nil
	}
	h, w, err := s.resized(height, width)
	if err != nil {
		return 0, 0, err
	}
	return h / s.Patch, w / s.Patch, nil
}

// Tokens returns how many tokens an image becomes.
func (s Settings) Tokens(width, height int) (rows, columns int, err error) {
	rows, columns, err = s.Grid(width, height)
	if err != nil {
		return 0, 0, err
	}
	return rows / s.Merge, columns / s.Merge, nil
}

// MostPatches returns how many patches the largest image has after resizing. Very long ones without tiles may have
// more.
func (s Settings) MostPatches() int {
	n := s.MaxPixels
	if s.LongSide {
		across, _ := s.cover(1, 1)
		return (across*across + min(across-1, 1)) * (s.Tile / s.Patch) * (s.Tile / s.Patch)
	}
	if n >= 2*s.Tile*s.Tile {
		n += s.Tile * s.Tile
	}
	if f := s.Patch * s.Merge; s.Fit {
		n = (int(math.Sqrt(float64(n))) + f - 1) / f * f
		n *= n
	}
	return n / (s.Patch * s.Patch)
}

// readable reports settings that make no sense and sizes that are not read.
func (s Settings) readable(width, height int) error {
	if err := s.Check(); err != nil {
		return err
	}
	if height < 1 || width < 1 || height > mostPixels/width {
		return fmt.Errorf("an image of %d×%d pixels: it must have between 1 and %d million", width, height,
			mostPixels/1_000_000)
	}
	return nil
}

// resized returns the height and width to resize an image to, transformers' smart_resize: multiples of a token's side
// f = Patch·Merge close to the image's own, with an area of MinPixels to MaxPixels.
//
//	h' = f·round(h/f)                                          halves to even
//	h' = max(f, f·⌊h/(β·f)⌋)  where h'·w' > MaxPixels,  β = √(h·w/MaxPixels)
//	h' = f·⌈h·β/f⌉            where h'·w' < MinPixels,  β = √(MinPixels/(h·w))
//
// With Enlarge, where h or w is less than f, both are multiplied by what makes the shorter one f before, and rounded
// down.
func (s Settings) resized(height, width int) (h, w int, err error) {
	return s.resizedFrames(height, width, 1, 1)
}

// resizedFrames is resized for n frames, whose areas count together: h·w is n times as much, and h'·w' counted times.
func (s Settings) resizedFrames(height, width, n, counted int) (h, w int, err error) {
	if err := s.readable(width, height); err != nil {
		return 0, 0, err
	}
	if s.Fit {
		return s.fitted(height, width)
	}
	f := float64(s.Patch * s.Merge)
	if short := float64(min(height, width)); s.Enlarge && short < f {
		scale := f / short
		height, width = int(float64(height)*scale), int(float64(width)*scale)
	}
	long, short := max(height, width), min(height, width)
	if long > mostStretched*short {
		return 0, 0, fmt.Errorf("an image of %d×%d pixels: one side must not be more than %d times the other", width,
			height, mostStretched)
	}
	y, x := float64(height), float64(width)
	hh, ww := math.RoundToEven(y/f)*f, math.RoundToEven(x/f)*f
	all := float64(n) * y * x
	switch area := float64(counted) * hh * ww; {
	case area > float64(s.MaxPixels):
		beta := math.Sqrt(all / float64(s.MaxPixels))
		hh, ww = max(f, math.Floor(y/beta/f)*f), max(f, math.Floor(x/beta/f)*f)
	case area < float64(s.MinPixels):
		beta := math.Sqrt(float64(s.MinPixels) / all)
		hh, ww = math.Ceil(y*beta/f)*f, math.Ceil(x*beta/f)*f
	}
	if hh*ww > mostPixels {
		return 0, 0, fmt.Errorf("an image of %d×%d pixels would be resized to %.0f×%.0f, more than %d million pixels",
			width, height, ww, hh, mostPixels/1_000_000)
	}
	return int(hh), int(ww), nil
}
