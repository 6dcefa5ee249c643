package rollout

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Messages keep what they do not know, in its order and with the text of its numbers.
func TestMessageJSON(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     Message
		out      string // where it is not in
	}{
		{"plain", `{"role":"user","content":"1 < 2 & \"x\""}`, Message{Role: "user", Content: `1 < 2 & "x"`}, ""},
		{"order", `{"content":"c","name":"n","role":"tool","z":1,"a":2}`,
			Message{Role: "tool", Content: "c", More: []Field{{"name", json.RawMessage(`"n"`)}, {"z", json.RawMessage(`1`)}, {"a", json.RawMessage(`2`)}}},
			`{"role":"tool","content":"c","name":"n","z":1,"a":2}`},
		{"numbers", `{"role":"assistant","content":null,"tool_calls":[{"arguments":{"x": 1.0,"n":12345678901234567890}}]}`,
			Message{Role: "assistant", Parts: json.RawMessage("null"),
				More: []Field{{"tool_calls", json.RawMessage(`[{"arguments":{"x":1.0,"n":12345678901234567890}}]`)}}},
			`{"role":"assistant","content":null,"tool_calls":[{"arguments":{"x":1.0,"n":12345678901234567890}}]}`},
		{"parts", `{"role":"user","content":[{"type":"text","text":"a"}]}`,
			Message{Role: "user", Parts: json.RawMessage(`[{"type":"text","text":"a"}]`)}, ""},
		{"no content", `{"role":"assistant"}`, Message{Role: "assistant", Parts: json.RawMessage{}}, ""},
		{"a field twice: the last holds", `{"role":"user","content":"a","x":1,"y":2,"x":3}`,
			Message{Role: "user", Content: "a", More: []Field{{"y", json.RawMessage("2")}, {"x", json.RawMessage("3")}}},
			`{"role":"user","content":"a","y":2,"x":3}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got Message
			if err := json.Unmarshal([]byte(tt.in), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatalf("(-want +got)\n%s", diff)
			}
			out, err := got.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			want := tt.out
			if want == "" {
				want = tt.in
			}
			if string(out) != want {
				t.Errorf("written as %s, want %s", out, want)
			}
		})
	}
	for _, bad := range []string{`"user"`, `{}`, `{"role":1,"content":"a"}`, `{"role":"","content":"a"}`, `[]`} {
		if err := json.Unmarshal([]byte(bad), new(Message)); err == nil {
			t.Errorf("%s is read as a message", bad)
		}
	}
}

func TestPlain(t *testing.T) {
	user := Message{Role: "user", Content: "a"}
	for _, tt := range []struct {
		name     string
		messages []Message
		want     bool
	}{
		{"none", nil, true},
		{"one text", []Message{user}, true},
		{"two", []Message{user, user}, false},
		{"system", []Message{{Role: "system", Content: "a"}}, false},
		{"parts", []Message{{Role: "user", Parts: json.RawMessage("[]")}}, false},
		{"more", []Message{{Role: "user", Content: "a", More: []Field{{"name", json.RawMessage("1")}}}}, false},
	} {
		if got := Plain(tt.messages); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
