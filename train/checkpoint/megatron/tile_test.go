package megatron

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/train/checkpoint/extent"
)

// Tiles make a matrix only if they cover every element exactly once.
func TestCompose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bytes")
	if err := os.WriteFile(path, []byte("abcdefghijklmnop"), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	at := func(row, col, rows, cols, from int) tile { // one byte an element
		return tile{row, col, rows, cols, extent.Range(f, int64(from), int64(rows*cols))}
	}
	for _, tt := range []struct {
		name  string
		tiles []tile
		want  string // else a part of the error
	}{
		{"one", []tile{at(0, 0, 3, 2, 0)}, "abcdef"},
		{"rows", []tile{at(2, 0, 1, 2, 8), at(0, 0, 2, 2, 0)}, "abcdij"},
		{"columns", []tile{at(0, 1, 3, 1, 3), at(0, 0, 3, 1, 0)}, "adbecf"},
		{"mixed", []tile{at(0, 0, 1, 2, 0), at(1, 0, 2, 1, 2), at(1, 1, 2, 1, 4)}, "abcedf"},
		{"steps", []tile{at(0, 0, 2, 1, 0), at(0, 1, 1, 1, 2), at(2, 0, 1, 1, 3), at(1, 1, 2, 1, 4)}, "acbedf"},
		{"overlap of rows", []tile{at(0, 0, 2, 2, 0), at(1, 0, 2, 2, 4)}, "overlapping parts at row 1, column 0"},
		{"overlap of columns", []tile{at(0, 0, 3, 2, 0), at(0, 1, 3, 1, 6)}, "overlapping parts at row 0, column 1"},
		{"the same twice", []tile{at(0, 0, 3, 2, 0), at(0, 0, 3, 2, 6)}, "overlapping parts at row 0, column 0"},
		{"missing row", []tile{at(0, 0, 1, 2, 0), at(2, 0, 1, 2, 2)}, "no part at row 1, column 0"},
		{"missing column", []tile{at(0, 0, 3, 1, 0)}, "no part at row 0, column 1"},
		{"first column missing", []tile{at(0, 1, 3, 1, 0)}, "no part at row 0, column 0"},
		{"beyond the columns", []tile{at(0, 0, 3, 3, 0)}, "row 0"},
		{"beyond the rows", []tile{at(0, 0, 4, 2, 0)}, "beyond its 3 rows"},
		{"a tile beyond", []tile{at(0, 0, 3, 2, 0), at(3, 0, 1, 2, 6)}, "beyond its 3 rows"},
		{"before the first row", []tile{at(-1, 0, 4, 2, 0)}, "overlapping parts"},
		{"none", nil, "no part at row 0, column 0"},
	} {
		got, err := compose(3, 2, tt.tiles)
		if err != nil {
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
			}
			continue
		}
		b, err := io.ReadAll(io.NewSectionReader(got, 0, got.Size()))
		if err != nil || string(b) != tt.want {
			t.Errorf("%s: %q, %v, want %q", tt.name, b, err, tt.want)
		}
	}
}
