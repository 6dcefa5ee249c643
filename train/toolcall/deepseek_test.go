package toolcall

import (
	"encoding/json"
	"testing"
)

func TestDeepSeek(t *testing.T) {
	call := func(name, arguments string) Call { return Call{name, json.RawMessage(arguments)} }
	f, g := call("f", `{"x": 1.50}`), call("g-h.i", "{}")
	const v3 = oneBegin + "function" + oneSep + "f\n```json\n{\"x\": 1.50}\n```" + oneEnd
	const v31, other = oneBegin + "f" + oneSep + `{"x": 1.50}` + oneEnd, oneBegin + "g-h.i" + oneSep + "{}" + oneEnd
	const bad = oneBegin + "f" + oneSep + "{x}" + oneEnd
	checkAnswers(t, []answerCase{
		{DeepSeek, "It rains.\n", "It rains.\n", nil},
		{DeepSeek, "I look.\n\n" + callsBegin + v31 + callsEnd, "I look.", []Call{f}},
		{DeepSeek, callsBegin + v31 + other + callsEnd + " b", " b", []Call{f, g}},
		{DeepSeek, callsBegin + v3 + "\n" + v3 + callsEnd + "\n", "", []Call{f, f}},
		{DeepSeek, "<think>" + callsBegin + v31 + callsEnd + "</think>" + callsBegin + v31 + callsEnd, "<think>" + callsBegin + v31 + callsEnd + "</think>", []Call{f}},
		{DeepSeek, callsBegin + v31, "", []Call{f}},
		{DeepSeek, callsBegin + v31 + " \n", "", []Call{f}},
		{DeepSeek, callsBegin + oneBegin + "function" + oneSep + `{"x": 1.50}` + oneEnd + callsEnd, "", []Call{call("function", `{"x": 1.50}`)}},
		// Text that is not a list of calls stays.
		{DeepSeek, callsBegin + v31 + "?" + callsEnd, callsBegin + v31 + "?" + callsEnd, nil},
		{DeepSeek, callsBegin + v31 + callsEnd[:5], callsBegin + v31 + callsEnd[:5], nil},
		{DeepSeek, callsBegin + v31[:30], callsBegin + v31[:30], nil},
		{DeepSeek, callsBegin + callsEnd, callsBegin + callsEnd, nil},
		{DeepSeek, callsBegin + bad + callsEnd, callsBegin + bad + callsEnd, nil},
		{DeepSeek, callsBegin + bad + callsBegin + v31 + callsEnd, callsBegin + bad, []Call{f}},
		{DeepSeek, callsBegin + oneBegin + "a b" + oneSep + "{}" + oneEnd, callsBegin + oneBegin + "a b" + oneSep + "{}" + oneEnd, nil},
		{DeepSeek, callsBegin + oneBegin + "function" + oneSep + "f\n[1]" + oneEnd, callsBegin + oneBegin + "function" + oneSep + "f\n[1]" + oneEnd, nil},
		{DeepSeek, callsBegin + oneBegin + "function" + oneSep + "f```json{}" + oneEnd, callsBegin + oneBegin + "function" + oneSep + "f```json{}" + oneEnd, nil},
		{DeepSeek, callsBegin + oneBegin + "f{}" + oneEnd, callsBegin + oneBegin + "f{}" + oneEnd, nil},
	})
}
