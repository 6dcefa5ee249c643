package checkpoint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"

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
	switch {
	case text == nil:
		r.problem("text_config is missing")
		return refuse()
	case inside == "" || inside == "GptOssForCausalLM": // whose experts lie otherwise than others within a whole
		r.problem("text_config: model_type is %s: the language model is not supported with images",
			cmp.Or(string(text.values["model_type"]), "missing"))
		return refuse()
	}
	images := r.imageSettings(x)
	tower := r.tower(x)
	if tower.Kind == vision.Gemma3 {
		images.Block = tower.Side / tower.Merge * (tower.Side / tower.Merge)
	}
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
	refuse := func(format string, args ...any) (vision.Config, picture.Settings, error) {
		return c, s, &ConfigError{Path: filepath.Join(TextsFolder(path), configFile),
			Problems: []string{fmt.Sprintf(format, args...)}}
	}
	switch {
	case c.Tiled() != (s.Tile > 0) || s.Enlarge != (c.Kind == vision.GLM4V) ||
		s.LongSide != (c.Kind == vision.Idefics3) || s.Fit != (c.Kind == vision.Pixtral) ||
		s.Square() != (c.Kind == vision.Gemma3):
		return refuse("the image processor is not of the model's family, %s", c.Kind)
	case c.Tiled() && (s.Tile/c.Patch != c.Side || s.Tile%c.Patch != 0 && !s.LongSide):
		return refuse("vision_config has tiles of %d pixels, but the image processor %d", c.Side*c.Patch, s.Tile)
	case c.Tiled():
		s.Patch, s.Merge = c.Patch, c.Merge // which this processor does not say
		key, n := saidTokens(path, s.Square())
		if tokens := c.Side / c.Merge * (c.Side / c.Merge); (s.LongSide || s.Square()) && n > 0 && n != tokens {
			return refuse("a tile has %d tokens, but %s in %s is %d", tokens, key, processorFile, n)
		}
	case s.Fit:
		s.Patch, s.Merge = c.Patch, c.Merge
	case s.Patch != c.Patch || s.Merge != c.Merge || s.Frames != c.Frames:
		return refuse("vision_config has patches of %d pixels, %d of them on a token's side, and %d frames, but the "+
			"image processor %d, %d and %d", c.Patch, c.Merge, c.Frames, s.Patch, s.Merge, s.Frames)
	}
	return c, s, nil
}

// VideoTokens are the ids that stand for videos in prompts: Pad for each token, between Start and End, -1 if
// config.json does not say these.
type VideoTokens struct{ Pad, Start, End int32 }

// ReadVideos returns how a model of text and images at a path reads videos, and the tokens for them, also with an
// error about the settings. ok is false if exp reads no videos of its family. Errors are as ReadVision's.
func ReadVideos(path string) (s picture.VideoSettings, ids VideoTokens, ok bool, err error) {
	ids = VideoTokens{-1, -1, -1}
	r, _, file, err := readWhole(path)
	if err != nil {
		return s, ids, false, err
	}
	c, err := readTower(path)
	if err != nil {
		return s, ids, false, err
	}
	if c.Kind != vision.Qwen2VL && c.Kind != vision.Qwen25VL && c.Kind != vision.Qwen3VL {
		return s, ids, false, nil
	}
	r.get("vision_start_token_id", &ids.Start)
	r.get("vision_end_token_id", &ids.End)
	if r.get("video_token_id", &ids.Pad); ids.Pad < 0 {
		return s, ids, false, nil
	}
	if s, err = picture.ReadVideoSettings(TextsFolder(path), c.Kind == vision.Qwen3VL); err != nil {
		return s, ids, true, err
	}
	if c.Kind == vision.Qwen25VL {
		s.PerSecond = 4
		r.inner("vision_config").maybe("tokens_per_second", &s.PerSecond)
	}
	refuse := func(format string, args ...any) (picture.VideoSettings, VideoTokens, bool, error) {
		return s, ids, true, &ConfigError{Path: file, Problems: []string{fmt.Sprintf(format, args...)}}
	}
	switch {
	case s.PerSecond < 0 || s.PerSecond > 1e6:
		return refuse("vision_config: tokens_per_second is %g, not between 0 and a million", s.PerSecond)
	case s.Patch != c.Patch || s.Merge != c.Merge || s.Frames != c.Frames:
		return refuse("vision_config has patches of %d pixels, %d of them on a token's side, and %d frames, but the "+
			"video processor %d, %d and %d", c.Patch, c.Merge, c.Frames, s.Patch, s.Merge, s.Frames)
	}
	return s, ids, true, nil
}

// saidTokens returns the tokens of a tile that the processor's file of a model at a path says, and the key, which
// Gemma 3 spells out; 0 if it says none.
func saidTokens(path string, spelled bool) (key string, tokens int) {
	var said struct {
		Tokens  int `json:"image_seq_len"`
		Spelled int `json:"image_seq_length"`
	}
	raw, err := readSmall(filepath.Join(TextsFolder(path), processorFile), maxConfig)
	if err != nil || json.Unmarshal(raw, &said) != nil { // picture.ReadSettings has read it, if there is one
		return "", 0
	}
	if spelled {
		return "image_seq_length", said.Spelled
	}
	return "image_seq_len", said.Tokens
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
	r, x, file, err := readWhole(path)
	if err != nil {
		return 0, err
	}
	id := int32(-1)
	if x.tower == vision.Gemma3 {
		id = 262144
	}
	r.maybe("image_token_index", &id) // Gemma 3's and Mistral 3's
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
