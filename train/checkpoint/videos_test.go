package checkpoint

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/model"
	"exp/train/picture"
)

// filmed is a tiny model of testdata/videos.json, which videos.py wrote. Its sequence shows an image, a video of Parts
// parts at FPS frames a second, and the image again. Number i of part k's patches is sin(0.003·i² + 10 + k), and of the
// image's sin(0.003·i² + 3).
type filmed struct {
	Name                 string
	Config               jsonObject
	Parts, Rows, Columns int
	FPS                  float64
	Places               []model.Place
	Every11th            []float64 // of features, [1+Deep][Parts][tokens][width]
	Tokens               []int32
	After                []int
	Logits               [][]float64 // after the tokens of After
}

func eachFilmed(t *testing.T, f func(t *testing.T, x filmed, dir string)) {
	var all struct{ Models []filmed }
	if err := json.Unmarshal(readFile(t, filepath.Join("testdata", "videos.json")), &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Models) != 4 {
		t.Fatalf("%d models", len(all.Models))
	}
	for _, x := range all.Models {
		t.Run(x.Name, func(t *testing.T) {
			dir, y := t.TempDir(), pictured{Name: x.Name, Config: x.Config}
			writeFile(t, filepath.Join(dir, configFile), compact(x.Config))
			writeTensors(t, filepath.Join(dir, weightsFile), y.weights(t, dir, true)...)
			writeFile(t, filepath.Join(dir, "preprocessor_config.json"), []byte(`{"patch_size": 4, "size": {"shortest_edge": 64,
				"longest_edge": 100000}}`))
			f(t, x, dir)
		})
	}
}

// wave returns the patches of an image or a part.
func wave(rows, columns int, first float64) picture.Patches {
	p := picture.Patches{Rows: rows, Columns: columns, Values: make([]float32, rows*columns*3*2*4*4)}
	for i := range p.Values {
		p.Values[i] = float32(math.Sin(float64(0.003*float64(i)*float64(i)) + first))
	}
	return p
}

// show gives the model the pictures, and returns its tokens with their ids for placeholders, and the features of the
// video's parts.
func (x filmed) show(t *testing.T, be kernels.Backend, dir string, m *model.Model) (tokens []int32, parts [][]float32) {
	t.Helper()
	tower, err := LoadTower(be, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tower.Close()
	s, pad, ok, err := ReadVideos(dir)
	if err != nil || !ok || pad != (VideoTokens{8, 5, 6}) || s.Whole != strings.HasPrefix(x.Name, "qwen3") {
		t.Fatal(s, pad, ok, err)
	}
	scene, err := s.Scene(picture.Clip{Width: 4 * x.Columns, Height: 4 * x.Rows, Frames: 2*x.Parts - 1, Rate: x.FPS, Sampled: true})
	if err != nil || scene.Parts != x.Parts || scene.Rows != x.Rows || scene.Columns != x.Columns {
		t.Fatal(scene, err)
	}
	all, next := &painted{}, int32(m.Config.Vocab)
	add := func(im model.Image, p picture.Patches) {
		im.First, im.Rows, im.Columns = next, p.Rows/2, p.Columns/2
		all.images, all.features = append(all.images, im), append(all.features, tower.Encode(be, p))
		next += int32(im.Tokens())
	}
	for k := range x.Parts {
		add(model.Image{Part: k, Parts: x.Parts, Time: scene.Places[k]}, wave(x.Rows, x.Columns, 10+float64(k)))
	}
	image := next
	add(model.Image{}, wave(4, 4, 3))
	m.SetImages(all)
	id, still := int32(m.Config.Vocab), image
	for _, token := range x.Tokens {
		switch token {
		case 8:
			tokens = append(tokens, id)
			id++
		case 7:
			tokens = append(tokens, still)
			if still++; still == image+4 {
				still = image
			}
		default:
			tokens = append(tokens, token)
		}
	}
	if id != image {
		t.Fatalf("%d tokens of the video", id-int32(m.Config.Vocab))
	}
	return tokens, all.features[:x.Parts]
}

// Features, positions and logits of sequences with a video are transformers'.
func TestModelsOfVideosComputeAsTransformers(t *testing.T) {
	eachFilmed(t, func(t *testing.T, x filmed, dir string) {
		for _, b := range []struct {
			be    kernels.Backend
			limit float64
		}{{ref.New[float64](), 2e-6}, {openCPU(t, kernels.F32), 2e-5}} {
			c := pictured{Name: x.Name}.config(t, dir)
			m, err := model.New(b.be, c, model.Heads{LM: true}, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := LoadFolder(b.be, m, dir); err != nil {
				t.Fatal(err)
			}
			tokens, parts := x.show(t, b.be, dir, m)
			x.checkFeatures(t, c, parts)
			if places, next := m.Places(tokens); !slices.Equal(places, x.Places) || next != x.Places[len(x.Places)-1][0]+1 {
				t.Errorf("places %v up to %d, of transformers %v", places, next, x.Places)
			}
			got, worst := logitsOf(t, b.be, m, tokens), 0.0
			for i, row := range x.After {
				for v, w := range x.Logits[i] {
					worst = max(worst, math.Abs(got[row*c.Vocab+v]-w))
				}
			}
			if !(worst <= b.limit) {
				t.Errorf("%s: logits differ by %g from transformers'", b.be.Name(), worst)
			}
			m.Close()
		}
	})
}

func (x filmed) checkFeatures(t *testing.T, c model.Config, parts [][]float32) {
	t.Helper()
	var all []float32
	each := len(parts[0]) / (1 + c.Images.Deep)
	for k := range 1 + c.Images.Deep {
		for _, p := range parts {
			all = append(all, p[k*each:][:each]...)
		}
	}
	worst, largest := 0.0, 0.0
	for i, w := range x.Every11th {
		worst, largest = max(worst, math.Abs(float64(all[11*i])-w)), max(largest, math.Abs(w))
	}
	if !(worst <= 1e-5*largest) {
		t.Errorf("features differ by %g from transformers' up to %g", worst, largest)
	}
}

// Which models read videos, and how: as their files say.
func TestReadVideos(t *testing.T) {
	eachPictured(t, func(t *testing.T, x pictured, dir string, v5 bool) {
		if !v5 {
			return
		}
		writeFile(t, filepath.Join(dir, "preprocessor_config.json"), []byte(`{"patch_size": 4}`))
		s, pad, ok, err := ReadVideos(dir)
		if want := strings.HasPrefix(x.Name, "qwen"); ok != want || err != nil || want && pad.Pad != 8 {
			t.Fatal(pad, ok, err)
		}
		if want := map[bool]float64{true: 4}[x.Name == "qwen2.5-vl"]; s.PerSecond != want {
			t.Errorf("%g positions a second", s.PerSecond)
		}
		if !ok {
			return
		}
		writeFile(t, filepath.Join(dir, "video_preprocessor_config.json"), []byte(`{"patch_size": 4, "temporal_patch_size": 1}`))
		if _, pad, ok, err := ReadVideos(dir); err == nil || !strings.Contains(err.Error(), "2 frames, but the video processor 4, 2 and 1") ||
			!ok || pad.Pad != 8 {
			t.Errorf("of other patches: %v, %v, %v", pad, ok, err)
		}
	})
}
