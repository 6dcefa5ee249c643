package tokenizer

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cased matches the properties that a class without regard to case extends.
var cased = regexp.MustCompile(`\\[pP]\{L[ult]\}|\\P`)

const latinNumbers = `\xB2\xB3\xB9\xBC-\xBE`

// escape parses the text after a backslash outside a class.
func (p *onigParser) escape(f onigFlags) (string, error) {
	if p.at >= len(p.text) {
		return "", fmt.Errorf("trailing backslash")
	}
	// Outside a class \w also has the numbers of Latin-1, from a separate table.
	word, noWord := "["+onigWord()+latinNumbers+"]", "[^"+onigWord()+latinNumbers+"]"
	switch c := p.text[p.at]; c {
	case 'w', 'W', 'b', 'B', 'A', 'z', 'Z', 'R':
		p.at++
		return map[byte]string{
			'w': word, 'W': noWord, 'A': `\A`, 'z': `\z`, 'Z': `(?=\n?\z)`,
			'b': "(?:(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + "))",
			'B': "(?:(?<=" + word + ")(?=" + word + ")|(?<!" + word + ")(?!" + word + "))",
			'R': `(?>\r\n|[\n-\r\x85\u2028\u2029])`,
		}[c], nil
	case 'P':
		// Not inside a class, because the newer characters can be excluded.
		p.at++
		members, err := p.property(false)
		return "[^" + members + "]", err
	case 'D':
		p.at++
		return `[^\d` + newerMembers("N") + "]", nil
	case 'H':
		p.at++
		return `[^0-9a-fA-F]`, nil
	}
	members, _, err := p.member(f)
	return "[" + members + "]", err
}

// member parses the text after a backslash in a class, as members of a class. single is the
// character if it is one, which may start or end a range.
func (p *onigParser) member(f onigFlags) (members string, single rune, err error) {
	if p.at >= len(p.text) {
		return "", -1, fmt.Errorf("trailing backslash")
	}
	r, n := utf8.DecodeRuneInString(p.text[p.at:])
	p.at += n
	switch r {
	case 'd':
		return `\d` + newerMembers("N"), -1, nil
	case 's', 'S', 'D':
		return `\` + string(r), -1, nil
	case 'w':
		return onigWord(), -1, nil
	case 'h':
		return "0-9a-fA-F", -1, nil
	case 'p', 'P':
		members, err = p.property(r == 'P')
		if f.fold && err == nil && cased.MatchString(members) {
			err = fmt.Errorf("letters of one case, in a class without regard to case, are not supported")
		}
		return members, -1, err
	case 'n':
		r = '\n'
	case 't':
		r = '\t'
	case 'r':
		r = '\r'
	case 'f':
		r = '\f'
	case 'v':
		r = '\v'
	case 'a':
		r = '\a'
	case 'e':
		r = 0x1B
	case 'x', 'u':
		if r, err = p.hex(r); err != nil {
			return "", -1, err
		}
	default:
		if r < utf8.RuneSelf && (isASCIILetter(byte(r)) || r >= '0' && r <= '9') {
			return "", -1, fmt.Errorf("escape \\%c is not supported", r)
		}
	}
	if f.fold {
		return folded(r), r, nil
	}
	return quoted(r), r, nil
}

// hex parses the digits of \xHH, \x{H…} or \uHHHH.
func (p *onigParser) hex(kind rune) (rune, error) {
	digits := ""
	switch {
	case kind == 'x' && p.take("{"):
		end := strings.IndexByte(p.text[p.at:], '}')
		if end < 0 {
			return 0, fmt.Errorf("unterminated \\x{")
		}
		digits = p.text[p.at : p.at+end]
		p.at += end + 1
	default:
		most := 2
		if kind == 'u' {
			most = 4
		}
		for len(digits) < most && p.at < len(p.text) && strings.IndexByte("0123456789abcdefABCDEF",
			p.text[p.at]) >= 0 {
			digits += p.text[p.at : p.at+1]
			p.at++
		}
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || !utf8.ValidRune(rune(n)) {
		return 0, fmt.Errorf("\\%c%s is not a character", kind, digits)
	}
	return rune(n), nil
}

// property parses {Name} or {^Name} of \p and \P.
func (p *onigParser) property(not bool) (string, error) {
	end := strings.IndexByte(p.text[p.at:], '}')
	if !p.take("{") || end < 0 {
		return "", fmt.Errorf("\\p without a {name}")
	}
	name := p.text[p.at : p.at+end-1]
	p.at += end
	if strings.HasPrefix(name, "^") {
		not, name = !not, name[1:]
	}
	return propertyClass(name, not)
}

// propertyClass returns a property as member of a class: a general category, a script, or
// one of a few POSIX names.
func propertyClass(name string, not bool) (string, error) {
	plain := strings.NewReplacer("_", "", " ", "", "-", "").Replace(strings.ToLower(name))
	for long, short := range map[string]string{
		"letter": "L", "mark": "M", "number": "N", "punctuation": "P", "symbol": "S", "separator": "Z", "other": "C",
		"uppercaseletter": "Lu", "lowercaseletter": "Ll", "titlecaseletter": "Lt", "modifierletter": "Lm",
		"otherletter":   "Lo",
		"decimalnumber": "Nd", "digit": "Nd", "nonspacingmark": "Mn", "control": "Cc", "cntrl": "Cc",
	} {
		if plain == long {
			plain = strings.ToLower(short)
		}
	}
	escape := `\p{`
	if not {
		escape = `\P{`
	}
	if plain == "space" || plain == "whitespace" {
		if not {
			return `\S`, nil
		}
		return `\s`, nil
	}
	for known, table := range unicode.Categories {
		if strings.ToLower(known) == plain && known != "C" && known != "Cn" { // Go's C has no unassigned ones
			if not && newerMembers(known) != "" {
				return excluding(table, newerMembers(known)), nil
			}
			return escape + known + "}" + newerMembers(known), nil
		}
	}
	for known, table := range unicode.Scripts {
		if strings.ToLower(strings.ReplaceAll(known, "_", "")) == plain {
			if not && newerMembers(known) != "" {
				return excluding(table, newerMembers(known)), nil
			}
			return escape + known + "}" + newerMembers(known), nil
		}
	}
	return "", fmt.Errorf("property %q is not supported", name)
}

// excluding returns all characters outside a table and outside the ranges of newer, as members of a class.
func excluding(table *unicode.RangeTable, newer string) string {
	var b strings.Builder
	var ranges runeRanges
	for r := []rune(newer); len(r) > 0; r = r[3:] { // from, a hyphen, to
		ranges = append(ranges, [2]rune{r[0], r[2]})
	}
	slices.SortFunc(ranges, func(a, b [2]rune) int { return int(a[0] - b[0]) })
	from := rune(-1)
	for r := rune(0); r <= unicode.MaxRune+1; r++ {
		out := r <= unicode.MaxRune && !unicode.Is(table, r) && !ranges.has(r) && utf8.ValidRune(r)
		switch {
		case out && from < 0:
			from = r
		case !out && from >= 0:
			b.WriteString(quoted(from) + "-" + quoted(r-1))
			from = -1
		}
	}
	return b.String()
}

// class parses from after the opening bracket through the closing one.
func (p *onigParser) class(f onigFlags) (string, error) {
	if p.depth++; p.depth > onigDepth {
		return "", fmt.Errorf("classes are nested deeper than %d", onigDepth)
	}
	defer func() { p.depth-- }()
	open := "["
	if p.take("^") {
		open = "[^"
	}
	var members strings.Builder
	for first := true; ; first = false {
		if p.at >= len(p.text) {
			return "", fmt.Errorf("unterminated class")
		}
		if !first && p.take("]") {
			break
		}
		if p.has("&&") {
			if first || open == "[^" {
				return "", fmt.Errorf("the intersection && in a negated class, or of nothing, is not supported")
			}
			without, err := p.intersection(f)
			return open + members.String() + without + "]", err
		}
		m, err := p.classMember(f)
		if err != nil {
			return "", err
		}
		members.WriteString(m)
	}
	return open + members.String() + "]", nil
}

// intersection parses && and the classes after it through the closing bracket. It returns
// what regexp2 takes away from the members before them: -[b] for &&[^b], -[^b] for &&[b].
func (p *onigParser) intersection(f onigFlags) (string, error) {
	open := "-["
	var members strings.Builder
	for n := 0; p.take("&&"); n++ {
		if !p.take("[") || p.has(":") {
			return "", fmt.Errorf("the intersection && is only supported with a class in brackets")
		}
		if !p.has("^") {
			open = "-[^"
		}
		inner, err := p.class(f)
		if err != nil {
			return "", err
		}
		if n > 0 && open == "-[^" {
			return "", fmt.Errorf("more than one intersection && is only supported with negated classes")
		}
		if members.WriteString(strings.TrimPrefix(inner[1:len(inner)-1], "^")); strings.Contains(inner, "-[") {
			return "", fmt.Errorf("the intersection && in a class inside a class is not supported")
		}
	}
	if !p.take("]") {
		return "", fmt.Errorf("the intersection && is only supported at the end of a class")
	}
	return open + members.String() + "]", nil
}

// classMember parses one character, range, escape or nested class.
func (p *onigParser) classMember(f onigFlags) (string, error) {
	switch {
	case p.take("[:"):
		end := strings.Index(p.text[p.at:], ":]")
		if end < 0 {
			return "", fmt.Errorf("the class name after [: has no end")
		}
		name := p.text[p.at : p.at+end]
		p.at += end + 2
		not := strings.HasPrefix(name, "^")
		switch name = strings.TrimPrefix(name, "^"); name {
		case "alpha", "alnum", "upper", "lower", "punct", "graph", "print", "xdigit", "word", "ascii", "blank":
			return "", fmt.Errorf("class [:%s:] is not supported", name)
		}
		return propertyClass(name, not)
	case p.take("["):
		inner, err := p.class(f)
		if err == nil && strings.HasPrefix(inner, "[^") {
			err = fmt.Errorf("a negated class inside a class is not supported")
		}
		if err == nil && strings.Contains(inner, "-[") {
			err = fmt.Errorf("the intersection && in a class inside a class is not supported")
		}
		if err != nil {
			return "", err
		}
		return inner[1 : len(inner)-1], nil
	}
	members, from, err := p.single(f)
	if err != nil || from < 0 || !p.has("-") || p.at+1 >= len(p.text) || p.text[p.at+1] == ']' {
		return members, err
	}
	p.at++
	_, to, err := p.single(f)
	switch {
	case err != nil:
		return "", err
	case to < from:
		return "", fmt.Errorf("invalid range from %q to %q", from, to)
	case f.fold && to-from > foldMost:
		return "", fmt.Errorf("a case-insensitive range of more than %d characters", foldMost)
	case f.fold:
		for r := from; r <= to; r++ {
			if unicode.Is(longFolds, r) {
				return "", p.longFold(r, f)
			}
		}
		return foldedRange(from, to), nil
	}
	return quoted(from) + "-" + quoted(to), nil
}

// foldMost is the longest range that is folded character by character.
const foldMost = 4096

// foldedRange returns a range and all other cases of its letters.
func foldedRange(from, to rune) string {
	var out strings.Builder
	out.WriteString(quoted(from) + "-" + quoted(to))
	for r := from; r <= to; r++ {
		for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
			if o < from || o > to {
				out.WriteString(quoted(o))
			}
		}
	}
	return out.String()
}

// single parses a character or an escape in a class.
func (p *onigParser) single(f onigFlags) (members string, r rune, err error) {
	if p.take(`\`) {
		return p.member(f)
	}
	r, n := utf8.DecodeRuneInString(p.text[p.at:])
	p.at += n
	switch {
	case f.fold && unicode.Is(longFolds, r):
		return "", r, p.longFold(r, f)
	case f.fold:
		return folded(r), r, nil
	}
	return quoted(r), r, nil
}
