package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Calls says how an answer calls tools: Begin, then calls with Separator between them, then End. A call is Open, the
// tool's name, Between, an object of arguments, and Close.
type Calls struct {
	Begin, End           string
	Open, Between, Close string
	Separator            string
	Tools                []Tool
	Many                 bool             // else there is one call
	Marks                map[int32]string // tokens without a text that stand for parts of these texts
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
	g.mark(c.Marks)
	var list []expr
	for _, t := range c.Tools {
		args := jsonOf(g).object
		if t.Parameters != nil {
			var err error
			if args, err = schema(g, t.Parameters); err != nil {
				return nil, fmt.Errorf("the parameters of %s: %w", t.Name, err)
			}
		}
		list = append(list, seq(c.text(c.Open+t.Name+c.Between), args))
	}
	one := seq(g.shared("a call", alt(list...)), c.text(c.Close))
	all := one
	if c.Many {
		all = seq(one, star(seq(c.text(c.Separator), one)))
	}
	return seq(c.text(c.Begin), all, c.text(c.End)), nil
}

// mark gives tokens without a text the bytes that stand for them.
func (g *grammar) mark(marks map[int32]string) {
	g.marks = map[int32][]byte{}
	for _, id := range slices.Sorted(maps.Keys(marks)) {
		g.marks[id] = []byte{marked, byte(len(g.marks))}
	}
}

// text returns a text in which tokens without a text may stand for parts.
func (c *Calls) text(s string) expr {
	for i, id := range slices.Sorted(maps.Keys(c.Marks)) {
		before, after, ok := strings.Cut(s, c.Marks[id])
		if !ok {
			continue
		}
		mark := func(g *grammar, from, to node) {
			mid := g.node()
			g.arc(from, marked, marked, mid)
			g.arc(mid, byte(i), byte(i), to)
		}
		return seq(c.text(before), mark, c.text(after))
	}
	return text(s)
}
