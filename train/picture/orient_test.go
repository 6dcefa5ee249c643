package picture

import (
	"slices"
	"testing"
)

func TestTurnByHand(t *testing.T) {
	// The letters of the file's pixels in rows: "abc", "def".
	m := bitmap{3, 2, nil}
	for _, c := range []byte("abcdef") {
		m.pix = append(m.pix, c, c, c)
	}
	for turned, want := range map[turn][]string{
		0: {"abc", "def"}, 1: {"abc", "def"}, 2: {"cba", "fed"}, 3: {"fed", "cba"}, 4: {"def", "abc"},
		5: {"ad", "be", "cf"}, 6: {"da", "eb", "fc"}, 7: {"fc", "eb", "da"}, 8: {"cf", "be", "ad"}, 9: {"abc", "def"},
	} {
		out := turned.apply(m)
		var got []string
		for y := range out.height {
			row := ""
			for x := range out.width {
				row += string(rune(out.row(y)[3*x]))
			}
			got = append(got, row)
		}
		if !slices.Equal(got, want) {
			t.Errorf("turn %d: got %q, want %q", turned, got, want)
		}
		if turned.swaps() != (len(want) == 3) {
			t.Errorf("turn %d: swaps is %v", turned, turned.swaps())
		}
	}
}

// typed changes the type and the count of the first entry of little-endian TIFF data.
func typed(data string, kind, count byte) string {
	return data[:12] + string([]byte{kind, 0, count}) + data[15:]
}

func TestFromEXIF(t *testing.T) {
	little := "II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00"
	big := "MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x03\x00\x00"
	for _, tt := range []struct {
		data string
		want turn
		ok   bool
	}{
		{little, 6, true}, {big, 3, true}, {"Exif\x00\x00" + big, 3, true},
		// As Pillow 13 reads them: LONG, SLONG, SSHORT and SBYTE are turned, too, BYTE and two SHORTs are not.
		{typed(little, 4, 1), 6, true}, {typed(little, 9, 1), 6, true}, {typed(little, 8, 1), 6, true},
		{typed(little, 6, 1), 6, true}, {typed(little, 1, 1), 0, false}, {typed(little, 3, 2), 0, false},
		{"MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x04\x00\x00\x00\x01\x00\x00\x00\x08", 8, true},
		{little[:20], 0, false}, {"", 0, false}, {"II*\x00\xff\xff\xff\xff", 0, false},
	} {
		if got, ok := fromEXIF([]byte(tt.data)); got != tt.want || ok != tt.ok {
			t.Errorf("%q: got %d, %v, want %d, %v", tt.data, got, ok, tt.want, tt.ok)
		}
	}
}
