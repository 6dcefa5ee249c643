package picture

import (
	"errors"
	"fmt"
	"slices"
)

// This file reads how transformers' image processors choose the size of an image.

// processors lists the supported ones.
func processors() []string {
	return []string{"Qwen2VLImageProcessor", "Qwen2_5_VLImageProcessor", "Glm4vImageProcessor", "Glm46VImageProcessor",
		"GotOcr2ImageProcessor", "Idefics3ImageProcessor", "SmolVLMImageProcessor", "PixtralImageProcessor",
		"Gemma3ImageProcessor"}
}

// sizesOf returns what reads the sizes of a processor; nil for others.
func sizesOf(processor string) func(*written, *Settings) error {
	switch i := slices.Index(processors(), processor); {
	case i < 0:
		return nil
	case i < 2:
		return (*written).qwenSizes
	case i < 4:
		return (*written).glmSizes
	case i < 5:
		return (*written).tiles
	case i < 7:
		return (*written).longSide
	case i < 8:
		return (*written).fit
	}
	return (*written).square
}

// whole returns a number of pixels, which must be whole.
func whole(key string, v float64) (int, error) {
	n := int(v)
	if float64(n) != v {
		return 0, fmt.Errorf("size: %s: %g is not a whole number of pixels", key, v)
	}
	return n, nil
}

// area sets the range of areas from size.
func (w *written) area(s *Settings) error {
	for _, x := range [][2]string{{"shortest_edge", "min_pixels"}, {"longest_edge", "max_pixels"}} {
		if a, b := w.Size[x[0]], w.Size[x[1]]; a != nil && b != nil && *a != *b {
			return fmt.Errorf("size: %s is %g and %s %g, which mean the same: remove one of them", x[0], *a, x[1], *b)
		}
	}
	for key, v := range w.Size {
		if v == nil {
			continue
		}
		n, err := whole(key, *v)
		switch {
		case err != nil:
			return err
		case key == "shortest_edge" || key == "min_pixels":
			s.MinPixels = n
		case key == "longest_edge" || key == "max_pixels":
			s.MaxPixels = n
		default:
			return fmt.Errorf("size: %s is not supported, only shortest_edge and longest_edge (areas in pixels) are",
				key)
		}
	}
	return nil
}

// qwenSizes reads the range of areas: min_pixels and max_pixels go before size, as in transformers.
func (w *written) qwenSizes(s *Settings) error {
	if err := w.area(s); err != nil {
		return err
	}
	set(&s.MinPixels, w.Min)
	set(&s.MaxPixels, w.Max)
	return nil
}

// glmSizes reads GLM-4.1V's range of areas, which counts an image Frames times.
func (w *written) glmSizes(s *Settings) error {
	if w.Min != nil || w.Max != nil {
		return fmt.Errorf("min_pixels and max_pixels: transformers ignores them in this processor; remove them, or " +
			"set size: shortest_edge and longest_edge")
	}
	s.Enlarge, s.MinPixels, s.MaxPixels = true, 112*112, 28*28*15000
	if err := w.area(s); err != nil {
		return err
	}
	if s.Frames < 1 || s.Frames&(s.Frames-1) != 0 || s.MinPixels%s.Frames+s.MaxPixels%s.Frames != 0 {
		return fmt.Errorf("size: areas from %d to %d of %d frames: frames must be a power of 2 and divide both",
			s.MinPixels, s.MaxPixels, s.Frames)
	}
	s.MinPixels, s.MaxPixels = s.MinPixels/s.Frames, s.MaxPixels/s.Frames
	return nil
}

// longSide reads the settings of Idefics3's processor, which brings the longer side of an image to a length and cuts
// it into tiles.
func (w *written) longSide(s *Settings) error {
	s.Frames, s.Patch, s.Merge, s.LongSide, s.Tile, s.MinPixels = 1, 1, 1, true, 364, 1
	s.Mean, s.Std = [3]float64{0.5, 0.5, 0.5}, [3]float64{0.5, 0.5, 0.5}
	s.Lanczos = w.Resample == nil || *w.Resample == lanczosNumber
	edge, split := 4*364, true
	if err := errors.Join(longest("size", w.Size, &edge), longest("max_image_size", w.TileSize, &s.Tile)); err != nil {
		return err
	}
	if s.Tile > mostTile {
		return fmt.Errorf("max_image_size: a tile's side of %d pixels is more than %d", s.Tile, mostTile)
	}
	if edge > mostLongSide {
		return fmt.Errorf("size: longest_edge of %d is more than %d, transformers' limit", edge, mostLongSide)
	}
	set(&split, w.Split)
	s.Uncut, s.MaxPixels = !split, edge*edge
	return nil
}

// longest sets *to to the longest_edge of an object of sizes, if it has one.
func longest(name string, sizes map[string]*float64, to *int) error {
	for key, v := range sizes {
		if v == nil {
			continue
		}
		n, err := whole(key, *v)
		if err != nil {
			return err
		}
		if key != "longest_edge" || n < 1 {
			return fmt.Errorf("%s: %s of %d is not supported, only longest_edge is, of 1 or more", name, key, n)
		}
		*to = n
	}
	return nil
}

// fit reads the settings of Pixtral's processor. Its whole processor says what a patch is, not patch_size.
func (w *written) fit(s *Settings) error {
	s.Frames, s.Patch, s.Merge, s.Fit, s.MinPixels = 1, 1, 1, true, 1
	edge := 1024
	if err := longest("size", w.Size, &edge); err != nil {
		return err
	}
	if edge > mostTile {
		return fmt.Errorf("size: longest_edge of %d is more than %d", edge, mostTile)
	}
	s.MaxPixels = edge * edge
	return nil
}

// square reads the settings of Gemma 3's processor, which brings every image to one square.
func (w *written) square(s *Settings) error {
	if w.Pan != nil && *w.Pan {
		return errors.New("do_pan_and_scan: true is not supported: an image is not cut into parts")
	}
	half := [3]float64{0.5, 0.5, 0.5}
	s.Frames, s.Patch, s.Merge, s.Uncut, s.Mean, s.Std = 1, 1, 1, true, half, half
	s.Bilinear = w.Resample == nil || *w.Resample == bilinearNumber
	if err := w.tile(s, 224); err != nil {
		return err
	}
	s.MinPixels, s.MaxPixels = s.Tile*s.Tile, s.Tile*s.Tile
	return nil
}

// tiles reads the tiles of InternVL's processor, which cuts images into tiles whatever crop_to_patches says.
func (w *written) tiles(s *Settings) error {
	s.Frames, s.Patch, s.Merge = 1, 1, 1
	if err := w.tile(s, 384); err != nil {
		return err
	}
	least, most := 1, 12
	set(&least, w.MinTiles)
	set(&most, w.MaxTiles)
	if least < 1 || most < least || most > mostTiles {
		return fmt.Errorf("min_patches: %d, max_patches: %d do not ascend from 1 to %d", least, most, mostTiles)
	}
	s.MinPixels, s.MaxPixels = least*s.Tile*s.Tile, most*s.Tile*s.Tile
	return nil
}

// tile reads the side of a tile from size, usual without one.
func (w *written) tile(s *Settings, usual int) error {
	s.Tile = usual
	sides := map[string]int{}
	for key, v := range w.Size {
		if v == nil {
			continue
		}
		n, err := whole(key, *v)
		if err != nil {
			return err
		}
		if key != "height" && key != "width" {
			return fmt.Errorf("size: %s is not supported, only height and width are", key)
		}
		sides[key] = n
	}
	if len(sides) > 0 {
		if s.Tile = sides["height"]; s.Tile != sides["width"] {
			return fmt.Errorf("size: tiles of %d·%d pixels are not square", sides["width"], s.Tile)
		}
	}
	if s.Tile < 1 || s.Tile > mostTile {
		return fmt.Errorf("size: a tile's side of %d pixels is not between 1 and %d", s.Tile, mostTile)
	}
	return nil
}
