package ref

import "exp/kernels"

// LogProb sets, for each row h [C] with weight w [V,C] and it = 1/x.Temperature
// rounded to T,
//
//	z[v] = (chain over c of h[c]·w[v,c]) · it; with x.Cap, (Cap·Tanh(chain·(1/Cap))) · it
//	m    = max z
//	e[v] = Exp(z[v]-m)
//	s    = lane sum of e[v]
//	lse     = m + Log(s)
//	logProb[k] = z[targets[k]] - lse
//	entropy = Log(s) - (lane sum of e[v]·(z[v]-m)) / s
//
// entropy and lse are [R], logProb and targets [R,K], h [R,C]. The maximum starts from
// -Inf and skips NaN, which reaches the result through e.
func LogProb[T Float](logProb, entropy, lse, h, w []T, targets []int32, C int, x kernels.Softmax) {
	logProbs(chains[T], logProb, entropy, lse, h, w, targets, C, x)
}

func logProbs[T Float](multiply dots[T], logProb, entropy, lse, h, w []T, targets []int32, C int, x kernels.Softmax) {
	R, V := scoreDims(entropy, lse, h, w, C)
	K := perRow(len(targets), R)
	if len(logProb) != R*K {
		panic("ref: LogProb: length mismatch")
	}
	l := newLogits(h, w, R, V, C, multiply, x.Cap)
	for r := range R {
		l.compute(r, inverse[T](x.Temperature))
		for k := r * K; k < (r+1)*K; k++ {
			checkTarget(targets[k], V)
			logProb[k], entropy[r], lse[r] = l.scores(int(targets[k]))
		}
	}
}

// TopTokens sets ids [R,K] to the K tokens of each row with the largest z, by z descending, then id ascending, and the
// scores as LogProb does for them. If a row's s is NaN they are tokens 0 to K-1.
func TopTokens[T Float](ids []int32, logProb, entropy, lse, h, w []T, C int, x kernels.Softmax) {
	topTokens(chains[T], ids, logProb, entropy, lse, h, w, C, x)
}

func topTokens[T Float](multiply dots[T], ids []int32, logProb, entropy, lse, h, w []T, C int, x kernels.Softmax) {
	R, V := scoreDims(entropy, lse, h, w, C)
	K := perRow(len(ids), R)
	if len(logProb) != R*K || K > V || K > kernels.MaxTopTokens {
		panic("ref: TopTokens: length mismatch")
	}
	l, order := newLogits(h, w, R, V, C, multiply, x.Cap), make([]int32, V)
	for r := range R {
		l.compute(r, inverse[T](x.Temperature))
		PickTop(ids[r*K:(r+1)*K], l.z, l.s, order)
		for k := r * K; k < (r+1)*K; k++ {
			logProb[k], entropy[r], lse[r] = l.scores(int(ids[k]))
		}
	}
}

// perRow returns how many of n elements each of R rows has.
func perRow(n, R int) int {
	if R == 0 {
		return 1
	}
	if n == 0 || n%R != 0 {
		panic("ref: scores: want the same number of targets for each row")
	}
	return n / R
}

// LogProbBackward takes the gradients with respect to logProb [R,K] and entropy [R], and
// entropy and lse from the forward pass. With D the sum of a row's dLogProb in order and
// p = Exp(z[v]-lse) it computes
//
//	q     = fma(dEntropy, (z[v]-lse) + entropy, D)
//	dz[v] = (-(p·q) + dLogProb[k] + …) · it                 with the k whose target is v, in order
//	dz[v] = dz[v] · (1 - y·y)                               with a cap, y its Tanh
//
// sets dh [R,C] as MatMulDX of dz and adds to dw [V,C] as MatMulDW of dz and h.
// blocks are row offsets from 0 to R. Nothing is added where no target is v; a target may
// be -1, none. dw may be empty; then it is skipped.
func LogProbBackward[T Float](dh, dw, dLogProb, dEntropy, entropy, lse, h, w []T, targets, blocks []int32, C int,
	x kernels.Softmax) {
	if len(dh) != len(h) || len(dw) != 0 && len(dw) != len(w) {
		panic("ref: LogProbBackward: length mismatch")
	}
	R, V := scoreDims(entropy, lse, h, w, C)
	dz := logitGradients(chains[T], dLogProb, dEntropy, entropy, lse, h, w, targets, C, x)
	MatMulDX(dh, dz, w, R, V, C)
	if len(dw) > 0 {
		MatMulDW(dw, nil, dz, h, blocks, R, V, C)
	}
}

// logitGradients returns dz [R,V] of LogProbBackward.
func logitGradients[T Float](multiply dots[T], dLogProb, dEntropy, entropy, lse, h, w []T, targets []int32, C int,
	x kernels.Softmax) []T {
	R, V := scoreDims(entropy, lse, h, w, C)
	K := perRow(len(targets), R)
	if len(dEntropy) != R || len(dLogProb) != R*K {
		panic("ref: LogProbBackward: length mismatch")
	}
	it := inverse[T](x.Temperature)
	l := newLogits(h, w, R, V, C, multiply, x.Cap)
	dz := make([]T, R*V)
	for r := range R {
		l.compute(r, it)
		dzr, dl := dz[r*V:(r+1)*V], dLogProb[r*K:(r+1)*K]
		all := SumInOrder(dl)
		for v, z := range l.z {
			p := Exp(z - lse[r])
			q := FMA(dEntropy[r], (z-lse[r])+entropy[r], all)
			dzr[v] = -T(p * q)
		}
		for k, target := range targets[r*K : (r+1)*K] {
			if target != -1 {
				checkTarget(target, V)
				dzr[target] += dl[k]
			}
		}
		for v := range dzr {
			dzr[v] *= it
			if x.Cap > 0 {
				dzr[v] *= 1 - T(l.y[v]*l.y[v])
			}
		}
	}
	return dz
}

// SumInOrder returns the sum of x, from the first element on. x is not empty.
func SumInOrder[T Float](x []T) T {
	sum := x[0]
	for _, v := range x[1:] {
		sum += v
	}
	return sum
}

// logits is the workspace of one row of the output layer. It is not safe for
// concurrent use.
type logits[T Float] struct {
	projected []T // [R,V] of all rows, before their cap

	z  []T // [V] scaled logits
	y  []T // [V] the Tanh of their cap
	e  []T // [V] Exp(z-m)
	zm []T // [V] z-m
	m  T   // max z
	s  T   // lane sum of e

	cap float64
}

// newLogits returns a workspace for rows h [R,C] and w [V,C].
func newLogits[T Float](h, w []T, R, V, C int, multiply dots[T], cap float64) *logits[T] {
	l := &logits[T]{projected: make([]T, R*V), z: make([]T, V), y: make([]T, V), e: make([]T, V), zm: make([]T, V),
		cap: cap}
	multiply(l.projected, h, w, R, V, C)
	return l
}

// Logits sets out [R,V] to the logits of h [R,C], capped if cap > 0.
func Logits[T Float](out, h, w []T, C int, cap float64) { allLogits(chains[T], out, h, w, C, cap) }

func allLogits[T Float](multiply dots[T], out, h, w []T, C int, cap float64) {
	R, V := len(h)/C, len(w)/C
	if len(h) != R*C || len(w) != V*C || len(out) != R*V {
		panic("ref: Logits: length mismatch")
	}
	clear(out)
	multiply(out, h, w, R, V, C)
	for i, z := range out {
		out[i] = cappedScore(z, cap)
	}
}

// compute fills l for row r.
func (l *logits[T]) compute(r int, it T) {
	V := len(l.z)
	for v, p := range l.projected[r*V : (r+1)*V] {
		l.z[v], l.y[v] = capped(p, l.cap)
		l.z[v] = T(l.z[v] * it)
	}
	l.exponentials()
}

// exponentials fills the rest of l for z.
func (l *logits[T]) exponentials() {
	l.m = maxOf(l.z)
	for v, z := range l.z {
		l.zm[v] = z - l.m
		l.e[v] = Exp(l.zm[v])
	}
	l.s = LaneSum(l.e)
}

// scores returns the row's scores, as LogProb defines them.
func (l *logits[T]) scores(target int) (logProb, entropy, lse T) {
	log := Log(l.s)
	lse = l.m + log
	return l.z[target] - lse, log - LaneDot(l.e, l.zm)/l.s, lse
}

// inverse returns 1/temperature rounded to T.
func inverse[T Float](temperature float64) T {
	if !(temperature > 0) {
		panic("ref: temperature is not positive")
	}
	return T(1 / temperature)
}

func checkTarget(id int32, V int) {
	if id < 0 || int(id) >= V {
		panic("ref: target out of range")
	}
}

// scoreDims returns R and V. It panics if the lengths of a row's scores, h [R,C] and
// w [V,C] do not match.
func scoreDims[T Float](entropy, lse, h, w []T, C int) (R, V int) {
	R, V = len(entropy), len(w)/C
	if len(lse) != R || len(h) != R*C || len(w) != V*C || V == 0 {
		panic("ref: scores: length mismatch")
	}
	return R, V
}
