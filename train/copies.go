package train

import (
	"encoding/json"
	"sort"

	"exp/kernels"
	"exp/train/model"
	"exp/train/ranks"
)

// Ranks may sample from a copy of the policy's weights (Parts.Copy): because more or fewer of them
// share products in sampling than in training, or because they only sample. Ranks that
// learn hold parts of one arena, and copies need other parts. Each rank says once what it holds and
// what it needs; then all know who sends what.

// copier brings the policy's weights to the copies.
type copier struct {
	be    kernels.Backend
	group ranks.Group
	from  kernels.Buffer  // what this rank holds of the arena
	to    *model.Backbone // its copy; nil: none
	fills []model.Fill    // of its copy
	turns []turn
}

// turn is a rank's part in giving every copy its next fill.
type turn struct{ send, take []transfer }

// transfer is n elements of the arena, which lie at held on the rank that has them, and at place at of
// a fill.
type transfer struct{ peer, held, at, n int }

// offer says which elements of the arena a rank holds, and which its copy takes one after the other.
type offer struct {
	Holds []model.Span
	Needs [][2]int
}

// newCopier makes the copier of a rank that holds spans of the arena in from; both may be empty. to may be nil. All
// ranks of g call it.
func newCopier(be kernels.Backend, g ranks.Group, from kernels.Buffer, holds []model.Span,
	to *model.Backbone) (*copier, error) {
	c := &copier{be: be, group: g, from: from, to: to}
	mine := offer{Holds: holds}
	if to != nil {
		c.fills = to.Fills()
	}
	for _, f := range c.fills {
		mine.Needs = append(mine.Needs, [2]int{f.Lo, f.Hi})
	}
	b, err := json.Marshal(mine)
	if err != nil {
		panic("train: " + err.Error()) // integers
	}
	all, err := ranks.Share(g, b)
	if err != nil {
		return nil, err
	}
	offers := make([]offer, len(all))
	for r := range all {
		if err := json.Unmarshal(all[r], &offers[r]); err != nil {
			return nil, err
		}
	}
	c.turns = turnsOf(g.Rank(), offers)
	return c, nil
}

// turnsOf returns the turns of a rank.
func turnsOf(rank int, offers []offer) (list []turn) {
	for i := 0; ; i++ {
		var own turn
		more := false
		for to, o := range offers {
			if i >= len(o.Needs) {
				continue
			}
			more = true
			for _, x := range gathered(offers, o.Needs[i], to, i) {
				from := x.peer
				if to == rank {
					own.take = append(own.take, x)
				} else if from == rank {
					x.peer = to
					own.send = append(own.send, x)
				}
			}
		}
		if !more {
			return list
		}
		list = append(list, own)
	}
}

// gathered returns which ranks give elements need[0] to need[1] of the arena to a rank: itself, else in turn
// those that hold them.
func gathered(offers []offer, need [2]int, to, turn int) (list []transfer) {
	for at := need[0]; at < need[1]; {
		var holders []transfer
		for r, o := range offers {
			s, ok := o.span(at)
			if !ok {
				continue
			}
			x := transfer{r, s.At + at - s.Lo, at - need[0], min(s.Hi, need[1]) - at}
			if r == to {
				holders = []transfer{x}
				break
			}
			holders = append(holders, x)
		}
		if len(holders) == 0 {
			panic("train: no rank holds a part of the weights")
		}
		x := holders[turn%len(holders)]
		list, at = append(list, x), at+x.n
	}
	return list
}

// span returns the span with an element that the rank holds.
func (o offer) span(at int) (s model.Span, ok bool) {
	i := sort.Search(len(o.Holds), func(i int) bool { return o.Holds[i].Hi > at })
	if i == len(o.Holds) || o.Holds[i].Lo > at {
		return s, false
	}
	return o.Holds[i], true
}

// copy sets the weights of all copies to the present ones. All ranks of the group call it.
func (c *copier) copy() error {
	room, err := c.room()
	if err != nil {
		return err
	}
	if !room.Empty() {
		defer c.be.Free(room)
	}
	for i, t := range c.turns {
		var parts []ranks.Part
		for _, x := range t.send {
			parts = append(parts, ranks.Part{Data: c.from.Slice(x.held, x.held+x.n), Peer: x.peer, Send: true})
		}
		for _, x := range t.take {
			to := room.Slice(x.at, x.at+x.n)
			if x.peer == c.group.Rank() {
				c.be.Copy(to, c.from.Slice(x.held, x.held+x.n))
			} else {
				parts = append(parts, ranks.Part{Data: to, Peer: x.peer})
			}
		}
		c.be.Sync()
		if err := c.group.Exchange(parts); err != nil {
			return err
		}
		if i < len(c.fills) {
			f := c.fills[i]
			f.Set(room.Slice(0, f.Hi-f.Lo))
			c.be.Sync()
		}
	}
	if c.to != nil {
		c.to.Refresh()
	}
	return nil
}

// room returns memory for the longest fill.
func (c *copier) room() (kernels.Buffer, error) {
	longest := 0
	for _, f := range c.fills {
		longest = max(longest, f.Hi-f.Lo)
	}
	if longest == 0 {
		return kernels.Buffer{}, nil
	}
	x, err := c.be.Alloc(c.be.Float(), longest)
	if err != nil {
		return x, &kernels.RoomError{Part: kernels.WeightRoom, Err: err}
	}
	return x, nil
}

// CopyBytes returns the memory of a copy of the weights on each of n ranks that share the products
// of sampling, with room for a fill; packed is the device's PackedLen.
func CopyBytes(c model.Config, n int, operand kernels.DType, packed model.PackedLen) int {
	h := model.Heads{LM: true}
	return c.BackboneBytes(true, kernels.F32, packed, operand, n) + c.AdapterBytes(h, false, packed, operand) +
		int((c.TowerLen()+c.LongestFill(n))*kernels.F32.Size())
}

// PrepareSampler gives the Sampler the policy's present weights if it draws from a copy of them that lacks the
// last update. All ranks call it before they sample.
func (t *Trainer) PrepareSampler() error {
	if t.Copy == nil || t.Samplers > 0 {
		return nil
	}
	updates := t.policy.opt.Steps() // the same on all ranks
	if t.copied && t.copiedUpdates == updates {
		return nil
	}
	if err := t.copyWeights(); err != nil {
		return err
	}
	t.copied, t.copiedUpdates = true, updates
	return nil
}

// copyWeights sets the weights of the copies.
func (t *Trainer) copyWeights() (err error) {
	if t.copier == nil {
		if t.copier, err = t.newCopier(); err != nil {
			return err
		}
	}
	return t.copier.copy()
}

// newCopier makes the copier between all ranks if some only sample, else between those that share
// the products of training: they hold all weights.
func (t *Trainer) newCopier() (*copier, error) {
	if t.onlySamples() {
		return newCopier(t.Backend, t.Ranks, kernels.Buffer{}, nil, t.Copy)
	}
	tensor := max(1, t.Tensor)
	group := t.Ranks
	if t.Samplers == 0 {
		_, group = ranks.Grid(t.Ranks, tensor)
	}
	return newCopier(t.Backend, group, t.Policy.Params(), t.Policy.Spans(t.Ranks.Rank()%tensor), t.Copy)
}
