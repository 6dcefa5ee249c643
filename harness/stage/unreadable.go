package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"exp/harness/config"
	"exp/harness/prompt"
)

// Unreadable lists errors in the existing files of a model that a configuration names: its
// architecture, the headers of its weights, its tokenizer and its chat template. It does not read
// data.
func Unreadable(c *config.Run) (list []string) {
	there := true
	if c.Model.Init == "pretrained" {
		_, err := os.Stat(c.Model.Base)
		if there = err == nil; there {
			arch, err := ReadArchitecture(c)
			if err != nil {
				list = append(list, fmt.Sprintf("a supported model: %v", err))
			} else {
				checkStartAdapter(c, arch, func(_, _, message,
					_ string) {
					list = append(list, "adapters to start with: "+message)
				})
			}
			if t, err := OpenModel(c); err != nil {
				list = append(list, fmt.Sprintf("readable weights: %v", err))
			} else {
				t.Close()
			}
		}
	}
	if !there && c.Tokenizer.Kind == "model" {
		return list
	}
	var data *prompt.DataError
	if _, err := NewPrompter(c); err != nil && !(errors.As(err, &data) && errors.Is(err, fs.ErrNotExist)) {
		list = append(list, fmt.Sprintf("prompts: %v", err))
	}
	return list
}
