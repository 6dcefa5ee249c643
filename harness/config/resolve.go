package config

import (
	"fmt"
	"slices"
	"strings"
)

// truth is the value of a condition whose keys may be in error.
type truth uint8

const (
	unknown truth = iota // depends on an invalid or missing value
	no
	yes
)

// cell is the state of one key after all layers.
type cell struct {
	done   bool
	active truth
	cause  string // if not active: the key that turned it off
	value  any
	ok     bool // it has a value
	set    *setting
}

// resolver computes cells on demand, because conditions and defaults read other keys. A
// test checks that the keys have no cycles.
type resolver struct {
	l       *loader
	cells   map[string]*cell
	errs    Errors
	absent  []absence
	dropped []Dropped
}

func newResolver(l *loader) *resolver {
	return &resolver{l: l, cells: make(map[string]*cell, len(schema().keys))}
}

// cell resolves one key.
func (r *resolver) cell(path string) *cell {
	c := r.cells[path]
	if c == nil {
		c = &cell{}
		r.cells[path] = c
	}
	if c.done {
		return c
	}
	c.done = true
	k := lookup(path)
	c.active, c.cause = r.active(k)
	if c.active == no {
		return c
	}
	c.set = r.l.set[path]
	switch {
	case r.l.bad[path] || c.set == nil && r.l.seemsMeant(path):
	case c.set != nil && c.set.onto:
		if base, ok := r.byDefault(k, k.Default); ok || k.Default.Required() {
			c.value, c.ok = joined(base, c.set.value), true
		}
	case c.set != nil:
		c.value, c.ok = c.set.value, true
	default:
		c.value, c.ok = r.byDefault(k, k.Default)
	}
	return c
}

// active reports whether a key has an effect and, if not, which key turned it off.
func (r *resolver) active(k *Key) (truth, string) {
	result := yes
	for _, clause := range k.When {
		holds, cause := r.holds(clause)
		if holds == no {
			return no, cause
		}
		result = min(result, holds)
	}
	return result, ""
}

// holds evaluates a clause. If it fails, cause is the key that a user would change: the
// first in a chain of switches, and among several terms the key that was set last.
func (r *resolver) holds(clause Clause) (truth, string) {
	result, cause := no, clause[0].Path
	for i, t := range clause {
		c, path := r.cell(t.Path), ""
		switch {
		case c.active == no && i > 0 && r.cell(clause[0].Path).active == yes:
			continue // the user would change a key that has an effect
		case c.active == no:
			path = c.cause
		case !c.ok:
			result = unknown
			continue
		case t.satisfied(c.value):
			return yes, ""
		default:
			path = r.chosenBy(t.Path)
		}
		if i == 0 || r.rank(path) >= r.rank(cause) {
			cause = path
		}
	}
	return result, cause
}

// rank returns the rank of a key's setting; -1 for a default.
func (r *resolver) rank(path string) int {
	if s := r.l.set[path]; s != nil {
		return s.rank
	}
	return -1
}

// chosenBy returns the key that a user would set to change the value at path: the key
// itself, or the one that chooses its default.
func (r *resolver) chosenBy(path string) string {
	for {
		d := lookup(path).Default
		if r.l.set[path] != nil || d.by == "" || r.cell(d.by).active != yes {
			return path
		}
		path = d.by
	}
}

// satisfied reports whether a plain value makes the term true.
func (t Term) satisfied(v any) bool {
	switch v := v.(type) {
	case string:
		return slices.Contains(t.Words, v) != t.Not
	case int64:
		return t.Above && v > 0
	case float64:
		return t.Above && v > 0
	case bool:
		return t.Above && v
	case []any:
		if t.Above {
			return len(v) > 0
		}
		return slices.ContainsFunc(v, func(x any) bool { return slices.Contains(t.Words, fmt.Sprint(x)) })
	case map[string]any:
		if t.Above {
			return len(v) > 0
		}
		for name, x := range v {
			word, ok := x.(string)
			if t.Names {
				word, ok = name, true
			}
			if ok && slices.Contains(t.Words, word) {
				return true
			}
		}
	}
	return false
}

// byDefault computes a default. It returns false if the key is required or the default
// depends on an invalid value.
func (r *resolver) byDefault(k *Key, d Default) (any, bool) {
	switch {
	case d.hasFixed:
		return d.fixed, true
	case d.same != "":
		c := r.cell(d.same)
		if n, isInt := c.value.(int64); isInt && k.Kind == Float {
			return float64(n), c.ok
		}
		return c.value, c.ok
	case d.powers != "":
		c := r.cell(d.powers)
		if !c.ok {
			return nil, false
		}
		list := []any{}
		for p := int64(1); p <= c.value.(int64) && p < 1<<40; p *= 2 {
			list = append(list, p)
		}
		return list, true
	case d.by != "":
		c := r.cell(d.by)
		if c.active == no { // it chooses nothing
			return r.byDefault(k, *d.otherwise)
		}
		if !c.ok {
			return nil, false
		}
		word, _ := c.value.(string)
		return r.byDefault(k, d.of(word))
	}
	return nil, false
}

// resolve turns the layers into a configuration, or notes the errors.
func (r *resolver) resolve() *Resolved {
	res := &Resolved{cells: r.cells}
	values := map[string]any{}
	for _, k := range schema().keys {
		c := r.cell(k.Path)
		switch {
		case c.active == no:
			if s := r.l.set[k.Path]; s != nil {
				r.ineffective(s, c.cause)
			}
		case c.active == yes && !c.ok && !r.l.bad[k.Path]:
			r.missing(k)
		case c.active == yes && c.ok:
			values[k.Path] = c.value
		}
	}
	for _, a := range r.absent {
		r.errs = append(r.errs, a.fault())
	}
	res.locate(values, r.l.find)
	bind(&res.Run, values)
	res.nameRemotes()
	r.conflicts(&res.Run)
	res.Dropped = r.dropped
	if r.l.main != nil {
		res.main = r.l.main
	}
	return res
}

// ineffective drops an inherited setting that a later layer turned off. A setting in
// the same layer or a later one is an error.
func (r *resolver) ineffective(s *setting, cause string) {
	switched := r.l.set[cause]
	if switched != nil && s.rank < switched.rank {
		r.dropped = append(r.dropped, Dropped{
			Path: s.key.Path, Value: Format(s.key, s.value), Origin: s.at.String(),
			Because: cause + " is " + Format(switched.key, switched.value), Switch: switched.at.String(),
		})
		return
	}
	if r.l.bad[cause] || r.l.partial {
		return
	}
	k, c := lookup(cause), r.cell(cause)
	state := cause + " is " + Format(k, c.value)
	if switched == nil {
		state += " by default"
	}
	r.errs = append(r.errs, s.name.fault(CodeIneffective, fmt.Sprintf("%s has no effect: %s", s.key.Path, state),
		"remove it, or make it count: "+conditions(s.key, cause)))
}

// conditions lists the conditions of a key: the clauses that fail because of cause.
func conditions(k *Key, cause string) string {
	var parts []string
	for _, clause := range k.When {
		for _, t := range clause {
			if t.Path == cause {
				parts = append(parts, clause.String())
				break
			}
		}
	}
	if len(parts) == 0 { // the cause switched off a switch
		for _, clause := range k.When {
			parts = append(parts, clause.String())
		}
	}
	return strings.Join(parts, " and ")
}

// seemsMeant reports whether an unknown key probably means this one, or a block around
// it. The user then does not want its default, and reporting it missing is noise.
func (l *loader) seemsMeant(path string) bool {
	for ; path != ""; path, _ = cutLast(path) {
		if l.meant[path] {
			return true
		}
	}
	return false
}

// missing notes a required key without a value, unless it may be in a layer that could
// not be read, or only training reads it and nothing is trained.
func (r *resolver) missing(k *Key) {
	unread := r.untrained() && k.onlyTrains() && !(k.Judges && r.judgesAlone())
	if r.l.partial || r.l.seemsMeant(k.Path) || !k.needsValue(r) || unread {
		return
	}
	at := pos{src: &source{name: "configuration"}}
	if r.l.main != nil {
		at = pos{src: r.l.main, line: 1, col: 1, width: 1}
	}
	if p, ok := r.sibling(k.Path); ok {
		at = p
	}
	for i := range r.absent {
		if r.absent[i].at == at {
			r.absent[i].keys = append(r.absent[i].keys, k)
			return
		}
	}
	r.absent = append(r.absent, absence{at, []*Key{k}})
}

// absence is a place where required keys could stand.
type absence struct {
	at   pos
	keys []*Key
}

// fault returns one error for all keys of a place.
func (a absence) fault() *Error {
	if len(a.keys) == 1 {
		return a.at.fault(CodeMissing, a.keys[0].Path+" is required", wants(a.keys[0]))
	}
	var names []string
	for _, k := range a.keys {
		names = append(names, k.Path)
	}
	return a.at.fault(CodeMissing, "required keys are not set: "+strings.Join(names, ", "),
		"exp config schema KEY explains a key")
}

// needsValue reports whether nobody gave the key a value, as opposed to its default
// depending on an invalid or missing key.
func (k *Key) needsValue(r *resolver) bool {
	for _, path := range k.Default.reads() {
		if c := r.cell(path); c.active != no && !c.ok {
			return false
		}
	}
	return true
}

// sibling finds where the last file first set a key of the same block, to point errors
// there.
func (r *resolver) sibling(path string) (pos, bool) {
	for prefix, _ := cutLast(path); prefix != ""; prefix, _ = cutLast(prefix) {
		var best *setting
		for _, k := range schema().keys {
			s := r.l.set[k.Path]
			if s == nil || s.name.src.set || !strings.HasPrefix(k.Path, prefix+".") {
				continue
			}
			if best == nil || s.name.src.order > best.name.src.order ||
				s.name.src == best.name.src && s.name.line < best.name.line {
				best = s
			}
		}
		if best != nil {
			return best.name, true
		}
	}
	return pos{}, false
}

// cutLast splits off the last component of a path.
func cutLast(path string) (prefix, name string) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}
