package main

import "testing"

func TestEdits(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"run", "run", 0},
		{"rnu", "run", 1}, // one swap
		{"verison", "version", 1},
		{"shw", "show", 1}, {"shows", "show", 1}, {"shaw", "show", 1},
		{"kitten", "sitting", 3}, // s/k, i/e, +g
		{"ca", "abc", 3},         // a place is edited once: not 2
	}
	for _, tt := range tests {
		if got := edits(tt.a, tt.b); got != tt.want {
			t.Errorf("edits(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := edits(tt.b, tt.a); got != tt.want {
			t.Errorf("edits(%q, %q) = %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"run", "resume", "show", "compare", "completion", "o"}
	tests := []struct{ word, want string }{
		{"rnu", "run"}, {"rum", "run"}, {"comapre", "compare"}, {"xyzzy", ""},
		{"completoin", "completion"}, {"cmpltn", ""}, // 4 edits of 10
		{"complton", "completion"}, // 2 edits
		{"a", ""},                  // not everything is near a short name
	}
	for _, tt := range tests {
		if got := nearest(tt.word, names); got != tt.want {
			t.Errorf("nearest(%q) = %q, want %q", tt.word, got, tt.want)
		}
	}
}
