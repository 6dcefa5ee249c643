package ref

import (
	"slices"

	"exp/kernels"
)

// Route chooses the experts of each row from logits [M,Logits], see kernels.Experts;
// choice and weight are [M,J], probs [M,E].
func Route[T Float](choice []int32, weight, probs, logits []T, r kernels.Routing) {
	M := routedRows(choice, weight, probs, logits, r)
	E, J, W := r.Experts, r.Choices(), r.Logits()
	order := make([]int32, E)
	for m := range M {
		z, p := logits[m*W:(m+1)*W], probs[m*E:(m+1)*E]
		softmax(p, z[:E])
		chosen, w := choice[m*J:m*J+r.Top], weight[m*J:m*J+r.Top]
		best(chosen, p, order)
		var sum T
		for j, e := range chosen {
			w[j] = p[e]
			sum += p[e]
		}
		for j := range w {
			if r.Renorm {
				w[j] /= sum
			}
		}
		if r.Shared {
			choice[m*J+r.Top], weight[m*J+r.Top] = int32(E), Sigmoid(z[E])
		}
	}
}

// softmax sets p[e] = Exp(z[e]-m)/s with m the largest z and s the lane sum.
func softmax[T Float](p, z []T) {
	m := maxOf(z)
	for e := range p {
		p[e] = Exp(z[e] - m)
	}
	s := LaneSum(p)
	for e := range p {
		p[e] /= s
	}
}

// best sets chosen to the numbers of the largest p, ascending; ties go to the lower
// number, NaN comes last. order is scratch.
func best[T Float](chosen []int32, p []T, order []int32) {
	for e := range order {
		order[e] = int32(e)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		x, y := p[a], p[b]
		switch {
		case x > y || x == x && y != y:
			return -1
		case x < y || x != x && y == y:
			return 1
		}
		return 0
	})
	copy(chosen, order)
	slices.Sort(chosen)
}

// RouteBackward sets dlogits [M,Logits] from dweight [M,J], see kernels.Experts.
func RouteBackward[T Float](dlogits, dweight []T, choice []int32, weight, probs []T, r kernels.Routing) {
	M := routedRows(choice, weight, probs, dlogits, r)
	if len(dweight) != len(weight) {
		panic("ref: RouteBackward: length mismatch")
	}
	E, J, W := r.Experts, r.Choices(), r.Logits()
	dp := make([]T, E)
	for m := range M {
		p, dz := probs[m*E:(m+1)*E], dlogits[m*W:(m+1)*W]
		chosen, w, dw := choice[m*J:m*J+r.Top], weight[m*J:(m+1)*J], dweight[m*J:(m+1)*J]
		clear(dp)
		var sum, t T
		for j, e := range chosen {
			sum += p[e]
			t += T(dw[j] * w[j])
		}
		for j, e := range chosen {
			dp[e] = dw[j]
			if r.Renorm {
				dp[e] = (dw[j] - t) / sum
			}
		}
		u := LaneDot(dp, p)
		for e := range E {
			dz[e] = p[e] * (dp[e] - u)
		}
		if r.Shared {
			g := w[r.Top]
			dz[E] = dw[r.Top] * T(g*(1-g))
		}
	}
}

// routedRows returns M.
func routedRows[T Float](choice []int32, weight, probs, logits []T, r kernels.Routing) int {
	if r.Experts < 1 || r.Top < 1 || r.Top > r.Experts {
		panic("ref: a row goes to at least one expert and at most all")
	}
	M := len(probs) / r.Experts
	if len(probs) != M*r.Experts || len(choice) != M*r.Choices() || len(weight) != len(choice) ||
		len(logits) != M*r.Logits() {
		panic("ref: routing: length mismatch")
	}
	return M
}

// Combine sets out[m,c] to the chain over j of weight[m,j]·x[slot[m,j],c] from 0: out
// [M,C], x [M·J,C], slot and weight [M,J].
func Combine[T Float](out, x []T, slot []int32, weight []T, C, J int) {
	M := combinedRows(out, x, slot, weight, C, J)
	clear(out)
	for m := range M {
		for j := m * J; j < (m+1)*J; j++ {
			accumulate(out[m*C:(m+1)*C], weight[j], x[int(slot[j])*C:][:C])
		}
	}
}

// CombineBackward sets dx[slot[m,j],c] = weight[m,j]·dout[m,c] and dweight[m,j] to the
// lane sum over c of dout[m,c]·x[slot[m,j],c].
func CombineBackward[T Float](dx, dweight, dout, x []T, slot []int32, weight []T, C, J int) {
	M := combinedRows(dout, x, slot, weight, C, J)
	if len(dx) != len(x) || len(dweight) != len(weight) {
		panic("ref: CombineBackward: length mismatch")
	}
	for m := range M {
		d := dout[m*C : (m+1)*C]
		for j := m * J; j < (m+1)*J; j++ {
			at := int(slot[j]) * C
			for c, v := range d {
				dx[at+c] = weight[j] * v
			}
			dweight[j] = LaneDot(d, x[at:at+C])
		}
	}
}

// combinedRows returns M.
func combinedRows[T Float](out, x []T, slot []int32, weight []T, C, J int) int {
	M := len(out) / C
	if len(out) != M*C || len(slot) != M*J || len(weight) != M*J || len(x) != M*J*C {
		panic("ref: Combine: length mismatch")
	}
	for _, s := range slot {
		checkRow(int(s), M*J)
	}
	return M
}
