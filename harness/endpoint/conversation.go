package endpoint

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"exp/harness/openai"
	"exp/train/rollout"
)

// Conversation is a chat with a model, one question after another. A model without a chat template has no
// conversation: it continues each question as a text. Not safe for concurrent use.
type Conversation struct {
	Sampling Sampling
	System   string // message before the first question; empty: none, or the template's

	x     *Model
	turns []turn
}

// Sampling says how answers are drawn. Temperature and TopP are 1 for the model's own distribution.
type Sampling struct {
	Temperature float64 // 0: the likeliest tokens
	TopP, MinP  float64
	TopK        int
	Penalties   rollout.Penalties
	Least       int    // tokens of an answer before it may end
	Seed        *int64 // nil: a random one for each answer
	New         int    // tokens of an answer, at most; 0: as many as fit
	Scored      bool   // an answer has Tokens
	Top         int    // likeliest tokens next to each, at most generate.MostTop
}

// Check returns an error for settings that are out of bounds.
func (s Sampling) Check() error {
	whole := func(n int) error { return openai.Within(0, openai.MostInt, float64(n)) }
	for _, x := range []struct {
		name string
		err  error
	}{{"temperature", openai.GoodTemperature(s.Temperature)}, {"top-p", openai.GoodTopP(s.TopP)},
		{"min-p", openai.Within(0, 1, s.MinP)}, {"top-k", whole(s.TopK)}, {"repetition-penalty", s.goodRepetition()},
		{"presence-penalty", openai.Within(-openai.MostPenalty, openai.MostPenalty, s.Penalties.Presence)},
		{"frequency-penalty", openai.Within(-openai.MostPenalty, openai.MostPenalty, s.Penalties.Frequency)},
		{"min-tokens", whole(s.Least)}, {"max-tokens", whole(s.New)}} {
		if x.err != nil {
			return fmt.Errorf("%s %w", x.name, x.err)
		}
	}
	return nil
}

// goodRepetition allows 0, which is off.
func (s Sampling) goodRepetition() error {
	if s.Penalties.Repetition == 0 {
		return nil
	}
	return openai.GoodRepetition(s.Penalties.Repetition)
}

// Sampling returns how the model's answers are drawn where nothing else is said: as eval.final of its configuration.
func (x *Model) Sampling() Sampling {
	p := x.params
	return Sampling{Temperature: p.Temperature, TopP: p.TopP, TopK: p.TopK, MinP: p.MinP, Penalties: p.Penalties}
}

// turn is a question with its answer.
type turn struct {
	text     string            // that a model without a template continues
	messages []rollout.Message // the question in a chat; a problem brings its whole prompt
	images   []rollout.Picture // that the messages show, with their files
	tools    json.RawMessage   // that the chat offers; nil: none
	problem  *rollout.Problem  // nil: the user's own question
	again    int64             // answers before this one
	answer   Answer
	said     rollout.Completion
}

// Answer is what the model said.
type Answer struct {
	Text   string  `json:"text"`
	Finish string  `json:"finish"` // stop, length, or interrupted
	Seed   int64   `json:"seed"`   // with which it is drawn again
	Prompt int     `json:"prompt_tokens"`
	New    int     `json:"completion_tokens"`
	Tokens []Token `json:"tokens,omitempty"`
}

// Interrupted is the Finish of an answer that the user ended.
const Interrupted = "interrupted"

// Token is a token of an answer with its log-prob under the model, at temperature 1, and the likeliest tokens in its
// place.
type Token struct {
	Text    string  `json:"text"`
	LogProb float32 `json:"logprob"`
	Top     []Token `json:"top,omitempty"`
}

// QuestionError says why a question cannot be asked, other than a LengthError.
type QuestionError struct{ text string }

func (e *QuestionError) Error() string { return e.text }

// NewConversation begins a conversation.
func (x *Model) NewConversation(system string, s Sampling) *Conversation {
	return &Conversation{x: x, System: system, Sampling: s}
}

// Reset forgets all questions and answers.
func (c *Conversation) Reset() { c.turns = nil }

// Undo forgets the last question and its answer, and reports whether there was one.
func (c *Conversation) Undo() bool {
	if len(c.turns) == 0 {
		return false
	}
	c.turns = c.turns[:len(c.turns)-1]
	return true
}

// Last returns the last answer.
func (c *Conversation) Last() (Answer, bool) {
	if len(c.turns) == 0 {
		return Answer{}, false
	}
	return c.turns[len(c.turns)-1].answer, true
}

// Ask asks a question. images, if any, stand before its text. show gets the answer's text piece by piece; together the
// pieces are Answer.Text. When ctx ends the answer so far counts, as Interrupted, if there is
// any; else the error is ctx's. An error leaves the conversation as it was.
func (c *Conversation) Ask(ctx context.Context, question string, show func(text string) error,
	images ...Image) (Answer, error) {
	t := turn{text: question}
	m := rollout.Message{Role: "user", Content: question}
	if len(images) > 0 {
		var parts []json.RawMessage
		for _, im := range images {
			parts = append(parts, im.picture.Part())
		}
		m = rollout.Message{Role: m.Role, Parts: rollout.PartList(append(parts, rollout.TextPart(question)))}
	}
	for _, im := range images {
		t.images = append(t.images, im.picture)
	}
	t.messages = []rollout.Message{m}
	return c.say(ctx, t, show)
}

// Again asks the last question again, with another seed: a random one, or the next after Sampling.Seed. There must be
// a question.
func (c *Conversation) Again(ctx context.Context, show func(text string) error) (Answer, error) {
	t := c.turns[len(c.turns)-1]
	t.again++
	before := c.turns
	c.turns = before[: len(before)-1 : len(before)-1]
	a, err := c.say(ctx, t, show)
	if err != nil {
		c.turns = before
	}
	return a, err
}

// say asks for the answer of a turn, and adds it to the conversation.
func (c *Conversation) say(ctx context.Context, t turn, show func(text string) error) (Answer, error) {
	if len(t.images) > 0 && !c.x.Chats() {
		return Answer{}, &QuestionError{"images need a chat template, and the model has none, or its run used none"}
	}
	before := c.turns
	if t.problem != nil || !c.x.Chats() {
		before = nil
	}
	req, err := c.request(before, &t)
	if err != nil {
		return Answer{}, err
	}
	asks, err := c.x.asksFor(req)
	var bad *openai.Error
	if errors.As(err, &bad) {
		err = &QuestionError{strings.TrimPrefix(bad.Message, "prompt 0: ")}
	}
	if err != nil {
		return Answer{}, err
	}
	s, err := c.x.ask(ctx, asks)
	if s != nil {
		defer s.close()
	}
	if err != nil {
		return Answer{}, err
	}
	t.answer, t.said = Answer{Prompt: len(asks[0].Prompt), Seed: *req.Seed}, rollout.Completion{}
	if err := s.tell(ctx, &t, asks[0].Stop, show); err != nil {
		return Answer{}, err
	}
	c.turns = append(before, t)
	return t.answer, nil
}

// request returns what the endpoint would be asked for a turn after others.
func (c *Conversation) request(before []turn, t *turn) (*openai.Request, error) {
	o := c.Sampling
	r := &openai.Request{Chat: c.x.Chats(), Fills: true, N: 1, Scored: o.Scored, Top: o.Top, Seed: o.Seed,
		Params: rollout.Params{Temperature: o.Temperature, TopP: o.TopP, TopK: o.TopK, MinP: o.MinP,
			Penalties: o.Penalties, MinNewTokens: o.Least}}
	if o.New > 0 {
		r.Most = &o.New
	}
	var seed int64
	if o.Seed != nil {
		seed = *o.Seed + t.again
	} else {
		var b [4]byte
		_, _ = rand.Read(b[:])                              // never fails
		seed = int64(binary.LittleEndian.Uint32(b[:]) >> 1) // short enough to type
	}
	r.Seed = &seed
	if !r.Chat {
		r.Texts = []string{t.text}
		return r, nil
	}
	all := append(before[:len(before):len(before)], *t)
	if c.System != "" && all[0].problem == nil {
		r.Messages = append(r.Messages, rollout.Message{Role: "system", Content: c.System})
	}
	r.Tools = all[0].tools
	for i, x := range all {
		r.Messages, r.Images = append(r.Messages, x.messages...), append(r.Images, x.images...)
		if i < len(before) {
			r.Messages = append(r.Messages, rollout.Message{Role: "assistant", Content: x.answer.Text})
		}
	}
	return r, nil
}

// tell shows the only completion of a request while it is sampled, and sets what a turn knows of it.
func (s *sampled) tell(ctx context.Context, t *turn, stop []string, show func(text string) error) error {
	shown := 0
	tell := func(text string) error {
		news := text[min(shown, len(text)):]
		if shown = max(shown, len(text)); news == "" {
			return nil
		}
		return show(news)
	}
	err := s.follow(ctx, func(_ int, p part) error {
		if p.ended == nil {
			p.text = p.text[:certain(string(p.text), stop)]
		}
		return tell(string(p.text))
	})
	a := &t.answer
	s.mu.Lock()
	p := s.parts[0]
	a.Text = string(p.text)
	s.mu.Unlock()
	interrupted := ctx.Err() != nil && errors.Is(err, ctx.Err())
	switch {
	case p.ended != nil:
		t.said, a.Finish, a.New = *p.ended, p.ended.Finish.String(), len(p.ended.Tokens)
		if interrupted { // too late
			err = tell(a.Text)
		}
	case interrupted && a.Text != "":
		a.Text = a.Text[:max(min(shown, len(a.Text)), certain(a.Text, nil))]
		t.said.Text, t.said.Finish, a.Finish, a.New = a.Text, rollout.FinishLength, Interrupted, len(p.scores)
		err = tell(a.Text)
	}
	for _, x := range p.scores {
		token := Token{Text: s.x.token(x.Token), LogProb: x.LogProb}
		for k, id := range x.Top {
			token.Top = append(token.Top, Token{Text: s.x.token(id), LogProb: x.TopProb[k]})
		}
		a.Tokens = append(a.Tokens, token)
	}
	return err
}
