package config

import (
	"fmt"
	"maps"
	"path/filepath"

	"exp/experiments/spelling"
	"exp/harness/hub"
)

// Input says where a configuration comes from.
type Input struct {
	File     string   // the configuration file
	Data     []byte   // its contents; nil reads File
	Made     []Value  // a configuration made by the program instead of a file; File names it
	User     string   // the user's own configuration, for nonsemantic keys; empty: none
	Overlays []string // files laid over it, left to right
	Values   []Value  // of flags, laid over the files
	Sets     []string // expressions path=value or path+=value of --set, left to right
	Flagged  []Flagged
	// Find looks up what the configuration names on a hub, without the network; nil finds
	// nothing.
	Find func(hub.Ref) (hub.Found, error)
}

// Flagged is an expression as in Input.Sets that the program makes of another flag; it comes after
// them. Errors and origins name the flag.
type Flagged struct{ Flag, Expression string }

// Load reads, merges and validates a configuration. The error is of type Errors and
// lists all faults found.
func Load(in Input) (*Resolved, error) {
	l := loader{find: in.Find, set: map[string]*setting{}, bad: map[string]bool{}, meant: map[string]bool{}}
	if in.User != "" {
		l.user = true
		l.file(in.User, nil, nil)
		l.user = false
	}
	if in.Made != nil {
		l.made(in.File, in.Made)
	} else if main := l.file(in.File, in.Data, nil); main != nil {
		l.main = main
	}
	for _, overlay := range in.Overlays {
		l.file(overlay, nil, nil)
	}
	l.rank++
	for _, v := range in.Values {
		l.value(v)
	}
	for i, expression := range in.Sets {
		l.expression(&source{name: fmt.Sprintf("--set #%d", i+1), order: l.rank + i, set: true}, expression)
	}
	for i, f := range in.Flagged {
		l.expression(&source{name: f.Flag, order: l.rank + len(in.Sets) + i, set: true, flag: true}, f.Expression)
	}
	r := newResolver(&l)
	res := r.resolve()
	if errs := append(l.errs, r.errs...).sort(); len(errs) > 0 {
		return nil, errs
	}
	return res, nil
}

// setting is a value that a layer gives to a key.
type setting struct {
	key   *Key
	value any
	at    pos  // of the value
	name  pos  // of the key
	rank  int  // of the layer; all --set expressions share one
	onto  bool // the value is a list to append to the default
}

// loader merges layers.
type loader struct {
	find    func(hub.Ref) (hub.Found, error)
	errs    Errors
	rank    int
	user    bool    // reading the user's configuration
	main    *source // the configuration file
	partial bool    // a layer could not be read: missing keys may be in it

	set   map[string]*setting
	bad   map[string]bool // keys with an invalid value
	meant map[string]bool // keys and blocks that unknown keys probably mean
}

// made adds a configuration made by the program as a layer.
func (l *loader) made(name string, values []Value) {
	l.rank++
	l.main = &source{name: name, order: l.rank}
	for _, v := range values {
		v.From = name
		l.value(v)
	}
}

func (l *loader) fail(at pos, code, message, help string) {
	l.errs = append(l.errs, at.fault(code, message, help))
}

// caller is a file that extends the one being read.
type caller struct {
	path string // cleaned and absolute, to see cycles
	name string
	at   pos // of the value of extends
	up   *caller
}

// maxExtends limits how deep recipes build on each other; more is a mistake.
const maxExtends = 16

// file reads a file after the file that it extends. It returns nil if the file cannot be
// read.
func (l *loader) file(name string, data []byte, from *caller) *source {
	if data == nil {
		var err error
		if data, err = readFile(name); err != nil {
			l.unreadable(name, err, from)
			return nil
		}
	}
	src, text, fault := newSource(name, data)
	if fault != nil {
		l.reject(src, fault, from)
		return nil
	}
	root, errs := parseYAML(src, text, 0)
	var base *node
	if root != nil && root.kind == mapNode {
		base = take(root, "extends")
	}
	if base != nil {
		l.extend(base, name, from)
	}
	l.enter(src)
	l.errs = append(l.errs, errs...)
	switch {
	case root == nil && len(errs) == 0:
		l.partial = true
		l.fail(pos{src: src}, CodeFile, "holds no keys, only comments or nothing",
			"a recipe starts with version: 1; see configs/ for examples")
	case root == nil:
		l.partial = true
	case root.kind != mapNode:
		l.partial = true
		l.fail(root.pos, CodeShape, "a configuration is a block of keys, got "+describe(root),
			"start with version: 1")
	default:
		l.walk(schema().root, root)
	}
	return src
}

// enter starts the next layer, src.
func (l *loader) enter(src *source) {
	l.rank++
	src.order = l.rank
}

// take removes the field of a map node and returns its value; nil if absent.
func take(m *node, name string) *node {
	for i, f := range m.fields {
		if f.name == name {
			m.fields = append(append([]field(nil), m.fields[:i]...), m.fields[i+1:]...)
			return f.value
		}
	}
	return nil
}

// extend reads the file that another one extends.
func (l *loader) extend(base *node, name string, from *caller) {
	if base.kind != scalarNode || base.text == "" {
		if base.kind != badNode {
			l.fail(base.pos, CodeExtends, "extends must be the path of one file, got "+describe(base),
				"extends: base.yaml")
		}
		l.partial = true
		return
	}
	here := &caller{path: absolute(name), name: name, at: base.pos, up: from}
	path := base.text
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(name), path)
	}
	cycle := path
	depth := 0
	for c := here; c != nil; c = c.up {
		depth++
		cycle = c.name + " -> " + cycle
		if c.path == absolute(path) {
			l.partial = true
			l.fail(base.pos, CodeExtends, "extends makes a cycle: "+cycle, "remove one extends")
			return
		}
	}
	if depth > maxExtends {
		l.partial = true
		l.fail(base.pos, CodeExtends, fmt.Sprintf("more than %d files extend each other", maxExtends), "")
		return
	}
	l.file(path, nil, here)
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path
}

// unreadable reports a file that cannot be read, at the extends entry that names it.
func (l *loader) unreadable(name string, err error, from *caller) {
	reason, help := unreadable(name, err)
	l.partial = true
	if from == nil {
		src := &source{name: name, order: l.rank + 1}
		l.fail(pos{src: src}, CodeFile, reason, help)
		return
	}
	if help == "" {
		help = "the path is relative to " + filepath.Dir(from.name)
	}
	l.fail(from.at, CodeExtends, fmt.Sprintf("cannot extend %s: %s", name, reason), help)
}

// reject reports a file that is not text.
func (l *loader) reject(src *source, fault *Error, from *caller) {
	l.partial = true
	l.enter(src)
	l.errs = append(l.errs, fault)
	if from != nil {
		l.fail(from.at, CodeExtends, fmt.Sprintf("cannot extend %s: it %s", src.name, fault.Message), "")
	}
}

// walk reads the settings of a block.
func (l *loader) walk(g *group, m *node) {
	for _, f := range m.fields {
		if child := g.groups[f.name]; child != nil {
			l.block(child, f)
			continue
		}
		if k := g.keys[f.name]; k != nil {
			l.setKey(k, f.value, f.pos, false)
			continue
		}
		l.unknown(g, f)
	}
}

func (l *loader) block(g *group, f field) {
	switch f.value.kind {
	case mapNode:
		l.walk(g, f.value)
	case badNode:
		l.meant[g.path] = true
	case nullNode:
		l.meant[g.path] = true
		l.fail(f.pos, CodeShape, g.path+" is a block of keys, but it is empty",
			"remove it, or put keys in it: "+enumerate(g.names, 14))
	default:
		l.meant[g.path] = true
		help := "keys here: " + enumerate(g.names, 14)
		if k := g.keys["kind"]; k != nil && f.value.kind == scalarNode {
			help = fmt.Sprintf("write %s: {kind: %s}", g.path, f.value.text)
		}
		l.fail(f.value.pos, CodeShape, fmt.Sprintf("%s is a block of keys, got %s", g.path, describe(f.value)), help)
	}
}

// setKey sets a key, or adds to its list or map.
func (l *loader) setKey(k *Key, n *node, name pos, add bool) {
	if l.user && k.Role != Nonsemantic {
		l.fail(name, CodeUser, k.Path+" can change results and does not belong in the user's own configuration",
			"set it in the recipe")
		return
	}
	v, ok, errs := decode(k, n, name)
	l.errs = append(l.errs, errs...)
	if !ok {
		l.bad[k.Path] = true
		return
	}
	s := &setting{key: k, value: v, at: n.pos, name: name, rank: l.rank, onto: add}
	if before := l.set[k.Path]; add && before != nil {
		s.value, s.onto = joined(before.value, v), before.onto
	}
	l.set[k.Path] = s
}

// joined returns a new list with the items of both lists, or a new map with the values
// of both.
func joined(a, b any) any {
	if add, ok := b.(map[string]any); ok {
		m := map[string]any{}
		if base, ok := a.(map[string]any); ok {
			maps.Copy(m, base)
		}
		maps.Copy(m, add)
		return m
	}
	x, _ := a.([]any)
	y, _ := b.([]any)
	return append(append(make([]any, 0, len(x)+len(y)), x...), y...)
}

// unknown reports a key that is not in the table.
func (l *loader) unknown(g *group, f field) {
	path := f.name
	if g.path != "" {
		path = g.path + "." + f.name
	}
	if f.name == "extends" {
		l.fail(f.pos, CodeUnknown, fmt.Sprintf("unknown key %q", path),
			"extends belongs at the top of a file, outside all blocks")
		return
	}
	if g.path == "" && spelling.Nearest(f.name, []string{"extends"}) != "" {
		l.partial = true
		l.fail(f.pos, CodeUnknown, fmt.Sprintf("unknown key %q", path), `did you mean "extends"?`)
		return
	}
	if k := lookup(f.name); k != nil && f.name != k.Name() {
		l.meant[k.Path] = true
		l.fail(f.pos, CodeUnknown, fmt.Sprintf("unknown key %q", path),
			"keys nest in files: write "+nested(f.name, "..."))
		return
	}
	if now, why, ok := renamed(path); ok {
		l.meant[now] = now != ""
		l.fail(f.pos, CodeRenamed, fmt.Sprintf("unknown key %q: %s", path, why), "")
		return
	}
	help, near := didYouMean(g, f.name, path, f.pos.src.set)
	if near != "" {
		l.meant[near] = true
	}
	l.fail(f.pos, CodeUnknown, fmt.Sprintf("unknown key %q", path), help)
}
