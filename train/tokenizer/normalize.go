package tokenizer

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// stretch is a part of a text between two added tokens on its way through the normalizer
// and the pre-tokenizers.
type stretch struct {
	text string
	// head is how many bytes come from the first character of the whole text: what begins
	// there is first in the text. Normalizers may make several characters of it, or none.
	head int
}

// mapHead returns the stretch with another text, which f makes of each character
// independently.
func (p stretch) mapHead(f func(s string) string, text string) stretch {
	if p.head > 0 {
		p.head = len(f(p.text[:p.head]))
	}
	p.text = text
	return p
}

// part returns the bytes from start to end.
func (p stretch) part(start, end int) stretch {
	return stretch{p.text[start:end], max(min(p.head, end)-start, 0)}
}

// normalizer changes a stretch before it is split.
type normalizer interface {
	normalize(p stretch) (stretch, error)
}

// normalizers are a Sequence.
type normalizers []normalizer

func (list normalizers) normalize(p stretch) (stretch, error) {
	var err error
	for _, n := range list {
		if p, err = n.normalize(p); err != nil {
			return p, err
		}
	}
	return p, nil
}

// unicodeForm is NFC, NFD, NFKC or NFKD.
type unicodeForm norm.Form

func (f unicodeForm) normalize(p stretch) (stretch, error) {
	text := normalForm(norm.Form(f), p.text)
	if p.head > 0 {
		p.head = sharedHead(normalForm(norm.Form(f), p.text[:p.head]), text)
	}
	p.text = text
	return p, nil
}

// sharedHead is how many bytes of text come from head, which is the normal form of what
// begins the text before: its last character may have combined with what follows.
func sharedHead(head, text string) int {
	n := 0
	for n < len(head) && n < len(text) && head[n] == text[n] {
		n++
	}
	if n == len(head) {
		return n
	}
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	_, size := utf8.DecodeRuneInString(text[n:])
	return n + size
}

// mapped applies a function to each character.
type mapped func(s string) string

func (f mapped) normalize(p stretch) (stretch, error) {
	return p.mapHead(f, f(p.text)), nil
}

// filter applies a function that drops characters. A stretch that loses its first character
// is no longer first in the text.
type filter func(r rune) rune

func (f filter) normalize(p stretch) (stretch, error) {
	kept := func(s string) string { return strings.Map(f, s) }
	return p.mapHead(kept, kept(p.text)), nil
}

// lowercase maps each character independently, including a final sigma.
func lowercase(s string) string {
	return strings.ReplaceAll(strings.Map(func(r rune) rune {
		if r == 'İ' {
			return r // two characters; see below
		}
		return toLower(r)
	}, s), "İ", "i̇")
}

// stripAccents drops all combining marks.
func stripAccents(r rune) rune {
	if unicode.IsMark(r) && !laterAccents.has(r) || r == 0x1CF2 || r == 0x1CF3 { // marks once
		return -1
	}
	return r
}

// nmt is SentencePiece's cleaning of control characters and odd spaces.
func nmt(r rune) rune {
	switch {
	case r >= 1 && r <= 8, r == 0xB, r >= 0xE && r <= 0x1F, r == 0x7F, r == 0x8F, r == 0x9F:
		return -1
	case r == '\t', r == '\n', r == '\f', r == '\r', r == 0x1680, r >= 0x200B && r <= 0x200F,
		r == 0x2028, r == 0x2029, r == 0x2581, r == 0xFEFF, r == 0xFFFD:
		return ' '
	}
	return r
}

// strip drops white space at the ends. A stretch that loses its start is no longer first in
// the text.
type strip struct{ left, right bool }

func (n strip) normalize(p stretch) (stretch, error) {
	if n.left {
		short := strings.TrimLeftFunc(p.text, unicode.IsSpace)
		p.head = max(p.head-(len(p.text)-len(short)), 0)
		p.text = short
	}
	if n.right {
		p.text = strings.TrimRightFunc(p.text, unicode.IsSpace)
		p.head = min(p.head, len(p.text))
	}
	return p, nil
}

// prepend puts a text before every non-empty stretch.
type prepend string

func (n prepend) normalize(p stretch) (stretch, error) {
	if p.text != "" {
		p = p.prepend(string(n))
	}
	return p, nil
}

// prepend returns the stretch with a text before it, which counts as a part of its first
// character.
func (p stretch) prepend(s string) stretch {
	p.text = s + p.text
	if p.head > 0 {
		p.head += len(s)
	}
	return p
}

// replace replaces every match by content.
type replace struct {
	pattern matcher
	content string
}

func (n replace) normalize(p stretch) (stretch, error) {
	if l, fixed := n.pattern.(literalText); fixed && l != "" {
		if err := checkGrowth(len(p.text), strings.Count(p.text, string(l))*len(n.content)); err != nil {
			return p, err
		}
		start := p.text[:min(p.head+len(l), len(p.text))]
		var err error
		if _, p.head, err = replaceMatches(l, start, n.content, p.head); err != nil {
			return p, err
		}
		p.text = strings.ReplaceAll(p.text, string(l), n.content)
		return p, nil
	}
	var err error
	p.text, p.head, err = replaceMatches(n.pattern, p.text, n.content, p.head)
	return p, err
}

// mostNormal is the largest size in bytes to which replacements may grow a text.
const mostNormal = 1 << 27

// checkGrowth fails if a text of this many bytes would become too long.
func checkGrowth(from, to int) error {
	if to > mostNormal && to > 2*from {
		return fmt.Errorf("tokenizer: normalizing a text of %d bytes grows it beyond %d", from, mostNormal)
	}
	return nil
}

// replaceMatches replaces matches. kept is how many bytes of the result come from the first
// head bytes of s: the library takes a replacement for the last character of its match.
func replaceMatches(m matcher, s, content string, head int) (text string, kept int, err error) {
	if s == "" {
		return s, head, nil // Hugging Face's library does not search an empty text
	}
	var out strings.Builder
	at, kept := 0, head
	var grown error
	err = m.matches(s, func(start, end int) {
		switch {
		case end <= head:
			kept += len(content) - (end - start)
		case start < head:
			kept -= head - start
		}
		if grown = checkGrowth(len(s), out.Len()+len(content)); grown != nil {
			return
		}
		out.WriteString(s[at:start])
		out.WriteString(content)
		at = end
	})
	if err == nil {
		err = grown
	}
	if at == 0 && out.Len() == 0 {
		return s, kept, err
	}
	out.WriteString(s[at:])
	return out.String(), kept, err
}

// mostMarks is the longest run of consecutive non-starters for which package norm computes
// Unicode's forms; it inserts U+034F in longer runs.
const mostMarks = 30

// normalForm returns s in a Unicode normal form, with the library's tables.
func normalForm(f norm.Form, s string) string {
	if ascii(s) || f.IsNormalString(s) && !longRun(s) {
		return s
	}
	var b strings.Builder
	for at := strings.IndexFunc(s, unknownToForms); at >= 0; at = strings.IndexFunc(s, unknownToForms) {
		_, n := utf8.DecodeRuneInString(s[at:])
		b.WriteString(knownForm(f, s[:at]))
		b.WriteString(s[at : at+n])
		s = s[at+n:]
	}
	b.WriteString(knownForm(f, s))
	return b.String()
}

// knownForm is normalForm for a text where package norm's tables agree with the
// library's.
func knownForm(f norm.Form, s string) string {
	if longRun(s) {
		return slowForm(f, s)
	}
	return f.String(s)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// longRun reports whether s may decompose into a run of more than mostMarks
// non-starters. A character gives at most four of them.
func longRun(s string) bool {
	n := 0
	for i, r := range s {
		if r < 0x300 {
			n = 0
			continue
		}
		d := norm.NFKD.PropertiesString(s[i:])
		if d.CCC() == 0 && d.TrailCCC() == 0 {
			n = 0
			continue
		}
		if n += utf8.RuneCount(d.Decomposition()); len(d.Decomposition()) == 0 {
			n++
		}
		if n > mostMarks {
			return true
		}
	}
	return false
}

// slowForm is normalForm without a limit: decompose, order the marks, compose.
func slowForm(f norm.Form, s string) string {
	base := norm.NFD
	if f == norm.NFKC || f == norm.NFKD {
		base = norm.NFKD
	}
	var runes []rune
	var classes []uint8
	for _, r := range s {
		for _, d := range base.String(string(r)) {
			c := norm.NFD.PropertiesString(string(d)).CCC()
			runes, classes = append(runes, d), append(classes, c)
			if c == 0 {
				continue
			}
			for i := len(runes) - 1; i > 0 && classes[i-1] > c; i-- {
				runes[i], runes[i-1] = runes[i-1], runes[i]
				classes[i], classes[i-1] = classes[i-1], classes[i]
			}
		}
	}
	if f == norm.NFC || f == norm.NFKC {
		runes = compose(runes, classes)
	}
	return string(runes)
}

// compose joins characters with the marks after them (Unicode 3.11, D117).
func compose(runes []rune, classes []uint8) []rune {
	out, outClass := runes[:0:0], classes[:0:0]
	starter := -1
	for i, r := range runes {
		c := classes[i]
		if starter >= 0 {
			last := outClass[len(out)-1]
			blocked := len(out)-1 > starter && (last == 0 || last >= c)
			if !blocked {
				pair := []rune(norm.NFC.String(string([]rune{out[starter], r})))
				if len(pair) == 1 {
					out[starter] = pair[0]
					continue
				}
			}
		}
		if c == 0 {
			starter = len(out)
		}
		out, outClass = append(out, r), append(outClass, c)
	}
	return out
}

// parseNormalizer builds the normalizer of tokenizer.json; nil for null.
func parseNormalizer(c component) (normalizer, error) {
	switch c.Type {
	case "":
		return nil, nil
	case "Sequence":
		var list normalizers
		err := c.each("normalizers", func(c component) error {
			n, err := parseNormalizer(c)
			if n != nil {
				list = append(list, n)
			}
			return err
		})
		return list, err
	case "NFC":
		return unicodeForm(norm.NFC), nil
	case "NFD":
		return unicodeForm(norm.NFD), nil
	case "NFKC":
		return unicodeForm(norm.NFKC), nil
	case "NFKD":
		return unicodeForm(norm.NFKD), nil
	case "Lowercase":
		return mapped(lowercase), nil
	case "StripAccents":
		return filter(stripAccents), nil
	case "Nmt":
		return filter(nmt), nil
	case "ByteLevel":
		return mapped(byteLevel), nil
	case "Strip":
		return strip{c.flag("strip_left", true), c.flag("strip_right", true)}, nil
	case "Prepend":
		text, err := c.text("prepend")
		return prepend(text), err
	case "Replace":
		m, err := c.pattern()
		if err != nil {
			return nil, err
		}
		content, err := c.text("content")
		return replace{m, content}, err
	case "Precompiled":
		text, err := c.text("precompiled_charsmap")
		if err != nil {
			return nil, err
		}
		return parseCharsMap(text)
	}
	return nil, fmt.Errorf("%s: normalizer %q is not supported", c.where, c.Type)
}
