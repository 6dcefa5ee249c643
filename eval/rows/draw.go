package rows

import "math/bits"

// Draw returns size different numbers from 0 to total-1 in random order: what
//
//	numpy.random.default_rng(seed).choice(total, size=size, replace=False)
//
// returns, with which verl takes max_samples rows of its data. It panics unless 0 <= size <= total.
func Draw(total, size int, seed uint64) []int {
	if size < 0 || size > total {
		panic("rows: draw of more rows than there are")
	}
	g := newPCG64(seed)
	// For a large share of a large population, numpy shuffles the end of the whole list.
	const large, share = 10000, 50
	if total > large && size > total/share {
		all := make([]int, total)
		for i := range all {
			all[i] = i
		}
		g.shuffle(all, max(total-size, 1))
		return all[total-size:]
	}
	// Else it takes Floyd's algorithm, then shuffles the result.
	drawn, taken := make([]int, size), make(map[int]bool, size)
	for j := total - size; j < total; j++ {
		x := int(g.below(uint64(j)))
		if taken[x] {
			x = j
		}
		taken[x], drawn[j-total+size] = true, x
	}
	g.shuffle(drawn, 1)
	return drawn
}

// pcg64 is numpy's default generator: PCG XSL RR 128/64 (O'Neill 2014), seeded by a SeedSequence. Not safe
// for concurrent use.
type pcg64 struct {
	hi, lo       uint64 // state
	incHi, incLo uint64 // increment, odd

	half   uint32 // upper half of the last number, if halved
	halved bool
}

func newPCG64(seed uint64) *pcg64 {
	w := seedWords(seed)
	g := &pcg64{incHi: w[2]<<1 | w[3]>>63, incLo: w[3]<<1 | 1}
	g.step() // from 0: the increment
	var carry uint64
	g.lo, carry = bits.Add64(g.lo, w[1], 0)
	g.hi, _ = bits.Add64(g.hi, w[0], carry)
	g.step()
	return g
}

// step advances the state: state · multiplier + increment, modulo 2¹²⁸.
func (g *pcg64) step() {
	const mulHi, mulLo = 2549297995355413924, 4865540595714422341
	hi, lo := bits.Mul64(g.lo, mulLo)
	hi += g.hi*mulLo + g.lo*mulHi
	var carry uint64
	g.lo, carry = bits.Add64(lo, g.incLo, 0)
	g.hi, _ = bits.Add64(hi, g.incHi, carry)
}

func (g *pcg64) uint64() uint64 {
	g.step()
	return bits.RotateLeft64(g.hi^g.lo, -int(g.hi>>58))
}

// uint32 returns the lower half of the next number, then its upper half.
func (g *pcg64) uint32() uint32 {
	if g.halved {
		g.halved = false
		return g.half
	}
	x := g.uint64()
	g.half, g.halved = uint32(x>>32), true
	return uint32(x)
}

// below returns a number from 0 to most (Lemire 2019). It consumes nothing if most is 0, and halves of
// numbers as long as most has 32 bits.
func (g *pcg64) below(most uint64) uint64 {
	const word = 1<<32 - 1
	switch {
	case most == 0:
		return 0
	case most == word:
		return uint64(g.uint32())
	case most < word:
		n := uint32(most) + 1
		m := uint64(g.uint32()) * uint64(n)
		if uint32(m) < n {
			for least := (word - uint32(most)) % n; uint32(m) < least; {
				m = uint64(g.uint32()) * uint64(n)
			}
		}
		return m >> 32
	}
	n := most + 1 // an int is below 2⁶³
	hi, lo := bits.Mul64(g.uint64(), n)
	if lo < n {
		for least := (1<<64 - 1 - most) % n; lo < least; {
			hi, lo = bits.Mul64(g.uint64(), n)
		}
	}
	return hi
}

// shuffle exchanges the elements from the last down to first with ones at or before them.
func (g *pcg64) shuffle(list []int, first int) {
	for i := len(list) - 1; i >= first; i-- {
		j := g.below(uint64(i))
		list[i], list[j] = list[j], list[i]
	}
}

// seedWords returns SeedSequence(seed).generate_state(4, uint64): the words of the seed are mixed into a
// pool of four that gives the state.
func seedWords(seed uint64) (state [4]uint64) {
	const (
		initA, multA = 0x43b0d7e5, 0x931e8875
		initB, multB = 0x8b51f9dd, 0x58f38ded
		mixL, mixR   = 0xca01f9dd, 0x4973f715
	)
	hash := uint32(initA)
	hashed := func(x uint32) uint32 {
		x ^= hash
		hash *= multA
		x *= hash
		return x ^ x>>16
	}
	// A seed below 2³² is one word; the pool is filled up with zeros either way.
	pool := [4]uint32{hashed(uint32(seed)), hashed(uint32(seed >> 32)), hashed(0), hashed(0)}
	for from := range pool {
		for to := range pool {
			if from != to {
				x := mixL*pool[to] - mixR*hashed(pool[from])
				pool[to] = x ^ x>>16
			}
		}
	}
	hash = initB
	var words [8]uint32
	for i := range words {
		x := pool[i%len(pool)] ^ hash
		hash *= multB
		x *= hash
		words[i] = x ^ x>>16
	}
	for i := range state {
		state[i] = uint64(words[2*i]) | uint64(words[2*i+1])<<32
	}
	return state
}
