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

// override matches a word KEY=VALUE of Hydra's command line, with its + and ~.
var override = regexp.MustCompile(`^[+~]*[A-Za-z_]\w*(\.\w+)+=`)

// readScript finds the trainer's command in a shell script. Assignments take effect in the order of the
// text: of branches the last one counts. set has variables that the user gives.
func readScript(text, name string, set map[string]string) (*script, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(text), name)
	if err != nil {
		return nil, fmt.Errorf("%s is no shell script: %w", name, err)
	}
	s := &script{}
	vars := variables{given: set, set: map[string]expand.Variable{}, lacks: map[string][]string{}}
	config := &expand.Config{Env: vars, CmdSubst: here}
	var broken error
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.DeclClause:
			vars.assign(config, n.Args)
		case *syntax.CallExpr:
			vars.assign(config, n.Assigns)
			if broken == nil {
				broken = s.call(config, vars, n)
			}
		}
		return true
	})
	if broken != nil {
		return nil, fmt.Errorf("%s: %w", name, broken)
	}
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
func (s *script) call(config *expand.Config, vars variables, n *syntax.CallExpr) error {
	var words []word
	for _, w := range n.Args {
		fields, err := expand.Fields(config, w)
		if err != nil { // a command substitution, for one: the word as it stands
			var b strings.Builder
			if err := syntax.NewPrinter().Print(&b, w); err != nil {
				return err
			}
			fields = []string{b.String()}
		}
		for _, f := range fields {
			words = append(words, word{f, vars.needs(w)})
		}
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
	return nil
}

// variables are those of a script, as far as its text sets them.
type variables struct {
	given map[string]string
	set   map[string]expand.Variable
	lacks map[string][]string // the variables that a variable's value needs and nobody sets
}

// needs returns the variables that a part of the text needs and nobody sets.
func (v variables) needs(n syntax.Node) (list []string) {
	syntax.Walk(n, func(n syntax.Node) bool {
		p, ok := n.(*syntax.ParamExp)
		if !ok || p.Param == nil || p.Exp != nil {
			return true
		}
		name := p.Param.Value
		list = append(list, v.lacks[name]...)
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
		name := a.Name.Value
		delete(v.lacks, name)
		if a.Array != nil {
			x := expand.Variable{Set: true, Kind: expand.Indexed}
			if a.Append {
				x.List = slices.Clone(v.set[name].List)
			}
			for _, e := range a.Array.Elems {
				if e.Value == nil {
					continue
				}
				if fields, err := expand.Fields(config, e.Value); err == nil {
					x.List = append(x.List, fields...)
				}
			}
			v.set[name] = x
			continue
		}
		text, err := "", error(nil)
		if a.Value != nil {
			text, err = expand.Literal(config, a.Value)
		}
		if err != nil {
			delete(v.set, name)
			continue
		}
		if a.Value != nil {
			v.lacks[name] = v.needs(a.Value)
		}
		if a.Append {
			text = v.set[name].Str + text
		}
		v.set[name] = expand.Variable{Set: true, Kind: expand.String, Str: text}
	}
}
