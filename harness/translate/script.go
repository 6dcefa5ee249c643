package translate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
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
	env   map[string]string
	loose []word // Megatron's arguments in variables and lines, for a script that leaves the command to others
}

// word is a word of a command, and the variables that it needs and nobody sets.
type word struct {
	text  string
	unset []string
}

// trainers match the modules and files that start verl's trainers and Megatron's.
var trainers = regexp.MustCompile(`(^|[./])(main_[a-z_]+(\.py)?|train_rl\.py)$`)

// reader goes through a script and the ones that it sources.
type reader struct {
	script
	vars   variables
	config *expand.Config
	places places
	depth  int  // of scripts and functions in each other
	read   int  // scripts that others source
	within int  // command substitutions around the present one
	all    bool // branches are taken
	left   bool // a branch was left out

	functions []*syntax.FuncDecl
	called    map[*syntax.FuncDecl]bool
}

// readScript finds the trainer's command in a shell script. Assignments take effect in the order of the
// text: of branches whose condition only a shell can decide, the last one counts. set has variables that the
// user gives; scripts that it sources are looked for in places. With marks a variable that nobody sets leaves
// its name in the words that need it, as unset reads it.
func readScript(text, name string, set map[string]string, places places, marks bool) (*script, error) {
	r := newReader(set, places, marks)
	file, err := syntax.NewParser().Parse(strings.NewReader(text), name)
	if err != nil {
		return nil, fmt.Errorf("%s is not a shell script: %w", name, err)
	}
	if r.walkScript(file); r.left && !r.found { // the command may stand where only a caller's variables lead
		r = newReader(set, places, marks)
		r.all = true
		r.walkScript(file)
	}
	r.env = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(r.vars.set)) {
		text := r.vars.set[name].String()
		r.env[name] = text
		r.loose = append(r.loose, arguments(text)...)
	}
	maps.Copy(r.env, set)
	return &r.script, nil
}

func newReader(set map[string]string, places places, marks bool) *reader {
	r := &reader{places: places, called: map[*syntax.FuncDecl]bool{}}
	r.vars = variables{given: set, set: map[string]expand.Variable{}, marks: marks,
		lacks: map[string][]string{}, elements: map[string][]word{}, computed: map[string]bool{}}
	r.config = &expand.Config{Env: r.vars, CmdSubst: r.command,
		ProcSubst: func(*syntax.ProcSubst) (string, error) { return "", errCommand }}
	return r
}

// walkScript takes the assignments and the command of a script. If it starts no trainer, one of its functions may,
// which another script calls.
func (r *reader) walkScript(file *syntax.File) {
	r.walk(file)
	for i := 0; i < len(r.functions) && !r.found; i++ {
		if f := r.functions[i]; !r.called[f] {
			r.walk(f.Body)
		}
	}
}

// walk takes the assignments and the command of a part of a script. The body of a function counts where it is called.
func (r *reader) walk(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.DeclClause:
			r.vars.assign(r.config, n.Args)
		case *syntax.CallExpr:
			r.vars.assign(r.config, n.Assigns)
			r.call(n)
		case *syntax.IfClause:
			return r.branch(n)
		case *syntax.CaseClause:
			return r.choice(n)
		case *syntax.FuncDecl:
			r.functions = append(r.functions, n)
			return false
		}
		return true
	})
}

// errCommand stands for what only a shell can compute.
var errCommand = errors.New("a command")

// Limits of what a script that is not written to be read can make: variables double in each line, scripts source
// each other in a circle, substitutions nest.
const (
	deepestSource       = 8
	mostSources         = 256
	deepestSubstitution = 8
	longestVariable     = 1 << 20 // bytes; Linux passes programs 2 MiB of arguments in all
	mostElements        = 1 << 14
)

// command computes the command substitutions that need no shell: $(pwd), dirname and basename.
func (r *reader) command(w io.Writer, n *syntax.CmdSubst) error {
	if len(n.Stmts) != 1 || r.within >= deepestSubstitution {
		return errCommand
	}
	r.within++
	defer func() { r.within-- }()
	call, ok := n.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 {
		return errCommand
	}
	var words []string
	for _, arg := range call.Args {
		text, err := expand.Literal(r.config, arg)
		if err != nil {
			return errCommand
		}
		words = append(words, text)
	}
	text := ""
	switch {
	case len(words) == 1 && words[0] == "pwd":
		text = "."
	case len(words) == 2 && words[0] == "dirname":
		text = path.Dir(words[1])
	case len(words) == 2 && words[0] == "basename" && words[1] != "":
		text = path.Base(words[1])
	case len(words) == 2 && words[0] == "basename":
	default:
		return errCommand
	}
	_, err := io.WriteString(w, text)
	return err
}

// source reads a script that another one sources, if it is here and a shell script.
func (r *reader) source(name string) {
	file, ok := r.places.find(name)
	if !ok || r.depth >= deepestSource || r.read >= mostSources {
		return
	}
	r.read++
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	tree, err := syntax.NewParser().Parse(bytes.NewReader(text), file)
	if err != nil {
		return
	}
	r.depth++
	r.walk(tree)
	r.depth--
}

// call keeps the words of the first command that starts a trainer, and of later ones that are nothing but
// settings: a comment after a backslash ends a command early.
func (r *reader) call(n *syntax.CallExpr) {
	var words []word
	for _, w := range n.Args {
		words = append(words, r.vars.words(r.config, w)...)
	}
	if len(words) > 1 && (words[0].text == "source" || words[0].text == ".") {
		r.source(words[1].text)
		return
	}
	if r.inside(words) {
		return
	}
	if len(words) > 0 && isArgument(words[0].text) {
		r.loose = append(r.loose, words...)
	}
	settings := 0
	for _, w := range words {
		if override.MatchString(w.text) || ofMegatron.MatchString(w.text) {
			settings++
		}
	}
	starts := slices.ContainsFunc(words, func(w word) bool { return trainers.MatchString(path.Clean(w.text)) })
	switch {
	case !r.found && (starts || settings > 2):
		r.words, r.found = words, true
	case r.found && settings > 0 && settings == len(words):
		r.words = append(r.words, words...)
	}
}

// variables are a script's variables, as far as its text sets them.
type variables struct {
	given map[string]string
	set   map[string]expand.Variable
	lacks map[string][]string // the variables that a variable's value needs and nobody sets
	// elements has the elements of arrays: each lacks variables of its own.
	elements map[string][]word
	computed map[string]bool // variables whose values only a shell can compute
	marks    bool
}

// words expands a word. One that only a shell can compute, with a command substitution, stands as it is.
func (v variables) words(config *expand.Config, w *syntax.Word) (list []word) {
	v.mark(w.Parts)
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
	delete(v.computed, name)
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

// assign takes assignments over. Values that only a shell can compute, or that are too long, leave a variable unset.
func (v variables) assign(config *expand.Config, list []*syntax.Assign) {
	for _, a := range list {
		if a.Name == nil || a.Naked && a.Array == nil {
			continue
		}
		if a.Index != nil {
			v.assignElement(config, a)
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
		delete(v.computed, name)
		if a.Value != nil {
			v.mark(a.Value.Parts)
			more, err := expand.Literal(config, a.Value)
			if err != nil || len(text)+len(more) > longestVariable {
				delete(v.set, name)
				v.computed[name] = true
				continue
			}
			text += more
			lacks = append(lacks, v.needs(a.Value)...)
		}
		v.lacks[name] = lacks
		v.set[name] = expand.Variable{Set: true, Kind: expand.String, Str: text}
	}
}

// assignArray takes the assignment of an array over. One that is too long leaves it unset.
func (v variables) assignArray(config *expand.Config, a *syntax.Assign) {
	name := a.Name.Value
	if v.assignKeys(config, a) {
		return
	}
	var list []word
	if a.Append {
		list = slices.Clone(v.elements[name])
	}
	for _, e := range a.Array.Elems {
		if e.Value != nil {
			list = append(list, v.words(config, e.Value)...)
		}
	}
	if len(list) > mostElements {
		delete(v.set, name)
		delete(v.lacks, name)
		delete(v.elements, name)
		v.computed[name] = true
		return
	}
	x := expand.Variable{Set: true, Kind: expand.Indexed}
	var lacks []string
	for _, w := range list {
		x.List = append(x.List, w.text)
		lacks = append(lacks, w.unset...)
	}
	v.set[name], v.elements[name], v.lacks[name] = x, list, lacks
}
