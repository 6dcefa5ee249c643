package translate

import (
	"regexp"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/pattern"
	"mvdan.cc/sh/v3/syntax"
)

// branch walks the part of an if that runs. Where only a shell can tell it asks for all parts, with true.
func (r *reader) branch(n *syntax.IfClause) (all bool) {
	if r.all {
		return true
	}
	r.left = true
	for ; n != nil; n = n.Else {
		holds := true
		if len(n.Cond) > 0 {
			var ok bool
			if holds, ok = r.holds(n.Cond); !ok {
				return true
			}
		}
		if holds {
			for _, stmt := range n.Then {
				r.walk(stmt)
			}
			return false
		}
	}
	return false
}

// choice walks the part of a case that runs. Where only a shell can tell it asks for all parts, with true.
func (r *reader) choice(n *syntax.CaseClause) (all bool) {
	if r.all {
		return true
	}
	r.left = true
	text, ok := r.literal(n.Word)
	if !ok {
		return true
	}
	for _, item := range n.Items {
		for _, p := range item.Patterns {
			matches, ok := r.matches(text, p)
			if !ok {
				return true
			}
			if matches {
				for _, stmt := range item.Stmts {
					r.walk(stmt)
				}
				return item.Op != syntax.Break // ;& goes on
			}
		}
	}
	return false
}

// matches decides whether a text matches a pattern of a case.
func (r *reader) matches(text string, w *syntax.Word) (matches, ok bool) {
	p, err := expand.Pattern(r.config, w)
	if err != nil {
		return false, false
	}
	expr, err := pattern.Regexp(p, pattern.EntireString)
	if err != nil {
		return false, false
	}
	re, err := regexp.Compile(expr)
	return err == nil && re.MatchString(text), err == nil
}

// holds decides a condition made of tests of texts and numbers; ok is false for others.
func (r *reader) holds(list []*syntax.Stmt) (holds, ok bool) {
	if len(list) != 1 {
		return false, false
	}
	stmt := list[0]
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		holds, ok = r.test(cmd.Args)
	case *syntax.TestClause:
		holds, ok = r.expression(cmd.X)
	case *syntax.BinaryCmd:
		x, okX := r.holds([]*syntax.Stmt{cmd.X})
		y, okY := r.holds([]*syntax.Stmt{cmd.Y})
		holds, ok = x && y, okX && okY
		if cmd.Op == syntax.OrStmt {
			holds = x || y
		}
		ok = ok && cmd.Op != syntax.Pipe && cmd.Op != syntax.PipeAll
	}
	return holds != stmt.Negated, ok
}

// literal expands a word that depends on nothing but the script's text and the variables that a user gives.
func (r *reader) literal(w *syntax.Word) (text string, ok bool) {
	known := true
	syntax.Walk(w, func(n syntax.Node) bool {
		if p, is := n.(*syntax.ParamExp); is && p.Param != nil {
			name := p.Param.Value
			_, given := r.vars.given[name]
			known = known && (given || !r.vars.computed[name] && !strings.ContainsAny(name[:1], "0123456789@*#?!$-"))
		}
		return true
	})
	text, err := expand.Literal(r.config, w)
	return text, known && err == nil
}

// test decides [ … ], test … and true or false.
func (r *reader) test(args []*syntax.Word) (holds, ok bool) {
	var words []string
	for _, w := range args {
		text, ok := r.literal(w)
		if !ok {
			return false, false
		}
		words = append(words, text)
	}
	if len(words) == 0 {
		return false, false
	}
	name := words[0]
	words = words[1:]
	switch {
	case name == "true" || name == "false":
		return name == "true", len(words) == 0
	case name == "[" && len(words) > 0 && words[len(words)-1] == "]":
		words = words[:len(words)-1]
	case name != "test":
		return false, false
	}
	negated := len(words) > 1 && words[0] == "!"
	if negated {
		words = words[1:]
	}
	switch len(words) {
	case 1:
		holds, ok = words[0] != "", true
	case 2:
		holds, ok = words[0] == "-n" == (words[1] != ""), words[0] == "-n" || words[0] == "-z"
	case 3:
		holds, ok = compared(words[0], words[1], words[2])
	}
	return holds != negated, ok
}

// compared decides x OP y.
func compared(x, op, y string) (holds, ok bool) {
	switch op {
	case "=", "==":
		return x == y, true
	case "!=":
		return x != y, true
	}
	a, err := strconv.Atoi(strings.TrimSpace(x))
	b, err2 := strconv.Atoi(strings.TrimSpace(y))
	if err != nil || err2 != nil {
		return false, false
	}
	switch op {
	case "-eq":
		return a == b, true
	case "-ne":
		return a != b, true
	case "-lt":
		return a < b, true
	case "-le":
		return a <= b, true
	case "-gt":
		return a > b, true
	case "-ge":
		return a >= b, true
	}
	return false, false
}

// expression decides [[ … ]].
func (r *reader) expression(x syntax.TestExpr) (holds, ok bool) {
	switch x := x.(type) {
	case *syntax.Word:
		text, ok := r.literal(x)
		return text != "", ok
	case *syntax.ParenTest:
		return r.expression(x.X)
	case *syntax.UnaryTest:
		holds, ok = r.expression(x.X)
		switch x.Op {
		case syntax.TsNot, syntax.TsEmpStr:
			return !holds, ok
		case syntax.TsNempStr:
			return holds, ok
		}
	case *syntax.BinaryTest:
		if x.Op == syntax.AndTest || x.Op == syntax.OrTest {
			a, okA := r.expression(x.X)
			b, okB := r.expression(x.Y)
			if x.Op == syntax.OrTest {
				return a || b, okA && okB
			}
			return a && b, okA && okB
		}
		left, isWord := x.X.(*syntax.Word)
		right, isWord2 := x.Y.(*syntax.Word)
		if !isWord || !isWord2 {
			return false, false
		}
		a, okA := r.literal(left)
		b, okB := r.literal(right)
		if pattern.HasMeta(b, 0) {
			return false, false
		}
		holds, ok = compared(a, x.Op.String(), b)
		return holds, ok && okA && okB
	}
	return false, false
}
