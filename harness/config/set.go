package config

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// expression applies one expression, path=value or path+=value, of a source. The value is YAML in
// flow style.
func (l *loader) expression(src *source, text string) {
	src.lines = []string{text}
	start := pos{src: src, line: 1, col: 1, width: utf8.RuneCountInString(text)}
	path, value, ok := strings.Cut(text, "=")
	if !ok || strings.Trim(path, " +.") == "" {
		l.fail(start, CodeSet, fmt.Sprintf("%q is not of the form path=value", text),
			"for example --set train.steps=100")
		return
	}
	at := utf8.RuneCountInString(path) + 1
	path, add := strings.CutSuffix(path, "+")
	path = strings.TrimSpace(path)
	if binaryAt([]byte(text)) >= 0 || strings.ContainsAny(value, "\n\r") || len(text) > maxFileBytes {
		l.fail(start, CodeSet, "the value must be text on one line", "use --overlay FILE for longer values")
		return
	}
	root, errs := parseYAML(src, value, at)
	l.errs = append(l.errs, errs...)
	if len(errs) > 0 {
		l.partial = true
		return
	}
	if root == nil {
		l.fail(start, CodeSet, path+" needs a value after =", `write null to clear it, "" for empty text`)
		return
	}
	l.assignPath(path, root, start, add)
}

// assignPath sets the key, or the keys of the block, at path.
func (l *loader) assignPath(path string, v *node, start pos, add bool) {
	g := schema().root
	parts := strings.Split(path, ".")
	for i, name := range parts[:len(parts)-1] {
		if k := g.keys[name]; k != nil && k.Kind == Values && i == len(parts)-2 && !add {
			one := field{name: parts[i+1], pos: start, value: v}
			l.setKey(k, &node{kind: mapNode, fields: []field{one}, pos: v.pos}, start, true)
			return
		}
		child := g.groups[name]
		if child == nil {
			l.unknownPath(g, name, path, start)
			return
		}
		g = child
	}
	last := parts[len(parts)-1]
	k := g.keys[last]
	switch {
	case add && (k == nil || !k.List):
		if k == nil && g.groups[last] == nil {
			l.unknownPath(g, last, path, start)
			return
		}
		l.fail(start, CodeSet, path+" is not a list: += cannot append to it", "write "+path+"=...")
	case add:
		if v.kind != listNode {
			v = &node{kind: listNode, items: []*node{v}, pos: v.pos}
		}
		l.setKey(k, v, start, true)
	case k != nil:
		l.setKey(k, v, start, false)
	case g.groups[last] != nil:
		l.block(g.groups[last], field{name: last, pos: start, value: v})
	default:
		l.unknownPath(g, last, path, start)
	}
}

// unknownPath reports a path whose component name is not in group g.
func (l *loader) unknownPath(g *group, name, path string, start pos) {
	if now, why, ok := renamed(path); ok {
		l.meant[now] = now != ""
		l.fail(start, CodeRenamed, fmt.Sprintf("unknown key %q: %s", path, why), "")
		return
	}
	if path == "extends" {
		l.fail(start, CodeSet, "extends works only in files", "lay a file over the configuration with --overlay")
		return
	}
	first, _, _ := strings.Cut(path, ".")
	if _, why, ok := renamed(first); ok {
		if is, of := strings.CutPrefix(why, "it is"); of {
			why = first + " is" + is
		}
		help := ""
		if all := elsewhere(path[strings.LastIndexByte(path, '.')+1:], path); len(all) > 0 {
			help, l.meant[all[0]] = anyOf(all), true
		}
		l.fail(start, CodeRenamed, fmt.Sprintf("unknown key %q: %s", path, why), help)
		return
	}
	help, near := likelyPath(g, name, path)
	if near != "" {
		l.meant[near] = true
	}
	l.fail(start, CodeUnknown, fmt.Sprintf("unknown key %q", path), help)
}

// likelyPath returns help for an unknown path and the key it suggests. A mistake in the last component is looked for
// in its block first, unless one letter is wrong.
func likelyPath(g *group, name, path string) (help, suggested string) {
	near, edits := nearestPath(path, paths())
	_, last := cutLast(path)
	if near != "" && (name != last || edits == 1) {
		return anyOf([]string{near}), near
	}
	if help, suggested = didYouMean(g, name, path, true); suggested != "" {
		return help, suggested
	}
	if all := elsewhere(last, path); len(all) > 0 {
		return anyOf(all), all[0]
	}
	return help, ""
}

// paths lists all key paths.
func paths() []string {
	var list []string
	for _, k := range schema().keys {
		list = append(list, k.Path)
	}
	return list
}

// nested writes a dotted path as nested blocks in flow style.
func nested(path, value string) string {
	parts := strings.Split(path, ".")
	s := parts[len(parts)-1] + ": " + value
	for i := len(parts) - 2; i >= 0; i-- {
		s = parts[i] + ": {" + s + "}"
	}
	return s
}
