package tokenizer

import "math/bits"

// pairs maps pairs of numbers to values: a hash table with open addressing, at most 3/4
// full. The keys lie apart from the values, so that the search for a pair that is not there
// reads few cache lines.
type pairs[V any] struct {
	keys  []uint64 // noPair if empty
	vals  []V
	used  int
	shift uint // 64 less the bits of a slot's number
}

// noPair cannot be a key: the numbers of a pair are below 1<<31.
const noPair = ^uint64(0)

func pairKey(a, b int32) uint64 { return uint64(uint32(a))<<32 | uint64(uint32(b)) }

// newPairs returns a table with room for n pairs.
func newPairs[V any](n int) *pairs[V] {
	size := 16
	for 3*size < 4*n {
		size *= 2
	}
	p := &pairs[V]{keys: make([]uint64, size), vals: make([]V, size), shift: uint(65 - bits.Len(uint(size)))}
	for i := range p.keys {
		p.keys[i] = noPair
	}
	return p
}

// slot returns the slot that holds or would hold key.
func (p *pairs[V]) slot(key uint64) uint64 {
	mask := uint64(len(p.keys) - 1)
	i := key * 0x9E3779B97F4A7C15 >> p.shift // the upper bits depend on both numbers
	for p.keys[i] != key && p.keys[i] != noPair {
		i = (i + 1) & mask
	}
	return i
}

// set gives a pair its value; the last call for a pair wins.
func (p *pairs[V]) set(key uint64, v V) {
	i := p.slot(key)
	if p.keys[i] == noPair {
		if 4*(p.used+1) > 3*len(p.keys) {
			p.grow()
			i = p.slot(key)
		}
		p.used++
	}
	p.keys[i], p.vals[i] = key, v
}

// grow doubles the table.
func (p *pairs[V]) grow() {
	old := *p
	*p = *newPairs[V](len(old.keys))
	for i, key := range old.keys {
		if key != noPair {
			p.set(key, old.vals[i])
		}
	}
}

// get returns the value of a pair.
func (p *pairs[V]) get(key uint64) (v V, ok bool) {
	i := p.slot(key)
	if p.keys[i] == noPair {
		return v, false
	}
	return p.vals[i], true
}
