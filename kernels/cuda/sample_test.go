//go:build cuda

package cuda

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// Long rows have kernels of their own, and the suite has few. Tokens come in pairs of equal logits.
func TestLongRows(t *testing.T) {
	for _, p := range []kernels.Sampling{
		{Temperature: 0.7, TopP: 1}, {Temperature: 0, TopP: 1}, {Temperature: 1, TopP: 0.9}, {Temperature: 1, TopP: 1, TopK: 7},
		{Temperature: 3, TopP: 0.95, TopK: 1500, MinP: 1e-3}, {Temperature: 1, TopP: 1, TopK: 5000},
	} {
		for _, V := range []int{longRow, 3077} {
			t.Run(fmt.Sprintf("V=%d/%+v", V, p), func(t *testing.T) {
				want, got := drawn(t, ref.New[float32](), V, p), drawn(t, open(t), V, p)
				if !slices.Equal(want, got) {
					t.Errorf("%v, want %v", got, want)
				}
			})
		}
	}
}

// Where top_p's limit is a running sum of weights that differ too much for exact sums, the kernel adds them in
// order. The first and the last token weigh 1 each, so u = 1/2 draws from the middle of what is kept of the
// others.
func TestLimitAtARunningSum(t *testing.T) {
	const V = 4099
	z, e := make([]float32, V), make([]float32, V)
	for v := 1; v < V-1; v++ {
		z[v] = -21.3 - float32(v*1009%V)/V
	}
	for v := range e {
		e[v] = ref.Exp(z[v])
	}
	sorted, sum, mass := slices.Clone(e), float64(ref.LaneSum(e)), 0.0
	slices.SortFunc(sorted, func(a, b float32) int { return cmp.Compare(b, a) })
	for i, x := range sorted {
		mass += float64(x)
		if i < 100 || i%211 > 0 || mass >= sum {
			continue
		}
		p, u := kernels.Sampling{Temperature: 1, TopP: mass / sum}, []float32{0.1, 0.5, 0.7}
		want, got := sampled(t, ref.New[float32](), z, u, p), sampled(t, open(t), z, u, p)
		if !slices.Equal(want, got) {
			t.Errorf("%d tokens: %v, want %v", i+1, got, want)
		}
	}
}

// sampled returns tokens of rows of the same logits.
func sampled(t *testing.T, b kernels.Backend, z, u []float32, p kernels.Sampling) []int32 {
	R, tokens := len(u), make([]int32, len(u))
	h := make([]float32, R)
	for r := range h {
		h[r] = 1
	}
	ids, room := upload(t, b, kernels.I32, tokens), upload(t, b, kernels.F32, make([]float32, 3*R))
	s := kernels.Scores{LogProb: room.Slice(0, R), Entropy: room.Slice(R, 2*R), LSE: room.Slice(2*R, 3*R)}
	w := kernels.Matrix{W: upload(t, b, kernels.F32, z), Out: len(z), In: 1}
	b.Sample(ids, s, upload(t, b, kernels.F32, h), w, upload(t, b, kernels.F32, u), p)
	b.Copy(kernels.Host(tokens), ids)
	b.Sync()
	return tokens
}

// drawn returns the tokens and the bits of the scores of some rows.
func drawn(t *testing.T, b kernels.Backend, V int, p kernels.Sampling) (all []uint32) {
	const R, C = 6, 3
	w := waves(V*C, 0.37)
	for v := 1; v < V; v += 2 {
		copy(w[v*C:(v+1)*C], w[(v-1)*C:v*C])
	}
	h := waves(R*C, 1.1)
	for i := range h {
		h[i] *= 4
	}
	h[1] = float32(math.NaN())
	ids := upload(t, b, kernels.I32, make([]int32, R))
	s := kernels.Scores{LogProb: upload(t, b, kernels.F32, h[:R]), Entropy: upload(t, b, kernels.F32, h[:R]), LSE: upload(t, b, kernels.F32, h[:R])}
	m := kernels.Matrix{W: upload(t, b, kernels.F32, w), Out: V, In: C}
	u := upload(t, b, kernels.F32, []float32{0.5, 0.5, 0, 0.97, 0.3, 0.999})
	b.Sample(ids, s, upload(t, b, kernels.F32, h), m, u, p)
	tokens := make([]int32, R)
	b.Copy(kernels.Host(tokens), ids)
	b.Sync()
	for _, id := range tokens {
		all = append(all, uint32(id))
	}
	for _, x := range []kernels.Buffer{s.LogProb, s.Entropy, s.LSE} {
		bits := make([]float32, R)
		b.Copy(kernels.Host(bits), x)
		b.Sync()
		for _, v := range bits[1:] { // a NaN may have any payload
			all = append(all, math.Float32bits(v))
		}
	}
	return all
}
