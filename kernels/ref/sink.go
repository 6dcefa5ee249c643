package ref

import "exp/kernels"

// Sink gives each query head one more key, with score sinks[h] and a value of zeros: it scales att [M,H·D]
// to out [M,H·D]. Attention sets m and 1/l in stats [M,H,2]; with x = Exp(sinks[h] - m)·(1/l),
//
//	out[m,h·D+d] = att[m,h·D+d] · (1/(1 + x))
//
// out may be att. gpt-oss, arXiv:2508.10925; Xiao et al., arXiv:2309.17453 §3.3.
func Sink[T Float](out, att, stats, sinks []T, s kernels.AttentionShape) {
	M := sinkRows(att, stats, sinks, s)
	if len(out) != len(att) {
		panic("ref: Sink: length mismatch")
	}
	for v := range M * s.H {
		g := keysShare(stats, sinks, v)
		for d := range s.D {
			out[v*s.D+d] = att[v*s.D+d] * g
		}
	}
}

// SinkBackward sets datt [M,H·D], from which AttentionBackward, with Sink's out in the place of
// Attention's, computes the gradients of queries, keys and values. With g = 1/(1 + x) as in Sink and
// t = lane sum over d of dout[d]·out[d],
//
//	datt[m,h·D+d] = dout[m,h·D+d]·g
//
// and it adds to dsinks [H] the blocked plain sum over rows of -(t·(1-g)). datt may be dout.
//
// AttentionBackward subtracts from the gradient of each weight p the lane sum of datt·out = g·t. The
// gradient of att is g·dout, whose own sum is t, and the sink's g rises with the scores by
// p·t·(1-g): together p·(g·dout·v - t + t·(1-g)) = p·(datt·v - g·t).
func SinkBackward[T Float](datt, dsinks, dout, out, stats, sinks []T, blocks []int32, s kernels.AttentionShape) {
	M := sinkRows(out, stats, sinks, s)
	if len(datt) != len(out) || len(dout) != len(out) || len(dsinks) != s.H {
		panic("ref: SinkBackward: length mismatch")
	}
	checkBlocks(blocks, M)
	acc := make([]T, s.H)
	for b := 1; b < len(blocks); b++ {
		clear(acc)
		for v := int(blocks[b-1]) * s.H; v < int(blocks[b])*s.H; v++ {
			g := keysShare(stats, sinks, v)
			do := dout[v*s.D : (v+1)*s.D]
			t := LaneDot(do, out[v*s.D:(v+1)*s.D])
			acc[v%s.H] -= T(t * (1 - g))
			for d := range do {
				datt[v*s.D+d] = do[d] * g
			}
		}
		addTo(dsinks, acc)
	}
}

// keysShare returns how much attention the keys get and the sink does not. v numbers rows and their heads.
func keysShare[T Float](stats, sinks []T, v int) T {
	x := T(Exp(sinks[v%len(sinks)]-stats[2*v]) * stats[2*v+1])
	return 1 / (1 + x)
}

// sinkRows returns M.
func sinkRows[T Float](att, stats, sinks []T, s kernels.AttentionShape) int {
	checkAttention(s)
	M := len(att) / (s.H * s.D)
	if len(att) != M*s.H*s.D || len(stats) != M*s.H*2 || len(sinks) != s.H {
		panic("ref: Sink: length mismatch")
	}
	return M
}
