package ranks

import "exp/kernels"

// pieceElements is the length of a node's pieces in messages: 1 MiB of float32, which keeps
// the room for the pieces of all peers small.
const pieceElements = 1 << 18

// Sum is the sum of a vector over the slices of a mini-batch: the balanced binary tree over
// slices 0 to G-1, one float addition an element and node. Its bits depend on the slices
// alone, not on the ranks that compute them.
type Sum struct {
	be     kernels.Backend
	group  Group
	way    way
	slices int
	lo, hi int   // slices of this rank
	ends   []int // of the ranks' shards
	stack  stack
	piece  kernels.Buffer // pieces of nodes of other ranks
	owned  []kernels.Buffer
}

// NewSum makes a sum of vectors that arrive in grads, over slices, a power of two and at
// least as many as ranks. It allocates a vector for each level of the tree below this rank's
// nodes.
func NewSum(be kernels.Backend, g Group, slices int, grads kernels.Buffer) (*Sum, error) {
	return newSum(be, g, wayOf(g.Size(), grads.Len()), slices, grads)
}

func newSum(be kernels.Backend, g Group, w way, slices int, grads kernels.Buffer) (*Sum, error) {
	s := &Sum{be: be, group: g, way: w, slices: slices, ends: Shards(grads.Len(), g.Size()),
		stack: stack{be: be, grads: grads}}
	s.lo, s.hi = Range(slices, g.Size(), g.Rank())
	alloc := func(n int) (kernels.Buffer, error) {
		b, err := be.Alloc(grads.DType(), n)
		if err != nil {
			s.Close()
			return b, &kernels.RoomError{Part: kernels.WeightRoom, Err: err}
		}
		s.owned = append(s.owned, b)
		return b, nil
	}
	for range waiting(s.lo, s.hi) {
		b, err := alloc(grads.Len())
		if err != nil {
			return nil, err
		}
		s.stack.room = append(s.stack.room, b)
	}
	if n := w.pieces(slices, g.Size(), g.Rank()); n > 0 {
		var err error
		if s.piece, err = alloc(n * pieceLen(w, s.ends, g.Rank())); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Room returns the most floats that a rank keeps for a Sum of vectors of n elements, beyond
// the vector itself.
func Room(slices, size, n int) (most int) { return room(wayOf(size, n), slices, size, n) }

func room(w way, slices, size, n int) (most int) {
	ends := Shards(n, size)
	for r := range size {
		lo, hi := Range(slices, size, r)
		most = max(most, int(waiting(lo, hi)*n)+int(w.pieces(slices, size, r)*pieceLen(w, ends, r)))
	}
	return most
}

// Waiting returns how many vectors of Room one process writes to if only the first present of so many slices have
// rows.
func Waiting(slices, present int) int { return waiting(0, min(slices, present+1)) }

// foreign returns the number of nodes that ranks other than this one own.
func foreign(slices, size, rank int) (n int) {
	for r := range size {
		if r != rank {
			n += len(owned(Range(slices, size, r)))
		}
	}
	return n
}

// pieceLen is the length of the pieces that a rank receives: of its own shard, or with halving
// of any.
func pieceLen(w way, ends []int, rank int) int {
	if w == halving {
		rank = 0 // no shard is longer
	}
	lo, hi := bounds(ends, rank)
	return min(pieceElements, hi-lo)
}

// Close frees the room.
func (s *Sum) Close() {
	for _, b := range s.owned {
		s.be.Free(b)
	}
	s.owned = nil
}

// Slices returns the slices of this rank: lo to hi.
func (s *Sum) Slices() (lo, hi int) { return s.lo, s.hi }

// Shard returns the elements that Of leaves with this rank: lo to hi.
func (s *Sum) Shard() (lo, hi int) { return bounds(s.ends, s.group.Rank()) }

// Ends returns the end of each rank's shard.
func (s *Sum) Ends() []int { return s.ends }

// Of calls slice for each of this rank's slices that are present; it fills grads. Then it
// sums all ranks' slices and leaves this rank's shard of the sum in grads. present says of
// each slice of the mini-batch whether it has rows.
func (s *Sum) Of(present []bool, slice func(i int)) error {
	s.stack.clear()
	for i := s.lo; i < s.hi; i++ {
		if present[i] {
			slice(i)
		}
		s.stack.push(i, present[i], i+1 < s.hi)
	}
	lo, hi := s.Shard()
	if s.group.Size() == 1 {
		s.put(lo, hi, s.stack.data[0])
		return nil
	}
	if s.way == halving {
		return s.halve(present)
	}
	return s.scatter(present)
}

// put copies the sum of elements lo to hi to its place in grads.
func (s *Sum) put(lo, hi int, x kernels.Buffer) {
	if at := s.stack.grads.Slice(lo, hi); at != x {
		s.be.Copy(at, x)
	}
}

// longest is the length of the longest shard, the first one's.
func (s *Sum) longest() int { return s.ends[0] }

// scatter sends each node's pieces to the ranks that own their elements, which add them.
func (s *Sum) scatter(present []bool) error {
	lo, hi := s.Shard()
	for at := 0; at < s.longest(); at += pieceElements {
		have := map[node]kernels.Buffer{}
		n := max(0, min(pieceElements, hi-lo-at))
		parts := append(s.sends(at), s.receives(present, n, have)...)
		s.be.Sync()
		if err := s.group.Exchange(parts); err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		for k, x := range s.stack.data {
			if !x.Empty() {
				x = x.Slice(lo+at, lo+at+n)
			}
			have[s.stack.nodes[k]] = x
		}
		s.put(lo+at, lo+at+n, join(s.be, s.slices, have))
	}
	return nil
}

// sends lists the pieces of this rank's nodes that begin at elements of each shard.
func (s *Sum) sends(at int) (parts []Part) {
	for r := range s.group.Size() {
		lo, hi := bounds(s.ends, r)
		lo, hi = lo+at, min(hi, lo+at+pieceElements)
		if r == s.group.Rank() || lo >= hi {
			continue
		}
		for k, x := range s.stack.data {
			if !x.Empty() {
				parts = append(parts, Part{Data: x.Slice(lo, hi), Peer: r, Tag: k, Send: true})
			}
		}
	}
	return parts
}

// receives lists the pieces of n elements that come from other ranks, and puts them in have.
func (s *Sum) receives(present []bool, n int, have map[node]kernels.Buffer) (parts []Part) {
	at := 0
	for r := range s.group.Size() {
		if r == s.group.Rank() || n == 0 {
			continue
		}
		for k, x := range owned(Range(s.slices, s.group.Size(), r)) {
			have[x] = kernels.Buffer{}
			if x.present(present) {
				have[x] = s.piece.Slice(at, at+n)
				parts = append(parts, Part{Data: have[x], Peer: r, Tag: k})
				at += n
			}
		}
	}
	return parts
}
