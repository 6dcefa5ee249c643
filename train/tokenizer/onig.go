package tokenizer

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tokenizer files hold regular expressions in Oniguruma's Ruby syntax. onigParser rewrites
// one for regexp2, which has .NET's syntax: possessive quantifiers become atomic groups, ^
// and $ match at every line, (?m) lets the dot match a line end, captures are dropped,
// letters in (?i) are folded by hand, and classes have Oniguruma's members. Syntax without
// an equivalent is an error that names it.
type onigParser struct {
	text  string
	at    int
	depth int
}

// onigFlags are the options of a group.
type onigFlags struct{ fold, dotAll, extended bool }

const (
	onigDepth  = 100 // nesting of groups and classes
	onigLength = 1 << 14
)

// onigWord lists the members of \w: alphabetic, marks, decimal numbers and connectors.
func onigWord() string {
	return `\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}Ⓐ-ⓩ🄰-🅉🅐-🅩🅰-🆉` +
		newerMembers("L") + newerMembers("M") + newerMembers("N")
}

// fromOnig rewrites pattern for regexp2.
func fromOnig(pattern string) (string, error) {
	if len(pattern) > onigLength {
		return "", fmt.Errorf("a regular expression of %d bytes; the longest supported one has %d",
			len(pattern), onigLength)
	}
	p := &onigParser{text: pattern}
	out, err := p.alternatives(onigFlags{})
	if err != nil {
		return "", fmt.Errorf("regular expression %q: at byte %d: %w", pattern, p.at, err)
	}
	if p.at < len(p.text) {
		return "", fmt.Errorf("regular expression %q: at byte %d: unmatched closing parenthesis", pattern, p.at)
	}
	return out, nil
}

func (p *onigParser) has(s string) bool { return strings.HasPrefix(p.text[p.at:], s) }

func (p *onigParser) take(s string) bool {
	if p.has(s) {
		p.at += len(s)
		return true
	}
	return false
}

// alternatives parses up to the end of the group or of the pattern.
func (p *onigParser) alternatives(f onigFlags) (string, error) {
	if p.depth++; p.depth > onigDepth {
		return "", fmt.Errorf("groups are nested deeper than %d", onigDepth)
	}
	defer func() { p.depth-- }()
	var out strings.Builder
	for p.at < len(p.text) && !p.has(")") {
		if p.take("|") {
			out.WriteByte('|')
			continue
		}
		atom, err := p.quantified(f)
		if err != nil {
			return "", err
		}
		out.WriteString(atom)
	}
	return out.String(), nil
}

// quantified parses an atom and its quantifiers.
func (p *onigParser) quantified(f onigFlags) (string, error) {
	atom, err := p.atom(f)
	if err != nil || atom == "" {
		return atom, err
	}
	for p.at < len(p.text) {
		low, high, braces, ok := p.quantifier()
		if !ok {
			break
		}
		q := fmt.Sprintf("{%d,%d}", low, high)
		if high < 0 {
			q = fmt.Sprintf("{%d,}", low)
		}
		switch {
		case p.has("?") && !(braces && low == high): // {n}? means {n}, optional
			p.at++
			atom = atom + q + "?"
		case p.has("+") && !braces:
			p.at++
			atom = "(?>" + atom + q + ")"
		default:
			atom = atom + q
		}
		atom = "(?:" + atom + ")"
	}
	return atom, nil
}

// quantifier parses ?, *, + or braces; high is -1 without a limit.
func (p *onigParser) quantifier() (low, high int, braces, ok bool) {
	switch {
	case p.take("?"):
		return 0, 1, false, true
	case p.take("*"):
		return 0, -1, false, true
	case p.take("+"):
		return 1, -1, false, true
	}
	end := strings.IndexByte(p.text[p.at:], '}')
	if !p.has("{") || end < 0 {
		return 0, 0, false, false
	}
	from, to, comma := strings.Cut(p.text[p.at+1:p.at+end], ",")
	if !comma {
		to = from
	}
	low, err := limit(from, 0)
	high, err2 := limit(to, -1)
	if err != nil || err2 != nil || from == "" && to == "" || high >= 0 && high < low {
		return 0, 0, false, false // literal braces
	}
	p.at += end + 1
	return low, high, true, true
}

// limit reads one side of {from,to}; Oniguruma's limit is 100000.
func limit(s string, absent int) (int, error) {
	if s == "" {
		return absent, nil
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err == nil && n > 100000 {
		err = strconv.ErrRange
	}
	return int(n), err
}

// atom parses one character, class, escape or group.
func (p *onigParser) atom(f onigFlags) (string, error) {
	r, n := utf8.DecodeRuneInString(p.text[p.at:])
	switch r {
	case '(':
		return p.group(f)
	case '[':
		p.at++
		return p.class(f)
	case '\\':
		p.at++
		return p.escape(f)
	case '.':
		p.at++
		if f.dotAll {
			return `[\s\S]`, nil
		}
		return `[^\n]`, nil
	case '^':
		p.at++
		return `(?:\A|(?<=\n)(?!\z))`, nil
	case '$':
		p.at++
		return `(?=\n|\z)`, nil
	case '?', '*', '+':
		return "", fmt.Errorf("quantifier %q with nothing before it", r)
	}
	if err := p.longFold(r, f); err != nil {
		return "", err
	}
	p.at += n
	if f.extended {
		if unicode.IsSpace(r) {
			return "", nil
		}
		if r == '#' {
			if i := strings.IndexByte(p.text[p.at:], '\n'); i >= 0 {
				p.at += i + 1
			} else {
				p.at = len(p.text)
			}
			return "", nil
		}
	}
	return literal(r, f), nil
}

// group parses from an opening parenthesis to its end.
func (p *onigParser) group(f onigFlags) (string, error) {
	p.at++
	open := "(?:"
	if p.take("?") {
		switch {
		case p.take("#"):
			end := strings.IndexByte(p.text[p.at:], ')')
			if end < 0 {
				return "", fmt.Errorf("unterminated comment")
			}
			p.at += end + 1
			return "", nil
		case p.take(":"):
		case p.take("="):
			open = "(?="
		case p.take("!"):
			open = "(?!"
		case p.take(">"):
			open = "(?>"
		case p.take("<="):
			open = "(?<="
		case p.take("<!"):
			open = "(?<!"
		case p.take("<"):
			end := strings.IndexByte(p.text[p.at:], '>')
			if end < 0 {
				return "", fmt.Errorf("unterminated group name")
			}
			p.at += end + 1
		default:
			scoped, err := p.options(&f)
			if err != nil {
				return "", err
			}
			if !scoped { // up to the end of the enclosing group, including alternatives
				rest, err := p.alternatives(f)
				return "(?:" + rest + ")", err
			}
		}
	}
	body, err := p.alternatives(f)
	if err != nil {
		return "", err
	}
	if !p.take(")") {
		return "", fmt.Errorf("unterminated group")
	}
	return open + body + ")", nil
}

// options parses imx-imx up to : or ); scoped says which.
func (p *onigParser) options(f *onigFlags) (scoped bool, err error) {
	on := true
	for p.at < len(p.text) {
		c := p.text[p.at]
		p.at++
		switch c {
		case 'i':
			f.fold = on
		case 'm':
			f.dotAll = on
		case 'x':
			f.extended = on
		case '-':
			on = false
		case ':':
			return true, nil
		case ')':
			return false, nil
		default:
			return false, fmt.Errorf("group (?%c is not supported", c)
		}
	}
	return false, fmt.Errorf("unterminated group")
}

// longFolds are the characters that are several when their case is folded, such as ß.
var longFolds = &unicode.RangeTable{R16: []unicode.Range16{
	{0xDF, 0xDF, 1}, {0x130, 0x130, 1}, {0x149, 0x149, 1}, {0x1F0, 0x1F0, 1}, {0x390, 0x390, 1}, {0x3B0, 0x3B0, 1},
	{0x587, 0x587, 1}, {0x1E96, 0x1E9A, 1}, {0x1E9E, 0x1E9E, 1}, {0x1F50, 0x1F56, 2}, {0x1F80, 0x1FAF, 1},
	{0x1FB2, 0x1FB4, 1}, {0x1FB6, 0x1FB7, 1}, {0x1FBC, 0x1FBC, 1}, {0x1FC2, 0x1FC4, 1}, {0x1FC6, 0x1FC7, 1},
	{0x1FCC, 0x1FCC, 1}, {0x1FD2, 0x1FD3, 1}, {0x1FD6, 0x1FD7, 1}, {0x1FE2, 0x1FE4, 1}, {0x1FE6, 0x1FE7, 1},
	{0x1FF2, 0x1FF4, 1}, {0x1FF6, 0x1FF7, 1}, {0x1FFC, 0x1FFC, 1}, {0xFB00, 0xFB06, 1}, {0xFB13, 0xFB17, 1},
}}

// shortFolds are letters that Oniguruma also finds in one character, without regard to case: ss in ß.
var shortFolds = []string{"ss", "ff", "fi", "fl", "st", "\u02BCn", "i\u0307", "j\u030C", "h\u0331", "t\u0308",
	"w\u030A", "y\u030A", "a\u02BE"}

// longFold refuses letters whose case Oniguruma folds to or from several characters. p is at r.
func (p *onigParser) longFold(r rune, f onigFlags) error {
	if !f.fold {
		return nil
	}
	if unicode.Is(longFolds, r) {
		return fmt.Errorf("%q without regard to case is several letters, which is not supported", r)
	}
	rest := strings.ToLower(p.text[p.at:min(len(p.text), p.at+8)])
	for _, s := range shortFolds {
		if strings.HasPrefix(rest, s) {
			return fmt.Errorf("%q without regard to case is also one letter, which is not supported", s)
		}
	}
	return nil
}

// literal returns the character r, with all its cases if letters are folded.
func literal(r rune, f onigFlags) string {
	if !f.fold || unicode.SimpleFold(r) == r {
		return quoted(r)
	}
	return "[" + folded(r) + "]"
}

// folded lists r and its other cases.
func folded(r rune) string {
	out := quoted(r)
	for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
		out += quoted(o)
	}
	return out
}

// quoted returns r escaped for regexp2, in and outside a class.
func quoted(r rune) string {
	switch {
	case r < utf8.RuneSelf && r != '_' && isASCIISign(byte(r)):
		return `\` + string(r)
	case r <= ' ' || r == 0x7F:
		return fmt.Sprintf(`\x%02X`, r)
	}
	return string(r)
}
