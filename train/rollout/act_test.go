package rollout

import (
	"math"
	"testing"
)

// acted is three with its turns, and one of a conversation that is not learned from.
func acted() Completion {
	c := three()
	c.Acts = []Act{{Reward: 3, State: "s"}, {End: 2, Reward: 0.5}, {Start: 6, End: 8}, {Start: 4, End: 6, Reward: -1, State: "s"},
		{Start: 10, End: 11}, {Start: 11, End: 12, Conversation: "n"}}
	return c
}

func TestCheckActs(t *testing.T) {
	c := acted()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	if all, elsewhere := c.Earned(); all != 2.5 || elsewhere != 3 {
		t.Errorf("earned %v, %v elsewhere", all, elsewhere)
	}
	for name, change := range map[string]func(a []Act) []Act{
		"beyond the end":             func(a []Act) []Act { a[5].End = 13; return a },
		"the last one is missing":    func(a []Act) []Act { return a[:5] },
		"the first one is missing":   func(a []Act) []Act { return a[2:] },
		"twice":                      func(a []Act) []Act { return append(a, a[3]) },
		"of what was inserted":       func(a []Act) []Act { a[1].End = 3; return a },
		"without its last token":     func(a []Act) []Act { a[2].End = 7; return a },
		"that ends before it starts": func(a []Act) []Act { a[2].End = 5; return a },
		"before the first token":     func(a []Act) []Act { a[1].Start = -1; return a },
		"of an infinite reward":      func(a []Act) []Act { a[2].Reward = math.Inf(1); return a },
		"without a number":           func(a []Act) []Act { a[0].Reward = math.NaN(); return a },
	} {
		c := acted()
		if c.Acts = change(c.Acts); c.Check() == nil {
			t.Errorf("a turn %s: no error", name)
		}
	}
	none := Completion{Acts: []Act{{Reward: 1}}}
	if err := none.Check(); err != nil {
		t.Errorf("a completion without tokens: %v", err)
	}
}
