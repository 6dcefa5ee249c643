package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"exp/harness/openai"
	"exp/train/form"
	"exp/train/rollout"
	"exp/train/toolcall"
)

// played is an open episode whose requests a test makes.
type played struct {
	*strand // of requests without a name
	t       *testing.T
	p       *policy
}

func playedBy(t *testing.T, o Options, p *policy) *played {
	a := New(o)
	e := episodeOf(p, "", "")
	if o.MaxPrompt > 100 {
		e.Params.MaxNewTokens = 400
	}
	x := a.begin(context.Background(), e)
	t.Cleanup(func() { x.end(); _ = a.Close() })
	s, err := x.strand("")
	if err != nil {
		t.Fatal(err)
	}
	return &played{s, t, p}
}

// post sends a request and returns the status and the answer.
func (x *played) post(path, body string) (int, map[string]any) {
	r := httptest.NewRequest(http.MethodPost, "/episode/"+x.key+"/v1/"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	x.a.server.Handler.ServeHTTP(w, r)
	var m map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
		x.t.Fatalf("%s: %v", w.Body, err)
	}
	return w.Code, m
}

// chat sends the messages of a chat and returns the answer's message and finish reason, or the error's code and message.
func (x *played) chat(fields string, messages ...string) (string, string) {
	code, m := x.post("chat/completions", `{"messages": [`+strings.Join(messages, ",")+`]`+fields+`}`)
	return first(code, m)
}

func first(code int, m map[string]any) (string, string) {
	if code != http.StatusOK {
		e := m["error"].(map[string]any)
		return fmt.Sprint(code, " ", e["code"], " ", e["param"]), e["message"].(string)
	}
	c := m["choices"].([]any)[0].(map[string]any)
	if text, ok := c["text"]; ok {
		return text.(string), c["finish_reason"].(string)
	}
	b, _ := json.Marshal(c["message"])
	return string(b), c["finish_reason"].(string)
}

func user(text string) string   { return fmt.Sprintf(`{"role": "user", "content": %q}`, text) }
func repeat(text string) string { return fmt.Sprintf(`{"role": "assistant", "content": %q}`, text) }

const refusal = `,"refusal":null,"role":"assistant"}`

func TestConversation(t *testing.T) {
	x := playedBy(t, options(), &policy{says: []string{"<think>hm</think>\n one ", "two", "three"}})
	got, why := x.chat("", user("a"))
	if got != `{"content":"\u003cthink\u003ehm\u003c/think\u003e\n one "`+refusal || why != "stop" {
		t.Fatalf("%s, %s", got, why)
	}
	for name, messages := range map[string][]string{
		"messages[1], of role assistant, is not what was said":             {user("a"), repeat("other"), user("b")},
		"messages[0], of role user, is not what was said":                  {user("A"), repeat("one"), user("b")},
		"messages[1], of role user, is not what was said":                  {user("a"), user("one"), user("b")},
		"there are 2 messages, and 2 have been said: nothing is new":       {user("a"), repeat("one")},
		"there are 1 messages, and 2 have been said: nothing is new":       {user("a")},
		`an episode is one conversation, in which each request repeats`:    {user("z")},
		"unless rollout.tools.conversations is last or all":                {user("z")},
		"messages[1], of role assistant, is not what was said: an episode": {user("a"), `{"role": "assistant", "content": "one", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}`, user("b")},
	} {
		if got, why := x.chat("", messages...); got != "400 other_conversation <nil>" || !strings.Contains(why, name) {
			t.Errorf("%v: %s, %s; want %s", messages, got, why, name)
		}
	}
	if len(x.p.asked) != 1 || len(x.turns) != 1 {
		t.Fatalf("refused requests asked the policy: %+v", x.p.asked)
	}
	// Thoughts and space may be left out of the answer; the policy's context keeps them.
	if got, why := x.chat("", user("a"), repeat("one"), user("b"), user("c")); !strings.Contains(got, "two") || why != "stop" {
		t.Fatalf("%s, %s", got, why)
	}
	if got, why := x.chat("", user("a"), repeat("<think>hm</think>\n one"), user("b"), user("c"), repeat("two"), `{"role": "user", "content": [{"type": "text", "text": "d"}]}`); !strings.Contains(got, "three") || why != "stop" {
		t.Fatalf("%s, %s", got, why)
	}
	want := "[user]a><think>hm</think>\n one \x00(0)[user]b[user]c>two\x00(0)[user]d>"
	if got := x.p.asked[2]; got.prompt != want || got.seed != 1002 {
		t.Errorf("asked %q with seed %d, want %q", got.prompt, got.seed, want)
	}
	c := x.end()
	if c.Text != "<think>hm</think>\n one (0)[user]b[user]c>two(0)[user]d>three" || c.Asked.Text != "[user]a>" || c.Turns() != 3 || c.Finish != rollout.FinishStop {
		t.Errorf("%+v", c)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	for i, s := range c.Inserted {
		if text := c.Text[s.TextStart:s.TextEnd]; string(text) != []string{"(0)[user]b[user]c>", "(0)[user]d>"}[i] {
			t.Errorf("inserted part %d is %q", i, text)
		}
	}
	mask := make([]bool, len(c.Tokens))
	c.Sampled(mask)
	for i, yes := range mask {
		if yes != (c.LogProbs[i] != 0) || yes != (c.Entropies[i] != 0) {
			t.Fatalf("token %d: sampled %v, log-prob %v", i, yes, c.LogProbs[i])
		}
	}
	if got, _ := x.chat("", user("z")); got != "410 episode_over <nil>" {
		t.Errorf("after the end: %s", got)
	}
	if _, err := x.ask(context.Background(), &openai.Request{N: 1, Texts: []string{"late"}}); err != errOver {
		t.Errorf("a request that comes with the end: %v", err)
	}
}

// A turn that ends within a character reaches the agent as JSON can say it, and goes on from there.
func TestCutCharacters(t *testing.T) {
	x := playedBy(t, options(), &policy{says: []string{"caf\xc3\xa9\xe2\x82", "two"}})
	if got, _ := x.chat("", user("a")); got != "{\"content\":\"café\uFFFD\""+refusal {
		t.Fatalf("%s", got)
	}
	if got, why := x.chat("", user("a"), repeat("café\uFFFD"), user("b")); why != "stop" {
		t.Errorf("%s, %s", got, why)
	}
	if got := x.p.asked[1].prompt; got != "[user]a>caf\xc3\xa9\xe2\x82\x00(0)[user]b>" {
		t.Errorf("asked %q", got)
	}
	x = playedBy(t, options(), &policy{says: []string{"\xe2\x82", "two"}})
	first(x.post("completions", `{"prompt": "a"}`))
	if got, why := first(x.post("completions", `{"prompt": "a\ufffd, b"}`)); why != "stop" {
		t.Errorf("%s, %s", got, why)
	}
}

func TestLastConversation(t *testing.T) {
	o := options()
	o.Conversations = Last
	x := playedBy(t, o, &policy{says: []string{"one", "two", "three"}})
	x.chat("", user("a"))
	x.chat("", user("b"))
	if got, why := x.chat("", user("b"), repeat("two"), user("c")); why != "stop" {
		t.Fatalf("%s, %s", got, why)
	}
	// The first conversation was given up: what continues it begins another.
	if got, why := x.chat("", user("a"), repeat("one"), user("c")); why != "stop" {
		t.Fatalf("%s, %s", got, why)
	}
	if got, why := x.chat("", user("d")); got != "400 too_many_turns <nil>" {
		t.Fatalf("%s, %s: turns of all conversations count", got, why)
	}
	if p := x.p.asked[3]; p.prompt != "[user]a[assistant]one[user]c>" || p.seed != 1003 {
		t.Errorf("%+v", p)
	}
	if c := x.end(); c.Asked.Text != "[user]a[assistant]one[user]c>" || c.Text != "one" || len(c.Inserted) != 0 || c.Finish != rollout.FinishTurns {
		t.Errorf("%+v", c)
	}
}

// All conversations of an episode are one completion, in the order in which they began, whichever goes on.
func TestAllConversations(t *testing.T) {
	o := options()
	o.Conversations, o.MaxConversations, o.MaxTurns = All, 3, 7
	x := playedBy(t, o, &policy{says: []string{"plan", "first", "same", "same", "again", "done"}})
	say := func(want string, messages ...string) {
		t.Helper()
		if got, why := x.chat("", messages...); why != "stop" || !strings.Contains(got, `"`+want+`"`) {
			t.Fatalf("%s, %s; want %s", got, why, want)
		}
	}
	say("plan", user("main"))
	say("first", user("main"), repeat("plan"), user("go"))
	say("same", user("sub"))                                                            // another begins
	say("same", user("sub"))                                                            // and one with the same prompt
	say("again", user("sub"), repeat("same"), user("on"))                               // goes on with the newer of the two
	say("done", user("main"), repeat("plan"), user("go"), repeat("first"), user("end")) // and the first goes on
	if got, why := x.chat("", user("new")); got != "400 too_many_conversations <nil>" ||
		why != "there are 1 messages, and 4 have been said: nothing is new, and the episode has 3 conversations, all of rollout.tools.max_conversations" {
		t.Errorf("%s, %s", got, why)
	}
	for i, want := range []string{"[user]main>", "[user]main>plan\x00(0)[user]go>", "[user]sub>", "[user]sub>",
		"[user]sub>same\x00(0)[user]on>", "[user]main>plan\x00(0)[user]go>first\x00(0)[user]end>"} {
		if got := x.p.asked[i]; got.prompt != want || i > 0 && got.seed != 1000+uint64(i) {
			t.Errorf("turn %d: asked %q with seed %d, want %q", i, got.prompt, got.seed, want)
		}
	}
	c := x.end()
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	later := c.Later()
	if c.Text != "plan(0)[user]go>first(0)[user]end>done"+"same"+"same(0)[user]on>again" || c.Asked.Text != "[user]main>" ||
		len(later) != 2 || later[0].Text != "[user]sub>" || c.Text[later[0].TextStart:later[1].TextStart] != "same" ||
		c.Asked.Final != 0 || c.LastTurn().Text != "done" || c.Turns() != 6 || c.Finish != rollout.FinishStop {
		t.Errorf("%+v, %+v", c, c.Asked)
	}
	texts := playedBy(t, o, &policy{says: []string{"b", "d"}})
	for _, prompt := range []string{"a", "c", "ab, ", "cd, "} {
		if got, why := first(texts.post("completions", fmt.Sprintf(`{"prompt": %q}`, prompt))); why != "stop" {
			t.Fatalf("%s, %s", got, why)
		}
	}
	// A text goes on where it stands, with nothing new, though it does not continue the other one.
	same := playedBy(t, o, &policy{says: []string{"b", "d", "e"}})
	for _, prompt := range []string{"a", "c", "ab"} {
		if got, why := first(same.post("completions", fmt.Sprintf(`{"prompt": %q}`, prompt))); why != "stop" {
			t.Fatalf("%s, %s", got, why)
		}
	}
	if c := same.end(); c.Text != "bed" || len(c.Later()) != 1 || c.Asked.Final != 0 {
		t.Errorf("%+v, %+v", c, c.Asked)
	}
	if c := texts.end(); c.Text != "b, bd, d" || len(c.Later()) != 1 || c.Asked.Final != 1 {
		t.Errorf("%+v, %+v", c, c.Asked)
	}
	// Of two that a request repeats, it continues the longer one, also if the other is newer.
	texts = playedBy(t, o, &policy{says: []string{"b", "d", "b", "f"}})
	for _, prompt := range []string{"a", "ab, c", "a", "ab, cd, e"} {
		if got, why := first(texts.post("completions", fmt.Sprintf(`{"prompt": %q}`, prompt))); why != "stop" {
			t.Fatalf("%s, %s", got, why)
		}
	}
	if c := texts.end(); c.Text != "b, cd, ef"+"b" || len(c.Later()) != 1 || c.Asked.Final != 0 || c.LastTurn().Text != "f" {
		t.Errorf("%+v, %+v", c, c.Asked)
	}
}

// A conversation that begins with much context has less room, and the first prompt is a problem's.
func TestRoomOfConversations(t *testing.T) {
	o := options()
	o.Conversations, o.MaxConversations = All, 9
	x := playedBy(t, o, &policy{says: []string{strings.Repeat("o", 200)}})
	if got, _ := x.chat("", user(strings.Repeat("a", 54))); got != "400 context_length_exceeded <nil>" {
		t.Errorf("%s", got)
	}
	for _, tt := range []struct{ chars, room int }{{1, 100}, {53, 100}, {54, 99}, {152, 1}} {
		if got, why := x.chat("", user(strings.Repeat("a", tt.chars))); why != "length" || !strings.Contains(got, `"`+strings.Repeat("o", tt.room)+`"`) {
			t.Errorf("after %d characters: %s, %s", tt.chars, got, why)
		}
	}
	if got, why := x.chat("", user(strings.Repeat("a", 153))); got != "400 too_many_turns <nil>" {
		t.Errorf("%s, %s", got, why)
	}
	o.MaxTurns = 9
	x = playedBy(t, o, &policy{says: []string{strings.Repeat("o", 200), "x"}})
	x.chat("", user("a"))
	if got, why := x.chat("", user(strings.Repeat("a", 153))); got != "400 context_length_exceeded <nil>" ||
		why != "the prompt has 160 tokens, data.max_prompt_tokens is 60, and with rollout.max_new_tokens a conversation has at most 160" {
		t.Errorf("%s, %s", got, why)
	}
	x.chat("", user(strings.Repeat("c", 140)))
	if got, why := x.chat("", user(strings.Repeat("c", 140)), repeat("x"), user("")); why == "" || x.p.asked[2].params.MaxNewTokens != 1 {
		t.Errorf("%s, %s, %+v", got, why, x.p.asked[2].params) // 147 tokens, 2 of an answer and 10 between leave 1 of 160
	}
	x.chat("", user(strings.Repeat("b", 150)))
	before := []string{user(strings.Repeat("b", 150)), repeat("x")}
	if got, why := x.chat("", append(before, user("c"))...); got != "400 context_length_exceeded <nil>" ||
		why != "the conversation has 2 tokens after its first prompt of 157, this request adds 11, and there is room for 3 (rollout.max_new_tokens)" {
		t.Errorf("%s, %s", got, why)
	}
}

// An answer that never arrived begins no conversation, and changes none.
func TestLostConversation(t *testing.T) {
	o := options()
	o.Conversations, o.MaxConversations = All, 2
	x := playedBy(t, o, &policy{says: []string{"one", "lost", "two", "lost", "three"}})
	lose := func(body string) {
		r := httptest.NewRequest(http.MethodPost, "/episode/"+x.key+"/v1/chat/completions", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		x.a.server.Handler.ServeHTTP(gone{httptest.NewRecorder()}, r)
	}
	x.chat("", user("a"))
	lose(`{"messages": [` + user("b") + `]}`)
	if got, why := x.chat("", user("b")); why != "stop" {
		t.Fatalf("%s, %s", got, why)
	}
	on := []string{user("a"), repeat("one"), user("c")}
	lose(`{"messages": [` + strings.Join(on, ",") + `]}`)
	if got, why := x.chat("", on...); why != "stop" {
		t.Fatalf("%s, %s", got, why)
	}
	if c := x.end(); c.Text != "one(0)[user]c>threetwo" || len(x.turns) != 3 || len(c.Later()) != 1 || c.Asked.Final != 0 || c.Check() != nil {
		t.Errorf("%d turns, %+v, %+v", len(x.turns), c, c.Asked)
	}
}

func TestLimits(t *testing.T) {
	x := playedBy(t, options(), &policy{says: []string{"one"}})
	if got, why := x.chat("", user(strings.Repeat("a", 54))); got != "400 context_length_exceeded <nil>" || why != "the prompt has 61 tokens, data.max_prompt_tokens is 60" {
		t.Errorf("%s, %s", got, why)
	}
	if got, why := x.chat("", user("unwritable")); got != "400 <nil> messages" || why != "messages: the template raises" {
		t.Errorf("%s, %s", got, why)
	}
	if got, why := x.chat("", user(strings.Repeat("a", 53))); why != "stop" {
		t.Errorf("%s, %s", got, why)
	}
	p := x.p.asked[0].params
	if p.MaxNewTokens != 100 || p.MinNewTokens != 2 || !slices.Equal(p.Stop, []string{"run's"}) || p.Temperature != 1 {
		t.Errorf("%+v", p)
	}
	before := []string{user(strings.Repeat("a", 53)), repeat("one")}
	if got, why := x.chat("", append(before, user(strings.Repeat("b", 86)))...); got != "400 context_length_exceeded <nil>" ||
		why != "the conversation has 4 tokens after its first prompt of 60, this request adds 96, and there is room for 100 (rollout.max_new_tokens)" {
		t.Errorf("%s, %s", got, why)
	}
	if x.finish != rollout.FinishLength {
		t.Errorf("finish %v, want length", x.finish)
	}
	if got, why := x.chat(`, "max_tokens": 50, "stop": "mine", "temperature": 0, "top_p": 0.5, "seed": 3, "min_tokens": 7, "frequency_penalty": 1`,
		append(before, user(strings.Repeat("b", 85)))...); !strings.Contains(got, `"o"`) || why != "length" {
		t.Errorf("%s, %s", got, why)
	}
	p = x.p.asked[1].params
	if p.MaxNewTokens != 1 || p.MinNewTokens != 1 || !slices.Equal(p.Stop, []string{"mine"}) || p.Temperature != 1 || p.TopP != 1 || p.Penalties.On() {
		t.Errorf("%+v", p)
	}
	if c := x.end(); len(c.Tokens) != 100 || c.Finish != rollout.FinishLength {
		t.Errorf("%d tokens, %v", len(c.Tokens), c.Finish)
	}

	x = playedBy(t, options(), &policy{says: []string{"one two"}})
	x.chat(`, "max_completion_tokens": 3`, user("a"))
	if x.talks[0].said.end != -1 {
		t.Errorf("a turn that was cut ends with token %d", x.talks[0].said.end)
	}
	x.chat("", user("a"), repeat("one"), user("b"))
	if got := x.p.asked[1].prompt; got != "[user]a>one(-1)[user]b>" {
		t.Errorf("after a turn that was cut: %q", got)
	}
	x = playedBy(t, options(), &policy{says: []string{"one two"}})
	if got, why := x.chat(`, "stop": ["t"]`, user("a")); !strings.Contains(got, `"one "`) || why != "stop" {
		t.Errorf("%s, %s", got, why)
	}
	x.chat("", user("a"), repeat("one"), user("b"))
	if got := x.p.asked[1].prompt; got != "[user]a>one t(-1)[user]b>" {
		t.Errorf("after a text that stops: %q", got)
	}
}

func TestUnfitRequests(t *testing.T) {
	x := playedBy(t, options(), &policy{says: []string{"one"}})
	for fields, want := range map[string]string{
		`, "n": 2`:                     "n: an episode has one answer to each request",
		`, "logprobs": true`:           "logprobs: agents get no log-probs",
		`, "logit_bias": {"1": 1}`:     "logit_bias: every answer is drawn from the policy as the run says",
		`, "ignore_eos": true`:         "ignore_eos: every answer is drawn from the policy as the run says",
		`, "stop_token_ids": [1]`:      "stop_token_ids: every answer is drawn from the policy as the run says",
		`, "chat_template_kwargs": {}`: "chat_template_kwargs: data.template_vars sets them for the whole run",
		`, "temperature": -1`:          "temperature is -1, must be 0 for the likeliest tokens, or 0.001 to 100",
		`, "tools": [{"type": "x"}]`:   `tools [0]: a tool must be {"type": "function", "function": {"name": …, "parameters": …}}`,
	} {
		if got, why := x.chat(fields, user("a")); !strings.HasPrefix(got, "400 ") || why != want {
			t.Errorf("%s: %s, %s; want %s", fields, got, why, want)
		}
	}
	for body, want := range map[string]string{`{"prompt": ["a", "b"]}`: "prompt: must be one text", `{"prompt": [1, 2]}`: "prompt: must be one text",
		`{"prompt": "a", "echo": true}`: "echo: agents know what they asked"} {
		if got, why := first(x.post("completions", body)); !strings.HasPrefix(got, "400 ") || why != want {
			t.Errorf("%s: %s, %s; want %s", body, got, why, want)
		}
	}
	if len(x.p.asked) > 0 {
		t.Errorf("unfit requests asked the policy: %+v", x.p.asked)
	}
	if got, why := first(x.post("embeddings", "{}")); !strings.HasPrefix(got, "404 ") || !strings.Contains(why, "an episode has POST chat/completions") {
		t.Errorf("%s, %s", got, why)
	}
	r := httptest.NewRequest(http.MethodGet, "/episode/"+x.key+"/v1/models", nil)
	w := httptest.NewRecorder()
	x.a.server.Handler.ServeHTTP(w, r)
	if got, want := strings.TrimSpace(w.Body.String()), `{"data":[{"created":0,"id":"policy","max_model_len":160,"object":"model","owned_by":"exp"}],"object":"list"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	o := options()
	o.Chats = false
	x = playedBy(t, o, &policy{says: []string{"one"}})
	if got, why := x.chat("", user("a")); got != "400 <nil> messages" || why != "the run has no chat template (data.chat): ask /v1/completions" {
		t.Errorf("%s, %s", got, why)
	}
}

// Requests may want answers of a form, which the policy's draws then have.
func TestForms(t *testing.T) {
	o := options()
	o.Forms = form.NewCache(asciiTokens{})
	x := playedBy(t, o, &policy{says: []string{"12", "one"}})
	if got, why := x.chat(`, "guided_regex": "[0-9]+"`, user("a")); !strings.Contains(got, `"12"`) || why != "stop" {
		t.Fatalf("%s, %s", got, why)
	}
	f := x.p.asked[0].params.Form
	if f == nil || f.Begin().Next('1') == nil || f.Begin().Next('a') != nil {
		t.Errorf("the form is %v", f)
	}
	for fields, want := range map[string]string{
		`, "guided_regex": "[0-9"`: "guided_regex: missing closing ]",
		`, "response_format": {"type": "json_schema", "json_schema": {"schema": {"contains": {}}}}`: `response_format: the schema has "contains", which is not supported`,
		`, "tool_choice": "required"`: "tool_choice asks for a call, but the request has no tools",
	} {
		if got, why := x.chat(fields, user("a"), repeat("12"), user("b")); !strings.HasPrefix(got, "400 ") || !strings.HasPrefix(why, want) {
			t.Errorf("%s: %s, %s; want %s", fields, got, why, want)
		}
	}
	if got, why := x.chat("", user("a"), repeat("12"), user("b")); !strings.Contains(got, `"one"`) || why != "stop" {
		t.Fatalf("%s, %s", got, why)
	}
	if len(x.p.asked) != 2 || x.p.asked[1].params.Form != nil {
		t.Errorf("the policy was asked %+v", x.p.asked)
	}
	x = playedBy(t, o, &policy{says: []string{"<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>"}})
	if got, why := x.chat(`, "tools": [{"type":"function","function":{"name":"f"}}], "tool_choice": "required"`,
		user("a")); !strings.Contains(got, `"name":"f"`) || why != "tool_calls" {
		t.Errorf("%s, %s", got, why)
	}
	if f := x.p.asked[0].params.Form; f == nil || f.Begin().Next('<') == nil || f.Begin().Next('{') != nil {
		t.Error("calls are not asked for")
	}
}

// asciiTokens are characters.
type asciiTokens struct{}

func (asciiTokens) VocabSize() int { return 128 }
func (asciiTokens) Piece(id int32) []byte {
	if id == 0 {
		return nil
	}
	return []byte{byte(id)}
}

func TestTexts(t *testing.T) {
	x := playedBy(t, options(), &policy{says: []string{"=2", "=4"}})
	if got, why := first(x.post("completions", `{"prompt": "1+1"}`)); got != "=2" || why != "stop" {
		t.Fatalf("%s, %s", got, why)
	}
	if got, why := first(x.post("completions", `{"prompt": "1+1=3"}`)); got != "400 other_conversation <nil>" || !strings.Contains(why, "does not begin with the prompt before and its answer") {
		t.Errorf("%s, %s", got, why)
	}
	if got, why := x.chat("", user("a")); got != "400 other_conversation <nil>" || !strings.Contains(why, "chats and texts do not continue each other") {
		t.Errorf("%s, %s", got, why)
	}
	if got, why := first(x.post("completions", `{"prompt": "1+1=2, 2+2"}`)); got != "=4" || why != "stop" {
		t.Fatalf("%s, %s", got, why)
	}
	if got, why := first(x.post("completions", `{"prompt": "1+1=2, 2+2=4"}`)); got != "=2" || why != "stop" { // nothing new: the policy goes on
		t.Fatalf("%s, %s", got, why)
	}
	if got := x.p.asked[2].prompt; got != "1+1=2\x00, 2+2=4\x00" {
		t.Errorf("asked %q", got)
	}
	if c := x.end(); c.Text != "=2, 2+2=4=2" || c.Turns() != 2 || c.Asked.Text != "1+1" {
		t.Errorf("%+v", c)
	}
}

// roomy are options for long prompts.
func roomy() Options {
	o := options()
	o.MaxPrompt = 200
	return o
}

const weather = `, "tools": [{"type": "function", "function": {"name": "w", "parameters": {}}}]`

func TestCalls(t *testing.T) {
	call := "<tool_call>\n{\"name\": \"w\", \"arguments\": {\"b\": 1, \"a\": 2.50}}\n</tool_call>"
	x := playedBy(t, roomy(), &policy{says: []string{"I look. " + call + call, "sunny"}})
	got, why := x.chat(weather, user("a"))
	if why != "tool_calls" {
		t.Fatalf("%s, %s", got, why)
	}
	want := `{"content":"I look.","refusal":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{\"b\": 1, \"a\": 2.50}","name":"w"},"id":"call00000","type":"function"},{"function":{"arguments":"{\"b\": 1, \"a\": 2.50}","name":"w"},"id":"call00001","type":"function"}]}`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	message := func(arguments string) string {
		calls := fmt.Sprintf(`{"id": "call00000", "type": "function", "function": {"name": "w", "arguments": %q}}`, arguments)
		return `{"role": "assistant", "content": "I look.", "tool_calls": [` + calls + "," + calls + `]}`
	}
	tool := `{"role": "tool", "tool_call_id": "call00000", "content": "21"}`
	if got, why := x.chat(weather, user("a"), message(`{"a": 2.5, "b": 1}`), tool); got != "400 other_conversation <nil>" {
		t.Errorf("other arguments: %s, %s", got, why)
	}
	if got, why := x.chat("", user("a"), message(`{"a":2.50,"b":1}`), tool); got != "400 other_conversation <nil>" || !strings.HasPrefix(why, "the tools are others than in the request before") {
		t.Errorf("without tools: %s, %s", got, why)
	}
	if got, why := x.chat(weather, user("a"), message(`{"a":2.50,"b":1}`), tool); !strings.Contains(got, "sunny") || why != "stop" {
		t.Fatalf("%s, %s", got, why)
	}
	if got := x.p.asked[1].prompt; !strings.HasSuffix(got, call+"\x00(0)[tool]21>") || !strings.HasPrefix(got, `[{"type"`) {
		t.Errorf("asked %q", got)
	}
	x = playedBy(t, roomy(), &policy{says: []string{call}})
	x.chat(weather, user("a"))
	if got, _ := x.chat(weather, user("a"), strings.Replace(message(`{"a":2.50,"b":1}`), "I look.", "", 1), tool); got != "400 other_conversation <nil>" {
		t.Errorf("two calls for one: %s", got)
	}
	one := `{"role": "assistant", "content": null, "tool_calls": [{"id": "call00000", "type": "function", "function": {"name": "w", "arguments": "{\"a\":2.50,\"b\":1}"}}]}`
	if got, why := x.chat(weather, user("a"), one, tool); !strings.Contains(got, `"id":"call00001"`) || why != "tool_calls" {
		t.Errorf("the second call of an episode: %s, %s", got, why)
	}
	// A turn that was cut keeps the calls that it finished.
	x = playedBy(t, roomy(), &policy{says: []string{call + " and"}})
	if got, why := x.chat(weather+fmt.Sprintf(`, "max_tokens": %d`, len(call)+1), user("a")); !strings.Contains(got, "tool_calls") || why != "length" {
		t.Errorf("%s, %s", got, why)
	}
	x = playedBy(t, roomy(), &policy{says: []string{call + call}})
	if got, why := x.chat(weather+`, "parallel_tool_calls": false`, user("a")); strings.Count(got, `"type":"function"`) != 1 || why != "tool_calls" {
		t.Errorf("one call: %s, %s", got, why)
	}
	// Thoughts make no calls, even if the prompt opened them.
	x = playedBy(t, roomy(), &policy{says: []string{call + "</think>"}})
	if got, why := x.chat(weather, user("a"), user("<think>")); !strings.Contains(got, "tool_calls") || why != "tool_calls" {
		t.Errorf("%s, %s", got, why)
	}
	o := roomy()
	o.Chat = func(list []rollout.Message, tools json.RawMessage, _ ...rollout.Picture) ([]int32, string, error) {
		return bytesOf("><think>\n"), "><think>\n", nil
	}
	x = playedBy(t, o, &policy{says: []string{call + "</think>"}})
	if got, why := x.chat(weather, user("a")); strings.Contains(got, "tool_calls") || why != "stop" {
		t.Errorf("%s, %s", got, why)
	}
	// Marks may be special tokens, without a text.
	o = roomy()
	o.Calls, _ = toolcall.SyntaxNamed(toolcall.Mistral)
	o.Spelled = map[int32]string{'#': "[TOOL_CALLS]"}
	o.Piece = func(id int32) []byte { return bytes.Trim([]byte{byte(id)}, "#\x00") }
	x = playedBy(t, o, &policy{says: []string{`#[{"name": "w", "arguments": {"a": 1}}]`}})
	if got, why := x.chat(weather, user("a")); !strings.Contains(got, `"arguments":"{\"a\": 1}","name":"w"`) || why != "tool_calls" {
		t.Errorf("%s, %s", got, why)
	}
	// Without tools in the request, calls are text.
	x = playedBy(t, roomy(), &policy{says: []string{call}})
	if got, why := x.chat("", user("a")); !strings.Contains(got, "tool_call") || strings.Contains(got, "tool_calls") || why != "stop" {
		t.Errorf("%s, %s", got, why)
	}
	x = playedBy(t, roomy(), &policy{says: []string{call}})
	if got, why := x.chat(weather+`, "tool_choice": "none"`, user("a")); strings.Contains(got, "tool_calls") || why != "stop" || x.p.asked[0].prompt != "[user]a>" {
		t.Errorf("%s, %s, %q", got, why, x.p.asked[0].prompt)
	}
}

func TestStream(t *testing.T) {
	x := playedBy(t, roomy(), &policy{says: []string{`<tool_call>{"name": "w", "arguments": {}}</tool_call>`, "two"}})
	stream := func(path, body string) (list []string) {
		r := httptest.NewRequest(http.MethodPost, "/episode/"+x.key+"/v1/"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
		w := httptest.NewRecorder()
		x.a.server.Handler.ServeHTTP(w, r)
		if kind := w.Header().Get("Content-Type"); kind != "text/event-stream" {
			t.Errorf("%s: %s", kind, w.Body)
		}
		for lines := bufio.NewScanner(w.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				list = append(list, data)
			}
		}
		return list
	}
	head := `"created":0,"id":"chatcmpl-1","model":"policy","object":"chat.completion.chunk"`
	want := []string{`{"choices":[{"delta":{"content":null,"refusal":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"w"},"id":"call00000","index":0,"type":"function"}]},"finish_reason":null,"index":0}],` + head + `}`,
		`{"choices":[{"delta":{},"finish_reason":"tool_calls","index":0,"logprobs":null}],` + head + `}`,
		`{"choices":[],` + head + `,"usage":{"completion_tokens":54,"prompt_tokens":75,"total_tokens":129}}`, "[DONE]"}
	got := stream("chat/completions", `{"stream": true, "stream_options": {"include_usage": true}, "messages": [`+user("a")+`]`+weather+`}`)
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	x = playedBy(t, roomy(), &policy{says: []string{"two"}})
	got = stream("completions", `{"stream": true, "prompt": "one"}`)
	want = []string{`{"choices":[{"finish_reason":"stop","index":0,"logprobs":null,"text":"two"}],"created":0,"id":"cmpl-1","model":"policy","object":"text_completion"}`, "[DONE]"}
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

// TestClientLeaves: a turn that its client never got does not count, and is drawn again with the same seed.
func TestClientLeaves(t *testing.T) {
	p := &policy{says: []string{"one", "two"}, wait: make(chan struct{})}
	x := playedBy(t, options(), p)
	ctx, leave := context.WithCancel(context.Background())
	r := httptest.NewRequest(http.MethodPost, "/episode/"+x.key+"/v1/completions", strings.NewReader(`{"prompt": "a"}`)).WithContext(ctx)
	r.Header.Set("Content-Type", "application/json")
	done := make(chan struct{})
	go func() {
		x.a.server.Handler.ServeHTTP(httptest.NewRecorder(), r)
		close(done)
	}()
	time.Sleep(10 * time.Millisecond)
	leave()
	<-done
	close(p.wait)
	if len(x.turns) != 0 || x.talks != nil {
		t.Fatalf("%d turns, %+v", len(x.turns), x.talks)
	}
	// The answer is lost on its way.
	r = httptest.NewRequest(http.MethodPost, "/episode/"+x.key+"/v1/completions", strings.NewReader(`{"prompt": "a"}`))
	r.Header.Set("Content-Type", "application/json")
	x.a.server.Handler.ServeHTTP(gone{httptest.NewRecorder()}, r)
	if len(x.turns) != 0 || x.talks != nil {
		t.Fatalf("%d turns, %+v", len(x.turns), x.talks)
	}
	if got, why := first(x.post("completions", `{"prompt": "a"}`)); why != "stop" {
		t.Fatalf("%s, %s", got, why)
	}
	for i, q := range p.asked {
		if q.seed != 10 || q.prompt != "a" {
			t.Errorf("request %d: %+v", i, q)
		}
	}
	// So is the second turn's.
	said := x.talks[0].c.Text
	second := fmt.Sprintf(`{"prompt": "a%s+"}`, said)
	r = httptest.NewRequest(http.MethodPost, "/episode/"+x.key+"/v1/completions", strings.NewReader(second))
	r.Header.Set("Content-Type", "application/json")
	x.a.server.Handler.ServeHTTP(gone{httptest.NewRecorder()}, r)
	if len(x.turns) != 1 || x.talks[0].c.Text != said {
		t.Fatalf("%d turns, %+v", len(x.turns), x.talks)
	}
	if got, why := first(x.post("completions", second)); why != "stop" || p.asked[3].seed != p.asked[4].seed {
		t.Fatalf("%s, %s, %+v", got, why, p.asked)
	}
	if c := x.end(); len(p.asked) != 5 || len(x.turns) != 2 || c.Turns() != 2 || c.Check() != nil {
		t.Errorf("%d requests, %d turns", len(p.asked), len(x.turns))
	}
}

// An answer that was lost stays if another has followed it: the later one's seed and number depend on it.
func TestLostBeforeAnother(t *testing.T) {
	o := options()
	o.Conversations, o.MaxConversations = All, 2
	x := playedBy(t, o, &policy{says: []string{"one", "two"}})
	ask := func(text string) *answer {
		a, err := x.ask(context.Background(), &openai.Request{N: 1, Texts: []string{text}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	lost, next := ask("a"), ask("b")
	x.undo(lost)
	if len(x.turns) != 2 || len(x.talks) != 2 {
		t.Errorf("the first answer is lost: %d turns, %d conversations", len(x.turns), len(x.talks))
	}
	x.undo(next)
	if c := x.end(); len(x.turns) != 1 || c.Text != "one" {
		t.Errorf("then the second one: %d turns, %+v", len(x.turns), c)
	}
}

// A prompt with an empty answer, asked again, begins another conversation where it may. A text that repeats a prompt with
// an answer goes on.
func TestEmptyAnswers(t *testing.T) {
	o := options()
	o.Conversations, o.MaxConversations, o.MaxTurns = All, 3, 9
	x := playedBy(t, o, &policy{says: []string{"", "\n", "", "long text", " end"}})
	say := func(body, want, finish string) {
		t.Helper()
		if got, why := first(x.post("completions", body)); got != want || why != finish {
			t.Fatalf("%s: %q, %s", body, got, why)
		}
	}
	say(`{"prompt": "a"}`, "", "stop")
	say(`{"prompt": "a", "stop": ["\n"]}`, "", "stop")
	say(`{"prompt": "a"}`, "", "stop")
	if got, why := first(x.post("completions", `{"prompt": "a"}`)); got != "400 too_many_conversations <nil>" || !strings.HasPrefix(why, "the prompt is the one before, which has an empty answer: nothing is new, and") {
		t.Errorf("%s, %s", got, why)
	}
	say(`{"prompt": "a b", "max_tokens": 4}`, "long", "length")
	say(`{"prompt": "a blong"}`, " end", "stop")
	say(`{"prompt": "a blong end"}`, "", "stop")
	c := x.end()
	if c.Text != " blong end" || len(c.Later()) != 2 || len(c.Tokens) != 1+1+1+2+4+5+1 || c.Asked.Final != 2 || c.Check() != nil || c.LastTurn().Text != "long end" {
		t.Errorf("%+v, %+v, %v", c, c.Asked, c.Check())
	}
	x = playedBy(t, options(), &policy{says: []string{"", "one"}})
	say(`{"prompt": "a"}`, "", "stop")
	say(`{"prompt": "a"}`, "one", "stop")
}

// An episode that ends, because its program died, does not wait for the turn that was asked.
func TestEndWhileAsking(t *testing.T) {
	p := &policy{says: []string{"one"}, wait: make(chan struct{})}
	x := playedBy(t, options(), p)
	answered := make(chan string)
	go func() {
		got, _ := x.chat("", user("a"))
		answered <- got
	}()
	for asked := false; !asked; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		asked = len(p.asked) > 0
		p.mu.Unlock()
	}
	if c := x.end(); c.Asked != nil {
		t.Errorf("%+v", c)
	}
	if got := <-answered; got != "410 episode_over <nil>" {
		t.Errorf("%s", got)
	}
}

// gone is a client to which nothing can be written.
type gone struct{ http.ResponseWriter }

func (gone) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
