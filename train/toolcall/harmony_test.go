package toolcall

import (
	"encoding/json"
	"testing"
)

func TestHarmony(t *testing.T) {
	call := func(name, arguments string) Call { return Call{name, json.RawMessage(arguments)} }
	f := call("f", `{"x": 1.50}`)
	const think, asked = "<|channel|>analysis<|message|>hm <b>\n<|end|><|start|>assistant", "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"x\": 1.50}<|call|>"
	const final = "<|channel|>final<|message|>"
	checkAnswers(t, []answerCase{
		{Harmony, "Hello.\n", "Hello.\n", nil},
		{Harmony, "", "", nil},
		{Harmony, final + "Hello. <b>\n<|return|>", "Hello. <b>\n", nil},
		{Harmony, final + "Hello.", "Hello.", nil},
		{Harmony, think + final + " 4 <| 5<|return|>", "<think>hm <b>\n</think> 4 <| 5", nil},
		{Harmony, think[:40], "<think>hm <b>\n<|e", nil},
		{Harmony, think, "<think>hm <b>\n</think><|start|>assistant", nil},
		{Harmony, think + asked, "<think>hm <b>\n</think>", []Call{f}},
		{Harmony, asked[:len(asked)-len("<|call|>")], "", []Call{f}},
		{Harmony, " to=functions.f<|channel|>commentary json<|message|>{\"x\": 1.50}", "", []Call{f}},
		{Harmony, think + " to=functions.f<|channel|>commentary <|constrain|>json<|message|>{\"x\": 1.50}<|call|>", "<think>hm <b>\n</think>", []Call{f}},
		{Harmony, "<|channel|>analysis to=functions.g.h-i code<|message|> {} \n<|end|>", "", []Call{call("g.h-i", "{}")}},
		{Harmony, "<|channel|>commentary to=weather<|message|>{}", "", []Call{call("weather", "{}")}},
		{Harmony, "<|channel|>commentary to=other<|message|>{}<|call|>", "<|channel|>commentary to=other<|message|>{}<|call|>", nil},
		{Harmony, "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant" + asked, "I look.", []Call{f}},
		{Harmony, think + asked + "<|start|>assistant" + asked + "<|start|>assistant" + think[:0] + final + "So.", "<think>hm <b>\n</think>So.", []Call{f, f}},
		{Harmony, asked + "<|channel|>commentary to=functions.g<|message|>{}<|start|>assistant" + final + "So", "So", []Call{f, call("g", "{}")}},
		{Harmony, final + "a<|end|><|start|>assistant" + final + "b", "a\nb", nil},
		{Harmony, "<|message|>a<|return|>", "<|message|>a", nil},
		{Harmony, "<|start|>assistant<|message|>a<|return|>", "a", nil},
		// A message that is not a call stays, with its header.
		{Harmony, "<|channel|>commentary to=functions.f json<|message|>{\"x\": }<|call|>", "<|channel|>commentary to=functions.f json<|message|>{\"x\": }<|call|>", nil},
		{Harmony, "<|channel|>commentary to=functions.f json<|message|>{\"x\": 1", "<|channel|>commentary to=functions.f json<|message|>{\"x\": 1", nil},
		{Harmony, "<|channel|>commentary to=functions.f json<|message|>[1]<|call|>" + "<|start|>assistant" + asked, "<|channel|>commentary to=functions.f json<|message|>[1]<|call|>", []Call{f}},
		{Harmony, "<|channel|>commentary to=functions.<|message|>{}<|call|>", "<|channel|>commentary to=functions.<|message|>{}<|call|>", nil},
		{Harmony, "<|channel|>commentary to=functions.f", "<|channel|>commentary to=functions.f", nil},
		{Harmony, "<|start|>functions.f to=assistant<|channel|>commentary<|message|>21<|end|>", "<|start|>functions.f to=assistant<|channel|>commentary<|message|>21<|end|>", nil},
		{Harmony, "<|channel|>final, <|message|>x", "<|channel|>final, <|message|>x", nil},
		{Harmony, "<|start|><|start|>!", "<|start|><|start|>!", nil},
		{Harmony, "to=be, or not", "to=be, or not", nil},
		{Harmony, "today <|", "today <|", nil},
	})
}

func TestHarmonyOptions(t *testing.T) {
	const asked = "<|channel|>commentary to=functions.f json<|message|>{}<|call|>"
	s, err := SyntaxNamed(Harmony)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, answer, said string
		o                  ReaderOptions
		calls              int
	}{
		{"the first call alone", asked + "<|start|>assistant" + asked + "<|channel|>final<|message|>b", "", ReaderOptions{One: true}, 1},
		{"no calls", "<|channel|>analysis<|message|>a<|end|><|start|>assistant" + asked, "<think>a</think><|start|>assistant" + asked, ReaderOptions{None: true}, 0},
		{"thoughts that the prompt began", "a<|end|><|start|>assistant" + asked, "a</think>", ReaderOptions{Thinking: true}, 1},
	} {
		for _, n := range []int{0, 1, 5} {
			said, calls := read(s, tt.o, tt.answer, n)
			if said != tt.said || len(calls) != tt.calls {
				t.Errorf("%s, pieces of %d: %q and %v, want %q and %d calls", tt.name, n, said, calls, tt.said, tt.calls)
			}
		}
	}
	if !OpensThoughts("<|start|>assistant<|channel|>analysis<|message|>") || OpensThoughts("<|start|>assistant") {
		t.Error("which prompts begin thoughts")
	}
}
