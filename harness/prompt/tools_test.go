package prompt

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/prompt/prompttest"
	"exp/train/rollout"
)

// toolList are definitions whose keys stand in no alphabetical order, with text that JSON
// may escape and a float that looks like an integer.
const toolList = `[{"type": "function", "function": {"name": "get_temperature", "description": "Temperature of a place in °C <now>.", "parameters": {"type": "object", "properties": {"place": {"type": "string", "description": "City & country"}, "days": {"type": "integer", "default": 1.0}}, "required": ["place"]}}}, {"type": "function", "function": {"name": "noop", "description": "", "parameters": {}}}]`

// Prompts with tools equal transformers' apply_chat_template(messages, tools=…,
// add_generation_prompt=True), 4.57.3, with bos_token <s> and eos_token </s>.
func TestPublishedTools(t *testing.T) {
	for _, tt := range []struct {
		template, sum string
		ignored       bool
	}{
		{"qwen2.5", "0f17bfd7a38c18398423626e7ae1b6a32cbebb4fa10eab0af960b9571cf56ec9", false},
		{"qwen3", "96653498de13ceaaf7e2904368725aa8ec9b7c875d927ddcfce6adea332045b9", false},
		{"mistral-nemo", "1adcdcad5565e9292b6a887e0082a981e357ce41a7ff3da13168c3ccaa3538a4", false},
		{"phi-4", "5bc999bc7aa25f4e090b469d080ef28cb21a4ca12eae9bcb3cc416b2db098460", true},
	} {
		file := prompttest.DataPath(t, "chat_templates/"+tt.template+".jinja")
		dir := prompttest.ModelFolder(t, false, nil)
		for name, p := range map[string]*Prompter{
			"text":    mustPrompter(t, dir, func(c *config.Run) { c.Data.Chat, c.Data.Tools = file, toolList }),
			"problem": mustPrompter(t, dir, func(c *config.Run) { c.Data.Chat = file }),
		} {
			q := &rollout.Problem{Prompt: "How warm is it in Oslo?"}
			if name == "problem" {
				q.Tools = json.RawMessage(toolList)
			}
			got, err := p.Text(q)
			if err != nil {
				t.Fatal(err)
			}
			if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(got))); sum != tt.sum {
				t.Errorf("%s, tools of the %s: %s\n%s", tt.template, name, sum, got)
			}
			n, ignored := p.ToolsPlan()
			if own, lost := p.WithoutTools([]rollout.Problem{*q, {Prompt: "?"}}); name == "problem" && (n != 0 || own != 1 || (lost == 1) != tt.ignored) {
				t.Errorf("%s: %d tools of the run, %d problems with their own, %d lost", tt.template, n, own, lost)
			}
			if name == "text" && (n != 2 || ignored != tt.ignored) {
				t.Errorf("%s: %d tools, ignored: %v", tt.template, n, ignored)
			}
		}
	}
}

func mustPrompter(t *testing.T, dir string, set func(c *config.Run)) *Prompter {
	t.Helper()
	p, err := prompterOf(t, dir, set)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const toolTemplate = "{% if tools %}T{{ tools | tojson }}{% endif %}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"

// Tools come from the configuration or a file, in their order of keys; a problem's own
// go before. They are part of the digest, and a malformed list is refused.
func TestTools(t *testing.T) {
	dir := prompttest.ModelFolder(t, false, map[string]string{"chat_template.jinja": toolTemplate})
	file := filepath.Join(t.TempDir(), "tools.json")
	if err := os.WriteFile(file, []byte(` [ {"b": 1,  "a": "x"} ]`), 0o644); err != nil {
		t.Fatal(err)
	}
	digests := map[string]string{}
	for name, tools := range map[string]string{"text": `[{"b": 1, "a": "x"}]`, "file": file, "other": `[{"a": "x", "b": 1}]`, "none": config.None} {
		p := mustPrompter(t, dir, func(c *config.Run) { c.Data.Tools = tools })
		want := map[string]string{"text": `T[{"b": 1, "a": "x"}]<user>hi`, "other": `T[{"a": "x", "b": 1}]<user>hi`, "none": "<user>hi"}
		want["file"] = want["text"]
		if got, err := p.Text(&rollout.Problem{Prompt: "hi"}); err != nil || got != want[name] {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if got, err := p.Text(&rollout.Problem{Prompt: "hi", Tools: json.RawMessage(`[{"c":2}]`)}); err != nil || got != `T[{"c": 2}]<user>hi` {
			t.Errorf("%s, a problem's own: %q, %v", name, got, err)
		}
		a, err := p.Encode(&rollout.Problem{Prompt: "hi"})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := p.Encode(&rollout.Problem{Prompt: "hi", Tools: json.RawMessage(`[{"c":2}]`)}); err != nil || len(a) == len(b) {
			t.Errorf("%s: a problem's own tools have %d tokens, others %d: %v", name, len(b), len(a), err)
		}
		d, err := p.ToolsDigest()
		if err != nil {
			t.Fatal(err)
		}
		digests[name] = d.String()
		if d.IsZero() != (name == "none") {
			t.Errorf("%s: digest %s", name, d)
		}
	}
	if digests["text"] != digests["file"] || digests["text"] == digests["other"] {
		t.Errorf("digests %v", digests)
	}
	for _, tt := range []struct{ tools, want string }{
		{`[]`, "empty list"}, {`[1]`, "tool 1 is 1"}, {`[{"a": }]`, "not a JSON list"}, {filepath.Join(t.TempDir(), "none.json"), "no such file"},
		{writeTools(t, `{"a": 1}`), "not a JSON list of tools"},
	} {
		if _, err := prompterOf(t, dir, func(c *config.Run) { c.Data.Tools = tt.tools }); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.tools, err)
		}
	}
	if _, err := prompterOf(t, prompttest.ModelFolder(t, false, nil), func(c *config.Run) { c.Data.Tools = toolList }); err == nil || !strings.Contains(err.Error(), "no chat template") {
		t.Errorf("tools without a template: %v", err)
	}
}

func writeTools(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tools.json")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// A model with a template for chats with tools renders such chats with it, and escaped text of
// tools does not become a token.
func TestToolTemplate(t *testing.T) {
	dir := prompttest.ModelFolder(t, false, map[string]string{"tokenizer_config.json": `{"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": [{"name": "default", "template": "plain {{ messages[0].content }}"}, ` +
		`{"name": "tool_use", "template": "tools {{ tools[0].name }} {{ messages[0].content }}"}]}`})
	p := mustPrompter(t, dir, func(c *config.Run) { c.Data.EscapeSpecial = true })
	q := &rollout.Problem{Prompt: "hi", Tools: json.RawMessage(`[{"name": "<pad>"}]`)}
	if got, err := p.Text(q); err != nil || got != "tools <pad> hi" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := p.Text(&rollout.Problem{Prompt: "hi"}); err != nil || got != "plain hi" {
		t.Errorf("%q, %v", got, err)
	}
	if got, want := p.ToolTemplate(), "tools {{ tools[0].name }} {{ messages[0].content }}"; got != want {
		t.Errorf("source %q, want %q", got, want)
	}
	only := mustPrompter(t, prompttest.ModelFolder(t, false, map[string]string{"chat_template.jinja": prompttest.ChatML}), nil)
	text := mustPrompter(t, prompttest.ModelFolder(t, false, nil), nil)
	if only.ToolTemplate() != prompttest.ChatML || text.ToolTemplate() != "" {
		t.Errorf("%q of a model with one template, %q of one without", only.ToolTemplate(), text.ToolTemplate())
	}
	if ids, err := p.Encode(q); err != nil || len(ids) != len("tools <pad> hi") {
		t.Errorf("%v, %v: an escaped token was read", ids, err)
	}
}
