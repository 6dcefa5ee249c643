package tokenizer

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// splitter is a pre-tokenizer: it cuts a stretch into smaller, non-empty ones and may
// change them.
type splitter interface {
	split(p stretch, emit func(stretch) error) error
}

// behavior says where the matches of a Split go.
type behavior int

const (
	removed behavior = iota
	isolated
	mergedWithPrevious
	mergedWithNext
	contiguous
)

func parseBehavior(name, where string) (behavior, error) {
	for i, s := range []string{"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"} {
		if name == s {
			return behavior(i), nil
		}
	}
	return 0, fmt.Errorf("%s: behavior %q is not supported", where, name)
}

// splitAt cuts at the matches of a pattern, or, inverted, at the text between them.
type splitAt struct {
	pattern matcher
	how     behavior
	invert  bool
}

// part is a part of a stretch: a match or the text before the next one.
type part struct {
	start, end int
	match      bool
}

func (x splitAt) split(p stretch, emit func(stretch) error) error {
	if x.how == isolated || x.how == removed {
		return x.cut(p, emit)
	}
	parts, err := x.parts(p.text)
	if err != nil {
		return err
	}
	switch x.how {
	case contiguous:
		parts = joinEqual(parts)
	case mergedWithPrevious:
		parts = joinPrevious(parts)
	case mergedWithNext:
		parts = joinNext(parts)
	}
	for _, q := range parts {
		if err := emitPart(p, q.start, q.end, emit); err != nil {
			return err
		}
	}
	return nil
}

// cut emits as it goes: no part depends on its neighbours.
func (x splitAt) cut(p stretch, emit func(stretch) error) error {
	var failed error
	last := 0
	out := func(start, end int, match bool) {
		if failed == nil && (x.how == isolated || match == x.invert) {
			failed = emitPart(p, start, end, emit)
		}
	}
	err := x.pattern.matches(p.text, func(start, end int) {
		out(last, start, false)
		out(start, end, true)
		last = end
	})
	if err != nil {
		return err
	}
	out(last, len(p.text), false)
	return failed
}

func emitPart(p stretch, start, end int, emit func(stretch) error) error {
	if start == end {
		return nil
	}
	return emit(p.part(start, end))
}

// parts returns the matches and the text between them.
func (x splitAt) parts(s string) ([]part, error) {
	var parts []part
	last := 0
	err := x.pattern.matches(s, func(start, end int) {
		if last < start {
			parts = append(parts, part{last, start, x.invert})
		}
		parts = append(parts, part{start, end, !x.invert})
		last = end
	})
	if last < len(s) {
		parts = append(parts, part{last, len(s), x.invert})
	}
	return parts, err
}

// joinEqual joins neighbours that are both matches or both not.
func joinEqual(parts []part) []part {
	return join(parts, func(previous, match bool) bool { return match == previous })
}

// joinPrevious joins a match with the part before it, unless that is a match too.
func joinPrevious(parts []part) []part {
	return join(parts, func(previous, match bool) bool { return match && !previous })
}

// join joins a part with the one before it if fit says so, given whether each is a match.
func join(parts []part, fit func(previous, match bool) bool) []part {
	out := parts[:0]
	previous := false
	for _, q := range parts {
		if len(out) > 0 && fit(previous, q.match) {
			out[len(out)-1].end = q.end
		} else {
			out = append(out, q)
		}
		previous = q.match
	}
	return out
}

// joinNext joins a match with the part after it, unless that is a match too.
func joinNext(parts []part) []part {
	at := len(parts) // out is parts[at:]
	next := false
	for i := len(parts) - 1; i >= 0; i-- {
		q := parts[i]
		if q.match && !next && at < len(parts) {
			parts[at].start = q.start
		} else {
			at--
			parts[at] = q
		}
		next = q.match
	}
	return parts[at:]
}

// byteLevelSplit is ByteLevel: it may prepend a space, cut by GPT-2's pattern, and write
// each byte as a printable character.
type byteLevelSplit struct {
	space, cut bool
	raw        bool // leave the bytes unchanged, for a model on bytes
}

func (b byteLevelSplit) split(p stretch, emit func(stretch) error) error {
	if b.space && !strings.HasPrefix(p.text, " ") {
		p = p.prepend(" ")
	}
	last := emit
	if !b.raw {
		last = func(p stretch) error {
			return emit(p.mapHead(byteLevel, byteLevel(p.text)))
		}
	}
	if !b.cut {
		return last(p)
	}
	return splitAt{pattern: scanner(scanGPT2), how: isolated}.split(p, last)
}

// metaspace writes spaces as a visible character and cuts before it.
type metaspace struct {
	mark   string
	scheme prependScheme
	cut    bool
}

// prependScheme says which stretches get a leading mark.
type prependScheme int

const (
	prependAlways prependScheme = iota
	prependFirst
	prependNever
)

func (m metaspace) split(p stretch, emit func(stretch) error) error {
	mark := func(s string) string { return strings.ReplaceAll(s, " ", m.mark) }
	p = p.mapHead(mark, mark(p.text))
	if m.scheme != prependNever && !strings.HasPrefix(p.text, m.mark) && (m.scheme == prependAlways || p.head > 0) {
		p = p.prepend(m.mark)
	}
	if !m.cut {
		return emit(p)
	}
	return splitAt{pattern: literalText(m.mark), how: mergedWithNext}.split(p, emit)
}

// parseMetaspace reads the pre-tokenizer or the decoder.
func parseMetaspace(c component) (m metaspace, err error) {
	mark, err := c.char("replacement")
	if err != nil {
		return m, err
	}
	m = metaspace{mark: string(mark), cut: c.flag("split", true)}
	if !absent(c.fields["prepend_scheme"]) {
		name, err := c.text("prepend_scheme")
		if err != nil {
			return m, err
		}
		switch name {
		case "always":
		case "first":
			m.scheme = prependFirst
		case "never":
			m.scheme = prependNever
		default:
			return m, fmt.Errorf("%s: prepend_scheme %q is not supported", c.where, name)
		}
	}
	if !c.flag("add_prefix_space", true) {
		if m.scheme != prependNever && !absent(c.fields["prepend_scheme"]) {
			return m, fmt.Errorf("%s: add_prefix_space false conflicts with prepend_scheme", c.where)
		}
		m.scheme = prependNever
	}
	return m, nil
}

// words is Whitespace: runs of word characters, and runs of characters that are neither
// word nor white space.
func words(s string, i int) (start, end int) {
	kind := func(r rune) int {
		switch {
		case isWord(r):
			return 1
		case unicode.IsSpace(r):
			return 0
		}
		return 2
	}
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		k := kind(r)
		if k == 0 {
			i += n
			continue
		}
		start = i
		for i < len(s) {
			r, n := utf8.DecodeRuneInString(s[i:])
			if kind(r) != k {
				break
			}
			i += n
		}
		return start, i
	}
	return len(s), len(s)
}

// isWord is \w of Unicode's annex 18: alphabetic, marks, decimal numbers, connectors
// and the two joiners.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r < utf8.RuneSelf && (isASCIILetter(byte(r)) || r >= '0' && r <= '9' || r == '_')
	}
	return unicode.IsLetter(r) || newerLetter(r) || isMark(r) || unicode.Is(unicode.Nd, r) || newer["N"].has(r) ||
		unicode.Is(unicode.Nl, r) ||
		unicode.Is(unicode.Pc, r) || unicode.Is(unicode.Other_Alphabetic, r) || r == '\u200C' || r == '\u200D'
}

func isPunctuation(r rune) bool {
	// they were once
	return r < utf8.RuneSelf && isASCIISign(byte(r)) || unicode.IsPunct(r) && !laterSigns.has(r) || r == 0x166D ||
		r == 0x111C9
}

// parseSplitters builds the pre-tokenizers of tokenizer.json, with sequences flattened.
func parseSplitters(c component) ([]splitter, error) {
	return flattened(c, "pretokenizers", parseSplitter)
}

func parseSplitter(c component) (splitter, error) {
	switch c.Type {
	case "ByteLevel":
		return byteLevelSplit{space: c.flag("add_prefix_space", true), cut: c.flag("use_regex", true)}, nil
	case "Metaspace":
		return parseMetaspace(c)
	case "Split":
		m, err := c.pattern()
		if err != nil {
			return nil, err
		}
		name, err := c.text("behavior")
		if err != nil {
			return nil, err
		}
		how, err := parseBehavior(name, c.where)
		return splitAt{m, how, c.flag("invert", false)}, err
	case "Digits":
		if c.flag("individual_digits", false) {
			return splitAt{pattern: runeSet(isNumber), how: isolated}, nil
		}
		return splitAt{pattern: runeSet(isNumber), how: contiguous}, nil
	case "Punctuation":
		how := isolated
		if !absent(c.fields["behavior"]) {
			name, err := c.text("behavior")
			if err != nil {
				return nil, err
			}
			if how, err = parseBehavior(name, c.where); err != nil {
				return nil, err
			}
		}
		return splitAt{pattern: runeSet(isPunctuation), how: how}, nil
	case "Whitespace":
		return splitAt{pattern: scanner(words), how: removed, invert: true}, nil
	case "WhitespaceSplit":
		return splitAt{pattern: runeSet(unicode.IsSpace), how: removed}, nil
	case "CharDelimiterSplit", "Delimiter":
		r, err := c.char("delimiter")
		return splitAt{pattern: literalText(string(r)), how: removed}, err
	}
	return nil, fmt.Errorf("%s: pre-tokenizer %q is not supported", c.where, c.Type)
}
