package chat

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSelectTemplate(t *testing.T) {
	one := `{"chat_template": "CONFIG"}`
	several := `{"chat_template": [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}, {"name": "rag", "template": "R"}]}`
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string // asked for
		tools bool
		got   string // source @ place, or a part of the error
	}{
		{"none", map[string]string{"config.json": "{}"}, "", false, "the model has no chat template"},
		{"null", map[string]string{"tokenizer_config.json": `{"chat_template": null}`}, "", false, "the model has no chat template"},
		{"config", map[string]string{"tokenizer_config.json": one}, "", true, "CONFIG @ tokenizer_config.json"},
		{"file before config", map[string]string{"tokenizer_config.json": one, "chat_template.jinja": "FILE"}, "", false, "FILE @ chat_template.jinja"},
		{"list", map[string]string{"tokenizer_config.json": several}, "", false, "D @ tokenizer_config.json (default)"},
		{"tools", map[string]string{"tokenizer_config.json": several}, "", true, "T @ tokenizer_config.json (tool_use)"},
		{"name", map[string]string{"tokenizer_config.json": several}, "rag", true, "R @ tokenizer_config.json (rag)"},
		{"file before tools of the config", map[string]string{"tokenizer_config.json": several, "chat_template.jinja": "FILE"}, "", true, "FILE @ chat_template.jinja"},
		{"additional", map[string]string{"chat_template.jinja": "FILE", "additional_chat_templates/tool_use.jinja": "A"}, "", true, "A @ additional_chat_templates/tool_use.jinja"},
		{"additional unused", map[string]string{"chat_template.jinja": "FILE", "additional_chat_templates/tool_use.jinja": "A"}, "", false, "FILE @ chat_template.jinja"},
		{"additional and config", map[string]string{"tokenizer_config.json": one, "additional_chat_templates/rag.jinja": "A"}, "", false, "CONFIG @ tokenizer_config.json"},
		{"of a processor", map[string]string{"tokenizer_config.json": "{}", "chat_template.json": one}, "", false, "CONFIG @ chat_template.json"},
		{"config before the processor's", map[string]string{"tokenizer_config.json": one, "chat_template.json": `{"chat_template": "P"}`}, "", false, "CONFIG @ tokenizer_config.json"},
		{"other folders", map[string]string{"x/chat_template.jinja": "FILE", "additional_chat_templates/x/y.jinja": "A"}, "", false, "the model has no chat template"},
		{"unknown name", map[string]string{"tokenizer_config.json": several}, "nope", false, `no chat template "nope", but default, rag, tool_use`},
		{"bad JSON", map[string]string{"tokenizer_config.json": "{"}, "", false, "tokenizer_config.json: chat: JSON at byte"},
		{"bad type", map[string]string{"tokenizer_config.json": `{"chat_template": 1}`}, "", false, "chat_template must be text or a list, not int"},
		{"bad element", map[string]string{"tokenizer_config.json": `{"chat_template": [{"name": 1}]}`}, "", false, "element 0 needs name and template as text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string][]byte{}
			for path, text := range tt.files {
				files[path] = []byte(text)
			}
			source, from, err := SelectTemplate(files, tt.want, tt.tools)
			got := source + " @ " + from
			if err != nil {
				got = err.Error()
			}
			if got != tt.got && (err == nil || !strings.Contains(got, tt.got)) {
				t.Errorf("got %s, want %s", got, tt.got)
			}
		})
	}
	if _, _, err := SelectTemplate(nil, "", false); !errors.Is(err, ErrNoTemplate) {
		t.Errorf("got %v, want ErrNoTemplate", err)
	}
}

// chatml is the common shape.
const chatml = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"

func mustParse(t testing.TB, source string) *Template {
	t.Helper()
	tmpl, err := Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func TestEndOfTurn(t *testing.T) {
	for _, tt := range []struct{ source, want, err string }{
		{chatml, "<|im_end|>\n<|im_start|>user\n", ""},
		{"{% for m in messages %}{% if m.role == 'user' %}[INST]{{ m.content }}[/INST]{% else %}{{ m.content + eos_token }}{% endif %}{% endfor %}", "</s>[INST]", ""},
		{"x", "", "does not show the content of an assistant"},
		{"{{ messages[1].content }}", "", "does not show a question after an answer"},
		{"{{ raise_exception('no') }}", "", "no"},
	} {
		got, err := EndOfTurn(context.Background(), mustParse(t, tt.source), Input{Special: map[string]string{"eos_token": "</s>"}})
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: got %q, %v, want %q, %s", tt.source, got, err, tt.want, tt.err)
		}
	}
}

// Idefics3's template writes parts of contents alone: a text has to be one.
func TestReadsParts(t *testing.T) {
	const parts = "{% for m in messages %}{{ m.role | capitalize }}{% if m.content[0]['type'] == 'image' %}:{% else %}: {% endif %}" +
		"{% for c in m.content %}{% if c['type'] == 'text' %}{{ c.text }}{% elif c['type'] == 'image' %}<image>{% endif %}{% endfor %}<end>\n{% endfor %}"
	ctx := context.Background()
	for source, want := range map[string]bool{chatml: false, parts: true, "x": false, "{{ raise_exception('no') }}": false,
		"{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{{ m.content[0].text }}{% endif %}{% endfor %}": false} {
		if got := ReadsParts(ctx, mustParse(t, source), Input{}); got != want {
			t.Errorf("%s: %v", source, got)
		}
	}
	var shows Message
	if err := json.Unmarshal([]byte(`{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Why?"}]}`), &shows); err != nil {
		t.Fatal(err)
	}
	in := Input{TextParts: true, Messages: []Message{NewMessage("system", ""), shows, NewMessage("assistant", "So.")}}
	got, err := mustParse(t, parts).Render(ctx, in)
	if want := "System: <end>\nUser:<image>Why?<end>\nAssistant: So.<end>\n"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if end, err := EndOfTurn(ctx, mustParse(t, parts), in); err != nil || end != "<end>\nUser: " {
		t.Errorf("a turn ends with %q, %v", end, err)
	}
}

func TestMessage(t *testing.T) {
	text := `{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"f","arguments":{"z":1.50,"a":1e3,"n":123456789012345678901234567890}}}],"content":null,"reasoning_content":"é<"}`
	var m Message
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	got, err := m.MarshalJSON()
	if err != nil || string(got) != text {
		t.Errorf("got %s, %v, want %s", got, err, text)
	}
	if s, ok := m.Text(); m.Role() != "assistant" || ok {
		t.Errorf("got role %q, text %q %v, want assistant and no text", m.Role(), s, ok)
	}
	changed := m.With("content", Str("x"))
	if s, _ := changed.Text(); s != "x" {
		t.Errorf("With: got %q, want x", s)
	}
	if _, ok := m.Text(); ok {
		t.Error("With changed its message")
	}
	for _, bad := range []string{`[]`, `{}`, `{"role": 1}`, `{"role": "a"`, `{"role": "a"} x`, "{\"role\": \"\xff\"}"} {
		if err := m.UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
	if (Message{}).Role() != "" {
		t.Error("the zero message has a role")
	}
}

// A dict finds its keys with and without an index, which large dicts have, and treats
// equal keys of different types as one.
func TestDict(t *testing.T) {
	d := &Dict{}
	var want []string
	for i := range 3 * smallDict {
		name := strings.Repeat("k", i+1)
		d.Set(name, Int(i))
		d.Set(name, Int(2*i))
		want = append(want, name)
	}
	var got []string
	for i := range d.Len() {
		name, _ := d.Key(i)
		got = append(got, name)
		if v, ok := d.Get(name); !ok || v != Int(2*i) || d.At(i) != Int(2*i) {
			t.Errorf("%s: got %v, %v, want %d", name, v, ok, 2*i)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	for _, k := range []Value{Int(1), Bool(true), newFloat(1)} {
		if err := d.set(k, Str("one")); err != nil {
			t.Fatal(err)
		}
	}
	if d.Len() != len(want)+1 {
		t.Errorf("got %d entries, want %d", d.Len(), len(want)+1)
	}
}

func TestDigest(t *testing.T) {
	// sha256 of "abc", FIPS 180-2 appendix B.1
	if got, want := mustParse(t, "abc").Digest(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A chat has the variables that transformers sets.
func TestInput(t *testing.T) {
	vars := &Dict{}
	vars.Set("enable_thinking", Bool(false))
	in := Input{Messages: []Message{NewMessage("user", "x")}, Special: map[string]string{"bos_token": "<s>"}, Vars: vars, AddGenerationPrompt: true}
	got, err := mustParse(t, "{{ bos_token }}{{ eos_token is defined }}{{ tools is none }}{{ documents is none }}{{ enable_thinking }}{{ add_generation_prompt }}{{ messages }}{{ strftime_now('%d %b %Y') }}").Render(context.Background(), in)
	if want := "<s>FalseTrueTrueFalseTrue[{'role': 'user', 'content': 'x'}]26 Jul 2024"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
