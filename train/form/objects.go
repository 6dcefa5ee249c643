package form

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// errMember says that a required property has no schema.
var errMember = errors.New("is required, and properties has no schema for it")

// mostPatterns bounds the patterns of an object's names: each set of them has names of its own.
const mostPatterns = 6

// members are what a conjunction says of an object's members.
type members struct {
	x        *schemaReader
	words    []part
	named    []string // in order
	needed   map[string]bool
	patterns []namePattern
	open     bool // others than named ones, and those that patterns find, may come
	least    int
	most     int // -1: no limit
}

// namePattern is a pattern of names.
type namePattern struct {
	text string
	re   *regexp.Regexp
}

// membersOf reads what keywords say of an object's members.
func (x *schemaReader) membersOf(words []part) (m *members, err error) {
	m = &members{x: x, words: words, needed: map[string]bool{}}
	if m.least, m.most, err = between(words, "minProperties", "maxProperties"); err != nil {
		return nil, err
	}
	named, more := false, false
	for _, p := range words {
		switch p.word {
		case "properties", mustDiffer:
			o, err := p.object()
			if err != nil {
				return nil, err
			}
			for _, v := range o {
				m.name(v.name)
				m.needed[v.name] = m.needed[v.name] || p.word == mustDiffer
			}
			named = named || p.word == "properties"
		case mustLack:
			list, _ := p.texts()
			m.name(list[0])
		case "additionalProperties":
			more = true
		case "patternProperties":
			if err := m.find(p); err != nil {
				return nil, err
			}
			named = true
		}
	}
	m.open = more || !named
	for _, p := range words {
		if p.word != "required" && p.word != mustHave {
			continue
		}
		list, err := p.texts()
		if err != nil {
			return nil, err
		}
		where := p.where()
		if p.word == mustHave {
			where = p.at
		}
		for _, name := range list {
			if !slices.Contains(m.named, name) && len(m.partsOf(name)) == 0 {
				return nil, fmt.Errorf("%s: %q %w", where, name, errMember)
			}
			m.name(name)
			m.needed[name] = true
		}
	}
	return m, m.enumerate()
}

// name notes a name.
func (m *members) name(name string) {
	if !slices.Contains(m.named, name) {
		m.named = append(m.named, name)
	}
}

// find notes the patterns of names.
func (m *members) find(p part) error {
	o, err := p.object()
	if err != nil {
		return err
	}
	for _, v := range o {
		re, err := regexp.Compile(v.name)
		if err != nil {
			return fmt.Errorf("%s: %w", p.where(), err)
		}
		if !slices.ContainsFunc(m.patterns, func(n namePattern) bool { return n.text == v.name }) {
			m.patterns = append(m.patterns, namePattern{v.name, re})
		}
	}
	if len(m.patterns) > mostPatterns {
		return fmt.Errorf("%s has more than %d patterns, which are not supported", p.where(), mostPatterns)
	}
	return nil
}

// enumerate names the members whose names propertyNames lists, so that none comes twice.
func (m *members) enumerate() error {
	names := m.names()
	if len(names) == 0 {
		return nil
	}
	list, few, err := m.x.domain(append(names, names[0].of("propertyNames").typed("string")))
	if err != nil || !few {
		return err
	}
	for _, v := range list {
		if name := v.(string); len(m.partsOf(name)) > 0 || m.open {
			m.name(name)
		}
	}
	m.open, m.patterns = false, nil
	return nil
}

// names returns what the names of members follow.
func (m *members) names() (list []part) {
	for _, p := range m.words {
		if p.word == "propertyNames" {
			list = append(list, p.sub(p.word))
		}
	}
	return list
}

// partsOf returns what the member with a name follows.
func (m *members) partsOf(name string) []part {
	return m.parts(func(o object) (v any, ok bool) { return o.get(name) }, func(pattern string) bool {
		re, err := regexp.Compile(pattern)
		return err == nil && re.MatchString(name)
	}, name)
}

// parts returns what a member follows, which own finds among properties, and patterns find or not. name is its name,
// if it has one.
func (m *members) parts(own func(o object) (any, bool), found func(pattern string) bool, name string) (list []part) {
	for _, p := range m.words {
		value, _ := p.value().(object)
		switch p.word {
		case "properties", mustDiffer:
			if v, ok := own(value); ok {
				sub := p.member(member{name, v})
				if p.word == mustDiffer {
					sub.at, sub.not = p.at+".properties."+name, true
				}
				list = append(list, sub)
			}
		case "patternProperties":
			for _, v := range value {
				if found(v.name) {
					list = append(list, p.member(v))
				}
			}
		case "additionalProperties":
			named, _ := p.get("properties")
			patterns, _ := p.get("patternProperties")
			o, _ := named.(object)
			_, ok := own(o)
			o, _ = patterns.(object)
			if !ok && !slices.ContainsFunc(o, func(v member) bool { return found(v.name) }) {
				list = append(list, p.sub(p.word))
			}
		case mustLack:
			if names, _ := p.texts(); name != "" && names[0] == name {
				list = append(list, part{schema: false, at: p.where(), key: p.key})
			}
		}
	}
	return list
}

// memberText is a member as it is written.
type memberText struct {
	text   expr
	needed bool
}

// object returns objects that follow keywords.
func (x *schemaReader) object(words []part) (expr, error) {
	if len(words) == 0 {
		return x.json.object, nil
	}
	m, err := x.membersOf(words)
	if err != nil {
		return nil, err
	}
	json := layout{open: text("{"), space: x.json.space, comma: x.json.comma(), end: text("}"),
		named: func(name string, parts []part) (expr, error) {
			e, err := x.all(parts...)
			return seq(x.json.name(name), x.json.colon(), e), err
		},
		further: func(names func(q quote) (expr, error), parts []part) (expr, error) {
			var failed error
			name := x.json.quoted(func(q quote) expr {
				e, err := names(q)
				failed = errors.Join(failed, err)
				return e
			})
			if failed != nil {
				return nil, failed
			}
			e, err := x.all(parts...)
			return seq(name, x.json.colon(), e), err
		}}
	return m.write(&json)
}

// layout says how an object is written.
type layout struct {
	open, space, comma, end expr
	named                   func(name string, parts []part) (expr, error)
	further                 func(names func(q quote) (expr, error), parts []part) (expr, error)
}

// write stands for the objects.
func (m *members) write(l *layout) (expr, error) {
	var list []memberText
	names := m.names()
	for _, name := range m.named {
		fits, err := m.x.follows(name, 0, names...)
		if err != nil {
			return nil, err
		}
		e := expr(never)
		if fits {
			if e, err = l.named(name, m.partsOf(name)); err != nil {
				return nil, err
			}
		}
		list = append(list, memberText{e, m.needed[name]})
	}
	more, err := m.further(l)
	if err != nil {
		return nil, err
	}
	return m.lines(l, list, more), nil
}

// further returns members besides the named ones; nil: none may come.
func (m *members) further(l *layout) (expr, error) {
	options := []*conjunction{{}}
	names := m.names()
	if len(names) > 0 {
		var err error
		if options, err = m.x.options(names...); err != nil {
			return nil, err
		}
	}
	var list []expr
	for set := range 1 << len(m.patterns) {
		if set == 0 && !m.open {
			continue
		}
		found := func(pattern string) bool {
			i := slices.IndexFunc(m.patterns, func(n namePattern) bool { return n.text == pattern })
			return set>>i&1 == 1
		}
		parts := m.parts(func(object) (any, bool) { return nil, false }, found, "")
		if slices.ContainsFunc(parts, func(p part) bool { return p.schema == false }) {
			continue
		}
		for _, c := range options {
			e, err := l.further(func(q quote) (expr, error) { return m.spell(q, c, set) }, parts)
			if err != nil {
				return nil, err
			}
			list = append(list, e)
		}
	}
	if list == nil {
		return nil, nil
	}
	return m.x.g.shared("further members", alt(list...)), nil
}

// spell returns the names of further members between quotes, which a set of patterns find, and which follow a
// conjunction.
func (m *members) spell(q quote, c *conjunction, set int) (expr, error) {
	if len(m.patterns) == 0 && len(c.words) == 0 {
		if len(m.named) == 0 {
			return star(q.any), nil
		}
		return q.except(m.named), nil
	}
	var limits []limit
	for i, p := range m.patterns {
		e, err := search(p.text, q.char)
		if err != nil {
			return nil, err
		}
		limits = append(limits, limit{e, set>>i&1 == 0})
	}
	var differ []any
	for _, name := range m.named {
		differ = append(differ, name)
	}
	f, err := m.x.facts(c)
	switch {
	case err != nil:
		return nil, err
	case f.list || f.kinds&aText == 0:
		return never, nil // enumerate has named them, if no others may come
	}
	return textIn(q, f.words, append(differ, f.differ...), limits)
}

// lines stands for an object with members in their order; optional ones may be absent, and any number of further ones
// come behind.
func (m *members) lines(l *layout, list []memberText, more expr) expr {
	counted := max(1, m.least, m.most) // more of them are as good as so many
	return func(g *grammar, from, to node) {
		at := make([]node, counted+1) // by how many came before
		for n := range at {
			at[n] = g.node()
		}
		l.open(g, from, at[0])
		for _, e := range list {
			next := make([]node, counted+1)
			for n := range next {
				next[n] = g.node()
			}
			for n := range at {
				if !e.needed {
					g.skip(at[n], next[n])
				}
				if n == m.most || g.large {
					continue
				}
				in := g.node()
				m.before(l, n)(g, at[n], in)
				e.text(g, in, next[min(n+1, counted)])
			}
			at = next
		}
		for n := range at {
			if more != nil && n != m.most && !g.large {
				in := g.node()
				m.before(l, n)(g, at[n], in)
				more(g, in, at[min(n+1, counted)])
			}
			if n < m.least {
				continue
			}
			if n > 0 {
				seq(l.space, l.end)(g, at[n], to)
			} else {
				l.end(g, at[n], to)
			}
		}
	}
}

// before returns what stands before a member, if so many came before.
func (m *members) before(l *layout, n int) expr {
	if n == 0 {
		return l.space
	}
	return l.comma
}
