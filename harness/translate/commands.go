package translate

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Commands that run a part of a script, or a script in a word.

// inside walks what a command runs if it is a function of the script or a shell with a script: bash -c "…".
func (r *reader) inside(words []word) bool {
	if len(words) == 0 || r.depth >= deepestSource {
		return false
	}
	for _, f := range slices.Backward(r.functions) {
		if f.Name.Value == words[0].text {
			r.function(f, words[1:])
			return true
		}
	}
	for i, w := range words[:len(words)-1] {
		if i > 0 && commandFlag.MatchString(w.text) && shells.MatchString(path.Base(words[i-1].text)) {
			tree, err := syntax.NewParser().Parse(strings.NewReader(words[i+1].text), "")
			if err != nil {
				return false
			}
			r.depth++
			r.walk(tree)
			r.depth--
			return true
		}
	}
	return false
}

var (
	shells      = regexp.MustCompile(`^(?:ba|z|da)?sh$`)
	commandFlag = regexp.MustCompile(`^-[a-z]*c$`)
)

// function walks the body of a function with its arguments.
func (r *reader) function(f *syntax.FuncDecl, args []word) {
	r.called[f] = true
	outer := map[string]expand.Variable{}
	set := func(name string, x expand.Variable) {
		if old, ok := r.vars.set[name]; ok {
			outer[name] = old
		}
		r.vars.set[name] = x
	}
	var list []string
	for i, w := range args {
		list = append(list, w.text)
		set(strconv.Itoa(i+1), expand.Variable{Set: true, Kind: expand.String, Str: w.text})
	}
	set("@", expand.Variable{Set: true, Kind: expand.Indexed, List: list})
	r.depth++
	r.walk(f.Body)
	r.depth--
	delete(r.vars.set, "@")
	for i := range args {
		delete(r.vars.set, strconv.Itoa(i+1))
	}
	for name, x := range outer {
		r.vars.set[name] = x
	}
}
