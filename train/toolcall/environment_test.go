package toolcall

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"exp/train/rollout"
)

type toolFunc func(c rollout.ToolCall) (rollout.ToolAnswer, error)

func (f toolFunc) Answer(_ context.Context, c rollout.ToolCall) (rollout.ToolAnswer, error) {
	return f(c)
}

// bytesOf is a tokenizer of bytes.
func bytesOf(text string) ([]int32, error) {
	var ids []int32
	for _, b := range []byte(text) {
		ids = append(ids, int32(b))
	}
	return ids, nil
}

// open returns an environment whose tool says its input and turn; "boom" breaks it, "bye" ends the completion.
func open(t *testing.T, name string) *Environment {
	t.Helper()
	f, err := Named(name, [2]string{"<", ">"}, [2]string{"\n[", "]"})
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{Format: f, MaxTurns: 3, MaxCalls: 2, MaxOutput: 40, Side: Left,
		Tool: toolFunc(func(c rollout.ToolCall) (rollout.ToolAnswer, error) {
			switch {
			case strings.Contains(c.Input, "boom"):
				return rollout.ToolAnswer{}, errors.New("broken")
			case strings.Contains(c.Input, "bye"):
				return rollout.ToolAnswer{Text: "dropped", End: true}, nil
			}
			return rollout.ToolAnswer{Text: fmt.Sprintf("%d:%s%s", c.Turn, c.Name, c.Input)}, nil
		}),
		Chat: func(end int32, list []rollout.Message) ([]int32, error) {
			text := fmt.Sprint(end)
			for _, m := range list {
				text += "|" + m.Role + ":" + m.Content
			}
			return bytesOf(text)
		},
		Text: func(before, answer, after string) ([]int32, error) { return bytesOf(before + answer + after) },
	})
}

func TestEnvironment(t *testing.T) {
	const silent, over = "(no reply)", "(over)"
	for _, tt := range []struct {
		format string
		turn   rollout.Turn
		want   string
	}{
		{Tags, rollout.Turn{Number: 1, Text: "a <b>", End: -1}, "\n[1:b]"},
		{Tags, rollout.Turn{Number: 2, Text: "a <b>\n", End: -1}, "[2:b]"},
		{Tags, rollout.Turn{Number: 3, Text: "a <b>", End: -1}, over},
		{Tags, rollout.Turn{Number: 3, Text: "a b>", End: -1}, silent},
		{Tags, rollout.Turn{Number: 1, Text: "a", End: 5}, silent},
		{Tags, rollout.Turn{Number: 1, Text: "<bye>", End: -1}, over},
		{Tags, rollout.Turn{Number: 1, Text: "<" + strings.Repeat("x", 60) + ">", End: -1}, "\n[1:" + strings.Repeat("x", 38) + "...(truncated)]"},
		{Tags, rollout.Turn{Number: 1, Text: "<boom>", End: -1}, "problem p: broken"},
		{Hermes, rollout.Turn{Number: 1, Text: `<tool_call>{"name":"f"}</tool_call>`, End: 9}, `9|tool:1:f{"name":"f"}`},
		{Hermes, rollout.Turn{Number: 1, Text: strings.Repeat(`<tool_call>{"name":"f"}</tool_call>`, 3), End: 9},
			`9|tool:1:f{"name":"f"}|tool:1:f{"name":"f"}`},
		{Hermes, rollout.Turn{Number: 1, Text: `<tool_call>f(3)</tool_call>`, End: 9},
			`9|tool:Error: a tool call is a JSON object such as {"name": "…", "arguments": {…}}.`},
		{User, rollout.Turn{Number: 2, Text: "7?", End: 9}, "9|user:2:7?"},
		{User, rollout.Turn{Number: 3, Text: "7?", End: 9}, silent},
	} {
		tt.turn.Problem = &rollout.Problem{ID: "p"}
		a := open(t, tt.format).Read(tt.turn)
		got := silent
		switch {
		case a.Over:
			got = over
		case a.Reply != nil:
			r, err := a.Reply(context.Background())
			var b []byte
			for _, id := range r.Tokens {
				b = append(b, byte(id))
			}
			switch got = string(b); {
			case err != nil:
				got = err.Error()
			case r.Over:
				got = over
			}
		}
		if got != tt.want {
			t.Errorf("%s, turn %d, %q: %q, want %q", tt.format, tt.turn.Number, tt.turn.Text, got, tt.want)
		}
	}
}
