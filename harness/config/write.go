package config

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// YAML writes the configuration with every key that has an effect, defaults included,
// in table order. Loading it gives the same configuration.
func (r *Resolved) YAML() string {
	return r.write(func(*Key) string { return "" })
}

// WithOrigins writes the configuration like YAML, with the origin of each value as a
// comment, and lists dropped settings (inherited ones that have no effect here) as
// comments at the end.
func (r *Resolved) WithOrigins() string {
	var b strings.Builder
	b.WriteString(r.write(func(k *Key) string { return r.Origin(k.Path) }))
	for _, d := range r.Dropped {
		fmt.Fprintf(&b, "# dropped %s: %s (%s): %s (%s)\n", d.Path, d.Value, d.Origin, d.Because, d.Switch)
	}
	return b.String()
}

// write renders the tree of keys; remark is a comment for a key's line.
func (r *Resolved) write(remark func(k *Key) string) string {
	w := treeWriter{r: r, remark: remark}
	w.group(schema().root, 0)
	width := 0
	for _, l := range w.lines {
		if n := utf8.RuneCountInString(l.text); l.remark != "" && n <= 60 {
			width = max(width, n)
		}
	}
	var b strings.Builder
	for _, l := range w.lines {
		b.WriteString(l.text)
		if l.remark != "" {
			b.WriteString(strings.Repeat(" ", max(width-utf8.RuneCountInString(l.text), 0)))
			b.WriteString("  # " + printable(l.remark))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// treeWriter collects the lines of a configuration file.
type treeWriter struct {
	r      *Resolved
	remark func(k *Key) string
	lines  []struct{ text, remark string }
}

func (w *treeWriter) line(text, remark string) {
	w.lines = append(w.lines, struct{ text, remark string }{text, remark})
}

func (w *treeWriter) group(g *group, depth int) {
	indent := strings.Repeat("  ", depth)
	for _, name := range g.names {
		if k := g.keys[name]; k != nil {
			if v, ok := w.r.Value(k.Path); ok {
				w.line(indent+name+": "+Format(k, v), w.remark(k))
			}
			continue
		}
		if child := g.groups[name]; w.any(child) {
			w.line(indent+name+":", "")
			w.group(child, depth+1)
		}
	}
}

// any reports whether a key of the group has an effect.
func (w *treeWriter) any(g *group) bool {
	for _, k := range g.keys {
		if w.r.Has(k.Path) {
			return true
		}
	}
	for _, child := range g.groups {
		if w.any(child) {
			return true
		}
	}
	return false
}
