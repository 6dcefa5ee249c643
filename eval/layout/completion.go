package layout

import (
	"encoding/json"
	"slices"

	"exp/eval/rows"
	"exp/train/rollout"
)

// TRL's columns for fine-tuning: the context, and the answer to train on.
const (
	promptField     = "prompt"
	completionField = "completion"
)

// readAnswer reads a row with the columns prompt and answer: two lists of messages, or two texts. Texts become Prompt
// and Target, and no Messages.
func (c *Conversation) readAnswer(r rows.Row, answer string) (err error) {
	var list [2]bool
	var texts [2]string
	for i, field := range []string{promptField, answer} {
		v, _ := r.Value(field)
		if _, list[i] = v.([]any); list[i] {
			continue
		}
		if texts[i], err = r.Text(field); err != nil {
			return r.Errorf(field, "neither a list of messages nor a text")
		}
	}
	switch {
	case list[0] != list[1]:
		return r.Errorf("", "one of %s and %s is a list of messages, the other a text; make both lists, or both texts",
			promptField, answer)
	case list[0]:
		return c.readMessagesAfter(r, answer)
	case c.shown != nil && len(c.shown.column) > 0:
		return r.Errorf(c.shown.Column, "texts show no images; make %s and %s lists of messages", promptField, answer)
	case texts[1] == "":
		return r.Errorf(answer, "empty text: nothing to learn")
	case r.Has("system"):
		return r.Errorf("system", "it has no place before a %s that is a text; make %s and %s lists of messages",
			promptField, promptField, answer)
	}
	c.Prompt, c.Target = texts[0], texts[1]
	return nil
}

// readMessagesAfter reads two lists of messages.
func (c *Conversation) readMessagesAfter(r rows.Row, answer string) (err error) {
	if err := c.readMessages(r, promptField); err != nil {
		return err
	}
	n := len(c.Messages)
	switch {
	case n == 0:
		return r.Errorf(promptField, "no messages")
	case c.Messages[n-1].Role == "assistant":
		return r.Errorf(promptField, "its last message is the assistant's, and %s would go on after it; put the "+
			"whole answer into %s", answer, answer)
	}
	if err := c.readMessages(r, answer); err != nil {
		return err
	}
	if err := checkTurns(c.Messages[n:], true); err != nil {
		return r.Errorf(answer, "%w", err)
	}
	c.Asked = n
	c.lead(r)
	return nil
}

// readMessages appends the messages in a column.
func (c *Conversation) readMessages(r rows.Row, field string) error {
	items, err := messageItems(r, field)
	if err != nil {
		return err
	}
	show, err := c.showing(r, field)
	if err != nil {
		return err
	}
	for k, item := range items {
		m, err := message(item, show(k))
		if err != nil {
			return r.Errorf(field, "message %d: %w", k+1, err)
		}
		c.Messages = append(c.Messages, m)
		if m.Role == "user" && c.Prompt == "" {
			c.Prompt = m.Text()
		}
	}
	return nil
}

// showing returns the functions that put the row's images into the messages of a column.
func (c *Conversation) showing(r rows.Row, field string) (func(k int) func(*rollout.Message) (int, error), error) {
	if c.shown == nil {
		return func(int) func(*rollout.Message) (int, error) { return nil }, nil
	}
	v, _ := r.Value(field)
	if text, ok := v.(string); ok {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			return nil, r.Errorf(field, "%w", err)
		}
	}
	values := contentValues(v)
	return func(k int) func(*rollout.Message) (int, error) {
		return func(m *rollout.Message) (int, error) { return c.shown.turn(m, values[k]) }
	}, nil
}

// lead puts the column system before a conversation without a system message.
func (c *Conversation) lead(r rows.Row) {
	system := systemOf(r)
	if system == "" || c.Messages[0].Role == "system" || c.Messages[0].Role == "developer" {
		return
	}
	c.Messages = slices.Insert(c.Messages, 0, rollout.Message{Role: "system", Content: system})
	c.Before = 1
	if c.Asked > 0 {
		c.Asked++
	}
}

func systemOf(r rows.Row) string {
	v, _ := r.Value("system")
	text, _ := v.(string)
	return text
}
