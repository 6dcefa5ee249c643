package endpoint

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"exp/harness/openai"
	"exp/train/generate"
	"exp/train/rollout"
)

// Several completions of several prompts echo their own prompts, and have the tokens that is the default for texts.
func TestEchoOfSeveral(t *testing.T) {
	_, h := opened(t, Options{})
	r := ask(t, h.URL+"/v1/completions", `{"prompt":["abc","de"],"n":2,"echo":true,"ignore_eos":true}`)
	if len(r.Choices) != 4 || r.Usage.Prompt != 5 || r.Usage.Completion != 4*defaultTexts {
		t.Fatalf("%d choices, %+v", len(r.Choices), r.Usage)
	}
	for i, prompt := range []string{"abc", "abc", "de", "de"} {
		if c := r.Choices[i]; c.Index != i || !strings.HasPrefix(c.Text, prompt) {
			t.Errorf("choice %d: %q, want the prompt %q", c.Index, c.Text, prompt)
		}
	}
}

// An answer tells how many tokens of its prompts earlier requests had computed, in whole pages. Scores of a prompt need
// all of it computed.
func TestCachedTokens(t *testing.T) {
	_, h := opened(t, Options{})
	url, old := h.URL+"/v1/completions", strings.Repeat("once ", 8) // 40 tokens, and one that is drawn
	for _, tt := range []struct {
		what, body string
		want       int
	}{
		{"new", fmt.Sprintf(`{"prompt":%q`, old), 0},
		{"longer", fmt.Sprintf(`{"prompt":%q`, old+"upon a time"), 32},
		{"other", fmt.Sprintf(`{"prompt":%q`, "twice "+old), 0},
		{"several", fmt.Sprintf(`{"prompt":[%q,%q],"n":3`, old+"upon a time, there was", "twice "+old), 48 + 32},
		{"scored", fmt.Sprintf(`{"prompt":%q,"echo":true,"logprobs":1`, old), 0},
		{"short", `{"prompt":"once once once o"`, 0},
	} {
		r := ask(t, url, tt.body+`,"max_tokens":1,"ignore_eos":true}`)
		if got := r.Usage.Details.Cached; got != tt.want {
			t.Errorf("%s: %d tokens were there, want %d of %d", tt.what, got, tt.want, r.Usage.Prompt)
		}
	}
	parts := stream(t, h.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"how are you?"}],"max_tokens":9,"stream":true,"ignore_eos":true}`)
	if len(parts) == 0 || parts[len(parts)-1].Usage != nil {
		t.Errorf("%+v", parts)
	}
	parts = stream(t, h.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"how are you?"},{"role":"user","content":"well?"}],"max_tokens":2,"stream":true,"stream_options":{"include_usage":true}}`)
	if u := parts[len(parts)-1].Usage; u.Details.Cached != 16 { // "<user>how are you?" begins both
		t.Errorf("%+v", u)
	}
}

// Log-probs name tokens with their bytes; among the likeliest ones of a text is always its own.
func TestLogprobs(t *testing.T) {
	_, h := opened(t, Options{})
	_, text := post(t, h.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],"max_completion_tokens":30,"seed":3,"ignore_eos":true,"logprobs":true}`)
	var chat struct {
		Choices []struct {
			Logprobs struct {
				Content []struct {
					Token string
					Bytes []int
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &chat); err != nil || len(chat.Choices) != 1 || len(chat.Choices[0].Logprobs.Content) != 30 {
		t.Fatalf("%v: %s", err, text)
	}
	for _, x := range chat.Choices[0].Logprobs.Content {
		var b []byte
		for _, c := range x.Bytes {
			b = append(b, byte(c))
		}
		token := x.Token
		if utf8.Valid(b) && string(b) != token || !utf8.Valid(b) && token != fmt.Sprintf(`bytes:\x%02x`, b) || len(b) == 0 {
			t.Errorf("token %q has the bytes %q", token, b)
		}
	}

	lp := ask(t, h.URL+"/v1/completions", `{"prompt":"abc","max_tokens":20,"seed":3,"logprobs":0,"ignore_eos":true}`).Choices[0].Logprobs
	if len(lp.Tops) != 20 {
		t.Fatalf("%d tokens", len(lp.Tops))
	}
	for i, top := range lp.Tops {
		if want := map[string]float64{lp.Tokens[i]: *lp.Probs[i]}; !reflect.DeepEqual(top, want) {
			t.Errorf("token %d: %v, want %v", i, top, want)
		}
	}
}

// A stream sends no letter that a stop text may take back, and ends as the whole answer does.
func TestStreamTakesNothingBack(t *testing.T) {
	_, h := opened(t, Options{})
	url := h.URL + "/v1/completions"
	const body = `{"prompt":"abc","max_tokens":120,"temperature":0,"ignore_eos":true`
	whole := ask(t, url, body+`}`).Choices[0].Text
	tried := 0
	for k := 1; k+2 <= len(whole) && tried < 12; k++ {
		pair := whole[k : k+2]
		if pair[0] >= utf8.RuneSelf || pair[1] >= utf8.RuneSelf || strings.Index(whole, pair) != k {
			continue
		}
		tried++
		stop, _ := json.Marshal(pair)
		got, finish := "", ""
		for _, p := range stream(t, url, body+`,"stream":true,"stop":`+string(stop)+`}`) {
			got += p.Choices[0].Text
			if f := p.Choices[0].FinishReason; f != nil {
				finish = *f
			}
			if p.Usage != nil {
				t.Error("usage comes unasked")
			}
		}
		if got != whole[:k] || finish != "stop" {
			t.Errorf("stop at %q: streamed %q, %s; want %q", pair, got, finish, whole[:k])
		}
	}
	if tried == 0 {
		t.Fatalf("no pair of letters in %q", whole)
	}
	parts := stream(t, url, `{"prompt":"abc","max_tokens":0,"echo":true,"logprobs":0,"stream":true}`)
	if c := parts[len(parts)-1].Choices[0]; c.FinishReason == nil || *c.FinishReason != "length" {
		t.Errorf("scores alone end with %+v", c)
	}
}

// A client whose stream fails is told why, and is not told that it is whole.
func TestStreamFails(t *testing.T) {
	s, h := opened(t, Options{})
	r, err := http.Post(h.URL+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"x","max_tokens":200,"n":64,"ignore_eos":true,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if kind := r.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("type %s", kind)
	}
	lines := bufio.NewReader(r.Body)
	if first, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(first, "data: {") {
		t.Fatalf("%q, %v", first, err)
	}
	s.x.Stop()
	rest, err := io.ReadAll(lines)
	if err != nil || strings.Contains(string(rest), "[DONE]") || !strings.Contains(string(rest), `"code":"stopping"`) {
		t.Errorf("%v, the end is %q", err, rest[max(0, len(rest)-300):])
	}
}

// What nobody waits for any more is not sampled to its end.
func TestGoneClientsFreeTheSampler(t *testing.T) {
	x := tiny(t, template)
	long := func() []*generate.Ask {
		most := 200
		r := &openai.Request{N: 32, Texts: []string{"x"}, Most: &most, IgnoreEnds: true, Params: rollout.Params{Temperature: 1, TopP: 1}}
		asks, err := x.asksFor(r)
		if err != nil {
			t.Fatal(err)
		}
		return asks
	}
	ctx, gone := context.WithCancel(context.Background())
	s, err := x.ask(ctx, long())
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	<-s.wake // the first tokens
	gone()
	next, err := x.ask(context.Background(), long()) // ends after the first one would
	if err != nil {
		t.Fatal(err)
	}
	defer next.close()
	ctx, late := context.WithTimeout(context.Background(), time.Minute)
	defer late()
	if err := next.follow(ctx, func(int, part) error { return nil }); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.parts {
		if p.ended != nil && len(p.ended.Tokens) == 200 {
			t.Fatalf("completion %d of a client that went away has all its tokens", i)
		}
	}
}

// The parts of a message are lines of it.
func TestMessageInParts(t *testing.T) {
	_, h := opened(t, Options{})
	r := ask(t, h.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}],"max_tokens":1}`)
	if want := len("<user>a\nb<assistant>"); r.Usage.Prompt != want {
		t.Errorf("%d tokens, want %d", r.Usage.Prompt, want)
	}
}

// The model's card says how much it reads.
func TestModels(t *testing.T) {
	_, h := opened(t, Options{})
	type card struct {
		ID, Object string
		Max        int `json:"max_model_len"`
	}
	get := func(path string, v any) int {
		t.Helper()
		r, err := http.Get(h.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if err := json.NewDecoder(r.Body).Decode(v); err != nil {
			t.Fatal(err)
		}
		return r.StatusCode
	}
	want := card{"tiny", "model", 256}
	var list struct {
		Object string
		Data   []card
	}
	if code := get("/v1/models", &list); code != 200 || list.Object != "list" || !reflect.DeepEqual(list.Data, []card{want}) {
		t.Errorf("%d %+v", code, list)
	}
	var one card
	if code := get("/v1/models/tiny", &one); code != 200 || one != want {
		t.Errorf("%d %+v", code, one)
	}
	if code := get("/v1/models/other", &one); code != http.StatusNotFound {
		t.Errorf("another model: %d", code)
	}
}

// Clients that prove the key may name the server as they like; those that come too often are told to wait.
func TestGuardsOfNamesAndPlaces(t *testing.T) {
	s, h := opened(t, Options{Key: "secret"})
	do := func() *http.Response {
		t.Helper()
		r, _ := http.NewRequest("POST", h.URL+"/v1/completions", strings.NewReader(`{"prompt":"x","max_tokens":1}`))
		r.Host = "models.example"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer secret")
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		return a
	}
	if a := do(); a.StatusCode != 200 {
		t.Errorf("with the key: %s", a.Status)
	}
	s.x.take(s.x.most)
	defer s.x.release(s.x.most)
	if a := do(); a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
		t.Errorf("busy: %s, Retry-After %q", a.Status, a.Header.Get("Retry-After"))
	}
}

// A stream keeps back what may begin a stop text until it is known.
func TestNewsHoldsStopsBack(t *testing.T) {
	a := &answer{Request: &openai.Request{N: 1, Params: rollout.Params{Stop: []string{"END"}}}, sent: make([]sent, 1)}
	said := ""
	for _, p := range []part{{text: []byte("ab")}, {text: []byte("abE")}, {text: []byte("abEx")}, {text: []byte("abExE")}, {text: []byte("abExEN")},
		{text: []byte("abEx"), ended: &rollout.Completion{Text: "abEx", Finish: rollout.FinishStop}}} {
		for _, c := range a.news(0, p) {
			said += c.(map[string]any)["text"].(string)
		}
		if want := certain(string(p.text), []string{"END"}); p.ended == nil && said != string(p.text[:want]) {
			t.Errorf("after %q: sent %q", p.text, said)
		}
	}
	if said != "abEx" || !a.sent[0].ended {
		t.Errorf("sent %q, ended %t", said, a.sent[0].ended)
	}
}

// Offsets count characters of the text, which tokens may cut.
func TestTextOffsets(t *testing.T) {
	_, h := opened(t, Options{})
	r := ask(t, h.URL+"/v1/completions", `{"prompt":"é€1","max_tokens":0,"echo":true,"logprobs":0}`)
	if got, want := r.Choices[0].Logprobs.Offset, []int{0, 0, 1, 1, 1, 2}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	var c characters
	for _, b := range []byte("a\xc3b\xe2\x82\xac\xff") { // a cut character and a byte that begins none count as one each
		c.add([]byte{b})
	}
	if c.n != utf8.RuneCountInString("a\xc3b\xe2\x82\xac\xff") {
		t.Errorf("%d characters", c.n)
	}
}
