package vision

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/train/model"
	"exp/train/picture"
)

// smallVideos are small for videos.
func smallVideos() picture.VideoSettings {
	s := picture.NewVideoSettings(false)
	s.Settings, s.PerSecond = small(), 2
	return s
}

// film returns a video of frames of 8×12 pixels.
func film(t *testing.T, frames int) []byte {
	t.Helper()
	var files [][]byte
	for i := range frames {
		files = append(files, drawing(t, 8, 12, 3*i+1))
	}
	b, err := picture.PackFrames(files, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A video has ids for all parts, and each part features of its own, which depend on its frames alone.
func TestGalleryOfVideos(t *testing.T) {
	c := tiny(Qwen25VL)
	be := openCPU(t, 2, kernels.F32)
	tower := open(t, be, c, kernels.F32)
	g := NewGallery(100, small(), tower, 1<<20)
	clip := picture.Clip{Width: 8, Height: 12, Frames: 5, Rate: 1, Sampled: true}
	if _, err := g.AddVideo("v", clip, nil); err == nil || !strings.Contains(err.Error(), "no videos") {
		t.Errorf("a gallery of images took a video: %v", err)
	}
	s := smallVideos()
	g.ReadVideos(s)
	file := &counted{raw: film(t, 5)}
	if _, err := g.Add("i", 8, 8, (&counted{raw: drawing(t, 8, 8, 1)}).read); err != nil {
		t.Fatal(err)
	}
	im, err := g.AddVideo("v", clip, file.read)
	if want := (model.Image{First: 104, Rows: 3, Columns: 2, Parts: 3}); err != nil || im != want {
		t.Fatalf("%+v, %v, want %+v", im, err, want)
	}
	if again, err := g.AddVideo("v", clip, nil); err != nil || again != im || im.AllTokens() != 18 {
		t.Errorf("again %+v, %v", again, err)
	}
	behind, err := g.Add("j", 8, 8, nil)
	if err != nil || behind.First != 122 {
		t.Errorf("an image behind the video begins at %d, %v", behind.First, err)
	}
	v, err := picture.OpenVideo(file.raw)
	if err != nil {
		t.Fatal(err)
	}
	x, err := s.Scene(v.Clip)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []int{2, 0, 1, 2} {
		first := im.First + int32(6*part)
		want := model.Image{First: first, Rows: 3, Columns: 2, Part: part, Parts: 3, Time: int32(4 * part)}
		for _, id := range []int32{first, first + 5} {
			if got := g.Of(id); got != want {
				t.Errorf("token %d is of %+v, want %+v", id, got, want)
			}
		}
		p, err := s.Patches(v, x, part)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Features(be, want); !slices.Equal(got, tower.Encode(be, p)) {
			t.Errorf("part %d has other features", part)
		}
	}
	if file.reads != 1 {
		t.Errorf("the video was read %d times", file.reads)
	}
	if err := g.Check("w", file.raw); err != nil {
		t.Error(err)
	}
	if err := g.Check("w", film(t, 3)[:300]); err == nil {
		t.Error("a broken video was not found")
	}
}

// A video of another shape than the one that AddVideo was told has no features.
func TestGalleryReportsOtherVideos(t *testing.T) {
	be := openCPU(t, 1, kernels.F32)
	g := NewGallery(0, small(), open(t, be, tiny(Qwen2VL), kernels.F32), 1<<20)
	g.ReadVideos(smallVideos())
	clip := picture.Clip{Width: 8, Height: 12, Frames: 4, Rate: 1, Sampled: true}
	for name, raw := range map[string][]byte{"shorter": film(t, 3), "an image": drawing(t, 8, 12, 1), "": nil} {
		im, err := g.AddVideo(name, clip, (&counted{raw: raw}).read)
		if err != nil {
			t.Fatal(err)
		}
		var e *model.ImageError
		if got, _ := caught(func() { g.Features(be, im) }).(error); !errors.As(got, &e) {
			t.Errorf("%q: %v", name, got)
		}
	}
}

// A video is let go with all its parts.
func TestGalleryDropsVideos(t *testing.T) {
	be := openCPU(t, 1, kernels.F32)
	g := NewGallery(0, small(), open(t, be, tiny(Qwen2VL), kernels.F32), 1<<20)
	g.ReadVideos(smallVideos())
	raw := film(t, 4)
	im, err := g.HoldVideo("v", picture.Clip{Width: 8, Height: 12, Frames: 4, Rate: 1, Sampled: true}, raw)
	if err != nil {
		t.Fatal(err)
	}
	g.Features(be, im)
	g.Features(be, g.Of(im.First+6))
	if len(g.own.kept) != 2 || g.own.held == 0 || g.bytes != len(raw) {
		t.Fatalf("%d features of %d bytes are kept, of %d bytes", len(g.own.kept), g.own.held, g.bytes)
	}
	g.Release("v")
	g.Keep(0, 0)
	if len(g.own.kept) != 0 || g.own.held != 0 || g.Knows("v") {
		t.Errorf("%d features of %d bytes are left", len(g.own.kept), g.own.held)
	}
}
