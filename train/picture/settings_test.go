package picture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	qwen2 = `{"min_pixels": 3136, "max_pixels": 12845056, "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2,
		"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711],
		"image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen2VLProcessor"}`
	qwen3 = `{"size": {"longest_edge": 16777216, "shortest_edge": 65536}, "patch_size": 16, "temporal_patch_size": 2,
		"merge_size": 2, "image_mean": [0.5, 0.5, 0.5], "image_std": 0.5, "do_resize": null,
		"image_processor_type": "Qwen2VLImageProcessorFast", "processor_class": "Qwen3VLProcessor"}`
)

func settingsOfQwen3() Settings {
	s := NewSettings()
	s.Patch, s.MinPixels, s.MaxPixels = 16, 65536, 16777216
	s.Mean, s.Std = [3]float64{0.5, 0.5, 0.5}, [3]float64{0.5, 0.5, 0.5}
	return s
}

// glm counts each of two frames.
const glm = `{"size": {"shortest_edge": 12544, "longest_edge": 9633792}, "image_processor_type": "Glm4vImageProcessorFast"}`

func settingsOfGLM() Settings {
	s := NewSettings()
	s.MinPixels, s.MaxPixels, s.Enlarge = 6272, 4816896, true
	return s
}

// smol is of SmolVLM2-500M.
const smol = `{"do_convert_rgb": true, "do_image_splitting": true, "do_normalize": true, "do_pad": true,
	"do_rescale": true, "do_resize": true, "image_mean": [0.5, 0.5, 0.5], "image_processor_type": "SmolVLMImageProcessor",
	"image_std": [0.5, 0.5, 0.5], "max_image_size": {"longest_edge": 512}, "processor_class": "SmolVLMProcessor",
	"resample": 1, "rescale_factor": 0.00392156862745098, "size": {"longest_edge": 2048},
	"video_sampling": {"fps": 1, "max_frames": 64, "video_size": {"longest_edge": 512}}}`

func settingsOfSmolVLM() Settings {
	return Settings{Patch: 1, Merge: 1, Frames: 1, MinPixels: 1, MaxPixels: 2048 * 2048, Mean: [3]float64{0.5, 0.5, 0.5},
		Std: [3]float64{0.5, 0.5, 0.5}, Rescale: 0.00392156862745098, Tile: 512, LongSide: true, Lanczos: true}
}

func TestReadSettings(t *testing.T) {
	large := NewSettings()
	large.MaxPixels = 12845056
	both := NewSettings() // min_pixels and max_pixels go before size
	both.MinPixels, both.MaxPixels = 1000, 100000
	idefics := settingsOfSmolVLM()
	idefics.MaxPixels, idefics.Tile, idefics.Rescale = 1456*1456, 364, 1./255
	pixtral := NewSettings()
	pixtral.Patch, pixtral.Merge, pixtral.Frames, pixtral.MinPixels, pixtral.MaxPixels, pixtral.Fit = 1, 1, 1, 1, 1540*1540, true
	gemma := idefics
	gemma.Tile, gemma.MinPixels, gemma.MaxPixels, gemma.LongSide, gemma.Lanczos = 896, 896*896, 896*896, false, false
	gemma.Uncut, gemma.Bilinear = true, true
	uncut := settingsOfSmolVLM()
	uncut.Uncut = true
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  Settings
	}{
		{"Qwen2-VL", map[string]string{imageFile: qwen2}, large},
		{"Qwen3-VL", map[string]string{imageFile: qwen3}, settingsOfQwen3()},
		{"GLM-4.1V", map[string]string{imageFile: glm}, settingsOfGLM()},
		{"GLM-4.6V", map[string]string{imageFile: strings.Replace(glm, "Glm4v", "Glm46V", 1)}, settingsOfGLM()},
		{"SmolVLM2", map[string]string{imageFile: smol, wholeFile: `{"image_seq_len": 64}`}, settingsOfSmolVLM()},
		{"SmolVLM2 without tiles", map[string]string{imageFile: strings.Replace(smol, "splitting\": true", "splitting\": false", 1)}, uncut},
		{"Idefics3", map[string]string{imageFile: `{"image_processor_type": "Idefics3ImageProcessorFast"}`}, idefics},
		{"Pixtral", map[string]string{imageFile: `{"image_processor_type": "PixtralImageProcessorFast", "resample": 3,
			"size": {"longest_edge": 1540}, "patch_size": {"height": 14, "width": 14}}`}, pixtral},
		{"Gemma 3", map[string]string{imageFile: `{"image_processor_type": "Gemma3ImageProcessor", "do_pan_and_scan": null,
			"do_convert_rgb": null, "resample": 2, "size": {"height": 896, "width": 896}, "image_seq_length": 256}`}, gemma},
		{"defaults", map[string]string{imageFile: `{}`}, NewSettings()},
		{"whole", map[string]string{imageFile: qwen2, wholeFile: `{"image_processor": ` + qwen3 + `}`}, settingsOfQwen3()},
		{"whole without images", map[string]string{imageFile: qwen3, wholeFile: `{"processor_class": "x"}`},
			settingsOfQwen3()},
		{"whole with null", map[string]string{imageFile: qwen3, wholeFile: `{"image_processor": null}`}, settingsOfQwen3()},
		{"both sizes", map[string]string{imageFile: `{"min_pixels": 1000, "max_pixels": 100000,
			"size": {"shortest_edge": 5, "longest_edge": 6}}`}, both},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range tt.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := ReadSettings(dir)
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
}

func TestReadSettingsRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"size": {"longest_edge": 9999, "max_pixels": 99999}}`: "longest_edge is 9999 and max_pixels 99999",
		`{"resample": 2}`: "resample: 2 is not supported",
		`{"patch_size": {"height": 14, "width": 16}}`:                                       "patch_size: ",
		`{"image_processor_type": "PixtralImageProcessor", "size": {"longest_edge": 5000}}`: "5000 is more than 4096",
		`{"image_processor_type": "PixtralImageProcessor", "size": {"height": 1540}}`:       "only longest_edge is",
		`{"resample": 1}`: "1 (Lanczos) in the image processors of Idefics3",
		`{"image_processor_type": "SmolVLMImageProcessor", "max_image_size": {"height": 512}}`:                "height of 512 is not supported",
		`{"image_processor_type": "SmolVLMImageProcessor", "size": {"longest_edge": 0}}`:                      "longest_edge of 0",
		`{"image_processor_type": "SmolVLMImageProcessor", "size": {"longest_edge": 4097}}`:                   "4097 is more than 4096",
		`{"image_processor_type": "SmolVLMImageProcessor", "max_image_size": {"longest_edge": 9999}}`:         "side of 9999",
		`{"image_processor_type": "SmolVLMImageProcessor", "max_image_size": {"longest_edge": 64}}`:           "more than 256 tiles",
		`{"image_processor_type": "LlavaNext"}`:                                                               `image_processor_type: "LlavaNext" is not supported`,
		`{"image_processor_type": "Glm4vImageProcessorPil"}`:                                                  "Glm4vImageProcessor is, transformers' default",
		`{"image_processor_type": "Glm4vImageProcessor", "min_pixels": 9}`:                                    "ignores them",
		`{"image_processor_type": "Glm4vImageProcessor", "size": {"shortest_edge": 7, "longest_edge": 9999}}`: "2 frames",
		`{"image_processor_type": "Glm4vImageProcessor", "size": {"shortest_edge": 7, "longest_edge": 9998}}`: "2 frames",
		`{"image_processor_type": "GotOcr2ImageProcessor", "size": {"height": 448}}`:                          "not square",
		`{"image_processor_type": "GotOcr2ImageProcessor", "size": {"shortest_edge": 448}}`:                   "only height and width",
		`{"image_processor_type": "GotOcr2ImageProcessor", "min_patches": 3, "max_patches": 2}`:               "do not ascend",
		`{"image_processor_type": "Gemma3ImageProcessor", "do_pan_and_scan": true}`:                           "do_pan_and_scan: true",
		`{"image_processor_type": "Gemma3ImageProcessor", "resample": 1}`:                                     "resample: 1",
		`{"image_processor_type": "Gemma3ImageProcessor", "size": {"height": 896, "width": 448}}`:             "not square",
		`{"image_processor_type": "Qwen2VLImageProcessorPil"}`:                                                "its pixels depend on the release of Pillow",
		`{"do_resize": false}`:                     "do_resize: false is not supported",
		`{"do_rescale": false}`:                    "do_rescale: false",
		`{"do_normalize": false}`:                  "do_normalize: false",
		`{"do_convert_rgb": false}`:                "do_convert_rgb: false",
		`{"image_mean": [1, 2]}`:                   "image_mean: has 2 numbers",
		`{"image_mean": "x"}`:                      "image_mean",
		`{"image_std": [1, 0, 1]}`:                 "image_std: 0 is not positive",
		`{"patch_size": 0}`:                        "patch_size: 0",
		`{"merge_size": -1}`:                       "merge_size: -1",
		`{"temporal_patch_size": 1000}`:            "temporal_patch_size: 1000",
		`{"size": {"height": 224, "width": 224}}`:  "is not supported, only shortest_edge",
		`{"size": {"shortest_edge": 1.5}}`:         "1.5 is not a whole number",
		`{"min_pixels": 0}`:                        "min_pixels: 0",
		`{"min_pixels": 5000, "max_pixels": 4000}`: "max_pixels: 4000 is less than min_pixels, 5000",
		`{"min_pixels": 1, "max_pixels": 100}`:     "max_pixels: 100 is less than one token's 28×28",
		`{"rescale_factor": 0}`:                    "rescale_factor: 0",
		`{"patch_size": "14"}`:                     "patch_size",
		`{`:                                        "unexpected end",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, imageFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := ReadSettings(dir)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), imageFile) {
			t.Errorf("%s: error %v, want one with %q and the file", text, err, want)
		}
	}
	if _, err := ReadSettings(t.TempDir()); err == nil || !strings.Contains(err.Error(), imageFile) {
		t.Errorf("an empty folder: error %v", err)
	}
}
