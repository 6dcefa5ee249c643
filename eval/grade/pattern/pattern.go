// Package pattern matches regular expressions on short texts, many on each: the graders have hundreds of them, and few
// match. It has the syntax and the results of package regexp.
package pattern

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression that is compiled when first used. An automaton says whether it matches at all, and
// package regexp, which takes many times as long, where. Patterns may be used by several goroutines.
type Pattern struct {
	automaton func() *automaton
	compiled  func() *regexp.Regexp
}

// New returns the pattern of an expression in Go's syntax. The first use panics if it has errors.
func New(expr string) *Pattern {
	return &Pattern{
		automaton: sync.OnceValue(func() *automaton { return newAutomaton(expr, maxStates) }),
		compiled:  sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) }),
	}
}

// Each method does what regexp.Regexp's method of the same name does.

func (p *Pattern) MatchString(s string) bool {
	found, known := p.automaton().match(s)
	return found || !known && p.compiled().MatchString(s)
}

// misses reports whether p is known not to match.
func (p *Pattern) misses(s string) bool {
	found, known := p.automaton().match(s)
	return known && !found
}

func (p *Pattern) FindString(s string) string {
	if p.misses(s) {
		return ""
	}
	return p.compiled().FindString(s)
}

func (p *Pattern) FindStringIndex(s string) []int {
	if p.misses(s) {
		return nil
	}
	return p.compiled().FindStringIndex(s)
}

func (p *Pattern) FindStringSubmatch(s string) []string {
	if p.misses(s) {
		return nil
	}
	return p.compiled().FindStringSubmatch(s)
}

func (p *Pattern) FindStringSubmatchIndex(s string) []int {
	if p.misses(s) {
		return nil
	}
	return p.compiled().FindStringSubmatchIndex(s)
}

func (p *Pattern) FindAllString(s string, n int) []string {
	if p.misses(s) {
		return nil
	}
	return p.compiled().FindAllString(s, n)
}

func (p *Pattern) FindAllStringIndex(s string, n int) [][]int {
	if p.misses(s) {
		return nil
	}
	return p.compiled().FindAllStringIndex(s, n)
}

func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	if p.misses(s) {
		return nil
	}
	return p.compiled().FindAllStringSubmatch(s, n)
}

func (p *Pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	if p.misses(s) {
		return nil
	}
	return p.compiled().FindAllStringSubmatchIndex(s, n)
}

func (p *Pattern) ReplaceAllString(s, by string) string {
	if p.misses(s) {
		return s
	}
	return p.compiled().ReplaceAllString(s, by)
}

func (p *Pattern) ReplaceAllStringFunc(s string, by func(string) string) string {
	if p.misses(s) {
		return s
	}
	return p.compiled().ReplaceAllStringFunc(s, by)
}

func (p *Pattern) Split(s string, n int) []string { return p.compiled().Split(s, n) }
