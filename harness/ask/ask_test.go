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
		{"up to the blank, behind filled ones", suite.Asking{Prompt: "{problem}", Likelihood: eval.ByBlank, Shots: 1, Description: "D"},
			[]rollout.Problem{gap("e", "Both __ 's hats.", 1)}, gap("g", "It _ fits. ", 0), "D\n\nBoth e2 's hats.\n\nIt |" +
				"user: D\n\nBoth e2|assistant: 's hats.|user: It "},
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

// gap is choice with a question of its own.
func gap(name, question string, right int) rollout.Problem {
	p := choice(name, "", right)
	p.Choice.Question = question
	return p
}

// Each option of a question with a blank ends a prompt of its own, and the same text goes on.
func TestFilled(t *testing.T) {
	a := suite.Asking{Prompt: "Q: {problem}", Likelihood: eval.ByBlank, Shots: 1}
	shots, err := NewExamples("dev", []rollout.Problem{gap("e", "An _ ends.", 0)}, a)
	if err != nil {
		t.Fatal(err)
	}
	list, err := Render([]rollout.Problem{gap("g", "It ___ fits it. ", 0)}, a, shots)
	if err != nil {
		t.Fatal(err)
	}
	if texts := Options(&list[0], a); len(texts) != 2 || texts[0] != "fits it." || texts[1] != "fits it." {
		t.Errorf("texts %q", texts)
	}
	had := written(list[0])
	got, rest := Filled(&list[0], "g2")
	if want := "Q: An e1 ends.\n\nQ: It g2|user: Q: An e1|assistant: ends.|user: Q: It g2"; written(got) != want || rest != "g2 fits it." {
		t.Errorf("%q, %q", written(got), rest)
	}
	if written(list[0]) != had {
		t.Errorf("the problem itself became %q", written(list[0]))
	}
}

func TestBlankRefuses(t *testing.T) {
	chat := gap("c", "a _ b", 0)
	chat.Messages = make([]rollout.Message, 2)
	image := gap("i", "a _ b", 0)
	image.Images = []rollout.Picture{{}}
	for _, tt := range []struct {
		p    rollout.Problem
		want string
	}{
		{gap("n", "Which?", 0), "problem n has no blank (_) in its question, and eval.final.likelihood: blank puts"},
		{gap("s", "a _ b _ c", 0), "problem s has several blanks (_)"},
		{gap("e", "a _ ", 0), "problem e has no text behind the blank (_)"},
		{chat, "problem c is a chat of several messages"}, {image, "problem i shows images"},
	} {
		err := checkOptions([]rollout.Problem{tt.p}, eval.ByBlank)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
		tt.p.Messages = nil // which NewExamples refuses by itself
		if tt.p.Images != nil || tt.p.ID == "c" {
			continue
		}
		if _, err := NewExamples("dev", []rollout.Problem{tt.p}, suite.Asking{Likelihood: eval.ByBlank, Shots: 1}); err == nil ||
			!strings.Contains(err.Error(), "of dev has ") {
			t.Errorf("an example: %v", err)
		}
	}
	if err := checkOptions([]rollout.Problem{gap("g", "a ____ b", 0)}, eval.ByBlank); err != nil {
		t.Error(err)
	}
}

func TestRenderRefuses(t *testing.T) {
	letters := suite.Asking{Prompt: "{problem}", Likelihood: eval.ByLetter, Shots: 2}
	plain := rollout.Problem{ID: "p", Prompt: "P?", Answer: "1"}
	turned := choice("a", "", 1)
	turned.Prompt, turned.Choice.Options = "a?\n\nA) a2\nB) a1", []string{"a2", "a1"}
	shown := pictured("p", "11", 0)
	shown.Messages = append(shown.Messages, rollout.Message{Role: "assistant"})
	optionImages := pictured("o", "11", 0)
	optionImages.Choice = &rollout.Choice{Question: "o?", Options: []string{"<image>", "x"}}
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
		{[]rollout.Problem{shown}, plain, suite.Asking{Prompt: "{problem}", Shots: 1}, "problem p of dev is a chat of several messages"},
		{[]rollout.Problem{optionImages}, plain, suite.Asking{Prompt: "{problem}", Shots: 1,
			Likelihood: eval.ByOption}, "problem o of dev has an image as an option"},
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
	if err := checkOptions([]rollout.Problem{optionImages}, eval.ByOption); err == nil ||
		!strings.Contains(err.Error(), "option A of problem o is an image") || !strings.Contains(err.Error(), "letter compares") {
		t.Errorf("an image as an option: %v", err)
	}
	for _, likelihood := range []string{eval.ByLetter, eval.ByOption} {
		if err := checkOptions([]rollout.Problem{pictured("a", "11", 0)}, likelihood); err != nil {
			t.Error(err)
		}
	}
	lost := pictured("a", "11", 0)
	lost.Choice.Question = "<image>a<image>?"
	r := renderer{asking: suite.Asking{Prompt: "{problem}", Likelihood: eval.ByOption}}
	if _, err := r.render(&lost); err == nil || !strings.Contains(err.Error(), "2 <image>, and the problem 1 images") {
		t.Errorf("a place without an image: %v", err)
	}
}

// pictured is choice about an image with this digest, which stands within the question.
func pictured(name, digest string, right int) rollout.Problem {
	p := choice(name, "", right)
	p.Choice.Question = "In <image>, " + p.Choice.Question
	p.Prompt = "In <image>, " + p.Prompt
	parts, _ := rollout.MarkedParts(p.Prompt)
	p.Messages = []rollout.Message{{Role: "user", Parts: rollout.PartList(parts)}}
	p.Images = []rollout.Picture{{Digest: digest}}
	return p
}

// Examples and questions show their images, in the order of the messages.
func TestRenderImages(t *testing.T) {
	// the second example asks the same about another image
	examples := []rollout.Problem{pictured("q", "11", 0), pictured("q", "22", 1), choice("c", "", 0)}
	own := pictured("q", "11", 1)
	const image = `{"type":"image"},`
	for _, tt := range []struct{ name, likelihood, prompt, messages, images string }{
		{"letters", eval.ByLetter, "D\n\nIn <image>, q?\n\nA) q1\nB) q2\nA: B\n\nc?\n\nA) c1\nB) c2\nA: A\n\nIn <image>, q?\n\nA) q1\nB) q2\nA:",
			`[{"role":"user","content":[{"type":"text","text":"D\n\n"},{"type":"text","text":"In "},` + image +
				`{"type":"text","text":", q?\n\nA) q1\nB) q2"},{"type":"text","text":"\nA:"}]},` +
				`{"role":"assistant","content":"B"},{"role":"user","content":"c?\n\nA) c1\nB) c2\nA:"},{"role":"assistant","content":"A"},` +
				`{"role":"user","content":[{"type":"text","text":"In "},` + image +
				`{"type":"text","text":", q?\n\nA) q1\nB) q2"},{"type":"text","text":"\nA:"}]}]`, "22 11"},
		{"options", eval.ByOption, "D\n\nIn <image>, q?\nA: q2\n\nc?\nA: c1\n\nIn <image>, q?\nA:",
			`[{"role":"user","content":[{"type":"text","text":"D\n\n"},{"type":"text","text":"In "},` + image +
				`{"type":"text","text":", q?"},{"type":"text","text":"\nA:"}]},` +
				`{"role":"assistant","content":"q2"},{"role":"user","content":"c?\nA:"},{"role":"assistant","content":"c1"},` +
				`{"role":"user","content":[{"type":"text","text":"In "},` + image +
				`{"type":"text","text":", q?"},{"type":"text","text":"\nA:"}]}]`, "22 11"},
	} {
		a := suite.Asking{Prompt: "{problem}\nA:", Likelihood: tt.likelihood, Shots: 2, Description: "D"}
		shots, err := NewExamples("dev", examples, a)
		if err != nil {
			t.Fatal(err)
		}
		had, _ := json.Marshal(own)
		got, err := Render([]rollout.Problem{own}, a, shots)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(got[0].Messages); err != nil {
			t.Fatal(err)
		}
		var images []string
		for _, pic := range got[0].Images {
			images = append(images, pic.Digest)
		}
		if got[0].Prompt != tt.prompt || strings.TrimSpace(b.String()) != tt.messages || strings.Join(images, " ") != tt.images {
			t.Errorf("%s:\nprompt %q\nmessages %s\nimages %v", tt.name, got[0].Prompt, b.String(), images)
		}
		if now, _ := json.Marshal(own); string(now) != string(had) {
			t.Errorf("%s: the problem itself became %s", tt.name, now)
		}
	}
	// options may show images after the question's; these are not shown where the options are compared by text of others
	more := pictured("q", "11", 0)
	more.Images = append(more.Images, rollout.Picture{Digest: "33"})
	r := renderer{asking: suite.Asking{Prompt: "{problem}", Likelihood: eval.ByOption}}
	if got, err := r.render(&more); err != nil || len(got.Images) != 1 || got.Messages[0].Images() != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
