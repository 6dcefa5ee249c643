// Package form restricts completions to texts of a form: a regular expression, one of some texts, JSON that follows a
// schema, a context-free grammar, or tags around these. A Form tells a sampler which tokens may come next
// (rollout.Form), and never leads into a text that cannot be completed.
//
// A form is an automaton over bytes that may call parts of itself, so that JSON and the rules of grammars nest without
// a bound (grammar.go). It is made deterministic as far as completions go (states.go). The tokens that a state allows
// come from a walk through the vocabulary's texts as a tree (vocabulary.go), once for each state. So a token may begin
// or end within a character, or span several parts of a form: any way to write an allowed text in tokens is allowed.
//
// Compared with XGrammar (arXiv:2411.15100) nothing is computed ahead, and each state looks through the whole tree.
// Not covered: forms that need to remember text, such as unique items of any text or back references.
package form

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"exp/train/rollout"
)

// Spec says which texts have a form. One of the first six fields is set, or Calls, or both.
type Spec struct {
	Regex   string          // Go's regular expressions (RE2), of the whole text
	Choice  []string        // one of these texts
	Schema  json.RawMessage // JSON that follows this JSON schema
	Object  bool            // any JSON object
	Grammar string          // a text of root in this grammar, in GBNF
	Tags    json.RawMessage // texts of this structural tag, as XGrammar has them
	Calls   *Calls          // calls of tools, or texts as another field says
	Compact bool            // JSON has no white space between the parts of a value

	// Thoughts, if not empty, closes thoughts that the prompt has opened: any text up to it, and line ends, come
	// before the form.
	Thoughts string
	Channels Channels         // zero: answers have none
	Marks    map[int32]string // tokens without a text that stand for parts of the texts around calls and in channels
}

// Channels say how an answer has its parts in channels: thoughts, if any, come first. Open begins them and Close ends
// them, and they have none of Ends, which are words. Text stands before a text that calls nothing.
type Channels struct{ Open, Close, Ends, Text string }

// Error says why a Spec is refused.
type Error struct {
	Part string // "regex", "choice", "json", "grammar", "structural_tag" or "tools"
	Err  error
}

func (e *Error) Error() string { return e.Part + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Form is a form for the tokens of a vocabulary. Safe for concurrent use.
type Form struct {
	vocab *Vocabulary
	g     *grammar
	class [256]uint8 // of bytes: the whole grammar treats the bytes of a class alike
	bytes []byte     // by class: one of its bytes
	marks map[int32][]byte

	mu    sync.Mutex // of what follows
	t     *table
	room  int // bytes of a table
	dead  *state
	out   node            // where a text ends
	list  []config        // room of state
	calls []frame         // too: by the rank of a rule that is called, where that goes on
	waits []uint64        // too: a bit for each rank, set where a rule is called and not yet begun
	seen  map[config]bool // of list
	path  []*state        // room of fill
	begin *state
}

var _ rollout.Form = (*Form)(nil)

// New makes a form. The error is an *Error.
func New(s Spec, v *Vocabulary) (*Form, error) {
	g := &grammar{chars: v.chars, compact: s.Compact}
	part, body, err := s.expr(g)
	if err != nil {
		return nil, &Error{part, err}
	}
	switch thoughts := s.Channels.thoughts(g); {
	case s.Channels != (Channels{}) && s.Thoughts == "":
		body = seq(optional(seq(g.marked(s.Channels.Open), thoughts)), body)
	case s.Channels != (Channels{}):
		body = seq(thoughts, body)
	case s.Thoughts != "":
		body = seq(until(s.Thoughts), repeat(text("\n"), 0, 2), body)
	}
	main := g.define("the form")
	body(g, g.rules[main].in, g.rules[main].out)
	if err := g.finish(main); err != nil {
		return nil, &Error{part, err}
	}
	f := &Form{vocab: v, g: g, seen: map[config]bool{}, path: make([]*state, v.deepest+2), marks: g.marks,
		room: mostBytes, out: g.rules[main].out, calls: make([]frame, len(g.rules)),
		waits: make([]uint64, len(g.rules)/64+1)}
	f.classify()
	f.dead = &state{}
	f.t = newTable(f)
	f.begin = f.state([]config{{at: g.rules[main].in}})
	return f, nil
}

// thoughts returns thoughts up to their end.
func (c *Channels) thoughts(g *grammar) expr {
	any := star(char(0, utf8.MaxRune))
	limits := []limit{{any, false}}
	for _, end := range strings.Fields(c.Ends) {
		limits = append(limits, limit{seq(any, text(end), any), true})
	}
	return seq(meet(limits, nil), g.marked(c.Close))
}

// expr returns the texts of a form, without thoughts, and the part of s that says so.
func (s *Spec) expr(g *grammar) (part string, e expr, err error) {
	g.mark(s.Marks)
	if s.Calls == nil {
		part, e, err = s.content(g)
		return part, seq(g.marked(s.Channels.Text), e), err
	}
	calls, err := s.Calls.expr(g)
	if err != nil {
		return "tools", nil, err
	}
	if s.Regex == "" && s.Choice == nil && s.Schema == nil && !s.Object && s.Grammar == "" && s.Tags == nil {
		return "tools", calls, nil
	}
	part, e, err = s.content(g)
	return part, alt(calls, seq(g.marked(s.Channels.Text), e)), err
}

// content returns the texts of a form without calls.
func (s *Spec) content(g *grammar) (part string, e expr, err error) {
	switch {
	case s.Regex != "":
		e, err = regex(s.Regex)
		return "regex", e, err
	case s.Choice != nil:
		if len(s.Choice) == 0 || slices.Contains(s.Choice, "") {
			return "choice", nil, errors.New("must have at least one text, and no empty one")
		}
		var list []expr
		for _, c := range s.Choice {
			list = append(list, text(c))
		}
		return "choice", alt(list...), nil
	case s.Schema != nil:
		e, err = schema(g, s.Schema)
		return "json", e, err
	case s.Object:
		return "json", jsonOf(g).object, nil
	case s.Grammar != "":
		e, err = grammarOf(g, s.Grammar)
		return "grammar", e, err
	case s.Tags != nil:
		e, err = structuralTag(g, s.Tags)
		return "structural_tag", e, err
	}
	return "form", nil, errors.New("says nothing")
}

// Check returns New's error for tokens that can write all texts.
func (s Spec) Check() error {
	_, err := New(s, &Vocabulary{})
	return err
}

// classify finds bytes that no arc tells apart.
func (f *Form) classify() {
	var cut [257]bool
	for _, list := range f.g.arcs {
		for _, a := range list {
			cut[a.lo], cut[int(a.hi)+1] = true, true
		}
	}
	f.bytes = []byte{0}
	for b := 1; b < 256; b++ {
		if cut[b] {
			f.bytes = append(f.bytes, byte(b))
		}
		f.class[b] = uint8(len(f.bytes) - 1)
	}
}

// Begin implements rollout.Form.
func (f *Form) Begin() rollout.FormState { return f.begin }

// Mask implements rollout.FormState.
func (s *state) Mask() []uint32 {
	f := s.t.f
	f.mu.Lock()
	defer f.mu.Unlock()
	s = f.current(s)
	if s.mask == nil {
		s.mask = f.fill(s)
		f.t.masks++
	}
	return s.mask
}

// Ends implements rollout.FormState.
func (s *state) Ends() bool { return s.ends }

// More implements rollout.FormState.
func (s *state) More() bool { return len(s.configs) > 0 }

// Next implements rollout.FormState.
func (s *state) Next(token int32) rollout.FormState {
	f := s.t.f
	f.mu.Lock()
	defer f.mu.Unlock()
	piece := f.piece(token)
	if len(piece) == 0 {
		return nil
	}
	if to := f.after(f.current(s), piece); to != f.dead {
		return to
	}
	return nil
}

// piece returns the bytes that a token adds, as the grammar has them; nil if it adds none.
func (f *Form) piece(token int32) []byte {
	if mark, ok := f.marks[token]; ok {
		return mark
	}
	return f.vocab.piece(token)
}

// after returns the state after some bytes.
func (f *Form) after(s *state, text []byte) *state {
	for _, b := range text {
		if s = f.step(s, f.class[b]); s == f.dead {
			break
		}
	}
	return s
}

// fill finds the tokens that may come in a state.
func (f *Form) fill(s *state) []uint32 {
	v := f.vocab
	mask := make([]uint32, (v.size+31)/32)
	allow := func(token int32) { mask[token/32] |= 1 << (token % 32) }
	f.path[0] = s
	for i := 0; i < len(v.bytes); {
		d := v.depth[i]
		to := f.step(f.path[d], f.class[v.bytes[i]])
		if to == f.dead {
			i = int(v.skip[i])
			continue
		}
		f.path[d+1] = to
		for _, token := range v.tokens[v.first[i]:v.first[i+1]] {
			allow(token)
		}
		i++
	}
	for token, mark := range f.marks {
		if f.after(s, mark) != f.dead {
			allow(token)
		}
	}
	return mask
}
