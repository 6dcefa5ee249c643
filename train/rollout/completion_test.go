package rollout

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The places of inserted parts fit the text that JSON keeps, whose broken bytes have become U+FFFD.
func TestStored(t *testing.T) {
	const whole = "äa\xe2\x82[b\ufffd]\xffc[d]e"
	parts := []Span{{Start: 1, End: 2, TextStart: 5, TextEnd: 11}, {Start: 3, End: 4, TextStart: 13, TextEnd: 16}}
	for _, tt := range []struct {
		name, text string
		parts      []Span
		want       []string // of the text, part by part
	}{
		{"broken bytes", whole, parts, []string{"äa\ufffd\ufffd", "[b\ufffd]", "\ufffdc", "[d]", "e"}},
		{"none broken", "ä[b]c", []Span{{TextStart: 2, TextEnd: 5}}, []string{"ä", "[b]", "c"}},
		{"none inserted", "\xff", nil, []string{"\ufffd"}},
	} {
		b, err := json.Marshal(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			t.Fatal(err)
		}
		c := Completion{Text: tt.text, Inserted: tt.parts}
		var got []string
		at := 0
		inserted, _ := c.Stored()
		for _, s := range inserted {
			got = append(got, text[at:s.TextStart], text[s.TextStart:s.TextEnd])
			at = s.TextEnd
		}
		if diff := cmp.Diff(tt.want, append(got, text[at:])); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.parts, c.Inserted); diff != "" {
			t.Errorf("%s: it changes the completion (-want +got)\n%s", tt.name, diff)
		}
	}
}

// three is an episode of three conversations: the policy's turns are lower case, what the agent inserts is in brackets.
// The last turn is the second one's.
func three() Completion {
	talk := func(prompt, first, inserted, second string) Completion {
		c := Completion{Asked: &Asked{Tokens: []int32{int32(len(prompt)), 7}, Text: prompt}}
		for i, text := range []string{first, second} {
			if text == "" {
				break
			}
			turn := Completion{Finish: FinishLength, Text: text}
			for t := range len(text) {
				turn.Tokens = append(turn.Tokens, int32(text[t]))
				turn.LogProbs, turn.Entropies = append(turn.LogProbs, -1), append(turn.Entropies, 2)
			}
			if i == 0 {
				c.Continue(nil, "", &turn)
			} else {
				turn.Finish = FinishStop
				c.Continue([]int32{1, 2}, inserted, &turn)
			}
		}
		return c
	}
	return Join([]Completion{talk("A", "a\xff", "[\xff]", "bc"), talk("BB", "de", "[2]", "f"), talk("CCC", "g", "", "")}, 1)
}

func TestJoin(t *testing.T) {
	c := three()
	want := Completion{Tokens: []int32{'a', 0xff, 1, 2, 'b', 'c', 'd', 'e', 1, 2, 'f', 'g'},
		LogProbs:  []float32{-1, -1, 0, 0, -1, -1, -1, -1, 0, 0, -1, -1},
		Entropies: []float32{2, 2, 0, 0, 2, 2, 2, 2, 0, 0, 2, 2}, Text: "a\xff[\xff]bcde[2]fg", Finish: FinishStop,
		Inserted: []Span{{2, 4, 2, 5}, {8, 10, 9, 12}},
		Asked: &Asked{Tokens: []int32{1, 7}, Text: "A", Final: 1,
			Later: []Later{{6, 7, []int32{2, 7}, "BB"}, {11, 13, []int32{3, 7}, "CCC"}}}}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	if c.Turns() != 5 || c.Messages() != 10 || c.SampledTokens() != 8 || c.Longest() != 6 {
		t.Errorf("%d turns, %d messages, %d sampled tokens, longest %d", c.Turns(), c.Messages(), c.SampledTokens(), c.Longest())
	}
	parts := []Conversation{{[]int32{1, 7}, 0, 6}, {[]int32{2, 7}, 6, 11}, {[]int32{3, 7}, 11, 12}}
	if diff := cmp.Diff(parts, c.Conversations(c.PromptOf(nil))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for final, want := range []string{"bc", "f", "g"} {
		c.Asked.Final = final
		if got := c.LastTurn(); got.Text != want || string(rune(got.Tokens[0])) != want[:1] || len(got.Tokens) != len(want) {
			t.Errorf("the last turn of conversation %d is %q, %v", final, got.Text, got.Tokens)
		}
	}
	if own := c.Own(); own.Text != "a\xffbcdefg" {
		t.Errorf("the policy's own text is %q", own.Text)
	}
	if none := Join(nil, 0); none.Asked != nil || none.Tokens != nil {
		t.Errorf("%+v", none)
	}
}

// Conversations, too, have their places in the text that JSON keeps.
func TestStoredConversations(t *testing.T) {
	c := three()
	b, _ := json.Marshal(c.Text)
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		t.Fatal(err)
	}
	before := three()
	inserted, asked := c.Stored()
	if got := text[inserted[0].TextStart:inserted[0].TextEnd] + text[inserted[1].TextStart:inserted[1].TextEnd]; got != "[\ufffd][2]" {
		t.Errorf("inserted %q", got)
	}
	got := []string{text[:asked.Later[0].TextStart], text[asked.Later[0].TextStart:asked.Later[1].TextStart], text[asked.Later[1].TextStart:]}
	if diff := cmp.Diff([]string{"a\ufffd[\ufffd]bc", "de[2]f", "g"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(before, c); diff != "" {
		t.Errorf("it changes the completion (-want +got)\n%s", diff)
	}
}

func TestCheck(t *testing.T) {
	for name, change := range map[string]func(c *Completion){
		"no prompt":                         func(c *Completion) { c.Asked.Later[0].Tokens = nil },
		"no tokens":                         func(c *Completion) { c.Asked.Later[1].Start = 12 },
		"no tokens in the middle":           func(c *Completion) { c.Asked.Later[1].Start, c.Inserted = 6, c.Inserted[:1] },
		"the first has none":                func(c *Completion) { c.Asked.Later[0].Start, c.Inserted = 0, nil },
		"beyond the end":                    func(c *Completion) { c.Asked.Later[1].Start = 13 },
		"not in order":                      func(c *Completion) { c.Asked.Later[0].Start = 5 + 7 },
		"texts not in order":                func(c *Completion) { c.Asked.Later[0].TextStart = 14 },
		"a text before what was inserted":   func(c *Completion) { c.Asked.Later[0].TextStart = 4 },
		"a part across conversations":       func(c *Completion) { c.Inserted[0].End = 7 },
		"a part at a conversation's end":    func(c *Completion) { c.Inserted[0].End = 6 },
		"a part begins in the one before":   func(c *Completion) { c.Inserted[1].Start = 5 },
		"a text across conversations":       func(c *Completion) { c.Inserted[0].TextEnd = 8 },
		"a part behind the end":             func(c *Completion) { c.Inserted[1] = Span{12, 13, 14, 14} },
		"an empty part":                     func(c *Completion) { c.Inserted[1].End = 8 },
		"parts in the wrong order":          func(c *Completion) { c.Inserted[0], c.Inserted[1] = c.Inserted[1], c.Inserted[0] },
		"the final one is not there":        func(c *Completion) { c.Asked.Final = 3 },
		"the final one is before the first": func(c *Completion) { c.Asked.Final = -1 },
	} {
		c := three()
		change(&c)
		if err := c.Check(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	failed := Completion{}
	if err := failed.Check(); err != nil {
		t.Errorf("a completion without tokens: %v", err)
	}
}
