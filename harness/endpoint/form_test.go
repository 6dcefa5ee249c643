package endpoint

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
)

const person = `{"type":"object","properties":{"name":{"enum":["Ann","Bob \"x\""]},"age":{"type":"integer","minimum":0,"maximum":130},` +
	`"pets":{"type":"array","items":{"enum":["cat","dog"]},"maxItems":2}},"required":["name","age","pets"]}`

// follows reports whether a text is a person.
func follows(text string) bool {
	var p struct {
		Name *string
		Age  *int
		Pets []string
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(&p) == nil && p.Name != nil && p.Age != nil && *p.Age >= 0 && *p.Age <= 130 && p.Pets != nil && len(p.Pets) <= 2
}

// A model of random weights answers in the form that a request wants, whole and in a stream, chats and texts.
func TestForms(t *testing.T) {
	h := opens(t, tiny(t, template))
	word, paired := regexp.MustCompile(`^[a-c]{2,9}$`), regexp.MustCompile(`^<*[a-c]?>*$`)
	for _, tt := range []struct {
		name, fields string
		fits         func(text string) bool
	}{
		{"json_schema", `"response_format":{"type":"json_schema","json_schema":{"name":"p","schema":` + person + `}}`, follows},
		{"json", `"structured_outputs":{"json":` + person + `}`, follows},
		{"guided_json", `"guided_json":` + person, follows},
		{"regex", `"guided_regex":"[a-c]{2,9}"`, word.MatchString},
		{"choice", `"structured_outputs":{"choice":["yes","no"]}`, func(s string) bool { return s == "yes" || s == "no" }},
		{"grammar", `"structured_outputs":{"grammar":"root ::= pair\npair ::= \"<\" pair? \">\" | [a-c]"}`, func(s string) bool {
			n := strings.Count(s, "<")
			return paired.MatchString(s) && n == strings.Count(s, ">") && len(s) > 0
		}},
		{"structural_tag", `"response_format":{"type":"structural_tag","format":{"type":"tag","begin":"<b>","content":{"type":"regex",` +
			`"pattern":"[a-c]{2,9}"},"end":"</b>"}}`, func(s string) bool {
			return strings.HasPrefix(s, "<b>") && strings.HasSuffix(s, "</b>") && word.MatchString(s[3:len(s)-4])
		}},
		{"choice, with fields that could not be met", `"guided_choice":["yes","no"],"min_tokens":9,"ignore_eos":true`,
			func(s string) bool { return s == "yes" || s == "no" }},
	} {
		for path, prompt := range map[string]string{"completions": `"prompt":"x"`, "chat/completions": `"messages":[{"role":"user","content":"x"}]`} {
			for seed := range 4 {
				body := fmt.Sprintf(`{%s,"seed":%d,"n":3,"max_tokens":200,"temperature":1.5,%s`, prompt, seed, tt.fields)
				r := ask(t, h.URL+"/v1/"+path, body+"}")
				streamed := make([]string, 3)
				for _, part := range stream(t, h.URL+"/v1/"+path, body+`,"stream":true}`) {
					for _, c := range part.Choices {
						streamed[c.Index] += c.Text + c.Delta.Content
					}
				}
				for i, c := range r.Choices {
					if text := c.Text + c.Message.Content; !tt.fits(text) || *c.FinishReason != "stop" || streamed[i] != text {
						t.Errorf("%s of %s: %q ends by %s, streamed %q", tt.name, path, text, *c.FinishReason, streamed[i])
					}
				}
			}
		}
	}
	r := ask(t, h.URL+"/v1/completions", `{"prompt":"x","max_tokens":3,"guided_regex":"[a-c]{5}"}`)
	if c := r.Choices[0]; len(c.Text) != 3 || *c.FinishReason != "length" {
		t.Errorf("%q ends by %s", c.Text, *c.FinishReason)
	}
}

// Calls of tools can be forced, also behind thoughts, and a form leaves calls possible.
func TestForcedCalls(t *testing.T) {
	h := opens(t, tiny(t, toolTemplate))
	tools := `"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"enum":["Paris","Rome"]}},"required":["city"]}}},` +
		`{"type":"function","function":{"name":"time","parameters":{"type":"object","properties":{}}}}]`
	kinds := map[string]int{}
	for seed := range 12 {
		for choice, most := range map[string]int{`"required"`: 9,
			`{"type":"function","function":{"name":"weather"}}`: 1, `"required","parallel_tool_calls":false`: 1,
			`"auto","guided_choice":["so"]`: 9, `"required","chat_template_kwargs":{"thinks":true},"max_tokens":150`: 9} {
			code, text := post(t, h.URL+"/v1/chat/completions",
				fmt.Sprintf(`{"messages":[{"role":"user","content":"x"}],"seed":%d,%s,"tool_choice":%s,"temperature":0.7}`,
					seed, tools, choice))
			var r said
			if err := json.Unmarshal([]byte(text), &r); err != nil || code != 200 {
				t.Fatalf("%d %s", code, text)
			}
			c := r.Choices[0]
			if *c.Finish == "length" {
				kinds["length"]++
				continue
			}
			if c.Message.Content != nil && *c.Message.Content == "so" && strings.Contains(choice, "auto") {
				kinds["text"]++
				continue
			}
			if n := len(c.Message.Calls); n < 1 || n > most || *c.Finish != "tool_calls" {
				t.Fatalf("tool_choice %s: %s", choice, text)
			}
			for _, call := range c.Message.Calls {
				kinds[call.Function.Name]++
				want := map[string]string{"weather": `^\{\s*"city":\s*"(Paris|Rome)"\s*\}$`, "time": `^\{\}$`}[call.Function.Name]
				if !regexp.MustCompile(want).MatchString(call.Function.Arguments) || want == "" {
					t.Errorf("tool_choice %s: %s", choice, text)
				}
			}
		}
	}
	if kinds["weather"] == 0 || kinds["time"] == 0 || kinds["text"] == 0 {
		t.Errorf("answers: %v", kinds)
	}
}

// Calls can be forced in all formats, and an answer in channels can have a form.
func TestForcedCallsOfAllFormats(t *testing.T) {
	x := tiny(t, toolTemplate)
	const tools = `"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"$ref":"#/$defs/c"},"days":{"type":"integer","minimum":1,"maximum":9}},` +
		`"required":["city","days"],"$defs":{"c":{"enum":["Paris","7"]}}}}}]`
	for _, format := range ToolFormats() {
		if format == "deepseek" {
			continue // its marks are not in ASCII, as this model's tokens are
		}
		h := httptest.NewServer(NewServer(x, Options{Clock: time.Now, ToolFormat: format}))
		defer h.Close()
		right := 0
		for seed := range 4 {
			code, text := post(t, h.URL+"/v1/chat/completions", fmt.Sprintf(`{"messages":[{"role":"user","content":"x"}],
				"seed":%d,%s,"tool_choice":"required","parallel_tool_calls":false,"max_tokens":200}`, seed, tools))
			var r said
			if err := json.Unmarshal([]byte(text), &r); err != nil || code != 200 {
				t.Fatalf("%s: %d %s", format, code, text)
			}
			if c := r.Choices[0]; *c.Finish != "length" {
				right++
				valid := regexp.MustCompile(`^\{\s*"city":\s*"(Paris|7)",\s*"days":\s*[1-9]\s*\}$`)
				if len(c.Message.Calls) != 1 || !valid.MatchString(c.Message.Calls[0].Function.Arguments) {
					t.Errorf("%s: %s", format, text)
				}
			}
		}
		if right == 0 {
			t.Errorf("%s: no answer ended", format)
		}
		code, text := post(t, h.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"guided_regex":"[a-c]{4}","max_tokens":200}`)
		var r said
		letters := regexp.MustCompile(`(^|</think>)[a-c]{4}$`)
		if err := json.Unmarshal([]byte(text), &r); err != nil || code != 200 ||
			*r.Choices[0].Finish == "stop" && !letters.MatchString(*r.Choices[0].Message.Content) {
			t.Errorf("%s: %d %s", format, code, text)
		}
	}
}
