package toolcall

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"exp/train/form"
)

// pieces is a vocabulary: token b is byte b, others have more bytes, or none.
type pieces []string

func (p pieces) Piece(id int32) []byte { return []byte(p[id]) }
func (p pieces) VocabSize() int        { return len(p) }

func piecesOf(more ...string) pieces {
	p := make(pieces, 256)
	for b := range p {
		p[b] = string([]byte{byte(b)})
	}
	return append(p, more...)
}

// forced returns the form of an answer that calls one of some tools, in which special tokens stand for the marks if
// they are in the vocabulary.
func forced(t *testing.T, s Syntax, tools string, vocab pieces, marks map[int32]string) *form.Form {
	t.Helper()
	f, err := form.New(form.Spec{Calls: &form.Calls{Frames: s.Frames(marks), Many: true, Tools: toolsOf(t, tools)},
		Channels: s.Parts(), Marks: marks}, form.NewVocabulary(vocab))
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	return f
}

func toolsOf(t *testing.T, tools string) (out []form.Tool) {
	t.Helper()
	var list []struct{ Function form.Tool }
	if err := json.Unmarshal([]byte(tools), &list); err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		out = append(out, x.Function)
	}
	return out
}

// accepts reports whether a text has a form.
func accepts(f *form.Form, text string) bool {
	s := f.Begin()
	for _, b := range []byte(text) {
		if s = s.Next(int32(b)); s == nil {
			return false
		}
	}
	return s.Ends()
}

// What readers take for something else, and what ends texts: drawn more often than other tokens.
var traps = []string{"</tool_call>", "</parameter>", "</arg_value>", "\n</parameter>\n", callEnd, MessageEnd, messageStart, oneEnd,
	"null", "True", "12", "-1.5e+3", "{", "[", "{}", "[1]", " ", "\n", `"`, `'`, `\`, "```", "<", "é", "</function>", olmoClose, "']", "a"}
var ends = []string{"\n</parameter>\n", "</arg_value>", "</arg_value>\n", "</parameter>\n", "</function>\n</tool_call>", "</tool_call>", "</invoke>\n", miniMaxClose,
	`"`, `'`, "}", "]", ")", "}\n</tool_call>", "]" + lfmClose, olmoClose, callsEnd, oneEnd, "\n```" + oneEnd, MessageEnd + messageStart + "assistant"}

// drawn draws an answer.
func drawn(t *testing.T, r *rand.Rand, f *form.Form, vocab pieces, marks map[int32]string) (string, bool) {
	t.Helper()
	var text strings.Builder
	s := f.Begin()
	for n := 0; n < 400; n++ {
		if s.Ends() && (!s.More() || n > 40 || r.IntN(3) == 0) {
			return text.String(), true
		}
		mask := s.Mask()
		allowed := func(id int) bool { return mask[id/32]>>(id%32)&1 == 1 }
		var list, closing []int
		for id := range vocab {
			if !allowed(id) {
				continue
			}
			list = append(list, id)
			if slices.Contains(ends, vocab[id]) || marks[int32(id)] != "" {
				closing = append(closing, id)
			}
			if id >= 256 {
				list = append(list, id, id, id, id)
			}
		}
		if len(list) == 0 {
			t.Fatalf("nothing may come after %q", text.String())
		}
		if len(closing) > 0 && (n > 60 || r.IntN(4) == 0) {
			list = closing
		}
		id := int32(list[r.IntN(len(list))])
		text.WriteString(vocab[id] + marks[id])
		if s = s.Next(id); s == nil {
			t.Fatalf("%q has the token %d in its mask, and it may not come", text.String(), id)
		}
	}
	return text.String(), false
}

const forcedTools = `[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{
	"text":{"type":"string"},"maybe":{"type":["string","null"]},"code":{"$ref":"#/$defs/code"},"n":{"type":"integer","minimum":-3},
	"any":{},"mixed":{"anyOf":[{"type":"string","minLength":1},{"type":"number"},{"type":"boolean"},{"type":"array","items":{"type":"string"}}]},
	"kind":{"enum":["a","1",1,null]},"box":{"type":"object","properties":{"s":{"type":"string"}},"required":["s"]},"short":{"type":"string","maxLength":3}},
	"required":["n"],"$defs":{"code":{"type":["integer","string"]}}}}},
	{"type":"function","function":{"name":"g.h","parameters":{"type":"object","additionalProperties":{"type":"integer"}}}},
	{"type":"function","function":{"name":"any"}}]`

// fits reports whether a value follows a schema, an independent reading of the keywords of forcedTools.
func fits(root, schema map[string]any, v any) bool {
	if ref, ok := schema["$ref"].(string); ok {
		return fits(root, root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any), v)
	}
	kind, whole := "null", false
	switch v := v.(type) {
	case string:
		n := float64(utf8.RuneCountInString(v))
		kind = "string"
		if least, ok := schema["minLength"].(float64); ok && n < least {
			return false
		}
		if most, ok := schema["maxLength"].(float64); ok && n > most {
			return false
		}
	case bool:
		kind = "boolean"
	case float64:
		kind, whole = "number", v == float64(int64(v))
		if least, ok := schema["minimum"].(float64); ok && v < least {
			return false
		}
	case []any:
		kind = "array"
		if item, ok := schema["items"].(map[string]any); ok && slices.ContainsFunc(v, func(e any) bool { return !fits(root, item, e) }) {
			return false
		}
	case map[string]any:
		kind = "object"
		list, _ := schema["required"].([]any)
		for _, name := range list {
			if _, ok := v[name.(string)]; !ok {
				return false
			}
		}
		props, _ := schema["properties"].(map[string]any)
		for name, e := range v {
			of, ok := props[name].(map[string]any)
			if !ok {
				of, _ = schema["additionalProperties"].(map[string]any)
			}
			if !ok && props != nil || !fits(root, of, e) {
				return false
			}
		}
	}
	if list, ok := schema["anyOf"].([]any); ok && !slices.ContainsFunc(list, func(s any) bool { return fits(root, s.(map[string]any), v) }) {
		return false
	}
	if list, ok := schema["enum"].([]any); ok && !slices.Contains(list, v) {
		return false
	}
	types, ok := schema["type"].([]any)
	if one, is := schema["type"].(string); is {
		types, ok = []any{one}, true
	}
	return !ok || slices.Contains(types, any(kind)) || whole && slices.Contains(types, any("integer"))
}

// Answers that calls are forced into are read as calls with arguments that follow the tools' schemas, whatever is
// drawn, with marks as text and as tokens of their own.
func TestForcedCallsAreReadBack(t *testing.T) {
	var tools []struct {
		Function struct {
			Name       string
			Parameters map[string]any
		}
	}
	if err := json.Unmarshal([]byte(forcedTools), &tools); err != nil {
		t.Fatal(err)
	}
	for _, name := range Syntaxes() {
		s, err := SyntaxNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, special := range []bool{false, true} {
			vocab, marks := piecesOf(slices.Concat(traps, ends)...), map[int32]string{}
			if special {
				for _, m := range s.Marks {
					marks[int32(len(vocab))] = m
					vocab = append(vocab, "")
				}
			}
			f := forced(t, s, forcedTools, vocab, marks)
			r := rand.New(rand.NewPCG(1, uint64(len(name))))
			ended, called := 0, map[string]int{}
			for range 30 {
				text, all := drawn(t, r, f, vocab, marks)
				if !all {
					continue
				}
				ended++
				said, calls := read(s, ReaderOptions{Tools: json.RawMessage(forcedTools)}, text, []int{0, 3}[r.IntN(2)])
				if len(calls) == 0 || strings.TrimSpace(AfterThoughts(said)) != "" {
					t.Fatalf("%s: %q: said %q, %d calls", name, text, said, len(calls))
				}
				for _, c := range calls {
					called[c.Name]++
					var v any
					if err := json.Unmarshal(c.Arguments, &v); err != nil || bytes.Contains(c.Arguments, []byte(`\ufffd`)) {
						t.Fatalf("%s: %q: %s", name, text, c.Arguments)
					}
					for _, x := range tools {
						if x.Function.Name == c.Name && !fits(x.Function.Parameters, x.Function.Parameters, v) {
							t.Errorf("%s: %q: %s do not follow the schema of %s", name, text, c.Arguments, c.Name)
						}
					}
				}
			}
			if ended < 18 || called["f"] == 0 || called["g.h"] == 0 || called["any"] == 0 {
				t.Errorf("%s, special %v: %d answers ended, calls %v", name, special, ended, called)
			}
		}
	}
}

// A text between tags may come only if readers take it for a value that the schema allows.
func TestForcedTexts(t *testing.T) {
	s, err := SyntaxNamed(Qwen3Coder)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		schema   string
		yes, not [][2]string // of arguments
	}{
		{`{"properties":{"x":{"type":["string","null"],"not":{"const":null}}}}`, [][2]string{{"x", "nulls"}, {"x", ""}}, [][2]string{{"x", "null"}, {"x", " None\n"}}},
		{`{"properties":{"x":{"type":["string","array"],"not":{"type":"array"}}}}`, [][2]string{{"x", "a[1]"}, {"x", "{}"}}, [][2]string{{"x", "[1]"}, {"x", "\u00a0[1]"}}},
		{`{"properties":{"x":{"type":["string","object"],"not":{"type":"object"}}}}`, [][2]string{{"x", "[1]"}}, [][2]string{{"x", "{}"}}},
		{`{"properties":{"x":{"type":["string","integer"],"not":{"type":"integer"}}}}`, [][2]string{{"x", "1a"}, {"x", "true"}}, [][2]string{{"x", "1"}, {"x", "\n-1.5E3"}}},
		{`{"properties":{"x":{"type":["string","boolean"],"enum":["true","1"]}}}`, [][2]string{{"x", "1"}, {"x", "true"}}, [][2]string{{"x", "false"}}},
		{`{"anyOf":[{"properties":{"k":{"const":1}},"required":["k"],"additionalProperties":{"type":"string"}},{"properties":{"k":{"const":2},"w":{"type":"integer"}},"required":["k","w"]}]}`,
			[][2]string{{"k", "1"}, {"w", "abc"}}, [][2]string{{"k", "1"}, {"w", "5"}}},
	} {
		f := forced(t, s, `[{"function":{"name":"f","parameters":`+tt.schema+`}}]`, piecesOf(), nil)
		call := func(args ...[2]string) string {
			text := "<tool_call>\n<function=f>\n"
			for _, a := range args {
				text += "<parameter=" + a[0] + ">\n" + a[1] + "\n</parameter>\n"
			}
			return text + "</function>\n</tool_call>"
		}
		if tt.yes[0][0] == "k" { // arguments that come together
			if !accepts(f, call(tt.yes...)) || accepts(f, call(tt.not...)) || !accepts(f, call([2]string{"k", "2"}, [2]string{"w", "5"})) {
				t.Errorf("%s: arguments of one option are taken for those of another", tt.schema)
			}
			continue
		}
		for _, a := range tt.yes {
			if !accepts(f, call(a)) {
				t.Errorf("%s: %q may not come", tt.schema, a)
			}
		}
		for _, a := range tt.not {
			if accepts(f, call(a)) {
				t.Errorf("%s: %q may come", tt.schema, a)
			}
		}
	}
	spec := form.Spec{Calls: &form.Calls{Frames: s.Frames(nil), Tools: []form.Tool{{Name: "f", Parameters: []byte(`{"properties":{"a>":{}}}`)}}}}
	if err := spec.Check(); err == nil || !strings.Contains(err.Error(), `"a>" cannot be the name of an argument in this format of calls`) {
		t.Error(err)
	}
}
