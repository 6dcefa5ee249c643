package stage

import (
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/prompt"
	"exp/harness/prompt/prompttest"
	"exp/train/rollout"
)

func prompterOf(t *testing.T, dir string, set func(c *config.Run)) (*prompt.Prompter, error) {
	t.Helper()
	c := prompttest.Run(dir)
	if set != nil {
		set(c)
	}
	return NewPrompter(c)
}

func mustPrompter(t *testing.T, dir string, set func(c *config.Run)) *prompt.Prompter {
	t.Helper()
	p, err := prompterOf(t, dir, set)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Graders see what the policy wrote.
func TestOfPolicy(t *testing.T) {
	c := &rollout.Completion{Text: "ask 42 so 43", Tokens: []int32{1, 2, 3}, Inserted: []rollout.Span{{Start: 1, End: 2, TextStart: 4, TextEnd: 7}}}
	for format, want := range map[string]string{"hermes": "so 43", "user": "so 43", "fence": "ask so 43", "tags": "ask so 43"} {
		if got := ofPolicy(config.Tools{Kind: "python", Format: format}, c); got.Text != want {
			t.Errorf("%s: %q, want %q", format, got.Text, want)
		}
	}
}

// The last turn is graded, also where it stands in another conversation and an agent inserted nothing.
func TestGradedText(t *testing.T) {
	c := &config.Run{}
	c.Rollout.Tools.Kind = "agent"
	x := &rollout.Completion{Text: "so 42or 43", Tokens: []int32{1, 2}, Asked: &rollout.Asked{Tokens: []int32{3}}}
	if got := GradedText(c, x); got != nil {
		t.Errorf("of one turn: %q, want nil", *got)
	}
	x.Asked.Later = []rollout.Later{{Start: 1, TextStart: 5, Tokens: []int32{4}}}
	for final, want := range []string{"so 42", "or 43"} {
		x.Asked.Final = final
		if got := GradedText(c, x); got == nil || *got != want {
			t.Errorf("conversation %d: %v, want %q", final, got, want)
		}
	}
}

// A mark that is a special token would never be found in a text.
func TestCheckCalls(t *testing.T) {
	p, err := prompterOf(t, prompttest.ModelFolder(t, false, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		call []string
		want string
	}{{[]string{"<code>", "</code>"}, ""}, {[]string{"<code>", "</s>"}, "rollout.tools.call: </s> is a special token"}} {
		got := ""
		checkCalls(p, config.Tools{Kind: "python", Format: "tags", Call: tt.call, Answer: []string{"", ""}},
			func(key, _, message, _ string) { got = key + ": " + message })
		if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%v: %q, want %q", tt.call, got, tt.want)
		}
	}
}
