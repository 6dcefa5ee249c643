package prompt

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"

	"exp/eval/task"
	"exp/harness/config"
	"exp/harness/dataset"
	"exp/train/checkpoint"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// Tokenizer returns the configured tokenizer; see New for prompts.
func Tokenizer(c *config.Run) (tokenizer.Tokenizer, error) {
	tok, _, err := readTokenizer(c)
	return tok, err
}

// readTokenizer returns the configured tokenizer, and whether it is one of ours that only encodes
// text.
func readTokenizer(c *config.Run) (tok tokenizer.Tokenizer, own bool, err error) {
	switch c.Tokenizer.Kind {
	case "model":
		tok, err = tokenizer.ReadFolder(checkpoint.TextsFolder(c.Model.Base))
		return tok, false, err
	case "file":
		switch tok, err = tokenizer.ReadFolder(c.Tokenizer.Path); {
		case errors.Is(err, fs.ErrNotExist):
			err = fmt.Errorf("tokenizer.path: %w; exp tokenizer train RECIPE --vocab-size N learns one from the "+
				"recipe's training texts and writes it there", err)
		case err != nil:
			err = fmt.Errorf("tokenizer.path: %w", err)
		}
		return tok, false, err
	}
	if c.Tokenizer.Kind == "byte" {
		return tokenizer.Byte{}, true, nil
	}
	t, err := task.New(dataset.TaskConfig(c))
	if err != nil {
		return nil, true, err
	}
	alphabet := t.Alphabet()
	if alphabet == "" || c.Task.Kind == config.MixedTask { // which may read problems, too
		if alphabet, err = dataAlphabet(c, t); err != nil {
			return nil, true, err
		}
	}
	tok, err = tokenizer.NewChar(alphabet)
	return tok, true, err
}

// dataAlphabet returns the characters of the prompts, as a chat template writes them, and of the
// answers and targets of all splits, and the alphabet of the problems that the task makes.
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
	for _, r := range t.Alphabet() {
		found[r] = true
	}
	for _, s := range dataset.Splits(c) {
		if s.Config.Source == config.None || s.Config.Source == config.Generated {
			continue
		}
		problems, _, err := s.Read(t)
		if err != nil {
			return "", &DataError{err}
		}
		for i := range problems {
			if err := addCharacters(found, tmpl, &problems[i]); err != nil {
				return "", &ChatError{fmt.Errorf("problem %s: %w", problems[i].ID, err)}
			}
		}
	}
	if c.SFT.OnConversations() {
		if err := addConversations(found, tmpl, c); err != nil {
			return "", err
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

// addConversations adds the characters of sft.source.
func addConversations(found map[rune]bool, tmpl *template, c *config.Run) error {
	list, err := dataset.Conversations(c, dataset.TaughtImages(c))
	if err != nil {
		return &DataError{err}
	}
	for i := range list {
		for _, m := range list[i].Messages {
			for _, r := range m.Content {
				found[r] = true
			}
		}
		if tmpl == nil || len(list[i].Messages) == 0 {
			for _, r := range list[i].Prompt + list[i].Target {
				found[r] = true
			}
			continue
		}
		text, err := tmpl.prompt(tmpl.messagesOf(&list[i].Problem), tmpl.toolsOf(&list[i].Problem))
		if err != nil {
			return &ChatError{fmt.Errorf("%s: %w", list[i].Where, err)}
		}
		for _, r := range text {
			found[r] = true
		}
	}
	return nil
}

// DataError is returned by New for data that the alphabet comes from.
type DataError struct{ Err error }

func (e *DataError) Error() string { return e.Err.Error() }
func (e *DataError) Unwrap() error { return e.Err }

// TrainingTexts yields the texts that a model of this configuration learns from: prompt and target
// of each training problem, as the task makes or reads them, without a chat template. It needs no
// tokenizer, so one can be learned from them.
func TrainingTexts(c *config.Run) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		t, err := task.New(dataset.TaskConfig(c))
		if err != nil {
			yield("", err)
			return
		}
		train := dataset.Splits(c)[0]
		problems, _, _, err := train.Problems(t, c.Data.Seed)
		if err != nil {
			yield("", &DataError{err})
			return
		}
		for i := range problems {
			for _, text := range textsOf(&problems[i]) {
				if !yield(text, nil) {
					return
				}
			}
		}
	}
}

// textsOf returns the texts of a problem that a model reads or writes.
func textsOf(p *rollout.Problem) []string {
	if len(p.Messages) == 0 {
		return []string{p.Prompt, p.Target}
	}
	var list []string
	for _, m := range rollout.WithoutImages(p.Messages) {
		list = append(list, m.Content)
	}
	return append(list, p.Target)
}
