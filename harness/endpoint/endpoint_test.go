package endpoint

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"exp/harness/config"
	"exp/harness/evaluate"
	"exp/harness/inspect"
	"exp/harness/openai"
	"exp/kernels/cpu"
	"exp/train/checkpoint/checkpointtest"
)

const template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% if loud %}!{% endif %}{% endfor %}" +
	"{% if add_generation_prompt %}<assistant>{% endif %}"

// opened serves a tiny model, with settings of the run that made it.
func opened(t testing.TB, o Options, own ...config.Value) (*Server, *httptest.Server) {
	t.Helper()
	o.Clock = time.Now
	s := NewServer(tiny(t, template, own...), o)
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return s, h
}

// opens serves a model.
func opens(t testing.TB, x *Model) *httptest.Server {
	h := httptest.NewServer(NewServer(x, Options{Clock: time.Now}))
	t.Cleanup(h.Close)
	return h
}

// tiny opens a tiny model with a chat template.
func tiny(t testing.TB, template string, own ...config.Value) *Model {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	be, err := cpu.Open(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	checkpointtest.WriteBytes(t, be, dir, 256, template)
	r, err := evaluate.Folder{Folder: inspect.Folder{Dir: dir}, Own: own, Values: Values(256)}.Config()
	if err != nil {
		t.Fatal(err)
	}
	x, err := Open(r, be, "tiny")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	return x
}

// post returns the status and the body of an answer.
func post(t testing.TB, url, body string) (int, string) {
	t.Helper()
	r, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// reply is an answer, or a part of a stream.
type reply struct {
	Object  string
	Choices []struct {
		Text         string
		Index        int
		FinishReason *string `json:"finish_reason"`
		Message      struct{ Role, Content string }
		Delta        struct{ Role, Content string }
		Logprobs     *struct {
			Tokens  []string
			Probs   []*float64           `json:"token_logprobs"`
			Tops    []map[string]float64 `json:"top_logprobs"`
			Offset  []int                `json:"text_offset"`
			Content []struct {
				Token   string
				Logprob float64
				Top     []struct{ Logprob float64 } `json:"top_logprobs"`
			}
		}
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
			Images int `json:"image_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

// ask posts a request that is answered.
func ask(t testing.TB, url, body string) (r reply) {
	t.Helper()
	code, text := post(t, url, body)
	if err := json.Unmarshal([]byte(text), &r); code != 200 || err != nil {
		t.Fatalf("%s: %d %s", body, code, text)
	}
	return r
}

// stream posts a request that is answered with events.
func stream(t testing.TB, url, body string) (list []reply) {
	t.Helper()
	code, text := post(t, url, body)
	done := false
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var r reply
		switch {
		case data == "[DONE]":
			done = true
		case ok && json.Unmarshal([]byte(data), &r) == nil:
			list = append(list, r)
		case lines.Text() != "":
			t.Errorf("line %q", lines.Text())
		}
	}
	if code != 200 || !done {
		t.Fatalf("%s: %d %s", body, code, text)
	}
	return list
}

func TestAnswers(t *testing.T) {
	_, h := opened(t, Options{})
	texts, chats := h.URL+"/v1/completions", h.URL+"/v1/chat/completions"

	r := ask(t, chats, `{"model":"tiny","messages":[{"role":"user","content":"hi"}],"max_tokens":5,"seed":1,"n":2,"ignore_eos":true}`)
	prompt := len("<user>hi<assistant>")
	if len(r.Choices) != 2 || r.Object != "chat.completion" || r.Usage.Prompt != prompt || r.Usage.Completion != 10 ||
		r.Usage.Total != prompt+10 || r.Choices[1].Index != 1 || r.Choices[0].Message.Role != "assistant" ||
		*r.Choices[0].FinishReason != "length" || r.Choices[0].Message == r.Choices[1].Message {
		t.Errorf("%+v %+v", r, r.Usage)
	}
	// The same chat as a text, in parts, as tokens, and with a variable of the template.
	same := ask(t, texts, `{"prompt":"<user>hi<assistant>","max_tokens":5,"seed":1,"ignore_eos":true}`)
	if same.Choices[0].Text != r.Choices[0].Message.Content {
		t.Errorf("%q, the chat %q", same.Choices[0].Text, r.Choices[0].Message.Content)
	}
	loud := ask(t, chats, `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"max_tokens":5,"seed":1,`+
		`"ignore_eos":true,"chat_template_kwargs":{"loud":true}}`)
	if loud.Usage.Prompt != prompt+1 {
		t.Errorf("%+v", loud.Usage)
	}

	// Scores of an echoed prompt equal the scores of the next tokens, one at a time.
	e := ask(t, texts, `{"prompt":["abc","de"],"max_tokens":1,"temperature":0,"echo":true,"logprobs":1}`)
	lp := e.Choices[0].Logprobs
	if len(e.Choices) != 2 || !strings.HasPrefix(e.Choices[0].Text, "abc") || len(lp.Tokens) != 4 || lp.Probs[0] != nil ||
		lp.Tops[0] != nil || !reflect.DeepEqual(lp.Offset, []int{0, 1, 2, 3}) {
		t.Fatalf("%+v, %+v", e.Choices, lp)
	}
	all := ask(t, texts, `{"prompt":"ab","max_tokens":1,"temperature":0,"logprobs":20}`)
	if p := all.Choices[0].Logprobs.Tops[0]; p["c"] != 0 && p["c"] != *lp.Probs[2] {
		t.Errorf("%v of c, %v in a prompt", p["c"], *lp.Probs[2])
	}
	zero := ask(t, texts, `{"prompt":"abc","max_tokens":0,"echo":true,"logprobs":1}`)
	if z := zero.Choices[0]; z.Text != "abc" || len(z.Logprobs.Tokens) != 3 || *z.Logprobs.Probs[2] != *lp.Probs[2] ||
		zero.Usage.Completion != 0 {
		t.Errorf("%+v %+v", z, z.Logprobs)
	}
	c := ask(t, chats, `{"messages":[{"role":"user","content":"hi"}],"max_tokens":3,"temperature":0,"logprobs":true,"top_logprobs":2}`)
	for _, s := range c.Choices[0].Logprobs.Content {
		if len(s.Top) != 2 || s.Top[0].Logprob != s.Logprob || s.Top[1].Logprob > s.Logprob {
			t.Errorf("greedy: %+v", s)
		}
	}
}

// A stream has the texts and the scores of the whole answer.
func TestStream(t *testing.T) {
	_, h := opened(t, Options{})
	texts, chats := h.URL+"/v1/completions", h.URL+"/v1/chat/completions"
	for seed := range 6 {
		body := fmt.Sprintf(`"max_tokens":60,"seed":%d,"stop":["e","xy"],"n":2`, seed)
		whole := ask(t, chats, `{"messages":[{"role":"user","content":"hi"}],"logprobs":true,`+body+`}`)
		parts := stream(t, chats, `{"messages":[{"role":"user","content":"hi"}],"logprobs":true,`+body+`,"stream":true,"stream_options":{"include_usage":true}}`)
		got, tokens, roles := make([]string, 2), make([]int, 2), 0
		for _, p := range parts[:len(parts)-1] {
			d := p.Choices[0]
			got[d.Index] += d.Delta.Content
			if d.Logprobs != nil {
				tokens[d.Index] += len(d.Logprobs.Content)
			}
			if d.Delta.Role != "" {
				roles++
			}
		}
		for k, c := range whole.Choices {
			if got[k] != c.Message.Content || tokens[k] != len(c.Logprobs.Content) || strings.Contains(got[k], "e") {
				t.Errorf("%q with %d scores, streamed %q with %d", c.Message.Content, len(c.Logprobs.Content), got[k], tokens[k])
			}
		}
		u := parts[len(parts)-1].Usage
		u.Details = whole.Usage.Details // the stream finds what the whole answer has computed
		if roles != 2 || *u != *whole.Usage {
			t.Errorf("%d roles, usage %+v", roles, u)
		}
		one := ask(t, texts, `{"prompt":"abc","echo":true,"logprobs":0,`+body+`}`).Choices[0]
		text, offset := "", []int{}
		for _, p := range stream(t, texts, `{"prompt":"abc","echo":true,"logprobs":0,`+body+`,"stream":true}`) {
			if d := p.Choices[0]; d.Index == 0 {
				text += d.Text
				offset = append(offset, d.Logprobs.Offset...)
			}
		}
		if text != one.Text || !reflect.DeepEqual(offset, one.Logprobs.Offset) {
			t.Errorf("%q %v, streamed %q %v", one.Text, one.Logprobs.Offset, text, offset)
		}
	}
}

// A prompt may fill the context if nothing is asked for but its scores.
func TestFullPrompt(t *testing.T) {
	_, h := opened(t, Options{})
	url := h.URL + "/v1/completions"
	text := strings.Repeat("ab", 128)
	body := func(text, more string) string {
		return fmt.Sprintf(`{"prompt":%q,"logprobs":1,"echo":true%s}`, text, more)
	}
	full, less := ask(t, url, body(text, `,"max_tokens":0`)).Choices[0], ask(t, url, body(text[:255], `,"max_tokens":0`)).Choices[0]
	if full.Text != text || len(full.Logprobs.Tokens) != 256 || *full.FinishReason != "length" ||
		!reflect.DeepEqual(full.Logprobs.Probs[:255], less.Logprobs.Probs) || full.Logprobs.Probs[255] == nil {
		t.Errorf("%q, %d scores", full.Text, len(full.Logprobs.Tokens))
	}
	for _, more := range []string{"", `,"max_tokens":1`} {
		if code, answer := post(t, url, body(text, more)); code != 400 || !strings.Contains(answer, "context_length_exceeded") {
			t.Errorf("%q: %d %s", more, code, answer)
		}
	}
	if code, answer := post(t, url, body(text+"a", `,"max_tokens":0`)); code != 400 || !strings.Contains(answer, "prompt has 257 tokens") {
		t.Errorf("%d %s", code, answer)
	}
}

// What a run has set for its own completions holds for requests that say nothing else.
func TestOwnSettings(t *testing.T) {
	const m = `{"messages":[{"role":"user","content":"hi"}],"temperature":0,"max_tokens":20`
	_, plain := opened(t, Options{})
	chats := "/v1/chat/completions"
	whole := ask(t, plain.URL+chats, m+`,"ignore_eos":true}`)
	said := whole.Choices[0].Message.Content
	at := strings.IndexFunc(said[2:], func(c rune) bool { return c < utf8.RuneSelf }) + 2
	stop := said[at : at+1]
	before, _, _ := strings.Cut(said, stop)
	_, own := opened(t, Options{}, config.Value{Path: "rollout.stop", Value: []string{stop}},
		config.Value{Path: "data.template_vars", Value: map[string]any{"loud": true}})
	r := ask(t, own.URL+chats, m+`,"chat_template_kwargs":{"loud":false}}`)
	if c := r.Choices[0]; c.Message.Content != before || *c.FinishReason != "stop" || r.Usage.Prompt != whole.Usage.Prompt {
		t.Errorf("%q %s, without the run's settings %q, which ends at %q", c.Message.Content, *c.FinishReason, said, stop)
	}
	if r := ask(t, own.URL+chats, m+`,"stop":[],"chat_template_kwargs":{"loud":false},"ignore_eos":true}`); r.Choices[0].Message.Content != said {
		t.Errorf("a request's own stop texts: %q, want %q", r.Choices[0].Message.Content, said)
	}
	if r := ask(t, own.URL+chats, m+`}`); r.Usage.Prompt != whole.Usage.Prompt+1 {
		t.Errorf("%d tokens of prompt, without the run's variable %d", r.Usage.Prompt, whole.Usage.Prompt)
	}
	_, ids := opened(t, Options{}, config.Value{Path: "rollout.stop_ids", Value: []string{fmt.Sprint(said[0])}})
	if r := ask(t, ids.URL+chats, m+`}`); r.Usage.Completion != 1 || *r.Choices[0].FinishReason != "stop" {
		t.Errorf("the run's stop token: %+v", r)
	}
}

// A server that stops refuses requests, and lets those that it has begun end for a while.
func TestStops(t *testing.T) {
	for _, tt := range []struct {
		name  string
		grace time.Duration
		ends  bool
	}{{"in time", time.Minute, true}, {"too late", 10 * time.Millisecond, false}} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			waits := make(chan int, 1)
			s := NewServer(tiny(t, template), Options{Clock: time.Now, Grace: tt.grace, Waits: func(open int) { waits <- open }})
			ctx, cancel := context.WithCancel(context.Background())
			served := make(chan error, 1)
			go func() { served <- s.Serve(ctx, l) }()
			url := "http://" + l.Addr().String() + "/v1/completions"

			// A request that has begun, and whose body goes on when the server stops.
			body, write := io.Pipe()
			type result struct {
				code int
				text string
			}
			answered := make(chan result, 1)
			go func() {
				r, err := http.Post(url, "application/json", body)
				if err != nil {
					answered <- result{0, err.Error()}
					return
				}
				defer r.Body.Close()
				b, _ := io.ReadAll(r.Body)
				answered <- result{r.StatusCode, string(b)}
			}()
			if _, err := io.WriteString(write, `{"prompt":"x",`); err != nil {
				t.Fatal(err)
			}
			for begun := false; !begun; time.Sleep(time.Millisecond) {
				s.gate.mu.Lock()
				begun = s.gate.open == 1
				s.gate.mu.Unlock()
			}
			cancel()
			if n := <-waits; n != 1 {
				t.Errorf("waits for %d requests", n)
			}
			if tt.ends {
				if code, text := post(t, url, `{"prompt":"x"}`); code != http.StatusServiceUnavailable || !strings.Contains(text, "stopping") {
					t.Errorf("a new request: %d %s", code, text)
				}
			} else {
				<-s.x.ended
			}
			_, _ = io.WriteString(write, `"max_tokens":2}`)
			write.Close()
			want := map[bool]int{true: 200, false: 503}[tt.ends]
			if r := <-answered; r.code != want {
				t.Errorf("%d %s, want %d", r.code, r.text, want)
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

// With a seed an answer is the same alone and next to others, even if some go away.
func TestReproducible(t *testing.T) {
	s, h := opened(t, Options{})
	url := h.URL + "/v1/completions"
	body := func(i int) string {
		return fmt.Sprintf(`{"prompt":"question %d","max_tokens":40,"seed":%d,"temperature":%g,"ignore_eos":true}`, i, i, float64(i%3)/2)
	}
	const n = 24
	alone := make([]string, n)
	for i := range alone {
		alone[i] = ask(t, url, body(i)).Choices[0].Text
	}
	var work sync.WaitGroup
	for i := range n {
		work.Go(func() {
			if got := ask(t, url, body(i)).Choices[0].Text; got != alone[i] {
				t.Errorf("request %d: %q, alone %q", i, got, alone[i])
			}
		})
		work.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*time.Millisecond)
			defer cancel()
			r, _ := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(`{"prompt":"x","max_tokens":200,"n":4,"ignore_eos":true}`))
			r.Header.Set("Content-Type", "application/json")
			if a, err := http.DefaultClient.Do(r); err == nil {
				a.Body.Close()
			}
		})
	}
	work.Wait()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		s.x.mu.Lock()
		open := s.x.open
		s.x.mu.Unlock()
		if open == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d completions are open", open)
		}
	}
}

func TestRefuses(t *testing.T) {
	_, h := opened(t, Options{})
	const m = `"messages":[{"role":"user","content":"hi"}]`
	for _, tt := range []struct {
		path, body, param string
		code              int
	}{
		{"chat/completions", `{`, "", 400}, {"chat/completions", `[]`, "", 400}, {"chat/completions", ``, "", 400},
		{"chat/completions", `{}`, "messages", 400}, {"chat/completions", `{"messages":[]}`, "messages", 400},
		{"chat/completions", `{"messages":"hi"}`, "messages", 400}, {"chat/completions", `{"messages":[{"content":"x"}]}`, "messages", 400},
		{"chat/completions", `{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, "messages", 400},
		{"chat/completions", `{` + m + `,"tools":[{}]}`, "tools", 400}, {"chat/completions", `{` + m + `,"model":"no"}`, "model", 404},
		{"chat/completions", `{` + m + `,"response_format":{"type":"json"}}`, "response_format", 400},
		{"chat/completions", `{` + m + `,"response_format":{"type":"json_schema","json_schema":{"schema":{"not":{}}}}}`, "response_format", 400},
		{"completions", `{"prompt":"x","guided_regex":"(?=a)"}`, "guided_regex", 400},
		{"completions", `{"prompt":"x","guided_grammar":"root ::= root"}`, "guided_grammar", 400},
		{"completions", `{"prompt":"x","structured_outputs":{"structural_tag":{"format":{}}}}`, "structured_outputs", 400},
		{"chat/completions", `{` + m + `,"presence_penalty":2.5}`, "presence_penalty", 400},
		{"chat/completions", `{` + m + `,"frequency_penalty":"1"}`, "frequency_penalty", 400},
		{"chat/completions", `{` + m + `,"repetition_penalty":0}`, "repetition_penalty", 400},
		{"completions", `{"prompt":"x","min_p":1.5}`, "min_p", 400}, {"completions", `{"prompt":"x","min_tokens":-1}`, "min_tokens", 400},
		{"completions", `{"prompt":"x","min_tokens":9,"max_tokens":8}`, "min_tokens", 400},
		{"completions", `{"prompt":"x","logit_bias":{"x":1}}`, "logit_bias", 400}, {"completions", `{"prompt":"x","logit_bias":{"-1":1}}`, "logit_bias", 400},
		{"completions", `{"prompt":"x","logit_bias":{"01":1}}`, "logit_bias", 400}, {"completions", `{"prompt":"x","logit_bias":{"1":101}}`, "logit_bias", 400},
		{"completions", `{"prompt":"x","logit_bias":{"999999":1}}`, "logit_bias", 400}, {"completions", `{"prompt":"x","logit_bias":[1]}`, "logit_bias", 400},
		{"chat/completions", `{` + m + `,"n":-1}`, "n", 400}, {"chat/completions", `{` + m + `,"n":1e99}`, "n", 400},
		{"chat/completions", `{` + m + `,"temperature":"1"}`, "temperature", 400}, {"chat/completions", `{` + m + `,"top_p":0}`, "top_p", 400},
		{"chat/completions", `{` + m + `,"max_tokens":1000}`, "messages", 400}, {"chat/completions", `{` + m + `,"max_tokens":0}`, "max_tokens", 400},
		{"chat/completions", `{` + m + `,"max_tokens":9223372036854775807}`, "max_tokens", 400},
		{"chat/completions", `{` + m + `,"stop":[""]}`, "stop", 400}, {"chat/completions", `{` + m + `,"top_logprobs":2}`, "top_logprobs", 400},
		{"chat/completions", `{` + m + `,"typo":2}`, "typo", 400}, {"chat/completions", `{` + m + `,"stop_token_ids":[999]}`, "stop_token_ids", 400},
		{"completions", `{}`, "prompt", 400}, {"completions", `{"prompt":[]}`, "prompt", 400}, {"completions", `{"prompt":[[]]}`, "prompt", 400},
		{"completions", `{"prompt":[99999]}`, "prompt", 400}, {"completions", `{"prompt":[-1]}`, "prompt", 400},
		{"completions", `{"prompt":"` + strings.Repeat("x", 300) + `"}`, "prompt", 400}, {"completions", `{"prompt":"x","logprobs":21}`, "logprobs", 400},
		{"completions", `{"prompt":"` + strings.Repeat("x", openai.MostBody) + `"}`, "", 413}, {"nothing", `{}`, "", 404},
	} {
		code, text := post(t, h.URL+"/v1/"+tt.path, tt.body)
		var e struct{ Error openai.Error }
		if err := json.Unmarshal([]byte(text), &e); err != nil || code != tt.code || e.Error.Message == "" || e.Error.Type == "" ||
			(e.Error.Param == nil) != (tt.param == "") || tt.param != "" && *e.Error.Param != tt.param {
			t.Errorf("%.80s: %d %s", tt.body, code, text)
		}
	}
	if r, err := http.Post(h.URL+"/v1/completions", "text/plain", strings.NewReader(`{"prompt":"x"}`)); err != nil || r.StatusCode != 400 {
		t.Errorf("%v %v", r, err)
	}
	r := ask(t, h.URL+"/v1/completions", `{"prompt":"x","tools":null,"presence_penalty":0,"user":"me","max_tokens":2}`)
	if len(r.Choices) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestGuards(t *testing.T) {
	s, h := opened(t, Options{Key: "secret"})
	get := func(key, host string) int {
		r, _ := http.NewRequest("GET", h.URL+"/v1/models", nil)
		r.Host = host
		r.Header.Set("Authorization", key)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		return a.StatusCode
	}
	if a, b, c := get("Bearer secret", "localhost"), get("Bearer other", "localhost"), get("", "localhost"); a != 200 || b != 401 || c != 401 {
		t.Errorf("%d %d %d", a, b, c)
	}
	s.o.Key = ""
	for _, tt := range []struct {
		host   string
		public bool
		code   int
	}{
		{"127.0.0.1:99", false, 200}, {"[::1]:99", false, 200}, {"localhost", false, 200},
		{"attack.example", false, 421}, {"192.0.2.1:99", false, 421}, {"192.0.2.1:99", true, 200}, {"attack.example", true, 421},
	} {
		s.o.Public = tt.public
		if code := get("", tt.host); code != tt.code {
			t.Errorf("%s, public %v: %d, want %d", tt.host, tt.public, code, tt.code)
		}
	}
	s.o.Public = false
	if !s.x.take(s.x.most) {
		t.Error("a model that nobody asks is busy")
	}
	if code, _ := post(t, h.URL+"/v1/completions", `{"prompt":"x"}`); code != http.StatusTooManyRequests {
		t.Errorf("busy: %d", code)
	}
	s.x.release(s.x.most)
}

// No body makes the server fail.
func FuzzRequest(f *testing.F) {
	s, _ := opened(f, Options{})
	f.Add([]byte(`{"prompt":["a","b"],"max_tokens":2,"n":2,"logprobs":1,"echo":true}`), false)
	f.Add([]byte(`{"messages":[{"role":"user","content":"hi"}],"max_tokens":2,"stream":true,"stop":"a"}`), true)
	f.Fuzz(func(t *testing.T, body []byte, chat bool) {
		path := "/v1/completions"
		if chat {
			path = "/v1/chat/completions"
		}
		r := httptest.NewRequest("POST", "http://localhost"+path, strings.NewReader(string(body)))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

func TestCertain(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int
	}{{"abc", 3}, {"abcE", 3}, {"abEN", 2}, {"é\xc3", 2}, {"", 0}, {"\x80\x80", 2}, {"E", 0}} {
		if n := certain(tt.text, []string{"END", "x"}); n != tt.want {
			t.Errorf("%q: %d, want %d", tt.text, n, tt.want)
		}
	}
}
