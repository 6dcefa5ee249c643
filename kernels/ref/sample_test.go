package ref

import (
	"math"
	"slices"
	"testing"

	"exp/kernels"
)

// all keeps every token.
var all = kernels.Sampling{Temperature: 1, TopP: 1}

func TestDrawKnown(t *testing.T) {
	// Weights 1 2 0 1: total 4; u = 0 → 0, ¼ → x = 1 is not exceeded by 1: 1;
	// ¾ → x = 3, sums 1 3 3 4: 3.
	e := []float64{1, 2, 0, 1}
	tests := []struct {
		u    float64
		want int
	}{{0, 0}, {0.2499, 0}, {0.25, 1}, {0.7499, 1}, {0.75, 3}, {0.9999, 3}}
	for _, tt := range tests {
		if got := Draw(e, tt.u); got != tt.want {
			t.Errorf("u = %v draws %d, want %d", tt.u, got, tt.want)
		}
	}
	if got := Draw([]float64{0, 0, 5, 0}, 0); got != 2 {
		t.Errorf("u = 0 draws %d, want 2: weight 0 is never drawn", got)
	}

	// Blocks: id 300 is in the second block of 256.
	long := make([]float32, 600)
	long[3], long[300], long[599] = 1, 1, 2
	for _, tt := range []struct {
		u    float32
		want int
	}{{0, 3}, {0.25, 300}, {0.5, 599}, {0.999, 599}} {
		if got := Draw(long, tt.u); got != tt.want {
			t.Errorf("u = %v draws %d, want %d", tt.u, got, tt.want)
		}
	}
	for _, bad := range [][]float64{{0, 0}, {math.NaN(), 1}, {1, math.Inf(1)}} {
		if got := Draw(bad, 0.5); got != 0 {
			t.Errorf("Draw(%v) = %d, want 0", bad, got)
		}
	}
}

func TestDrawRoundingFallback(t *testing.T) {
	// In lanes: (2⁵³+0), (1+1) in lane 1 of ids 1 and 17: 2⁵³+2. In order:
	// 2⁵³+1 = 2⁵³ (tie to even), again 2⁵³. The second block doubles the total,
	// u = ½ puts x at 2⁵³, which only the block's end exceeds: the last id with
	// e > 0 is drawn.
	e := make([]float64, 512)
	e[0], e[1], e[17] = 1<<53, 1, 1
	e[256] = 1<<53 - 2
	if got := Draw(e, 0.5); got != 17 {
		t.Errorf("drew %d, want 17", got)
	}
}

// kept returns the ids that p keeps of tokens with the given logits.
func kept(z []float64, p kernels.Sampling) []int {
	m := maxOf(z)
	e := make([]float64, len(z))
	for v := range z {
		e[v] = Exp(z[v] - m)
	}
	Pick(z, e, LaneSum(e), 0, p, make([]int32, len(z)))
	var ids []int
	for v := range e {
		if e[v] > 0 {
			ids = append(ids, v)
		}
	}
	return ids
}

func TestPickFilters(t *testing.T) {
	// e = 1 ½ ½ ¼ at ids 2, 0, 4, 1, and tiny at 3: s = 2.25.
	l := math.Ln2
	z := []float64{-l, -2 * l, 0, -50, -l}
	tests := []struct {
		name string
		p    kernels.Sampling
		want []int
	}{
		{"all", kernels.Sampling{TopP: 1}, []int{0, 1, 2, 3, 4}},
		{"top 1", kernels.Sampling{TopP: 1, TopK: 1}, []int{2}},
		{"top 2: the tie goes to the lower id", kernels.Sampling{TopP: 1, TopK: 2}, []int{0, 2}},
		{"top 3", kernels.Sampling{TopP: 1, TopK: 3}, []int{0, 2, 4}},
		{"top 99", kernels.Sampling{TopP: 1, TopK: 99}, []int{0, 1, 2, 3, 4}},
		// 1/2.25 = 0.444, 1.5/2.25 = 0.667, 2/2.25 = 0.889.
		{"mass 0.1", kernels.Sampling{TopP: 0.1}, []int{2}},
		{"mass 0.5", kernels.Sampling{TopP: 0.5}, []int{0, 2}},
		{"mass 0.8", kernels.Sampling{TopP: 0.8}, []int{0, 2, 4}},
		{"mass 0.95", kernels.Sampling{TopP: 0.95}, []int{0, 1, 2, 4}},
		{"min 0.4", kernels.Sampling{TopP: 1, MinP: 0.4}, []int{0, 2, 4}},
		{"min 1", kernels.Sampling{TopP: 1, MinP: 1}, []int{2}},
		{"top 3 of mass 0.5", kernels.Sampling{TopP: 0.5, TopK: 3}, []int{0, 2}},
		{"top 2, min 0.6", kernels.Sampling{TopP: 1, TopK: 2, MinP: 0.6}, []int{2}},
		// Each filter sees the whole distribution: 0.8·2.25 = 1.8 is not reached by
		// the top 2 (1.5), and their mass is not renormalised.
		{"top 2 of mass 0.8", kernels.Sampling{TopP: 0.8, TopK: 2}, []int{0, 2}},
	}
	for _, tt := range tests {
		tt.p.Temperature = 1
		if got := kept(z, tt.p); !slices.Equal(got, tt.want) {
			t.Errorf("%s keeps %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestPickMatchesSorting(t *testing.T) {
	const seed = 12
	r := source(seed)
	for n := range 300 {
		z := normal(r, 1+r.IntN(70))
		for i := range z {
			z[i] = math.Round(3*z[i]) / 2 // many ties
		}
		p := kernels.Sampling{Temperature: 1, TopP: 1, TopK: r.IntN(len(z) + 2)}
		if n%2 == 0 {
			p.TopP = 1 - r.Float64()
		}
		order := make([]int, len(z))
		for v := range order {
			order[v] = v
		}
		slices.SortStableFunc(order, func(a, b int) int {
			switch {
			case z[a] > z[b]:
				return -1
			case z[a] < z[b]:
				return 1
			}
			return 0
		})
		e := make([]float64, len(z))
		for v := range z {
			e[v] = Exp(z[v] - maxOf(z))
		}
		s := LaneSum(e)
		want := 0
		for mass := 0.0; want < len(order); {
			mass += e[order[want]]
			want++
			if want == p.TopK || p.TopP < 1 && mass >= p.TopP*s {
				break
			}
		}
		ids := order[:want]
		slices.Sort(ids)
		if got := kept(z, p); !slices.Equal(got, ids) {
			t.Fatalf("seed %d, case %d: %+v keeps %v, want %v", seed, n, p, got, ids)
		}
	}
}

func TestSampleScores(t *testing.T) {
	// h = [1], w = [0 ln2 ln2 0] at temperature 1: softmax = [1 2 2 1]/6.
	l := math.Ln2
	w := []float64{0, l, l, 0}
	ids := make([]int32, 3)
	lp, ent, lse := zeros(3), zeros(3), zeros(3)
	Sample(ids, lp, ent, lse, []float64{1, 1, 1}, w, []float64{0, 0.5, 0.9}, 1, all)
	// u·6 = 0, 3, 5.4 against the sums 1 3 5 6: ids 0, 2, 3.
	if want := []int32{0, 2, 3}; !slices.Equal(ids, want) {
		t.Errorf("ids = %v, want %v", ids, want)
	}
	ln6 := math.Log(6)
	wantNear(t, "logProb", lp, []float64{-ln6, l - ln6, -ln6}, 1e-14)
	wantNear(t, "lse", lse, []float64{ln6, ln6, ln6}, 1e-14)
	// ln 6 - ⅔·ln 2
	wantNear(t, "entropy", ent, []float64{ln6 - 2*l/3, ln6 - 2*l/3, ln6 - 2*l/3}, 1e-14)

	// The filter moves the draw, not the score: of ids 1 and 2, u = 0.9 takes 2.
	Sample(ids[:1], lp[:1], ent[:1], lse[:1], []float64{1}, w, []float64{0.9}, 1, kernels.Sampling{Temperature: 1, TopP: 1, TopK: 2})
	wantNear(t, "filtered", []float64{float64(ids[0]), lp[0]}, []float64{2, l - ln6}, 1e-14)

	// Temperature 0: the first of the tied best, scores at temperature 1.
	Sample(ids[:1], lp[:1], ent[:1], lse[:1], []float64{1}, w, []float64{0.9}, 1, kernels.Sampling{TopP: 1})
	wantNear(t, "greedy", []float64{float64(ids[0]), lp[0]}, []float64{1, l - ln6}, 1e-14)

	// A NaN draws token 0 with NaN scores.
	Sample(ids[:1], lp[:1], ent[:1], lse[:1], []float64{math.NaN()}, w, []float64{0.9}, 1, all)
	if ids[0] != 0 || lp[0] == lp[0] {
		t.Errorf("NaN row: id %d, logProb %v, want 0 and NaN", ids[0], lp[0])
	}
}

func TestSamplePanics(t *testing.T) {
	x := zeros(4)
	ids := make([]int32, 1)
	for _, p := range []kernels.Sampling{
		{Temperature: -1, TopP: 1}, {Temperature: 1, TopP: 0}, {Temperature: 1, TopP: 1.1},
		{Temperature: 1, TopP: 1, TopK: -1}, {Temperature: 1, TopP: 1, MinP: 1.5}, {Temperature: math.NaN(), TopP: 1},
	} {
		wantPanic(t, "ref: Sample: a setting is out of range", func() {
			Sample(ids, x[:1], x[:1], x[:1], x[:1], x, x[:1], 1, p)
		})
	}
	wantPanic(t, "ref: Sample: length mismatch", func() {
		Sample(ids, x[:1], x[:1], x[:1], x[:1], x, x[:2], 1, all)
	})
}

// The choice and the scores come from the capped logits.
func TestSampleCap(t *testing.T) {
	// Cap 2 turns the logits [0 ln3 30] into [0 1 2], and in float32 60 and 80 into
	// the same 2.
	const ln3 = 1.0986123
	draw := func(w []float32, u float32, p kernels.Sampling) (int32, float32) {
		id, sc := make([]int32, 1), make([]float32, 3)
		Sample(id, sc[:1], sc[1:2], sc[2:], []float32{1}, w, []float32{u}, 1, p)
		lp := make([]float32, 3)
		t := p.Temperature
		if t == 0 {
			t = 1
		}
		LogProb(lp[:1], lp[1:2], lp[2:], []float32{1}, w, id, 1, kernels.Softmax{Temperature: t, Cap: p.Cap})
		if sc[0] != lp[0] || sc[1] != lp[1] || sc[2] != lp[2] {
			return -1, 0
		}
		return id[0], sc[0]
	}
	// e = [1/e² 1/e 1] of 1.503: the sums are 0.0900 0.3347 1.
	for _, tt := range []struct {
		u    float32
		want int32
	}{{0.08, 0}, {0.1, 1}, {0.33, 1}, {0.34, 2}} {
		if got, _ := draw([]float32{0, ln3, 30}, tt.u, kernels.Sampling{Temperature: 1, TopP: 1, Cap: 2}); got != tt.want {
			t.Errorf("u = %v draws %d, want %d", tt.u, got, tt.want)
		}
	}
	if got, _ := draw([]float32{0, 60, 80}, 0, kernels.Sampling{TopP: 1, Cap: 2}); got != 1 {
		t.Errorf("of two logits at the cap %d is taken, want the first", got)
	}
	if got, lp := draw([]float32{0, ln3, 30}, 0.5, kernels.Sampling{Temperature: 1, TopP: 1, TopK: 1, Cap: 2}); got != 2 || math.Abs(float64(lp)+0.40760596) > 1e-6 {
		t.Errorf("top 1 draws %d with log-prob %v, want 2 with -log(1+e⁻¹+e⁻²)", got, lp)
	}
}
