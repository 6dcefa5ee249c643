package openai

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/rollout"
	"exp/train/toolcall"
)

func TestReadBody(t *testing.T) {
	large := strings.Repeat("x", MostBody)
	for _, tt := range []struct {
		kind, body string
		status     int
		want       string
	}{
		{"application/json", "{}", 0, "{}"},
		{"application/json; charset=utf-8", "{}", 0, "{}"},
		{"application/json", large, 0, large},
		{"application/json", large + "y", http.StatusRequestEntityTooLarge, "over 16 MiB"},
		{"text/plain", "{}", http.StatusBadRequest, "Content-Type must be application/json"},
		{"", "{}", http.StatusBadRequest, "Content-Type must be application/json"},
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(tt.body))
		r.Header.Set("Content-Type", tt.kind)
		got, err := ReadBody(httptest.NewRecorder(), r, MostBody)
		var e *Error
		switch {
		case tt.status == 0 && (err != nil || string(got) != tt.want):
			t.Errorf("%q: %d bytes, %v", tt.kind, len(got), err)
		case tt.status != 0 && (!errors.As(err, &e) || e.Status != tt.status || !strings.Contains(e.Message, tt.want)):
			t.Errorf("%q, %d bytes: %v, want %d %s", tt.kind, len(tt.body), err, tt.status, tt.want)
		}
	}
	r := httptest.NewRequest("POST", "/", broken{})
	r.Header.Set("Content-Type", "application/json")
	if _, err := ReadBody(httptest.NewRecorder(), r, MostBody); err == nil || !strings.Contains(err.Error(), "cannot be read: cut") {
		t.Errorf("a body that breaks off: %v", err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("cut") }

func TestWriteJSON(t *testing.T) {
	for _, tt := range []struct {
		status int
		v      any
		code   int
		want   string
	}{
		{200, map[string]any{"a": 1}, 200, `{"a":1}`},
		{404, map[string]any{"error": Coded(404, "invalid_request_error", "gone", "no %s", "x")}, 404,
			`{"error":{"message":"no x","type":"invalid_request_error","param":null,"code":"gone"}}`},
		{400, map[string]any{"error": Bad("n", "n is %d", 0)}, 400, `{"error":{"message":"n is 0","type":"invalid_request_error","param":"n","code":null}}`},
		{200, map[string]any{"logprob": math.NaN()}, 500, `{"error":{"message":"the answer has a number that is not finite: the model's weights are broken",` +
			`"type":"server_error","param":null,"code":"internal_error"}}`},
	} {
		w := httptest.NewRecorder()
		err := WriteJSON(w, tt.status, tt.v)
		if got := w.Body.String(); err != nil || w.Code != tt.code || got != tt.want+"\n" || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%v: %d %s, %v; want %d %s", tt.v, w.Code, got, err, tt.code, tt.want)
		}
	}
	if err := WriteJSON(gone{httptest.NewRecorder()}, 200, 1); err == nil {
		t.Error("no error of a client that has gone")
	}
}

type gone struct{ *httptest.ResponseRecorder }

func (gone) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestNewID(t *testing.T) {
	for _, chat := range []bool{true, false} {
		prefix := map[bool]string{true: "chatcmpl-", false: "cmpl-"}[chat]
		a, b := NewID(chat), NewID(chat)
		if a == b || !strings.HasPrefix(a, prefix) || len(a) < len(prefix)+20 {
			t.Errorf("%s and %s", a, b)
		}
	}
}

func TestAssistant(t *testing.T) {
	call := func(id, args string) string {
		return `{"function":{"arguments":` + args + `,"name":"f"},"id":"` + id + `","type":"function"}`
	}
	one, two := toolcall.Call{Name: "f", Arguments: json.RawMessage(`{"x": 1.50}`)}, toolcall.Call{Name: "f", Arguments: json.RawMessage("{}")}
	for _, tt := range []struct {
		text  string
		calls []toolcall.Call
		want  string
	}{
		{"hi", nil, `{"content":"hi","refusal":null,"role":"assistant"}`},
		{"", nil, `{"content":"","refusal":null,"role":"assistant"}`},
		{"", []toolcall.Call{one}, `{"content":null,"refusal":null,"role":"assistant","tool_calls":[` + call("call00007", `"{\"x\": 1.50}"`) + `]}`},
		{"hi", []toolcall.Call{one, two}, `{"content":"hi","refusal":null,"role":"assistant","tool_calls":[` + call("call00007", `"{\"x\": 1.50}"`) +
			`,` + call("call00008", `"{}"`) + `]}`},
	} {
		got, err := json.Marshal(Assistant(tt.text, tt.calls, func(k int) string { return CallID(7 + k) }))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s, %v; want %s", got, err, tt.want)
		}
	}
	for _, n := range []int{0, 99999, 100000, 1234567} {
		if id := CallID(n); !regexp.MustCompile("^[a-zA-Z0-9]{9}$").MatchString(id) {
			t.Errorf("id %s of call %d", id, n)
		}
	}
}

func TestForTemplate(t *testing.T) {
	for _, tt := range []struct{ message, want string }{
		{`{"role":"user","content":"a","name":null,"x":1}`, `{"role":"user","content":"a","x":1}`},
		{`{"role":"assistant","content":"a","tool_calls":[],"refusal":null}`, `{"role":"assistant","content":"a"}`},
		{`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":[1, null]}"}}]}`,
			`{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":{"x":[1,null]}}}]}`},
		{`{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]}`,
			`{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]}`},
		{`{"role":"assistant","content":"a","tool_calls":[{"function":{"name":"f","arguments":""}}]}`,
			`{"role":"assistant","content":"a","tool_calls":[{"function":{"name":"f","arguments":{}}}]}`},
		{`{"role":"tool","tool_call_id":"1","content":"b"}`, `{"role":"tool","content":"b","tool_call_id":"1"}`},
		{`{"role":"assistant","content":null}`, `{"role":"assistant","content":null}`},
		{`{"role":"assistant"}`, `{"role":"assistant"}`},
		{`{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"[1]"}}]}`, `[1]: tool_calls: the arguments "[1]" spell no JSON object`},
		{`{"role":"assistant","tool_calls":[{"function":{"arguments":"{}"}}]}`, "[1]: tool call 1 has no name"},
		{`{"role":"assistant","tool_calls":{}}`, "[1]: tool_calls is not a list of calls in JSON"},
	} {
		var list []rollout.Message
		body := `[{"role":"user","content":"?"},` + tt.message + `]`
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			t.Fatal(err)
		}
		before, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		out, err := ForTemplate(list, false)
		got := ""
		if err != nil {
			got = err.Error()
		} else if b, err := json.Marshal(out[1]); err == nil {
			got = string(b)
		}
		if got != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.message, got, tt.want)
		}
		if after, err := json.Marshal(list); err != nil || cmp.Diff(string(before), string(after)) != "" {
			t.Errorf("%s: it has become %s, %v", before, after, err)
		}
	}
}

// A template in channels takes thoughts in a field of their own.
func TestThoughtsApart(t *testing.T) {
	const call = `"tool_calls":[{"function":{"name":"f","arguments":{}}}]`
	for _, tt := range []struct{ message, want string }{
		{`{"role":"assistant","content":"<think>hm\n</think>\n\n4"}`, `{"role":"assistant","content":"4","thinking":"hm"}`},
		{`{"role":"assistant","content":"<think>hm</think>",` + call + `}`, `{"role":"assistant","content":"",` + call + `,"thinking":"hm"}`},
		{`{"role":"assistant","content":"<think>hm</think>I look.",` + call + `}`, `{"role":"assistant","content":"",` + call + `,"thinking":"hm\n\nI look."}`},
		{`{"role":"assistant","content":"I look.",` + call + `}`, `{"role":"assistant","content":"I look.",` + call + `}`},
		{`{"role":"assistant","content":"<think>hm"}`, `{"role":"assistant","content":"<think>hm"}`},
		{`{"role":"assistant","content":"<think>a</think>b","thinking":"c"}`, `{"role":"assistant","content":"<think>a</think>b","thinking":"c"}`},
		{`{"role":"user","content":"<think>a</think>b"}`, `{"role":"user","content":"<think>a</think>b"}`},
	} {
		var m rollout.Message
		if err := json.Unmarshal([]byte(tt.message), &m); err != nil {
			t.Fatal(err)
		}
		out, err := ForTemplate([]rollout.Message{m}, true)
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		b, _ := json.Marshal(out[0])
		if json.Unmarshal(b, &got) != nil || json.Unmarshal([]byte(tt.want), &want) != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%s: %s, want %s", tt.message, b, tt.want)
		}
	}
}
