package vision

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"exp/kernels"
	"exp/train/model"
	"exp/train/picture"
)

// small are settings for tiny towers: a token is 4×4 pixels.
func small() picture.Settings {
	s := picture.NewSettings()
	s.Patch, s.MinPixels, s.MaxPixels = 2, 16, 4096
	return s
}

// drawing returns a PNG file whose pixels depend on the seed.
func drawing(t *testing.T, width, height, seed int) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			m.Set(x, y, color.RGBA{uint8(seed*x + y), uint8(x * y), uint8(seed), 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// counted is a file that counts how often it is read.
type counted struct {
	raw   []byte
	err   error
	reads int
}

func (f *counted) read() ([]byte, error) {
	f.reads++
	return f.raw, f.err
}

func TestGalleryHandsOutIDs(t *testing.T) {
	g := NewGallery(100, small(), nil, 0)
	add := func(digest string, width, height int) model.Image {
		t.Helper()
		im, err := g.Add(digest, width, height, nil)
		if err != nil {
			t.Fatal(err)
		}
		return im
	}
	a, b, again := add("a", 8, 12), add("b", 16, 4), add("a", 40, 40)
	if want := (model.Image{First: 100, Rows: 3, Columns: 2}); a != want || again != a {
		t.Errorf("images %+v and %+v, want %+v", a, again, want)
	}
	if want := (model.Image{First: 106, Rows: 1, Columns: 4}); b != want {
		t.Errorf("image %+v, want %+v", b, want)
	}
	for id, want := range map[int32]model.Image{100: a, 105: a, 106: b, 109: b} {
		if got := g.Of(id); got != want {
			t.Errorf("token %d belongs to %+v, not %+v", id, got, want)
		}
	}
	for _, id := range []int32{99, 110, -1, math.MaxInt32} {
		if got := caught(func() { g.Of(id) }); got == nil {
			t.Errorf("token %d belongs to no image", id)
		}
	}
	if got := caught(func() { NewGallery(5, small(), nil, 0).Of(5) }); got == nil {
		t.Error("an empty gallery has an image")
	}
	if got := caught(func() { g.Features(nil, a) }); got == nil || !strings.Contains(fmt.Sprint(got), "without a tower") {
		t.Errorf("features without a tower: %v", got)
	}
	if _, err := g.Add("long", 4000, 4, nil); err == nil || !strings.Contains(err.Error(), "200 times") {
		t.Errorf("an image of 4000×4 pixels: %v", err)
	}
}

// The last id is the largest int32.
func TestGalleryRunsOutOfIDs(t *testing.T) {
	g := NewGallery(math.MaxInt32-3, small(), nil, 0)
	if _, err := g.Add("too large", 4, 20, nil); err == nil || !strings.Contains(err.Error(), "no ids are left for one of 5") {
		t.Errorf("five tokens for four ids: %v", err)
	}
	im, err := g.Add("fits", 4, 16, nil)
	if err != nil || im.First != math.MaxInt32-3 || g.Of(math.MaxInt32) != im {
		t.Fatal(im, err)
	}
	if _, err := g.Add("one more", 4, 4, nil); err == nil {
		t.Error("one token for no id")
	}
}

// caught returns what f panics with, nil if it does not.
func caught(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

// Room for two images keeps the two used last; the results are the same in any case.
func TestGalleryKeepsWhatWasUsedLast(t *testing.T) {
	c := tiny(Qwen3VL)
	be := openCPU(t, 2, kernels.F32)
	tower := open(t, be, c, kernels.F32)
	each := 4 * (1 + len(c.Deep)) * 4 * c.Out // bytes of 2×2 tokens
	for room, want := range map[int][]int{0: {3, 2, 1}, 2 * each: {1, 2, 1}, 3*each - 1: {1, 2, 1}, 3 * each: {1, 1, 1}} {
		g := NewGallery(50, small(), tower, room)
		var files []*counted
		var images []model.Image
		for i := range 3 {
			f := &counted{raw: drawing(t, 8, 8, i+1)}
			im, err := g.Add(fmt.Sprint(i), 8, 8, f.read)
			if err != nil {
				t.Fatal(err)
			}
			files, images = append(files, f), append(images, im)
		}
		first := map[int][]float32{}
		for _, i := range []int{0, 1, 0, 2, 0, 1} { // 2 needs the room of 1
			got := g.Features(be, images[i])
			if first[i] == nil {
				first[i] = got
				p, err := small().Patches(files[i].raw)
				if err != nil || !slices.Equal(got, tower.Encode(be, p)) {
					t.Errorf("image %d has other features (%v)", i, err)
				}
			} else if !slices.Equal(got, first[i]) {
				t.Errorf("image %d has other features the second time", i)
			}
		}
		for i, f := range files {
			if f.reads != want[i] {
				t.Errorf("room %d: image %d was read %d times, want %d", room, i, f.reads, want[i])
			}
		}
		if g.own.held > max(room, each) {
			t.Errorf("room %d: %d bytes are kept", room, g.own.held)
		}
	}
}

// The image that was used last is kept even if it takes more room than there is.
func TestGalleryKeepsALargeImage(t *testing.T) {
	be := openCPU(t, 1, kernels.F32)
	g := NewGallery(0, small(), open(t, be, tiny(Qwen2VL), kernels.F32), 1)
	f := &counted{raw: drawing(t, 8, 8, 1)}
	im, err := g.Add("large", 8, 8, f.read)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := g.Features(be, im), g.Features(be, im); !slices.Equal(a, b) || f.reads != 1 {
		t.Errorf("read %d times, equal features: %v", f.reads, slices.Equal(a, b))
	}
	other := model.Image{First: im.First, Rows: im.Rows * im.Columns, Columns: 1}
	if got := caught(func() { g.Features(be, other) }); got == nil {
		t.Error("an image of another shape has features")
	}
}

func TestGalleryReportsUnreadableImages(t *testing.T) {
	c := tiny(Qwen2VL)
	be := openCPU(t, 1, kernels.F32)
	g := NewGallery(0, small(), open(t, be, c, kernels.F32), 1<<20)
	lost := errors.New("lost")
	for name, x := range map[string]struct {
		f    *counted
		want string
	}{
		"lost":         {&counted{err: lost}, "lost"},
		"no image":     {&counted{raw: []byte("text")}, ""},
		"other size":   {&counted{raw: drawing(t, 8, 12, 1)}, "6×4 patches, not 4×4"},
		"turned":       {&counted{raw: drawing(t, 4, 16, 1)}, "8×2 patches, not 4×4"},
		"cut short":    {&counted{raw: drawing(t, 8, 8, 1)[:60]}, ""},
		"empty":        {&counted{}, ""},
		"header alone": {&counted{raw: drawing(t, 8, 8, 1)[:33]}, ""},
	} {
		im, err := g.Add(name, 8, 8, x.f.read)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // and again: the lock is free
			var e *model.ImageError
			got, _ := caught(func() { g.Features(be, im) }).(error)
			if !errors.As(got, &e) || !strings.Contains(e.Error(), x.want) {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
	if got := caught(func() { g.Features(be, model.Image{First: 1, Rows: 2, Columns: 2}) }); got == nil {
		t.Error("an image that the gallery does not have")
	}
}

// A file is decoded before an image gets ids; a known image's is not decoded again.
func TestGalleryChecksFiles(t *testing.T) {
	g := NewGallery(100, small(), nil, 0)
	whole := drawing(t, 8, 8, 1)
	broken := whole[:len(whole)/2]
	if err := g.Check("a", whole); err != nil {
		t.Error(err)
	}
	if err := g.Check("b", broken); err == nil || !strings.Contains(err.Error(), "PNG") {
		t.Errorf("half a file: %v", err)
	}
	if _, err := g.Add("b", 8, 8, nil); err != nil {
		t.Fatal(err)
	}
	if err := g.Check("b", broken); err != nil {
		t.Errorf("a known image: %v", err)
	}
}

// Goroutines with backends of their own share a gallery, its tower and what they compute.
func TestGalleryIsShared(t *testing.T) {
	c := tiny(Qwen25VL)
	be := openCPU(t, 1, kernels.F32)
	tower := open(t, be, c, kernels.F32)
	want := make([][]float32, 4)
	files := make([][]byte, 4)
	for i := range files {
		files[i] = drawing(t, 12, 20, i+1)
		p, err := small().Patches(files[i])
		if err != nil {
			t.Fatal(err)
		}
		want[i] = tower.Encode(be, p)
	}
	g := NewGallery(9, small(), tower, 2*4*len(want[0])) // of two
	backends := []kernels.Backend{be, openCPU(t, 1, kernels.F32), openCPU(t, 2, kernels.F32)}
	var all sync.WaitGroup
	for w, own := range backends {
		all.Go(func() {
			for k := range 24 {
				i := (w + k) % 4
				im, err := g.Add(fmt.Sprint(i), 12, 20, func() ([]byte, error) { return files[i], nil })
				if err != nil {
					t.Error(err)
				} else if got := g.Features(own, im); !slices.Equal(got, want[i]) || g.Of(im.First+14) != im {
					t.Errorf("goroutine %d: image %d has other features", w, i)
				}
			}
		})
	}
	all.Wait()
}
