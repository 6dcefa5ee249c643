package toolcall

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/form"
)

const weather = `[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{
	"city":{"type":"string"},"days":{"type":"integer"},"wind":{"type":"boolean"},"at":{"type":["string","null"]},"box":{"type":"array"},
	"opt":{"anyOf":[{"type":"object"},{"type":"null"}]},"rate":{"type":"number"},"any":{"description":"of any type"}}}}}]`

// read returns what a reader says of an answer in pieces of n bytes; 0: in one.
func read(s Syntax, o ReaderOptions, answer string, n int) (said string, calls []Call) {
	r := s.Reader(o)
	for n > 0 && len(answer) > n {
		text, list := r.Read(answer[:n], false)
		said, calls, answer = said+text, append(calls, list...), answer[n:]
	}
	text, list := r.Read(answer, true)
	return said + text, append(calls, list...)
}

// Answers, and the text and the calls in them, in whatever pieces they come.
func TestSyntaxes(t *testing.T) {
	call := func(name, arguments string) Call { return Call{name, json.RawMessage(arguments)} }
	f := call("f", `{"x": 1}`)
	const hermes, bad = `<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>`, `<tool_call>{"name": "f", "arguments": {"x": }}</tool_call>`
	const llama, coder = `{"name": "f", "parameters": {"x": 1}}`, "<tool_call>\n<function=weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>"
	paris := call("weather", `{"city": "Paris"}`)
	checkAnswers(t, []answerCase{
		{Hermes, "Hello.\n", "Hello.\n", nil},
		{Hermes, "", "", nil},
		{Hermes, hermes, "", []Call{f}},
		{Hermes, "\n\nLet me see.\n" + hermes + "\n", "\n\nLet me see.", []Call{f}},
		{Hermes, "a " + hermes + " b\n" + hermes + " c", "a  b\n c", []Call{f, f}},
		{Hermes, hermes + "\n" + hermes, "", []Call{f, f}},
		{Hermes, `<tool_call>{"name": "g"}</tool_call>`, "", []Call{call("g", `{}`)}},
		{Hermes, `<tool_call>{"name": "g", "arguments": "{\"y\": [2]}"}</tool_call>`, "", []Call{call("g", `{"y": [2]}`)}},
		{Hermes, `<tool_call>{"name": "g", "arguments": [1]}</tool_call>`, `<tool_call>{"name": "g", "arguments": [1]}</tool_call>`, nil},
		{Hermes, "no: " + bad + ". ", "no: " + bad + ". ", nil},
		{Hermes, bad + hermes + " so ", bad + " so", []Call{f}},
		{Hermes, hermes[:len(hermes)-3], hermes[:len(hermes)-3], nil},
		{Hermes, "x <tool_", "x <tool_", nil},
		{Hermes, "x <tool_called> <t <<tool_call", "x <tool_called> <t <<tool_call", nil},
		{Hermes, "<" + hermes, "<", []Call{f}},
		{Hermes, "<think>or " + hermes + "?\n</think>\n\n" + hermes, "<think>or " + hermes + "?\n</think>", []Call{f}},
		{Hermes, "<think>or " + hermes + "?\n</think>\n\nNo.", "<think>or " + hermes + "?\n</think>\n\nNo.", nil},
		{Hermes, hermes + "<think>" + hermes, "<think>" + hermes, []Call{f}},
		{Hermes, "<think>" + hermes + " </thin", "<think>" + hermes + " </thin", nil},
		{Hermes, `{"name": "f", "parameters": {"x": 1}}`, `{"name": "f", "parameters": {"x": 1}}`, nil},

		{Llama3, llama, "", []Call{f}},
		{Llama3, "\n\n" + llama + "\n", "", []Call{f}},
		{Llama3, "<|python_tag|>" + llama, "", []Call{f}},
		{Llama3, "Sure. <|python_tag|>" + llama, "Sure.", []Call{f}},
		{Llama3, llama + "; " + llama, "", []Call{f, f}},
		{Llama3, llama + ";\n" + llama + ";", "", []Call{f, f}},
		{Llama3, llama + "; then more;", "; then more;", []Call{f}},
		{Llama3, `{"type": "function", "name": "f", "arguments": "{\"x\": 1}"}`, "", []Call{f}},
		{Llama3, `{"name": "Ada", "born": 1815}`, `{"name": "Ada", "born": 1815}`, nil},
		{Llama3, `{"name": "Ada", "born": 1815} ` + llama, `{"name": "Ada", "born": 1815} ` + llama, nil},
		{Llama3, "Call " + llama, "Call " + llama, nil},
		{Llama3, `{"name": "f", "parameters": {"x": 1}`, `{"name": "f", "parameters": {"x": 1}`, nil},
		{Llama3, `{name: f}`, `{name: f}`, nil},
		{Llama3, "<|python_tag|>print(1)\n", "<|python_tag|>print(1)\n", nil},
		{Llama3, "<think>hm</think>" + llama, "<think>hm</think>", []Call{f}},

		{Mistral, `[TOOL_CALLS][{"name": "f", "arguments": {"x": 1}}]`, "", []Call{f}},
		{Mistral, `[TOOL_CALLS] [{"name": "f", "arguments": {"x": 1}, "id": "123456789"}, {"name": "g", "arguments": {}}]`, "", []Call{f, call("g", "{}")}},
		{Mistral, `I call [TOOL_CALLS]{"name": "f", "arguments": {"x": 1}}`, "I call", []Call{f}},
		{Mistral, `So: [TOOL_CALLS]f[ARGS]{"x": 1}[TOOL_CALLS]g.h-i{}`, "So:", []Call{f, call("g.h-i", "{}")}},
		{Mistral, `[TOOL_CALLS]f[CALL_ID]123456789[ARGS]{"x": 1}`, "", []Call{f}},
		{Mistral, `[TOOL_CALLS]f {"x": 1}`, "", []Call{f}},
		{Mistral, `[TOOL_CALLS][{"name": "f", "arguments": 1}]`, `[TOOL_CALLS][{"name": "f", "arguments": 1}]`, nil},
		{Mistral, `[TOOL_CALLS][{"name": "f", "arguments": {"x": 1}}, {"x": 2}]`, `[TOOL_CALLS][{"name": "f", "arguments": {"x": 1}}, {"x": 2}]`, nil},
		{Mistral, `[TOOL_CALLS][]`, `[TOOL_CALLS][]`, nil},
		{Mistral, `[TOOL_CALLS][{"name": "f"`, `[TOOL_CALLS][{"name": "f"`, nil},
		{Mistral, `[TOOL_CALLS]are what I write`, `[TOOL_CALLS]are what I write`, nil},
		{Mistral, `[TOOL_CALLS]f[ARGS]1`, `[TOOL_CALLS]f[ARGS]1`, nil},
		{Mistral, `[TOOL_CALLS]f[X]{}`, `[TOOL_CALLS]f[X]{}`, nil},
		{Mistral, `[{"name": "f", "arguments": {"x": 1}}]`, `[{"name": "f", "arguments": {"x": 1}}]`, nil},

		{Qwen3Coder, "Now.\n" + coder, "Now.", []Call{paris}},
		{Qwen3Coder, coder + "\n" + coder, "", []Call{paris, paris}},
		{Qwen3Coder, strings.TrimPrefix(coder, "<tool_call>\n"), "\n</tool_call>", []Call{paris}},
		{Qwen3Coder, strings.TrimSuffix(coder, "</tool_call>"), "", []Call{paris}},
		{Qwen3Coder, strings.TrimSuffix(coder, "</tool_call>") + "end", "\nend", []Call{paris}},
		{Qwen3Coder, "<tool_call><function=now></function></tool_call>", "", []Call{call("now", "{}")}},
		{Qwen3Coder, "<function=weather><parameter=city>\n\"Rome\" <b>\n\n</parameter><parameter=days>\n3\n</parameter><parameter=wind>True</parameter>" +
			"<parameter=at>\n08\n</parameter><parameter=box>[1, \"a\"]</parameter><parameter=opt>None</parameter><parameter=rate>2.5</parameter>" +
			"<parameter=any>7</parameter><parameter=new>{\"k\": 1}</parameter></function>", "",
			[]Call{call("weather", `{"city": "\"Rome\" <b>\n", "days": 3, "wind": true, "at": "08", "box": [1, "a"], "opt": null, "rate": 2.5, "any": "7", "new": {"k": 1}}`)}},
		{Qwen3Coder, "<function=weather><parameter=days>three</parameter><parameter=at>null</parameter><parameter=opt>[1]</parameter><parameter=city>5</parameter>" +
			"<parameter=wind>null</parameter></function>", "",
			[]Call{call("weather", `{"days": "three", "at": null, "opt": "[1]", "city": "5", "wind": null}`)}},
		{Qwen3Coder, "<function=weather><parameter=city>null</parameter></function>", "", []Call{call("weather", `{"city": "null"}`)}},
		{Qwen3Coder, "<function=f><parameter=x>1</parameter><parameter=y>2</parameter><parameter=x>3</parameter></function>", "", []Call{call("f", `{"x": "3", "y": "2"}`)}},
		{Qwen3Coder, "<tool_call>\n<function=f>\nx = 1\n</function>\n</tool_call>", "<tool_call>\n<function=f>\nx = 1\n</function>\n</tool_call>", nil},
		{Qwen3Coder, "<tool_call>\n<function=f>\n<parameter=x>1</function>", "<tool_call>\n<function=f>\n<parameter=x>1</function>", nil},
		{Qwen3Coder, "<function=a b>", "<function=a b>", nil},
		{Qwen3Coder, "<function=>", "<function=>", nil},
		{Qwen3Coder, hermes, hermes, nil},
	})
	// Marks within JSON are text.
	within := func(mark string) string { return `{"x": "a` + mark + `b"}` }
	checkAnswers(t, []answerCase{
		{Hermes, "See <tool_call>\n" + `{"name": "f", "arguments": ` + within("</tool_call>") + "}\n</tool_call>.", "See .", []Call{call("f", within("</tool_call>"))}},
		{Hermes, `<tool_call>{"name": "f", "arguments": ` + within("</tool_call>"), `<tool_call>{"name": "f", "arguments": ` + within("</tool_call>"), nil},
		{DeepSeek, callsBegin + oneBegin + "f" + oneSep + within(oneEnd+callsEnd) + oneEnd + callsEnd, "", []Call{call("f", within(oneEnd+callsEnd))}},
		{DeepSeek, callsBegin + oneBegin + "function" + oneSep + "f\n```json\n" + within(oneEnd) + "\n```" + oneEnd + callsEnd, "", []Call{call("f", within(oneEnd))}},
		{Harmony, channelMark + "commentary to=functions.f json" + messageMark + within(callEnd+MessageEnd) + callEnd, "", []Call{call("f", within(callEnd+MessageEnd))}},
		{Harmony, channelMark + "commentary to=functions.f json" + messageMark + within("x") + " y" + callEnd,
			channelMark + "commentary to=functions.f json" + messageMark + within("x") + " y" + callEnd, nil},
		{Qwen3Coder, "<function=f><parameter=x>\n[\"</parameter>\"]\n</parameter></function>", "", []Call{call("f", `{"x": ["</parameter>"]}`)}},
		{Qwen3Coder, "<function=weather><parameter=city>[\"</parameter></function>", "", []Call{call("weather", `{"city": "[\""}`)}},
		{GLM, "<tool_call>f<arg_key>x</arg_key><arg_value>" + within("</arg_value>") + "</arg_value></tool_call>", "", []Call{call("f", `{"x": `+within("</arg_value>")+`}`)}},
		{MiniMax, miniMaxOpen + `<invoke name="f"><parameter name="x">` + within("</parameter>") + `</parameter></invoke>` + miniMaxClose, "", []Call{call("f", `{"x": `+within("</parameter>")+`}`)}},
		{MiniMax, miniMaxOpen + `<invoke name="f"><parameter name="x">{no</parameter></invoke>` + miniMaxClose, "", []Call{call("f", `{"x": "{no"}`)}},
	})
	if _, err := SyntaxNamed("kimi"); err == nil {
		t.Error("an unknown syntax has no error")
	}
}

// Schemas say the types of values between tags by references, values and other schemas, too.
func TestTypesOfSchemas(t *testing.T) {
	const tools = `[{"function":{"name":"f","parameters":{"allOf":[{"$ref":"#/$defs/p"},{"properties":{"all":{"type":"integer"}}}],"$defs":{"n":{"type":"integer"},"loop":{"$ref":"#/$defs/loop"},
		"p":{"properties":{"ref":{"$ref":"#/$defs/n"},"enum":{"enum":[1,2]},"const":{"const":true},"both":{"allOf":[{"type":["integer","string"]},{"type":["integer","null"]}]},
		"some":{"oneOf":[{"$ref":"#/$defs/n"},{"type":"null"}]},"loop":{"$ref":"#/$defs/loop"},"all":{},"list":{"items":{}}},"patternProperties":{"^p":{"type":"integer"}},"additionalProperties":{"type":"boolean"}}}}}}]`
	for name, want := range map[string]string{"ref": "1", "enum": "1", "const": `"1"`, "both": "1", "some": "1", "loop": `"1"`, "all": "1", "list": `"1"`, "p1": "1", "other": `"1"`} {
		for _, answer := range [][2]string{{Qwen3Coder, "<function=f><parameter=" + name + ">1</parameter></function>"},
			{GLM, "<tool_call>f<arg_key>" + name + "</arg_key><arg_value>1</arg_value></tool_call>"},
			{MiniMax, miniMaxOpen + `<invoke name="f"><parameter name="` + name + `">1</parameter></invoke>` + miniMaxClose}} {
			s, err := SyntaxNamed(answer[0])
			if err != nil {
				t.Fatal(err)
			}
			_, calls := read(s, ReaderOptions{Tools: json.RawMessage(tools)}, answer[1], 0)
			if got, want := string(calls[0].Arguments), `{"`+name+`": `+want+`}`; got != want {
				t.Errorf("%s: %s, want %s", s.Name, got, want)
			}
		}
	}
	const conditional = `{"if":{"properties":{"k":{"const":1}}},"then":{"properties":{"n":{"type":"integer"}}},"else":{"properties":{"n":{"type":"boolean"}}}}`
	if got := form.Types(json.RawMessage(conditional))("n"); !slices.Equal(got, []string{"boolean", "integer"}) {
		t.Errorf("types %q", got)
	}
	doubling := `"d0":{"type":"integer"}`
	for i := range 40 {
		doubling += fmt.Sprintf(`,"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%[2]d"}]}`, i+1, i)
	}
	if got := form.Types(json.RawMessage(`{"properties":{"x":{"$ref":"#/$defs/d40"}},"$defs":{` + doubling + `}}`))("x"); !slices.Equal(got, []string{"integer"}) {
		t.Errorf("types %q", got)
	}
}

// answerCase is an answer in a syntax, its text and its calls.
type answerCase struct {
	syntax, answer, said string
	calls                []Call
}

// checkAnswers reads answers, with the tools of weather, in whatever pieces they come.
func checkAnswers(t *testing.T, list []answerCase) {
	t.Helper()
	for _, tt := range list {
		s, err := SyntaxNamed(tt.syntax)
		if err != nil || s.Name != tt.syntax {
			t.Fatalf("%s: %q, %v", tt.syntax, s.Name, err)
		}
		for _, n := range []int{0, 1, 2, 3, 7, 20} {
			said, calls := read(s, ReaderOptions{Tools: json.RawMessage(weather)}, tt.answer, n)
			if d := cmp.Diff(tt.calls, calls); said != tt.said || d != "" {
				t.Errorf("%s, pieces of %d, %q: said %q, want %q; calls (-want +got):\n%s", tt.syntax, n, tt.answer, said, tt.said, d)
			}
		}
	}
}

// Text is said as soon as it can begin no call, and calls when they are complete.
func TestReaderWaits(t *testing.T) {
	s, err := SyntaxNamed(Hermes)
	if err != nil {
		t.Fatal(err)
	}
	r := s.Reader(ReaderOptions{})
	for _, tt := range []struct {
		piece, said string
		calls       int
	}{
		{"Let", "Let", 0}, {" me <", " me", 0}, {"b> ", " <b>", 0}, {"<tool", "", 0}, {"_call>{", "", 0}, {`"name":"f"}</tool_call`, "", 0},
		{">", "", 1}, {" ok", "  ok", 0}, {"\n", "", 0},
	} {
		if said, calls := r.Read(tt.piece, false); said != tt.said || len(calls) != tt.calls {
			t.Errorf("after %q: %q and %d calls, want %q and %d", tt.piece, said, len(calls), tt.said, tt.calls)
		}
	}
}

// Long calls take no time with the square of their lengths, and come as soon as they are complete.
func TestReaderReadsLongCalls(t *testing.T) {
	text := strings.Repeat("x", 1<<18)
	for name, answer := range map[string]string{
		Hermes:     `<tool_call>{"name": "f", "arguments": {"x": "` + text + `"}}</tool_call>`,
		Llama3:     `{"name": "f", "parameters": {"x": "` + text + `"}}`,
		Mistral:    `[TOOL_CALLS]f[ARGS]{"x": "` + text + `"}`,
		Qwen3Coder: "<function=f><parameter=x>" + text + "</parameter></function>",
		GLM:        "<tool_call>f<arg_key>x</arg_key><arg_value>" + text + "</arg_value></tool_call>",
		Harmony:    `to=functions.f<|channel|>commentary json<|message|>{"x": "` + text + `"}<|call|>`,
		DeepSeek:   callsBegin + oneBegin + "f" + oneSep + `{"x": "` + text + `"}` + oneEnd + callsEnd,
		MiniMax:    miniMaxOpen + `<invoke name="f"><parameter name="x">` + text + "</parameter></invoke>" + miniMaxClose,
		LFM2:       lfmOpen + `[f(x='` + text + `')]` + lfmClose,
		Granite:    graniteOpen + `[{"name": "f", "arguments": {"x": "` + text + `"}}]`,
		Olmo3:      olmoOpen + `f(x="` + text + `")` + olmoClose,
	} {
		s, err := SyntaxNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		r := s.Reader(ReaderOptions{})
		var calls []Call
		for i := range len(answer) {
			said, list := r.Read(answer[i:i+1], false)
			if calls = append(calls, list...); said != "" {
				t.Fatalf("%s: after %d bytes it says %q", name, i+1, said)
			}
		}
		if want := `{"x": "` + text + `"}`; len(calls) != 1 || string(calls[0].Arguments) != want {
			t.Errorf("%s: %d calls before the end, want 1 with all arguments", name, len(calls))
		}
	}
}

func TestReaderOptions(t *testing.T) {
	const c = `<tool_call>{"name":"f"}</tool_call>`
	for _, tt := range []struct {
		name, syntax string
		o            ReaderOptions
		answer, said string
		calls        int
	}{
		{"the first call alone", Hermes, ReaderOptions{One: true}, "a " + c + " b " + c + " c", "a", 1},
		{"the first of a list", Mistral, ReaderOptions{One: true}, `[TOOL_CALLS][{"name":"f"},{"name":"g"}] x`, "", 1},
		{"no call", Hermes, ReaderOptions{One: true}, "a b ", "a b ", 0},
		{"thoughts from the beginning", Hermes, ReaderOptions{Thinking: true}, c + "</think>" + c, c + "</think>", 1},
		{"thoughts that do not end", Hermes, ReaderOptions{Thinking: true}, c, c, 0},
	} {
		s, err := SyntaxNamed(tt.syntax)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 1, 4} {
			said, calls := read(s, tt.o, tt.answer, n)
			if said != tt.said || len(calls) != tt.calls || tt.calls > 0 && calls[0].Name != "f" {
				t.Errorf("%s, pieces of %d: %q and %v, want %q and %d calls", tt.name, n, said, calls, tt.said, tt.calls)
			}
		}
	}
}

// The calls of a whole turn; within says that its prompt has begun its thoughts.
func TestWholeTurns(t *testing.T) {
	hermes, err := SyntaxNamed(Hermes)
	if err != nil {
		t.Fatal(err)
	}
	const c = `<tool_call>{"name":"f","arguments":{"x":1}}</tool_call>`
	for _, tt := range []struct {
		turn, text string
		calls      int
		within     bool
	}{
		{"No. \n", "No. \n", 0, false},
		{"See.\n" + c + "\n", "See.", 1, false},
		{c + " and " + c + ".", " and .", 2, false},
		{"<think>" + c + "</think>No.", "<think>" + c + "</think>No.", 0, false},
		{"hm " + c + "</think>\n" + c, "hm " + c + "</think>", 1, true},
		{c + "<think>not " + c, "<think>not " + c, 1, false},
		{`<tool_call>f(1)</tool_call> ` + c, `<tool_call>f(1)</tool_call>`, 1, false},
		{c[:len(c)-1], c[:len(c)-1], 0, false},
		{`<tool_call>{"name":"f","arguments":"{\"x\":1}"}</tool_call>`, "", 1, false},
	} {
		text, calls := hermes.Reader(ReaderOptions{Thinking: tt.within}).Read(tt.turn, true)
		if text != tt.text || len(calls) != tt.calls {
			t.Errorf("%q: %q and %d calls, want %q and %d", tt.turn, text, len(calls), tt.text, tt.calls)
		}
		for _, x := range calls {
			if x.Name != "f" || string(x.Arguments) != `{"x":1}` {
				t.Errorf("%q: %s %s", tt.turn, x.Name, x.Arguments)
			}
		}
	}
}

// Templates say which syntax their models write. Where a published template is not among the data, the test has the
// lines of it that tell.
func TestSyntaxOf(t *testing.T) {
	file := func(name string) string {
		b, err := os.ReadFile("../../../shared/data/chat_templates/" + name + ".jinja")
		if err != nil {
			t.Skip(err)
		}
		return string(b)
	}
	for _, tt := range []struct{ name, template, want string }{
		{"qwen2.5", file("qwen2.5"), Hermes},
		{"qwen3", file("qwen3"), Hermes},
		{"mistral-nemo", file("mistral-nemo"), Mistral},
		{"granite-3.0", file("granite-3.0"), ""}, // <|tool_call|> in messages of a role of its own
		{"phi-4", file("phi-4"), ""},
		{"openhermes-2.5", file("openhermes-2.5"), ""}, // no tools
		{"llama 3.1", `{{- '{"name": "' + tool_call.name + '", ' }}{{- '"parameters": ' }}{{- tool_call.arguments | tojson }}` +
			`{{- "<|start_header_id|>ipython<|end_header_id|>\n\n" }}`, Llama3},
		{"qwen3-coder", `{{- '\n<tool_call>\n<function=' + tool_call.name + '>\n' }}{{- '<parameter=' + args_name + '>\n' }}`, Qwen3Coder},
		{"glm-4.5", `{{ '\n<tool_call>' + tc.name }}<arg_key>{{ k }}</arg_key>` + "\n<arg_value>{{ v }}</arg_value>", GLM},
		{"gpt-oss", `{{- "<|start|>assistant to=" }}{{- "functions." + tool_call.name + "<|channel|>commentary " }}{{- "json<|message|>" }}`, Harmony},
		{"deepseek-v3.1", "{{'<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>'+ tool['function']['name'] + '<｜tool▁sep｜>' + tool['function']['arguments'] + '<｜tool▁call▁end｜>'}}", DeepSeek},
		{"minimax-m2", "{%- set toolcall_begin_token = '<minimax:tool_call>' -%}{{- '<invoke name=\"' + tool_call.name + '\">\\n' }}", MiniMax},
		{"lfm2", "List of tools: <|tool_list_start|>[", LFM2},
		{"lfm2.5", `{{- "<|tool_call_start|>[" + (tool_calls_ns.tool_calls | join(", ")) + "]<|tool_call_end|>" -}}`, LFM2},
		{"olmo-3", "{{- '<function_calls>' -}}{{- tool_call['function']['name'] + '(' + arguments + ')' -}}{{- '</function_calls>' -}}", Olmo3},
		{"granite-3.3", `"respond with <|tool_call|> followed by a JSON list of tools used."`, Granite},
		{"none", "", ""},
	} {
		s, ok := SyntaxOf(tt.template)
		if s.Name != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: %q, %v, want %q", tt.name, s.Name, ok, tt.want)
		}
	}
}

// Pieces change nothing, whatever the answer.
func FuzzReader(f *testing.F) {
	for _, s := range []string{`a <tool_call>{"name":"f"}</tool_call> b`, `{"name":"f","parameters":{}};`, `[TOOL_CALLS]f[ARGS]{}`,
		"<function=f><parameter=x>1</parameter></function>\n</tool_call>", "<think>x</think>",
		"<tool_call>f\n<arg_key>x</arg_key> <arg_value>1</arg_value></tool_call>",
		"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b", " to=functions.f<|channel|>commentary json<|message|>{}<|call|>",
		callsBegin + oneBegin + "f" + oneSep + "{}" + oneEnd + callsEnd, oneBegin + "function" + oneSep + "f```json{}```" + oneEnd,
		"<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"x\">1</parameter>\n</invoke>\n</minimax:tool_call>",
		`<|tool_call_start|>[f(x=1, y='\'', z={"k": (1, None)}), g()]<|tool_call_end|>`, "<function_calls>f(x=\"\"\"a\"\"\")\ng()</function_calls>",
		`<|tool_call|>[{"name": "f"}]`} {
		f.Add(s, uint8(3), false)
	}
	f.Fuzz(func(t *testing.T, answer string, n uint8, one bool) {
		for _, name := range Syntaxes() {
			if len(answer) > 1<<12 {
				return
			}
			s, err := SyntaxNamed(name)
			if err != nil {
				t.Fatal(err)
			}
			said, calls := read(s, ReaderOptions{One: one}, answer, 0)
			got, list := read(s, ReaderOptions{One: one}, answer, int(n)%9+1)
			if d := cmp.Diff(calls, list); got != said || d != "" {
				t.Errorf("%s: %q, whole %q; calls (-whole +pieces):\n%s", name, got, said, d)
			}
			marked := s.Channels && (strings.Contains(answer, "<|") || strings.Contains(answer, recipient))
			if len(calls) == 0 && said != answer && !marked {
				t.Errorf("%s: %q without calls says %q", name, answer, said)
			}
		}
	})
}
