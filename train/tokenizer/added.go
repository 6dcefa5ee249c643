package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// mostAdded is the length in bytes of the longest added token. It bounds the search for one
// at every place of a text.
const mostAdded = 1024

// addedTokens are the tokens cut out of a text before normalization and splitting.
type addedTokens struct {
	list    []addedToken
	byText  map[string]int // index in list
	special map[string]bool
	exact   *addedSearch // matched in the raw text
	normed  *addedSearch // matched in the normalized text
}

// addedSearch finds added tokens: the leftmost, and the longest of those.
type addedSearch struct {
	trie   *trie // of indices in tokens.list
	tokens *addedTokens
}

// newAddedTokens takes list in order; a later token replaces an earlier one with the same
// text. Normalized tokens are matched in their normalized form.
func newAddedTokens(list []addedToken, n normalizer) (*addedTokens, error) {
	a := &addedTokens{byText: map[string]int{}, special: map[string]bool{}}
	for _, t := range list {
		if t.Content == "" {
			continue
		}
		if len(t.Content) > mostAdded {
			return nil, fmt.Errorf("added_tokens: %q has %d bytes, the limit is %d",
				clip(t.Content), len(t.Content), mostAdded)
		}
		if t.Special {
			a.special[t.Content] = true
		}
		if i, ok := a.byText[t.Content]; ok {
			a.list[i] = t
			continue
		}
		a.byText[t.Content] = len(a.list)
		a.list = append(a.list, t)
	}
	started := time.Now()
	for i, t := range a.list {
		into, text := &a.exact, t.Content
		if t.Normalized {
			into = &a.normed
			if n != nil {
				p, err := n.normalize(stretch{text: text})
				if err != nil {
					return nil, fmt.Errorf("added_tokens: %q: %w", t.Content, err)
				}
				a.list[i].normal, text = p.text, p.text
			}
		}
		if text == "" {
			return nil, fmt.Errorf("added_tokens: the normalizer leaves nothing of %q, and Hugging Face's library "+
				"then cuts a text at every character; set the token's \"normalized\" to false", t.Content)
		}
		if len(text) > mostAdded*8 || time.Since(started) > searchTimeout {
			return nil, fmt.Errorf("added_tokens: %q: its normalized form is too long, or takes too long",
				clip(t.Content))
		}
		if *into == nil {
			*into = &addedSearch{trie: newTrie(), tokens: a}
		}
		(*into).trie.add(text, int32(i))
	}
	return a, nil
}

// cut calls text for the parts of s between added tokens, and token for the tokens, in
// order.
func (x *addedSearch) cut(s string, text func(start, end int) error, token func(addedToken) error) error {
	last := 0
	if x != nil {
		for i := 0; i < len(s); {
			if x.trie.root[s[i]] < 0 {
				i++
				continue
			}
			index, n := x.trie.longest(s[i:])
			if n == 0 {
				i++
				continue
			}
			t := x.tokens.list[index]
			start, end := i, i+n
			i = end
			if t.SingleWord && (wordBefore(s[:start]) || wordBehind(s[end:])) {
				continue
			}
			if t.LStrip {
				start = max(len(strings.TrimRightFunc(s[:start], unicode.IsSpace)), last)
			}
			if t.RStrip {
				end = len(s) - len(strings.TrimLeftFunc(s[end:], unicode.IsSpace))
			}
			if last < start {
				if err := text(last, start); err != nil {
					return err
				}
			}
			// A token inside the white space that its predecessor swallowed still counts,
			// and so does the white space after it; with lstrip its own is empty.
			if start < end {
				if err := token(t); err != nil {
					return err
				}
			}
			if start <= end {
				last = end
			}
		}
	}
	if last < len(s) {
		return text(last, len(s))
	}
	return nil
}

func wordBefore(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && isWord(r)
}

func wordBehind(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && isWord(r)
}

// resolve gives the tokens their ids: the vocabulary's if it has their text, else the
// file's, else the next free one.
func (a *addedTokens) resolve(v *vocabulary) error {
	next := v.size()
	for _, t := range a.list {
		if t.ID != noID {
			next = max(next, t.ID+1)
		}
	}
	for i := range a.list {
		t := &a.list[i]
		if id, ok := v.id(t.Content); ok {
			t.ID = int(id)
		} else if t.ID == noID {
			t.ID, next = next, next+1
		}
		if t.ID < 0 || t.ID > mostID {
			return fmt.Errorf("added_tokens: %q has id %d; ids must be from 0 to %d", clip(t.Content),
				t.ID, mostID)
		}
	}
	return nil
}

// noID is the id of an added token whose file gives none.
const noID = -1

// canonical lists the tokens by id, for a digest.
func (a *addedTokens) canonical() []addedToken {
	list := slices.Clone(a.list)
	slices.SortFunc(list, func(x, y addedToken) int {
		if x.ID != y.ID {
			return x.ID - y.ID
		}
		return strings.Compare(x.Content, y.Content)
	})
	return list
}
