package picture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// A video file is a line that names the format, a line of JSON that says what follows, and the frames: image files one
// after the other, or a GIF animation. It is made by PackFrames and PackGIF, and equal videos have equal bytes.
const videoMagic = "exp video 1\n"

// mostFrames bounds the frames of a video.
const mostFrames = 1_000_000

// videoHead is the second line of a video file.
type videoHead struct {
	Rate    float64 `json:"rate,omitempty"`
	Sampled bool    `json:"sampled,omitempty"`
	GIF     bool    `json:"gif,omitempty"`
	Sizes   []int   `json:"sizes"` // bytes of the files
}

// Clip describes a video.
type Clip struct {
	Width, Height int // pixels
	Frames        int
	// Rate is how many frames follow each other in a second; 0: as many as are to be read in one.
	Rate float64
	// Sampled says that all frames are to be read: whoever cut them chose them.
	Sampled bool
}

// Video is an open video file. Nobody changes it.
type Video struct {
	Clip
	files [][]byte
	anim  *animation // of a GIF
}

// IsVideo reports whether data begins as a video file does.
func IsVideo(data []byte) bool { return bytes.HasPrefix(data, []byte(videoMagic)) }

// PackFrames makes a video of frames, image files of equal sizes. rate is how many follow each other in a second, 0 if
// nobody knows; sampled says that all are to be read.
func PackFrames(files [][]byte, rate float64, sampled bool) ([]byte, error) {
	if err := checkFrames(len(files), rate); err != nil {
		return nil, err
	}
	var first [2]int
	for i, f := range files {
		width, height, err := Size(f)
		if err != nil {
			return nil, fmt.Errorf("frame %d: %w", i+1, err)
		}
		if size := [2]int{width, height}; i == 0 {
			first = size
		} else if size != first {
			return nil, fmt.Errorf("frame %d has %d×%d pixels and the first %d×%d: all frames of a video have one "+
				"size", i+1, width, height, first[0], first[1])
		}
	}
	return packVideo(videoHead{Rate: rate, Sampled: sampled}, files), nil
}

// PackGIF makes a video of a GIF animation.
func PackGIF(gif []byte) ([]byte, error) {
	if _, err := gifClip(gif); err != nil {
		return nil, err
	}
	return packVideo(videoHead{GIF: true}, [][]byte{gif}), nil
}

// checkFrames refuses videos of too few or too many frames.
func checkFrames(n int, rate float64) error {
	switch {
	case n < 1:
		return errors.New("a video without frames")
	case n == 1:
		return errors.New("a video of 1 frame: show it as an image")
	case n > mostFrames:
		return fmt.Errorf("a video of %d frames: it may have %d", n, mostFrames)
	case rate < 0 || math.IsNaN(rate) || math.IsInf(rate, 0):
		return fmt.Errorf("a video of %g frames a second: that must be a positive number", rate)
	}
	return nil
}

func packVideo(h videoHead, files [][]byte) []byte {
	for _, f := range files {
		h.Sizes = append(h.Sizes, len(f))
	}
	head, err := json.Marshal(h)
	if err != nil {
		panic("picture: " + err.Error()) // numbers can be written
	}
	return append(append(append([]byte(videoMagic), head...), '\n'), bytes.Join(files, nil)...)
}

// OpenVideo opens a video file. Frames are decoded when they are needed.
func OpenVideo(encoded []byte) (*Video, error) {
	rest, ok := bytes.CutPrefix(encoded, []byte(videoMagic))
	head, rest, lined := bytes.Cut(rest, []byte("\n"))
	var h videoHead
	if !ok || !lined || json.Unmarshal(head, &h) != nil {
		return nil, errors.New("not a video file")
	}
	v := &Video{}
	for _, n := range h.Sizes {
		if n < 0 || n > len(rest) {
			return nil, errors.New("video: the file is cut off")
		}
		v.files, rest = append(v.files, rest[:n]), rest[n:]
	}
	if len(rest) > 0 {
		return nil, errors.New("video: the file is longer than its frames")
	}
	var err error
	if h.GIF {
		if len(v.files) != 1 {
			return nil, errors.New("video: not one GIF animation")
		}
		v.Clip, err = gifClip(v.files[0])
		return v, err
	}
	if err := checkFrames(len(v.files), h.Rate); err != nil {
		return nil, err
	}
	v.Clip = Clip{Frames: len(v.files), Rate: h.Rate, Sampled: h.Sampled}
	v.Width, v.Height, err = Size(v.files[0])
	return v, err
}

// Unpack returns the parts of a video file: its frames, image files, or one GIF animation.
func (v *Video) Unpack() (files [][]byte, gif bool) {
	return v.files, len(v.files) == 1
}

// frame returns the pixels of frame i.
func (v *Video) frame(i int) (m bitmap, err error) {
	if len(v.files) == 1 {
		if v.anim == nil {
			if v.anim, err = decodeAnimation(v.files[0]); err != nil {
				return m, err
			}
		}
		return v.anim.at(i), nil
	}
	m, err = decode(v.files[i])
	if err == nil && (m.width != v.Width || m.height != v.Height) {
		err = fmt.Errorf("%d×%d pixels, and the first frame %d×%d", m.width, m.height, v.Width, v.Height)
	}
	if err != nil {
		return m, fmt.Errorf("frame %d: %w", i+1, err)
	}
	return m, nil
}
