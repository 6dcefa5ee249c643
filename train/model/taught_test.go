package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"exp/kernels"
)

// taughtBy makes o an objective of log-probs: of the target at each place, and of K more tokens.
func (o *objective) taughtBy(t *testing.T, K int, keep Keep) {
	t.Helper()
	o.ws.Close()
	ws, err := NewWorkspace(o.be, o.m.Config, o.m.Heads, Capacity{Tokens: len(o.batch.Tokens),
		Sequences: len(o.batch.Prompt), Taught: K}, keep)
	if err != nil {
		t.Fatal(err)
	}
	o.ws, o.up.Scores, o.up.Taught = ws, false, true
	r := rand.New(rand.NewPCG(7, 7))
	n := o.batch.Scored()
	o.taught, o.wLP = nil, nil
	for range n * K {
		o.taught = append(o.taught, int32(r.IntN(o.m.Config.Vocab)))
	}
	for range n * (1 + K) {
		o.wLP = append(o.wLP, r.NormFloat64())
	}
}

// Central differences check the gradients of several tokens at each place.
func TestTaughtGradients(t *testing.T) {
	o := newObjective(t, variants["llama"], Heads{LM: true}, KeepAll)
	o.taughtBy(t, 3, KeepInputs)
	want, got := o.differences(), o.gradient()
	worst, scale := 0.0, 0.0
	for i := range want {
		worst, scale = max(worst, math.Abs(got[i]-want[i])), max(scale, math.Abs(want[i]))
	}
	if !(worst <= 1e-8*max(scale, 1)) {
		t.Errorf("gradient off by %.2g (largest is %.2g)", worst, scale)
	}
}

// The first of a row's scores is the target's; the teacher's tokens are those with the largest logits.
func TestTaughtScores(t *testing.T) {
	o := newObjective(t, variants["llama"], Heads{LM: true}, KeepAll)
	const K = 4
	o.taughtBy(t, K, KeepNothing)
	host := func(b kernels.Buffer) []float64 {
		x := make([]float64, b.Len())
		o.be.Copy(kernels.Host(x), b)
		return x
	}
	o.ws.Load(o.batch)
	o.m.Refresh()
	o.m.Forward(o.ws)
	o.m.Scores(o.ws, o.temp)
	targets := host(o.ws.LogProb())
	tokens, logProb := o.m.TopTokens(o.ws, o.temp)
	ids := make([]int32, tokens.Len())
	o.be.Copy(kernels.Host(ids), tokens)
	top := host(logProb)
	o.ws.SetTaught(ids)
	both := host(o.m.TaughtScores(o.ws, o.temp))
	V := o.m.Config.Vocab
	logits, err := o.be.Alloc(o.be.Float(), o.ws.Rows()*V)
	if err != nil {
		t.Fatal(err)
	}
	o.m.Logits(o.ws, logits)
	z := host(logits)
	for r, target := range targets {
		row := both[r*(1+K):]
		if row[0] != target || !slices.Equal(row[1:1+K], top[r*K:(r+1)*K]) {
			t.Errorf("row %d: scores %v, want %v and %v", r, row[:1+K], target, top[r*K:(r+1)*K])
		}
		sorted := slices.Clone(z[r*V : (r+1)*V])
		slices.Sort(sorted)
		slices.Reverse(sorted)
		for k, id := range ids[r*K : (r+1)*K] {
			if z[r*V+int(id)] != sorted[k] {
				t.Errorf("row %d: token %d is %d", r, k, id)
			}
		}
	}
}
