package layout

import (
	"encoding/json"
	"errors"
	"strings"
)

// errLiteral is returned for a text that is neither JSON nor a literal of Python.
var errLiteral = errors.New("neither JSON nor Python's spelling of lists and objects")

// parseLiteral reads a value that a text spells in JSON, or in Python: texts in single quotes, None, True, False,
// tuples.
func parseLiteral(text string) (v any, err error) {
	if err := decodeNumbers(text, &v); err == nil {
		return v, nil
	}
	spelled, err := jsonOf(text)
	if err == nil {
		err = decodeNumbers(spelled, &v)
	}
	if err != nil {
		return nil, errLiteral
	}
	return v, nil
}

func decodeNumbers(text string, v *any) error {
	if !json.Valid([]byte(text)) {
		return errLiteral
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d.Decode(v)
}

// jsonOf spells a literal of Python in JSON.
func jsonOf(text string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\'' || c == '"':
			n, err := quoted(&b, text[i:])
			if err != nil {
				return "", err
			}
			i += n
			continue
		case c == '(':
			c = '['
		case c == ')':
			c = ']'
		case strings.HasPrefix(text[i:], "None"):
			b.WriteString("null")
			i += len("None")
			continue
		case strings.HasPrefix(text[i:], "True"), strings.HasPrefix(text[i:], "False"):
			b.WriteByte(c + 'a' - 'A')
			i++
			continue
		case c == ',' && strings.IndexByte("])}", (strings.TrimSpace(text[i+1:]) + " ")[0]) >= 0:
			i++ // after the last item
			continue
		}
		b.WriteByte(c)
		i++
	}
	return b.String(), nil
}

// escapes are Python's of one character.
var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v", '\\': "\\",
	'\'': "'", '"': `"`}

// quoted writes the text that s begins with, in single or double quotes, and returns its length in s.
func quoted(b *strings.Builder, s string) (int, error) {
	var plain strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == s[0]:
			spelled, err := json.Marshal(plain.String())
			b.Write(spelled)
			return i + 1, err
		case c == '\\' && i+1 < len(s):
			i++
			if escape, ok := escapes[s[i]]; ok {
				plain.WriteString(escape)
				continue
			}
			var unicode string
			width := map[byte]int{'x': 2, 'u': 4}[s[i]]
			if width == 0 || i+width >= len(s) ||
				json.Unmarshal([]byte(`"\u`+strings.Repeat("0", 4-width)+s[i+1:i+1+width]+`"`), &unicode) != nil {
				return 0, errLiteral
			}
			plain.WriteString(unicode)
			i += width
		default:
			plain.WriteByte(c)
		}
	}
	return 0, errLiteral
}
