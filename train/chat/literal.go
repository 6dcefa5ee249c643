package chat

import (
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// digits returns the end of a run of digits from pos on, with single _ allowed between
// them.
func (l *lexer) digits(pos int) int {
	for pos < len(l.src) {
		switch {
		case isDigit(l.src[pos]):
			pos++
		case l.src[pos] == '_' && pos+1 < len(l.src) && isDigit(l.src[pos+1]) && isDigit(l.src[pos-1]):
			pos++
		default:
			return pos
		}
	}
	return pos
}

// floatEnd returns the end of a float literal at the current offset, or 0.
func (l *lexer) floatEnd() int {
	if l.pos > 0 && l.src[l.pos-1] == '.' {
		return 0 // the 1 of x.1
	}
	at := func(i int) byte {
		if i < len(l.src) {
			return l.src[i]
		}
		return 0
	}
	end := l.digits(l.pos)
	fraction := false
	if at(end) == '.' && isDigit(at(end+1)) {
		end, fraction = l.digits(end+1), true
	}
	if c := at(end); c == 'e' || c == 'E' {
		exp := end + 1
		if s := at(exp); s == '+' || s == '-' {
			exp++
		}
		if isDigit(at(exp)) {
			return l.digits(exp)
		}
	}
	if fraction {
		return end
	}
	return 0
}

// intEnd returns the end of an integer literal at the current offset.
func (l *lexer) intEnd() int {
	rest := l.src[l.pos:]
	if rest[0] != '0' {
		return l.digits(l.pos)
	}
	if len(rest) > 2 {
		set := map[byte]string{'b': "01", 'o': "01234567", 'x': "0123456789abcdefABCDEF"}[rest[1]|0x20]
		i := 2
		for set != "" && i < len(rest) {
			if rest[i] == '_' && i+1 < len(rest) && strings.IndexByte(set, rest[i+1]) >= 0 {
				i++
			}
			if strings.IndexByte(set, rest[i]) < 0 {
				break
			}
			i++
		}
		if set != "" && i > 2 {
			return l.pos + i
		}
	}
	i := 1
	for i < len(rest) && (rest[i] == '0' || rest[i] == '_' && i+1 < len(rest) && rest[i+1] == '0') {
		i++
	}
	return l.pos + i
}

func (l *lexer) number() error {
	if end := l.floatEnd(); end > 0 {
		// out of range: infinite, as in Python
		f, _ := strconv.ParseFloat(strings.ReplaceAll(l.src[l.pos:end], "_", ""), 64)
		l.tokens = append(l.tokens, token{kind: tokFloat, pos: l.pos, value: newFloat(f)})
		l.pos = end
		return nil
	}
	end := l.intEnd()
	text := strings.ReplaceAll(l.src[l.pos:end], "_", "")
	if len(text) > maxDigits {
		return syntaxErr(l.pos, "the number has more than %d digits", maxDigits)
	}
	i, ok := new(big.Int).SetString(text, 0)
	if strings.Trim(text, "0") == "" {
		i, ok = new(big.Int), true
	}
	if !ok {
		return syntaxErr(l.pos, "'%.40s' is not a number", text)
	}
	l.tokens = append(l.tokens, token{kind: tokInt, pos: l.pos, value: fromBig(i)})
	l.pos = end
	return nil
}

func (l *lexer) name() error {
	end := l.pos
	for end < len(l.src) {
		r, n := utf8.DecodeRuneInString(l.src[end:])
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			break
		}
		end += n
	}
	name := l.src[l.pos:end]
	if r, _ := utf8.DecodeRuneInString(name); r != '_' && !unicode.IsLetter(r) {
		return syntaxErr(l.pos, "'%.40s' is not a name", name)
	}
	l.add(tokName, l.pos, name)
	l.pos = end
	return nil
}

func (l *lexer) str() error {
	quote := l.src[l.pos]
	for end := l.pos + 1; end < len(l.src); end++ {
		switch l.src[end] {
		case '\\':
			end++
		case quote:
			s, err := unescape(l.src[l.pos+1 : end])
			if err != nil {
				return syntaxErr(l.pos, "%v", err)
			}
			l.add(tokString, l.pos, s)
			l.pos = end + 1
			return nil
		}
	}
	return syntaxErr(l.pos, "the string has no end")
}

// unescape decodes the escapes of a string literal like Python's codec unicode-escape.
// Unknown escapes stay as written. As in Jinja2, a character outside ASCII is first written
// as an escape itself, which shows after a backslash: \é is the text \xe9.
func unescape(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			i++
			continue
		}
		c := s[i+1]
		i += 2
		if j := strings.IndexByte("abfnrtv\\'\"", c); j >= 0 {
			b.WriteByte("\a\b\f\n\r\t\v\\'\""[j])
			continue
		}
		switch {
		case c == '\n':
		case c >= '0' && c <= '7':
			v, n := int(c-'0'), 1
			for n < 3 && i < len(s) && s[i] >= '0' && s[i] <= '7' {
				v, n, i = v*8+int(s[i]-'0'), n+1, i+1
			}
			b.WriteRune(rune(v))
		case c == 'x' || c == 'u' || c == 'U':
			n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			if i+n > len(s) {
				return "", valueErr("the escape \\%c in a string is cut short", c)
			}
			v, err := strconv.ParseUint(s[i:i+n], 16, 32)
			if err != nil || v > unicode.MaxRune || v >= 0xd800 && v < 0xe000 {
				return "", valueErr("the escape \\%c%s in a string is not a character", c, s[i:i+n])
			}
			b.WriteRune(rune(v))
			i += n
		case c == 'N':
			return "", valueErr("the escape \\N in a string is not supported")
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(s[i-1:])
			b.WriteString(escapeRune(r))
			i += n - 1
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}
