package toolcall

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPythonic(t *testing.T) {
	call := func(name, arguments string) Call { return Call{name, json.RawMessage(arguments)} }
	lfm := func(inner string) string { return lfmOpen + inner + lfmClose }
	olmo := func(inner string) string { return olmoOpen + inner + olmoClose }
	f, g := call("f", `{"x": 1, "y": "it's"}`), call("g.h-i", "{}")
	const fCall = `f(x=1, y="it's")`
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	list := []answerCase{
		{LFM2, "It rains.\n", "It rains.\n", nil},
		{LFM2, "I look.\n" + lfm("["+fCall+", g.h-i()]") + "Looking", "I look.\nLooking", []Call{f, g}},
		{LFM2, lfm(" [ " + fCall + " ,\ng.h-i( ) , ] "), "", []Call{f, g}},
		{LFM2, "<think>" + lfm("[g.h-i()]") + "</think>" + lfm("[g.h-i()]"), "<think>" + lfm("[g.h-i()]") + "</think>", []Call{g}},
		{LFM2, lfmOpen + "[g.h-i()]", "", []Call{g}},
		{LFM2, lfmOpen + "[g.h-i()] and", " and", []Call{g}},
		{LFM2, lfm(`[{"name": "f", "arguments": {"x": 1, "y": "it's"}}, {"name": "g.h-i", "arguments": {}, "id": "1"}]`), "", []Call{f, g}},
		{LFM2, lfm(`[{"name": 1}]`), lfm(`[{"name": 1}]`), nil},
		{LFM2, lfm("[]"), lfm("[]"), nil},
		{LFM2, lfm(fCall), lfm(fCall), nil},
		{LFM2, lfm("[f(x=1) g()]"), lfm("[f(x=1) g()]"), nil},
		{LFM2, lfmOpen + "[f(x=1", lfmOpen + "[f(x=1", nil},
		{LFM2, lfmOpen + "[f(x=1)", lfmOpen + "[f(x=1)", nil},
		{LFM2, lfmOpen + "[g.h-i()]" + lfmClose[:9], lfmClose[:9], []Call{g}},
		{LFM2, lfm("[f(x=2+3)]") + lfm("[g.h-i()]"), lfm("[f(x=2+3)]"), []Call{g}},

		{Olmo3, "I look. " + olmo(fCall+"\ng.h-i()"), "I look.", []Call{f, g}},
		{Olmo3, olmo("\n"+fCall+"\n") + "\n", "", []Call{f}},
		{Olmo3, olmoOpen + fCall + "\n", "", []Call{f}},
		{Olmo3, olmoOpen + "\n", olmoOpen + "\n", nil},
		{Olmo3, olmo(""), olmo(""), nil},
		{Olmo3, olmo("[g()]"), olmo("[g()]"), nil},
		{Olmo3, olmoOpen + fCall + "</func", olmoOpen + fCall + "</func", nil},
		{Olmo3, olmo("print('a')"), olmo("print('a')"), nil},
	}
	// Values, and what they are in JSON; empty: no literal.
	for _, v := range [][2]string{
		{"True", "true"}, {"False", "false"}, {"None", "null"}, {"true", "true"}, {"false", "false"}, {"null", "null"},
		{"-2.50", "-2.50"}, {"1e+5", "1e+5"}, {"0", "0"}, {"007", ""}, {"1_000", ""}, {"inf", ""}, {"x", ""}, {"--1", ""}, {"1 + 1", ""}, {"os.getcwd()", ""},
		{"[1, 'a', [], (2,), (3), (), ]", `[1, "a", [], [2], 3, []]`}, {"[1 2]", ""}, {"[,]", ""}, {"[1", ""}, {deep, ""},
		{`{'k': {"l": None}, "m": 1.50,}`, `{"k": {"l": null}, "m": 1.50}`}, {"{}", "{}"}, {"{1: 2}", ""}, {"{'a' 2}", ""}, {"{'a': 1 'b': 2}", ""}, {"{'a'}", ""},
		{`''`, `""`}, {`""`, `""`}, {`'a"b\'c'`, `"a\"b'c"`}, {`"a'b\"c\/"`, `"a'b\"c/"`}, {`'a\/\d'`, `"a\\/\\d"`}, {"'a\nb'", `"a\nb"`}, {"\"a\nb\"", `"a\nb"`},
		{`'\n\t\\\x41\u00e9\U0001F600\ud83d\ude00\101\0'`, `"\n\t\\Aé😀😀A\u0000"`}, {`"\u00e9\ud83d\ude00"`, `"é😀"`}, {"'a\\\nb'", `"ab"`},
		{`'\x4'`, ""}, {`'\ud83d'`, ""}, {`'\uzzzz'`, ""}, {`'''a'b''c'''`, `"a'b''c"`}, {`"""a"b"""`, `"a\"b"`}, {`'a' 'b'`, ""}, {`r'a'`, ""}, {`'a`, ""},
		{"'<b> &'", `"<b> &"`},
	} {
		answer, calls, said := olmo("f(x="+v[0]+", z=1)"), []Call(nil), ""
		if v[1] != "" {
			calls = []Call{call("f", `{"x": `+v[1]+`, "z": 1}`)}
		} else {
			said = answer
		}
		list = append(list, answerCase{Olmo3, answer, said, calls})
	}
	for _, bad := range []string{"f(1)", "f(x=1, 2)", "f(x=1, x=2)", "f(x)", "f(=1)", "f(x=)", "f x=1)", "f(x=1 y=2)", "(x=1)", "f(**{})", "f(x=1); g()"} {
		list = append(list, answerCase{Olmo3, olmo(bad), olmo(bad), nil})
	}
	checkAnswers(t, list)
}
