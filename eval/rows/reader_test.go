package rows

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// readerFiles returns patterns of two files each that hold a, b, a, A, b and null: lines, an array, and parquet
// with several row groups.
func readerFiles(t *testing.T) map[string]string {
	t.Helper()
	type part struct {
		S *string `parquet:"s,optional"`
		N int64   `parquet:"n"`
	}
	text := func(s string) *string { return &s }
	parts := [][]part{{{text("a"), 1}, {text("b"), 1}, {text("a"), 1}}, {{text("A"), 1}, {text("b"), 1}, {nil, 1}}}
	patterns := map[string]string{}
	for _, form := range []string{"jsonl", "json", "parquet"} {
		dir := t.TempDir()
		for i, list := range parts {
			var b bytes.Buffer
			if form == "parquet" {
				w := parquet.NewGenericWriter[part](&b, parquet.MaxRowsPerRowGroup(2))
				if _, err := w.Write(list); err != nil {
					t.Fatal(err)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
			} else {
				lines := []string{`{"s":"a"}`, `{"s":"b"}`, `{"s":"a"}`}
				if i == 1 {
					lines = []string{`{"s":"A"}`, `{"s":"b"}`, `{"s":null}`}
				}
				if b.WriteString(strings.Join(lines, "\n")); form == "json" {
					b.Reset()
					b.WriteString("[" + strings.Join(lines, ",\n") + "]")
				}
			}
			if err := os.WriteFile(filepath.Join(dir, string('0'+rune(i))), b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		patterns[form] = filepath.Join(dir, "*")
	}
	return patterns
}

func TestReader(t *testing.T) {
	for form, path := range readerFiles(t) {
		for _, tt := range []struct {
			name     string
			r        Reader
			want     []int // indices
			repeated int
		}{
			{"all", Reader{}, []int{0, 1, 2, 3, 4, 5}, 0},
			{"distinct", Reader{Distinct: true}, []int{0, 1, 3, 5}, 2},
			{"wanted", Reader{Wanted: func(i int) bool { return i >= 2 }}, []int{2, 3, 4, 5}, 0},
			{"distinct of the wanted", Reader{Distinct: true, Wanted: func(i int) bool { return i > 0 && i < 5 }}, []int{1, 2, 3}, 1},
		} {
			r := tt.r
			r.Paths = []string{path}
			var got []int
			for row, err := range r.Rows() {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, row.Index)
				if want := []any{"a", "b", "a", "A", "b", nil}[row.Index]; row.Fields["s"] != want {
					t.Errorf("%s, %s: row %d has %v, want %v", form, tt.name, row.Index, row.Fields["s"], want)
				}
			}
			if !slices.Equal(got, tt.want) || r.Total != 6 || r.Repeated != tt.repeated {
				t.Errorf("%s, %s: rows %d of %d, %d repeated; want %d of 6, %d", form, tt.name, got, r.Total, r.Repeated, tt.want, tt.repeated)
			}
		}
		if n, err := Count(path); n != 6 || err != nil {
			t.Errorf("%s: %d rows, %v", form, n, err)
		}
	}
	if _, err := Count(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there has a number of rows")
	}
}

// Values that look alike side by side make different rows.
func TestDistinctValues(t *testing.T) {
	type row struct {
		A string   `parquet:"a"`
		B string   `parquet:"b"`
		L []string `parquet:"l,list"`
	}
	var b bytes.Buffer
	list := []row{{"x", "yz", nil}, {"xy", "z", nil}, {"x", "yz", []string{""}}, {"x", "yz", []string{"", ""}}, {"x", "yz", nil}}
	if err := parquet.Write(&b, list); err != nil {
		t.Fatal(err)
	}
	r := Reader{Paths: []string{write(t, "x", b.Bytes())}, Distinct: true}
	n := 0
	for _, err := range r.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 4 || r.Repeated != 1 {
		t.Errorf("%d distinct rows, %d repeated; want 4 and 1", n, r.Repeated)
	}
}
