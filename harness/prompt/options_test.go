package prompt

import (
	"slices"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/prompt/prompttest"
	"exp/train/rollout"
)

// The ids of an option are what follows the prompt's in the ids of both.
func TestContinue(t *testing.T) {
	im := map[string]string{"chat_template.jinja": prompttest.ChatML}
	chat := "<|im_start|>system\nYou help.<|im_end|>\n<|im_start|>user\nQ:<|im_end|>\n<|im_start|>assistant\n"
	for _, tt := range []struct {
		name    string
		bos     bool
		files   map[string]string
		set     func(c *config.Run)
		prompt  string
		options []string
		want    []string // prompt|option
	}{
		{"a space stands before an option", false, nil, nil, "Q:", []string{"x", "yz"}, []string{"Q:| x", "Q:| yz"}},
		{"spaces of the prompt move", false, nil, nil, "Q:\n ", []string{"x"}, []string{"Q:|\n x"}},
		{"BOS", true, nil, nil, "Q:", []string{"x"}, []string{"<s>Q:| x"}},
		{"an option begins the assistant's turn", false, im, nil, "Q:", []string{"x", "y"}, []string{chat + "|x", chat + "|y"}},
		{"behind what a template writes before answers", false, map[string]string{"chat_template.jinja": "{% for m in messages %}" +
			"{% if m.role == 'user' %}[{{ m.content[0]['text'] }}]{% else %} {{ m.content[0]['text'] }}{% endif %}{% endfor %}"}, nil,
			"Q:", []string{"x", "y"}, []string{"[Q:]| x", "[Q:]| y"}},
		{"special tokens are text", false, im, func(c *config.Run) { c.Data.EscapeSpecial = true }, "Q:", []string{"<|im_end|>"},
			[]string{chat + "|<|im_end|>"}},
		{"cut at the left", false, nil, func(c *config.Run) { c.Data.MaxPromptTokens, c.Data.Truncate = 1, "left" }, "Q:",
			[]string{"x"}, []string{":| x"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := prompterOf(t, prompttest.ModelFolder(t, tt.bos, tt.files), tt.set)
			if err != nil {
				t.Fatal(err)
			}
			list, err := p.Continue(&rollout.Problem{Prompt: tt.prompt}, tt.options)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, x := range list {
				got = append(got, p.written(x.Prompt)+"|"+p.written(x.Text))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if strings.Contains(tt.name, "text") && len(list[0].Text) != len("<|im_end|>") {
				t.Errorf("%d tokens", len(list[0].Text))
			}
		})
	}
	p, err := prompterOf(t, prompttest.ModelFolder(t, false, nil), func(c *config.Run) { c.Data.MaxPromptTokens = 1 })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Continue(&rollout.Problem{Prompt: "Q:"}, []string{"x"}); err == nil ||
		!strings.Contains(err.Error(), "2 tokens, data.max_prompt_tokens is 1") {
		t.Errorf("too long: %v", err)
	}
	if _, err := p.Continue(&rollout.Problem{Prompt: "Q"}, []string{"x", ""}); err == nil ||
		!strings.Contains(err.Error(), `"": it has no token of its own`) {
		t.Errorf("an empty option: %v", err)
	}
	for prompt, want := range map[string]string{"": "", "a": " ", "a ": "", "a\n": "", "à": " "} {
		if got := Between(prompt); got != want {
			t.Errorf("between %q and an answer: %q", prompt, got)
		}
	}
}
