package form

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// config is a place in a grammar within calls.
type config struct {
	at    node
	under int32 // frame of the innermost call; 0: none
}

// frame says where a call goes on, and within which other one it is.
type frame struct {
	back  node
	under int32
}

// state is a set of places in which a text may be: a state of the deterministic automaton. What its exported methods
// tell does not change.
type state struct {
	t       *table
	configs []config // that take bytes, in order
	ends    bool     // a text may end here
	kept    bool     // in the table
	to      []*state // by class of bytes; nil: not known yet
	mask    []uint32 // nil: not known yet
}

// table holds states that have been reached. A full one is left for an empty one, which takes over the states that
// completions are in: the states of deep JSON, and of some expressions, are without number. Where a single mask leads
// to more states than a table holds, further ones are forgotten at once.
type table struct {
	f      *Form
	frames []frame // the first stands for none
	index  map[frame]int32
	states map[string]*state
	masks  int
	bytes  int // about what all of it takes, without masks
}

// A table that takes more bytes or has more masks is full. The masks of 150,000 tokens take 80 MB then.
const (
	mostBytes = 64 << 20
	mostMasks = 1 << 12
)

func newTable(f *Form) *table {
	return &table{f: f, frames: make([]frame, 1), index: map[frame]int32{}, states: map[string]*state{}}
}

// frame returns the number of a frame.
func (t *table) frame(x frame) int32 {
	i, ok := t.index[x]
	if !ok {
		i = int32(len(t.frames))
		t.index[x], t.frames = i, append(t.frames, x)
		t.bytes += 50
	}
	return i
}

// current returns s in the table that is in use, which is not full.
func (f *Form) current(s *state) *state {
	if f.t.bytes > f.room || f.t.masks > mostMasks {
		f.t = newTable(f)
	}
	if s.t == f.t {
		return s
	}
	moved := make([]config, len(s.configs))
	for i, c := range s.configs {
		moved[i] = config{c.at, f.t.take(s.t, c.under)}
	}
	return f.intern(moved, s.ends)
}

// take returns the number of a frame of another table.
func (t *table) take(from *table, i int32) int32 {
	var backs []node
	for ; i != 0; i = from.frames[i].under {
		backs = append(backs, from.frames[i].back)
	}
	for _, back := range slices.Backward(backs) {
		i = t.frame(frame{back, i})
	}
	return i
}

// step returns the state after a byte of a class.
func (f *Form) step(s *state, class uint8) *state {
	if s.to == nil {
		s.to = make([]*state, len(f.bytes))
		s.t.bytes += 8 * len(f.bytes)
	}
	if to := s.to[class]; to != nil {
		return to
	}
	b := f.bytes[class]
	f.list = f.list[:0]
	for _, c := range s.configs {
		for _, a := range f.g.arcs[c.at] {
			if a.lo <= b && b <= a.hi {
				f.list = append(f.list, config{a.to, c.under})
			}
		}
	}
	to := f.dead
	if len(f.list) > 0 {
		to = f.state(f.list)
	}
	if to == f.dead || to.kept {
		s.to[class] = to
	}
	return to
}

// state returns the state of some places and all to which they lead without a byte. It may overwrite list.
func (f *Form) state(list []config) *state {
	g, t, ends := f.g, f.t, false
	clear(f.seen)
	for _, c := range list {
		f.seen[c] = true
	}
	add := func(at node, under int32) {
		if c := (config{at, under}); !f.seen[c] {
			f.seen[c], list = true, append(list, c)
		}
	}
	for i := 0; i < len(list); i++ {
		c := list[i]
		if g.outs[c.at] {
			if c.under == 0 {
				ends = true
			} else {
				x := t.frames[c.under]
				add(x.back, x.under)
			}
			continue
		}
		for _, to := range g.skips[c.at] {
			add(to, c.under)
		}
		for _, x := range g.calls[c.at] {
			under := c.under
			if !g.leads(x.back) {
				under = t.frame(frame{x.back, under})
			}
			add(g.rules[x.rule].in, under)
		}
	}
	takes := list[:0]
	for _, c := range list {
		if len(g.arcs[c.at]) > 0 {
			takes = append(takes, c)
		}
	}
	f.list = list[:0]
	return f.intern(takes, ends)
}

// intern returns the state of some places that take bytes.
func (f *Form) intern(takes []config, ends bool) *state {
	slices.SortFunc(takes, func(a, b config) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.under, b.under))
	})
	takes = slices.Compact(takes)
	key := make([]byte, 0, 8*len(takes)+1)
	for _, c := range takes {
		key = binary.LittleEndian.AppendUint32(key, uint32(c.at))
		key = binary.LittleEndian.AppendUint32(key, uint32(c.under))
	}
	if ends {
		key = append(key, 1)
	}
	s := f.t.states[string(key)]
	if s == nil {
		s = &state{t: f.t, configs: slices.Clone(takes), ends: ends, kept: f.t.bytes < 2*f.room}
		if s.kept {
			f.t.states[string(key)] = s
			f.t.bytes += 2*len(key) + 200
		}
	}
	return s
}
