package config

import (
	"fmt"
	"math"
	"strings"

	"exp/experiments/spelling"
)

// issue is a fault of a value that has no place yet.
type issue struct {
	code, message, help string
}

// decoder reads the values of one key and notes problems.
type decoder struct {
	key    *Key
	path   string // of the value, for messages: task.outcomes.modes[1].width
	errs   Errors
	failed bool // no value, because of errs or a bad node
}

// decode returns the plain value of a key that the node holds and whether it is valid.
// If not, it also returns the faults that were not noted before.
func decode(k *Key, n *node, name pos) (any, bool, Errors) {
	d := decoder{key: k, path: k.Path}
	v := d.value(n, name)
	return v, !d.failed, d.errs
}

func (d *decoder) fail(at pos, code, message, help string) {
	d.failed = true
	d.errs = append(d.errs, at.fault(code, message, help))
}

// join takes over the faults of a part of the value.
func (d *decoder) join(part decoder) {
	d.errs = append(d.errs, part.errs...)
	d.failed = d.failed || part.failed
}

// value reads a whole value. name is the place of the key, used for errors if the value
// is missing.
func (d *decoder) value(n *node, name pos) any {
	k := d.key
	switch {
	case n.kind == badNode:
		d.failed = true
	case n.kind == nullNode && k.Null:
	case n.kind == nullNode:
		d.fail(name, CodeNull, fmt.Sprintf("%s needs a value, got null", d.path), wants(k))
	case k.JSON && n.kind == listNode:
		return jsonText(n)
	case k.List && n.kind == listNode:
		return d.list(n)
	case k.List:
		d.fail(n.pos, CodeType, fmt.Sprintf("%s must be a list, got %s", d.path, describe(n)),
			"write it in brackets: ["+written(n)+"]")
	case k.Kind == Values && n.kind == mapNode:
		return d.values(n)
	case n.kind == scalarNode:
		return d.scalar(n)
	default:
		help := ""
		split, ok := strings.CutSuffix(k.Path, ".source")
		if ok && n.kind == listNode && lookup(split+".more") != nil {
			help = fmt.Sprintf("the first file is %s, the others are %s.more", k.Path, split)
		} else if n.kind == mapNode && len(n.fields) == 1 && k.Kind == String {
			help = "put text that holds : in quotes"
		}
		d.fail(n.pos, CodeType, fmt.Sprintf("%s must be %s, got %s", d.path, article(k), describe(n)), help)
	}
	return nil
}

func (d *decoder) list(n *node) any {
	element := *d.key
	element.List, element.Null = false, false
	values := make([]any, 0, len(n.items))
	seen := map[string]bool{}
	for i, item := range n.items {
		e := decoder{key: &element, path: fmt.Sprintf("%s[%d]", d.path, i)}
		var v any
		if element.Kind == Objects && item.kind == mapNode {
			v = e.object(item)
		} else {
			v = e.value(item, item.pos)
		}
		if !e.failed && element.Kind == Enum {
			if seen[v.(string)] {
				e.fail(item.pos, CodeRange, fmt.Sprintf("%s lists %s twice", d.path, v), "keep one")
			}
			seen[v.(string)] = true
		}
		d.join(e)
		values = append(values, v)
	}
	return values
}

// object reads one element of a list of blocks.
func (d *decoder) object(n *node) any {
	value := map[string]any{}
	var names []string
	for i := range d.key.Fields {
		names = append(names, d.key.Fields[i].Path)
	}
	for _, f := range n.fields {
		k := d.field(f.name)
		if k == nil {
			help := "keys here: " + enumerate(names, 14)
			if near := spelling.Nearest(f.name, names); near != "" {
				help = fmt.Sprintf("did you mean %q? %s", near, help)
			}
			d.fail(f.pos, CodeUnknown, fmt.Sprintf("unknown key %q in %s", f.name, d.path), help)
			continue
		}
		e := decoder{key: k, path: d.path + "." + k.Path}
		value[k.Path] = e.value(f.value, f.pos)
		d.join(e)
	}
	for i := range d.key.Fields {
		k := &d.key.Fields[i]
		if _, ok := value[k.Path]; !ok && !d.failed {
			d.fail(n.pos, CodeMissing, fmt.Sprintf("%s.%s is required", d.path, k.Path), wants(k))
		}
	}
	return value
}

// values reads user-defined names, each with a scalar whose type follows from how it is
// written.
func (d *decoder) values(n *node) any {
	value := map[string]any{}
	for _, f := range n.fields {
		switch f.value.kind {
		case scalarNode:
			value[f.name] = anyScalar(f.value)
		case nullNode:
			value[f.name] = nil
		default:
			d.fail(f.value.pos, CodeType, fmt.Sprintf("%s.%s must be a text, a number, true, false or null, got %s",
				d.path, f.name, describe(f.value)), "")
		}
	}
	return value
}

// anyScalar reads a scalar by its notation.
func anyScalar(n *node) any {
	if n.quoted {
		return n.text
	}
	if b, bad := parseBool(n.text); bad == nil {
		return b
	}
	if i, ok := parseInt(n.text); ok {
		return i
	}
	if x, ok := parseFloat(n.text); ok {
		return x
	}
	return n.text
}

func (d *decoder) field(name string) *Key {
	for i := range d.key.Fields {
		if d.key.Fields[i].Path == name {
			return &d.key.Fields[i]
		}
	}
	return nil
}

func (d *decoder) scalar(n *node) any {
	v, bad := d.parse(n)
	if bad == nil {
		bad = d.outside(v, n.text)
	}
	if bad != nil {
		d.fail(n.pos, bad.code, d.path+" "+bad.message, bad.help)
		return nil
	}
	return v
}

// parse reads the text of a scalar as the key's kind.
func (d *decoder) parse(n *node) (any, *issue) {
	k, s := d.key, n.text
	if n.quoted && k.Kind != String && k.Kind != Enum && k.Kind != Share {
		help := ""
		bare := *n
		bare.quoted = false
		if _, bad := d.parse(&bare); bad == nil {
			help = "remove the quotes"
		}
		return nil, &issue{CodeType, fmt.Sprintf("must be %s, got the text %q", article(k), s), help}
	}
	switch k.Kind {
	case Int:
		if v, ok := parseInt(s); ok {
			return v, nil
		}
		return nil, notInt(s)
	case Float:
		read := parseFloat
		if k.Unit == "fraction" {
			read = parseFraction
		}
		if v, ok := read(s); ok {
			return v, nil
		}
		return nil, notFloat(k, s)
	case Bool:
		return parseBool(s)
	case Duration:
		if v, ok := parseDuration(s); ok {
			return v, nil
		}
		return nil, &issue{CodeType, "must be a duration, got " + s, "write a number with its unit: 500ms, 90s, 2h"}
	case Size:
		if v, ok := parseSize(s); ok {
			return v, nil
		}
		return nil, &issue{CodeType, "must be a size, got " + s, "write a number with its unit: 512MiB, 4GiB"}
	case Share:
		if v, ok := parseShare(s); ok {
			return v, nil
		}
		return nil, &issue{CodeWord, fmt.Sprintf("must be all, none or sampled(p), got %s", s),
			"sampled(0.02) keeps 2 %"}
	case Enum:
		return d.word(s)
	case String:
		return d.text(n)
	}
	return nil, &issue{CodeType, "must be " + article(k) + ", got " + describe(n), ""}
}

func (d *decoder) word(s string) (any, *issue) {
	for _, w := range d.key.Words {
		if s == w {
			return s, nil
		}
	}
	help := ""
	if near := spelling.Nearest(s, d.key.Words); near != "" {
		help = fmt.Sprintf("did you mean %q?", near)
	}
	return nil, &issue{CodeWord, fmt.Sprintf("must be one of %s, got %q", strings.Join(d.key.Words, ", "), s), help}
}

func (d *decoder) text(n *node) (any, *issue) {
	s := n.text
	if !n.quoted && (looksNumeric(s) || s == "true" || s == "false") {
		return nil, &issue{CodeType, "must be text, got " + describe(n), fmt.Sprintf("put it in quotes: %q", s)}
	}
	if p := d.key.Pattern; p != nil && !p.expr.MatchString(s) {
		return nil, &issue{CodeWord, fmt.Sprintf("must be %s, got %q", p.Text, s), ""}
	}
	if s == "" && d.key.Pattern == nil {
		return nil, &issue{CodeRange, "must not be empty", ""}
	}
	return s, nil
}

// outside returns an issue if a number is outside the key's range.
func (d *decoder) outside(v any, text string) *issue {
	k := d.key
	var x float64
	switch v := v.(type) {
	case int64:
		x = float64(v)
	case float64:
		x = v
	default:
		return nil
	}
	if k.Range.Has(x) {
		return nil
	}
	return &issue{CodeRange, fmt.Sprintf("must be %s, got %s", k.Range.format(k), text), nearMiss(k, text, x)}
}

// nearMiss guesses the value meant by a number outside the range.
func nearMiss(k *Key, text string, x float64) string {
	guess := func(v float64) string {
		if !k.Range.Has(v) {
			return ""
		}
		return fmt.Sprintf("did you mean %s?", formatNumber(k, v))
	}
	mantissa, exponent, ok := strings.Cut(strings.ToLower(text), "e")
	if ok && k.Kind == Float && !strings.HasPrefix(exponent, "-") {
		if v, valid := parseFloat(mantissa + "e-" + strings.TrimPrefix(exponent, "+")); valid && k.Range.Has(v) {
			return fmt.Sprintf("did you mean %s?", formatFloat(v))
		}
	}
	if x < 0 {
		return guess(-x)
	}
	if k.Unit == "fraction" && x > 1 && x <= 100 && !strings.HasSuffix(text, "%") {
		return guess(x / 100)
	}
	return ""
}

// notInt explains why text is not an integer.
func notInt(s string) *issue {
	help := ""
	x, numeric := parseFloat(s)
	switch {
	case numeric && x == math.Trunc(x) && math.Abs(x) < 1e15:
		help = "write " + formatScalar(Int, int64(x))
	case strings.HasPrefix(s, "0x"), strings.HasPrefix(s, "0o"), strings.HasPrefix(s, "0b"):
		help = "write it in decimal digits"
	}
	if parsed := strings.TrimLeft(s, "+-"); intText.MatchString(s) && len(parsed) > 15 {
		return &issue{CodeRange, "must be a 64-bit integer, got " + s, ""}
	}
	return &issue{CodeType, "must be an integer, got " + quoteOdd(s), help}
}

// notFloat explains why text is not a number.
func notFloat(k *Key, s string) *issue {
	help := ""
	switch {
	case strings.HasSuffix(s, "%"):
		help = "a percentage is allowed for fractions only; write the number"
	case strings.Count(s, ",") == 1 && looksNumeric(strings.Replace(s, ",", ".", 1)):
		help = "did you mean " + strings.Replace(s, ",", ".", 1) + "?"
	case strings.TrimLeft(strings.ToLower(s), "+-") == ".inf" || strings.ToLower(s) == ".nan":
		help = "numbers are finite"
		if k.Null {
			help += "; null means no limit"
		}
	}
	return &issue{CodeType, "must be a number, got " + quoteOdd(s), help}
}

func parseBool(s string) (any, *issue) {
	meant := ""
	switch strings.ToLower(s) {
	case "true", "yes", "on", "y", "1":
		meant = "true"
	case "false", "no", "off", "n", "0":
		meant = "false"
	}
	switch {
	case s == meant && s != "":
		return s == "true", nil
	case meant != "":
		return nil, &issue{CodeBool, "must be true or false, got " + s, "write " + meant}
	}
	return nil, &issue{CodeType, "must be true or false, got " + quoteOdd(s), ""}
}

// quoteOdd quotes text that is not a number.
func quoteOdd(s string) string {
	if looksNumeric(s) {
		return s
	}
	return fmt.Sprintf("%q", s)
}

// describe names a node: the number 3, the text "a", a list, a block.
func describe(n *node) string {
	switch n.kind {
	case nullNode:
		return "null"
	case listNode:
		return "a list"
	case mapNode:
		return "a block"
	}
	switch {
	case n.quoted:
	case looksNumeric(n.text):
		return "the number " + n.text
	case n.text == "true" || n.text == "false":
		return n.text
	}
	return fmt.Sprintf("the text %q", n.text)
}

// written returns a scalar as it is written in the file; "" for lists and blocks.
func written(n *node) string {
	if n.kind != scalarNode {
		return "..."
	}
	if n.quoted {
		return fmt.Sprintf("%q", n.text)
	}
	return n.text
}

// article names the key's kind after "must be".
func article(k *Key) string {
	return [...]string{
		Int: "an integer", Float: "a number", Bool: "true or false", String: "text", Enum: "one of " +
			strings.Join(k.Words, ", "),
		Duration: "a duration", Size: "a size", Share: "all, none or sampled(p)", Objects: "a block of keys",
		Values: "a block of names with values",
	}[k.Kind]
}

// wants returns the help for a key without a value: its type and meaning.
func wants(k *Key) string { return fmt.Sprintf("%s: %s (%s)", k.Path, k.Help, k.Type()) }
