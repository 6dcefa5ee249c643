package stat

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// Sets of 300 with a known overlap: the estimate is within four standard errors.
func TestMinHash(t *testing.T) {
	set := func(from, n int) []uint64 {
		var s []uint64
		for i := range n {
			s = append(s, uint64(from+i))
		}
		return s
	}
	for _, shift := range []int{0, 30, 100, 200, 300} {
		a, b := set(0, 300), set(shift, 300)
		want := Similarity(a, b)
		x, y := MinHash(a), MinHash(b)
		if got := x.Similarity(&y); !near(got, want, 4*math.Sqrt(want*(1-want)/SignatureSize)) {
			t.Errorf("shifted by %d: %v, want about %v", shift, got, want)
		}
	}
	if MinHash(set(0, 10)) != MinHash(slices.Clone(set(0, 10))) {
		t.Error("equal sets have different signatures")
	}
}

func TestSingleLink(t *testing.T) {
	at := []float64{0, 10, 1, 2, 11} // on a line; linked at distance 1
	got, n := SingleLink(len(at), func(i, j int) float64 { return -math.Abs(at[i] - at[j]) }, -1)
	if want := []int{0, 1, 0, 0, 1}; n != 2 || !slices.Equal(got, want) {
		t.Errorf("got %v, %d groups, want %v", got, n, want)
	}
	if _, n := SingleLink(0, nil, 0); n != 0 {
		t.Errorf("nothing has %d groups", n)
	}
}

// Three texts of twelve words, each repeated with another last word: J = 9/11 between
// repetitions at shingles of three, 0 between texts. Beyond exactSets the same.
func TestSimilarGroups(t *testing.T) {
	for _, copies := range []int{2, 30} {
		var sets [][]uint64
		var want []int
		for text := range 3 {
			for c := range copies {
				var words []string
				for w := range 11 {
					words = append(words, fmt.Sprint(text, "-", w))
				}
				sets = append(sets, Shingles(append(words, fmt.Sprint("end", c)), 3))
				want = append(want, text)
			}
		}
		if got, n := SimilarGroups(sets, 0.5); n != 3 || !slices.Equal(got, want) {
			t.Errorf("%d sets: %d groups %v, want %v", len(sets), n, got, want)
		}
	}
}

func TestEffectiveNumber(t *testing.T) {
	tests := []struct {
		group []int
		want  float64
	}{
		{nil, 0},
		{[]int{0, 0, 0}, 1},
		{[]int{0, 1, 2, 3}, 4},
		{[]int{0, 1, 0, 1}, 2},
		{[]int{0, 0, 0, 1}, math.Exp(0.75*math.Log(4.0/3) + 0.25*math.Log(4))}, // 1.755
	}
	for _, tt := range tests {
		if got := EffectiveNumber(tt.group); !near(got, tt.want, 1e-14) {
			t.Errorf("EffectiveNumber(%v) = %v, want %v", tt.group, got, tt.want)
		}
	}
}
