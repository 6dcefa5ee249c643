package config

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// The texts that exp config explain prints below a key's row fit a terminal of 100 columns.
func TestWidthOfTexts(t *testing.T) {
	n := 0
	for _, path := range paths() {
		for _, text := range []string{aboutTask(path), aboutReward(path), aboutPrime(path), aboutModel(path),
			aboutPrefer(path), aboutRewardModel(path), aboutRollout(path), aboutTools(path), aboutScorer(path)} {
			for line := range strings.Lines(text) {
				n++
				if w := utf8.RuneCountInString(strings.TrimRight(line, "\n")); w > 100 {
					t.Errorf("%s: %d columns: %s", path, w, line)
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d lines were found", n)
	}
}
