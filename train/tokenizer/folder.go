package tokenizer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// ReadFolder returns the tokenizer of a Hugging Face model folder. So far it reads
// what Char writes; another kind, such as a byte-level BPE, is an error that says so.
func ReadFolder(dir string) (Tokenizer, error) {
	path := filepath.Join(dir, "tokenizer.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	var file tokenizerJSON
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("tokenizer: %s: %w", path, err)
	}
	if file.Model.Type != "WordLevel" {
		return nil, fmt.Errorf("tokenizer: %s has a %s model; only the character tokenizers of this program can be read", path, file.Model.Type)
	}
	alphabet := ""
	for piece := range file.Model.Vocab {
		if piece != EndToken {
			alphabet += piece
		}
	}
	c, err := NewChar(alphabet)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for piece, id := range file.Model.Vocab {
		if piece == EndToken && id == 0 {
			continue
		}
		if ids, err := c.Encode(piece, Options{}); err != nil || len(ids) != 1 || ids[0] != int32(id) {
			return nil, fmt.Errorf("tokenizer: %s is no character tokenizer of this program: token %q has id %d", path, piece, id)
		}
	}
	return c, nil
}
