package stat

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestSelfBLEU(t *testing.T) {
	tests := []struct {
		name string
		in   [][]int32
		want float64
	}{
		{"the same", [][]int32{{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}}, 1},
		{"nothing in common", [][]int32{{1, 2, 3}, {4, 5, 6}}, 0},
		{"one empty", [][]int32{{1, 2}, {}}, 0},
		// 1 2 3 4 of 1 2 3 5: p = 3/4, (2+1)/(3+1), (1+1)/(2+1), (0+1)/(1+1), both ways.
		{"one token differs", [][]int32{{1, 2, 3, 4}, {1, 2, 3, 5}}, math.Pow(3.0/4*3/4*2/3*1/2, 0.25)},
		// 1 1 1 of 1: p1 = 1/3 (clipped), then (0+1)/(2+1), (0+1)/(1+1), 1. And 1 of 1 1 1:
		// all precisions 1, brevity e^(1-3).
		{"clipping and brevity", [][]int32{{1, 1, 1}, {1}}, (math.Pow(1.0/3*1/3*1/2, 0.25) + math.Exp(-2)) / 2},
	}
	for _, tt := range tests {
		if got, ok := SelfBLEU(tt.in); !ok || !near(got, tt.want, 1e-12) {
			t.Errorf("%s: %v, %v, want %v", tt.name, got, ok, tt.want)
		}
	}
	if _, ok := SelfBLEU([][]int32{{1}}); ok {
		t.Error("one completion has others to compare with")
	}
}

// The clip of a count is the largest of all other completions, not of the first.
func TestSelfBLEUOfThree(t *testing.T) {
	in := [][]int32{{1, 1}, {1}, {1, 1, 2}}
	// 1 1: both within 1 1 2, one bigram of one (2/2), then 1, 1; lengths 1 and 3 are as
	// close, the shorter counts: no penalty. 1: in 1 1, brevity 1 - 2/1.
	// 1 1 2: p1 = 2/3, p2 = (1+1)/(2+1), p3 = (0+1)/(1+1), p4 = 1.
	want := (1 + math.Exp(-1) + math.Pow(2.0/3*2/3*1/2, 0.25)) / 3
	if got, _ := SelfBLEU(in); !near(got, want, 1e-12) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestShinglesAndSimilarity(t *testing.T) {
	a, b := Shingles(strings.Fields("a b c d"), 2), Shingles(strings.Fields("b c d e"), 2)
	if got := Similarity(a, b); got != 0.5 { // bc cd of ab bc cd de
		t.Errorf("similarity %v, want 0.5", got)
	}
	for _, tt := range []struct {
		a, b string
		want float64
	}{{"", "", 1}, {"", "a", 0}, {"a", "a", 1}, {"a b a b a b", "a b a", 1}} {
		if got := Similarity(Shingles(strings.Fields(tt.a), 2), Shingles(strings.Fields(tt.b), 2)); got != tt.want {
			t.Errorf("%q and %q: %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
	if slices.Equal(Shingles([]string{"ab", "c"}, 2), Shingles([]string{"a", "bc"}, 2)) {
		t.Error("words run together")
	}
}
