package picture

import (
	"errors"
	"fmt"
	"math"
)

// VideoSettings are the settings of a video processor: the arithmetic of transformers' Qwen2VLVideoProcessor
// (Qwen2-VL, Qwen2.5-VL) and Qwen3VLVideoProcessor (Qwen3-VL, Qwen3.5). MinPixels and MaxPixels are of a frame, or
// with Whole of all frames together. A caller may change FPS, MaxFrames and MaxPixels.
type VideoSettings struct {
	Settings
	// Whole says that frames are chosen and sized as for Qwen3-VL, and that each Frames of them follow a text that
	// says when they are.
	Whole     bool    `json:",omitempty"`
	FPS       float64 // frames that are read in a second
	MinFrames int     // that are read of a video, if it has as many
	MaxFrames int
	// Capped says that a frame gets no more pixels than its share of MaxTokens tokens, or with Whole than MaxTokens
	// (cap_pixels_per_frame).
	Capped    bool `json:",omitempty"`
	MaxTokens int  `json:",omitempty"`
	// PerSecond is how far positions of a second are apart (Qwen2.5-VL); 0: those of Frames frames are 1 apart.
	PerSecond float64 `json:",omitempty"`
}

// Scene is what a model reads of a video: parts of Settings.Frames frames each.
type Scene struct {
	Frames        []int // that are read, in order; the last one is repeated where a part lacks some
	Rows, Columns int   // of patches of each part
	Parts         int
	Rate          float64   // frames that are read in a second
	Seconds       []float64 // [Parts] when each part is, the middle of its first and last frame
	Places        []int32   // [Parts] positions of the parts in time, from the first; zeros with Whole
}

// Scene returns what a model reads of a video.
func (s VideoSettings) Scene(c Clip) (x Scene, err error) {
	if err := errors.Join(s.CheckVideos(), checkFrames(c.Frames, c.Rate)); err != nil {
		return x, err
	}
	rate := c.Rate
	if x.Frames, err = s.sample(c); err != nil {
		return x, err
	}
	if rate == 0 {
		rate = s.FPS
	}
	n := len(x.Frames)
	x.Rate = float64(n) / float64(c.Frames) * rate
	h, w, err := s.sized(n, c.Height, c.Width)
	if err != nil {
		return x, err
	}
	x.Rows, x.Columns = h/s.Patch, w/s.Patch
	x.Parts = (n + s.Frames - 1) / s.Frames
	interval := float32(1)
	if s.PerSecond > 0 {
		interval = float32(s.PerSecond) * float32(float64(s.Frames)/x.Rate)
	}
	for p := range x.Parts {
		first, last := x.Frames[p*s.Frames], x.Frames[min((p+1)*s.Frames, n)-1]
		x.Seconds = append(x.Seconds, (float64(first)/rate+float64(last)/rate)/2)
		at := int32(0)
		if !s.Whole {
			at = int32(float32(p) * interval)
		}
		x.Places = append(x.Places, at)
	}
	return x, nil
}

// sample returns the frames that are read of a video.
//
//	n = min(max(⌊total/rate·FPS⌋, MinFrames), MaxFrames, total)   at i·(total-1)/(n-1), rounded half to even   Whole
//	n = min(max(total/rate·FPS, MinFrames), MaxFrames, total)     rounded down to Frames, at ⌊i·total/n⌋
//
// transformers computes ⌊i·total/n⌋ in float32, in an order that depends on the processor: where total/n is no whole
// number its frame may be the one before.
func (s VideoSettings) sample(c Clip) (list []int, err error) {
	total := c.Frames
	if c.Rate == 0 || c.Sampled {
		if total > s.MaxFrames {
			return nil, fmt.Errorf("a video of %d frames that are all to be read: at most %d are "+
				"(data.video_max_frames); leave some out, or say how many make a second (fps), so that some are "+
				"chosen", total, s.MaxFrames)
		}
		for i := range total {
			list = append(list, i)
		}
		return list, nil
	}
	wanted := float64(total) / c.Rate * s.FPS
	if s.Whole {
		n := min(max(int(min(wanted, mostFrames)), s.MinFrames), s.MaxFrames, total)
		step := float64(total-1) / float64(max(1, n-1))
		for i := range n {
			at := int(math.RoundToEven(float64(float64(i) * step)))
			if i == n-1 && n > 1 {
				at = total - 1
			}
			list = append(list, at)
		}
		return list, nil
	}
	most := min(s.MaxFrames, total) / s.Frames * s.Frames
	n := int(min(max(wanted, float64(s.MinFrames)), float64(most))) / s.Frames * s.Frames
	if n < 1 {
		return nil, fmt.Errorf("a video of %d frames: at least %d are needed", total, s.Frames)
	}
	for i := range n {
		list = append(list, i*total/n)
	}
	return list, nil
}

// sized returns the height and width that n frames are resized to.
func (s VideoSettings) sized(n, height, width int) (h, w int, err error) {
	f := s.Patch * s.Merge
	one := s.Settings
	if !s.Whole {
		if s.Capped {
			share := int(float64(s.MaxTokens*f*f)*0.9) * s.Frames / n
			one.MaxPixels = max(min(s.MaxPixels, share), int(float64(s.MinPixels)*1.05))
		}
		return one.resized(height, width)
	}
	if n < s.Frames {
		return 0, 0, fmt.Errorf("%d of a video's frames are read, and the model reads %d at once", n, s.Frames)
	}
	if s.Capped {
		one.MaxPixels = n * max(min(s.MaxTokens*f*f, s.MaxPixels/n), int(float64(s.MinPixels)*1.05))
	}
	one.Enlarge = true
	counted := int(math.RoundToEven(float64(n)/float64(s.Frames))) * s.Frames
	return one.resizedFrames(height, width, n, counted)
}

// CheckVideos reports settings that make no sense. It names keys as the file does.
func (s VideoSettings) CheckVideos() error {
	one := s.Settings
	if one.MaxPixels < one.MinPixels {
		return fmt.Errorf("size: longest_edge of %d, data.video_max_pixels, is less than shortest_edge, %d",
			s.MaxPixels, s.MinPixels)
	}
	if err := one.Check(); err != nil {
		return err
	}
	switch {
	case !(s.FPS > 0) || math.IsInf(s.FPS, 0):
		return fmt.Errorf("fps: %g is not positive", s.FPS)
	case s.MinFrames < 1 || s.MaxFrames < s.MinFrames || s.MaxFrames > mostFrames:
		return fmt.Errorf("min_frames: %d, max_frames: %d, data.video_max_frames, do not ascend from 1 to %d",
			s.MinFrames, s.MaxFrames, mostFrames)
	case s.MaxFrames < s.Frames:
		return fmt.Errorf("max_frames: %d is less than temporal_patch_size, %d", s.MaxFrames, s.Frames)
	case s.Capped && (s.MaxTokens < 1 || s.MaxTokens > mostPixels):
		return fmt.Errorf("max_video_tokens: %d is not between 1 and %d", s.MaxTokens, mostPixels)
	case s.Tile > 0 || s.Fit || s.LongSide:
		return errors.New("videos are not read in tiles")
	}
	return nil
}

// CheckFile returns an error if a video cannot be decoded where the model reads it.
func (s VideoSettings) CheckFile(encoded []byte) error {
	v, err := OpenVideo(encoded)
	if err != nil {
		return err
	}
	x, err := s.Scene(v.Clip)
	if err != nil {
		return err
	}
	for _, i := range x.Frames {
		if _, err := v.frame(i); err != nil {
			return err
		}
	}
	return nil
}

// Patches makes the patches of a part of a scene.
func (s VideoSettings) Patches(v *Video, x Scene, part int) (Patches, error) {
	frames := make([]bitmap, s.Frames)
	for k := range frames {
		i := part*s.Frames + k
		if i >= len(x.Frames) {
			frames[k] = frames[k-1]
			continue
		}
		m, err := v.frame(x.Frames[i])
		if err != nil {
			return Patches{}, err
		}
		frames[k] = m.resize(x.Columns*s.Patch, x.Rows*s.Patch)
	}
	return s.cut(frames...), nil
}
