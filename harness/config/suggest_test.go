package config

import "testing"

func TestEditDistance(t *testing.T) {
	cases := []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"abc", "", 3}, {"beta", "bta", 1}, {"task", "tsak", 1}, {"steps", "stpes", 1},
		{"ca", "abc", 3}, // the restricted distance does not edit a swapped pair again
		{"kitten", "sitting", 3}, {"älgo", "algo", 1},
	}
	for _, c := range cases {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := editDistance(c.b, c.a); got != c.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", c.b, c.a, got, c.want)
		}
	}
}

func TestClosest(t *testing.T) {
	words := []string{"beta", "data", "temperature", "max_new_tokens"}
	for s, want := range map[string]string{
		"bta": "beta", "Beta": "beta", "datta": "data", "temprature": "temperature", "tmperatur": "temperature",
		"max_tokens":    "", // 4 edits in 10 letters
		"max_token_new": "", "b": "", "": "", "zz": "",
	} {
		if got := closest(s, words); got != want {
			t.Errorf("closest(%q) = %q, want %q", s, got, want)
		}
	}
}
