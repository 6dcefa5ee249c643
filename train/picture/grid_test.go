package picture

import (
	"strings"
	"testing"
)

func TestGrid(t *testing.T) {
	small := NewSettings()
	small.MaxPixels = 784 * 4
	for _, tt := range []struct {
		name          string
		s             Settings
		width, height int
		rows, columns int
	}{
		{"as it is", NewSettings(), 280, 84, 6, 20},
		{"rounded", NewSettings(), 290, 99, 8, 20},      // 290/28 = 10.4, 99/28 = 3.54
		{"halves to even", NewSettings(), 70, 98, 8, 4}, // 70/28 = 2.5, 98/28 = 3.5
		// β = √(3136/100) = 5.6: 56 pixels each
		{"enlarged", NewSettings(), 10, 10, 4, 4},
		// round(30/28)·round(100/28) = 1·4 tokens are 3136 pixels, just enough
		{"just large enough", NewSettings(), 100, 30, 2, 8},
		// 2 tokens of 28 by 28 are too few: β = √(3136/(30·60)) = 1.32, ⌈30·1.32/28⌉ = 2, ⌈60·1.32/28⌉ = 3
		{"enlarged more than needed", NewSettings(), 60, 30, 4, 6},
		// β = √(420·110/3136) = 3.838: ⌊420/3.838/28⌋ = ⌊3.91⌋, ⌊110/3.838/28⌋ = ⌊1.02⌋
		{"shrunk", small, 420, 110, 2, 6},
		// β = √(1000·50/3136) = 3.99: ⌊1000/3.99/28⌋ = 8, and 50/3.99/28 = 0.45 becomes 1
		{"shrunk to a token's height", small, 1000, 50, 2, 16},
		// round(54/28)·round(60/28) = 2·2 tokens are 3136 pixels, not too many
		{"just small enough", small, 54, 60, 4, 4},
		{"200 to 1", NewSettings(), 5600, 28, 2, 400},
	} {
		rows, columns, err := tt.s.Grid(tt.width, tt.height)
		if err != nil || rows != tt.rows || columns != tt.columns {
			t.Errorf("%s: %d×%d patches, %v, want %d×%d", tt.name, rows, columns, err, tt.rows, tt.columns)
		}
		rows, columns, err = tt.s.Tokens(tt.width, tt.height)
		if err != nil || rows != tt.rows/2 || columns != tt.columns/2 {
			t.Errorf("%s: %d×%d tokens, %v, want %d×%d", tt.name, rows, columns, err, tt.rows/2, tt.columns/2)
		}
	}
}

func TestGridRefuses(t *testing.T) {
	huge := NewSettings()
	huge.MinPixels, huge.MaxPixels = mostPixels, mostPixels
	for _, tt := range []struct {
		s             Settings
		width, height int
		want          string
	}{
		{NewSettings(), 201, 1, "201×1 pixels: one side must not be more than 200 times"},
		{NewSettings(), 1, 402, "1×402 pixels"},
		{NewSettings(), 0, 5, "0×5 pixels"},
		{NewSettings(), 1 << 40, 1 << 40, "100 million"},
		{huge, 999, 333, "would be resized to"},
		{Settings{}, 5, 5, "patch_size: 0"},
	} {
		if _, _, err := tt.s.Tokens(tt.width, tt.height); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%d×%d: error %v, want one with %q", tt.width, tt.height, err, tt.want)
		}
	}
}
