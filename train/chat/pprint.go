package chat

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// pprintFilter is Python's pprint.pformat(v): a repr with sorted dicts, broken into lines of at most 80 characters.
func pprintFilter(st *state, v Value) (Value, error) {
	p := printer{st: st}
	err := p.value(v, 0, 0, 0)
	return Str(p.b.String()), err
}

const pprintWidth = 80

// printer writes values over several lines. Its methods take the column where a value begins, and how many characters
// must fit on the line after its end.
type printer struct {
	st *state
	b  strings.Builder
}

func (p *printer) write(s string) error {
	if p.b.Len()+len(s) > maxOutput {
		return limitErr("text longer than %d bytes", maxOutput)
	}
	p.b.WriteString(s)
	return p.st.charge(len(s) / textPerStep)
}

// newLine begins a line at a column.
func (p *printer) newLine(column int) error { return p.write("\n" + strings.Repeat(" ", column)) }

func (p *printer) repr(v Value) (string, error) {
	w := reprWriter{st: p.st, sorted: true}
	err := w.value(v, 0)
	return w.b.String(), err
}

// value writes v, depth levels below the outermost value: on one line if it fits.
func (p *printer) value(v Value, column, after, depth int) error {
	s, err := p.repr(v)
	if err != nil {
		return err
	}
	if utf8.RuneCountInString(s) <= pprintWidth-column-after {
		return p.write(s)
	}
	switch v := v.(type) {
	case *Dict:
		return p.dict(p.st.byKey(v), column, after, depth)
	case *List:
		return p.items("[", v.Items, "]", column, after, depth)
	case *tuple:
		if len(v.items) == 1 {
			return p.items("(", v.items, ",)", column, after, depth)
		}
		return p.items("(", v.items, ")", column, after, depth)
	case Str:
		return p.text(string(v), column, after, depth == 0)
	}
	return p.write(s)
}

func (p *printer) items(open string, items []Value, end string, column, after, depth int) error {
	if err := p.write(open); err != nil {
		return err
	}
	for i, v := range items {
		follows := 1 // a comma
		if i == len(items)-1 {
			follows = after + len(end)
		}
		err := p.value(v, column+1, follows, depth+1)
		if err == nil && i < len(items)-1 {
			err = p.write(",")
			if err == nil {
				err = p.newLine(column + 1)
			}
		}
		if err != nil {
			return err
		}
	}
	return p.write(end)
}

func (p *printer) dict(d *Dict, column, after, depth int) error {
	open := "{"
	for i, k := range d.keys {
		key, err := p.repr(k)
		if err != nil {
			return err
		}
		if err := p.write(open + key + ": "); err != nil {
			return err
		}
		open = ",\n" + strings.Repeat(" ", column+1)
		follows := 1
		if i == d.Len()-1 {
			follows = after + 1
		}
		if err := p.value(d.vals[i], column+1+utf8.RuneCountInString(key)+2, follows, depth+1); err != nil {
			return err
		}
	}
	return p.write("}")
}

// text writes a string as adjacent literals, cut after line ends and white space. An outermost string gets brackets.
func (p *printer) text(s string, column, after int, outermost bool) error {
	open, end := "", ""
	if outermost {
		open, end = "(", ")"
		column++
		after++
	}
	var literals []string
	lines := splitLines(s, true)
	last := ""
	for i, line := range lines {
		if err := p.st.chargeSlow(len(line)); err != nil {
			return err
		}
		width, rest := pprintWidth-column, 0
		if i == len(lines)-1 {
			rest = after
		}
		if last = quote(line); utf8.RuneCountInString(last) <= width-rest {
			literals = append(literals, last)
			continue
		}
		cut, err := p.cut(line, width, rest)
		if err != nil {
			return err
		}
		literals = append(literals, cut...)
	}
	if len(literals) == 1 {
		return p.write(last)
	}
	if err := p.write(open); err != nil {
		return err
	}
	for i, s := range literals {
		if i > 0 {
			if err := p.newLine(column); err != nil {
				return err
			}
		}
		if err := p.write(s); err != nil {
			return err
		}
	}
	return p.write(end)
}

// cut returns the literals of one line, cut after white space so that each is at most width long where it can be, and
// the last with rest more.
func (p *printer) cut(line string, width, rest int) ([]string, error) {
	var literals []string
	current := ""
	for parts := wordsWithSpace(line); len(parts) > 0; parts = parts[1:] {
		if len(parts) == 1 {
			width -= rest
		}
		longer := current + parts[0]
		if err := p.st.chargeSlow(len(longer)); err != nil {
			return nil, err
		}
		if utf8.RuneCountInString(quote(longer)) <= width {
			current = longer
			continue
		}
		if current != "" {
			literals = append(literals, quote(current))
		}
		current = parts[0]
	}
	if current != "" {
		literals = append(literals, quote(current))
	}
	return literals, nil
}

// wordsWithSpace cuts a text into words, each with the white space after it.
func wordsWithSpace(s string) []string {
	var parts []string
	from, space := 0, false
	for i, r := range s {
		if !isSpace(r) && space {
			parts = append(parts, s[from:i])
			from = i
		}
		space = isSpace(r)
	}
	return append(parts, s[from:])
}

// byKey returns a dict in the order of its keys; keys that cannot be compared come in the order of their types' names.
func (st *state) byKey(d *Dict) *Dict {
	order := make([]int, d.Len())
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := d.keys[i], d.keys[j]
		less, err := st.order("<", a, b)
		more, _ := st.order(">", a, b)
		switch {
		case err != nil:
			return strings.Compare(a.typeName(), b.typeName())
		case less:
			return -1
		case more:
			return 1
		}
		return 0
	})
	sorted := &Dict{}
	for _, i := range order {
		_ = sorted.set(d.keys[i], d.vals[i]) // a key of a dict can be hashed
	}
	return sorted
}
