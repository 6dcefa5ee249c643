package ref

import (
	"math"
	"slices"

	"exp/kernels"
)

// Route chooses the experts of each row from logits [M,Logits], see kernels.Experts;
// choice and weight are [M,J], probs [M,E], bias [E] or empty.
func Route[T Float](choice []int32, weight, probs, logits, bias []T, r kernels.Routing) {
	M := routedRows(choice, weight, probs, logits, r)
	E, J, W := r.Experts, r.Choices(), r.Logits()
	if len(bias) != 0 && len(bias) != E {
		panic("ref: Route: length mismatch")
	}
	scores := make([]T, E)
	for m := range M {
		z, p := logits[m*W:(m+1)*W], probs[m*E:(m+1)*E]
		if r.Sigmoid {
			for e := range p {
				p[e] = Sigmoid(z[e])
			}
		} else {
			softmax(p, z[:E])
		}
		copy(scores, p)
		for e, b := range bias {
			scores[e] += b
		}
		chosen, w := choice[m*J:m*J+r.Top], weight[m*J:m*J+r.Top]
		best(chosen, scores, groupsOf(scores, r))
		var sum T
		for j, e := range chosen {
			w[j] = p[e]
			sum += p[e]
		}
		for j := range w {
			if r.Renorm {
				w[j] /= normalizer(sum, r)
			}
			w[j] *= T(r.Factor())
		}
		if r.Shared {
			choice[m*J+r.Top], weight[m*J+r.Top] = int32(E), 1
			if !r.Ungated {
				weight[m*J+r.Top] = Sigmoid(z[E])
			}
		}
	}
}

// normalizer is what the weights of experts are divided by.
func normalizer[T Float](sum T, r kernels.Routing) T {
	if r.Sigmoid {
		sum += T(r.Added())
	}
	return sum
}

// groupsOf returns the experts of a row's best groups, ascending.
func groupsOf[T Float](scores []T, r kernels.Routing) (experts []int32) {
	groups, top := max(r.Groups, 1), max(r.TopGroups, 1)
	size := len(scores) / groups
	of := make([]T, groups)
	numbers := make([]int32, groups)
	for g := range of {
		largest, second := T(math.Inf(-1)), T(math.Inf(-1))
		for _, c := range scores[g*size : (g+1)*size] {
			if c > largest {
				largest, second = c, largest
			} else if c > second {
				second = c
			}
		}
		of[g], numbers[g] = largest, int32(g)
		if r.Sigmoid {
			of[g] = largest + second
		}
	}
	chosen := make([]int32, top)
	best(chosen, of, numbers)
	for _, g := range chosen {
		for e := range size {
			experts = append(experts, int32(int(g)*size+e))
		}
	}
	return experts
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

// best sets chosen to those numbers whose p are largest, ascending; ties go to the lower
// number, NaN comes last. The numbers ascend; best reorders them.
func best[T Float](chosen []int32, p []T, numbers []int32) {
	slices.SortStableFunc(numbers, func(a, b int32) int {
		x, y := p[a], p[b]
		switch {
		case x > y || x == x && y != y:
			return -1
		case x < y || x != x && y == y:
			return 1
		}
		return 0
	})
	copy(chosen, numbers)
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
			dp[e] = T(r.Factor()) * dw[j]
			if r.Renorm {
				dp[e] = (dp[e] - t) / normalizer(sum, r)
			}
		}
		if r.Sigmoid {
			clear(dz)
			for _, e := range chosen {
				dz[e] = dp[e] * T(p[e]*(1-p[e]))
			}
		} else {
			u := LaneDot(dp, p)
			for e := range E {
				dz[e] = p[e] * (dp[e] - u)
			}
		}
		if r.Shared && !r.Ungated {
			g := w[r.Top]
			dz[E] = dw[r.Top] * T(g*(1-g))
		}
	}
}

// routedRows returns M.
func routedRows[T Float](choice []int32, weight, probs, logits []T, r kernels.Routing) int {
	r.Check()
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
