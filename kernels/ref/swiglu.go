package ref

import "exp/kernels"

// checkGates panics unless w has as many gate rows as up rows.
func checkGates(w kernels.Matrix) {
	if w.Out%2 != 0 {
		panic("ref: MatMulSwiGLU: not as many gates as ups")
	}
}

// SwiGLU sets out[m,f] = (g·Sigmoid(g))·u with g = gateUp[m,f] and
// u = gateUp[m,F+f]; out [M,F], gateUp [M,2F]. Shazeer, arXiv:2002.05202 eq. 6,
// without the projections.
func SwiGLU[T Float](out, gateUp []T, F int) {
	M := len(out) / F
	if len(out) != M*F || len(gateUp) != M*2*F {
		panic("ref: SwiGLU: length mismatch")
	}
	for m := 0; m < M; m++ {
		row := gateUp[m*2*F : (m+1)*2*F]
		for f := 0; f < F; f++ {
			g, u := row[f], row[F+f]
			out[m*F+f] = T(g*Sigmoid(g)) * u
		}
	}
}

// SwiGLUBackward sets dgateUp [M,2F]; with s = Sigmoid(g):
//
//	du = dout·(g·s)
//	dg = (dout·u) · (s·fma(g, 1-s, 1))
//
// dout is [M,F]. dgateUp may be gateUp.
func SwiGLUBackward[T Float](dgateUp, dout, gateUp []T, F int) {
	M := len(dout) / F
	if len(dout) != M*F || len(gateUp) != M*2*F || len(dgateUp) != len(gateUp) {
		panic("ref: SwiGLUBackward: length mismatch")
	}
	for m := 0; m < M; m++ {
		row, drow := gateUp[m*2*F:(m+1)*2*F], dgateUp[m*2*F:(m+1)*2*F]
		for f := 0; f < F; f++ {
			g, u, d := row[f], row[F+f], dout[m*F+f]
			s := Sigmoid(g)
			drow[f] = T(d*u) * T(s*FMA(g, 1-s, 1))
			drow[F+f] = d * T(g*s)
		}
	}
}
