package vocab

import (
	"exp/train/checkpoint"
	"exp/train/tokenizer"
)

// SpecialTexts returns the texts of the special tokens of a tokenizer in a folder.
func SpecialTexts(dir string) ([]string, error) {
	t, err := tokenizer.ReadFolder(checkpoint.TextsFolder(dir))
	if err != nil {
		return nil, err
	}
	return tokenizer.SpecialTexts(t), nil
}
