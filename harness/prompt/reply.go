package prompt

import (
	"errors"
	"fmt"
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
	text, _, err := p.replyText(end, []rollout.Message{{Role: role, Content: said}})
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
// the assistant speaks after messages. mark stands where text of the messages that spells a token is cut.
func (p *Prompter) replyText(end int32, list []rollout.Message) (text string, mark rune, err error) {
	if p.template == nil {
		return "", 0, errors.New("the run has no chat template, which writes the answers")
	}
	if list, _, mark, err = p.untrusted.chat(list, nil); err != nil {
		return "", 0, err
	}
	before := []rollout.Message{{Role: "user", Content: askedBefore}, {Role: "assistant", Content: answerBefore}}
	if text, err = p.template.render(append(before, list...), nil, true); err != nil {
		return "", 0, err
	}
	_, text, found := strings.Cut(text, answerBefore)
	if !found {
		return "", 0, errors.New("the chat template drops the assistant's message before an answer")
	}
	if end < 0 {
		return text, mark, nil
	}
	// The sampled token is not written twice.
	if rest, ok := strings.CutPrefix(strings.TrimLeft(text, " \n"), p.Tokenizer.Token(end)); ok {
		text = rest
	}
	return text, mark, nil
}

// Reply returns the tokens from the end of a turn, which token end ended (-1: no token), to where the assistant speaks
// after messages.
func (p *Prompter) Reply(end int32, list []rollout.Message) ([]int32, error) {
	text, mark, err := p.replyText(end, list)
	if err != nil {
		return nil, err
	}
	ids, err := p.untrusted.encode(p.Tokenizer, text, mark, tokenizer.Options{Added: true})
	if err == nil {
		err = p.known(ids)
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
