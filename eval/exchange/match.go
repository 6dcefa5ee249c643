package exchange

import (
	"fmt"
	"strings"

	"exp/eval/rows"
	"exp/train/rollout"
)

// Match gives the responses the ids of a suite's problems: by their id in the file, or
// else by the longest problem text that stands in their prompt, white space apart. A
// response that has neither is an error, and nothing is changed then. reworded counts the
// responses whose id is known but whose prompt does not have the problem's text: it may
// be worded anew, or the suite is another one.
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
				return 0, &rows.Error{Where: r.Where, Err: fmt.Errorf("the suite has no problem %q, and none whose "+
					"text stands in the prompt; its first is %q", r.Item, problems[0].ID)}
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

// matcher finds problems by id or by text.
type matcher struct {
	texts map[string]string   // normalised text by id
	heads map[string][]string // ids by the first bytes of the text
	size  int                 // of heads
}

// headBytes is long enough that few problems begin alike.
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

func spaced(s string) string { return strings.Join(strings.Fields(s), " ") }

// find prefers the id, unless the prompt shows that it is another's.
func (m *matcher) find(item, prompt string) (id string, reworded, ok bool) {
	text := spaced(prompt)
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
