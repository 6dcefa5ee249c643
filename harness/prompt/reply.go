package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"exp/harness/config"
	"exp/train/rollout"
	"exp/train/tokenizer"
	"exp/train/toolcall"
)

// CheckReply returns an error unless the chat template can write answers.
func (p *Prompter) CheckReply(t config.Tools) error {
	end, err := p.End()
	if err != nil {
		return err
	}
	const said = "oX7said"
	role := "tool"
	if t.Format == toolcall.User {
		role = "user"
	}
	var calls []toolcall.Call
	if t.Agent() {
		calls = []toolcall.Call{{Name: "f", Arguments: []byte("{}")}}
	}
	text, _, err := p.replyText(end, calls, []rollout.Message{{Role: role, Content: said}}, 0)
	if err == nil && !strings.Contains(text, said) {
		err = fmt.Errorf("the chat template drops messages of the role %s", role)
	}
	return err
}

// The messages before an answer, which only show where it begins.
const (
	askedBefore  = "qX7only"
	answerBefore = "aX7only"
)

// replyText returns what the template writes from the end of a turn, which token end ended (-1: no token), to where
// the assistant speaks after messages, where the turn made calls. So many images came before. mark stands where text
// of the messages that spells a token is cut.
func (p *Prompter) replyText(end int32, calls []toolcall.Call, list []rollout.Message, images int) (text string,
	mark rune, err error) {
	if p.template == nil {
		return "", 0, errors.New("the run has no chat template, which writes the answers")
	}
	text, mark, err = p.replyToText(list, images)
	if err != nil && len(calls) > 0 {
		if after, m, err := p.replyToCalls(calls, list); err == nil {
			text, mark = after, m
		} else {
			return "", 0, err
		}
	} else if err != nil {
		return "", 0, err
	}
	if end < 0 {
		return text, mark, nil
	}
	// The sampled token is not written twice.
	ends := []string{p.Tokenizer.Token(end)}
	if p.template.channels && slices.Contains(toolcall.ChannelEnds(), ends[0]) {
		ends = append(ends, toolcall.MessageEnd) // the answer's end stands for it
	}
	for _, token := range ends {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(text, " \n"), token); ok {
			return rest, mark, nil
		}
	}
	return text, mark, nil
}

// replyToText returns what the template writes after the text of an answer, up to where the assistant speaks after
// messages. So many images came before, which some templates count.
func (p *Prompter) replyToText(list []rollout.Message, images int) (text string, mark rune, err error) {
	if list, _, mark, err = p.untrusted.chat(list, nil); err != nil {
		return "", 0, err
	}
	before := []rollout.Message{{Role: "user", Content: askedBefore}, {Role: "assistant", Content: answerBefore}}
	if images > 0 {
		parts := []json.RawMessage{rollout.TextPart(askedBefore)}
		for range images {
			parts = append(parts, json.RawMessage(rollout.ImagePart))
		}
		before[0].Content, before[0].Parts = "", rollout.PartList(parts)
	}
	if text, err = p.template.render(append(before, list...), nil, true); err != nil {
		return "", 0, err
	}
	_, text, found := strings.Cut(text, answerBefore)
	if !found {
		return "", 0, errors.New("the chat template drops the assistant's message before an answer")
	}
	return text, mark, nil
}

// replyToCalls is replyToText for a template that refuses a tool's answer unless the message before it calls, such as
// gpt-oss's, which writes the function's name, and MiniMax-M2's. The text begins with the token that ends the
// message with the calls.
func (p *Prompter) replyToCalls(calls []toolcall.Call, list []rollout.Message) (text string, mark rune, err error) {
	value, err := callsValue(calls)
	if err != nil {
		return "", 0, err
	}
	list = append([]rollout.Message{{Role: "user", Content: askedBefore},
		{Role: "assistant", More: []rollout.Field{{Name: "tool_calls", Value: value}}}}, list...)
	if list, _, mark, err = p.untrusted.chat(list, nil); err != nil {
		return "", 0, err
	}
	head, err := p.template.render(list[:2], nil, false)
	if err != nil {
		return "", 0, err
	}
	whole, err := p.template.render(list, nil, true)
	if err != nil {
		return "", 0, err
	}
	rest, ok := strings.CutPrefix(whole, head)
	if !ok {
		return "", 0, errors.New("the chat template writes a message with calls in another way before an answer")
	}
	at := -1
	for _, s := range p.Stops {
		at = max(at, strings.LastIndex(head, s.Token))
	}
	if at < 0 {
		at = len(head)
	}
	return head[at:] + rest, mark, nil
}

// callsValue returns calls as templates take them.
func callsValue(calls []toolcall.Call) (json.RawMessage, error) {
	type function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	type call struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	list := make([]call, len(calls))
	for i, c := range calls {
		list[i] = call{fmt.Sprintf("call%05d", i), "function", function{c.Name, c.Arguments}}
	}
	return json.Marshal(list)
}

// Reply returns the tokens from the end of a turn, which token end ended (-1: no token), to where the assistant speaks
// after messages.
func (p *Prompter) Reply(end int32, list []rollout.Message) ([]int32, error) {
	return p.Answered(end, nil, list, 0)
}

// Answered is Reply where the turn made calls, which some templates must see before a tool's answer. The ImageParts of
// the messages stand for images, in order; so many came before.
func (p *Prompter) Answered(end int32, calls []toolcall.Call, list []rollout.Message, before int,
	images ...rollout.Picture) ([]int32, error) {
	if err := p.checkShown(list, images); err != nil {
		return nil, err
	}
	text, mark, err := p.replyText(end, calls, list, before)
	if err != nil {
		return nil, err
	}
	if text, err = p.timed(images, text); err != nil {
		return nil, err
	}
	ids, err := p.untrusted.encode(p.Tokenizer, text, mark, tokenizer.Options{Added: true})
	if err == nil {
		err = p.known(ids)
	}
	if err == nil && len(images) > 0 {
		ids, err = p.illustrated(images, ids)
	}
	return ids, err
}

// Inserted returns the tokens of a tool's answer between two texts. Text of the answer that spells a token stays
// text. Characters that a small alphabet lacks are left out.
func (p *Prompter) Inserted(before, answer, after string) (ids []int32, err error) {
	if p.own {
		var known strings.Builder
		for _, r := range before + answer + after {
			if _, err := p.Tokenizer.Encode(string(r), tokenizer.Options{}); err == nil {
				known.WriteRune(r)
			}
		}
		return p.Tokenizer.Encode(known.String(), tokenizer.Options{})
	}
	mark, err := freeMark([]byte(before + answer + after))
	if err != nil {
		return nil, err
	}
	e := p.untrusted
	ids, err = e.encode(p.Tokenizer, before+e.cut(answer, mark)+after, mark, tokenizer.Options{Added: true})
	if err == nil {
		err = p.known(ids)
	}
	return ids, err
}
