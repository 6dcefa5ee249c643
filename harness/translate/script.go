package translate

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// script is what a shell script starts: the words of its command line, expanded. Nothing is executed.
type script struct {
	words []word
	found bool // the command
}

// word is a word of a command, and the variables that it needs and nobody sets.
type word struct {
	text  string
	unset []string
}

// trainers match the modules and files that start verl's trainers.
var trainers = regexp.MustCompile(`(^|[./])main_[a-z_]+(\.py)?$`)

// readScript finds the trainer's command in a shell script. Assignments take effect in the order of the
// text: of branches the last one counts. set has variables that the user gives.
func readScript(text, name string, set map[string]string) (*script, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(text), name)
	if err != nil {
		return nil, fmt.Errorf("%s is no shell script: %w", name, err)
	}
	s := &script{}
	vars := variables{given: set, set: map[string]expand.Variable{}, lacks: map[string][]string{},
		elements: map[string][]word{}}
	config := &expand.Config{Env: vars, CmdSubst: here,
		ProcSubst: func(*syntax.ProcSubst) (string, error) { return "", errors.New("a command") }}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.DeclClause:
			vars.assign(config, n.Args)
		case *syntax.CallExpr:
			vars.assign(config, n.Assigns)
			s.call(config, vars, n)
		}
		return true
	})
	return s, nil
}

// here computes the one command substitution that needs no shell: $(pwd).
func here(w io.Writer, n *syntax.CmdSubst) error {
	var b strings.Builder
	for _, stmt := range n.Stmts {
		if err := syntax.NewPrinter().Print(&b, stmt); err != nil {
			return err
		}
	}
	if strings.TrimSpace(b.String()) != "pwd" {
		return errors.New("a command")
	}
	_, err := io.WriteString(w, ".")
	return err
}

// call keeps the words of the first command that starts a trainer, and of later ones that are nothing but
// settings: a comment after a backslash ends a command early.
func (s *script) call(config *expand.Config, vars variables, n *syntax.CallExpr) {
	var words []word
	for _, w := range n.Args {
		words = append(words, vars.words(config, w)...)
	}
	settings := 0
	for _, w := range words {
		if override.MatchString(w.text) {
			settings++
		}
	}
	starts := slices.ContainsFunc(words, func(w word) bool { return trainers.MatchString(path.Clean(w.text)) })
	switch {
	case !s.found && (starts || settings > 2):
		s.words, s.found = words, true
	case s.found && settings > 0 && settings == len(words):
		s.words = append(s.words, words...)
	}
}

// variables are a script's variables, as far as its text sets them.
type variables struct {
	given map[string]string
	set   map[string]expand.Variable
	lacks map[string][]string // the variables that a variable's value needs and nobody sets
	// elements has the elements of arrays: each lacks variables of its own.
	elements map[string][]word
}

// words expands a word. One that only a shell can compute, with a command substitution, stands as it is.
func (v variables) words(config *expand.Config, w *syntax.Word) (list []word) {
	if name, ok := allOf(w); ok {
		if _, given := v.given[name]; !given && v.elements[name] != nil {
			return v.elements[name]
		}
	}
	fields, err := expand.Fields(config, w)
	if err != nil {
		fields = []string{source(w)}
	}
	for _, f := range fields {
		list = append(list, word{f, v.needs(w)})
	}
	return list
}

// allOf returns the name in "${name[@]}".
func allOf(w *syntax.Word) (name string, ok bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	quoted, ok := w.Parts[0].(*syntax.DblQuoted)
	if !ok || len(quoted.Parts) != 1 {
		return "", false
	}
	p, ok := quoted.Parts[0].(*syntax.ParamExp)
	if !ok || p.Param == nil || source(w) != `"${`+p.Param.Value+`[@]}"` {
		return "", false
	}
	return p.Param.Value, true
}

// source returns a part of the text as it stands.
func source(n syntax.Node) string {
	var b strings.Builder
	if syntax.NewPrinter().Print(&b, n) != nil {
		return ""
	}
	return b.String()
}

// needs returns the variables that a part of the text needs and nobody sets.
func (v variables) needs(n syntax.Node) (list []string) {
	syntax.Walk(n, func(n syntax.Node) bool {
		p, ok := n.(*syntax.ParamExp)
		if !ok || p.Param == nil || p.Exp != nil {
			return true
		}
		name := p.Param.Value
		if _, given := v.given[name]; !given {
			list = append(list, v.lacks[name]...)
		}
		if !v.Get(name).IsSet() && name != "@" && name != "*" {
			list = append(list, name)
		}
		return true
	})
	slices.Sort(list)
	return slices.Compact(list)
}

// Get implements expand.Environ.
func (v variables) Get(name string) expand.Variable {
	if text, ok := v.given[name]; ok {
		return expand.Variable{Set: true, Kind: expand.String, Str: text}
	}
	if x, ok := v.set[name]; ok {
		return x
	}
	switch name {
	case "HOME":
		home, _ := os.UserHomeDir()
		return expand.Variable{Set: true, Kind: expand.String, Str: home}
	case "PWD":
		return expand.Variable{Set: true, Kind: expand.String, Str: "."}
	}
	return expand.Variable{}
}

// Set implements expand.WriteEnviron, for ${NAME:=VALUE}.
func (v variables) Set(name string, x expand.Variable) error {
	delete(v.lacks, name)
	delete(v.elements, name)
	v.set[name] = x
	return nil
}

// Each implements expand.Environ.
func (v variables) Each(f func(name string, x expand.Variable) bool) {
	for name, x := range v.set {
		if !f(name, x) {
			return
		}
	}
}

// assign takes assignments over. Values that only a shell can compute leave a variable unset.
func (v variables) assign(config *expand.Config, list []*syntax.Assign) {
	for _, a := range list {
		if a.Name == nil || a.Naked && a.Array == nil {
			continue
		}
		if a.Array != nil {
			v.assignArray(config, a)
			continue
		}
		name, text := a.Name.Value, ""
		var lacks []string
		if a.Append {
			text, lacks = v.set[name].Str, v.lacks[name]
		}
		delete(v.lacks, name)
		delete(v.elements, name)
		if a.Value != nil {
			more, err := expand.Literal(config, a.Value)
			if err != nil {
				delete(v.set, name)
				continue
			}
			text += more
			lacks = append(lacks, v.needs(a.Value)...)
		}
		v.lacks[name] = lacks
		v.set[name] = expand.Variable{Set: true, Kind: expand.String, Str: text}
	}
}

// assignArray takes the assignment of an array over.
func (v variables) assignArray(config *expand.Config, a *syntax.Assign) {
	name := a.Name.Value
	var list []word
	if a.Append {
		list = slices.Clone(v.elements[name])
	}
	for _, e := range a.Array.Elems {
		if e.Value != nil {
			list = append(list, v.words(config, e.Value)...)
		}
	}
	x := expand.Variable{Set: true, Kind: expand.Indexed}
	var lacks []string
	for _, w := range list {
		x.List = append(x.List, w.text)
		lacks = append(lacks, w.unset...)
	}
	v.set[name], v.elements[name], v.lacks[name] = x, list, lacks
}
