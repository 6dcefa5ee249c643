package exchange

import (
	"fmt"
	"regexp"
	"strings"

	"exp/eval/rows"
	"exp/train/rollout"
)

// Match replaces the ids of the responses by the suite's ids. It matches by the id in the
// file, else by the longest problem text found in the prompt, ignoring white space. If a response matches
// neither way, Match returns an error and changes nothing. reworded counts responses whose id matches but
// whose prompt lacks the problem's text: it may be reworded, or the suite may be the wrong one.
func (f *File) Match(problems []rollout.Problem) (reworded int, err error) {
	m := newMatcher(problems)
	type place struct {
		id       string
		reworded bool
	}
	found := map[[2]string]place{} // by item and prompt
	ids := make([]string, len(f.Responses))
	for i, r := range f.Responses {
		key := [2]string{r.Item, r.Prompt}
		at, ok := found[key]
		if !ok {
			if at.id, at.reworded, ok = m.find(r.Item, r.Prompt); !ok {
				return 0, &rows.Error{Where: r.Where, Err: fmt.Errorf("the suite has no problem %q and none whose "+
					"text is in the prompt; its first problem is %q", r.Item, problems[0].ID)}
			}
			found[key] = at
		}
		ids[i] = at.id
		if at.reworded {
			reworded++
		}
	}
	next := map[string]int{}
	for i := range f.Responses {
		r := &f.Responses[i]
		r.Item, r.Sample = ids[i], next[ids[i]]
		next[ids[i]]++
	}
	return reworded, nil
}

// matcher finds problems by id or text.
type matcher struct {
	texts map[string]string   // id -> normalised text
	heads map[string][]string // first bytes of the text -> ids
	size  int                 // length of the keys of heads
}

// headBytes is chosen so that few problems share their beginning.
const headBytes = 32

func newMatcher(problems []rollout.Problem) *matcher {
	m := &matcher{texts: map[string]string{}, heads: map[string][]string{}, size: headBytes}
	for _, p := range problems {
		m.texts[p.ID] = spaced(p.Prompt)
		m.size = min(m.size, len(m.texts[p.ID]))
	}
	for _, p := range problems {
		head := m.texts[p.ID][:m.size]
		m.heads[head] = append(m.heads[head], p.ID)
	}
	return m
}

// imagePlace matches the place of an image, which each program spells in its own way.
var imagePlace = regexp.MustCompile(`<image ?[0-9]*>`)

// spaced returns a text with single spaces and without places of images.
func spaced(s string) string {
	return strings.Join(strings.Fields(imagePlace.ReplaceAllString(s, " ")), " ")
}

// otherSpelling returns the id that EvalPlus gives a problem of MBPP, or ours for EvalPlus's or for the number
// in MBPP's own files: Mbpp/11 and 11 are MBPP/11.
func otherSpelling(item string) string {
	if item != "" && strings.Trim(item, "0123456789") == "" {
		return "MBPP/" + item
	}
	if number, ok := strings.CutPrefix(item, "Mbpp/"); ok {
		return "MBPP/" + number
	}
	if number, ok := strings.CutPrefix(item, "MBPP/"); ok {
		return "Mbpp/" + number
	}
	return item
}

// find goes by id unless the prompt shows that the id belongs to another problem.
func (m *matcher) find(item, prompt string) (id string, reworded, ok bool) {
	text := spaced(prompt)
	if _, known := m.texts[item]; !known {
		item = otherSpelling(item)
	}
	own, known := m.texts[item]
	if known && (text == "" || strings.Contains(text, own) || strings.Contains(own, text)) {
		return item, false, true
	}
	best := 0
	for i := 0; i+m.size <= len(text) && m.size > 0; i++ {
		for _, candidate := range m.heads[text[i:i+m.size]] {
			if own := m.texts[candidate]; len(own) > best && strings.HasPrefix(text[i:], own) {
				id, best = candidate, len(own)
			}
		}
	}
	if best == 0 && known {
		return item, true, true
	}
	return id, false, best > 0
}
