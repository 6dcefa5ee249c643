package endpoint

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"exp/harness/openai"
	"exp/train/form"
	"exp/train/generate"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// toolTemplate writes tools and calls as Qwen's template does, in few words.
const toolTemplate = "{% for t in tools or [] %}[{{ t.function.name }}]{% endfor %}{% for m in messages %}<{{ m.role }}>{{ m.content }}" +
	"{% for c in m.tool_calls %}<tool_call>{\"name\": {{ c.function.name | tojson }}, \"arguments\": {{ c.function.arguments | tojson }}}</tool_call>" +
	"{% endfor %}{% endfor %}{% if add_generation_prompt %}<assistant>{% if thinks %}<think>{% endif %}{% endif %}"

// saying serves a model that says answers, one to each completion of a request, and ends them as finish says. It draws
// a token for each byte; token 7 is a special one, mark.
func saying(t *testing.T, o Options, template string, finish rollout.Finish, answers ...string) (x *Model, h *httptest.Server) {
	t.Helper()
	real := tiny(t, template)
	x = &Model{name: "fake", context: 256, vocab: real.vocab, params: real.params, engine: real.engine, prompts: real.prompts,
		tok: marked{real.tok}, forms: form.NewCache(marked{real.tok}), asks: make(chan *generate.Ask), ended: make(chan struct{}), most: 1024, stop: func() {}}
	ended := make(chan bool)
	t.Cleanup(func() { close(x.asks); <-ended })
	go func() {
		defer close(ended)
		for a := range x.asks {
			a.Scores = make([][]generate.Score, len(a.Seeds))
			for k := range a.Seeds {
				c, text := rollout.Completion{Finish: finish}, []byte(nil)
				for _, b := range []byte(answers[k]) {
					c.Tokens = append(c.Tokens, int32(b))
					piece := []byte{b}
					if b == 7 {
						piece = []byte(a.Spelled[7])
					}
					text = append(text, piece...)
					a.Scores[k] = append(a.Scores[k], generate.Score{Token: int32(b), LogProb: -1})
					a.Drew(k, text)
				}
				c.Text = string(text)
				a.Ended(k, c)
			}
		}
	}()
	o.Clock = time.Now
	h = httptest.NewServer(NewServer(x, o))
	t.Cleanup(h.Close)
	return x, h
}

// marked is a tokenizer with a special token.
type marked struct{ tokenizer.Tokenizer }

const mark = "[TOOL_CALLS]"

func (m marked) Piece(id int32) []byte {
	if id == 7 {
		return nil
	}
	return m.Tokenizer.Piece(id)
}

func (m marked) Token(id int32) string {
	if id == 7 {
		return mark
	}
	return m.Tokenizer.Token(id)
}

func (m marked) TokenID(text string) (int32, bool) {
	if text == mark {
		return 7, true
	}
	return m.Tokenizer.TokenID(text)
}

// said is an answer, or a part of a stream.
type said struct {
	Choices []struct {
		Index   int
		Finish  *string `json:"finish_reason"`
		Message message
		Delta   message
		Scores  *struct{ Content []struct{ Token string } } `json:"logprobs"`
	}
}

type message struct {
	Role    string
	Content *string
	Calls   []call `json:"tool_calls"`
}

type call struct {
	Index    *int
	ID, Type string
	Function struct{ Name, Arguments string }
}

const (
	sunny     = `<tool_call>{"name": "weather", "arguments": {"city": "Paris", "days": 2.50}}</tool_call>`
	sunnyArgs = `{"city": "Paris", "days": 2.50}`
	offered   = `"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}}}]`
)

// Calls are tool_calls of whole answers and of streams; the text around them is the content.
func TestCalls(t *testing.T) {
	text := func(s string) *string { return &s }
	for _, tt := range []struct {
		name, answer, fields string
		o                    Options
		finish               rollout.Finish
		content              *string
		calls                []string // arguments
		why                  string
	}{
		{name: "a call", answer: sunny, calls: []string{sunnyArgs}, why: "tool_calls"},
		{name: "two calls and text", answer: "I look.\n" + sunny + "\n" + sunny + "\n", content: text("I look."), calls: []string{sunnyArgs, sunnyArgs}, why: "tool_calls"},
		{name: "one call", answer: "I look. " + sunny + sunny + " So", fields: `,"parallel_tool_calls":false`, content: text("I look."), calls: []string{sunnyArgs}, why: "tool_calls"},
		{name: "no call", answer: "It rains <b>. ", content: text("It rains <b>. "), why: "stop"},
		{name: "a broken call", answer: "So <tool_call>weather</tool_call>", content: text("So <tool_call>weather</tool_call>"), why: "stop"},
		{name: "a call that is cut", answer: sunny + " and " + sunny[:30], finish: rollout.FinishLength, content: text(" and " + sunny[:30]), calls: []string{sunnyArgs}, why: "length"},
		{name: "tool_choice auto", answer: sunny, fields: `,"tool_choice":"auto","parallel_tool_calls":true`, calls: []string{sunnyArgs}, why: "tool_calls"},
		{name: "tool_choice none", answer: sunny, fields: `,"tool_choice":"none"`, content: text(sunny), why: "stop"},
		{name: "thoughts", answer: sunny + "</think>" + sunny, fields: `,"chat_template_kwargs":{"thinks":true}`, content: text(sunny + "</think>"), calls: []string{sunnyArgs}, why: "tool_calls"},
		{name: "llama3", answer: `{"name": "weather", "parameters": ` + sunnyArgs + `}`, o: Options{ToolFormat: "llama3"}, calls: []string{sunnyArgs}, why: "tool_calls"},
		{name: "a special token", answer: "a\a[{\"name\": \"weather\", \"arguments\": " + sunnyArgs + "}]", o: Options{ToolFormat: "mistral"}, content: text("a"), calls: []string{sunnyArgs}, why: "tool_calls"},
		{name: "a special token without tools", answer: "a\ab", fields: `,"tool_choice":"none"`, o: Options{ToolFormat: "mistral"}, content: text("ab"), why: "stop"},
		{name: "types of the schema", answer: "<function=weather><parameter=city>5</parameter><parameter=days>5</parameter></function>", o: Options{ToolFormat: "qwen3-coder"},
			calls: []string{`{"city": "5", "days": 5}`}, why: "tool_calls"},
		{name: "glm", answer: "I look.\n<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>5</arg_value>\n<arg_key>days</arg_key>\n<arg_value>5</arg_value>\n</tool_call>",
			o: Options{ToolFormat: "glm"}, content: text("I look."), calls: []string{`{"city": "5", "days": 5}`}, why: "tool_calls"},
		{name: "harmony", answer: "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>" + sunnyArgs + "<|call|>",
			o: Options{ToolFormat: "harmony"}, content: text("<think>hm</think>"), calls: []string{sunnyArgs}, why: "tool_calls"},
		{name: "harmony without tools", answer: "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>It rains. ",
			fields: `,"tool_choice":"none"`, o: Options{ToolFormat: "harmony"}, content: text("<think>hm</think>It rains. "), why: "stop"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.finish == 0 {
				tt.finish = rollout.FinishStop
			}
			_, h := saying(t, tt.o, toolTemplate, tt.finish, tt.answer, "other")
			body := `{"messages":[{"role":"user","content":"hi"}],"logprobs":true,"n":2,` + offered + tt.fields
			code, raw := post(t, h.URL+"/v1/chat/completions", body+"}")
			var whole said
			if err := json.Unmarshal([]byte(raw), &whole); code != 200 || err != nil || len(whole.Choices) != 2 {
				t.Fatalf("%d %v %s", code, err, raw)
			}
			c := whole.Choices[0]
			if d := cmp.Diff(tt.content, c.Message.Content); d != "" || *c.Finish != tt.why {
				t.Errorf("%s, want %s; content (-want +got):\n%s", *c.Finish, tt.why, d)
			}
			checkCalls(t, c.Message.Calls, tt.calls)
			if o := whole.Choices[1]; *o.Message.Content != "other" || *o.Finish != map[bool]string{true: "length", false: "stop"}[tt.finish == rollout.FinishLength] {
				t.Errorf("the other answer: %q %s", *o.Message.Content, *o.Finish)
			}

			content, why, scores, calls := "", "", 0, []call(nil)
			for _, line := range strings.Split(events(t, h.URL, body+`,"stream":true}`), "\n\n") {
				var part said
				if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &part) != nil || part.Choices[0].Index != 0 {
					continue
				}
				d := part.Choices[0]
				if d.Delta.Content != nil {
					content += *d.Delta.Content
				}
				for _, x := range d.Delta.Calls {
					if x.Index == nil || *x.Index != len(calls) || d.Finish != nil {
						t.Errorf("call %d: %s", len(calls), line)
					}
					x.Index = nil
					calls = append(calls, x)
				}
				if d.Scores != nil {
					scores += len(d.Scores.Content)
				}
				if d.Finish != nil {
					why = *d.Finish
				}
			}
			want := ""
			if tt.content != nil {
				want = *tt.content
			}
			if content != want || why != tt.why || scores != len(tt.answer) || scores != len(c.Scores.Content) {
				t.Errorf("streamed %q, %s, %d scores, want %q, %s, %d", content, why, scores, want, tt.why, len(tt.answer))
			}
			if d := cmp.Diff(c.Message.Calls, calls); d != "" {
				t.Errorf("streamed calls (-whole +streamed):\n%s", d)
			}
		})
	}
}

// events returns the body of a stream.
func events(t *testing.T, url, body string) string {
	t.Helper()
	code, text := post(t, url+"/v1/chat/completions", body)
	if code != 200 || !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Fatalf("%d %s", code, text)
	}
	return text
}

func checkCalls(t *testing.T, calls []call, arguments []string) {
	t.Helper()
	var got []string
	ids := map[string]bool{}
	for _, c := range calls {
		got = append(got, c.Function.Arguments)
		if ids[c.ID] || !regexp.MustCompile("^[a-zA-Z0-9]{9}$").MatchString(c.ID) || c.Type != "function" || c.Function.Name != "weather" {
			t.Errorf("call %+v", c)
		}
		ids[c.ID] = true
	}
	if !slices.Equal(got, arguments) {
		t.Errorf("arguments %q, want %q", got, arguments)
	}
}

// Text is sent when its token comes, except what may begin a call, or a stop text; a call when it is complete.
func TestCallsAreHeldBack(t *testing.T) {
	x := tiny(t, toolTemplate)
	s := NewServer(x, Options{Clock: time.Now})
	r := &openai.Request{Chat: true, N: 1, Tools: json.RawMessage("[]"), Prompts: [][]int32{{'x'}}, Params: rollout.Params{Stop: []string{"END"}}}
	c, err := s.callerOf(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &answer{Server: s, Request: r, caller: c, sent: []sent{{reader: c.reader()}}}
	sends := func(text string, ended *rollout.Completion) string {
		got := ""
		for _, choice := range a.news(0, part{text: []byte(text), ended: ended}) {
			m := choice.(map[string]any)
			d := m["delta"].(map[string]any)
			if d["role"] != nil {
				got += "role "
			}
			if text, ok := d["content"].(string); ok && text != "" {
				got += "[" + text + "]"
			}
			if d["tool_calls"] != nil {
				got += "call"
			}
			if m["finish_reason"] != nil {
				got += fmt.Sprint(m["finish_reason"])
			}
		}
		return got
	}
	text := ""
	for _, tt := range [][2]string{{"I", "role [I]"}, {" ", ""}, {"a", "[ a]"}, {"<", ""}, {"b", "[<b]"}, {"<tool", ""}, {"_call>", ""}, {`{"name": "f"}</tool_call`, ""},
		{">", "call"}, {" E", ""}, {"x", "[ Ex]"}, {"<tool_call>f</tool_call>", "[<tool_call>f</tool_call>]"}, {"ü"[:1], ""}, {"ü"[1:], "[ü]"}, {" <to", ""}} {
		text += tt[0]
		if got := sends(text, nil); got != tt[1] {
			t.Errorf("after %q it sends %q, want %q", tt[0], got, tt[1])
		}
	}
	if got := sends(text, &rollout.Completion{Text: text, Finish: rollout.FinishStop}); got != "[ <to]tool_calls" {
		t.Errorf("at the end it sends %q", got)
	}
}

// An id belongs to a call of a chat: the same whenever the same is asked, and another one after more was said.
func TestCallIDs(t *testing.T) {
	_, h := saying(t, Options{}, toolTemplate, rollout.FinishStop, sunny+sunny, sunny+sunny)
	var all []string
	for _, content := range []string{"hi", "hi", "ho"} {
		_, raw := post(t, h.URL+"/v1/chat/completions", fmt.Sprintf(`{"messages":[{"role":"user","content":%q}],"n":2,%s}`, content, offered))
		var r said
		if err := json.Unmarshal([]byte(raw), &r); err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Choices {
			for _, x := range c.Message.Calls {
				all = append(all, x.ID)
			}
		}
	}
	if len(all) != 12 || !slices.Equal(all[:4], all[4:8]) {
		t.Fatalf("%q", all)
	}
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != 8 {
		t.Errorf("%d different ids, want 4 of each chat", n)
	}
}

// Requests whose calls could not be read, or that ask for more than the endpoint can do, are refused.
func TestToolsRefused(t *testing.T) {
	_, plain := saying(t, Options{}, template, rollout.FinishStop, "")
	_, h := saying(t, Options{}, toolTemplate, rollout.FinishStop, "")
	_, named := saying(t, Options{ToolFormat: "hermes"}, template, rollout.FinishStop, sunny)
	_, none := saying(t, Options{}, "", rollout.FinishStop, "")
	hiding := template + "{# <｜tool▁calls▁begin｜> <｜tool▁sep｜> #}"
	_, hides := saying(t, Options{}, hiding, rollout.FinishStop, "")
	_, described := saying(t, Options{ToolFormat: "deepseek"}, hiding, rollout.FinishStop, "")
	const user = `{"messages":[{"role":"user","content":"hi"}`
	for _, tt := range []struct{ url, body, want string }{
		{plain.URL, user + `],` + offered + `}`, "its chat template writes no calls of tools"},
		{plain.URL, user + `],` + offered + `,"tool_choice":"none"}`, ""},
		{hides.URL, user + `],` + offered + `}`, "does not show them to the model; with exp endpoint --tool-format deepseek your messages may describe them"},
		{described.URL, user + `],` + offered + `}`, ""},
		{none.URL, user + `],` + offered + `}`, "prompts are plain text"},
		{named.URL, user + `],` + offered + `}`, ""},
		{described.URL, user + `],` + offered + `,"tool_choice":"required"}`,
			"tool_choice is not supported with tools for this model, whose calls are in the format deepseek"},
		{described.URL, user + `],` + offered + `,"guided_regex":"a"}`, "guided_regex is not supported with tools for this model"},
		{h.URL, user + `],"tools":[{"type":"function","function":{"name":"f","parameters":{"contains":{}}}}],"tool_choice":"required"}`,
			`tools: the parameters of f: the schema has \"contains\", which is not supported`},
		{h.URL, user + `],"tools":[{"type":"function","function":{"name":"f\""}}],"tool_choice":"required"}`, `tools: \"f\\\"\" is not a name`},
		{h.URL, user + `],"tools":[{"type":"function","function":{}}]}`, "tools [0]: a tool must be"},
		{h.URL, user + `],` + offered + `,"parallel_tool_calls":"no"}`, "parallel_tool_calls must be true or false"},
		{h.URL, user + `,{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"x"}}]}]}`, `messages [1]: tool_calls: the arguments \"x\" spell no JSON object`},
	} {
		code, text := post(t, tt.url+"/v1/chat/completions", tt.body)
		if want := map[bool]int{true: 200, false: 400}[tt.want == ""]; code != want || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %d %s, want %d %s", tt.body, code, text, want, tt.want)
		}
	}
}

// llamaTemplate has what Llama 3.1's template asks of messages: calls are told by the presence of tool_calls, one each.
const llamaTemplate = "{% for m in messages %}{% if not (m.role == 'tool' or 'tool_calls' in m) %}<{{ m.role }}>{{ m.content | trim }}|" +
	"{% elif 'tool_calls' in m %}{% if not m.tool_calls | length == 1 %}{{ raise_exception('one call') }}{% endif %}" +
	"{\"name\": \"{{ m.tool_calls[0].function.name }}\", \"parameters\": {{ m.tool_calls[0].function.arguments | tojson }}}|" +
	"{% else %}<ipython>{{ m.content }}|{% endif %}{% endfor %}"

// Templates get the messages of clients, with calls as the endpoint made them, as they want them.
func TestMessagesWithCalls(t *testing.T) {
	const asked = `{"role":"user","content":"Rain?","name":null}`
	const calls = `{"role":"assistant","content":null,"refusal":null,"audio":null,"function_call":null,"tool_calls":[{"id":"ABCDEFGHI","type":"function",` +
		`"function":{"name":"weather","arguments":"{\"city\": \"Paris\", \"wind\": null}"}}]}`
	const tool, answer = `{"role":"tool","tool_call_id":"ABCDEFGHI","content":[{"type":"text","text":"wet"}]}`, `{"role":"assistant","content":"Yes.","tool_calls":null}`
	const more, args = `{"role":"user","content":"Sure?"}`, `{"city": "Paris", "wind": null}`
	file := func(name string) string {
		b, err := os.ReadFile("../../../shared/data/chat_templates/" + name + ".jinja")
		if err != nil {
			t.Skip(err)
		}
		return string(b)
	}
	const qwen = "<|im_start|>user\nRain?<|im_end|>\n<|im_start|>assistant\n<tool_call>\n{\"name\": \"weather\", \"arguments\": " + args +
		"}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\nwet\n</tool_response><|im_end|>\n<|im_start|>assistant\nYes.<|im_end|>\n" +
		"<|im_start|>user\nSure?<|im_end|>\n<|im_start|>assistant\n"
	for _, tt := range []struct{ name, template, format, want string }{
		{"qwen2.5", file("qwen2.5"), "hermes", qwen},
		{"qwen3", file("qwen3"), "hermes", qwen},
		{"mistral-nemo", file("mistral-nemo"), "mistral", `[INST]Rain?[/INST][TOOL_CALLS][{"name": "weather", "arguments": ` + args + `, "id": "ABCDEFGHI"}]<|endoftext|>` +
			`[TOOL_RESULTS]{"content": wet, "call_id": "ABCDEFGHI"}[/TOOL_RESULTS]Yes.<|endoftext|>`},
		{"llama", llamaTemplate, "llama3", `<user>Rain?|{"name": "weather", "parameters": ` + args + `}|<ipython>wet|<assistant>Yes.|<user>Sure?|`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := tiny(t, tt.template)
			if got := x.ToolFormat(); tt.name != "llama" && got != tt.format {
				t.Errorf("format %q, want %q", got, tt.format)
			}
			body := `{"messages":[` + strings.Join([]string{asked, calls, tool, answer, more}, ",") + `],` + offered + `}`
			r, err := openai.Read([]byte(body), true, x.params, nil)
			if err == nil {
				err = x.encode(r, &holding{})
			}
			if err != nil {
				t.Fatal(err)
			}
			got := x.text(r.Prompts[0])
			if !strings.Contains(got, tt.want) || tt.name != "llama" && !strings.Contains(got, `"name": "weather", "parameters": {"type": "object"`) {
				t.Errorf("got\n%s\nwant in it\n%s", got, tt.want)
			}
		})
	}
}
