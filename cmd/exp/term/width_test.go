package term

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestWidth(t *testing.T) {
	tests := []struct {
		s    string
		want int
	}{
		{"", 0}, {"abc", 3}, {"é", 1}, {"e\u0301", 1}, // composed and not
		{"模型", 4}, {"😀", 2}, {"👩‍👩‍👧", 2}, {"±", 1}, {"█░", 2},
	}
	for _, tt := range tests {
		if got := Width(tt.s); got != tt.want {
			t.Errorf("Width(%q) = %d, want %d", tt.s, got, tt.want)
		}
	}
}

func TestCut(t *testing.T) {
	tests := []struct {
		s     string
		width int
		mark  string
		want  string
	}{
		{"countdown", 9, "…", "countdown"},
		{"countdown", 6, "…", "count…"},
		{"countdown", 1, "…", "…"},
		{"countdown", 0, "…", ""},
		{"模型模型", 5, "…", "模型…"}, // 2+2+1
		{"模型模型", 4, "…", "模…"},  // 2+1, the next would need 5
		{"e\u0301e\u0301x", 2, "", "e\u0301e\u0301"},
	}
	for _, tt := range tests {
		if got := Cut(tt.s, tt.width, tt.mark); got != tt.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", tt.s, tt.width, got, tt.want)
		}
	}
}

func TestWrap(t *testing.T) {
	tests := []struct {
		s     string
		width int
		want  []string
	}{
		{"", 5, []string{""}},
		{"one two three", 7, []string{"one two", "three"}},
		{"one two three", 3, []string{"one", "two", "thr", "ee"}},
		{"a\n\nb", 5, []string{"a", "", "b"}},
		{"模型模型", 3, []string{"模", "型", "模", "型"}},
		{"模型", 1, []string{"模", "型"}}, // wider than the line: one a line
	}
	for _, tt := range tests {
		if got := Wrap(tt.s, tt.width); !slices.Equal(got, tt.want) {
			t.Errorf("Wrap(%q, %d) = %q, want %q", tt.s, tt.width, got, tt.want)
		}
	}
}

// TestWrapKeepsText checks that no line is too wide and that nothing but space
// is lost.
func TestWrapKeepsText(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	pieces := []string{"a", "bb", "long-word-without-end", " ", "  ", "模型", "é", "\n"}
	for range 500 {
		var in strings.Builder
		for range rng.IntN(20) {
			in.WriteString(pieces[rng.IntN(len(pieces))])
		}
		width := 2 + rng.IntN(12)
		lines := Wrap(in.String(), width)
		for _, l := range lines {
			if Width(l) > width {
				t.Fatalf("seed %d: Wrap(%q, %d) has the line %q of width %d", seed, in.String(), width, l, Width(l))
			}
		}
		if got, want := squeeze(strings.Join(lines, "")), squeeze(in.String()); got != want {
			t.Fatalf("seed %d: Wrap(%q, %d) keeps %q", seed, in.String(), width, got)
		}
	}
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

func TestClean(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain", "plain"},
		{"\x1b[31mred\x1b]0;title\a", " [31mred ]0;title "},
		{"a\nb\tc\r", "a b c "},
		{"\u202eevil", "evil"},
		{"\xff!", "\ufffd!"},
		{"c1 \u009b31m", "c1  31m"}, // the one-byte CSI of 8-bit terminals
	}
	for _, tt := range tests {
		if got := Clean(tt.in); got != tt.want {
			t.Errorf("Clean(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
	if got := CleanLines("a\nb\t"); got != "a\nb " {
		t.Errorf("CleanLines = %q", got)
	}
}

// The lines after the first begin below the text, or below the margin.
func TestHang(t *testing.T) {
	for line, want := range map[string]string{
		"  short  line":         "  short  line",
		"  word  one two three": "  word  one two\n        three",
		"  no column but words": "  no column but\n  words",
		"  much-wider a  b c d": "  much-wider a b\n  c d",
	} {
		if got := strings.Join(Hang(line, 16), "\n"); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", line, got, want)
		}
	}
}
