package ref

import (
	"testing"

	"exp/kernels"
)

// Two heads, two channels without positions and four with, values of three. In the rows of attention the even rotated
// channels come first.
func TestJoinLatentKnown(t *testing.T) {
	s := kernels.LatentShape{H: 2, Nope: 2, Rope: 4, Value: 3, Interleaved: true}
	q := []float64{1, 2, 10, 11, 12, 13, 3, 4, 20, 21, 22, 23}
	kv := []float64{5, 6, 50, 51, 52, 7, 8, 70, 71, 72}
	rope := []float64{90, 91, 92, 93}
	want := []float64{
		10, 12, 11, 13, 1, 2, 20, 22, 21, 23, 3, 4, // queries
		90, 92, 91, 93, 5, 6, 90, 92, 91, 93, 7, 8, // keys
		50, 51, 52, 0, 0, 0, 70, 71, 72, 0, 0, 0, // values
	}
	qkv := normal(source(1), 36) // overwritten
	JoinLatent(qkv, q, kv, rope, s)
	wantExact(t, "qkv", qkv, want)

	dq, dkv, drope := normal(source(2), 12), normal(source(3), 10), normal(source(4), 4)
	SplitLatent(dq, dkv, drope, want, s)
	wantExact(t, "dq", dq, q)
	wantExact(t, "dkv", dkv, kv)
	wantExact(t, "drope", drope, []float64{180, 182, 184, 186})

	s.Interleaved = false
	JoinLatent(qkv, q, kv, rope, s)
	wantExact(t, "a query in order", qkv[:6], []float64{10, 11, 12, 13, 1, 2})

	att, out := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, zeros(6)
	TakeValues(out, att, s)
	wantExact(t, "values", out, []float64{1, 2, 3, 7, 8, 9})
	PutValues(att, out, s)
	wantExact(t, "values back", att, []float64{1, 2, 3, 0, 0, 0, 7, 8, 9, 0, 0, 0})

	wantPanic(t, "kernels: no such heads of latent attention", func() { s.Value = 7; TakeValues(out, att, s) })
	wantPanic(t, "ref: JoinLatent: length mismatch", func() { s.Value = 3; JoinLatent(qkv, q, kv, rope[:2], s) })
}

// SplitLatent is the gradient of JoinLatent.
func TestLatentGradient(t *testing.T) {
	const M = 2
	for _, s := range []kernels.LatentShape{{H: 3, Nope: 2, Rope: 4, Value: 5, Interleaved: true}, {H: 1, Nope: 0, Rope: 2, Value: 1}} {
		r := source(14)
		q, kv, rope := normal(r, M*s.H*s.D()), normal(r, M*s.H*(s.Nope+s.Value)), normal(r, M*s.Rope)
		qkv, c := zeros(3*len(q)), normal(r, 3*len(q))
		loss := func() float64 {
			JoinLatent(qkv, q, kv, rope, s)
			return project(qkv, c)
		}
		dq, dkv, drope := zeros(len(q)), zeros(len(kv)), zeros(len(rope))
		SplitLatent(dq, dkv, drope, c, s)
		checkGradient(t, loss, limit, argument{"q", q, dq}, argument{"kv", kv, dkv}, argument{"rope", rope, drope})
	}
}
