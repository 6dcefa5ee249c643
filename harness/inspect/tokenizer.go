package inspect

import (
	"fmt"
	"os"
	"path/filepath"

	"exp/train/checkpoint"
	"exp/train/tokenizer"
)

// tokenizerNotes tells a user about a model's tokenizer before a run:
// that it cannot be read, that it has ids without an embedding, and where it differs
// from Hugging Face's library.
func tokenizerNotes(d *checkpoint.Description) []string {
	if info, err := os.Stat(d.Path); err != nil || !info.IsDir() {
		return nil
	}
	dir := checkpoint.TextsFolder(d.Path)
	there := false
	for _, name := range []string{"tokenizer.json", "vocab.json", "tokenizer.model"} {
		_, err := os.Lstat(filepath.Join(dir, name))
		there = there || err == nil
	}
	if !there {
		return []string{"no tokenizer in the folder: exp eval and exp run need one (tokenizer.json)"}
	}
	t, err := tokenizer.ReadFolder(dir)
	if err != nil {
		return []string{fmt.Sprintf("%v; exp eval and exp run cannot use the folder as it is", err)}
	}
	var list []string
	if vocab := d.Config.Vocab; d.Known && t.VocabSize() > vocab {
		some := ""
		for id := vocab; id < t.VocabSize() && some == ""; id++ {
			some = t.Token(int32(id))
		}
		list = append(list, fmt.Sprintf("the tokenizer has ids up to %d, the model has embeddings up to %d: "+
			"a text with such a token (%s) is refused", t.VocabSize()-1, vocab-1, some))
	}
	return append(list, tokenizer.Notes(t)...)
}
