package picture

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// videoFile has a video processor's settings, in folders of transformers 4.
const videoFile = "video_preprocessor_config.json"

// NewVideoSettings returns the defaults of transformers' Qwen2VLVideoProcessor, or Qwen3VLVideoProcessor if whole, and
// two frames a second.
func NewVideoSettings(whole bool) VideoSettings {
	s := VideoSettings{Settings: NewSettings(), FPS: 2, MinFrames: 4, MaxFrames: 768, MaxTokens: 128_000}
	s.MinPixels, s.MaxPixels = 128*28*28, 768*28*28
	if whole {
		s.Whole, s.Patch, s.MaxTokens = true, 16, 768
		s.MinPixels, s.MaxPixels = 128*32*32, 768*32*32
		s.Mean, s.Std = [3]float64{0.5, 0.5, 0.5}, [3]float64{0.5, 0.5, 0.5}
	}
	return s
}

// ReadVideoSettings reads the settings of the video processor of the model folder dir, from the first of these that it
// has: video_processor of processor_config.json, video_preprocessor_config.json, preprocessor_config.json. Errors name
// the file and the key. do_sample_frames does not count: frames are chosen where it is known how many make a second.
func ReadVideoSettings(dir string, whole bool) (VideoSettings, error) {
	path := filepath.Join(dir, wholeFile)
	var all struct {
		Video json.RawMessage `json:"video_processor"`
	}
	data, err := os.ReadFile(path)
	switch {
	case err == nil:
		if err := json.Unmarshal(data, &all); err != nil {
			return VideoSettings{}, fmt.Errorf("%s: %w", path, err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return VideoSettings{}, err
	}
	data = all.Video
	if data == nil || string(data) == "null" {
		path = filepath.Join(dir, videoFile)
		if data, err = os.ReadFile(path); errors.Is(err, fs.ErrNotExist) {
			path = filepath.Join(dir, imageFile)
			data, err = os.ReadFile(path)
		}
		if err != nil {
			return VideoSettings{}, fmt.Errorf("settings of the video processor: %w", err)
		}
	}
	s, err := parseVideoSettings(data, whole)
	if err != nil {
		return VideoSettings{}, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// writtenVideo are the keys of a file that count for videos.
type writtenVideo struct {
	written
	Video     *string  `json:"video_processor_type"`
	FPS       *float64 `json:"fps"`
	Count     *int     `json:"num_frames"`
	MinFrames *int     `json:"min_frames"`
	MaxFrames *int     `json:"max_frames"`
	Cap       *bool    `json:"cap_pixels_per_frame"`
	MaxTokens *int     `json:"max_video_tokens"`
}

// parseVideoSettings reads the settings from JSON.
func parseVideoSettings(data []byte, whole bool) (VideoSettings, error) {
	var w writtenVideo
	s := NewVideoSettings(whole)
	if err := json.Unmarshal(data, &w); err != nil {
		return s, err
	}
	kind := map[bool]string{false: "Qwen2VLVideoProcessor", true: "Qwen3VLVideoProcessor"}[whole]
	if w.Video != nil && strings.TrimSuffix(*w.Video, "Fast") != kind {
		return s, fmt.Errorf("video_processor_type: %q is not supported in models of this family, only %s is",
			*w.Video, kind)
	}
	w.Type = nil // of the image processor, whose file it may be
	if _, err := w.check(); err != nil {
		return s, err
	}
	if w.Count != nil {
		return s, fmt.Errorf("num_frames: %d frames of each video is not supported; take it out, and set fps or "+
			"data.video_fps", *w.Count)
	}
	if w.Resample != nil && *w.Resample != bicubicNumber {
		return s, fmt.Errorf("resample: %d is not supported for videos, only 3 (bicubic) is", *w.Resample)
	}
	set(&s.Patch, (*int)(w.Patch))
	set(&s.Frames, w.Frames)
	set(&s.Merge, w.Merge)
	set(&s.Rescale, w.Factor)
	set(&s.FPS, w.FPS)
	set(&s.MinFrames, w.MinFrames)
	set(&s.MaxFrames, w.MaxFrames)
	set(&s.Capped, w.Cap)
	set(&s.MaxTokens, w.MaxTokens)
	if whole {
		w.Min, w.Max = nil, nil // transformers ignores them in this processor
	}
	if err := w.qwenSizes(&s.Settings); err != nil {
		return s, err
	}
	if err := w.colors(&s.Settings); err != nil {
		return s, err
	}
	return s, s.CheckVideos()
}
