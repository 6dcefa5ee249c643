package stage

import (
	"fmt"
	"slices"

	"exp/eval/task"
	"exp/harness/config"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// Tokenizer returns the configured tokenizer; see NewPrompter for prompts.
func Tokenizer(c *config.Run) (tokenizer.Tokenizer, error) {
	tok, _, err := readTokenizer(c)
	return tok, err
}

// readTokenizer returns the configured tokenizer, and whether it is one of ours that
// knows text only.
func readTokenizer(c *config.Run) (tok tokenizer.Tokenizer, own bool, err error) {
	switch c.Tokenizer.Kind {
	case "model":
		tok, err = tokenizer.ReadFolder(c.Model.Base)
		return tok, false, err
	case "file":
		tok, err = tokenizer.ReadFolder(c.Tokenizer.Path)
		return tok, false, err
	}
	if c.Tokenizer.Kind == "byte" {
		return tokenizer.Byte{}, true, nil
	}
	t, err := task.New(taskConfig(c))
	if err != nil {
		return nil, true, err
	}
	alphabet := t.Alphabet()
	if alphabet == "" {
		if alphabet, err = dataAlphabet(c, t); err != nil {
			return nil, true, err
		}
	}
	tok, err = tokenizer.NewChar(alphabet)
	return tok, true, err
}

// dataAlphabet holds the characters of the prompts, as a chat template writes them, and
// of the answers and targets of all splits.
func dataAlphabet(c *config.Run, t task.Task) (string, error) {
	stand, err := tokenizer.NewChar("a") // has the special tokens of any
	if err != nil {
		return "", err
	}
	tmpl, err := newTemplate(c, stand)
	if err != nil {
		return "", &ChatError{err}
	}
	found := map[rune]bool{}
	for _, s := range splits(c) {
		if s.conf.Source == config.None || s.conf.Source == config.Generated {
			continue
		}
		problems, err := s.read(t)
		if err != nil {
			return "", &DataError{s.key, err}
		}
		for i := range problems {
			if err := addCharacters(found, tmpl, &problems[i]); err != nil {
				return "", &ChatError{fmt.Errorf("problem %s: %w", problems[i].ID, err)}
			}
		}
	}
	var all []rune
	for r := range found {
		all = append(all, r)
	}
	slices.Sort(all)
	return string(all), nil
}

func addCharacters(found map[rune]bool, tmpl *template, p *rollout.Problem) (err error) {
	prompt := p.Prompt
	if tmpl != nil {
		if prompt, err = tmpl.prompt(tmpl.messagesOf(p), tmpl.toolsOf(p)); err != nil {
			return err
		}
	}
	for _, text := range []string{prompt, p.Answer, p.Target} {
		for _, r := range text {
			found[r] = true
		}
	}
	return nil
}

// DataError is of NewPrompter about data that the alphabet comes from.
type DataError struct {
	Key string // of the source
	Err error
}

func (e *DataError) Error() string { return e.Err.Error() }
func (e *DataError) Unwrap() error { return e.Err }
