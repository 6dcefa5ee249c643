package ref

import "exp/kernels"

// Dropout sets out[m,c] = x[m,c]·(1/(1-p)), or 0 with probability p; out and x
// are [M,C] and may be the same. Element c of row m is dropped if Uniform24 of
// word c%4 of Philox(keys[m], {c/4, layer, 0, 0}) is below p (compared in
// float64). keys [M,2] holds the two words of each row's key. 1/(1-p) is computed
// in float64 and rounded once. Dropout is its own backward pass. p is in [0,1).
func Dropout[T Float](out, x []T, keys []int32, C int, layer uint32, p float64) {
	M := len(out) / C
	if len(out) != M*C || len(x) != M*C || len(keys) != M*2 {
		panic("ref: Dropout: length mismatch")
	}
	if !(p >= 0 && p < 1) {
		panic("ref: Dropout: p is not in [0,1)")
	}
	scale := T(1 / (1 - p))
	for m := 0; m < M; m++ {
		key := [2]uint32{uint32(keys[2*m]), uint32(keys[2*m+1])}
		var words [4]uint32
		for c := 0; c < C; c++ {
			if c%4 == 0 {
				words = kernels.Philox(key, [4]uint32{uint32(c / 4), layer, 0, 0})
			}
			if float64(kernels.Uniform24(words[c%4])) < p {
				out[m*C+c] = 0
			} else {
				out[m*C+c] = x[m*C+c] * scale
			}
		}
	}
}
