package form

import (
	"encoding/binary"
	"slices"
)

// limit is an expression whose texts are allowed, or all others. It calls no rules.
type limit struct {
	e   expr
	not bool
}

// measure counts the units of a text, such as characters: least to most of them; most < 0: any number from least.
// A unit is the text of an expression, and no text of it begins another one.
type measure struct {
	unit        expr
	least, most int
}

// meet stands for the texts that limits allow together, made of units if there is a measure. It adds a deterministic
// automaton: each of its states is a state of each limit, and a count.
func meet(limits []limit, m *measure) expr {
	return func(g *grammar, from, to node) {
		x := meeting{g: g, parts: &grammar{chars: g.chars}, measure: m, index: map[string]node{}, to: to}
		state := meetState{}
		for _, l := range limits {
			begin := x.add(l.e)
			x.not = append(x.not, l.not)
			state.sets = append(state.sets, begin)
		}
		if m != nil {
			state.sets = append(state.sets, x.add(m.unit))
		}
		if x.parts.large {
			g.large = true
			return
		}
		x.cut()
		g.skip(from, x.place(state))
		for len(x.left) > 0 && !g.large {
			s := x.left[0]
			x.left = x.left[1:]
			x.leave(s)
		}
	}
}

// meeting builds the automaton of meet.
type meeting struct {
	g, parts *grammar // what it adds to, and one with the nodes of all limits
	measure  *measure
	not      []bool // by limit
	out      []node // by limit, and of the unit: where its texts end
	begin    int32  // set with which a unit begins
	to       node
	ranges   [][2]byte // bytes that all limits treat alike
	index    map[string]node
	left     []meetState // whose bytes are still to be added

	sets  [][]node // of nodes, in order; the first is empty
	known map[string]int32
	steps [][]int32 // by set and range, 1 more than the set that follows; 0: not known
}

// meetState is a state: sets of nodes by limit, and of the unit, and how many units there have been.
type meetState struct {
	sets  []int32
	count int
}

// add adds a limit's nodes and returns the set with which it begins.
func (x *meeting) add(e expr) int32 {
	in, out := x.parts.node(), x.parts.node()
	e(x.parts, in, out)
	x.out = append(x.out, out)
	x.begin = x.set([]node{in})
	return x.begin
}

// cut finds bytes that no arc tells apart.
func (x *meeting) cut() {
	var at [257]bool
	for _, list := range x.parts.arcs {
		for _, a := range list {
			at[a.lo], at[int(a.hi)+1] = true, true
		}
	}
	first := 0
	for b := 1; b <= 256; b++ {
		if b == 256 || at[b] {
			x.ranges = append(x.ranges, [2]byte{byte(first), byte(b - 1)})
			first = b
		}
	}
}

// set returns the number of a set of nodes with all to which they lead.
func (x *meeting) set(nodes []node) int32 {
	if x.known == nil {
		x.known = map[string]int32{}
		x.set(nil)
	}
	seen := map[node]bool{}
	for _, n := range nodes {
		seen[n] = true
	}
	for i := 0; i < len(nodes); i++ {
		for _, to := range x.parts.skips[nodes[i]] {
			if !seen[to] {
				seen[to], nodes = true, append(nodes, to)
			}
		}
	}
	slices.Sort(nodes)
	var key []byte
	for _, n := range nodes {
		key = binary.LittleEndian.AppendUint32(key, uint32(n))
	}
	i, ok := x.known[string(key)]
	if !ok {
		i = int32(len(x.sets))
		x.known[string(key)], x.sets, x.steps = i, append(x.sets, nodes), append(x.steps, nil)
	}
	return i
}

// step returns the set after a byte of a range.
func (x *meeting) step(set int32, r int) int32 {
	if x.steps[set] == nil {
		x.steps[set] = make([]int32, len(x.ranges))
	}
	if to := x.steps[set][r]; to > 0 {
		return to - 1
	}
	var nodes []node
	for _, n := range x.sets[set] {
		for _, a := range x.parts.arcs[n] {
			if b := x.ranges[r][0]; a.lo <= b && b <= a.hi && !slices.Contains(nodes, a.to) {
				nodes = append(nodes, a.to)
			}
		}
	}
	to := x.set(nodes)
	x.steps[set][r] = to + 1
	return to
}

// place returns the node of a state.
func (x *meeting) place(s meetState) node {
	key := binary.LittleEndian.AppendUint32(nil, uint32(s.count))
	for _, set := range s.sets {
		key = binary.LittleEndian.AppendUint32(key, uint32(set))
	}
	n, ok := x.index[string(key)]
	if ok {
		return n
	}
	n = x.g.node()
	x.index[string(key)] = n
	x.left = append(x.left, s)
	if x.ends(s) {
		x.g.skip(n, x.to)
	}
	return n
}

// ends reports whether a text may end in a state.
func (x *meeting) ends(s meetState) bool {
	for i, not := range x.not {
		if _, ok := slices.BinarySearch(x.sets[s.sets[i]], x.out[i]); ok == not {
			return false
		}
	}
	return x.measure == nil || s.sets[len(x.not)] == x.begin && s.count >= x.measure.least
}

// leave adds the bytes that may follow a state.
func (x *meeting) leave(s meetState) {
	from := x.place(s)
	for r, bytes := range x.ranges {
		if next, ok := x.after(s, r); ok {
			x.g.arc(from, bytes[0], bytes[1], x.place(next))
		}
	}
}

// after returns the state after a byte of a range; ok is false if no text goes on with it.
func (x *meeting) after(s meetState, r int) (next meetState, ok bool) {
	next = meetState{make([]int32, len(s.sets)), s.count}
	for i, set := range s.sets {
		next.sets[i] = x.step(set, r)
		if next.sets[i] == 0 && (i == len(x.not) || !x.not[i]) {
			return next, false
		}
	}
	if x.measure == nil {
		return next, true
	}
	i, m := len(x.not), x.measure
	if _, whole := slices.BinarySearch(x.sets[next.sets[i]], x.out[i]); whole {
		next.sets[i] = x.begin
		next.count++
		if m.most < 0 {
			next.count = min(next.count, m.least)
		}
	}
	return next, m.most < 0 || next.count <= m.most
}
