package chat

import (
	"math"
	"math/big"
	"strings"
)

// filterNamed returns the named filter, or nil.
func filterNamed(name string) builtin {
	return map[string]builtin{
		"abs":            alone("abs", absFilter),
		"attr":           bound("attr", attrFilter, "name"),
		"batch":          bound("batch", batchFilter, "linecount", "fill_with="),
		"capitalize":     caseFilter("capitalize"),
		"center":         bound("center", centerFilter, "width="),
		"count":          alone("length", lengthFilter),
		"d":              bound("default", defaultFilter, "default_value=", "boolean="),
		"default":        bound("default", defaultFilter, "default_value=", "boolean="),
		"dictsort":       bound("dictsort", dictsortFilter, "case_sensitive=", "by=", "reverse="),
		"e":              alone("escape", escapeFilter),
		"escape":         alone("escape", escapeFilter),
		"filesizeformat": bound("filesizeformat", filesizeFilter, "binary="),
		"first":          alone("first", firstFilter),
		"float":          bound("float", floatFilter, "default="),
		"forceescape":    alone("forceescape", forceescapeFilter),
		"format":         formatFilter,
		"groupby":        bound("groupby", groupbyFilter, "attribute", "default=", "case_sensitive="),
		"indent":         bound("indent", indentFilter, "width=", "first=", "blank="),
		"int":            bound("int", intFilter, "default=", "base="),
		"items":          alone("items", itemsFilter),
		"join":           bound("join", joinFilter, "d=", "attribute="),
		"last":           alone("last", lastFilter),
		"length":         alone("length", lengthFilter),
		"list":           alone("list", listFilter),
		"lower":          caseFilter("lower"),
		"map":            mapFilter,
		"max":            extremeFilter("max", ">"),
		"min":            extremeFilter("min", "<"),
		"reject":         selectFilter("reject", false, false),
		"rejectattr":     selectFilter("rejectattr", false, true),
		"pprint":         alone("pprint", pprintFilter),
		"replace":        bound("replace", replaceFilter, "old", "new", "count="),
		"reverse":        alone("reverse", reverseFilter),
		"round":          bound("round", roundFilter, "precision=", "method="),
		"safe":           alone("safe", safeFilter),
		"select":         selectFilter("select", true, false),
		"selectattr":     selectFilter("selectattr", true, true),
		"slice":          bound("slice", sliceFilter, "slices", "fill_with="),
		"sort":           bound("sort", sortFilter, "reverse=", "case_sensitive=", "attribute="),
		"string":         alone("string", stringFilter),
		"striptags":      alone("striptags", striptagsFilter),
		"sum":            bound("sum", sumFilter, "attribute=", "start="),
		"title":          alone("title", titleFilter),
		"tojson":         bound("tojson", tojsonFilter, "ensure_ascii=", "indent=", "separators=", "sort_keys="),
		"trim":           bound("trim", trimFilter, "chars="),
		"truncate":       bound("truncate", truncateFilter, "length=", "killwords=", "end=", "leeway="),
		"unique":         bound("unique", uniqueFilter, "case_sensitive=", "attribute="),
		"upper":          caseFilter("upper"),
		"urlencode":      alone("urlencode", urlencodeFilter),
		"wordcount":      alone("wordcount", wordcountFilter),
		"wordwrap": bound("wordwrap", wordwrapFilter, "width=", "break_long_words=", "wrapstring=",
			"break_on_hyphens="),
		"xmlattr": bound("xmlattr", xmlattrFilter, "autospace="),
	}[name]
}

func absFilter(_ *state, v Value) (Value, error) {
	if f, ok := v.(Float); ok {
		return newFloat(math.Abs(f.F)), nil
	}
	i, ok := asBig(v)
	if !ok {
		return nil, typeErr("abs needs a number, not %s", v.typeName())
	}
	return fromBig(new(big.Int).Abs(i)), nil
}

func attrFilter(st *state, v Value, args []Value) (Value, error) {
	name, err := textArgument("attr", args[0])
	if err != nil {
		return nil, err
	}
	got, err := st.attribute(v, name)
	if got == nil && err == nil {
		got = undefinedAttribute(v, name)
	}
	return got, err
}

func lengthFilter(st *state, v Value) (Value, error) {
	n, err := st.length(v)
	return Int(n), err
}

func defaultFilter(_ *state, v Value, args []Value) (Value, error) {
	_, undef := v.(*undefined)
	if undef || args[1] != nil && isTrue(args[1]) && !isTrue(v) {
		return optional(args[0], Str("")), nil
	}
	return v, nil
}

func stringFilter(st *state, v Value) (Value, error) {
	return st.softStr(v)
}

// softStr is str(v) that keeps markup.
func (st *state) softStr(v Value) (Value, error) {
	if _, ok := textOf(v); ok {
		return v, nil
	}
	s, err := st.str(v)
	return Str(s), err
}

// softText is softStr with its text.
func (st *state) softText(v Value) (Value, string, error) {
	v, err := st.softStr(v)
	if err != nil {
		return nil, "", err
	}
	s, _ := textOf(v)
	return v, s, st.chargeText(len(s))
}

func caseFilter(name string) builtin {
	return func(st *state, v Value, a *arguments) (Value, error) {
		if _, err := a.positional(name, 0, 0); err != nil {
			return nil, err
		}
		v, s, err := st.softText(v)
		if err == nil {
			err = st.chargeSlow(len(s))
		}
		if err != nil {
			return nil, err
		}
		return alike(v, changeCase(name, s)), nil
	}
}

// titleFilter capitalizes each word and lowers its rest; words begin after white space and
// after - ( { [ <.
func titleFilter(st *state, v Value) (Value, error) {
	_, s, err := st.softText(v)
	if err == nil {
		err = st.chargeSlow(len(s))
	}
	if err != nil {
		return nil, err
	}
	breaks := func(r rune) bool { return isSpace(r) || strings.ContainsRune("-({[<", r) }
	var b strings.Builder
	for s != "" {
		first, _ := splitRune(s)
		end := strings.IndexFunc(s, func(r rune) bool { return breaks(r) != breaks(first) })
		if end < 0 {
			end = len(s)
		}
		n := len(string(first))
		b.WriteString(upperRune(first))
		b.WriteString(lowerText(s[n:end]))
		s = s[end:]
	}
	return Str(b.String()), nil
}

func splitRune(s string) (rune, string) {
	for i, r := range s {
		return r, s[i+len(string(r)):]
	}
	return 0, ""
}

func trimFilter(st *state, v Value, args []Value) (Value, error) {
	v, s, err := st.softText(v)
	if err != nil {
		return nil, err
	}
	s, err = st.strip(s, "strip", args[0])
	return alike(v, s), err
}

func replaceFilter(st *state, v Value, args []Value) (Value, error) {
	var s [3]string
	for i, x := range []Value{v, args[0], args[1]} {
		var err error
		if s[i], err = st.str(x); err != nil {
			return nil, err
		}
	}
	n, err := optionalIndex(args[2], -1)
	if err != nil {
		return nil, err
	}
	text, err := st.replace(s[0], s[1], s[2], n)
	return Str(text), err
}

func centerFilter(st *state, v Value, args []Value) (Value, error) {
	v, s, err := st.softText(v)
	if err != nil {
		return nil, err
	}
	width, err := indexOf(optional(args[0], Int(80)))
	if err != nil {
		return nil, err
	}
	s, err = st.pad(s, "center", width, " ")
	return alike(v, s), err
}

// indentFilter indents lines by a number of spaces or by a text: all except the first line
// unless first, and except empty lines unless blank.
func indentFilter(st *state, v Value, args []Value) (Value, error) {
	s, ok := textOf(v)
	if !ok {
		if u, ok := v.(*undefined); ok {
			return nil, undefErr(u)
		}
		return nil, typeErr("indent needs a string, not %s", v.typeName())
	}
	unit, ok := textOf(optional(args[0], Int(4)))
	if !ok {
		n, err := indexOf(optional(args[0], Int(4)))
		if err != nil {
			return nil, err
		}
		unit = strings.Repeat(" ", max(min(n, maxOutput), 0))
	}
	lines := splitLines(s+"\n", false)
	if err := st.charge(len(lines) / 4); err != nil {
		return nil, err
	}
	blank := args[2] != nil && isTrue(args[2])
	for i := 1; i < len(lines); i++ {
		if blank || lines[i] != "" {
			if len(unit) > textPerStep {
				if err := st.chargeText(len(unit)); err != nil {
					return nil, err
				}
			}
			lines[i] = unit + lines[i]
		}
	}
	if args[1] != nil && isTrue(args[1]) {
		lines[0] = unit + lines[0]
	}
	text, err := st.joinTexts(lines, "\n")
	return alike(v, text), err
}

func formatFilter(st *state, v Value, a *arguments) (Value, error) {
	if len(a.pos) > 0 && len(a.names) > 0 {
		return nil, typeErr("format takes arguments either with names or without")
	}
	v, s, err := st.softText(v)
	if err != nil {
		return nil, err
	}
	if len(a.names) == 0 {
		return st.percent(v, s, newTuple(a.pos...))
	}
	d := &Dict{}
	for i, name := range a.names {
		d.Set(name, a.kw[i])
	}
	return st.percent(v, s, d)
}

func truncateFilter(st *state, v Value, args []Value) (Value, error) {
	end, err := textArgument("truncate", optional(args[2], Str("...")))
	if err != nil {
		return nil, err
	}
	n, err := indexOf(optional(args[0], Int(255)))
	if err != nil {
		return nil, err
	}
	leeway, err := optionalIndex(args[3], 5)
	if err != nil {
		return nil, err
	}
	size, err := st.length(v)
	if err != nil {
		return nil, err
	}
	e, err := st.runesOf(end)
	switch {
	case err != nil:
		return nil, err
	case n < e.len() || leeway < 0:
		return nil, valueErr("truncate: the length is less than its end's, or the leeway is negative")
	case size <= n || size-n <= leeway:
		return v, nil
	}
	s, err := textArgument("truncate", v)
	if err != nil {
		return nil, err
	}
	t, err := st.runesOf(s)
	if err != nil {
		return nil, err
	}
	cut := t.cut(0, n-e.len())
	if args[1] == nil || !isTrue(args[1]) {
		if i := strings.LastIndexByte(cut, ' '); i >= 0 {
			cut = cut[:i]
		}
	}
	return st.join(alike(v, cut), optional(args[2], Str("...")))
}

func wordcountFilter(st *state, v Value) (Value, error) {
	_, s, err := st.softText(v)
	return Int(len(strings.FieldsFunc(s, func(r rune) bool { return !isWordRune(r) }))), err
}
