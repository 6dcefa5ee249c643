package form

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"
)

// The slow version of grammars: Earley's recogniser over productions, in plain loops, and random grammars that are
// written both as productions and in GBNF.

// symbol is a set of characters, as pairs, or the productions of a number.
type symbol struct {
	chars  []rune
	number int
}

// plainGrammar has lists of symbols by number. Rules come first, root before all, then parts of them.
type plainGrammar struct {
	rules       int
	productions [][][]symbol
}

func (g *plainGrammar) add(list ...[]symbol) symbol {
	g.productions = append(g.productions, list)
	return symbol{number: len(g.productions) - 1}
}

// settled returns the numbers with a production of such symbols alone, where characters count or not.
func (g *plainGrammar) settled(chars bool) map[int]bool {
	is := map[int]bool{}
	for n := -1; n != len(is); {
		n = len(is)
		for i, list := range g.productions {
			for _, p := range list {
				if !slices.ContainsFunc(p, func(s symbol) bool { return s.chars != nil && !chars || s.chars == nil && !is[s.number] }) {
					is[i] = true
				}
			}
		}
	}
	return is
}

// endless reports whether some rule has no text.
func (g *plainGrammar) endless() bool {
	finite := g.settled(true)
	for i := range g.rules {
		if !finite[i] {
			return true
		}
	}
	return false
}

// leftRecursive reports whether some rule begins with itself.
func (g *plainGrammar) leftRecursive() bool {
	nullable := g.settled(false)
	begins := map[[2]int]bool{}
	for n := -1; n != len(begins); {
		n = len(begins)
		for i, list := range g.productions {
			for _, p := range list {
				for _, s := range p {
					if s.chars != nil {
						break
					}
					begins[[2]int{i, s.number}] = true
					for j := range g.productions {
						if begins[[2]int{s.number, j}] {
							begins[[2]int{i, j}] = true
						}
					}
					if !nullable[s.number] {
						break
					}
				}
			}
		}
	}
	for i := range g.rules {
		if begins[[2]int{i, i}] {
			return true
		}
	}
	return false
}

// item is a production that was read up to a point, from a place in the text on.
type item struct{ number, production, dot, from int }

// closed adds to the last set what follows without a character.
func (g *plainGrammar) closed(sets []map[item]bool) {
	last := sets[len(sets)-1]
	for n := -1; n != len(last); {
		n = len(last)
		for it := range last {
			p := g.productions[it.number][it.production]
			if it.dot == len(p) {
				for before := range sets[it.from] {
					if q := g.productions[before.number][before.production]; before.dot < len(q) &&
						q[before.dot].chars == nil && q[before.dot].number == it.number {
						before.dot++
						last[before] = true
					}
				}
			} else if s := p[it.dot]; s.chars == nil {
				for i := range g.productions[s.number] {
					last[item{s.number, i, 0, len(sets) - 1}] = true
				}
			}
		}
	}
}

// after returns the sets after a text behind that of sets.
func (g *plainGrammar) after(sets []map[item]bool, text string) []map[item]bool {
	sets = slices.Clone(sets)
	if len(sets) == 0 {
		first := map[item]bool{}
		for i := range g.productions[0] {
			first[item{0, i, 0, 0}] = true
		}
		sets = append(sets, first)
		g.closed(sets)
	}
	for _, r := range text {
		next := map[item]bool{}
		for it := range sets[len(sets)-1] {
			if p := g.productions[it.number][it.production]; it.dot < len(p) && within(p[it.dot].chars, r, r) {
				it.dot++
				next[it] = true
			}
		}
		sets = append(sets, next)
		g.closed(sets)
	}
	return sets
}

// within reports whether pairs have some character from lo to hi.
func within(pairs []rune, lo, hi rune) bool {
	for i := 0; i < len(pairs); i += 2 {
		if lo <= hi && pairs[i] <= hi && lo <= pairs[i+1] {
			return true
		}
	}
	return false
}

// ends reports whether the text of some sets is whole.
func (g *plainGrammar) ends(sets []map[item]bool) bool {
	for it := range sets[len(sets)-1] {
		if it.number == 0 && it.from == 0 && it.dot == len(g.productions[0][it.production]) {
			return true
		}
	}
	return false
}

// begins reports whether some text begins with that of some sets and bytes behind it, where every rule has a text.
func (g *plainGrammar) begins(sets []map[item]bool, behind string) bool {
	whole := 0
	for whole < len(behind) && utf8.FullRuneInString(behind[whole:]) {
		r, n := utf8.DecodeRuneInString(behind[whole:])
		if r == utf8.RuneError && n == 1 {
			return false
		}
		whole += n
	}
	sets = g.after(sets, behind[:whole])
	last := sets[len(sets)-1]
	part := behind[whole:]
	if part == "" {
		return len(last) > 0
	}
	// The characters that begin with the bytes of a part. Those that would be written in fewer bytes are none of them.
	n, bits, least := 2, rune(part[0]&0x1F), rune(0x80)
	switch {
	case part[0] >= 0xF0:
		n, bits, least = 4, rune(part[0]&7), 0x10000
	case part[0] >= 0xE0:
		n, bits, least = 3, rune(part[0]&0xF), 0x800
	}
	for _, b := range []byte(part[1:]) {
		bits = bits<<6 | rune(b&0x3F)
	}
	missing := 6 * (n - len(part))
	lo, hi := max(bits<<missing, least), min(bits<<missing|(1<<missing-1), utf8.MaxRune)
	for it := range last {
		p := g.productions[it.number][it.production]
		if it.dot < len(p) && (within(p[it.dot].chars, lo, min(hi, 0xD7FF)) || within(p[it.dot].chars, max(lo, 0xE000), hi)) {
			return true
		}
	}
	return false
}

// next returns the sets of characters that may come behind some sets.
func (g *plainGrammar) next(sets []map[item]bool) (list []symbol) {
	for it := range sets[len(sets)-1] {
		if p := g.productions[it.number][it.production]; it.dot < len(p) && p[it.dot].chars != nil {
			list = append(list, p[it.dot])
		}
	}
	slices.SortFunc(list, func(a, b symbol) int { return slices.Compare(a.chars, b.chars) })
	return list
}

// grammarMaker writes a random grammar.
type grammarMaker struct {
	r    *rand.Rand
	g    *plainGrammar
	deep int // groups
}

var ruleNames = []string{"root", "a", "b-2", "C_c"}

// randomGrammar returns a grammar of up to four rules in both writings.
func randomGrammar(r *rand.Rand) (text string, g *plainGrammar) {
	m := grammarMaker{r: r, g: &plainGrammar{rules: 1 + r.IntN(len(ruleNames))}}
	m.g.productions = make([][][]symbol, m.g.rules)
	var lines []string
	for i := range m.g.rules {
		body, s := m.choice(2)
		m.g.productions[i] = m.g.productions[s.number]
		lines = append(lines, ruleNames[i]+m.either(" ::= ", "::=", " ::=\n\t")+body+m.either("", " ", " # x ::= y")+"\n")
	}
	r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return strings.Join(lines, m.either("", "\n", "# no rule\r\n")), m.g
}

func (m *grammarMaker) either(list ...string) string { return list[m.r.IntN(len(list))] }

// space writes what may stand between parts.
func (m *grammarMaker) space() string {
	if m.deep > 0 {
		return m.either(" ", "\n", " # \"(\n ")
	}
	return m.either(" ", "\t ")
}

func (m *grammarMaker) choice(depth int) (string, symbol) {
	var texts []string
	var list [][]symbol
	for range 1 + m.r.IntN(3) {
		var parts []string
		p := []symbol{}
		for range 1 + m.r.IntN(3) {
			text, s := m.part(depth)
			parts, p = append(parts, text), append(p, s...)
		}
		if m.r.IntN(9) == 0 {
			parts, p = nil, nil
			if m.deep == 0 {
				parts = []string{`""`} // else the next line's rule would be a part
			}
		}
		texts, list = append(texts, strings.Join(parts, m.space())), append(list, p)
	}
	return strings.Join(texts, m.either("|", " | ", "\n | ", " |\n")), m.g.add(list...)
}

// part writes a part and how often it comes.
func (m *grammarMaker) part(depth int) (string, []symbol) {
	text, p := m.single(depth)
	if m.r.IntN(3) > 0 {
		return text, p
	}
	least, most, sign := m.r.IntN(3), -1, ""
	switch m.r.IntN(6) {
	case 0:
		least, most, sign = 0, 1, "?"
	case 1:
		least, sign = 0, "*"
	case 2:
		least, sign = 1, " +"
	case 3:
		most, sign = least, fmt.Sprintf("{%d}", least)
	case 4:
		sign = fmt.Sprintf("{ %d,}", least)
	case 5:
		most = least + m.r.IntN(3)
		sign = fmt.Sprintf("{%d, %d}", least, most)
	}
	var all []symbol
	for range least {
		all = append(all, p...)
	}
	if most < 0 {
		more := m.g.add()
		m.g.productions[more.number] = [][]symbol{{}, append(slices.Clone(p), more)}
		return text + sign, append(all, more)
	}
	rest := m.g.add(nil)
	for range most - least {
		rest = m.g.add(nil, append(slices.Clone(p), rest))
	}
	return text + sign, append(all, rest)
}

// single writes a part.
func (m *grammarMaker) single(depth int) (string, []symbol) {
	one := func(text string, pairs ...rune) (string, []symbol) { return text, []symbol{{chars: pairs}} }
	switch n := m.r.IntN(16); {
	case n < 4 && depth > 0:
		m.deep++
		text, s := m.choice(depth - 1)
		m.deep--
		return "(" + text + ")", []symbol{s}
	case n < 8:
		i := m.r.IntN(m.g.rules)
		return ruleNames[i], []symbol{{number: i}}
	case n < 10:
		s := m.either("a", "b", "ab", "é", "€a", "\n", `"`, `]`, "😀", "")
		var p []symbol
		for _, r := range s {
			p = append(p, symbol{chars: []rune{r, r}})
		}
		if s == "é" && m.r.IntN(2) == 0 {
			return `"\u00e9"`, p
		}
		return `"` + strings.NewReplacer("\n", `\n`, `"`, `\"`, "😀", `\U0001f600`).Replace(s) + `"`, p
	}
	switch m.r.IntN(8) {
	case 0:
		return one(".", 0, utf8.MaxRune)
	case 1:
		return one("[^a]", 0, 'a'-1, 'a'+1, utf8.MaxRune)
	case 2:
		return one(`[à-ü\x62-]`, 'à', 'ü', 'b', 'b', '-', '-')
	case 3:
		return one(`[^b-é\n]`, 0, '\n'-1, '\n'+1, 'a', 'é'+1, utf8.MaxRune)
	case 4:
		return one(`["\]€]`, '"', '"', ']', ']', '€', '€')
	}
	return one("[ab]", 'a', 'b')
}
