package form

import (
	"slices"
	"unicode/utf8"
)

// text stands for one text. Invalid bytes stand for nothing.
func text(s string) expr {
	var list []expr
	for _, r := range s {
		list = append(list, char(r, r))
	}
	return seq(list...)
}

// char stands for a character from lo to hi.
func char(lo, hi rune) expr {
	return func(g *grammar, from, to node) {
		if g.chars == nil {
			g.characters(from, lo, hi, to)
			return
		}
		i, _ := slices.BinarySearch(g.chars, lo)
		for i < len(g.chars) && g.chars[i] <= hi {
			first, last := g.chars[i], g.chars[i]
			for i++; i < len(g.chars) && g.chars[i] == last+1 && last < hi; i++ {
				last++
			}
			g.characters(from, first, last, to)
		}
	}
}

// digits stands for a character of '0'+lo to '0'+hi.
func digits(lo, hi int) expr { return char(rune('0'+lo), rune('0'+hi)) }

// digit is any of them, and hex one of base 16.
var (
	digit = digits(0, 9)
	hex   = alt(digit, char('a', 'f'), char('A', 'F'))
)

// characters adds the UTF-8 of characters. Surrogates have none.
func (g *grammar) characters(from node, lo, hi rune, to node) {
	const surrogates, behind = 0xD800, 0xE000
	for _, most := range []rune{0x7F, 0x7FF, surrogates - 1, behind - 1, 0xFFFF, utf8.MaxRune} {
		if last := min(hi, most); lo <= last {
			if most != behind-1 {
				g.sequences(from, utf8.AppendRune(nil, lo), utf8.AppendRune(nil, last), to)
			}
			lo = last + 1
		}
	}
}

// sequences adds the UTF-8 sequences from lo to hi, which have the same length.
func (g *grammar) sequences(from node, lo, hi []byte, to node) {
	const least, most = 0x80, 0xBF // of the bytes behind the first
	if len(lo) == 1 {
		g.arc(from, lo[0], hi[0], to)
		return
	}
	lows, highs := slices.Repeat([]byte{least}, len(lo)-1), slices.Repeat([]byte{most}, len(lo)-1)
	part := func(first, last byte, lo, hi []byte) {
		mid := g.node()
		g.arc(from, first, last, mid)
		g.sequences(mid, lo, hi, to)
	}
	first, last := lo[0], hi[0]
	if first == last {
		part(first, first, lo[1:], hi[1:])
		return
	}
	if !slices.Equal(lo[1:], lows) {
		part(first, first, lo[1:], highs)
		first++
	}
	full := slices.Equal(hi[1:], highs)
	if !full {
		last--
	}
	if first <= last {
		part(first, last, lows, highs)
	}
	if !full {
		part(last+1, last+1, lows, hi[1:])
	}
}

// until stands for texts that end with the first appearance of end.
func until(end string) expr {
	return func(g *grammar, from, to node) {
		nodes := make([]node, len(end)+1) // by how many bytes of end the text ends with
		for i := range nodes {
			nodes[i] = g.node()
		}
		g.skip(from, nodes[0])
		g.skip(nodes[len(end)], to)
		for i, n := range nodes[:len(end)] {
			for b := range 256 {
				if read := end[:i] + string([]byte{byte(b)}); b < marked {
					g.arc(n, byte(b), byte(b), nodes[overlap(read, end)])
				}
			}
		}
	}
}

// overlap returns the length of the longest end of a text that another one begins with.
func overlap(text, other string) int {
	n := min(len(text), len(other))
	for text[len(text)-n:] != other[:n] {
		n--
	}
	return n
}

// marked is a byte that no text in UTF-8 has. Before another byte, it stands for a token without a text.
const marked = 0xFF
