package toolcall

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/chat"
)

// family is a chat template that writes calls: a published one, or, where the data has none, a short one that writes
// an assistant's message as the published one does.
type family struct {
	name, source, end string
	texts             bool // arguments of calls are texts of JSON
	silent            bool // a message that calls has no text
	syntax            string
}

func families(t *testing.T) []family {
	file := func(name string) string {
		b, err := os.ReadFile("../../../shared/data/chat_templates/" + name + ".jinja")
		if err != nil {
			t.Skip(err)
		}
		return string(b)
	}
	// wrap returns a template that writes an assistant's messages.
	wrap := func(head, body, end string) string {
		return "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% else %}" + head + body + end +
			"{% endif %}{% endfor %}{% if add_generation_prompt %}" + head + "{% endif %}"
	}
	const glmCalls = "\n{% for tc in m.tool_calls %}{%- set tc = tc.function %}\n{{- '<tool_call>' + tc.name -}}\n{% for k, v in tc.arguments.items() %}"
	return []family{
		{name: "qwen2.5", source: file("qwen2.5"), end: "<|im_end|>", syntax: Hermes},
		{name: "qwen3", source: file("qwen3"), end: "<|im_end|>", syntax: Hermes},
		{name: "mistral-nemo", source: file("mistral-nemo"), end: "</s>", silent: true, syntax: Mistral},
		{name: "gpt-oss", source: wrap("<|start|>assistant", "<|channel|>analysis<|message|>{{ m.content }}<|end|>{% for tc in m.tool_calls %}<|start|>assistant to={{ 'functions.' + tc.function.name }}<|channel|>commentary json<|message|>"+
			"{{ tc.function.arguments | tojson }}<|call|>{% endfor %}", ""), end: "<|none|>", silent: true, syntax: Harmony},
		{name: "deepseek-v3", source: wrap("<｜Assistant｜>", "{{ m.content }}<｜tool▁calls▁begin｜>{% for tc in m.tool_calls %}{% if not loop.first %}\n\n{% endif %}<｜tool▁call▁begin｜>function<｜tool▁sep｜>{{ tc.function.name }}\n"+
			"```json\n{{ tc.function.arguments }}\n```<｜tool▁call▁end｜>{% endfor %}<｜tool▁calls▁end｜>", "<｜end▁of▁sentence｜>"), end: "<｜end▁of▁sentence｜>", texts: true, syntax: DeepSeek},
		{name: "deepseek-v3.1", source: wrap("<｜Assistant｜></think>", "{{ m.content }}<｜tool▁calls▁begin｜>{% for tc in m.tool_calls %}<｜tool▁call▁begin｜>{{ tc.function.name }}<｜tool▁sep｜>"+
			"{{ tc.function.arguments }}<｜tool▁call▁end｜>{% endfor %}<｜tool▁calls▁end｜>", "<｜end▁of▁sentence｜>"), end: "<｜end▁of▁sentence｜>", texts: true, syntax: DeepSeek},
		{name: "minimax-m2", source: wrap("]~b]ai\n", "{{ m.content }}{{ '\n<minimax:tool_call>\n' }}{%- for tc in m.tool_calls %}{{- '<invoke name=\"' + tc.function.name + '\">\n' }}{%- for k, v in tc.function.arguments | items %}"+
			"{{- '<parameter name=\"' + k + '\">' }}{{- v | tojson | string if v is not string else v }}{{- '</parameter>\n' }}{% endfor %}{{- '</invoke>\n' }}{%- endfor %}{{- '</minimax:tool_call>' }}", "[e~["), end: "[e~[", syntax: MiniMax},
		{name: "olmo-3", source: wrap("<|im_start|>assistant\n", "{{ m.content }}<function_calls>{%- for tc in m.tool_calls %}{%- set ns = namespace(list=[]) -%}{%- for k, v in tc.function.arguments.items() -%}{%- set ns.list = ns.list + [k ~ '=' ~ (v | tojson)] -%}"+
			"{%- endfor -%}{{- tc.function.name + '(' + (ns.list | join(', ')) + ')' -}}{%- if not loop.last -%}{{ '\n' }}{%- endif -%}{%- endfor %}{{- '</function_calls>' -}}", "<|im_end|>"), end: "<|im_end|>", syntax: Olmo3},
		{name: "lfm2", source: wrap("<|im_start|>assistant\n", "{{ m.content }}<|tool_call_start|>[{%- for tc in m.tool_calls %}{%- set ns = namespace(list=[]) -%}{%- for k, v in tc.function.arguments.items() -%}{%- set ns.list = ns.list + [k ~ '=' ~ (v | pprint)] -%}"+
			"{%- endfor -%}{{- tc.function.name + '(' + (ns.list | join(', ')) + ')' -}}{%- if not loop.last -%}, {% endif -%}{%- endfor %}]<|tool_call_end|>", "<|im_end|>"), end: "<|im_end|>", syntax: LFM2},
		{name: "granite", source: wrap("<|start_of_role|>assistant<|end_of_role|>", "{{ m.content }}<|tool_call|>[{%- for tc in m.tool_calls %}{{ tc.function | tojson }}{%- if not loop.last -%}, {% endif -%}{%- endfor %}]"+
			"{# a JSON list #}", "<|end_of_text|>"), end: "<|end_of_text|>", syntax: Granite},
		{name: "glm-4.5", source: wrap("<|assistant|>", "\n<think></think>\n{{ m.content.strip() }}{% for tc in m.tool_calls %}{%- set tc = tc.function %}\n"+
			"{{ '\\n<tool_call>' + tc.name }}\n{% for k, v in tc.arguments.items() %}\n<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v | tojson(ensure_ascii=False) if v is not string else v }}</arg_value>\n{% endfor %}\n</tool_call>{% endfor %}", "<|user|>"), end: "<|user|>", syntax: GLM},
		{name: "glm-4.7", source: wrap("<|assistant|>", "</think>{{ m.content.strip() }}"+glmCalls+
			"<arg_key>{{ k }}</arg_key><arg_value>{{ v | tojson(ensure_ascii=False) if v is not string else v }}</arg_value>{% endfor %}</tool_call>{% endfor %}", "<|user|>"), end: "<|user|>", syntax: GLM},
	}
}

// Calls that a chat template writes are read as they were.
func TestRoundTrips(t *testing.T) {
	const calls = `[{"type":"function","id":"abcdefghi","function":{"name":"weather","arguments":{"city":"Aÿ \"x\"\n<b> 'c' \\d","days":3,"wind":true,"at":null,"box":[1,"a",{"k":[null,false]}],"opt":{"z":1,"a":"é"},"rate":-2.5}}},` +
		`{"type":"function","id":"abcdefghj","function":{"name":"weather","arguments":{"city":"12"}}},{"type":"function","id":"abcdefghk","function":{"name":"now","arguments":{}}}]`
	for _, f := range families(t) {
		t.Run(f.name, func(t *testing.T) {
			s, ok := SyntaxOf(f.source)
			if !ok || s.Name != f.syntax {
				t.Fatalf("syntax %q, want %q", s.Name, f.syntax)
			}
			template, err := chat.Parse(f.source)
			if err != nil {
				t.Fatal(err)
			}
			want := callsOf(t, calls)
			text := "I look."
			if f.silent {
				text = ""
			}
			ask := chat.NewMessage("user", "?")
			message := chat.NewMessage("assistant", text).With("tool_calls", decoded(t, calls, f.texts))
			render := func(open bool, list ...chat.Message) string {
				out, err := template.Render(context.Background(), chat.Input{Messages: list, AddGenerationPrompt: open,
					Special: map[string]string{"eos_token": f.end, "bos_token": ""}})
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			turn, ok := strings.CutPrefix(render(false, ask, message), render(true, ask))
			if !ok {
				t.Fatalf("%q does not continue %q", render(false, ask, message), render(true, ask))
			}
			turn, _, _ = strings.Cut(turn, f.end)
			if _, calls, ok := strings.Cut(turn, text); ok && f.syntax != Granite && f.syntax != Mistral { // decoded sorts name behind arguments
				checkForced(t, s, calls)
			}
			for _, n := range []int{0, 1, 5} {
				said, got := read(s, ReaderOptions{Tools: json.RawMessage(weather)}, turn, n)
				if d := cmp.Diff(want, canonical(t, got)); d != "" {
					t.Errorf("%q: calls (-want +got):\n%s", turn, d)
				}
				if strings.TrimSpace(AfterThoughts(said)) != text {
					t.Errorf("%q: said %q, want %q", turn, said, text)
				}
			}
		})
	}
}

// checkForced checks that an answer may be forced into the calls that a template writes. A template of gpt-oss writes
// more of them than an answer makes.
func checkForced(t *testing.T, s Syntax, turn string) {
	t.Helper()
	const tools = `[{"function":{"name":"weather","parameters":{"type":"object","properties":{"at":{"type":["string","null"]},"box":{"type":"array"},
		"city":{"type":"string"},"days":{"type":"integer"},"opt":{"anyOf":[{"type":"object"},{"type":"null"}]},"rate":{"type":"number"},"wind":{"type":"boolean"}}}}},
		{"function":{"name":"now"}}]`
	if s.Channels {
		_, turn, _ = strings.Cut(turn, messageStart+"assistant")
		turn, _, _ = strings.Cut(turn, callEnd)
	}
	turn = strings.Trim(turn, "\n")
	if f := forced(t, s, tools, piecesOf(), nil); !accepts(f, turn) {
		t.Errorf("calls cannot be forced as templates write them: %q", turn)
	}
}

// decoded returns calls as a template takes them; texts: with texts of JSON for arguments.
func decoded(t *testing.T, calls string, texts bool) chat.Value {
	t.Helper()
	var list []map[string]any
	if err := json.Unmarshal([]byte(calls), &list); err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if f := c["function"].(map[string]any); texts {
			b, _ := json.Marshal(f["arguments"])
			f["arguments"] = string(b)
		}
	}
	b, _ := json.Marshal(list)
	v, err := chat.DecodeJSON(b)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// callsOf returns the calls of a message, their arguments in canonical form.
func callsOf(t *testing.T, raw string) []Call {
	t.Helper()
	var list []struct{ Function Call }
	if err := json.Unmarshal([]byte(raw), &list); err != nil {
		t.Fatal(err)
	}
	var out []Call
	for _, c := range list {
		out = append(out, c.Function)
	}
	return canonical(t, out)
}

func canonical(t *testing.T, calls []Call) []Call {
	t.Helper()
	var out []Call
	for _, c := range calls {
		var v any
		if err := json.Unmarshal(c.Arguments, &v); err != nil {
			t.Fatalf("%s: %v", c.Arguments, err)
		}
		b, _ := json.Marshal(v)
		out = append(out, Call{c.Name, b})
	}
	return out
}
