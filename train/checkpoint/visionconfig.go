package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"

	"exp/train/model"
	"exp/train/picture"
	"exp/train/vision"
)

// This file reads models of text and images whole: the language model, and the vision tower that makes features of
// images for it. See textpart.go for the text part alone.

// imageConfig returns the architecture of the language model of such a class, which reads images.
func (r *settings) imageConfig(path string, x imageClass, inside string) (model.Config, error) {
	refuse := func() (model.Config, error) {
		return model.Config{}, &ConfigError{Path: path, Problems: r.problems}
	}
	text := x.text(r, inside)
	if text == nil {
		r.problem("text_config is missing")
		return refuse()
	}
	images := r.imageSettings(x)
	tower := r.tower(x)
	if images.Deep = len(tower.Deep); len(r.problems) == 0 {
		if err := tower.Validate(); err != nil {
			r.problem("vision_config: %v", err)
		}
	}
	c, err := text.config(path)
	var known *ConfigError
	switch {
	case errors.As(err, &known):
		r.problems = append(r.problems, known.Problems...)
	case err != nil:
		return c, err
	}
	if len(r.problems) > 0 {
		return refuse()
	}
	if tower.Out != c.Width {
		r.problem("vision_config: features of a token have %d channels, but hidden_size is %d", tower.Out, c.Width)
		return refuse()
	}
	c.Images = images
	if err := c.Validate(); err != nil {
		r.problem("%v", err)
		return refuse()
	}
	return c, nil
}

// imageSettings reads which rotary pairs turn by time, height and width.
func (r *settings) imageSettings(x imageClass) (s model.ImageSettings) {
	text := r.inner("text_config")
	if text == nil {
		text = r // settings of transformers 4 lie next to vision_config
	}
	three := x.tower == vision.Qwen3VL // Qwen3.5, too
	var list []int
	interleaved := three
	for _, key := range []string{"rope_scaling", "rope_parameters"} {
		in := text.inner(key)
		if in == nil {
			continue
		}
		if kind := in.kind(); kind != "default" && kind != "mrope" {
			r.problem("%s: rope type %q is not supported with images; only default and mrope are", key, kind)
		}
		var own []int
		if in.maybe("mrope_section", &own); own != nil && list != nil && !slices.Equal(own, list) {
			r.problem("mrope_section is %v in rope_scaling and %v in rope_parameters: remove one of them", list, own)
		}
		if own != nil {
			list = own
		}
		if v := interleaved; in.maybe("mrope_interleaved", &v) && v != three {
			r.problem("%s: mrope_interleaved is %v: transformers ignores that in this class", key, v)
		}
		r.take(key, in)
	}
	switch { // transformers' defaults
	case list == nil && x.asked:
		list = []int{11, 11, 10}
	case list == nil && three:
		list = []int{24, 20, 20}
	}
	if len(list) != 3 {
		r.problem("mrope_section is %v: positions of images need three numbers of rotary pairs", list)
		return s
	}
	return model.ImageSettings{Sections: [3]int(list), Interleaved: three}
}

// tower reads vision_config. Missing settings have transformers' defaults for the class.
func (r *settings) tower(x imageClass) (c vision.Config) {
	in := r.inner("vision_config")
	if in == nil {
		r.problem("vision_config is missing")
		return c
	}
	c = vision.Config{Kind: x.tower, Layers: 32, Width: 1280, Heads: 16, Activation: vision.QuickGELU, Channels: 3,
		Patch: 14, Frames: 2, Merge: 2, Out: 3584}
	switch x.tower {
	case vision.Qwen2VL:
		ratio := 4
		in.get("embed_dim", &c.Width)
		in.get("hidden_size", &c.Out)
		in.get("mlp_ratio", &ratio)
		c.FFN = min(max(c.Width, 0), maxFFN+1) * min(max(ratio, 0), 1<<10)
	case vision.Qwen25VL:
		c.Width, c.FFN, c.Activation, c.Full = 3584, 3420, vision.SiLU, []int{7, 15, 23, 31}
		window := 112
		in.get("window_size", &window)
		in.get("fullatt_block_indexes", &c.Full)
		in.wide(&c)
		in.get("patch_size", &c.Patch)
		in.get("spatial_merge_size", &c.Merge)
		if c.Window = window / max(c.Merge, 1) / max(c.Patch, 1); c.Window < 1 {
			in.problem("window_size is %d: a window holds no token of %d·%d pixels", window, c.Merge, c.Patch)
		}
	case vision.Qwen3VL:
		c.Layers, c.Width, c.FFN, c.Activation, c.Patch = 27, 1152, 4304, vision.GELUTanh, 16
		positions := 2304
		c.Deep = []int{8, 16, 24}
		in.get("num_position_embeddings", &positions)
		in.get("deepstack_visual_indexes", &c.Deep)
		if x.asked {
			if in.has("deepstack_visual_indexes") && len(c.Deep) > 0 {
				in.problem("deepstack_visual_indexes is %v: transformers ignores that in this class", c.Deep)
			}
			c.Deep = nil
		}
		in.wide(&c)
		if c.Side = int(math.Sqrt(float64(positions))); c.Side < 1 || c.Side*c.Side != positions {
			in.problem("num_position_embeddings is %d, no square number", positions)
		}
	}
	in.get("depth", &c.Layers)
	in.get("num_heads", &c.Heads)
	in.get("hidden_act", &c.Activation)
	in.get("in_channels", &c.Channels)
	in.get("patch_size", &c.Patch)
	in.get("temporal_patch_size", &c.Frames)
	in.get("spatial_merge_size", &c.Merge)
	in.boundTower(c)
	r.take("vision_config", in)
	return c
}

// wide reads the widths of Qwen2.5-VL's and Qwen3-VL's towers.
func (r *settings) wide(c *vision.Config) {
	r.get("hidden_size", &c.Width)
	r.get("intermediate_size", &c.FFN)
	r.get("out_hidden_size", &c.Out)
}

// boundTower limits sizes so that their products do not overflow, and refuses what a tower does not compute.
func (r *settings) boundTower(c vision.Config) {
	for _, d := range []struct {
		key        string
		got, limit int
	}{
		{"depth", c.Layers, maxLayers}, {"the width", c.Width, 1 << 16}, {"num_heads", c.Heads, maxHeads},
		{"the feed-forward width", c.FFN, maxFFN}, {"the width of a token's features", c.Out, maxFFN},
		{"patch_size", c.Patch, 1 << 10}, {"spatial_merge_size", c.Merge, 1 << 3},
		{"temporal_patch_size", c.Frames, 1 << 6}, {"the root of num_position_embeddings", c.Side, 1 << 12},
	} {
		if d.got > d.limit || d.got < 0 {
			r.problem("%s is %d, must be from 1 to %d", d.key, d.got, d.limit)
		}
	}
	if c.Channels != 3 {
		r.problem("in_channels is %d: images have 3", c.Channels)
	}
	if rope := r.inner("rope_parameters"); rope != nil {
		kind, theta := "axial", 1e4
		rope.maybe("rope_type", &kind)
		if rope.maybe("rope_theta", &theta); kind != "axial" || theta != 1e4 {
			r.problem("rope_parameters: type %q and theta %g: only axial with theta 10000 is supported", kind, theta)
		}
		r.take("rope_parameters", rope)
	}
	if r.has(quantization) {
		r.problem("%s: a quantized vision tower is not supported", quantization)
	}
}

// readWhole returns the settings of the config.json of a model of text and images at a path.
func readWhole(path string) (r *settings, x imageClass, file string, err error) {
	file = filepath.Join(TextsFolder(path), configFile)
	raw, err := readSmall(file, maxConfig)
	if err != nil {
		return nil, x, file, err
	}
	r = &settings{}
	if err := json.Unmarshal(raw, &r.values); err != nil {
		return nil, x, file, corrupt(file, "", "%s", jsonWords(err))
	}
	if x, _ = r.imageClass(); x.tower == "" {
		class, _ := r.classNamed()
		return nil, x, file, &ConfigError{Path: file, Problems: []string{fmt.Sprintf("architecture is %s: images are "+
			"not supported in this class", class)}}
	}
	return r, x, file, nil
}

// ImagesOnRequest reports whether a model at a path is of a class whose images are read on request alone.
func ImagesOnRequest(path string) bool {
	raw, err := readSmall(filepath.Join(TextsFolder(path), configFile), maxConfig)
	if err != nil {
		return false
	}
	_, asked := towerClass(raw)
	return asked
}

// towerClass reports whether a config.json is of a class whose images are read, and whether they are only on request.
func towerClass(raw []byte) (tower, asked bool) {
	r := settings{}
	if json.Unmarshal(raw, &r.values) != nil {
		return false, false
	}
	x, _ := r.imageClass()
	return x.tower != "", x.asked
}

// wholeClass reports whether a config.json is of a class whose images are read without a request.
func wholeClass(raw []byte) bool {
	tower, asked := towerClass(raw)
	return tower && !asked
}

// ReadVision returns the vision tower of a model of text and images at a path, and how images become its patches:
// from config.json and preprocessor_config.json. It returns a *ConfigError if a setting is not supported.
func ReadVision(path string) (vision.Config, picture.Settings, error) {
	c, err := readTower(path)
	if err != nil {
		return c, picture.Settings{}, err
	}
	s, err := picture.ReadSettings(TextsFolder(path))
	if err != nil {
		return c, s, err
	}
	if s.Patch != c.Patch || s.Merge != c.Merge || s.Frames != c.Frames {
		return c, s, &ConfigError{Path: filepath.Join(TextsFolder(path), configFile), Problems: []string{fmt.Sprintf(
			"vision_config has patches of %d pixels, %d of them on a token's side, and %d frames, but the image "+
				"processor %d, %d and %d", c.Patch, c.Merge, c.Frames, s.Patch, s.Merge, s.Frames)}}
	}
	return c, s, nil
}

func readTower(path string) (vision.Config, error) {
	r, x, file, err := readWhole(path)
	if err != nil {
		return vision.Config{}, err
	}
	c := r.tower(x)
	if len(r.problems) == 0 {
		if err := c.Validate(); err != nil {
			r.problem("vision_config: %v", err)
		}
	}
	if len(r.problems) > 0 {
		return vision.Config{}, &ConfigError{Path: file, Problems: r.problems}
	}
	return c, nil
}

// ImageToken returns the id that stands for each token of an image in prompts of a model of text and images.
func ImageToken(path string) (int32, error) {
	r, _, file, err := readWhole(path)
	if err != nil {
		return 0, err
	}
	id := int32(-1)
	if r.get("image_token_id", &id); id < 0 {
		r.problem("image_token_id is missing")
		return 0, &ConfigError{Path: file, Problems: r.problems}
	}
	return id, nil
}

// wholeJSON returns the config.json of a model of text and images for weights of type dtype and a language model of
// configuration c: all keys stay, types that are named change, and no layers predict further tokens.
func wholeJSON(old []byte, c model.Config, dtype DType) ([]byte, error) {
	r := settings{}
	if err := json.Unmarshal(old, &r.values); err != nil {
		return nil, err
	}
	set := map[string]any{}
	typed := func(in *settings) map[string]any {
		own := map[string]any{}
		for _, key := range []string{"dtype", "torch_dtype"} {
			if in.has(key) {
				own[key] = torchName(dtype)
			}
		}
		return own
	}
	for key, v := range typed(&r) {
		set[key] = v
	}
	if text := r.inner("text_config"); text != nil {
		own := typed(text)
		if text.has(furtherLinear) {
			own[furtherLinear] = 0
		}
		raw, err := setKeys(r.values["text_config"], own)
		if err != nil {
			return nil, err
		}
		set["text_config"] = json.RawMessage(raw)
	}
	raw, err := setKeys(unquantized(old), set)
	if err != nil {
		return nil, err
	}
	got, err := parseConfig(configFile, raw, withImages)
	if err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(got, c) {
		return nil, fmt.Errorf("the source's %s describes another model: %+v, not %+v", configFile, got, c)
	}
	return raw, nil
}
