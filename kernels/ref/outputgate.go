package ref

import "exp/kernels"

// checkGated is checkAttention for rows that may have no keys and values.
func checkGated(s kernels.AttentionShape) {
	if s.K != 0 || s.H < 1 || s.D < 1 {
		checkAttention(s)
	}
}

// gatedRows returns M and panics unless x [M,Stride+H·D] and att [M,H·D] have as many rows.
func gatedRows[T Float](x, att []T, s kernels.AttentionShape) int {
	checkGated(s)
	M := len(att) / (s.H * s.D)
	if len(att) != M*s.H*s.D || len(x) != M*(s.Stride()+s.H*s.D) {
		panic("ref: output gate: length mismatch")
	}
	return M
}

// outputGate returns the gate of query head h in row m of x.
func outputGate[T Float](x []T, m, h int, s kernels.AttentionShape) []T {
	return x[m*(s.Stride()+s.H*s.D)+(2*h+1)*s.D:][:s.D]
}

// eachUngated calls f with every head of M rows except the gates: where it lies in qkv [M,Stride] and in
// x [M,Stride+H·D].
func eachUngated(M int, s kernels.AttentionShape, f func(at, from int)) {
	for m := range M {
		for h := range s.H + 2*s.K {
			from := s.H + h
			if h < s.H {
				from = 2 * h
			}
			f(m*s.Stride()+h*s.D, m*(s.Stride()+s.H*s.D)+from*s.D)
		}
	}
}

// SplitGates sets qkv [M,Stride] to x without its gates, see kernels.Recurrence.
func SplitGates[T Float](qkv, x []T, s kernels.AttentionShape) {
	M := attentionRows(qkv, s)
	if len(x) != M*(s.Stride()+s.H*s.D) {
		panic("ref: SplitGates: length mismatch")
	}
	eachUngated(M, s, func(at, from int) { copy(qkv[at:at+s.D], x[from:]) })
}

// JoinGates sets all of dx but the gates from dqkv [M,Stride].
func JoinGates[T Float](dx, dqkv []T, s kernels.AttentionShape) {
	M := attentionRows(dqkv, s)
	if len(dx) != M*(s.Stride()+s.H*s.D) {
		panic("ref: JoinGates: length mismatch")
	}
	eachUngated(M, s, func(at, to int) { copy(dx[to:to+s.D], dqkv[at:]) })
}

// OutputGate sets out [M,H·D] to att times the logistic function of the gates in x.
func OutputGate[T Float](out, att, x []T, s kernels.AttentionShape) {
	M := gatedRows(x, att, s)
	if len(out) != len(att) {
		panic("ref: OutputGate: length mismatch")
	}
	for v := range M * s.H {
		for d, z := range outputGate(x, v/s.H, v%s.H, s) {
			out[v*s.D+d] = att[v*s.D+d] * Sigmoid(z)
		}
	}
}

// OutputGateBackward sets datt [M,H·D] and the gates of dx, see kernels.Recurrence.
func OutputGateBackward[T Float](datt, dx, dout, att, x []T, s kernels.AttentionShape) {
	M := gatedRows(x, att, s)
	if len(datt) != len(att) || len(dout) != len(att) || len(dx) != len(x) {
		panic("ref: OutputGateBackward: length mismatch")
	}
	for v := range M * s.H {
		dz := outputGate(dx, v/s.H, v%s.H, s)
		for d, z := range outputGate(x, v/s.H, v%s.H, s) {
			g, do := Sigmoid(z), dout[v*s.D+d]
			dz[d] = T(do*att[v*s.D+d]) * T(g*(1-g))
			datt[v*s.D+d] = do * g
		}
	}
}
