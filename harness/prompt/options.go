package prompt

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"exp/train/rollout"
)

// Continued is a prompt and the ids of a text that continues it.
type Continued struct{ Prompt, Text []int32 }

// Continue returns the ids of a problem's prompt with each of some texts, which the model might answer. Prompt and
// text are encoded together, and the text's tokens follow as many as the prompt has alone, as in
// lm-evaluation-harness (TemplateLM._encode_pair), so a token that spans both belongs to the prompt's. In a chat the
// text begins the assistant's turn. In a plain prompt a space stands before it, unless the prompt ends with one;
// spaces at the end of the prompt move to the text.
//
// Prompts have at most data.max_prompt_tokens, as Encode cuts them.
func (p *Prompter) Continue(q *rollout.Problem, texts []string) ([]Continued, error) {
	if err := p.checkImages(q); err != nil {
		return nil, err
	}
	whole := p.behindPlain(q.Prompt)
	if p.template != nil {
		whole = p.behindChat(q)
	}
	alone, err := whole("")
	if err != nil {
		return nil, err
	}
	list := make([]Continued, len(texts))
	for i, text := range texts {
		ids, err := whole(text)
		if err == nil {
			err = p.known(ids)
		}
		if err == nil && len(ids) <= len(alone) {
			err = errors.New("it has no token of its own behind the prompt")
		}
		if err != nil {
			return nil, fmt.Errorf("%.60q: %w", text, err)
		}
		x := Continued{Prompt: ids[:len(alone):len(alone)], Text: ids[len(alone):]}
		if x.Prompt, err = p.illustrated(q.Images, x.Prompt); err == nil {
			x.Prompt, err = p.cut(q, x.Prompt)
		}
		if err != nil {
			return nil, err
		}
		list[i] = x
	}
	return list, nil
}

// behindPlain returns the function that encodes a plain prompt and a text behind it; without a text, the prompt
// without spaces at its end.
func (p *Prompter) behindPlain(prompt string) func(text string) ([]int32, error) {
	bare := strings.TrimRightFunc(prompt, unicode.IsSpace)
	between := prompt[len(bare):] + Between(prompt)
	return func(text string) ([]int32, error) {
		if text == "" {
			return p.plain(bare)
		}
		return p.plain(bare + between + text)
	}
}

// behindChat returns the function that encodes a problem's chat and a text behind it.
func (p *Prompter) behindChat(q *rollout.Problem) func(text string) ([]int32, error) {
	list, tools := p.template.messagesOf(q), p.template.toolsOf(q)
	return func(text string) ([]int32, error) {
		if text != "" {
			text = p.template.opened(text)
		}
		ids, _, err := p.encodeChatAnd(p.escaper, list, tools, true, text, q.Images...)
		return ids, err
	}
}

// Between returns what stands between a plain prompt and an answer: a space, unless the prompt ends with one.
func Between(prompt string) string {
	if last, _ := utf8.DecodeLastRuneInString(prompt); prompt == "" || unicode.IsSpace(last) {
		return ""
	}
	return " "
}
