package pattern

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exprs have what the syntax offers: classes, letters of other cases, conditions one behind another, counts.
var exprs = []string{``, `a`, `^`, `$`, `^$`, `\b`, `\B`, `a|b|`, `^a|b$`, `^(?:so,? )*(a+)\b`, `\bno(?:t|ne)?\b ?\$?$`, `(?i)ſK|straße`,
	`(?m)^b$`, `(?ms)a.^b`, `a.b`, `(?s)a.b`, `$\b`, `\b$`, `(?m)$\B`, `^\B`, `a\b^b|c`, `[^a-c\n]{2,3}$`, `\p{Han}[^\p{L}]`, `(?i)[k-s]$`,
	`(a|ab)(c|bcd)(d*)`, `\x{fffd}`, `[\x{d7ff}-\x{10ffff}]`, `a{0,3}?b`, `[[:^alpha:]]\z`, `\Aab?\z`, `[^\x00-\x{10FFFF}]`, `(?:a[^b]{0,5}c)`}

var texts = []string{"", "a", "b", "ab", "abcd", "so, so aa", "not a", "none $", "snot", "ſk", "K", "STRASSE", "straße", "a\nb", "x\nb\ny", "\n",
	"汉1", "汉字", "\xff", "a\xe6\xb1", "b\x00", "aXb", "a汉b", "aaab", "ac", "aXXXXXc", "_", "9 ", "\U0010ffff"}

// Every method returns what package regexp does, also with too few states.
func TestLikeRegexp(t *testing.T) {
	for _, expr := range exprs {
		p, want := New(expr), regexp.MustCompile(expr)
		few := newAutomaton(expr, 2)
		for _, s := range texts {
			if diff := cmp.Diff(results(want, s), results(p, s)); diff != "" {
				t.Errorf("%q in %q (-want +got):\n%s", expr, s, diff)
			}
			if _, known := p.automaton().match(s); !known {
				t.Errorf("%q in %q: not known", expr, s)
			}
			if found, known := few.match(s); known && found != want.MatchString(s) {
				t.Errorf("%q in %q with two states: %t", expr, s, found)
			}
		}
	}
}

// matcher is a regexp.Regexp or a Pattern.
type matcher interface {
	MatchString(s string) bool
	FindString(s string) string
	FindStringIndex(s string) []int
	FindStringSubmatch(s string) []string
	FindStringSubmatchIndex(s string) []int
	FindAllString(s string, n int) []string
	FindAllStringIndex(s string, n int) [][]int
	FindAllStringSubmatch(s string, n int) [][]string
	FindAllStringSubmatchIndex(s string, n int) [][]int
	ReplaceAllString(s, by string) string
	ReplaceAllStringFunc(s string, by func(string) string) string
	Split(s string, n int) []string
}

func results(m matcher, s string) []any {
	return []any{m.MatchString(s), m.FindString(s), m.FindStringIndex(s), m.FindStringSubmatch(s), m.FindStringSubmatchIndex(s),
		m.FindAllString(s, -1), m.FindAllStringIndex(s, 2), m.FindAllStringSubmatch(s, -1), m.FindAllStringSubmatchIndex(s, -1),
		m.ReplaceAllString(s, "<$0>"), m.ReplaceAllStringFunc(s, strings.ToUpper), m.Split(s, -1)}
}

// Expressions of random parts match the random texts that package regexp matches.
func TestRandomExpressions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "b", "é", " ", `\b`, `\B`, "^", "$", "(?m:^)", "(?m:$)", ".", "[^a]", `\w`, "(?i:K)",
		"a|b", "(", ")", "*", "?", "{2}", "|"}
	letters := []string{"a", "b", "é", " ", "\n", "K", "k", "K", "\xff"}
	random := func(from []string, n int) string {
		var b strings.Builder
		for range rng.IntN(n) {
			b.WriteString(from[rng.IntN(len(from))])
		}
		return b.String()
	}
	tried, matched := 0, 0
	for tried < 3000 {
		expr := random(parts, 8)
		want, err := regexp.Compile(expr)
		if err != nil {
			continue
		}
		tried++
		a := newAutomaton(expr, maxStates)
		for range 8 {
			s := random(letters, 8)
			found, known := a.match(s)
			if !known || found != want.MatchString(s) {
				t.Fatalf("%q in %q: found %t, known %t", expr, s, found, known)
			}
			if found {
				matched++
			}
		}
	}
	if all := 8 * tried; matched < all/4 || matched > all*9/10 {
		t.Errorf("%d of %d match, which tests little", matched, all)
	}
}

// Goroutines that make states at the same time agree.
func TestConcurrent(t *testing.T) {
	p, want := New(`(?:a|b)[^c]{3}d\b`), regexp.MustCompile(`(?:a|b)[^c]{3}d\b`)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(g%2)))
			for range 300 {
				s := strings.Map(func(rune) rune { return 'a' + rng.Int32N(5) }, "............")
				if got := p.MatchString(s); got != want.MatchString(s) {
					t.Errorf("%q: %t", s, got)
				}
			}
		})
	}
	wg.Wait()
}

// A pattern with errors says which it is.
func TestErrors(t *testing.T) {
	defer func() {
		if e := fmt.Sprint(recover()); !strings.Contains(e, "(a") || !strings.Contains(e, "missing closing )") {
			t.Errorf("panic: %s", e)
		}
	}()
	New("(a").MatchString("a")
}

func FuzzMatch(f *testing.F) {
	for i, expr := range exprs {
		f.Add(expr, texts[i%len(texts)])
	}
	f.Fuzz(func(t *testing.T, expr, s string) {
		want, err := regexp.Compile(expr)
		if err != nil {
			t.Skip()
		}
		if found, known := newAutomaton(expr, maxStates).match(s); known && found != want.MatchString(s) {
			t.Errorf("%q in %q: %t", expr, s, found)
		}
	})
}
