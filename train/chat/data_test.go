package chat

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// sharedData is the folder of public data next to a checkout.
const sharedData = "../../../shared/data"

// eachLine decodes the lines of a file of JSON objects into values of type T.
func eachLine[T any](t testing.TB, path string, visit func(T)) {
	t.Helper()
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		t.Skipf("%s is not here", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var row T
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		visit(row)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// variables decodes JSON objects into one set of variables.
func variables(t testing.TB, data json.RawMessage) *Dict {
	t.Helper()
	if len(data) == 0 {
		return &Dict{}
	}
	v, err := DecodeJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	d, ok := v.(*Dict)
	if !ok {
		t.Fatalf("variables are %s, not an object", v.typeName())
	}
	return d
}

// featureCase is a template with what Jinja2 makes of it: expected text, or the
// class of the exception.
type featureCase struct {
	ID       string
	Template string
	Vars     json.RawMessage
	Expected string
	Error    string
}

func (c featureCase) check(t *testing.T, vars *Dict) {
	t.Helper()
	var got string
	tmpl, err := Parse(c.Template)
	if err == nil {
		got, err = tmpl.RenderVars(context.Background(), vars, time.Time{})
	}
	switch {
	case c.Error != "" && err == nil:
		t.Errorf("%s: %q renders %q, want an error (%s)", c.ID, c.Template, got, c.Error)
	case c.Error == "" && err != nil:
		t.Errorf("%s: %q: %v, want %q", c.ID, c.Template, err, c.Expected)
	case c.Error == "" && got != c.Expected:
		t.Errorf("%s: %q\n got %q\nwant %q", c.ID, c.Template, got, c.Expected)
	}
}

func TestFeatures(t *testing.T) {
	n := 0
	eachLine(t, filepath.Join(sharedData, "models/chat_features.jsonl"), func(c featureCase) {
		n++
		c.check(t, variables(t, c.Vars))
	})
	if n < 60 {
		t.Errorf("%d cases, want at least 60", n)
	}
}

// chatCase is a chat with the text that a published template makes of it.
type chatCase struct {
	ID                  string
	Template            string
	Messages            []Message
	Tools               json.RawMessage
	AddGenerationPrompt bool   `json:"add_generation_prompt"`
	BOS                 string `json:"bos_token"`
	EOS                 string `json:"eos_token"`
	Vars                json.RawMessage
	Expected            string
}

func (c chatCase) input(t testing.TB) Input {
	in := Input{
		Messages: c.Messages, AddGenerationPrompt: c.AddGenerationPrompt,
		Special: map[string]string{"bos_token": c.BOS, "eos_token": c.EOS}, Vars: variables(t, c.Vars),
	}
	if len(c.Tools) > 0 {
		v, err := DecodeJSON(c.Tools)
		if err != nil {
			t.Fatal(err)
		}
		in.Tools = v
	}
	return in
}

func readTemplate(t testing.TB, name string) *Template {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(sharedData, "chat_templates", name+".jinja"))
	if os.IsNotExist(err) {
		t.Skipf("the template %s is not here", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := Parse(string(source))
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func TestPublishedTemplates(t *testing.T) {
	n := 0
	eachLine(t, filepath.Join(sharedData, "chat_templates/cases.jsonl"), func(c chatCase) {
		n++
		got, err := readTemplate(t, c.Template).Render(context.Background(), c.input(t))
		if err != nil {
			t.Errorf("%s: %v", c.ID, err)
		} else if got != c.Expected {
			t.Errorf("%s:\n got %q\nwant %q", c.ID, got, c.Expected)
		}
	})
	if n < 60 {
		t.Errorf("%d cases, want at least 60", n)
	}
}

// A message keeps its fields, their order, and the text of its numbers.
func TestMessageRoundTrip(t *testing.T) {
	eachLine(t, filepath.Join(sharedData, "chat_templates/cases.jsonl"), func(c struct{ Messages []json.RawMessage }) {
		for _, raw := range c.Messages {
			want, err := DecodeJSON(raw)
			if err != nil {
				t.Fatal(err)
			}
			var m Message
			if err := json.Unmarshal(raw, &m); err != nil {
				t.Fatal(err)
			}
			got, err := m.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			text, err := EncodeJSON(want)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(text) {
				t.Errorf("got %s, want %s", got, text)
			}
		}
	})
}

func BenchmarkRender(b *testing.B) {
	for _, name := range []string{"qwen2.5", "qwen3", "mistral-nemo"} {
		b.Run("template="+name, func(b *testing.B) {
			t := readTemplate(b, name)
			in := Input{
				Messages:            []Message{NewMessage("system", "You are a helpful assistant."), NewMessage("user", "What is 2 + 2? Think step by step.")},
				AddGenerationPrompt: true,
				Special:             map[string]string{"bos_token": "<s>", "eos_token": "</s>"},
			}
			for b.Loop() {
				if _, err := t.Render(context.Background(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	source, err := os.ReadFile(filepath.Join(sharedData, "chat_templates/qwen2.5.jinja"))
	if err != nil {
		b.Skip(err)
	}
	for b.Loop() {
		if _, err := Parse(string(source)); err != nil {
			b.Fatal(err)
		}
	}
}
