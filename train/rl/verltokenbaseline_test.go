package rl

import (
	"math"
	"math/rand/v2"
	"testing"
)

// verlTokenBaseline follows compute_multi_turn_optimal_token_baseline_advantage of verl step by step.
func verlTokenBaseline(b *Batch[float64], reward, sumPiSquared []float64, group []int, zeroTail bool) []float64 {
	rows := b.Rows.Len()
	returns, weights := make([][]float64, rows), make([][]float64, rows)
	longest := 0
	for i := range rows {
		ret := 0.0
		for t := b.Rows[i+1] - 1; t >= b.Rows[i]; t-- {
			if b.Mask[t] {
				ret += reward[t]
				returns[i] = append([]float64{ret}, returns[i]...)
			}
		}
		path := 0.0
		for t := b.Rows[i]; t < b.Rows[i+1]; t++ {
			if b.Mask[t] {
				path += 1 - 2*math.Exp(b.OldLogProb[t]) + sumPiSquared[t]
				weights[i] = append(weights[i], path)
			}
		}
		longest = max(longest, len(returns[i]))
	}
	members := map[int][]int{}
	for i := range rows {
		if len(returns[i]) > 0 { // rows without tokens are in no group
			members[group[i]] = append(members[group[i]], i)
		}
	}
	baseline := make([][]float64, rows)
	for i := range baseline {
		baseline[i] = make([]float64, longest)
	}
	for _, list := range members {
		if len(list) == 1 {
			continue
		}
		most, second, which, ties := 0, 0, -1, 0
		for _, i := range list {
			switch n := len(returns[i]); {
			case n > most:
				most, second, which, ties = n, most, i, 1
			case n == most:
				second, ties = n, ties+1
			default:
				second = max(second, n)
			}
		}
		for k := range longest {
			var sum, weight float64
			for _, i := range list {
				if k < len(returns[i]) {
					sum += returns[i][k] * weights[i][k]
					weight += weights[i][k]
				}
			}
			for _, i := range list {
				if !zeroTail || ties > 1 || i != which || k < second {
					baseline[i][k] = sum / (weight + 1e-8)
				}
			}
		}
	}
	adv := make([]float64, len(b.Mask))
	for i := range rows {
		k := 0
		for t := b.Rows[i]; t < b.Rows[i+1]; t++ {
			if b.Mask[t] {
				adv[t] = returns[i][k] - baseline[i][k]
				k++
			}
		}
	}
	return adv
}

// TestTokenBaselineLikeVerl: any masks, with turns anywhere and rows without tokens.
func TestTokenBaselineLikeVerl(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		b := &Batch[float64]{Rows: Rows{0}}
		var reward, sum []float64
		var group []int
		for range 1 + r.IntN(5) {
			n, share := 1+r.IntN(6), r.Float64()*1.4
			for range n {
				p := r.Float64()
				b.Mask = append(b.Mask, r.Float64() < share)
				b.OldLogProb = append(b.OldLogProb, math.Log(p))
				reward = append(reward, float64(r.IntN(3)))
				sum = append(sum, p*p+(1-p)*(1-p)*r.Float64())
			}
			b.Rows = append(b.Rows, len(b.Mask))
			group = append(group, r.IntN(2))
		}
		for _, keep := range []bool{false, true} {
			adv, ret := make([]float64, len(b.Mask)), make([]float64, len(b.Mask))
			OptimalTokenBaseline(adv, ret, b, reward, sum, group, TokenBaseline{KeepTail: keep})
			for i, want := range verlTokenBaseline(b, reward, sum, group, !keep) {
				if !near(adv[i], want, 1e-9) {
					t.Fatalf("rows %v, mask %v, groups %v, keep tail %v: A[%d] = %g, verl %g", b.Rows, b.Mask, group, keep, i, adv[i], want)
				}
			}
		}
	}
}
