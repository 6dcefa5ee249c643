package toolcall

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMiniMax(t *testing.T) {
	call := func(name, arguments string) Call { return Call{name, json.RawMessage(arguments)} }
	block := func(inner string) string { return miniMaxOpen + "\n" + inner + "\n" + miniMaxClose }
	const rome = "<invoke name=\"weather\">\n<parameter name=\"city\">\"Rome\" <b>\n</parameter>\n<parameter name=\"days\">3</parameter>\n</invoke>"
	const now = "<invoke name=\"now\">\n</invoke>"
	weather := call("weather", `{"city": "\"Rome\" <b>\n", "days": 3}`)
	long := `<invoke name="` + strings.Repeat("f", 257) + `">`
	checkAnswers(t, []answerCase{
		{MiniMax, "It rains.\n", "It rains.\n", nil},
		{MiniMax, "I look.\n" + block(rome), "I look.", []Call{weather}},
		{MiniMax, block(rome+"\n"+now) + " b", " b", []Call{weather, call("now", "{}")}},
		{MiniMax, block(now) + block(rome), "", []Call{call("now", "{}"), weather}},
		{MiniMax, "<think>\n" + block(now) + "</think>\n\n" + miniMaxOpen + "<invoke name=\"f\"><parameter name=\"x\">[1, null]</parameter><parameter name=\"y\"></parameter></invoke>" + miniMaxClose,
			"<think>\n" + block(now) + "</think>", []Call{call("f", `{"x": [1, null], "y": ""}`)}},
		// A block without a list of functions stays.
		{MiniMax, block(""), block(""), nil},
		{MiniMax, block(rome + "?"), block(rome + "?"), nil},
		{MiniMax, block("<invoke name=\"a b\">\n</invoke>"), block("<invoke name=\"a b\">\n</invoke>"), nil},
		{MiniMax, block("<invoke name=\"f\">x=1</invoke>"), block("<invoke name=\"f\">x=1</invoke>"), nil},
		{MiniMax, miniMaxOpen + rome, miniMaxOpen + rome, nil},
		{MiniMax, miniMaxOpen + rome[:50], miniMaxOpen + rome[:50], nil},
		{MiniMax, miniMaxOpen + long + block(now), miniMaxOpen + long, []Call{call("now", "{}")}},
		{MiniMax, rome, rome, nil},
	})
}
