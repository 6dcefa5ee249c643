package toolcall

import (
	"encoding/json"
	"testing"
)

func TestGLM(t *testing.T) {
	call := func(name, arguments string) Call { return Call{name, json.RawMessage(arguments)} }
	pair := func(key, value string) string {
		return "<arg_key>" + key + "</arg_key><arg_value>" + value + "</arg_value>"
	}
	const now = "<tool_call>now</tool_call>"
	checkAnswers(t, []answerCase{
		{GLM, "It rains.\n", "It rains.\n", nil},
		{GLM, "\n<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>", "", []Call{call("weather", `{"city": "Paris", "days": 3}`)}},
		{GLM, "So: <tool_call>weather" + pair("city", " a\n\"b\" <i> ") + "</tool_call>", "So:", []Call{call("weather", `{"city": " a\n\"b\" <i> "}`)}},
		{GLM, "<think>hm " + now + "</think>" + now + "\n" + now + "\n", "<think>hm " + now + "</think>", []Call{call("now", "{}"), call("now", "{}")}},
		{GLM, "<tool_call> now \n </tool_call>.", ".", []Call{call("now", "{}")}},
		{GLM, "<tool_call>weather " + pair("city", "7") + " " + pair("wind", "true") + pair("at", "null") + pair("box", `[1, "a"]`) + pair("opt", `{"k": 1.50}`) + pair("rate", "2.50") + pair("any", "7") + pair(" new ", "{}") + " </tool_call>", "",
			[]Call{call("weather", `{"city": "7", "wind": true, "at": null, "box": [1, "a"], "opt": {"k": 1.50}, "rate": 2.50, "any": "7", "new": {}}`)}},
		{GLM, "<tool_call>weather" + pair("days", "three") + pair("wind", "[1") + "</tool_call>", "", []Call{call("weather", `{"days": "three", "wind": "[1"}`)}},
		{GLM, "<tool_call>f" + pair("x", "1") + pair("y", "2") + pair("x", "3") + "</tool_call>", "", []Call{call("f", `{"x": "3", "y": "2"}`)}},
		{GLM, "<tool_call>f" + pair("x", "") + "</tool_call>", "", []Call{call("f", `{"x": ""}`)}},
		{GLM, "<tool_call>a b</tool_call>", "<tool_call>a b</tool_call>", nil},
		{GLM, "<tool_call></tool_call> <tool_call>", "<tool_call></tool_call> <tool_call>", nil},
		{GLM, "<tool_call>f<arg_key>x</arg_key>1</tool_call>", "<tool_call>f<arg_key>x</arg_key>1</tool_call>", nil},
		{GLM, "<tool_call>f" + pair("x", "1") + "; </tool_call>", "<tool_call>f" + pair("x", "1") + "; </tool_call>", nil},
		{GLM, "<tool_call>f" + pair("x", "1") + "</tool_cal", "<tool_call>f" + pair("x", "1") + "</tool_cal", nil},
		{GLM, "<tool_call>f <tool_call>now</tool_call>", "<tool_call>f", []Call{call("now", "{}")}},
		{GLM, `<tool_call>{"name": "f", "arguments": {}}</tool_call>`, `<tool_call>{"name": "f", "arguments": {}}</tool_call>`, nil},
	})
}
