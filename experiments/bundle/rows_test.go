package bundle

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// TestRowsOfMixedText: rows that need a JSON parser and rows that do not come back as they were written,
// wherever the buffer of the reader ends. Their lengths differ, so a few thousand of them end it everywhere.
func TestRowsOfMixedText(t *testing.T) {
	texts := []string{"12", `1 th"they h`, "another text", `\frac{1}{2}`, "{a}, [b]", "plain, with a comma", "é\n", ""}
	var want [][]any
	file := []byte(`[{"name":"id","type":"INTEGER"},{"name":"answer","type":"TEXT"},{"name":"why","type":"TEXT"}]` + "\n")
	for i := range 5000 {
		row := []any{int64(i), texts[i%len(texts)] + strings.Repeat("x", i%97), texts[i/3%len(texts)]}
		want = append(want, row)
		var err error
		if file, err = appendRow(file, row); err != nil {
			t.Fatal(err)
		}
	}
	rd, err := newRowReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range want {
		got, err := rd.next()
		if err != nil {
			t.Fatalf("row %d: %v", i, err)
		}
		if !slices.Equal(got, row) {
			t.Fatalf("row %d: %s, want %s", i, fmt.Sprint(got...), fmt.Sprint(row...))
		}
	}
	if _, err := rd.next(); err != io.EOF {
		t.Errorf("after the last row: %v", err)
	}
}
