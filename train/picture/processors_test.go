package picture

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// otherProcessors is testdata/processors.json, which processors.py made with transformers.
type otherProcessors struct {
	Sizes []struct {
		Settings map[string]any
		Of       [][4]int // width, height; rows and columns of patches
	}
	Patches []goldenPatches
}

func readProcessors(t *testing.T) (g otherProcessors) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "processors.json"))
	if err == nil {
		err = json.Unmarshal(data, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestSizesOfOtherProcessors(t *testing.T) {
	refused, most := 0, 0
	for _, x := range readProcessors(t).Sizes {
		s := settingsOf(t, x.Settings)
		if s.Tile > 0 {
			s.Patch = 16
		}
		for _, of := range x.Of {
			rows, columns, err := s.Grid(of[0], of[1])
			if err != nil {
				refused++
			}
			if rows != of[2] || columns != of[3] || (err != nil) != (of[2] == 0) {
				t.Errorf("%v: %d×%d pixels are %d×%d patches (%v), of transformers %d×%d", x.Settings, of[0], of[1],
					rows, columns, err, of[2], of[3])
			}
			if most = max(most, rows*columns); s.Tile > 0 && rows*columns > s.MostPatches() {
				t.Errorf("%v: %d×%d patches, more than %d", x.Settings, rows, columns, s.MostPatches())
			}
		}
	}
	if refused == 0 || most < 13*28*28 {
		t.Errorf("%d refused, and up to %d patches", refused, most)
	}
}

// Four tiles a side of 2 pixels at most: a square image is 2×2 tiles if it has more than 8 pixels, half their area.
func TestTiles(t *testing.T) {
	s := NewSettings()
	s.Patch, s.Merge, s.Frames, s.Tile, s.MinPixels, s.MaxPixels = 1, 2, 1, 2, 4, 16
	for size, want := range map[[2]int]int{{2, 2}: 1, {3, 3}: 5, {4, 4}: 5, {2, 4}: 3, {1, 9}: 5} {
		rows, columns, err := s.Tokens(size[0], size[1])
		if err != nil || rows != want || columns != 1 {
			t.Errorf("%v pixels: %d×%d tokens (%v), want %d", size, rows, columns, err, want)
		}
	}
	s.MaxPixels = 8 // two tiles, and the whole
	if got := s.MostPatches(); got != 12 {
		t.Errorf("two tiles are up to %d patches, want 12", got)
	}
	s.MinPixels, s.MaxPixels = 5, 16 // more than one tile
	if rows, _, err := s.Tokens(2, 2); err != nil || rows != 5 {
		t.Errorf("%d tokens of at least two tiles (%v), want 5", rows, err)
	}
	s.MinPixels, s.MaxPixels = 4, 257*4
	if _, _, err := s.Grid(4, 4); err == nil || !strings.Contains(err.Error(), "max_pixels: 1028 are more than 256 tiles") {
		t.Errorf("257 tiles: %v", err)
	}
	s.MaxPixels, s.Tile = 16, 3
	if _, _, err := s.Grid(4, 4); err == nil || !strings.Contains(err.Error(), "not a multiple of a token's 2") {
		t.Errorf("tiles of one token and a half: %v", err)
	}
	s.Tile = 2
	m := newBitmap(4, 2) // two tiles, whose pixels stay
	for i := range m.pix {
		m.pix[i] = uint8(10 * i)
	}
	got, wide := s.stack(m), m.resize(2, 2)
	want := append(append(append(append([]uint8{}, m.row(0)[:6]...), m.row(1)[:6]...), m.row(0)[6:]...), m.row(1)[6:]...)
	if want = append(want, wide.pix...); got.width != 2 || got.height != 6 || string(got.pix) != string(want) {
		t.Errorf("tiles %v, want %v", got.pix, want)
	}
}

// The longer side of an image is brought to 6 pixels, and both to whole tiles of 4, which have a patch of 3·3 each.
func TestTilesOfLongSides(t *testing.T) {
	s := settingsOfSmolVLM()
	s.Patch, s.Tile, s.MaxPixels = 3, 4, 36
	check := func(width, height, rows, columns, tokens int) {
		t.Helper()
		gotRows, gotColumns, err := s.Tiling(width, height)
		n, across, e := s.Tokens(width, height)
		if gotRows != rows || gotColumns != columns || err != nil || n != tokens || across != 1 || e != nil {
			t.Errorf("%d×%d pixels: %d×%d tiles and %d×%d tokens (%v, %v), want %d×%d and %d", width, height, gotRows,
				gotColumns, n, across, err, e, rows, columns, tokens)
		}
	}
	check(100, 100, 2, 2, 5)
	check(12, 6, 2, 2, 5) // 6×4 (3 is odd), then 8×⌊8·4/6⌋ = 8×5
	check(12, 2, 1, 2, 3) // 6×2, then 8×⌊8·2/6⌋ = 8×2
	check(2, 12, 2, 1, 3)
	if s.MostPatches() != 5 {
		t.Errorf("up to %d patches", s.MostPatches())
	}
	s.MaxPixels = 24 // its root is 4, rounded down: one tile
	check(100, 3, 0, 0, 1)
	s.MaxPixels, s.Uncut = 36, true
	check(12, 2, 0, 0, 1)
	if s.MostPatches() != 1 {
		t.Errorf("up to %d patches of an image that is not cut", s.MostPatches())
	}
	for want, change := range map[string]func(s *Settings){
		"bring every image to one length": func(s *Settings) { s.MinPixels = 2 },
		"have 1 patches of 3 pixels":      func(s *Settings) { s.Merge = 2 },
		"have 0 patches of 5 pixels":      func(s *Settings) { s.Patch = 5 },
	} {
		x := s
		if change(&x); x.Check() == nil || !strings.Contains(x.Check().Error(), want) {
			t.Errorf("%s: %v", want, x.Check())
		}
	}
}
