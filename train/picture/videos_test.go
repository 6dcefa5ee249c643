package picture

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// goldenVideos is testdata/videos.json, which videos.py made with transformers and Pillow.
type goldenVideos struct {
	Cases []goldenVideo
	Times []struct {
		Per, FPS float64
		Frames   int
		Places   []int32
	}
	Gifs []struct {
		Data   []byte
		SHA256 []string
	}
	Refused []goldenVideo
}

// goldenVideo is what a processor makes of a video.
type goldenVideo struct {
	Whole                bool
	Settings             map[string]any
	Width, Height, Total int
	Rate, FPS, Sampled   float64
	Frames               []int
	Grid                 [3]int
	Seconds              []float64
	SHA256               string
}

var videosFile = sync.OnceValues(func() (g goldenVideos, err error) {
	data, err := os.ReadFile(filepath.Join("testdata", "videos.json"))
	if err != nil {
		return g, err
	}
	return g, json.Unmarshal(data, &g)
})

func readVideos(t *testing.T) goldenVideos {
	t.Helper()
	g, err := videosFile()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// asPNG encodes an image.
func asPNG(t *testing.T, m bitmap) []byte {
	t.Helper()
	out := image.NewNRGBA(image.Rect(0, 0, m.width, m.height))
	for i := range m.width * m.height {
		copy(out.Pix[4*i:], m.pix[3*i:3*i+3])
		out.Pix[4*i+3] = 255
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&b, out); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// moved is frame k of videos.py's videos.
func moved(t *testing.T, m bitmap, k int) []byte {
	out := newBitmap(m.width, m.height)
	for y := range m.height {
		for x := range m.width {
			copy(out.row(y)[3*x:], m.row(y)[3*((x+5*k)%m.width):][:3])
		}
	}
	return asPNG(t, out)
}

func TestVideosAsTransformers(t *testing.T) {
	g := readVideos(t)
	if len(g.Cases) < 20 {
		t.Fatalf("only %d videos", len(g.Cases))
	}
	for _, x := range g.Cases {
		t.Run(fmt.Sprintf("%d×%d×%d %v", x.Total, x.Width, x.Height, x.Settings), x.test)
	}
}

// videoSettings reads settings as if they were video_preprocessor_config.json.
func videoSettings(t *testing.T, whole bool, settings map[string]any) VideoSettings {
	t.Helper()
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseVideoSettings(text, whole)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (x goldenVideo) test(t *testing.T) {
	s := videoSettings(t, x.Whole, x.Settings)
	s.FPS = x.FPS
	var files [][]byte
	image := pattern(x.Width, x.Height)
	for k := range x.Total {
		files = append(files, moved(t, image, k))
	}
	encoded, err := PackFrames(files, x.Rate, false)
	if err != nil {
		t.Fatal(err)
	}
	v, err := OpenVideo(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Clip{x.Width, x.Height, x.Total, x.Rate, false}); v.Clip != want {
		t.Fatalf("the video is %+v, want %+v", v.Clip, want)
	}
	got, err := s.Scene(v.Clip)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Frames, x.Frames) || [3]int{got.Parts, got.Rows, got.Columns} != x.Grid {
		t.Fatalf("frames %v, a grid of %d×%d×%d, of transformers %v and %v", got.Frames, got.Parts, got.Rows, got.Columns,
			x.Frames, x.Grid)
	}
	if !slices.Equal(got.Seconds, x.Seconds) || math.Abs(got.Rate-x.Sampled) > 1e-12 {
		t.Errorf("at %v, %v frames a second, of transformers %v, %v", got.Seconds, got.Rate, x.Seconds, x.Sampled)
	}
	var raw []byte
	for part := range got.Parts {
		p, err := s.Patches(v, got, part)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range p.Values {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
	}
	if d := digest(raw); d != x.SHA256 {
		t.Errorf("values have digest %s, of transformers %s", d, x.SHA256)
	}
}

// The last frame stands for those that the last part lacks.
func TestLastFrameRepeats(t *testing.T) {
	s := NewVideoSettings(false)
	s.Frames, s.Patch, s.MinPixels, s.MaxPixels = 4, 4, 64, 4096
	var last [2]Patches
	for i, frames := range [][]int{{0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 5, 5, 5}} {
		var files [][]byte
		for _, k := range frames {
			files = append(files, moved(t, pattern(16, 24), k))
		}
		encoded, err := PackFrames(files, 0, false)
		if err != nil {
			t.Fatal(err)
		}
		v, err := OpenVideo(encoded)
		if err != nil {
			t.Fatal(err)
		}
		x, err := s.Scene(v.Clip)
		if err != nil || x.Parts != 2 {
			t.Fatal(x, err)
		}
		if last[i], err = s.Patches(v, x, 1); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(last[0].Values, last[1].Values) {
		t.Error("other frames are repeated")
	}
}

// Parts of a video that stays in one piece lie apart in time as Qwen2.5-VL's do.
func TestPlacesAsTransformers(t *testing.T) {
	for _, x := range readVideos(t).Times {
		s := NewVideoSettings(false)
		s.PerSecond, s.Frames, s.MaxFrames = x.Per, x.Frames, 1000
		frames := max(2, len(x.Places)*x.Frames)
		got, err := s.Scene(Clip{Width: 56, Height: 56, Frames: frames, Rate: x.FPS, Sampled: true})
		if err != nil || !slices.Equal(got.Places[:len(x.Places)], x.Places) {
			t.Errorf("%+v: %v, %v", x, got.Places, err)
		}
	}
	s := NewVideoSettings(false)
	if got, err := s.Scene(Clip{Width: 56, Height: 56, Frames: 5}); err != nil || !slices.Equal(got.Places, []int32{0, 1, 2}) {
		t.Errorf("without tokens_per_second: %v, %v", got.Places, err)
	}
	s = NewVideoSettings(true)
	if got, err := s.Scene(Clip{Width: 56, Height: 56, Frames: 5}); err != nil || !slices.Equal(got.Places, []int32{0, 0, 0}) {
		t.Errorf("of parts that stand apart: %v, %v", got.Places, err)
	}
}

func TestAnimationsAsPillow(t *testing.T) {
	g := readVideos(t)
	if len(g.Gifs) < 10 {
		t.Fatalf("only %d animations", len(g.Gifs))
	}
	for i, x := range g.Gifs {
		encoded, err := PackGIF(x.Data)
		if err != nil {
			t.Fatalf("animation %d: %v", i, err)
		}
		v, err := OpenVideo(encoded)
		if err != nil {
			t.Fatalf("animation %d: %v", i, err)
		}
		list, err := graphicsOf(x.Data)
		if err != nil || len(list) != len(x.SHA256) {
			t.Fatalf("animation %d: %d images, %v, of Pillow %d", i, len(list), err, len(x.SHA256))
		}
		unit, at := int(math.Round(100/v.Rate)), 0
		for k, y := range list {
			n := y.delay / unit
			for _, frame := range []int{at + n - 1, at} { // the second is drawn again from the first image
				m, err := v.frame(frame)
				if err != nil || digest(m.pix) != x.SHA256[k] {
					t.Errorf("animation %d, frame %d of %d: not Pillow's image %d; %v", i, frame, v.Frames, k, err)
				}
			}
			at += n
		}
		if at != v.Frames {
			t.Errorf("animation %d: %d frames, want %d", i, v.Frames, at)
		}
	}
}

// graphic is a GIF of images of one pixel with these delays.
func graphic(delays ...int) []byte {
	b := []byte("GIF89a\x01\x00\x01\x00\xf0\x00\x00\x01\x02\x03\x04\x05\x06")
	for _, d := range delays {
		b = append(b, 0x21, 0xf9, 4, 0, byte(d), byte(d>>8), 0, 0)
		b = append(b, "\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00"...)
	}
	return append(b, ';')
}

// An animation is a video of equal frames, which its delays are whole numbers of.
func TestDelays(t *testing.T) {
	for _, tt := range []struct {
		delays []int
		frames int
		rate   float64
	}{
		{[]int{4, 4, 4}, 3, 25},
		{[]int{20, 50}, 7, 10},
		{[]int{0, 5}, 3, 20}, // no delay is 10
		{[]int{300, 301}, 601, 100},
	} {
		c, err := gifClip(graphic(tt.delays...))
		if want := (Clip{1, 1, tt.frames, tt.rate, false}); err != nil || c != want {
			t.Errorf("delays %v: %+v, %v, want %+v", tt.delays, c, err, want)
		}
	}
}

func TestRefusedVideos(t *testing.T) {
	one, other := asPNG(t, pattern(8, 6)), asPNG(t, pattern(6, 8))
	for name, f := range map[string]func() ([]byte, error){
		"without frames":                  func() ([]byte, error) { return PackFrames(nil, 0, false) },
		"show it as an image":             func() ([]byte, error) { return PackFrames([][]byte{one}, 0, false) },
		"frame 2 has 6×8 pixels":          func() ([]byte, error) { return PackFrames([][]byte{one, other}, 0, false) },
		"frame 2: not a PNG":              func() ([]byte, error) { return PackFrames([][]byte{one, []byte("x")}, 0, false) },
		"-1 frames a second":              func() ([]byte, error) { return PackFrames([][]byte{one, one}, -1, false) },
		"GIF: a video of 1 frame":         func() ([]byte, error) { return PackGIF(graphic(4)) },
		"not a GIF":                       func() ([]byte, error) { return PackGIF(one) },
		"cut off":                         func() ([]byte, error) { return PackGIF(graphic(4, 4)[:40]) },
		"a video of 1300010 frames: it":   func() ([]byte, error) { return PackGIF(graphic(slices.Repeat([]int{65000, 65001}, 10)...)) },
		"neither an image nor an extensi": func() ([]byte, error) { return PackGIF(append(graphic(4, 4)[:42], 9, 9)) },
	} {
		if _, err := f(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	whole, err := PackFrames([][]byte{one, one, one}, 2, true)
	if err != nil {
		t.Fatal(err)
	}
	if !IsVideo(whole) || IsVideo(one) {
		t.Error("a video is not told from an image")
	}
	for _, b := range [][]byte{one, whole[:len(whole)-1], append(slices.Clone(whole), 1), []byte(videoMagic + "{\n"), []byte(videoMagic)} {
		if _, err := OpenVideo(b); err == nil {
			t.Errorf("a video of %d bytes was opened", len(b))
		}
	}
	g := readVideos(t)
	if len(g.Refused) != 4 {
		t.Errorf("transformers refuses %d videos of 4", len(g.Refused))
	}
	for _, x := range g.Refused {
		s := NewVideoSettings(x.Whole)
		if _, err := s.Scene(Clip{x.Width, x.Height, x.Total, 2, false}); err == nil {
			t.Errorf("%+v was not refused", x)
		}
	}
	s := NewVideoSettings(true)
	s.MaxFrames = 5
	if _, err := s.Scene(Clip{56, 56, 6, 4, true}); err == nil || !strings.Contains(err.Error(), "at most 5") {
		t.Errorf("too many frames: %v", err)
	}
}

// A broken frame and one of another size are found when they are read.
func TestBrokenFrames(t *testing.T) {
	one, other := asPNG(t, pattern(8, 6)), asPNG(t, pattern(6, 8))
	for want, second := range map[string][]byte{"frame 2: 6×8 pixels, and the first frame 8×6": other,
		"frame 2: PNG image: the file is cut off": one[:len(one)-20]} {
		v, err := OpenVideo(packVideo(videoHead{}, [][]byte{one, second}))
		if err != nil {
			t.Fatal(err)
		}
		s := NewVideoSettings(true)
		x, err := s.Scene(v.Clip)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Patches(v, x, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestVideoSettings(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReadVideoSettings(dir, false); err == nil {
		t.Error("a folder without settings was read")
	}
	check := func(whole bool, set func(s *VideoSettings)) {
		t.Helper()
		want := NewVideoSettings(whole)
		set(&want)
		if got, err := ReadVideoSettings(dir, whole); err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	// An image processor's file stands in, with its areas.
	write("preprocessor_config.json", `{"image_processor_type": "Qwen2VLImageProcessorFast", "min_pixels": 3136, "max_pixels": 12845056}`)
	check(false, func(s *VideoSettings) { s.MinPixels, s.MaxPixels = 3136, 12845056 })
	check(true, func(*VideoSettings) {})
	write("video_preprocessor_config.json", `{"video_processor_type": "Qwen3VLVideoProcessor", "fps": 4, "max_frames": 32,
		"min_frames": 2, "cap_pixels_per_frame": true, "max_video_tokens": 99, "patch_size": 12, "temporal_patch_size": 3,
		"merge_size": 1, "rescale_factor": 0.5, "image_std": 2, "size": {"shortest_edge": 4096, "longest_edge": 25165824}}`)
	check(true, func(s *VideoSettings) {
		s.FPS, s.MaxFrames, s.MinFrames, s.Capped, s.MaxTokens, s.Patch, s.Frames, s.Merge, s.Rescale = 4, 32, 2, true, 99, 12, 3, 1, 0.5
		s.Std, s.MinPixels, s.MaxPixels = [3]float64{2, 2, 2}, 4096, 25165824
	})
	if _, err := ReadVideoSettings(dir, false); err == nil || !strings.Contains(err.Error(), "only Qwen2VLVideoProcessor is") {
		t.Errorf("of another family: %v", err)
	}
	write("processor_config.json", `{"video_processor": {"max_frames": 7}}`)
	check(false, func(s *VideoSettings) { s.MaxFrames = 7 })
	for text, want := range map[string]string{
		`{"num_frames": 8}`:                  "num_frames: 8",
		`{"resample": 2}`:                    "resample: 2",
		`{"fps": 0}`:                         "fps: 0",
		`{"do_resize": false}`:               "do_resize",
		`{"max_frames": 3}`:                  "max_frames: 3",
		`{"min_frames": 1, "max_frames": 1}`: "less than temporal_patch_size",
		`{"max_pixels": 5}`:                  "data.video_max_pixels",
		`{"size": {"height": 5}}`:            "height is not supported",
		`{"image_mean": [1]}`:                "image_mean",
		`{"cap_pixels_per_frame": true, "max_video_tokens": 0}`: "max_video_tokens: 0",
	} {
		if _, err := parseVideoSettings([]byte(text), false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
