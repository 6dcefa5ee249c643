package spelling

import (
	"strings"
	"testing"
)

func TestEdits(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"abc", "", 3}, {"run", "run", 0}, {"beta", "bta", 1}, {"shows", "show", 1}, {"shaw", "show", 1},
		{"rnu", "run", 1}, {"task", "tsak", 1}, {"steps", "stpes", 1}, // one swap
		{"ca", "abc", 3}, // the restricted distance does not edit a swapped pair again
		{"kitten", "sitting", 3}, {"älgo", "algo", 1},
	} {
		if got := edits(tt.a, tt.b); got != tt.want {
			t.Errorf("edits(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := edits(tt.b, tt.a); got != tt.want {
			t.Errorf("edits(%q, %q) = %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}

func TestNearest(t *testing.T) {
	commands := []string{"run", "resume", "show", "compare", "completion", "o"}
	keys := []string{"beta", "data", "temperature", "max_new_tokens"}
	for _, tt := range []struct {
		word  string
		among []string
		want  string
	}{
		{"rnu", commands, "run"}, {"rum", commands, "run"}, {"comapre", commands, "compare"}, {"xyzzy", commands, ""},
		{"completoin", commands, "completion"}, {"cmpltn", commands, ""}, // 4 edits of 10
		{"complton", commands, "completion"},                          // 2 edits
		{"a", commands, ""}, {"go", commands, ""}, {"", commands, ""}, // not everything is near a short name
		{"bta", keys, "beta"}, {"Beta", keys, "beta"}, {"datta", keys, "data"}, {"temprature", keys, "temperature"}, {"tmperatur", keys, "temperature"},
		{"max_tokens", keys, ""}, // 4 edits in 10 letters
		{"max_token_new", keys, ""}, {"zz", keys, ""},
		{"bata", []string{"beta", "data"}, "beta"}, // the first of equals
		{strings.Repeat("a", longest+1), []string{strings.Repeat("a", longest)}, ""},
	} {
		if got := Nearest(tt.word, tt.among); got != tt.want {
			t.Errorf("Nearest(%q) = %q, want %q", tt.word, got, tt.want)
		}
	}
}
