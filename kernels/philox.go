package kernels

import "math/bits"

// Philox returns four independent uniform 32-bit words for a key and a counter:
// Philox 4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", SC'11). It is stateless: equal arguments give equal words. A sample
// uses its token position as the counter, so it does not depend on the other samples.
func Philox(key [2]uint32, ctr [4]uint32) [4]uint32 {
	a, b, c, d := PhiloxWords(key[0], key[1], ctr[0], ctr[1], ctr[2], ctr[3])
	return [4]uint32{a, b, c, d}
}

// PhiloxWords is Philox for loops that draw much: unlike arrays, Go passes words in registers.
func PhiloxWords(k0, k1, a, b, c, d uint32) (uint32, uint32, uint32, uint32) {
	const (
		m0, m1 = 0xD2511F53, 0xCD9E8D57 // multipliers
		w0, w1 = 0x9E3779B9, 0xBB67AE85 // key schedule: golden ratio, sqrt(3)-1
	)
	for range 10 {
		hi0, lo0 := bits.Mul32(m0, a)
		hi1, lo1 := bits.Mul32(m1, c)
		a, b, c, d = hi1^b^k0, lo1, hi0^d^k1, lo0
		k0 += w0
		k1 += w1
	}
	return a, b, c, d
}

// PhiloxKey splits a 64-bit seed into a key.
func PhiloxKey(seed uint64) [2]uint32 {
	return [2]uint32{uint32(seed), uint32(seed >> 32)}
}

// Uniform24 maps a random word to [0,1) by its upper 24 bits, which a float32 holds
// exactly.
func Uniform24(word uint32) float32 {
	return float32(word>>8) * (1.0 / (1 << 24))
}
