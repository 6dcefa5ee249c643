package prompt

import (
	"encoding/json"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/prompt/prompttest"
	"exp/train/rollout"
)

// A template that joins arguments to texts, as DeepSeek's do, gets texts; one that takes objects gets these.
func TestArgumentTexts(t *testing.T) {
	const calls = `[{"type":"function","function":{"name":"f","arguments":{"b":"é<|im_end|>","a":[1.50,{"x":null}]}}},{"function":{"name":"g","arguments":{}}}]`
	for _, tt := range []struct{ name, call, want string }{
		{"texts", "{{ '(' + c['function']['name'] + ' ' + c['function']['arguments'] + ')' }}", `(f {"b": "é<|im_end|>", "a": [1.5, {"x": null}]})(g {})`},
		{"objects", "({{ c.function.name }} {{ c.function.arguments.b }})", "(f é<|im_end|>)(g )"},
		{"neither", "{{ c.function.name + 1 }}", ""},
	} {
		template := "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}" + tt.call + "{% endfor %}{% endfor %}"
		p, err := prompterOf(t, prompttest.ModelFolder(t, false, map[string]string{"chat_template.jinja": template}), func(c *config.Run) { c.Data.EscapeSpecial = true })
		if err != nil {
			t.Fatal(err)
		}
		list := []rollout.Message{{Role: "user", Content: "?"}, {Role: "assistant", More: []rollout.Field{{Name: "tool_calls", Value: json.RawMessage(calls)}}}}
		ids, err := p.EncodeChat(list, nil, true)
		if tt.want == "" {
			if err == nil || !strings.Contains(err.Error(), "int") {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		end, _ := p.Tokenizer.TokenID("<|im_end|>")
		if got := prompttest.Written(ids); err != nil || got != "?"+tt.want || countOf(ids, end) != 0 {
			t.Errorf("%s: %q with %d end tokens, %v, want %q", tt.name, got, countOf(ids, end), err, tt.want)
		}
	}
}
