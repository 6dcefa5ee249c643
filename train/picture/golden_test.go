package picture

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// golden is testdata/golden.json, which golden.py made with Pillow, torchvision and transformers.
type golden struct {
	Files []struct {
		Name          string
		Width, Height int
		SHA256        string
		Data          []byte
	}
	Resizes []struct {
		From, To [2]int
		SHA256   string
	}
	Sizes   [][7]int
	Patches []goldenPatches
}

// goldenPatches are what a processor makes of an image.
type goldenPatches struct {
	Settings map[string]any
	Image    json.RawMessage
	Grid     [3]int
	SHA256   string
	Every    int
	Values   []float32
}

var goldenFile = sync.OnceValues(func() (g golden, err error) {
	data, err := os.ReadFile(filepath.Join("testdata", "golden.json"))
	if err != nil {
		return g, err
	}
	return g, json.Unmarshal(data, &g)
})

func readGolden(t testing.TB) golden {
	t.Helper()
	g, err := goldenFile()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestFilesDecodeAsPillow(t *testing.T) {
	g := readGolden(t)
	if len(g.Files) < 70 {
		t.Fatalf("only %d files", len(g.Files))
	}
	for _, f := range g.Files {
		t.Run(f.Name, func(t *testing.T) {
			width, height, err := Size(f.Data)
			if err != nil || width != f.Width || height != f.Height {
				t.Errorf("Size is %d×%d, %v, of Pillow %d×%d", width, height, err, f.Width, f.Height)
			}
			m, err := decode(f.Data)
			if err != nil {
				t.Fatal(err)
			}
			if m.width != f.Width || m.height != f.Height {
				t.Errorf("%d×%d pixels, of Pillow %d×%d", m.width, m.height, f.Width, f.Height)
			}
			if got := digest(m.pix); got != f.SHA256 {
				t.Errorf("pixels have digest %s, of Pillow %s; they begin with %v", got, f.SHA256, m.pix[:min(24, len(m.pix))])
			}
		})
	}
}

func TestResizesAsTorchvision(t *testing.T) {
	for _, r := range readGolden(t).Resizes {
		t.Run(fmt.Sprintf("%v to %v", r.From, r.To), func(t *testing.T) {
			m := pattern(r.From[0], r.From[1])
			if got := digest(m.resize(r.To[0], r.To[1]).pix); got != r.SHA256 {
				t.Errorf("digest %s, of torchvision %s", got, r.SHA256)
			}
		})
	}
}

func TestSizesAsTransformers(t *testing.T) {
	refused := 0
	for _, x := range readGolden(t).Sizes {
		s := NewSettings()
		s.Patch, s.Merge, s.MinPixels, s.MaxPixels = x[2], 1, x[3], x[4]
		h, w, err := s.resized(x[0], x[1])
		if err != nil {
			refused++
		}
		if h != x[5] || w != x[6] || (err != nil) != (x[5] == 0) {
			t.Errorf("height, width, factor, least, most %v: %d×%d, %v, of transformers %v", x[:5], h, w, err, x[5:])
		}
	}
	if refused == 0 {
		t.Error("no size was refused")
	}
}

func TestPatchesAsTransformers(t *testing.T) {
	g := readGolden(t)
	all := append(readProcessors(t).Patches, g.Patches...)
	for _, x := range all {
		t.Run(fmt.Sprintf("%s %v", x.Image, x.Settings), func(t *testing.T) { x.test(t, g) })
	}
}

func (x goldenPatches) test(t *testing.T, g golden) {
	s := settingsOf(t, x.Settings)
	got, err := patchesOf(g, s, x.Image)
	if err != nil {
		t.Fatal(err)
	}
	if got.Rows != x.Grid[1] || got.Columns != x.Grid[2] || x.Grid[0] != 1 {
		t.Fatalf("a grid of %d×%d patches, of transformers %v", got.Rows, got.Columns, x.Grid)
	}
	for i, want := range x.Values {
		if v := got.Values[i*x.Every]; v != want {
			t.Errorf("value %d is %g, of transformers %g", i*x.Every, v, want)
		}
	}
	raw := make([]byte, 0, 4*len(got.Values))
	for _, v := range got.Values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	if d := digest(raw); d != x.SHA256 {
		t.Errorf("values have digest %s, of transformers %s", d, x.SHA256)
	}
}

// settingsOf reads settings as if they were preprocessor_config.json.
func settingsOf(t *testing.T, settings map[string]any) Settings {
	t.Helper()
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseSettings(text)
	if err != nil {
		t.Fatal(err)
	}
	if s.Tile > 0 || s.Fit {
		s.Patch, s.Merge = 14, 2
	}
	return s
}

// patchesOf makes the patches of a file, named, or of a pattern, by its size.
func patchesOf(g golden, s Settings, what json.RawMessage) (Patches, error) {
	var size [2]int
	if json.Unmarshal(what, &size) == nil {
		return s.patches(pattern(size[0], size[1]))
	}
	var name string
	if err := json.Unmarshal(what, &name); err != nil {
		return Patches{}, err
	}
	for _, f := range g.Files {
		if f.Name == name {
			return s.Patches(f.Data)
		}
	}
	return Patches{}, os.ErrNotExist
}

// pattern is golden.py's.
func pattern(w, h int) bitmap {
	m := newBitmap(w, h)
	for y := range h {
		for x := range w {
			for c := range 3 {
				v := x*255/w + y*255/h*(c+1)/2 + c*40
				if (x/16+y/16)%2 == 0 {
					v = (x*x*3+y*y*5+x*y*7+c*85)>>3 ^ (x*37 + y*91 + c*53)
				}
				m.pix[3*(y*w+x)+c] = uint8(v)
			}
		}
	}
	return m
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
