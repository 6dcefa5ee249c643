package ask

import (
	"errors"
	"strings"

	"exp/train/rollout"
)

// blank stands for the option in a question with a blank: one or more of it.
const blank = "_"

// cutBlank returns the texts of a question before its first blank and behind it, that one without spaces around it.
func cutBlank(question string) (before, after string) {
	before, after, _ = strings.Cut(question, blank)
	return before, strings.TrimSpace(strings.TrimLeft(after, blank))
}

// checkBlank returns an error for a question with options whose blank cannot be filled.
func checkBlank(p *rollout.Problem) error {
	_, after := cutBlank(p.Choice.Question)
	switch {
	case len(p.Images) > 0:
		return errors.New("shows images")
	case len(p.Messages) > 1:
		return errors.New("is a chat of several messages")
	case !strings.Contains(p.Choice.Question, blank):
		return errors.New("has no blank (" + blank + ") in its question")
	case strings.Contains(after, blank):
		return errors.New("has several blanks (" + blank + ") in its question")
	case after == "":
		return errors.New("has no text behind the blank (" + blank + ") of its question")
	}
	return nil
}

// Filled returns a problem rendered for eval.ByBlank with an option in its blank, which ends its prompt, and what the
// sentence is from there on.
func Filled(p *rollout.Problem, option string) (filled rollout.Problem, rest string) {
	filled = *p
	filled.Prompt += option
	filled.Messages = around(p.Messages, "", option)
	_, after := cutBlank(p.Choice.Question)
	return filled, option + " " + after
}
