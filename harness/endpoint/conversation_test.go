package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"exp/harness/config"
)

// silent shows nothing.
func silent(string) error { return nil }

// inJSON returns a text as JSON passes it on: it replaces bytes that are not UTF-8.
func inJSON(t *testing.T, text string) (out string) {
	t.Helper()
	b, err := json.Marshal(text)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A conversation is what a client would say: its answers are the endpoint's, with the same seed.
func TestConversation(t *testing.T) {
	s, h := opened(t, Options{})
	url := h.URL + "/v1/chat/completions"
	seed := int64(3)
	sampling := Sampling{Temperature: 1, TopP: 1}
	sampling.Seed, sampling.New, sampling.Scored, sampling.Top = &seed, 12, true, 2
	c := s.x.NewConversation("be", sampling)
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	said := []message{{"system", "be"}}
	answer := func(seed int64) reply {
		b, err := json.Marshal(map[string]any{"messages": said, "seed": seed, "max_tokens": 12, "logprobs": true, "top_logprobs": 2})
		if err != nil {
			t.Fatal(err)
		}
		return ask(t, url, string(b))
	}
	same := func(a Answer, err error, shown string, seed int64) {
		t.Helper()
		want := answer(seed)
		w := want.Choices[0]
		if err != nil || inJSON(t, a.Text) != w.Message.Content || shown != a.Text || a.Seed != seed || a.Finish != *w.FinishReason ||
			a.Prompt != want.Usage.Prompt || a.New != want.Usage.Completion || len(a.Tokens) != len(w.Logprobs.Content) {
			t.Fatalf("%+v, shown %q, %v; the endpoint: %+v %+v", a, shown, err, w, *want.Usage)
		}
		for i, x := range w.Logprobs.Content {
			if y := a.Tokens[i]; y.Text != x.Token || float64(y.LogProb) != float64(float32(x.Logprob)) || len(y.Top) != 2 ||
				y.Top[1].LogProb != float32(x.Top[1].Logprob) {
				t.Errorf("token %d: %+v, the endpoint %+v", i, y, x)
			}
		}
	}
	var shown strings.Builder
	show := func(text string) error { shown.WriteString(text); return nil }
	var last string
	for _, question := range []string{"hi", "and?"} {
		said = append(said, message{"user", question})
		shown.Reset()
		a, err := c.Ask(context.Background(), question, show)
		same(a, err, shown.String(), 3)
		last = a.Text
		said = append(said, message{"assistant", last})
	}
	said = said[:len(said)-1]
	for again := range int64(2) {
		shown.Reset()
		a, err := c.Again(context.Background(), show)
		same(a, err, shown.String(), 4+again)
	}
	if !c.Undo() || len(c.turns) != 1 {
		t.Errorf("%d turns after undo", len(c.turns))
	}
	shown.Reset()
	a, err := c.Ask(context.Background(), "and?", show)
	same(a, err, shown.String(), 3)
	if x, ok := c.Last(); a.Text != last || !ok || x.Text != last {
		t.Errorf("%q after undo, before %q", a.Text, last)
	}
	c.Reset()
	if _, ok := c.Last(); ok || c.Undo() {
		t.Error("something is left after reset")
	}
	c.Sampling.Seed = nil
	one, err := c.Ask(context.Background(), "hi", show)
	if err != nil || one.Seed < 0 || one.Seed >= 1<<31 {
		t.Errorf("%+v, %v", one, err)
	}
	said = []message{{"system", "be"}, {"user", "hi"}}
	same(one, nil, one.Text, one.Seed)
}

// A model without a template continues each question by itself.
func TestPlainConversation(t *testing.T) {
	x := tiny(t, "")
	h := opens(t, x)
	seed := int64(5)
	sampling := Sampling{Temperature: 1, TopP: 1}
	sampling.Seed = &seed
	c := x.NewConversation("", sampling)
	for _, question := range []string{"abc", "de"} {
		a, err := c.Ask(context.Background(), question, silent)
		r := ask(t, h.URL+"/v1/completions", fmt.Sprintf(`{"prompt":%q,"seed":5,"max_tokens":%d}`, question, 256-len(question)))
		if w := r.Choices[0]; err != nil || inJSON(t, a.Text) != w.Text || a.Prompt != len(question) || a.New != r.Usage.Completion {
			t.Errorf("%q: %+v, %v; the endpoint %+v", question, a, err, w)
		}
	}
}

// A conversation that does not fit leaves what was said before; so does an answer that is stopped before it begins.
func TestConversationErrors(t *testing.T) {
	x := tiny(t, template, config.Value{Path: "rollout.stop_ids", Value: []string{"0"}}) // which ends it less often
	sampling := Sampling{Temperature: 1, TopP: 1}
	sampling.New = 4
	c := x.NewConversation("", sampling)
	first, err := c.Ask(context.Background(), "hi", silent)
	if err != nil {
		t.Fatal(err)
	}
	var long *LengthError
	if _, err := c.Ask(context.Background(), strings.Repeat("x", 300), silent); !errors.As(err, &long) || long.Context != 256 ||
		long.New != 4 || long.Prompt < 300 {
		t.Errorf("%v", err)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for _, ask := range []func() (Answer, error){
		func() (Answer, error) { return c.Ask(gone, "x", silent) },
		func() (Answer, error) { return c.Again(gone, silent) },
	} {
		if _, err := ask(); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	if last, ok := c.Last(); !ok || last.Text != first.Text || len(c.turns) != 1 {
		t.Errorf("%+v, %d turns", last, len(c.turns))
	}

	// What has come when an answer is stopped counts. Greedy, this model goes on to the end of the context.
	c.Reset()
	c.Sampling = Sampling{TopP: 1, Scored: true}
	whole, err := c.Ask(context.Background(), "hi", silent)
	if err != nil || whole.Finish != "length" {
		t.Fatalf("%+v, %v", whole, err)
	}
	c.Reset()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var shown strings.Builder
	part, err := c.Ask(ctx, "hi", func(text string) error {
		shown.WriteString(text)
		stop()
		return nil
	})
	if err != nil || part.Text == "" || part.Text != shown.String() || !strings.HasPrefix(whole.Text, part.Text) ||
		part.Finish == Interrupted && part.New != len(part.Tokens) {
		t.Errorf("%+v, shown %q, %v", part, &shown, err)
	}
	if last, ok := c.Last(); !ok || last.Text != part.Text {
		t.Errorf("it is not kept: %+v", last)
	}
	c.Reset()
	broken := errors.New("the pipe is closed")
	if _, err := c.Ask(context.Background(), "and", func(string) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestSamplingCheck(t *testing.T) {
	for _, tt := range []struct {
		change func(s *Sampling)
		want   string
	}{
		{func(*Sampling) {}, ""},
		{func(s *Sampling) { s.Temperature = 0 }, ""},
		{func(s *Sampling) { s.Temperature = 1e-9 }, "temperature is 1e-09, must be 0"},
		{func(s *Sampling) { s.TopP = 0 }, "top-p is 0, must be above 0"},
		{func(s *Sampling) { s.MinP = 2 }, "min-p is 2, must be 0 to 1"},
		{func(s *Sampling) { s.TopK = -1 }, "top-k is -1"},
		{func(s *Sampling) { s.New = -1 }, "max-tokens is -1"},
	} {
		s := Sampling{Temperature: 1, TopP: 1}
		tt.change(&s)
		if err := s.Check(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", s, err, tt.want)
		}
	}
}
