package endpoint

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"exp/harness/config"
)

// Penalties and biases are told by what greedy answers become, in chats and in texts.
func TestPenalties(t *testing.T) {
	x := tiny(t, template)
	h := opens(t, x)
	id := func(text string) int32 {
		ids, err := x.prompts.EncodeText(text)
		if err != nil {
			t.Fatal(err)
		}
		return ids[len(ids)-1]
	}
	a, b, end := id("A"), id("B"), x.tok.EndIDs()[0]
	for _, tt := range []struct{ name, fields, want string }{
		{"bias", fmt.Sprintf(`"logit_bias":{"%d":100}`, a), "AAAAAAAA"},
		{"frequency", fmt.Sprintf(`"logit_bias":{"%d":100,"%d":99},"frequency_penalty":2`, a, b), "AB{1,3}A{1,4}B?"},
		{"presence", fmt.Sprintf(`"logit_bias":{"%d":100,"%d":99},"presence_penalty":2`, a, b), "ABA{6}|AB{7}"}, // where the model's own logits differ by 1
		// Then 100/1.5 is below 80, and 80/1.5 below it.
		{"repetition", fmt.Sprintf(`"logit_bias":{"%d":100,"%d":80},"repetition_penalty":1.5`, a, b), "ABAAAAAA"},
		{"no end yet", fmt.Sprintf(`"logit_bias":{"%d":100,"%d":99},"min_tokens":3`, end, a), "AAA"},
		{"no end of the request's yet", fmt.Sprintf(`"logit_bias":{"%d":100,"%d":80},"min_tokens":3,"stop_token_ids":[%[1]d]`, a, b), "BBBA"},
		{"no stop text yet", fmt.Sprintf(`"logit_bias":{"%d":100},"min_tokens":3,"stop":"A"`, a), "AAA"},
	} {
		for _, path := range []string{"completions", "chat/completions"} {
			prompt := `"prompt":"x"`
			if path != "completions" {
				prompt = `"messages":[{"role":"user","content":"x"}]`
			}
			r := ask(t, h.URL+"/v1/"+path, `{`+prompt+`,"temperature":0,"max_tokens":8,`+tt.fields+`}`)
			if got := r.Choices[0].Text + r.Choices[0].Message.Content; !regexp.MustCompile(`^(` + tt.want + `)$`).MatchString(got) {
				t.Errorf("%s of %s: %q, want %q", tt.name, path, got, tt.want)
			}
		}
	}

	// What a prompt has is penalized by repetition_penalty alone.
	fields := fmt.Sprintf(`"temperature":0,"max_tokens":2,"logit_bias":{"%d":100,"%d":80}`, a, b)
	for penalty, want := range map[string]string{"repetition_penalty": "BA", "presence_penalty": "AA"} {
		if r := ask(t, h.URL+"/v1/completions", `{"prompt":"xA",`+fields+`,"`+penalty+`":1.5}`); r.Choices[0].Text != want {
			t.Errorf("%s after a prompt with A: %q, want %q", penalty, r.Choices[0].Text, want)
		}
	}
}

// A request takes the fields that it leaves out from eval.final, which --generation-config sets.
func TestDefaultsOfRequests(t *testing.T) {
	set := func(key, value string) config.Value { return config.Value{Path: "eval.final." + key, Value: value} }
	plain := opens(t, tiny(t, template))
	h := opens(t, tiny(t, template, set("temperature", "0.7"), set("top_k", "20"), set("top_p", "0.8"), set("min_p", "0.01"),
		set("repetition_penalty", "1.2")))
	const fields = `"temperature":0.7,"top_k":20,"top_p":0.8,"min_p":0.01,"repetition_penalty":1.2`
	const off = `"temperature":1,"top_k":0,"top_p":1,"min_p":0,"repetition_penalty":1`
	text := func(url, fields string) string {
		return ask(t, url+"/v1/completions", `{"prompt":"once","seed":5,"max_tokens":60`+fields+`}`).Choices[0].Text
	}
	bare, recommended := text(plain.URL, ""), text(plain.URL, ","+fields)
	if bare == recommended {
		t.Fatal("the settings change nothing")
	}
	if got := text(h.URL, ""); got != recommended {
		t.Errorf("%q, want %q", got, recommended)
	}
	if got := text(h.URL, ","+off); got != bare {
		t.Errorf("with all settings off: %q, want %q", got, bare)
	}
	without := strings.Replace(fields, `,"repetition_penalty":1.2`, "", 1)
	if got, want := text(h.URL, `,"repetition_penalty":1`), text(plain.URL, ","+without); got != want {
		t.Errorf("with one setting off: %q, want %q", got, want)
	}
}

// A conversation has the answers of the endpoint.
func TestConversationPenalties(t *testing.T) {
	x := tiny(t, template)
	seed := int64(9)
	s := Sampling{Temperature: 1, TopP: 1, New: 30, Seed: &seed, Least: 5}
	s.Penalties.Repetition, s.Penalties.Presence, s.Penalties.Frequency = 1.3, 0.5, 0.25
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	got, err := x.NewConversation("", s).Ask(t.Context(), "once", func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	r := ask(t, opens(t, x).URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"once"}],"seed":9,"max_tokens":30,
		"min_tokens":5,"repetition_penalty":1.3,"presence_penalty":0.5,"frequency_penalty":0.25}`)
	if want := r.Choices[0].Message.Content; string([]rune(got.Text)) != want {
		t.Errorf("%q, want %q", got.Text, want)
	}
	for _, change := range []func(s *Sampling){
		func(s *Sampling) { s.Penalties.Repetition = -1 }, func(s *Sampling) { s.Penalties.Presence = 3 },
		func(s *Sampling) { s.Penalties.Frequency = -3 }, func(s *Sampling) { s.Least = -1 },
	} {
		bad := s
		change(&bad)
		if bad.Check() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}
