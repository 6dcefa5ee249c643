package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/form"
	"exp/train/rollout"
)

func ptr[T any](v T) *T { return &v }

// usual are parameters that requests have where they name none.
func usual() rollout.Params {
	return rollout.Params{Temperature: 0.7, TopP: 0.9, TopK: 20, MinP: 0.01, Penalties: rollout.Penalties{Repetition: 1.1}}
}

const (
	hi   = `"messages":[{"role":"user","content":"hi"}]`
	tool = `[{"type":"function","function":{"name":"f"}}]`
)

// wants sets a form that a field wants.
func wants(field string, s form.Spec) func(r *Request) {
	return func(r *Request) { r.Wanted = Wanted{Spec: &s, Field: field} }
}

// What each field sets. A chat begins as {hi}, a text as {"prompt":"x"}.
func TestReadFields(t *testing.T) {
	for _, tt := range []struct {
		chat, text bool // that know the field
		field      string
		set        func(r *Request)
	}{
		{true, true, `"model":"m"`, func(r *Request) { r.Model = "m" }},
		{true, true, `"temperature":0`, func(r *Request) { r.Params.Temperature = 0 }},
		{true, true, `"temperature":1.5`, func(r *Request) { r.Params.Temperature = 1.5 }},
		{true, true, `"top_p":1`, func(r *Request) { r.Params.TopP = 1 }},
		{true, true, `"min_p":0.5`, func(r *Request) { r.Params.MinP = 0.5 }},
		{true, true, `"top_k":7`, func(r *Request) { r.Params.TopK = 7 }},
		{true, true, `"top_k":-1`, func(r *Request) { r.Params.TopK = 0 }},
		{true, true, `"max_tokens":9`, func(r *Request) { r.Most = ptr(9) }},
		{true, false, `"max_completion_tokens":9`, func(r *Request) { r.Most = ptr(9) }},
		{true, true, `"n":128`, func(r *Request) { r.N = 128 }},
		{true, true, `"seed":-3`, func(r *Request) { r.Seed = ptr(int64(-3)) }},
		{true, true, `"stream":true`, func(r *Request) { r.Stream = true }},
		{true, true, `"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false}`, func(r *Request) { r.Stream, r.Usage = true, true }},
		{true, true, `"ignore_eos":true`, func(r *Request) { r.IgnoreEnds = true }},
		{true, true, `"stop":"a"`, func(r *Request) { r.Params.Stop = []string{"a"} }},
		{true, true, `"stop":["a","b"]`, func(r *Request) { r.Params.Stop = []string{"a", "b"} }},
		{true, true, `"stop":[]`, func(r *Request) { r.Params.Stop = []string{} }},
		{true, true, `"stop_token_ids":[3,1]`, func(r *Request) { r.Ends = []int32{3, 1} }},
		{true, true, `"user":"me","metadata":{"a":1},"store":false,"skip_special_tokens":true`, func(*Request) {}},
		{true, true, `"presence_penalty":-2`, func(r *Request) { r.Params.Penalties.Presence = -2 }},
		{true, true, `"frequency_penalty":2`, func(r *Request) { r.Params.Penalties.Frequency = 2 }},
		{true, true, `"repetition_penalty":1`, func(r *Request) { r.Params.Penalties.Repetition = 1 }},
		{true, true, `"min_tokens":4`, func(r *Request) { r.Params.MinNewTokens = 4 }},
		{true, true, `"logit_bias":{"12":-100,"3":0.5}`, func(r *Request) { r.Params.Bias = []rollout.Bias{{Token: 12, Add: -100}, {Token: 3, Add: 0.5}} }},
		{true, true, `"temperature":null,"response_format":null,"whatever":null`, func(*Request) {}},
		{true, false, `"logprobs":true,"top_logprobs":20`, func(r *Request) { r.Scored, r.Top = true, 20 }},
		{true, false, `"logprobs":false`, func(*Request) {}},
		{true, false, `"tools":` + tool, func(r *Request) { r.Tools = json.RawMessage(tool) }},
		{true, false, `"tools":[]`, func(*Request) {}},
		{true, false, `"tools":` + tool + `,"tool_choice":"auto"`, func(r *Request) { r.Tools = json.RawMessage(tool) }},
		{true, false, `"tools":` + tool + `,"tool_choice": "none"`, func(*Request) {}},
		{true, false, `"tools":` + tool + `,"tool_choice":"required"`,
			func(r *Request) { r.Tools, r.Wanted = json.RawMessage(tool), Wanted{Calls: true} }},
		{true, false, `"tools":` + tool + `,"tool_choice":{"type":"function","function":{"name":"f"}}`,
			func(r *Request) { r.Tools, r.Wanted = json.RawMessage(tool), Wanted{Calls: true, Tool: "f"} }},
		{true, true, `"response_format":{"type":"json_object"}`, wants("response_format", form.Spec{Object: true})},
		{true, true, `"response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":{"type":"null"}}}`,
			wants("response_format", form.Spec{Schema: json.RawMessage(`{"type":"null"}`)})},
		{true, true, `"structured_outputs":{"json":{"type":"null"}}`,
			wants("structured_outputs", form.Spec{Schema: json.RawMessage(`{"type":"null"}`)})},
		{true, true, `"structured_outputs":{"json":"{}","regex":null}`, wants("structured_outputs", form.Spec{Schema: json.RawMessage(`{}`)})},
		{true, true, `"structured_outputs":{"regex":"a+"}`, wants("structured_outputs", form.Spec{Regex: "a+"})},
		{true, true, `"structured_outputs":{"choice":["a","b"],"json_object":false}`,
			wants("structured_outputs", form.Spec{Choice: []string{"a", "b"}})},
		{true, true, `"structured_outputs":{"grammar":"root ::= [a]"}`, wants("structured_outputs", form.Spec{Grammar: "root ::= [a]"})},
		{true, true, `"structured_outputs":{"structural_tag":{"format":{}}}`, wants("structured_outputs", form.Spec{Tags: json.RawMessage(`{"format":{}}`)})},
		{true, true, `"structured_outputs":{"structural_tag":"{\"format\":{}}"}`, wants("structured_outputs", form.Spec{Tags: json.RawMessage(`{"format":{}}`)})},
		{true, true, `"response_format":{"type":"structural_tag","format":{}}`,
			wants("response_format", form.Spec{Tags: json.RawMessage(`{"type":"structural_tag","format":{}}`)})},
		{true, true, `"structured_outputs":{"disable_any_whitespace":true,"json":{}}`,
			wants("structured_outputs", form.Spec{Schema: json.RawMessage(`{}`), Compact: true})},
		{true, true, `"structured_outputs":{"disable_any_whitespace":false,"json_object":true}`, wants("structured_outputs", form.Spec{Object: true})},
		{true, true, `"structured_outputs":{"disable_any_whitespace":true}`, func(*Request) {}},
		{true, true, `"response_format":{"type":"json_object","schema":{"type":"null"}}`,
			wants("response_format", form.Spec{Schema: json.RawMessage(`{"type":"null"}`)})},
		{true, true, `"response_format":{"type":"json_object","schema":null}`, wants("response_format", form.Spec{Object: true})},
		{true, true, `"json_schema":{"type":"null"}`, wants("json_schema", form.Spec{Schema: json.RawMessage(`{"type":"null"}`)})},
		{true, true, `"grammar":"root ::= [a]"`, wants("grammar", form.Spec{Grammar: "root ::= [a]"})},
		{true, true, `"guided_grammar":"root ::= [a]"`, wants("guided_grammar", form.Spec{Grammar: "root ::= [a]"})},
		{true, true, `"structured_outputs":{"json_object":true}`, wants("structured_outputs", form.Spec{Object: true})},
		{true, true, `"structured_outputs":{}`, func(*Request) {}},
		{true, true, `"guided_json":"{}"`, wants("guided_json", form.Spec{Schema: json.RawMessage(`{}`)})},
		{true, true, `"guided_regex":"a"`, wants("guided_regex", form.Spec{Regex: "a"})},
		{true, true, `"guided_choice":["a"],"response_format":{"type":"text"}`, wants("guided_choice", form.Spec{Choice: []string{"a"}})},
		{true, false, `"functions":[]`, func(*Request) {}},
		{true, false, `"parallel_tool_calls":true`, func(*Request) {}},
		{true, false, `"parallel_tool_calls":false`, func(r *Request) { r.OneCall = true }},
		{true, false, `"response_format":{"type": "text"},"add_generation_prompt":true,"continue_final_message":false`, func(*Request) {}},
		{true, false, `"chat_template_kwargs":{"loud":true}`, func(r *Request) { r.Vars = map[string]any{"loud": true} }},
		{false, true, `"echo":true,"max_tokens":0`, func(r *Request) { r.Echo, r.Most = true, ptr(0) }},
		{false, true, `"logprobs":0`, func(r *Request) { r.Scored = true }},
		{false, true, `"logprobs":5`, func(r *Request) { r.Scored, r.Top = true, 5 }},
		{false, true, `"best_of":1,"suffix":"","add_special_tokens":true`, func(*Request) {}},
	} {
		for _, chat := range []bool{true, false} {
			want := &Request{Chat: chat, N: 1, Params: usual(), Texts: []string{"x"}}
			body := `{"prompt":"x",` + tt.field + `}`
			if chat {
				body = `{` + hi + `,` + tt.field + `}`
				want.Texts, want.Messages = nil, []rollout.Message{{Role: "user", Content: "hi"}}
			}
			tt.set(want)
			got, err := Read([]byte(body), chat, usual(), nil)
			if known := chat && tt.chat || !chat && tt.text; !known {
				var e *Error
				if !errors.As(err, &e) || e.Param == nil {
					t.Errorf("%s: %v, want an error that names a field", body, err)
				}
				continue
			}
			if d := cmp.Diff(want, got); err != nil || d != "" {
				t.Errorf("%s: %v (-want +got):\n%s", body, err, d)
			}
		}
	}
}

// The prompts of texts, and the messages of chats.
func TestReadPrompts(t *testing.T) {
	for _, tt := range []struct {
		body string
		want Request
	}{
		{`{"prompt":["a","b"]}`, Request{Texts: []string{"a", "b"}}},
		{`{"prompt":[1,2]}`, Request{Prompts: [][]int32{{1, 2}}}},
		{`{"prompt":[[1],[2,3]]}`, Request{Prompts: [][]int32{{1}, {2, 3}}}},
		{`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"assistant","content":null,"tool_calls":[ ]},{"role":"assistant"}]}`,
			Request{Messages: []rollout.Message{{Role: "user", Content: "a\nb"},
				{Role: "assistant", Parts: json.RawMessage("null"), More: []rollout.Field{{Name: "tool_calls", Value: json.RawMessage("[]")}}},
				{Role: "assistant", Parts: json.RawMessage{}}}}},
	} {
		tt.want.Chat, tt.want.N, tt.want.Params = tt.want.Messages != nil, 1, usual()
		got, err := Read([]byte(tt.body), tt.want.Chat, usual(), nil)
		if d := cmp.Diff(&tt.want, got); err != nil || d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.body, err, d)
		}
	}
}

// A value out of bounds, or not understood, is an error that names the field.
func TestReadErrors(t *testing.T) {
	long, many := strings.Repeat("y", 70), func(n int, item string) string { return "[" + strings.Repeat(item+",", n-1) + item + "]" }
	biases := `{"0":1`
	for i := 1; i <= 1024; i++ {
		biases += `,"` + strings.Repeat("1", 1+i%9) + strings.Repeat("2", i/9) + `":1`
	}
	for _, tt := range []struct{ fields, param, want string }{
		{`"temperature":0.0001`, "temperature", "temperature is 0.0001, must be 0 for the likeliest tokens, or 0.001 to 100"},
		{`"temperature":101`, "temperature", "is 101, must be 0"},
		{`"temperature":"hot"`, "temperature", `temperature must be a number, not "hot"`},
		{`"temperature":"` + long + `"`, "temperature", `must be a number, not "` + long[:59] + "…"},
		{`"top_p":0`, "top_p", "is 0, must be above 0 and at most 1"},
		{`"top_p":1.1`, "top_p", "is 1.1"},
		{`"min_p":-0.1`, "min_p", "min_p is -0.1, must be 0 to 1"},
		{`"min_p":1.1`, "min_p", "is 1.1, must be 0 to 1"},
		{`"top_k":-2`, "top_k", "top_k is -2, must be -1 to 2147483647"},
		{`"top_k":2.5`, "top_k", "must be an integer, not 2.5"},
		{`"max_tokens":-1`, "max_tokens", "is -1, must be 0 to"},
		{`"max_tokens":0`, "max_tokens", "max_tokens is 0, must be at least 1"},
		{`"max_tokens":2147483648`, "max_tokens", "must be 0 to 2147483647"},
		{`"n":0`, "n", "n is 0, must be 1 to 128"},
		{`"n":129`, "n", "is 129, must be 1 to 128"},
		{`"seed":1.5`, "seed", "must be an integer, not 1.5"},
		{`"stream":1`, "stream", "must be true or false, not 1"},
		{`"stream_options":{"include_usage":true}`, "stream_options", "needs stream: true"},
		{`"stream":true,"stream_options":{"more":true}`, "stream_options", `has "more", which is not supported`},
		{`"stream_options":1`, "stream_options", `must be {"include_usage": true}, not 1`},
		{`"stop":1`, "stop", "must be a text or a list of texts, not 1"},
		{`"stop":["a",""]`, "stop", "has an empty text"},
		{`"stop":""`, "stop", "has an empty text"},
		{`"stop":` + many(17, `"a"`), "stop", "has 17 texts, at most 16"},
		{`"stop_token_ids":["a"]`, "stop_token_ids", "must be a list of token ids"},
		{`"store":true`, "store", "true is not supported: nothing is stored; leave it out"},
		{`"presence_penalty":2.1`, "presence_penalty", "is 2.1, must be -2 to 2"},
		{`"frequency_penalty":-2.1`, "frequency_penalty", "is -2.1, must be -2 to 2"},
		{`"repetition_penalty":0`, "repetition_penalty", "is 0, must be above 0 and at most 100"},
		{`"repetition_penalty":101`, "repetition_penalty", "is 101, must be above 0"},
		{`"min_tokens":-1`, "min_tokens", "is -1, must be 0 to"},
		{`"logit_bias":{"a":1}`, "logit_bias", `has "a", which is not a token id`},
		{`"logit_bias":{"-1":1}`, "logit_bias", `has "-1", which is not a token id`},
		{`"logit_bias":{"01":1}`, "logit_bias", `has "01", which is not a token id`},
		{`"logit_bias":{"1":101}`, "logit_bias", "of token 1 is 101, must be -100 to 100"},
		{`"logit_bias":[]`, "logit_bias", "must be an object of token ids and numbers"},
		{`"logit_bias":` + biases + `}`, "logit_bias", "has 1025 tokens, at most 1024"},
		{`"skip_special_tokens":false`, "skip_special_tokens", "special tokens have no text"},
		{`"whatever":1`, "whatever", `"whatever" is not supported: leave it out`},
		{`"top_logprobs":3`, "top_logprobs", "needs logprobs: true"},
		{`"logprobs":true,"top_logprobs":21`, "top_logprobs", "is 21, must be 0 to 20"},
		{`"logprobs":1`, "logprobs", "must be true or false, not 1"},
		{`"tools":{}`, "tools", "must be a list of tools, not {}"},
		{`"tools":[{"type":"function","function":{"name":"f"}},{"type":"web_search"}]`, "tools", "tools [1]: a tool must be"},
		{`"tools":[{"type":"function","function":{}}]`, "tools", "tools [0]: a tool must be"},
		{`"functions":[{"name":"f"}]`, "functions", "functions are tools now"},
		{`"tool_choice":"required"`, "tool_choice", "tool_choice asks for a call, but the request has no tools"},
		{`"tools":` + tool + `,"tool_choice":{"type":"function","function":{"name":"g"}}`, "tool_choice", `names "g", which is none of the tools`},
		{`"tools":` + tool + `,"tool_choice":"any"`, "tool_choice", `is "any", must be "none", "auto", "required" or {`},
		{`"tools":` + tool + `,"tool_choice":"required","guided_regex":"a"`, "guided_regex", "and tool_choice asks for calls: leave one out"},
		{`"guided_regex":"a","response_format":{"type":"json_object"}`, "response_format",
			"restricts the answer, and so does guided_regex: leave one out"},
		{`"guided_regex":""`, "guided_regex", "must be a regular expression"},
		{`"guided_choice":[""]`, "guided_choice", "must be a list of texts, none of them empty"},
		{`"guided_grammar":""`, "guided_grammar", "must be a grammar in GBNF, such as root ::= [0-9]+"},
		{`"structured_outputs":{"grammar":["root ::= x"]}`, "structured_outputs", "structured_outputs has a grammar that must be a grammar in GBNF"},
		{`"structured_outputs":{"grammar":"root ::= [a]","regex":"a"}`, "structured_outputs", "has several forms: one of json, regex, choice, grammar, json_object and structural_tag"},
		{`"structured_outputs":{"structural_tag":"x"}`, "structured_outputs",
			`structured_outputs has a structural_tag that must be a structural tag, such as {"type": "structural_tag",`},
		{`"structured_outputs":{"structural_tag":[]}`, "structured_outputs", "that must be a structural tag"},
		{`"structured_outputs":{"disable_any_whitespace":1,"json":{}}`, "structured_outputs",
			"has a disable_any_whitespace that must be true or false, not 1"},
		{`"grammar":""`, "grammar", "must be a grammar in GBNF"},
		{`"grammar":"root ::= [a]","json_schema":{}`, "json_schema", "restricts the answer, and so does grammar: leave one out"},
		{`"structured_outputs":{"whitespace_pattern":"x"}`, "structured_outputs",
			`has "whitespace_pattern", which is not supported: json, regex, choice, grammar, json_object and structural_tag are`},
		{`"structured_outputs":{"json":{},"regex":"a"}`, "structured_outputs", "has several forms"},
		{`"structured_outputs":{"choice":"a"}`, "structured_outputs", "structured_outputs has a choice that must be a list of texts"},
		{`"structured_outputs":3`, "structured_outputs", "must be an object, not 3"},
		{`"parallel_tool_calls":0`, "parallel_tool_calls", "must be true or false, not 0"},
		{`"response_format":{"type":"json"}`, "response_format", `its "type" must be text, json_object, json_schema or structural_tag`},
		{`"response_format":{"type":"json_schema"}`, "response_format", `needs "json_schema": {`},
		{`"add_generation_prompt":false`, "add_generation_prompt", "the assistant answers"},
		{`"continue_final_message":true`, "continue_final_message", "the assistant answers"},
		{`"chat_template_kwargs":[]`, "chat_template_kwargs", "must be an object, not []"},
		{`"messages":[]`, "messages", "messages is missing: at least one is needed"},
		{`"messages":[{"content":"x"}]`, "messages", "must be a list of messages"},
		{`"messages":[{"role":"user","content":{"a":1}}]`, "messages", "[0]: content must be a text, or a list of parts"},
		{`"messages":[{"role":"user","content":[{"type":"image_url"}]}]`, "messages", `[0]: content[0]: it shows an image, and the model reads text alone`},
		{`"prompt":"x"`, "prompt", "a prompt is for /v1/completions; a chat completion answers messages"},
	} {
		checkRefused(t, `{`+hi+`,`+tt.fields+`}`, true, tt.param, tt.want)
	}
	for _, tt := range []struct{ body, param, want string }{
		{`{}`, "prompt", "prompt is missing"},
		{`{"prompt":null}`, "prompt", "prompt is missing"},
		{`{"prompt":[]}`, "prompt", "must be a text, a list of token ids, or a list of texts"},
		{`{"prompt":[[]],"n":0}`, "n", "must be 1 to 128"},
		{`{"prompt":[1.5]}`, "prompt", "must be a text"},
		{`{"prompt":` + many(1025, `"a"`) + `}`, "prompt", "has 1025 prompts, at most 1024"},
		{`{"prompt":"x","messages":[]}`, "messages", "messages are for /v1/chat/completions; a completion continues a prompt"},
		{`{"prompt":"x","echo":1}`, "echo", "must be true or false"},
		{`{"prompt":"x","logprobs":21}`, "logprobs", "is 21, must be 0 to 20"},
		{`{"prompt":"x","best_of":2}`, "best_of", "n completions are sampled and all returned"},
		{`{"prompt":"x","suffix":"y"}`, "suffix", "only continues texts"},
		{`{"prompt":"x","add_special_tokens":false}`, "add_special_tokens", "prompts begin as in training"},
		{`[]`, "", "the body must be a JSON object"},
		{`{"prompt":`, "", "the body must be a JSON object"},
	} {
		checkRefused(t, tt.body, false, tt.param, tt.want)
	}
}

func checkRefused(t *testing.T, body string, chat bool, param, want string) {
	t.Helper()
	_, err := Read([]byte(body), chat, usual(), nil)
	var e *Error
	if !errors.As(err, &e) || e.Status != http.StatusBadRequest || e.Type != "invalid_request_error" || !strings.Contains(e.Message, want) {
		t.Errorf("%.200s: %v, want %q", body, err, want)
		return
	}
	if got := ""; e.Param != nil {
		if got = *e.Param; got != param {
			t.Errorf("%.200s names %q, want %q", body, got, param)
		}
	} else if param != "" {
		t.Errorf("%.200s names no field, want %q", body, param)
	}
}

// dots are an image of two pixels.
const dots = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAAD0lEQVR4nGMQUDD48EAAAAZnAkFaM/QcAAAAAElFTkSuQmCC"

// Texts and images keep their order, where there are images; all texts of other messages become one.
func TestReadImages(t *testing.T) {
	const image = `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + dots + `"}}`
	const plain = `{"type":"image_url","image_url":"data:image/png;charset=x;base64,` + dots + `"}`
	images := &Images{Take: func(encoded []byte) (rollout.Picture, error) {
		return rollout.Picture{Width: len(encoded), Encoded: encoded}, nil
	}}
	body := `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},` +
		`{"role":"user","content":[` + image + `,{"type":"text","text":"c<"},` + plain + `,{"type":"text","text":"d"}]},` +
		`{"role":"tool","content":[` + image + `]}]}`
	r, err := Read([]byte(body), true, usual(), images)
	if err != nil {
		t.Fatal(err)
	}
	want := []rollout.Message{{Role: "user", Content: "a\nb"},
		{Role: "user", Parts: json.RawMessage(`[{"type":"image"},{"type":"text","text":"c<"},{"type":"image"},{"type":"text","text":"d"}]`)},
		{Role: "tool", Parts: json.RawMessage(`[{"type":"image"}]`)}}
	if diff := cmp.Diff(want, r.Messages); diff != "" {
		t.Errorf("messages (-want +got)\n%s", diff)
	}
	file, err := base64.StdEncoding.DecodeString(dots)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Images) != 3 {
		t.Fatalf("%d images", len(r.Images))
	}
	for _, p := range r.Images {
		if p.Width != len(file) || !bytes.Equal(p.Encoded, file) {
			t.Errorf("image %+v", p)
		}
	}
	images.Take = func([]byte) (p rollout.Picture, err error) { return p, errors.New("too dark") }
	_, err = Read([]byte(body), true, usual(), images)
	var e *Error
	if !errors.As(err, &e) || e.Status != http.StatusBadRequest || *e.Param != "messages" ||
		e.Message != "messages [1]: content[0]: the image cannot be read: too dark" {
		t.Errorf("%v", err)
	}
}
