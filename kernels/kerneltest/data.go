package kerneltest

import (
	"hash/fnv"
	"math"

	"exp/kernels"
)

// stream is a source of test data that depends on its label alone, not on the
// machine: no function of package math is used that may differ between them.
type stream struct {
	key [2]uint32
	n   uint32
	// normal leaves out subnormals: a processor takes a hundred times as long over
	// one, so benchmarks would measure nothing else.
	normal bool
}

func newStream(label string) *stream {
	h := fnv.New64a()
	h.Write([]byte(label))
	return &stream{key: kernels.PhiloxKey(h.Sum64())}
}

// benchStream is newStream for benchmarks.
func benchStream(label string) *stream {
	r := newStream(label)
	r.normal = true
	return r
}

func (r *stream) words() (a, b, c, d uint32) {
	r.n++
	return kernels.PhiloxWords(r.key[0], r.key[1], r.n, 0, 0, 0)
}

// intn returns an integer of [0,n).
func (r *stream) intn(n int) int {
	a, _, _, _ := r.words()
	return int(uint64(a) * uint64(n) >> 32)
}

// floats returns n values of mean 0 and variance 1. Their full significands show any
// other order of rounding. About every 16th is a special case in fast code: zeros of
// both signs and a subnormal.
func (r *stream) floats(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		a, b, c, d := r.words()
		switch a % 64 {
		case 0, 1:
			x[i] = 0
		case 2:
			x[i] = float32(math.Copysign(0, -1))
		case 3:
			if !r.normal {
				x[i] = 3e-41
				break
			}
			fallthrough
		default:
			// The sum of three uniforms on [-1,1] has variance 1.
			x[i] = uniform(b) + uniform(c) + uniform(d)
		}
	}
	return x
}

// uniform maps a word to [-1,1) with a full significand near 0.
func uniform(w uint32) float32 { return float32(float64(int32(w)) * 0x1p-31) }

// uniforms returns n values of [0,1) as Sample is given them.
func (r *stream) uniforms(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		a, _, _, _ := r.words()
		x[i] = kernels.Uniform24(a)
	}
	return x
}

// scaled returns n values of standard deviation a.
func (r *stream) scaled(n int, a float32) []float32 {
	x := r.floats(n)
	for i := range x {
		x[i] *= a
	}
	return x
}

// positive returns n values of [½,2).
func (r *stream) positive(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		a, _, _, _ := r.words()
		x[i] = 1.25 + float32(0.75*uniform(a))
	}
	return x
}

// ids returns n integers of [0,limit).
func (r *stream) ids(n, limit int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(r.intn(limit))
	}
	return x
}

// permutation returns 0 to n-1 in random order.
func (r *stream) permutation(n int) []int {
	p := make([]int, n)
	for i := range p {
		j := r.intn(i + 1)
		p[i] = p[j]
		p[j] = i
	}
	return p
}

// cuts returns ascending offsets from 0 to n whose gaps are between 1 and limit.
func (r *stream) cuts(n, limit int) []int32 {
	offsets := []int32{0}
	for at := 0; at < n; {
		at = min(n, at+1+r.intn(limit))
		offsets = append(offsets, int32(at))
	}
	return offsets
}
