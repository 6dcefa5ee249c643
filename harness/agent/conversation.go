package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"exp/harness/openai"
	"exp/train/rollout"
	"exp/train/toolcall"
)

// conversation is all that a program and the policy have said to each other, as the program knows it.
type conversation struct {
	chat  bool
	said  []said // of a chat
	tools json.RawMessage
	text  string // of a text that goes on
	mute  bool   // the last answer to a text was empty, and ended
	end   int32  // token that ended the last turn; -1: none
}

// said is a message of a chat.
type said struct {
	message rollout.Message
	images  []string // digests of those that it shows
	answer  *answer  // of the policy; nil: the program said it
}

// more is what a request adds.
type more struct {
	messages []rollout.Message
	images   []rollout.Picture // that they show
	before   int               // images that messages before show
	text     string
}

// length is how much a request adds; only what two requests of a kind add compares.
func (m *more) length() int { return len(m.messages) + len(m.text) }

// add adds a request that begins the conversation or continues it, and its answer.
func (c *conversation) add(r *openai.Request, a *answer, end int32) {
	c.chat, c.end = r.Chat, end
	if !r.Chat {
		c.text = r.Texts[0] + a.text
		c.mute = a.text == "" && a.finish == rollout.FinishStop.String()
		return
	}
	c.tools = r.Tools
	shown := imagesOf(r)
	for i := len(c.said); i < len(r.Messages); i++ {
		c.said = append(c.said, said{message: r.Messages[i], images: shown[i]})
	}
	c.said = append(c.said, said{answer: a})
}

// imagesOf returns the digests of the images that each message of a request shows.
func imagesOf(r *openai.Request) [][]string {
	list, next := make([][]string, len(r.Messages)), 0
	for i, m := range r.Messages {
		for range m.Images() {
			list[i] = append(list[i], r.Images[next].Digest)
			next++
		}
	}
	return list
}

// calls returns the calls of the last answer.
func (c *conversation) calls() []toolcall.Call {
	if n := len(c.said); n > 0 && c.said[n-1].answer != nil {
		return c.said[n-1].answer.calls
	}
	return nil
}

// continued returns what a request adds to the conversation, or an error if it does not repeat what was said.
func (c *conversation) continued(r *openai.Request) (m more, err error) {
	switch {
	case r.Chat != c.chat:
		return m, errors.New("chats and texts do not continue each other")
	case !r.Chat:
		rest, ok := strings.CutPrefix(r.Texts[0], c.text)
		if !ok {
			return m, errors.New("the prompt does not begin with the prompt before and its answer")
		}
		return more{text: rest}, nil
	case !sameJSON(r.Tools, c.tools):
		return m, errors.New("the tools are others than in the request before")
	case len(r.Messages) <= len(c.said):
		return m, fmt.Errorf("there are %d messages, and %d have been said: nothing is new", len(r.Messages),
			len(c.said))
	}
	shown := imagesOf(r)
	for i := range c.said {
		if !c.said[i].is(&r.Messages[i]) || !slices.Equal(c.said[i].images, shown[i]) {
			return m, fmt.Errorf("messages[%d], of role %s, is not what was said", i, r.Messages[i].Role)
		}
	}
	before := 0
	for _, list := range shown[:len(c.said)] {
		before += len(list)
	}
	return more{messages: r.Messages[len(c.said):], images: r.Images[before:], before: before}, nil
}

// is reports whether a message repeats what was said. Programs may leave out the thoughts of an answer, and space
// around it.
func (s *said) is(m *rollout.Message) bool {
	a := s.answer
	if a == nil {
		had, err1 := s.message.MarshalJSON()
		has, err2 := m.MarshalJSON()
		return err1 == nil && err2 == nil && bytes.Equal(had, has)
	}
	if m.Role != "assistant" || len(m.Parts) > 0 && string(m.Parts) != "null" || !sameCalls(m, a.calls) {
		return false
	}
	text := strings.TrimSpace(m.Content)
	return text == strings.TrimSpace(a.text) || text == strings.TrimSpace(toolcall.AfterThoughts(a.text))
}

// sameCalls reports whether a message makes these calls.
func sameCalls(m *rollout.Message, calls []toolcall.Call) bool {
	var list []struct {
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
	if i := slices.IndexFunc(m.More, func(f rollout.Field) bool { return f.Name == "tool_calls" }); i >= 0 &&
		json.Unmarshal(m.More[i].Value, &list) != nil || len(list) != len(calls) {
		return false
	}
	for i, c := range calls {
		if f := list[i].Function; f.Name != c.Name || !sameJSON(json.RawMessage(f.Arguments), c.Arguments) {
			return false
		}
	}
	return true
}

// sameJSON reports whether two values are alike but for space and the order of fields; both may be absent.
func sameJSON(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	x, y := canonical(a), canonical(b)
	return x != nil && bytes.Equal(x, y)
}

// canonical returns a value without space, its fields in order; nil if it is not JSON.
func canonical(raw json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}
