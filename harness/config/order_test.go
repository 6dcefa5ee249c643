package config

import (
	"slices"
	"testing"
)

func TestInOrder(t *testing.T) {
	got := InOrder(map[string]any{"zebra": 1, "train.steps": 4}, map[string]any{"ant": 1, "zebra": 2})
	n := len(Keys())
	if len(got) != n+2 || got[0] != Keys()[0].Path || !slices.Equal(got[n:], []string{"ant", "zebra"}) {
		t.Errorf("got %d paths, the first %s, the last %v; want all %d keys, then ant and zebra", len(got), got[0],
			got[n:], n)
	}
}
