package tokenizer

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// matchTimeout bounds one search of a regular expression, searchTimeout all searches in one
// text, so that a pattern with endless backtracking is an error, not a hang.
const (
	matchTimeout  = time.Second
	searchTimeout = 10 * time.Second
)

// matcher finds the matches of a pattern in a text.
type matcher interface {
	// matches calls found with the matches of s, from left to right, without overlap. It
	// reports an empty match too, but not right after another match.
	matches(s string, found func(start, end int)) error
}

// newMatcher returns the matcher of a pattern in Oniguruma's syntax: a hand-written scanner
// if there is one.
func newMatcher(pattern string) (matcher, error) {
	if scan := knownScanner(pattern); scan != nil {
		return scan, nil
	}
	return newRegex(pattern)
}

func (scan scanner) matches(s string, found func(start, end int)) error {
	for i := 0; i < len(s); {
		start, end := scan(s, i)
		if end > start {
			found(start, end)
		}
		i = end
	}
	return nil
}

// regex is a matcher by regular expression. It is safe for concurrent use.
type regex struct {
	re      *regexp2.Regexp
	pattern string
}

func newRegex(pattern string) (*regex, error) {
	text, err := fromOnig(pattern)
	if err != nil {
		return nil, err
	}
	re, err := regexp2.Compile(text, regexp2.None)
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %w", pattern, err)
	}
	re.MatchTimeout = matchTimeout
	return &regex{re, pattern}, nil
}

func (r *regex) matches(s string, found func(start, end int)) error {
	runes := []rune(s)
	offsets := make([]int, 1, len(runes)+1) // of each character in s
	for i := range s {
		if i > 0 {
			offsets = append(offsets, i)
		}
	}
	if len(s) > 0 {
		offsets = append(offsets, len(s))
	}
	started, last := time.Now(), -1
	for at := 0; at <= len(runes); {
		m, err := r.re.FindRunesMatchStartingAt(runes, at)
		if err != nil {
			// regexp2's error holds the whole text
			return fmt.Errorf("regular expression %q took more than %v from byte %d of a text", r.pattern,
				matchTimeout, offsets[at])
		}
		if m == nil {
			break
		}
		if time.Since(started) > searchTimeout {
			return fmt.Errorf("regular expression %q: the text took more than %v", r.pattern, searchTimeout)
		}
		start, end := m.Index, m.Index+m.Length
		if start == end && end == last {
			at = max(at, end) + 1
			continue
		}
		found(offsets[start], offsets[end])
		at, last = end, end
	}
	return nil
}

// literalText is a matcher of a fixed text.
type literalText string

func (l literalText) matches(s string, found func(start, end int)) error {
	if l == "" {
		// An empty pattern matches between all characters, as a regular expression does.
		for i := range s {
			found(i, i)
		}
		found(len(s), len(s))
		return nil
	}
	for at := 0; ; {
		i := strings.Index(s[at:], string(l))
		if i < 0 {
			return nil
		}
		found(at+i, at+i+len(l))
		at += i + len(l)
	}
}

// runeSet is a matcher of single characters.
type runeSet func(r rune) bool

func (is runeSet) matches(s string, found func(start, end int)) error {
	for i, r := range s {
		if is(r) {
			found(i, i+utf8.RuneLen(r))
		}
	}
	return nil
}
