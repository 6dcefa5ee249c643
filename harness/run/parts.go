package run

import (
	"strings"

	"exp/harness/stage"
	"exp/kernels"
	"exp/train"
	"exp/train/generate"
	"exp/train/model"
	"exp/train/ranks"
)

// parts is a list of parts of the memory.
type parts []Part

// add adds a part that takes any memory.
func (p *parts) add(name string, bytes int) {
	if bytes > 0 {
		*p = append(*p, Part{name, int64(bytes)})
	}
}

// addEngine adds the memory of a sampler whose cache has the placement's room, on each of the ranks that
// share its products.
func (p *parts) addEngine(o generate.Options, at stage.Placement, arch model.Config, h model.Heads,
	operand kernels.DType, shared int) {
	o.CacheTokens = at.CacheTokens
	cache, step := o.Bytes(arch, h, operand, shared)
	p.add(string(kernels.CacheRoom), cache)
	p.add(string(kernels.StepRoom), step)
}

// addLearner adds the memory of n parameters in training. bytes returns what their model takes: weights,
// the copies that products read, and gradients. A learner also has gradients that wait in the tree of
// slices, with pieces of other ranks' gradients. It has the optimizer's moments of its shard: size ranks
// share a mini-batch. off says which of these two parts are pinned.
func (p *parts) addLearner(pinned *parts, name string, bytes func(trainable bool, copies model.PackedLen) int,
	n int, copies model.PackedLen, off train.Offload, slices, size int) {
	none := func(out, in int) (packed, packedT int) { return 0, 0 }
	who, _, _ := strings.Cut(name, ":")
	place := func(onHost bool) *parts {
		if onHost {
			return pinned
		}
		return p
	}
	p.add(name, bytes(false, none))
	p.add(who+": copies of weights for products", bytes(true, copies)-bytes(true, none))
	p.add(who+": gradients", bytes(true, none)-bytes(false, none))
	place(off.Sums).add(who+": gradients of slices that wait", int(4*ranks.Room(slices, size, n)))
	place(off.Moments).add(who+": moments of the optimizer", int(8*ranks.Shards(n, size)[0]))
}
