package ref

import (
	"math"
	"testing"

	"exp/kernels"
)

// One query with one key: the sink takes half where its score is the key's, and 3/4 where e to its power is
// three times as large.
func TestSinkKnown(t *testing.T) {
	s := kernels.AttentionShape{H: 2, K: 1, D: 2, Scale: 1}
	qkv := []float64{1, 2, 3, -1, 2, 1, 8, 4} // scores 4 and 5, value (8,4)
	out, stats := zeros(4), zeros(4)
	Attention(out, stats, qkv, []int32{0, 1}, nil, s)
	Sink(out, out, stats, []float64{4, 5 + math.Log(3)}, s)
	wantNear(t, "out", out, []float64{4, 2, 2, 1}, 1e-14)

	Sink(out, []float64{8, 4, 8, 4}, stats, []float64{-1000, 1000}, s)
	wantExact(t, "sinks far below and above", out, []float64{8, 4, 0, 0})

	// dout·out is 12·1/2 in both heads: out is (4,2) and (2,1), and the sinks have 1/2 and 3/4 of the attention.
	datt, dsinks := zeros(4), []float64{10, 20}
	SinkBackward(datt, dsinks, []float64{1, 1, 2, 2}, []float64{4, 2, 2, 1}, stats, []float64{4, 5 + math.Log(3)},
		[]int32{0, 1}, s)
	wantNear(t, "datt", datt, []float64{0.5, 0.5, 0.5, 0.5}, 1e-14)
	wantNear(t, "dsinks", dsinks, []float64{10 - 6*0.5, 20 - 6*0.75}, 1e-14)
}

// A sink is one more key, whose score is a number of the head's and whose value is zeros.
func TestSinkIsAKey(t *testing.T) {
	s := kernels.AttentionShape{H: 4, K: 2, D: 3, Scale: 0.6, Window: 4}
	const M = 9
	r := source(12)
	qkv, sinks := normal(r, M*s.Stride()), normal(r, s.H)
	out, stats := zeros(M*s.H*s.D), zeros(M*s.H*2)
	Attention(out, stats, qkv, []int32{0, M}, nil, s)
	Sink(out, out, stats, sinks, s)
	want := zeros(len(out))
	for i := range M {
		for h := range s.H {
			sum := math.Exp(sinks[h])
			o := want[(i*s.H+h)*s.D:][:s.D]
			for j := max(0, i-3); j <= i; j++ {
				w := math.Exp(0.6 * chain(head(qkv, i, h, s), key(qkv, j, h, s), 0))
				sum += w
				accumulate(o, w, value(qkv, j, h, s))
			}
			for d := range o {
				o[d] /= sum
			}
		}
	}
	wantNear(t, "out", out, want, 1e-14)
}

func TestSinkGradient(t *testing.T) {
	for _, s := range []kernels.AttentionShape{{H: 1, K: 1, D: 3}, {H: 4, K: 2, D: 2, Window: 3}, {H: 2, K: 1, D: 3, Cap: 1.5}} {
		r := source(10)
		s.Scale = 0.7
		offsets, M := []int32{0, 1, 8, 11}, 11
		qkv, sinks, c := normal(r, M*s.Stride()), normal(r, s.H), normal(r, M*s.H*s.D)
		out, stats := zeros(M*s.H*s.D), zeros(M*s.H*2)
		loss := func() float64 {
			Attention(out, stats, qkv, offsets, nil, s)
			Sink(out, out, stats, sinks, s)
			return project(out, c)
		}
		loss()
		dqkv, dsinks, datt := zeros(len(qkv)), zeros(s.H), clone(c)
		SinkBackward(datt, dsinks, datt, out, stats, sinks, []int32{0, 4, 5, 11}, s)
		AttentionBackward(dqkv, datt, out, stats, qkv, offsets, nil, s)
		checkGradient(t, loss, limit, argument{"qkv", qkv, dqkv}, argument{"sinks", sinks, dsinks})
	}
	wantPanic(t, "ref: Sink: length mismatch", func() {
		Sink(zeros(4), zeros(4), zeros(4), zeros(1), kernels.AttentionShape{H: 2, K: 1, D: 2})
	})
}
