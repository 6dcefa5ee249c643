package ask

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"exp/eval"
	"exp/eval/suite"
	"exp/train/rollout"
)

// choice is a question of a source; the options are its name with 1, 2.
func choice(name, source string, right int) rollout.Problem {
	p := rollout.Problem{ID: name, Prompt: name + "?\n\nA) " + name + "1\nB) " + name + "2", Answer: rollout.Letter(right),
		Choice: &rollout.Choice{Question: name + "?", Options: []string{name + "1", name + "2"}, Right: right}}
	if source != "" {
		p.Data = json.RawMessage(fmt.Sprintf(`{"source":%q}`, source))
	}
	return p
}

// written returns a problem's prompt, and its messages as role: content.
func written(p rollout.Problem) string {
	lines := []string{p.Prompt}
	for _, m := range p.Messages {
		lines = append(lines, m.Role+": "+m.Content)
	}
	return strings.Join(lines, "|")
}

func TestRender(t *testing.T) {
	examples := []rollout.Problem{choice("a", "high_seas", 0), choice("b", "land", 1), choice("c", "land", 0)}
	solved := []rollout.Problem{{ID: "s", Prompt: "1+1?", Answer: "2", Target: "One more: 2 \n"}, {ID: "g", Prompt: "2+2?", Answer: "4"}}
	chat := rollout.Problem{ID: "m", Prompt: "X?", Messages: []rollout.Message{{Role: "system", Content: "S"}, {Role: "user", Content: "X?"}}}
	told := rollout.Problem{ID: "m", Prompt: "X?", Messages: []rollout.Message{{Role: "developer", Content: "D"}, {Role: "user", Content: "X?"}}}
	own := choice("c", "land", 0)
	for _, tt := range []struct {
		name     string
		asking   suite.Asking
		examples []rollout.Problem
		p        rollout.Problem
		want     string
	}{
		{"as it is", suite.Asking{Prompt: "{problem}"}, nil, own, "c?\n\nA) c1\nB) c2"},
		{"without its options", suite.Asking{Prompt: "Q: {problem}\nA:", Likelihood: eval.ByOption}, nil, own, "Q: c?\nA:"},
		{"options as answers", suite.Asking{Prompt: "Q: {problem}\nA:", Likelihood: eval.ByOption, Shots: 1}, examples, own,
			"Q: b?\nA: b2\n\nQ: c?\nA:|user: Q: b?\nA:|assistant: b2|user: Q: c?\nA:"},
		{"letters as answers, about the source", suite.Asking{Prompt: "{problem}\nAnswer:", Likelihood: eval.ByLetter, Shots: 1,
			Description: "On the {source}."}, examples, choice("x", "high_seas", 1),
			"On the high seas.\n\na?\n\nA) a1\nB) a2\nAnswer: A\n\nx?\n\nA) x1\nB) x2\nAnswer:|" +
				"user: On the high seas.\n\na?\n\nA) a1\nB) a2\nAnswer:|assistant: A|user: x?\n\nA) x1\nB) x2\nAnswer:"},
		{"of all, where the problem names no source", suite.Asking{Prompt: "{problem} ", Likelihood: eval.ByOption, Shots: 2}, examples,
			choice("x", "", 0), "a? a1\n\nb? b2\n\nx? |user: a? |assistant: a1|user: b? |assistant: b2|user: x? "},
		{"of all, where no example names a source", suite.Asking{Prompt: "{problem} ", Likelihood: eval.ByOption, Shots: 1},
			[]rollout.Problem{choice("a", "", 0)}, choice("x", "land", 0), "a? a1\n\nx? |user: a? |assistant: a1|user: x? "},
		{"behind a developer's message", suite.Asking{Prompt: "{problem}", Shots: 1}, solved[:1], told,
			"1+1? One more: 2\n\nX?|developer: D|user: 1+1?|assistant: One more: 2|user: X?"},
		{"solutions, or gold answers", suite.Asking{Prompt: "{problem}", Shots: 2}, solved, chat,
			"1+1? One more: 2\n\n2+2? 4\n\nX?|system: S|user: 1+1?|assistant: One more: 2|user: 2+2?|assistant: 4|user: X?"},
		{"a description alone", suite.Asking{Prompt: "{problem}", Description: "D"}, nil, chat, "D\n\nX?|system: S|user: D\n\nX?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := renderer{asking: tt.asking}
			if tt.asking.Shots > 0 {
				var err error
				if r.shots, err = NewExamples("dev", tt.examples, tt.asking); err != nil {
					t.Fatal(err)
				}
			}
			had := written(tt.p)
			got, err := r.render(&tt.p)
			if err != nil {
				t.Fatal(err)
			}
			if tt.asking.Description != "" && tt.asking.Shots == 0 || len(tt.p.Messages) > 0 || tt.asking.Shots > 0 {
				if written(got) != tt.want {
					t.Errorf("%q, want %q", written(got), tt.want)
				}
			} else if got.Prompt != tt.want || got.Messages != nil {
				t.Errorf("%q, want %q", written(got), tt.want)
			}
			if written(tt.p) != had {
				t.Errorf("the problem itself became %q", written(tt.p))
			}
		})
	}
}

func TestRenderRefuses(t *testing.T) {
	letters := suite.Asking{Prompt: "{problem}", Likelihood: eval.ByLetter, Shots: 2}
	plain := rollout.Problem{ID: "p", Prompt: "P?", Answer: "1"}
	turned := choice("a", "", 1)
	turned.Prompt, turned.Choice.Options = "a?\n\nA) a2\nB) a1", []string{"a2", "a1"}
	shown := plain
	shown.Images = []rollout.Picture{{}}
	for _, tt := range []struct {
		examples []rollout.Problem
		p        rollout.Problem
		asking   suite.Asking
		want     string
	}{
		{[]rollout.Problem{choice("a", "s", 0), choice("b", "t", 0)}, choice("x", "s", 0), letters, `only 1 example of source "s"`},
		{[]rollout.Problem{choice("a", "s", 0), choice("b", "s", 0)}, choice("x", "u", 0), letters, `only 0 examples of source "u"`},
		{[]rollout.Problem{choice("a", "", 0), choice("b", "", 0)}, choice("a", "", 0), letters, "only 1 example besides the problem itself"},
		{[]rollout.Problem{turned, choice("b", "", 0)}, choice("a", "", 0), letters, "only 1 example besides the problem itself"},
		{[]rollout.Problem{choice("a", "", 0), plain}, choice("x", "", 0), letters, "problem p of dev has no options"},
		{[]rollout.Problem{{ID: "o", Prompt: "O?"}}, plain, suite.Asking{Prompt: "{problem}", Shots: 1}, "problem o of dev has no answer"},
		{[]rollout.Problem{shown}, plain, suite.Asking{Prompt: "{problem}", Shots: 1}, "problem p of dev has images"},
		{nil, plain, suite.Asking{Prompt: "{problem}", Description: "On {source}"}, "the problem names no source"},
	} {
		r := renderer{asking: tt.asking}
		var err error
		if tt.asking.Shots > 0 {
			r.shots, err = NewExamples("dev", tt.examples, tt.asking)
		}
		if err == nil {
			_, err = r.render(&tt.p)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
	if err := checkOptions([]rollout.Problem{choice("a", "", 0), plain}, eval.ByLetter); err == nil ||
		!strings.Contains(err.Error(), "problem p has no options") {
		t.Errorf("without options: %v", err)
	}
	shown.Choice = choice("a", "", 0).Choice
	if err := checkOptions([]rollout.Problem{shown}, eval.ByOption); err == nil || !strings.Contains(err.Error(), "has images") {
		t.Errorf("with images: %v", err)
	}
	if err := checkOptions([]rollout.Problem{shown}, eval.ByLetter); err != nil {
		t.Error(err)
	}
}
