package ranks

// part is some ranks of a group as a group.
type part struct {
	Group
	ranks []int // in the group
	own   int   // place of this rank in them
}

// Rank implements Group.
func (p part) Rank() int { return p.own }

// Size implements Group.
func (p part) Size() int { return len(p.ranks) }

// Exchange implements Group.
func (p part) Exchange(parts []Part) error {
	list := make([]Part, len(parts))
	for i, x := range parts {
		x.Peer = p.ranks[x.Peer]
		list[i] = x
	}
	return p.Group.Exchange(list)
}

// Between returns ranks lo to hi of g as a group; g itself if they are all of it. One of these ranks calls it.
func Between(g Group, lo, hi int) Group {
	if hi-lo == g.Size() {
		return g
	}
	p := part{Group: g, own: g.Rank() - lo}
	for r := lo; r < hi; r++ {
		p.ranks = append(p.ranks, r)
	}
	return p
}

// Grid cuts a group into those that share products, of tensor neighbours each, and those that
// share a mini-batch, one of each of these. It returns the two groups of this rank. tensor
// must divide the group's size.
func Grid(g Group, tensor int) (data, products Group) {
	if tensor == 1 {
		return g, Alone{}
	}
	rank, size := g.Rank(), g.Size()
	if size%tensor != 0 {
		panic("ranks: a grid is not full")
	}
	if size == tensor {
		return Alone{}, g
	}
	d, p := part{Group: g, own: rank / tensor}, part{Group: g, own: rank % tensor}
	for i := range size / tensor {
		d.ranks = append(d.ranks, int(i*tensor)+rank%tensor)
	}
	for i := range tensor {
		p.ranks = append(p.ranks, rank-rank%tensor+i)
	}
	return d, p
}
