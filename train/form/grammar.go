package form

import (
	"errors"
	"fmt"
	"slices"
)

// node is a place in a grammar.
type node int32

// arc takes a byte from lo to hi.
type arc struct {
	lo, hi byte
	to     node
}

// call takes a text of a rule, and goes on at back.
type call struct {
	rule int32
	back node
}

// rule is a part of a grammar that others call. Its texts lead from in to out, which nothing leaves.
type rule struct {
	name    string
	in, out node
}

// grammar is an automaton over bytes whose parts call each other: a recursive transition network.
type grammar struct {
	arcs    [][]arc  // by node
	skips   [][]node // by node: where it leads without a byte
	calls   [][]call // by node
	outs    []bool   // by node: it ends a rule
	rules   []rule
	chars   []rune           // characters that tokens can write, in order; nil: all
	marks   map[int32][]byte // tokens without a text, with the bytes that stand for them
	spelled map[int32]string // and the texts in whose place they are
	edges   int              // arcs, skips and calls
	large   bool
	compact bool // JSON has no white space between the parts of a value

	values       map[string]expr // of arguments, by what they follow
	json, python *jsonRules

	nullable []bool  // by rule: it has the empty text; set by finish
	rank     []int32 // by rule: higher than the rules that it may call before a byte; set by finish
	ranked   []int32 // by rank: the rule
}

// mostNodes and mostEdges bound a grammar: about 50 and 100 MB. A node has two or three edges in most forms, about 20
// where automata meet, and hundreds where a class of many characters is repeated.
const (
	mostNodes = 1 << 18
	mostEdges = 1 << 23
)

var errLarge = errors.New("the form is too large: its parts are repeated too often")

// expr adds the texts that it stands for between two nodes. It adds nothing that leaves `to` or enters `from`.
type expr func(g *grammar, from, to node)

// node adds a node.
func (g *grammar) node() node {
	if len(g.arcs) >= mostNodes {
		g.large = true
		return node(len(g.arcs) - 1)
	}
	g.arcs, g.skips, g.calls = append(g.arcs, nil), append(g.skips, nil), append(g.calls, nil)
	g.outs = append(g.outs, false)
	return node(len(g.arcs) - 1)
}

// edge reports whether there is room for another edge.
func (g *grammar) edge() bool {
	g.edges++
	g.large = g.large || g.edges > mostEdges
	return !g.large
}

func (g *grammar) skip(from, to node) {
	if g.edge() {
		g.skips[from] = append(g.skips[from], to)
	}
}

func (g *grammar) arc(from node, lo, hi byte, to node) {
	if g.edge() {
		g.arcs[from] = append(g.arcs[from], arc{lo, hi, to})
	}
}

// define adds a rule without texts.
func (g *grammar) define(name string) int32 {
	r := rule{name, g.node(), g.node()}
	g.outs[r.out] = true
	g.rules = append(g.rules, r)
	return int32(len(g.rules) - 1)
}

// shared returns an expression that calls a rule of e's texts: e is added once, however often that is used.
func (g *grammar) shared(name string, e expr) expr {
	r := g.define(name)
	e(g, g.rules[r].in, g.rules[r].out)
	return use(r)
}

// use calls a rule.
func use(r int32) expr {
	return func(g *grammar, from, to node) {
		if g.edge() {
			g.calls[from] = append(g.calls[from], call{r, to})
		}
	}
}

// never stands for no text, and empty for the empty one.
func never(*grammar, node, node) {}

func empty(g *grammar, from, to node) { g.skip(from, to) }

func seq(list ...expr) expr {
	switch len(list) {
	case 0:
		return empty
	case 1:
		return list[0]
	}
	return func(g *grammar, from, to node) {
		for _, e := range list[:len(list)-1] {
			mid := g.node()
			e(g, from, mid)
			from = mid
		}
		list[len(list)-1](g, from, to)
	}
}

func alt(list ...expr) expr {
	return func(g *grammar, from, to node) {
		for _, e := range list {
			e(g, from, to)
		}
	}
}

func optional(e expr) expr { return alt(empty, e) }

func star(e expr) expr {
	return func(g *grammar, from, to node) {
		in, out := g.node(), g.node()
		g.skip(from, in)
		e(g, in, out)
		g.skip(out, in)
		g.skip(in, to)
	}
}

// plus stands for e once or more.
func plus(e expr) expr {
	return func(g *grammar, from, to node) {
		in, out := g.node(), g.node()
		g.skip(from, in)
		e(g, in, out)
		g.skip(out, in)
		g.skip(out, to)
	}
}

// repeat stands for e least to most times; most < 0: any number from least.
func repeat(e expr, least, most int) expr {
	if most >= 0 && least > most {
		return never
	}
	return func(g *grammar, from, to node) {
		for n := 0; n != most && !g.large; n++ {
			if n >= least {
				if most < 0 {
					break
				}
				g.skip(from, to)
			}
			mid := g.node()
			e(g, from, mid)
			from = mid
		}
		if most < 0 {
			star(e)(g, from, to)
		} else {
			g.skip(from, to)
		}
	}
}

// finish removes what no text passes, and checks that main has a text.
func (g *grammar) finish(main int32) error {
	if g.large {
		return errLarge
	}
	live := g.leading(true)
	if !live[g.rules[main].in] {
		return errors.New("no text has the form, or the model's tokens can write none that does")
	}
	for n := range g.arcs {
		g.arcs[n] = slices.DeleteFunc(g.arcs[n], func(a arc) bool { return !live[a.to] })
		g.skips[n] = slices.DeleteFunc(g.skips[n], func(to node) bool { return !live[to] })
		g.calls[n] = slices.DeleteFunc(g.calls[n], func(c call) bool {
			return !live[c.back] || !live[g.rules[c.rule].in]
		})
	}
	g.findNullable()
	return g.order()
}

// findNullable finds the rules with an empty text.
func (g *grammar) findNullable() {
	g.nullable = make([]bool, len(g.rules))
	leads := g.leading(false)
	for r, rule := range g.rules {
		g.nullable[r] = leads[rule.in]
	}
}

// reach returns the nodes to which a node leads without a byte, and the node itself.
func (g *grammar) reach(n node) []node {
	seen, nodes := map[node]bool{n: true}, []node{n}
	add := func(to node) {
		if !seen[to] {
			seen[to], nodes = true, append(nodes, to)
		}
	}
	for i := 0; i < len(nodes); i++ {
		for _, to := range g.skips[nodes[i]] {
			add(to)
		}
		for _, c := range g.calls[nodes[i]] {
			if g.nullable[c.rule] {
				add(c.back)
			}
		}
	}
	return nodes
}

// leading returns the nodes from which a text leads to the end of their rule: any text, or the empty one.
func (g *grammar) leading(any bool) []bool {
	type calling struct {
		from node
		call
	}
	before := make([][]node, len(g.arcs)) // nodes with an arc or a skip
	calls := make([][]calling, len(g.arcs))
	for n := range g.arcs {
		if any {
			for _, a := range g.arcs[n] {
				before[a.to] = append(before[a.to], node(n))
			}
		}
		for _, to := range g.skips[n] {
			before[to] = append(before[to], node(n))
		}
		for _, c := range g.calls[n] {
			for _, needs := range []node{c.back, g.rules[c.rule].in} {
				calls[needs] = append(calls[needs], calling{node(n), c})
			}
		}
	}
	leads := make([]bool, len(g.arcs))
	var list []node
	found := func(n node) {
		if !leads[n] {
			leads[n], list = true, append(list, n)
		}
	}
	for _, r := range g.rules {
		found(r.out)
	}
	for len(list) > 0 {
		n := list[len(list)-1]
		list = list[:len(list)-1]
		for _, m := range before[n] {
			found(m)
		}
		for _, c := range calls[n] {
			if leads[c.back] && leads[g.rules[c.rule].in] {
				found(c.from)
			}
		}
	}
	return leads
}

// order ranks the rules. It returns an error for a rule that may call itself before it has taken a byte.
func (g *grammar) order() error {
	const open, done = 1, 2
	marks := make([]byte, len(g.rules))
	g.rank = make([]int32, len(g.rules))
	var visit func(r int32) error
	visit = func(r int32) error {
		switch marks[r] {
		case open:
			return fmt.Errorf("%s refers to itself without anything between", g.rules[r].name)
		case done:
			return nil
		}
		marks[r] = open
		for _, n := range g.reach(g.rules[r].in) {
			for _, c := range g.calls[n] {
				if err := visit(c.rule); err != nil {
					return err
				}
			}
		}
		marks[r], g.rank[r] = done, int32(len(g.ranked))
		g.ranked = append(g.ranked, r)
		return nil
	}
	for r := range g.rules {
		if err := visit(int32(r)); err != nil {
			return err
		}
	}
	return nil
}

// leads reports whether a node only leads to the end of its rule.
func (g *grammar) leads(n node) bool {
	for !g.outs[n] {
		if len(g.arcs[n])+len(g.calls[n]) > 0 || len(g.skips[n]) != 1 {
			return false
		}
		n = g.skips[n][0]
	}
	return true
}
