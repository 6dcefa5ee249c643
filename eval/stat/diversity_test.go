package stat

import (
	"math"
	"testing"
)

func TestAnswers(t *testing.T) {
	ln2 := math.Ln2
	tests := []struct {
		name     string
		answers  []string
		distinct int
		entropy  float64
		norm     float64 // by ln of the number of samples
	}{
		{"none", nil, 0, 0, 0},
		{"no answer at all", []string{"", ""}, 0, 0, 0},
		{"one", []string{"a"}, 1, 0, 0},
		{"all the same", []string{"a", "a", "a"}, 1, 0, 0},
		{"two halves", []string{"a", "b", "a", "b"}, 2, ln2, 0.5},   // ln 2 / ln 4
		{"all differ", []string{"a", "b", "c", "d"}, 4, 2 * ln2, 1}, // ln 4 / ln 4
		{"no answer takes no part", []string{"a", "", "b", ""}, 2, ln2, 0.5},
		// ¾ ln(4/3) + ¼ ln 4
		{"uneven", []string{"a", "a", "b", "a"}, 2, 0.75*math.Log(4.0/3) + 0.5*ln2, (0.75*math.Log(4.0/3) + 0.5*ln2) / (2 * ln2)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Distinct(tt.answers); got != tt.distinct {
				t.Errorf("Distinct = %d, want %d", got, tt.distinct)
			}
			if got := Entropy(tt.answers); !near(got, tt.entropy, 1e-15) || math.Signbit(got) {
				t.Errorf("Entropy = %v, want %v", got, tt.entropy)
			}
			if got := NormalizedEntropy(tt.entropy, len(tt.answers)); !near(got, tt.norm, 1e-15) {
				t.Errorf("NormalizedEntropy = %v, want %v", got, tt.norm)
			}
		})
	}
}

func TestDistinctN(t *testing.T) {
	completions := [][]int32{{1, 2, 1, 2}, {1, 2, 3}, {}}
	tests := []struct {
		n    int
		want float64
	}{
		{1, 3.0 / 7}, // 1 2 3 of seven
		{2, 3.0 / 5}, // 12 21 12 12 23: three of five
		{3, 1},       // 121 212 123
		{4, 1},       // 1212
		{5, 0},       // none
	}
	for _, tt := range tests {
		if got := DistinctN(completions, tt.n); !near(got, tt.want, 1e-15) {
			t.Errorf("DistinctN(%d) = %v, want %v", tt.n, got, tt.want)
		}
	}
}

func TestEffectSize(t *testing.T) {
	tests := []struct {
		d    []float64
		want float64
		ok   bool
	}{
		{[]float64{1, 2, 3}, 2, true}, // mean 2, sd 1
		{[]float64{-1, 1}, 0, true},
		{[]float64{0, 0, 0}, 0, true},
		{[]float64{2, 2}, math.Inf(1), true},
		{[]float64{2}, 0, false},
	}
	for _, tt := range tests {
		if got, ok := EffectSize(tt.d); ok != tt.ok || !near(got, tt.want, 1e-15) {
			t.Errorf("EffectSize(%v) = %v, %v, want %v, %v", tt.d, got, ok, tt.want, tt.ok)
		}
	}
}
