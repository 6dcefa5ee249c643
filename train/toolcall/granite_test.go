package toolcall

import (
	"encoding/json"
	"testing"
)

func TestGranite(t *testing.T) {
	call := func(name, arguments string) Call { return Call{name, json.RawMessage(arguments)} }
	f, g := call("f", `{"x": 1.50}`), call("g", "{}")
	const list = `[{"name": "f", "arguments": {"x": 1.50}}, {"name": "g", "arguments": {}}]`
	checkAnswers(t, []answerCase{
		{Granite, "It rains.\n", "It rains.\n", nil},
		{Granite, "<|tool_call|>" + list, "", []Call{f, g}},
		{Granite, "I look. <|tool_call|> \n" + list + "\n", "I look.", []Call{f, g}},
		{Granite, "<tool_call>" + list + " b", " b", []Call{f, g}},
		{Granite, `<|tool_call|>{"name": "g"}`, "", []Call{g}},
		{Granite, "<think>" + list + "<|tool_call|>" + list + "</think><|tool_call|>" + list, "<think>" + list + "<|tool_call|>" + list + "</think>", []Call{f, g}},
		{Granite, "<|tool_call|>" + list[:30], "<|tool_call|>" + list[:30], nil},
		{Granite, "<|tool_call|>[]", "<|tool_call|>[]", nil},
		{Granite, "<|tool_call|>[1]", "<|tool_call|>[1]", nil},
		{Granite, "<|tool_call|> f(x)", "<|tool_call|> f(x)", nil},
		{Granite, "<|tool_call|> ", "<|tool_call|> ", nil},
		{Granite, `<|tool_call|>[{"name": "f", "arguments": [1]}]`, `<|tool_call|>[{"name": "f", "arguments": [1]}]`, nil},
		{Granite, "<|tool_call|>?<|tool_call|>" + list, "<|tool_call|>?", []Call{f, g}},
		{Granite, list, list, nil},
	})
}
