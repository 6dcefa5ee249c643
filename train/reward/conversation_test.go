package reward

import (
	"encoding/json"
	"strings"
	"testing"

	"exp/train/rollout"
)

// A chat is read with all that was said; a problem without messages as before.
func TestConversation(t *testing.T) {
	call := json.RawMessage(`[{"name":"f"}]`)
	for _, tt := range []struct {
		name                      string
		problem                   rollout.Problem
		transcript, concatenation string
	}{
		{"prompt", rollout.Problem{Prompt: "1+1?"}, "1+1?", "1+1?"},
		{"turns", rollout.Problem{Prompt: "And 2+2?", Messages: []rollout.Message{{Role: "system", Content: "Be short."}, {Role: "user", Content: "1+1?"},
			{Role: "assistant", Content: "2"}, {Role: "user", Content: "And 2+2?"}}},
			"[system]\nBe short.\n\n[user]\n1+1?\n\n[assistant]\n2\n\n[user]\nAnd 2+2?", "Be short.\n\n1+1?\n\n2\n\nAnd 2+2?"},
		{"parts", rollout.Problem{Prompt: "q", Messages: []rollout.Message{{Role: "user", Parts: json.RawMessage(`[{"type":"text","text":"1+"},{"type":"text","text":"1?"},{"type":"image"}]`)},
			{Role: "assistant", Parts: json.RawMessage("null"), More: []rollout.Field{{Name: "tool_calls", Value: call}}}, {Role: "tool", Content: "2"}}},
			"[user]\n1+1?<image>\n\n[assistant]\ntool_calls: [{\"name\":\"f\"}]\n\n[tool]\n2", "1+1?<image>\n\n2"},
	} {
		if got := Transcript(&tt.problem); got != tt.transcript {
			t.Errorf("%s: transcript %q, want %q", tt.name, got, tt.transcript)
		}
		if got := Concatenation(&tt.problem); got != tt.concatenation {
			t.Errorf("%s: concatenation %q, want %q", tt.name, got, tt.concatenation)
		}
	}
}

// The judge is asked about the whole chat, and braces in a message are not placeholders.
func TestJudgeReadsTheChat(t *testing.T) {
	o, _ := judgeOf("http://x")
	j := NewJudge(o)
	item := rollout.Item{Problem: &rollout.Problem{Prompt: "last", Answer: "4", Messages: []rollout.Message{{Role: "system", Content: "{gold}"}, {Role: "user", Content: "2+2?"}}},
		Completion: &rollout.Completion{Text: "{prompt}"}}
	body, err := j.body(item)
	if err != nil {
		t.Fatal(err)
	}
	if want := `Q[system]\n{gold}\n\n[user]\n2+2? A{prompt} G4`; !strings.Contains(string(body), want) {
		t.Errorf("body %s lacks %s", body, want)
	}
}
