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

// DeltaGates sets gates [M,Gates] from projected rows x, logs, bias and, with Scan, skip [Values], see
// kernels.Recurrence.
func DeltaGates[T Float](gates, x, logs, bias, skip []T, s kernels.DeltaShape) {
	M := deltaRows(x, s)
	if len(gates) != M*s.Gates() || len(logs) != s.Values || len(bias) != s.Values || s.Scan && len(skip) != s.Values {
		panic("ref: DeltaGates: length mismatch")
	}
	for m := range M {
		row, out := x[m*s.Stride():][:s.Stride()], gates[m*s.Gates():][:s.Gates()]
		for h := range s.Values {
			out[h] = Exp(logOfKept(row, logs, bias, h, s))
			if s.Scan {
				out[s.Values+h], _ = timeStep(row[s.Forget(h)]+bias[h], s)
				out[2*s.Values+h] = skip[h]
				continue
			}
			out[s.Values+h] = Sigmoid(row[s.Write(h)])
		}
	}
}

// timeStep returns Softplus(z) within the limits of a scan, and whether they cut it.
func timeStep[T Float](z T, s kernels.DeltaShape) (w T, cut bool) {
	w = Softplus(z)
	if low := T(s.Low); w < low {
		return low, true
	}
	if high := T(s.High); s.High > 0 && w > high {
		return high, true
	}
	return w, false
}

// logOfKept returns the logarithm of the part of its state that value head h keeps.
func logOfKept[T Float](row, logs, bias []T, h int, s kernels.DeltaShape) T {
	w := Softplus(row[s.Forget(h)] + bias[h])
	if s.Scan {
		w, _ = timeStep(row[s.Forget(h)]+bias[h], s)
	}
	return -T(Exp(logs[h]) * w)
}

// DeltaGatesBackward sets the columns of dx [M,Stride] that DeltaGates reads and adds to dlogs, dbias and, with
// Scan, dskip [Values], see kernels.Recurrence.
func DeltaGatesBackward[T Float](dx, dlogs, dbias, dskip, dgates, gates, x, logs, bias []T, blocks []int32,
	s kernels.DeltaShape) {
	M := deltaRows(x, s)
	if len(dx) != len(x) || len(gates) != M*s.Gates() || len(dgates) != len(gates) || len(logs) != s.Values ||
		len(bias) != s.Values || len(dlogs) != s.Values || len(dbias) != s.Values || s.Scan && len(dskip) != s.Values {
		panic("ref: DeltaGatesBackward: length mismatch")
	}
	checkBlocks(blocks, M)
	H := s.Values
	for h := range H {
		for b := 1; b < len(blocks); b++ {
			var sumLogs, sumBias, sumSkip T
			for m := int(blocks[b-1]); m < int(blocks[b]); m++ {
				row, drow := x[m*s.Stride():][:s.Stride()], dx[m*s.Stride():][:s.Stride()]
				gate, dgate := gates[m*s.Gates():][:s.Gates()], dgates[m*s.Gates():][:s.Gates()]
				d := T(dgate[h] * gate[h])
				z := row[s.Forget(h)] + bias[h]
				slope := T(1)
				if !(z > kernels.SoftplusLinear) {
					slope = Sigmoid(z)
				}
				sumLogs += T(d * logOfKept(row, logs, bias, h, s))
				if s.Scan {
					da := T(T(dgate[H+h]-T(d*Exp(logs[h]))) * slope)
					if _, cut := timeStep(z, s); cut {
						da = 0
					}
					sumBias += da
					sumSkip += dgate[2*H+h]
					drow[s.Forget(h)] = da
					continue
				}
				da := -T(T(d*Exp(logs[h])) * slope)
				sumBias += da
				w := gate[H+h]
				drow[s.Forget(h)], drow[s.Write(h)] = da, dgate[H+h]*T(w*(1-w))
			}
			dlogs[h] += sumLogs
			dbias[h] += sumBias
			if s.Scan {
				dskip[h] += sumSkip
			}
		}
	}
}
