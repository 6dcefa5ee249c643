package ref

import "exp/kernels"

// Softplus returns log(1+eˣ), x itself above kernels.SoftplusLinear. With e = Exp(x) and u = 1+e it is
// Log(u)·(e/(u-1)), e if u is 1: the quotient undoes the rounding of u (Kahan).
func Softplus[T Float](x T) T {
	if x > kernels.SoftplusLinear {
		return x
	}
	e := Exp(x)
	u := 1 + e
	if u == 1 {
		return e
	}
	return Log(u) * (e / (u - 1))
}

// DeltaGates sets gates [M,2·Values] from projected rows x, logs and bias [Values], see
// kernels.Recurrence.
func DeltaGates[T Float](gates, x, logs, bias []T, s kernels.DeltaShape) {
	M := deltaRows(x, s)
	if len(gates) != M*2*s.Values || len(logs) != s.Values || len(bias) != s.Values {
		panic("ref: DeltaGates: length mismatch")
	}
	for m := range M {
		row, out := x[m*s.Stride():][:s.Stride()], gates[m*2*s.Values:][:2*s.Values]
		for h := range s.Values {
			out[h] = Exp(logOfKept(row, logs, bias, h, s))
			out[s.Values+h] = Sigmoid(row[s.Write(h)])
		}
	}
}

// logOfKept returns the logarithm of the part of its state that value head h keeps.
func logOfKept[T Float](row, logs, bias []T, h int, s kernels.DeltaShape) T {
	return -T(Exp(logs[h]) * Softplus(row[s.Forget(h)]+bias[h]))
}

// DeltaGatesBackward sets the columns b and a of dx [M,Stride] and adds to dlogs and dbias
// [Values], see kernels.Recurrence.
func DeltaGatesBackward[T Float](dx, dlogs, dbias, dgates, gates, x, logs, bias []T, blocks []int32,
	s kernels.DeltaShape) {
	M := deltaRows(x, s)
	if len(dx) != len(x) || len(gates) != M*2*s.Values || len(dgates) != len(gates) || len(logs) != s.Values ||
		len(bias) != s.Values || len(dlogs) != s.Values || len(dbias) != s.Values {
		panic("ref: DeltaGatesBackward: length mismatch")
	}
	checkBlocks(blocks, M)
	H := s.Values
	for h := range H {
		for b := 1; b < len(blocks); b++ {
			var sumLogs, sumBias T
			for m := int(blocks[b-1]); m < int(blocks[b]); m++ {
				row, drow := x[m*s.Stride():][:s.Stride()], dx[m*s.Stride():][:s.Stride()]
				d := T(dgates[m*2*H+h] * gates[m*2*H+h])
				z := row[s.Forget(h)] + bias[h]
				slope := T(1)
				if !(z > kernels.SoftplusLinear) {
					slope = Sigmoid(z)
				}
				da := -T(T(d*Exp(logs[h])) * slope)
				sumLogs += T(d * logOfKept(row, logs, bias, h, s))
				sumBias += da
				w := gates[m*2*H+H+h]
				drow[s.Forget(h)], drow[s.Write(h)] = da, dgates[m*2*H+H+h]*T(w*(1-w))
			}
			dlogs[h] += sumLogs
			dbias[h] += sumBias
		}
	}
}
