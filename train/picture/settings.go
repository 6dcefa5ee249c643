package picture

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// The files that have an image processor's settings. transformers 5 writes the second and prefers it.
const (
	imageFile = "preprocessor_config.json"
	wholeFile = "processor_config.json"
)

// Settings are the settings of an image processor; NewSettings has the defaults. A caller may change MinPixels and
// MaxPixels.
type Settings struct {
	Patch     int        // pixels, the side of a square patch
	Merge     int        // patches, the side of the square that becomes one token
	Frames    int        // images of a patch in time: a still one is repeated
	MinPixels int        // of the resized image, about
	MaxPixels int        // of the resized image, at most
	Mean, Std [3]float64 // of red, green and blue, on a scale of 0 to 1
	Rescale   float64    // makes 0 to 255 that scale
	// Enlarge says that an image with a side shorter than a token's is enlarged before its size is chosen (GLM-4.1V).
	Enlarge bool `json:",omitempty"`
	// Tile is the side, in pixels, of the square tiles that an image is resized to and cut into (InternVL, Idefics3,
	// SmolVLM); without LongSide, MinPixels and MaxPixels are of all tiles together. An image of several tiles has
	// another one with the whole. 0: no tiles.
	Tile int `json:",omitempty"`
	// LongSide says that the longer side of an image is brought to √MaxPixels pixels, at most 4096, and then both
	// sides to whole tiles (Idefics3, SmolVLM); MinPixels is 1, which means nothing.
	LongSide bool `json:",omitempty"`
	// Fit says that an image whose longer side has more than √MaxPixels pixels is reduced to that, and both sides are
	// then rounded up to whole tokens (Pixtral); MinPixels is 1, which means nothing.
	Fit bool `json:",omitempty"`
	// Uncut says that an image is one tile, whatever its size (do_image_splitting: false, and always for Gemma 3,
	// whose MinPixels and MaxPixels are a tile's).
	Uncut bool `json:",omitempty"`
	// Lanczos says that images are resized with Lanczos' filter, not the bicubic one.
	Lanczos bool `json:",omitempty"`
	// Bilinear says that images are resized with a triangle as the filter.
	Bilinear bool `json:",omitempty"`
}

// Square reports whether images are brought to one square, whatever their shape (Gemma 3).
func (s Settings) Square() bool { return s.Uncut && !s.LongSide }

// filter returns what images are resized with.
func (s Settings) filter() filter {
	switch {
	case s.Lanczos:
		return lanczosFilter()
	case s.Bilinear:
		return bilinearFilter()
	}
	return bicubicFilter()
}

// NewSettings returns the defaults of transformers' Qwen2VLImageProcessor.
func NewSettings() Settings {
	return Settings{
		Patch: 14, Merge: 2, Frames: 2, MinPixels: 56 * 56, MaxPixels: 28 * 28 * 1280,
		Mean: [3]float64{0.48145466, 0.4578275, 0.40821073}, Std: [3]float64{0.26862954, 0.26130258, 0.27577711},
		Rescale: 1. / 255,
	}
}

// ReadSettings reads the settings of the model folder dir: image_processor of processor_config.json or, without it,
// preprocessor_config.json. Errors name the file and the key. With tiles, and with Fit, the tower's configuration says
// what a patch is, and the caller sets Patch and Merge.
func ReadSettings(dir string) (Settings, error) {
	path := filepath.Join(dir, wholeFile)
	var whole struct {
		Image json.RawMessage `json:"image_processor"`
	}
	data, err := os.ReadFile(path)
	switch {
	case err == nil:
		if err := json.Unmarshal(data, &whole); err != nil {
			return Settings{}, fmt.Errorf("%s: %w", path, err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return Settings{}, err
	}
	data = whole.Image
	if data == nil || string(data) == "null" {
		path = filepath.Join(dir, imageFile)
		if data, err = os.ReadFile(path); err != nil {
			return Settings{}, fmt.Errorf("settings of the image processor: %w", err)
		}
	}
	s, err := parseSettings(data)
	if err != nil {
		return Settings{}, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// written are the keys of a file that count. Absent and null are the default.
type written struct {
	Type      *string             `json:"image_processor_type"`
	Patch     *side               `json:"patch_size"`
	Frames    *int                `json:"temporal_patch_size"`
	Merge     *int                `json:"merge_size"`
	Min       *int                `json:"min_pixels"`
	Max       *int                `json:"max_pixels"`
	Size      map[string]*float64 `json:"size"`
	MinTiles  *int                `json:"min_patches"`
	MaxTiles  *int                `json:"max_patches"`
	TileSize  map[string]*float64 `json:"max_image_size"`
	Split     *bool               `json:"do_image_splitting"`
	Pan       *bool               `json:"do_pan_and_scan"`
	Mean      channels            `json:"image_mean"`
	Std       channels            `json:"image_std"`
	Factor    *float64            `json:"rescale_factor"`
	Resample  *int                `json:"resample"`
	Resize    *bool               `json:"do_resize"`
	Rescale   *bool               `json:"do_rescale"`
	Normalize *bool               `json:"do_normalize"`
	ToRGB     *bool               `json:"do_convert_rgb"`
}

// channels is a number per channel, or one for all.
type channels []float64

func (c *channels) UnmarshalJSON(data []byte) error {
	var one float64
	if json.Unmarshal(data, &one) == nil && string(data) != "null" {
		*c = channels{one, one, one}
		return nil
	}
	var list []float64
	if err := json.Unmarshal(data, &list); err != nil {
		return errors.New("image_mean and image_std must be numbers or lists of 3 numbers")
	}
	*c = list
	return nil
}

// side is the side of a square: a number, or an object with height and width.
type side int

func (x *side) UnmarshalJSON(data []byte) error {
	var both struct{ Height, Width int }
	if json.Unmarshal(data, (*int)(x)) == nil {
		return nil
	}
	if err := json.Unmarshal(data, &both); err != nil || both.Height != both.Width {
		return fmt.Errorf("patch_size: %s is neither a number nor an object with equal height and width", data)
	}
	*x = side(both.Height)
	return nil
}

// Pillow's numbers of filters.
const (
	lanczosNumber  = 1
	bilinearNumber = 2
	bicubicNumber  = 3
)

// parseSettings reads the settings from JSON.
func parseSettings(data []byte) (Settings, error) {
	var w written
	if err := json.Unmarshal(data, &w); err != nil {
		return Settings{}, err
	}
	read, err := w.check()
	if err != nil {
		return Settings{}, err
	}
	s := NewSettings()
	set(&s.Patch, (*int)(w.Patch))
	set(&s.Frames, w.Frames)
	set(&s.Merge, w.Merge)
	set(&s.Rescale, w.Factor)
	if err := read(&w, &s); err != nil {
		return Settings{}, err
	}
	if n := w.Resample; n != nil && *n != bicubicNumber && !(s.LongSide && *n == lanczosNumber) &&
		!(s.Square() && *n == bilinearNumber) {
		return Settings{}, fmt.Errorf("resample: %d is not supported, only 3 (bicubic) is, 1 (Lanczos) in the "+
			"image processors of Idefics3 and SmolVLM, and 2 (bilinear) in Gemma 3's", *n)
	}
	if err := w.colors(&s); err != nil {
		return Settings{}, err
	}
	return s, s.Check()
}

// colors reads what is taken off the values of pixels, and divides them.
func (w *written) colors(s *Settings) error {
	for _, x := range []struct {
		key  string
		from channels
		to   *[3]float64
	}{{"image_mean", w.Mean, &s.Mean}, {"image_std", w.Std, &s.Std}} {
		if x.from == nil {
			continue
		}
		if len(x.from) != 3 {
			return fmt.Errorf("%s: has %d numbers, not one for each of 3 channels", x.key, len(x.from))
		}
		*x.to = [3]float64(x.from)
	}
	return nil
}

// check refuses processors that compute something else, and returns what reads the sizes of this one.
func (w *written) check() (sizes func(*written, *Settings) error, err error) {
	sizes = (*written).qwenSizes
	if w.Type != nil {
		kind := strings.TrimSuffix(*w.Type, "Fast")
		whole, pil := strings.CutSuffix(kind, "Pil")
		switch known := sizesOf(whole); {
		case known == nil:
			return nil, fmt.Errorf("image_processor_type: %q is not supported, only %s are, also with Fast behind "+
				"their names", *w.Type, strings.Join(processors(), ", "))
		case pil:
			return nil, fmt.Errorf("image_processor_type: %s is not supported: its pixels depend on the release of "+
				"Pillow; %s is, transformers' default", *w.Type, whole)
		default:
			sizes = known
		}
	}
	for _, x := range []struct {
		key string
		on  *bool
	}{{"do_resize", w.Resize}, {"do_rescale", w.Rescale}, {"do_normalize", w.Normalize}, {"do_convert_rgb", w.ToRGB}} {
		if x.on != nil && !*x.on {
			return nil, fmt.Errorf("%s: false is not supported", x.key)
		}
	}
	return sizes, nil
}

// set sets *to to *from unless from is nil.
func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// Check reports settings that make no sense. It names keys as the file does.
func (s Settings) Check() error {
	for _, x := range []struct {
		key     string
		v, most int
	}{{"patch_size", s.Patch, 1024}, {"merge_size", s.Merge, 64}, {"temporal_patch_size", s.Frames, 64}} {
		if x.v < 1 || x.v > x.most {
			return fmt.Errorf("%s: %d is not between 1 and %d", x.key, x.v, x.most)
		}
	}
	if s.MinPixels < 1 || s.MinPixels > mostPixels {
		return fmt.Errorf("min_pixels: %d is not between 1 and %d", s.MinPixels, mostPixels)
	}
	if s.MaxPixels < s.MinPixels {
		return fmt.Errorf("max_pixels: %d is less than min_pixels, %d", s.MaxPixels, s.MinPixels)
	}
	if side := s.Patch * s.Merge; s.MaxPixels < side*side {
		return fmt.Errorf("max_pixels: %d is less than one token's %d×%d pixels", s.MaxPixels, side, side)
	}
	if err := s.checkTiles(); err != nil {
		return err
	}
	if s.Fit && s.MinPixels != 1 {
		return errors.New("min_pixels: Pixtral's image processor enlarges no image but to whole tokens")
	}
	if !(s.Rescale > 0) || math.IsInf(s.Rescale, 0) {
		return fmt.Errorf("rescale_factor: %g is not positive", s.Rescale)
	}
	for c := range 3 {
		if math.IsNaN(s.Mean[c]) || math.IsInf(s.Mean[c], 0) {
			return fmt.Errorf("image_mean: %g is not a number", s.Mean[c])
		}
		if !(s.Std[c] > 0) || math.IsInf(s.Std[c], 0) {
			return fmt.Errorf("image_std: %g is not positive", s.Std[c])
		}
	}
	return nil
}
