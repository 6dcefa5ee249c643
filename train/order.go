package train

import (
	"fmt"

	"exp/kernels"
)

// order hands out problems in batches: one per step unless groups are filtered. A batch
// takes perStep problems; an epoch is as many whole batches as the problems fill, each
// problem at most once.
type order struct {
	n, perStep int
	shuffled   bool
	seed       func(label string) uint64

	epoch int
	perm  []int
}

// step returns the problems of batch s, counted from 1, and its epoch, from 0. It is a
// function of s alone, so a resumed run continues in the same order.
func (o *order) step(s int) (problems []int, epoch int) {
	stepsPerEpoch := o.n / o.perStep
	epoch = (s - 1) / stepsPerEpoch
	if o.perm == nil || epoch != o.epoch {
		o.epoch, o.perm = epoch, o.permutation(epoch)
	}
	at := (s - 1) % stepsPerEpoch * o.perStep
	return o.perm[at : at+o.perStep], epoch
}

// permutation shuffles by Fisher and Yates with the words of a Philox stream. A 64-bit word
// modulo at most 2³² is uniform to within 2⁻³².
func (o *order) permutation(epoch int) []int {
	p := make([]int, o.n)
	for i := range p {
		p[i] = i
	}
	if !o.shuffled {
		return p
	}
	key := kernels.PhiloxKey(o.seed(fmt.Sprintf("data/epoch=%d", epoch)))
	for i := len(p) - 1; i > 0; i-- {
		j := int(philox64(key, i) % uint64(i+1))
		p[i], p[j] = p[j], p[i]
	}
	return p
}

// philox64 returns the i-th 64-bit word of a stream.
func philox64(key [2]uint32, i int) uint64 {
	w := kernels.Philox(key, [4]uint32{uint32(i), 0, 0, 0})
	return uint64(w[1])<<32 | uint64(w[0])
}
