package pattern

import (
	"encoding/binary"
	"fmt"
	"regexp/syntax"
	"slices"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// automaton says whether an expression matches anywhere in a text, in one step per character. A state is the set of
// the program's instructions that may come next (Thompson, CACM 11(6), 1968): package regexp makes such sets for each
// text, this once, when a text first leads there, as RE2 does.
type automaton struct {
	insts      []syntax.Inst
	start      uint32
	conditions syntax.EmptyOp // of all instructions

	// Characters that neither instructions nor conditions tell apart are a class.
	bounds []rune               // first characters of intervals, ascending from 0
	class  []uint8              // class of each interval
	ascii  [utf8.RuneSelf]uint8 // class of each ASCII character
	member []rune               // a character of each class; the last is -1, the end of the text

	first                 *state
	matched, failed, lost *state // where the rest of the text does not matter; lost, as there are too many states
	limit                 int
	mu                    sync.Mutex // guards states
	states                map[string]*state
}

// state is a set of instructions after a character.
type state struct {
	insts  []uint32
	before rune                    // the character, or one that no condition tells from it; -1 at the start
	next   []atomic.Pointer[state] // by class; nil where no text has led
}

// maxStates bounds the states of a pattern. Mathematical answers lead most of the grader's to some dozen.
const maxStates = 1000

// newAutomaton compiles an expression, for at most limit states. It panics if the expression has errors.
func newAutomaton(expr string, limit int) *automaton {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic(fmt.Sprintf("pattern %q: %v", expr, err))
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		panic(fmt.Sprintf("pattern %q: %v", expr, err))
	}
	a := &automaton{insts: program.Inst, start: uint32(program.Start), limit: limit,
		matched: &state{}, failed: &state{}, lost: &state{}, states: map[string]*state{}}
	for _, in := range a.insts {
		if in.Op == syntax.InstEmptyWidth {
			a.conditions |= syntax.EmptyOp(in.Arg)
		}
	}
	a.first = a.lost
	if a.classify() {
		start := a.newSet()
		a.reach(start, a.start, 0)
		a.first = a.state(start, -1)
	}
	return a
}

// classify divides the characters into classes. It reports whether a byte can number them.
func (a *automaton) classify() bool {
	// conditions tell the ends of lines and words
	a.bounds = []rune{0, '\n', '\n' + 1, '0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1}
	readers := a.readers()
	slices.Sort(a.bounds)
	a.bounds = slices.Compact(a.bounds)
	classes := map[string]int{} // by what tells them apart
	traits := make([]byte, 1+len(readers))
	for _, r := range a.bounds {
		traits[0] = byte(standIn(r))
		for i, in := range readers {
			traits[1+i] = 0
			if reads(in, r) {
				traits[1+i] = 1
			}
		}
		c, ok := classes[string(traits)]
		if !ok {
			c = len(classes)
			classes[string(traits)] = c
			a.member = append(a.member, r)
		}
		a.class = append(a.class, uint8(c))
	}
	a.member = append(a.member, -1)
	for r := range rune(utf8.RuneSelf) {
		a.ascii[r] = a.classOf(r)
	}
	return len(a.member) <= 1<<8
}

// readers returns one of each kind of instructions that read a character, and adds to bounds where they begin and end
// to match.
func (a *automaton) readers() (list []*syntax.Inst) {
	known := map[string]bool{}
	for i := range a.insts {
		in := &a.insts[i]
		kind := fmt.Sprint(in.Op, in.Rune, len(in.Rune) == 1 && syntax.Flags(in.Arg)&syntax.FoldCase != 0)
		if !consumes(in) || known[kind] {
			continue
		}
		known[kind] = true
		list = append(list, in)
		switch {
		case in.Op == syntax.InstRuneAny || in.Op == syntax.InstRuneAnyNotNL:
		case len(in.Rune) == 1: // and perhaps its forms in the other case
			r := in.Rune[0]
			a.bounds = append(a.bounds, r, r+1)
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				a.bounds = append(a.bounds, f, f+1)
			}
		default:
			for k := 0; k < len(in.Rune); k += 2 {
				a.bounds = append(a.bounds, in.Rune[k], in.Rune[k+1]+1)
			}
		}
	}
	return list
}

// classOf returns the class of a character.
func (a *automaton) classOf(r rune) uint8 {
	i, found := slices.BinarySearch(a.bounds, r)
	if !found {
		i--
	}
	return a.class[i]
}

// standIn returns a character that no condition tells from r.
func standIn(r rune) rune {
	switch {
	case r < 0 || r == '\n':
		return r
	case syntax.IsWordChar(r):
		return 'a'
	}
	return ' '
}

func consumes(in *syntax.Inst) bool {
	switch in.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	}
	return false
}

// reads reports whether an instruction goes on after character r.
func reads(in *syntax.Inst, r rune) bool {
	switch in.Op {
	case syntax.InstRune, syntax.InstRune1:
		return in.MatchRune(r)
	case syntax.InstRuneAny:
		return true
	case syntax.InstRuneAnyNotNL:
		return r != '\n'
	}
	return false
}

// match reports whether the expression matches in s, and whether the states sufficed to tell.
func (a *automaton) match(s string) (found, known bool) {
	at := a.first
	for i := 0; i < len(s) && at.next != nil; {
		var class uint8
		if c := s[i]; c < utf8.RuneSelf {
			class = a.ascii[c]
			i++
		} else {
			r, n := utf8.DecodeRuneInString(s[i:])
			class = a.classOf(r)
			i += n
		}
		to := at.next[class].Load()
		if to == nil {
			to = a.step(at, int(class))
		}
		at = to
	}
	if at.next != nil {
		at = a.step(at, len(a.member)-1)
	}
	return at == a.matched, at != a.lost
}

// step returns the state after a character of a class, and keeps it.
func (a *automaton) step(at *state, class int) *state {
	to := at.next[class].Load()
	if to == nil {
		to = a.made(at, a.member[class])
		at.next[class].Store(to)
	}
	return to
}

// made makes the state after a character.
func (a *automaton) made(at *state, r rune) *state {
	met := syntax.EmptyOpContext(at.before, r)
	now, next := a.newSet(), a.newSet()
	for _, pc := range at.insts {
		a.reach(now, pc, met)
	}
	for _, pc := range now.list {
		switch in := &a.insts[pc]; {
		case in.Op == syntax.InstMatch:
			return a.matched
		case r >= 0 && reads(in, r):
			a.reach(next, in.Out, 0)
		}
	}
	if r < 0 {
		return a.failed
	}
	a.reach(next, a.start, 0) // a match may begin anywhere
	return a.state(next, r)
}

// set is a set of instructions.
type set struct {
	list []uint32
	has  []bool
}

func (a *automaton) newSet() *set { return &set{has: make([]bool, len(a.insts))} }

// reach adds to a set an instruction and those that follow without a character, through conditions that are met.
func (a *automaton) reach(to *set, pc uint32, met syntax.EmptyOp) {
	if to.has[pc] {
		return
	}
	to.has[pc] = true
	to.list = append(to.list, pc)
	switch in := &a.insts[pc]; in.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		a.reach(to, in.Out, met)
		a.reach(to, in.Arg, met)
	case syntax.InstNop, syntax.InstCapture:
		a.reach(to, in.Out, met)
	case syntax.InstEmptyWidth:
		if syntax.EmptyOp(in.Arg)&^met == 0 {
			a.reach(to, in.Out, met)
		}
	}
}

// state returns the state of a set after a character, an old one if there is one.
func (a *automaton) state(of *set, before rune) *state {
	conditional := false
	var insts []uint32
	for _, pc := range of.list {
		in := &a.insts[pc]
		switch {
		case in.Op == syntax.InstMatch:
			return a.matched
		case in.Op == syntax.InstEmptyWidth && (before < 0 || syntax.EmptyOp(in.Arg) != syntax.EmptyBeginText):
			conditional = true
			insts = append(insts, pc)
		case consumes(in):
			insts = append(insts, pc)
		}
	}
	if insts == nil {
		return a.failed
	}
	slices.Sort(insts)
	// conditions that look at the character
	back := syntax.EmptyBeginLine | syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary
	if before < 0 {
		back |= syntax.EmptyBeginText
	}
	if before = standIn(before); !conditional || a.conditions&back == 0 {
		before = ' '
	}
	key := binary.AppendVarint(nil, int64(before))
	for _, pc := range insts {
		key = binary.AppendUvarint(key, uint64(pc))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.states[string(key)]
	switch {
	case s != nil:
		return s
	case len(a.states) == a.limit:
		return a.lost
	}
	s = &state{insts: insts, before: before, next: make([]atomic.Pointer[state], len(a.member))}
	a.states[string(key)] = s
	return s
}
