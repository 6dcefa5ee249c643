package ref

import "exp/kernels"

// Rope rotates, in place, the H+K query and key heads of every row of qkv
// [M,Stride] by the row's position: for i < P, P half of Rotated, with
// c = cos[pos,i] and s = sin[pos,i],
//
//	x[i]   = fma(x[i], c, -(x[i+P]·s))
//	x[i+P] = fma(x[i+P], c, x[i]·s)      of the old x
//
// cos and sin are [positions,P], pos [M]; Rotated is even. inverse negates s, which
// gives the backward pass. Su et al., arXiv:2104.09864 eq. 34, with
// the halves of a head paired as in Hugging Face's Llama or, if Interleaved, its
// neighbours as in the paper: x[2i] and x[2i+1].
func Rope[T Float](qkv, cos, sin []T, pos []int32, s kernels.AttentionShape, inverse bool) {
	checkAttention(s)
	half := s.Rotated() / 2
	if s.Rotated()%2 != 0 || s.Rotated() > s.D {
		panic("ref: Rope: the rotated channels are odd or more than the head has")
	}
	if len(qkv) != len(pos)*s.Stride() || len(cos) != len(sin) || len(cos)%half != 0 {
		panic("ref: Rope: length mismatch")
	}
	for m, p := range pos {
		if p < 0 || int(p) >= len(cos)/half {
			panic("ref: Rope: position out of range")
		}
		for h := 0; h < s.H+s.K; h++ {
			x := qkv[m*s.Stride()+h*s.D:][:s.D]
			for i := 0; i < half; i++ {
				first, second := i, i+half
				if s.Interleaved {
					first, second = 2*i, 2*i+1
				}
				c, sn := cos[int(p)*half+i], sin[int(p)*half+i]
				if inverse {
					sn = -sn
				}
				a, b := x[first], x[second]
				x[first] = FMA(a, c, -T(b*sn))
				x[second] = FMA(b, c, T(a*sn))
			}
		}
	}
}

// checkAttention panics unless the heads of s can share key/value heads.
func checkAttention(s kernels.AttentionShape) {
	if s.H < 1 || s.K < 1 || s.D < 1 || s.H%s.K != 0 {
		panic("ref: query heads are not a multiple of key/value heads")
	}
}
