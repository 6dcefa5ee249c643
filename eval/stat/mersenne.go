package stat

// mersenne is the generator MT19937 (Matsumoto and Nishimura 1998), seeded by its authors' init_genrand.
// NumPy's legacy functions use it; here it draws what verl draws. Not safe for concurrent use.
type mersenne struct {
	state [624]uint32
	next  int
}

func newMersenne(seed uint32) *mersenne {
	m := &mersenne{next: 624}
	m.state[0] = seed
	for i := uint32(1); i < 624; i++ {
		last := m.state[i-1]
		m.state[i] = 1812433253*(last^last>>30) + i
	}
	return m
}

func (m *mersenne) uint32() uint32 {
	if m.next == len(m.state) {
		m.twist()
	}
	y := m.state[m.next]
	m.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

func (m *mersenne) twist() {
	const n, shift = 624, 397
	for i := range m.state {
		y := m.state[i]&0x80000000 | m.state[(i+1)%n]&0x7fffffff
		m.state[i] = m.state[(i+shift)%n] ^ y>>1 ^ (y&1)*0x9908b0df
	}
	m.next = 0
}

// below returns a number from 0 to n-1, as NumPy's choice does: words cut to the bits of n-1 until one
// fits. If n is at most 1 it consumes no word.
func (m *mersenne) below(n int) int {
	last := uint32(n - 1)
	mask := last
	for s := 1; s < 32; s *= 2 {
		mask |= mask >> s
	}
	for last > 0 {
		if w := m.uint32() & mask; w <= last {
			return int(w)
		}
	}
	return 0
}
