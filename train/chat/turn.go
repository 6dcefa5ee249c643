package chat

import (
	"context"
	"errors"
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
