package form

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// config is a place in a grammar within calls.
type config struct {
	at    node
	under int32 // frame of the innermost call; 0: none
}

// frame says where the calls of a rule that began together go on. They share what follows within the rule: else texts
// that can be read in many ways would have as many configs. It is sorted.
type frame []config

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
	index  map[string]int32
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
	return &table{f: f, frames: make([]frame, 1), index: map[string]int32{}, states: map[string]*state{}}
}

// frame returns the number of a frame, which it may sort.
func (t *table) frame(x frame) int32 {
	x = x.sort()
	key := appendConfigs(nil, x)
	i, ok := t.index[string(key)]
	if !ok {
		i = int32(len(t.frames))
		t.index[string(key)], t.frames = i, append(t.frames, slices.Clone(x))
		t.bytes += 50 + 2*len(key)
	}
	return i
}

// sort sorts configs, and returns each of them once.
func (x frame) sort() frame {
	slices.SortFunc(x, func(a, b config) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.under, b.under))
	})
	return slices.Compact(x)
}

func appendConfigs(key []byte, list []config) []byte {
	for _, c := range list {
		key = binary.LittleEndian.AppendUint32(key, uint32(c.at))
		key = binary.LittleEndian.AppendUint32(key, uint32(c.under))
	}
	return key
}

// current returns s in the table that is in use, which is not full.
func (f *Form) current(s *state) *state {
	if f.t.bytes > f.room || f.t.masks > mostMasks {
		f.t = newTable(f)
	}
	if s.t == f.t {
		return s
	}
	return f.intern(f.t.take(s.t, s.configs, map[int32]int32{0: 0}), s.ends)
}

// take returns configs of another table, whose frames it adds. known has the numbers of frames that were added.
func (t *table) take(from *table, list []config, known map[int32]int32) []config {
	moved := make(frame, len(list))
	for i, c := range list {
		under, ok := known[c.under]
		if !ok {
			under = t.frame(t.take(from, from.frames[c.under], known))
			known[c.under] = under
		}
		moved[i] = config{c.at, under}
	}
	return moved
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
	g, ends, done := f.g, false, 0
	clear(f.seen)
	for _, c := range list {
		f.seen[c] = true
	}
	add := func(c config) {
		if !f.seen[c] {
			f.seen[c], list = true, append(list, c)
		}
	}
	for top := len(f.waits) - 1; ; {
		for ; done < len(list); done++ {
			c := list[done]
			if g.outs[c.at] {
				ends = ends || c.under == 0
				for _, back := range f.t.frames[c.under] {
					add(back)
				}
				continue
			}
			for _, to := range g.skips[c.at] {
				add(config{to, c.under})
			}
			for _, x := range g.calls[c.at] {
				f.call(x, c.under)
				if g.nullable[x.rule] {
					add(config{x.back, c.under})
				}
			}
		}
		// No rule that is left calls the one of the highest rank before a byte, so that all of its calls are known. It
		// calls lower ones only.
		for top >= 0 && f.waits[top] == 0 {
			top--
		}
		if top < 0 {
			break
		}
		bit := bits.Len64(f.waits[top]) - 1
		f.waits[top] &^= 1 << bit
		rank := 64*top + bit
		add(config{g.rules[g.ranked[rank]].in, f.t.frame(f.calls[rank])})
		f.calls[rank] = f.calls[rank][:0]
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

// call notes a call at a place within others. Where nothing follows in the rule that calls, the call goes on where
// that does, so that long lists need no deep frames.
func (f *Form) call(x call, under int32) {
	rank := f.g.rank[x.rule]
	f.waits[rank/64] |= 1 << (rank % 64)
	backs := &f.calls[rank]
	switch {
	case !f.g.leads(x.back):
		*backs = append(*backs, config{x.back, under})
	case under == 0:
		*backs = append(*backs, config{f.out, 0})
	default:
		*backs = append(*backs, f.t.frames[under]...)
	}
}

// intern returns the state of some places that take bytes.
func (f *Form) intern(takes frame, ends bool) *state {
	takes = takes.sort()
	key := appendConfigs(make([]byte, 0, 8*len(takes)+1), takes)
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
