package chat

import (
	"context"
	"errors"
	"strings"
)

// Texts that no template writes itself or changes.
const (
	firstQuestion = "qX7first"
	firstAnswer   = "aX7first"
	nextQuestion  = "qX7second"
)

// ReadsParts reports whether a template writes contents that are lists of parts, and drops those that are text, as
// Idefics3's and SmolVLM's do. Input.TextParts makes it write both.
func ReadsParts(ctx context.Context, t *Template, in Input) bool {
	writes := func(parts bool) bool {
		in.Messages, in.TextParts = []Message{NewMessage("user", firstQuestion)}, parts
		text, err := t.Render(ctx, in)
		return err == nil && strings.Contains(text, firstQuestion)
	}
	return !writes(false) && writes(true)
}

// EndOfTurn returns the text that a template writes between the content of an assistant
// message and the content of the next user message; the token that ends a turn is in it,
// before the start of the next turn. special and vars are as in Input. It returns an error
// if the template does not render a chat of three messages, or not their texts.
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
