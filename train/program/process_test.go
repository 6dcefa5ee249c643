package program

import (
	"fmt"
	"slices"
	"testing"
)

func TestLogOfAFlood(t *testing.T) {
	g := &lineLog{}
	for i := range 150 {
		fmt.Fprintf(g, "line %d\nand ", i)
	}
	got := g.take()
	if len(got) != 101 || got[0] != "line 0" || got[1] != "and line 1" || got[100] != "(50 more lines)" {
		t.Errorf("got %d lines, the last %q", len(got), got[len(got)-1])
	}
	if !slices.Equal(g.take(), nil) {
		t.Error("taken twice")
	}
}
