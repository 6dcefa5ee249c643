package layout

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval/rows"
)

func readConversations(t *testing.T, lines ...string) ([]Conversation, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "talks.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	return Conversations(rows.Read(path), pictured("images"))
}

// Messages come out as chat templates take them, whoever wrote the row.
func TestConversations(t *testing.T) {
	const user, ok = `{"role":"user","content":"?"}`, `{"role":"assistant","content":"ok"}`
	for _, tt := range []struct{ name, row, want string }{
		{"OpenAI", `{"messages": [` + user + `,` + ok + `]}`, user + ok},
		{"ShareGPT", `{"conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "?"},
			{"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"b\": 1, \"a\": 2}}"}, {"from": "observation", "value": "3"}, {"from": "gpt", "value": "ok"}]}`,
			`{"role":"system","content":"s"}` + user + `{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"f","arguments":{"b":1,"a":2}}}]}` +
				`{"role":"tool","content":"3"}` + ok},
		{"ShareGPT's column with roles", `{"conversations": [` + user + `,` + ok + `]}`, user + ok},
		{"a text", `{"messages": "[{\"role\": \"user\", \"content\": \"?\"}, {\"role\": \"assistant\", \"content\": \"ok\"}]"}`, user + ok},
		{"system column", `{"system": "s", "messages": [` + user + `,` + ok + `]}`, `{"role":"system","content":"s"}` + user + ok},
		{"system column next to a message", `{"system": "t", "messages": [{"role":"system","content":"s"},` + ok + `]}`, `{"role":"system","content":"s"}` + ok},
		{"nulls", `{"messages": [{"role": "user", "content": "?", "tool_calls": null, "name": null}, {"role": "assistant", "content": null, "reasoning_content": null,
			"tool_calls": [{"id": null, "function": {"name": "f", "arguments": {"a": null, "b": {"c": null, "d": [1.0, null]}}}}]}]}`,
			user + `{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"b":{"d":[1.0,null]}}}}]}`},
		{"arguments as text", `{"messages": [` + user + `,{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{\"z\": null, \"a\": \"<x>\"}"}},
			{"function": {"name": "g", "arguments": ""}}]}]}`,
			user + `{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"z":null,"a":"<x>"}}},{"function":{"name":"g","arguments":{}}}]}`},
		{"OpenAI's old calls", `{"messages": [` + user + `,{"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}}, {"role": "function", "name": "f", "content": "3"}]}`,
			user + `{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"f","arguments":{}}}]}{"role":"tool","content":"3","name":"f"}`},
		{"parts", `{"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},` + ok + `]}`, `{"role":"user","content":"ab"}` + ok},
		{"system column before an answer", `{"system": "s", "messages": [` + ok + `]}`, `{"role":"system","content":"s"}` + ok},
		{"arguments that are null, and arguments in arguments", `{"messages": [` + user + `,{"role": "assistant", "tool_calls": [{"name": "f", "arguments": null},
			{"function": {"name": "g", "arguments": {"arguments": "-v", "function": {"arguments": "-w"}}}}]}]}`,
			user + `{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"f","arguments":{}}},` +
				`{"function":{"name":"g","arguments":{"arguments":"-v","function":{"arguments":"-w"}}}}]}`},
		{"weights in ShareGPT's form", `{"conversations": [{"from": "human", "value": "?"}, {"from": "gpt", "value": "no", "weight": 0},
			{"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {}}", "weight": 0}, {"from": "gpt", "value": "ok", "weight": null}]}`,
			user + `{"role":"assistant","content":"no","weight":0}{"role":"assistant","content":"","weight":0,"tool_calls":[{"type":"function","function":{"name":"f","arguments":{}}}]}` + ok},
		{"weight", `{"messages": [` + user + `,{"role":"assistant","content":"no","weight":0},` + ok + `]}`, user + `{"role":"assistant","content":"no","weight":0}` + ok},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list, err := readConversations(t, strings.ReplaceAll(tt.row, "\n", " "))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, m := range list[0].Messages {
				b, err := json.Marshal(m)
				if err != nil {
					t.Fatal(err)
				}
				got += strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(b))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Equal rows and ids stay apart.
func TestConversationIDs(t *testing.T) {
	const rest = `"tools": [{"name": "f"}], "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "ok"}]}`
	list, err := readConversations(t, `{"id": "a", `+rest, `{"id": "a", `+rest, `{`+rest)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, c := range list {
		got += c.ID + " " + c.Prompt + string(c.Tools) + ","
	}
	if want := `a ?[{"name":"f"}],a#2 ?[{"name":"f"}],2 ?[{"name":"f"}],`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The column prompt is context as a whole, its assistant messages included; only completion is trained on.
func TestCompletions(t *testing.T) {
	const turn = `{"role":"user","content":"?"},{"role":"assistant","content":"old"},{"role":"user","content":"!"}`
	for _, tt := range []struct {
		row                  string
		messages, asked      int
		before               int
		prompt, target, last string
	}{
		{`{"prompt": [` + turn + `], "completion": [{"role":"assistant","content":"ok"}]}`, 4, 3, 0, "?", "", "ok"},
		{`{"system": "s", "prompt": [` + turn + `], "completion": [{"role":"assistant","content":"ok"}]}`, 5, 4, 1, "?", "", "ok"},
		{`{"prompt": "[]", "completion": " 42 "}`, 0, 0, 0, "[]", " 42 ", ""},
		{`{"prompt": "", "completion": "x"}`, 0, 0, 0, "", "x", ""},
		{`{"prompt": "p", "completion": "c", "messages": [` + turn + `]}`, 3, 0, 0, "?", "", "!"},
	} {
		list, err := readConversations(t, tt.row)
		if err != nil {
			t.Errorf("%s: %v", tt.row, err)
			continue
		}
		c, last := list[0], ""
		if n := len(c.Messages); n > 0 {
			last = c.Messages[n-1].Content
		}
		if len(c.Messages) != tt.messages || c.Asked != tt.asked || c.Before != tt.before ||
			c.Prompt != tt.prompt || c.Target != tt.target || last != tt.last {
			t.Errorf("%s: %+v", tt.row, c)
		}
	}
}

// Errors name file, line and message.
func TestConversationErrors(t *testing.T) {
	const user = `{"role":"user","content":"?"}`
	for _, tt := range []struct{ row, want string }{
		{`{"messages": [` + user + `,{"role":"narrator","content":"x"}]}`, `message 2: unknown role "narrator"; known are system, developer`},
		{`{"messages": [` + user + `]}`, "no message of the assistant to learn from, among 1"},
		{`{"messages": []}`, "no message of the assistant to learn from, among 0"},
		{`{"messages": [` + user + `,{"role":"assistant","content":"x","weight":0}]}`, "no message of the assistant to learn from"},
		{`{"messages": [{"role":"assistant","content":"x"}]}`, "message 1 is the assistant's: a message must come before it"},
		{`{"messages": [` + user + `,{"role":"assistant","content":""}]}`, "message 2: the assistant says and calls nothing"},
		{`{"messages": [` + user + `,{"role":"assistant","text":"ok","name":"x"}]}`, "message 2: the assistant says and calls nothing"},
		{`{"messages": [{"role":"user","value":"?"},{"role":"assistant","content":"x"}]}`, "message 1: it has no content"},
		{`{"messages": [` + user + `,{"role":"assistant","tool_calls":"f(1)"}]}`, "message 2: tool_calls is not a list of calls in JSON"},
		{`{"conversations": [{"from":"human","value":"?"},{"from":"gpt","value":"x","weight":"1"}]}`, `message 2: its weight is "1"; 1 learns it, 0 does not`},
		{`{"messages": [` + user + `,{"role":"assistant","content":"x","weight":0.5}]}`, "message 2: its weight is 0.5"},
		{`{"messages": [` + user + `,{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"6*7"}}]}]}`, `the arguments "6*7" spell no JSON object`},
		{`{"messages": [` + user + `,{"role":"assistant","tool_calls":[{"function":{}}]}]}`, "tool call 1 has no name"},
		{`{"messages": [{"role":"user","content":[{"type":"video"}]}]}`,
			`message 1: its content has a part of type "video"; only text and images are supported`},
		{`{"conversations": [{"from":"human"}]}`, "message 1: it has no value"},
		{`{"messages": ["x"]}`, "message 1: it is not an object with role and content"},
		{`{"messages": 3}`, "not a list of messages"},
		{`{"prompt": "x"}`, "no conversation: looked for the columns messages, conversations, conversation, " +
			"lists of messages, and for prompt with completion"},
		{`{"prompt": [` + user + `], "completion": "x"}`, "one of prompt and completion is a list of messages, the other a text"},
		{`{"prompt": "x", "completion": {"content": "x"}}`, `field "completion": neither a list of messages nor a text`},
		{`{"prompt": "x", "completion": ""}`, `field "completion": empty text: nothing to learn`},
		{`{"prompt": "x", "completion": "y", "system": "s"}`, `field "system": it has no place before a prompt that is a text`},
		{`{"prompt": [], "completion": [` + user + `]}`, `field "prompt": no messages`},
		{`{"prompt": [` + user + `,{"role":"assistant","content":"x"}], "completion": [` + user + `]}`, "its last message is the assistant's"},
		{`{"prompt": [` + user + `], "completion": [` + user + `]}`, `field "completion": no message of the assistant to learn from, among 1`},
		{`{"prompt": [` + user + `], "completion": [{"role":"narrator"}]}`, `field "completion": message 1: unknown role "narrator"`},
	} {
		_, err := readConversations(t, `{"messages": [`+user+`,{"role":"assistant","content":"x"}]}`, tt.row)
		if err == nil || !strings.Contains(err.Error(), "talks.jsonl:2") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.row, err, tt.want)
		}
	}
}

// Parquet files give every message the fields of all, and every call the arguments of all tools.
func TestConversationsInParquet(t *testing.T) {
	type arguments struct {
		Query *string `parquet:"query,optional"`
		Code  *string `parquet:"code,optional"`
	}
	type function struct {
		Name      string    `parquet:"name"`
		Arguments arguments `parquet:"arguments"`
	}
	type call struct {
		Function function `parquet:"function"`
	}
	type message struct {
		Role    string  `parquet:"role"`
		Content *string `parquet:"content,optional"`
		Calls   []call  `parquet:"tool_calls,list"`
	}
	type row struct {
		Messages []message `parquet:"messages,list"`
	}
	text := func(s string) *string { return &s }
	path := filepath.Join(t.TempDir(), "talks.parquet")
	f, err := os.Create(path)
	if err == nil {
		err = rows.WriteParquet(f, []row{{Messages: []message{{Role: "user", Content: text("?")},
			{Role: "assistant", Calls: []call{{function{"py", arguments{Code: text("6*7")}}}}}, {Role: "tool", Content: text("42")},
			{Role: "assistant", Content: text("42.")}}}})
	}
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	list, err := Conversations(rows.Read(path), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(list[0].Messages)
	want := `[{"role":"user","content":"?"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"py","arguments":{"code":"6*7"}}}]},` +
		`{"role":"tool","content":"42"},{"role":"assistant","content":"42."}]`
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Each way to show images gives the same conversation: two images in the first question, the first again in the
// second one.
func TestConversationImages(t *testing.T) {
	url := func(width int) string {
		return `"data:image/png;base64,` + base64.StdEncoding.EncodeToString(pngOf(t, width, 10)) + `"`
	}
	a, b := url(3), url(4)
	column := `"images": [` + a + `,` + b + `,` + a + `]`
	const ok = `{"role": "assistant", "content": "ok"}`
	part := func(name, value string) string { return `{"type": "` + name + `", "` + name + `": ` + value + `}` }
	for _, tt := range []struct{ name, row string }{
		{"LLaMA-Factory", `"conversations": [{"from": "human", "value": "<image>is <image>?"}, {"from": "gpt", "value": "ok"},
			{"from": "human", "value": "And <image>"}, {"from": "gpt", "value": "ok"}], ` + column},
		{"TRL", `"messages": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "is "}, ` +
			`{"type": "image", "text": null}, {"type": "text", "text": "?", "image": null}]},
			` + ok + `, {"role": "user", "content": [{"type": "text", "text": "And "}, {"type": "image"}]}, ` + ok + `], ` + column},
		{"TRL's prompt and completion", `"prompt": [{"role": "user", "content": "<image>is <image>?"}, ` + ok +
			`, {"role": "user", "content": "And <image>"}], "completion": [` + ok + `], ` + column},
		{"their own", `"messages": [{"role": "user", "content": [` + part("image", a) +
			`, {"type": "text", "text": "is "}, ` + part("image_url", `{"url": `+b+`}`) +
			`, {"type": "text", "text": "?"}]}, ` + ok + `, {"role": "user", "content": [{"type": "text", "text": "And "}, ` +
			part("image_url", a) + `]}, ` + ok + `]`},
		{"a text", `"messages": ` + strconv.Quote(`[{"role": "user", "content": "<image>is <image>?"}, `+ok+
			`, {"role": "user", "content": "And <image>"}, `+ok+`]`) + `, ` + column},
	} {
		list, err := readConversations(t, strings.ReplaceAll("{"+tt.row+"}", "\n", " "))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		c := list[0]
		got := fmt.Sprintf("%s %s %s %d %t", c.Messages[0].Parts, c.Messages[2].Parts, c.Prompt, len(c.Images),
			digestsOf(c.Images[:1]) == digestsOf(c.Images[2:]))
		want := `[{"type":"image"},{"type":"text","text":"is "},{"type":"image"},{"type":"text","text":"?"}] ` +
			`[{"type":"text","text":"And "},{"type":"image"}] <image>is <image>? 3 true`
		if got != want || c.Images[1].Width != 4 || c.Messages[1].Content != "ok" {
			t.Errorf("%s:\n%s, want\n%s", tt.name, got, want)
		}
	}
	const user = `{"role": "user", "content": "<image>"}`
	for _, tt := range []struct{ row, want string }{
		{`"messages": [` + user + `, ` + ok + `], ` + column, `field "images": the row has 3 images, but its conversation has 1 <image>`},
		{`"messages": [{"role": "user", "content": [{"type": "image_url"}]}, ` + ok + `]`, `the row has 0 images, but its conversation has 1 <image>`},
		{`"messages": [{"role": "user", "content": "?"}, ` + ok + `], "images": ` + a, `the row has 1 image, and its conversation shows none`},
		{`"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": [{"type": "image"}]}], "images": ` + a,
			`message 2: an image in a message of role assistant`},
		{`"messages": [` + user + `, ` + ok + `], "images": ["no.png"]`, `message 1: images, image 1: open `},
		{`"messages": [` + user + `, ` + ok + `], "videos": ["a.mp4"]`, `field "videos": the problem has videos`},
		{`"prompt": "<image>", "completion": "ok", "images": ` + a, `field "images": texts show no images; make prompt and completion lists of messages`},
	} {
		_, err := readConversations(t, `{"messages": [{"role": "user", "content": "<image>"}, `+ok+`]}`, "{"+tt.row+"}")
		if err == nil || !strings.Contains(err.Error(), "talks.jsonl:2") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.row, err, tt.want)
		}
	}
}
