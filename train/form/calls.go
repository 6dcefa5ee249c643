package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Calls says how an answer calls tools: all of its calls are in one of some frames.
type Calls struct {
	Frames []Frame
	Tools  []Tool
	Many   bool // else there is one call
}

// Frame is what stands around calls: Begin, then calls with Separator between them, then End. A call is Open, the
// tool's name, Between, the arguments, and Close.
type Frame struct {
	Begin, End           string
	Open, Between, Close string
	Separator            string
	Fields               Fields // zero: the arguments are a JSON object
	One                  bool   // an answer has one call
}

// Fields says how arguments are written one by one: Open, the name, Between, the value, and Close. The value is a text
// as it is, or JSON, or True, False or None; Types says what readers take it for. It does not have Stop.
type Fields struct {
	Open, Between, Close string
	Stop                 string
	Python               bool // instead, they are arguments of a call in Python, whose values are literals
}

// Tool is a tool that may be called.
type Tool struct {
	Name       string
	Parameters json.RawMessage // a JSON schema of its arguments; nil: any object
}

// expr returns the texts of calls.
func (c *Calls) expr(g *grammar) (expr, error) {
	if len(c.Tools) == 0 {
		return nil, errors.New("the request has no tool to call")
	}
	var frames []expr
	for _, f := range c.Frames {
		var list []expr
		for _, t := range c.Tools {
			args, err := f.arguments(g, t)
			if err != nil {
				return nil, fmt.Errorf("the parameters of %s: %w", t.Name, err)
			}
			list = append(list, seq(g.marked(f.Open+t.Name+f.Between), args))
		}
		one := seq(g.shared("a call", alt(list...)), g.marked(f.Close))
		all := one
		if c.Many && !f.One {
			all = seq(one, star(seq(g.marked(f.Separator), one)))
		}
		frames = append(frames, seq(g.marked(f.Begin), all, g.marked(f.End)))
	}
	return alt(frames...), nil
}

// arguments returns the arguments of a call.
func (f *Frame) arguments(g *grammar, t Tool) (expr, error) {
	root := any(object{})
	if t.Parameters != nil {
		var err error
		if root, err = readValue(t.Parameters); err != nil {
			return nil, fmt.Errorf("the schema is not JSON: %w", err)
		}
	}
	if f.Fields != (Fields{}) {
		return f.Fields.expr(g, root, string(t.Parameters))
	}
	p := whole(root)
	return newSchemaReader(g, root, jsonOf(g)).all(p, p.typed("object"))
}

// mark gives tokens without a text the bytes that stand for them.
func (g *grammar) mark(marks map[int32]string) {
	g.spelled = marks
	if len(marks) > 0 {
		g.marks = map[int32][]byte{}
	}
	for _, id := range slices.Sorted(maps.Keys(marks)) {
		g.marks[id] = []byte{marked, byte(len(g.marks))}
	}
}

// marked returns a text in which tokens without a text may stand for parts.
func (g *grammar) marked(s string) expr {
	for i, id := range slices.Sorted(maps.Keys(g.spelled)) {
		before, after, ok := strings.Cut(s, g.spelled[id])
		if !ok {
			continue
		}
		mark := func(g *grammar, from, to node) {
			mid := g.node()
			g.arc(from, marked, marked, mid)
			g.arc(mid, byte(i), byte(i), to)
		}
		return seq(g.marked(before), mark, g.marked(after))
	}
	return text(s)
}
