package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Texts that a template does not write of itself and does not change.
const (
	firstQuestion = "qX7first"
	firstAnswer   = "aX7first"
	nextQuestion  = "qX7second"
)

// EndOfTurn returns the text that a template writes after the content of an
// assistant message, up to the content of the next message of the user: in it
// stands the token that ends a turn, before the beginning of the next one. special
// and vars are as in Input. The error is for templates that do not render a chat
// of three messages, or not the texts of its messages.
func EndOfTurn(ctx context.Context, t *Template, in Input) (string, error) {
	in.Messages = []Message{
		NewMessage("user", firstQuestion), NewMessage("assistant", firstAnswer), NewMessage("user", nextQuestion),
	}
	in.AddGenerationPrompt = false
	text, err := t.Render(ctx, in)
	if err != nil {
		return "", err
	}
	_, rest, ok := strings.Cut(text, firstAnswer)
	if !ok {
		return "", errors.New("chat: the template does not show the content of an assistant message")
	}
	end, _, ok := strings.Cut(rest, nextQuestion)
	if !ok {
		return "", errors.New("chat: the template does not show a question after an answer")
	}
	return end, nil
}

// PrefixError is returned when a chat cannot be continued by appending text.
type PrefixError struct {
	Messages int // as many messages render to a text that is no prefix of the whole
	Byte     int // the texts differ from here on
}

func (e *PrefixError) Error() string {
	return fmt.Sprintf("chat: the first %d messages render to another text than within the whole chat, from byte %d on: the template rewrites earlier turns", e.Messages, e.Byte)
}

// CheckPrefix checks that each part of a chat that ends before an assistant
// message, with the generation prompt, and each that ends with one, renders to a
// prefix of the whole. Only then can a chat of several turns be sampled and trained
// on by appending. Its error is a *PrefixError, or that of a rendering.
func CheckPrefix(ctx context.Context, t *Template, in Input) error {
	whole := in
	whole.AddGenerationPrompt = false
	full, err := t.Render(ctx, whole)
	if err != nil {
		return err
	}
	for i, m := range in.Messages {
		if m.Role() != "assistant" {
			continue
		}
		for _, n := range []int{i, i + 1} {
			part := in
			part.Messages = in.Messages[:n]
			part.AddGenerationPrompt = n == i
			text, err := t.Render(ctx, part)
			if err != nil {
				return err
			}
			if !strings.HasPrefix(full, text) {
				return &PrefixError{Messages: n, Byte: commonPrefix(full, text)}
			}
		}
	}
	return nil
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
