package toolcall

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/rollout"
)

// What a policy writes, and the calls in it.
func TestCalls(t *testing.T) {
	named := func(name string) Format {
		f, err := Named(name, [2]string{"<code>", "</code>"}, [2]string{"\n<out>", "</out>\n"})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	const end = 2
	call := func(name, args, input string) found { return found{name: name, arguments: []byte(args), input: input} }
	for _, tt := range []struct {
		format, text string
		start        int
		end          int32
		want         []found
	}{
		{Hermes, `Let me see. <tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>`, 0, end,
			[]found{call("f", `{"x": 1}`, `{"name": "f", "arguments": {"x": 1}}`)}},
		{Hermes, `<tool_call>{"name":"f","arguments":{}}</tool_call> <tool_call>{"name":"g","arguments":"{\"y\":2}"}</tool_call>`, 0, end,
			[]found{call("f", `{}`, `{"name":"f","arguments":{}}`), call("g", `{"y":2}`, `{"name":"g","arguments":"{\"y\":2}"}`)}},
		{Hermes, `<tool_call>{"name":"f"}</tool_call>`, 0, end, []found{call("f", `{}`, `{"name":"f"}`)}},
		{Hermes, `<tool_call>{"name":"f"}</tool_call>`, 0, -1, nil},
		{Hermes, `<tool_call>{"name":"f","arguments":{"x":"</tool_call>"}}</tool_call>`, 0, end, []found{call("f", `{"x":"</tool_call>"}`, `{"name":"f","arguments":{"x":"</tool_call>"}}`)}},
		{Hermes, `<tool_call>{"name":"f"}`, 0, end, nil},
		{Hermes, `<tool_call>{"name":"f</tool_call>`, 0, end, []found{{input: `{"name":"f`, wrong: `Error: a tool call is a JSON object such as {"name": "…", "arguments": {…}}.`}}},
		{Hermes, `the answer is 3`, 0, end, nil},
		{Hermes, `<tool_call>{"name":"f"}</tool_call> then the answer`, 39, end, nil}, // a call of an earlier turn
		{Hermes, `<think>or <tool_call>{"name":"f"}</tool_call>?</think>No.`, 0, end, nil},
		{Hermes, `<think>or <tool_call>{"name":"f"}</tool_call>?`, 0, end, nil},
		{Hermes, `thoughts begin in the prompt</think><tool_call>{"name":"f"}</tool_call>`, 0, end, []found{call("f", `{}`, `{"name":"f"}`)}},
		{Hermes, `<tool_call>{"arguments": {}}</tool_call>`, 0, end, []found{{input: `{"arguments": {}}`,
			wrong: `Error: a tool call is a JSON object such as {"name": "…", "arguments": {…}}.`}}},
		{Hermes, `<tool_call>{"name":"f","arguments":"{"}</tool_call>`, 0, end, []found{{name: "f", arguments: []byte("{"),
			input: `{"name":"f","arguments":"{"}`, wrong: "Error: the arguments of the tool call are not JSON."}}},
		{Fence, "So:\n```python\nprint(1)\n```", 0, -1, []found{{input: "print(1)"}}},
		{Fence, "So:\n```py\nprint(1)\n```\n\n", 0, -1, []found{{input: "print(1)"}}},
		{Fence, "```python\na\n```\n```output\n3\n```\nand\n  ```python\nb\nc\n  ```", 32, -1, []found{{input: "b\nc"}}},
		{Fence, "So:\n```python\nprint('```", 0, -1, nil},
		{Fence, "So:\n```", 0, -1, nil},
		{Fence, "So:\n```python\nprint(1)\n```\n```", 0, -1, nil},
		{Fence, "So:\n```cpp\nmain\n```", 0, -1, nil},
		{Fence, "So:\n```python\nprint(1)\n```", 0, end, nil},
		{Tags, "x <code>print(1)</code>", 0, -1, []found{{input: "print(1)"}}},
		{Tags, "x <code>print(1)</code> ", 0, -1, []found{{input: "print(1)"}}},
		{Tags, "<code>a</code><out>1</out> <code>\nb\n</code>", 26, -1, []found{{input: "\nb\n"}}},
		{Tags, "x print(1)</code>", 0, -1, nil},
		{Tags, "<code>a", 0, end, nil},
		{User, "is it 7?", 0, end, []found{{input: "is it 7?"}}},
		{User, "is it 7?", 0, -1, nil},
	} {
		got := named(tt.format).calls(rollout.Turn{Text: tt.text, Start: tt.start, End: tt.end})
		if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(found{})); d != "" {
			t.Errorf("%s, %q (-want +got):\n%s", tt.format, tt.text, d)
		}
	}
	same := Format{Open: "|", Close: "|"}
	for text, want := range map[string]int{"a |": 0, "a |b|": 1, "a |b| c |": 0, "a |b| c |d|": 1} {
		if got := same.calls(rollout.Turn{Text: text, End: -1}); len(got) != want {
			t.Errorf("%q between the same marks: %v", text, got)
		}
	}
	line := Format{Close: "="}
	for text, want := range map[string]string{"1+2=": "1+2", "so\n 1+2=": " 1+2", "=": "", "so\n=": ""} {
		got := line.calls(rollout.Turn{Text: text, End: -1})
		if (len(got) == 1) != (want != "") || want != "" && got[0].input != want {
			t.Errorf("%q: %v, want %q", text, got, want)
		}
	}
	if _, err := Named("xml", [2]string{}, [2]string{}); err == nil {
		t.Error("an unknown format has no error")
	}
}

// Long answers are cut as verl cuts them (ToolAgentLoop._call_tool).
func TestCut(t *testing.T) {
	for _, tt := range []struct {
		text string
		n    int
		side Side
		want string
	}{
		{"0123456789", 4, Left, "0123...(truncated)"},
		{"0123456789", 4, Right, "(truncated)...6789"},
		{"0123456789", 5, Middle, "01...(truncated)...89"},
		{"0123456789", 10, Middle, "0123456789"},
		{"äöüß", 4, Left, "äöüß"},
		{"äöüß!", 2, Right, "(truncated)...ß!"},
		{"0123456789", 0, Middle, "0123456789"},
	} {
		if got := cut(tt.text, tt.n, tt.side); got != tt.want {
			t.Errorf("%q to %d, %s: %q, want %q", tt.text, tt.n, tt.side, got, tt.want)
		}
	}
}
