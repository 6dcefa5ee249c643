package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// mostBytes bounds the size of a file: the largest published tokenizer.json has about 40
// MB.
const mostBytes = 256 << 20

// tokenizerFiles lists the tokenizer's files in a model folder. config.json is also read,
// for its eos_token_id, but belongs to the model.
func tokenizerFiles() []string {
	return []string{"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
		"generation_config.json", "chat_template.jinja", "chat_template.json", "vocab.json", "merges.txt",
		sentencePieceFile}
}

// templateFolder holds further chat templates.
const templateFolder = "additional_chat_templates"

// ReadFolder returns the tokenizer of a Hugging Face model folder: from its tokenizer.json,
// or from vocab.json and merges.txt if tokenizer_config.json names GPT-2's or Qwen2's
// tokenizer, or from SentencePiece's tokenizer.model. An error names the file and the unsupported part.
func ReadFolder(dir string) (Tokenizer, error) {
	files, err := readFiles(dir)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	t, err := ReadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %s: %w", dir, err)
	}
	return t, nil
}

// checkFolder returns an error if dir, or what should hold it, is a file.
func checkFolder(dir string) error {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case err == nil && !info.IsDir():
			return fmt.Errorf("%s is a file; name a folder with tokenizer.json", at)
		case !errors.Is(err, syscall.ENOTDIR) || at == filepath.Dir(at):
			return nil // what reads it says why it cannot
		}
	}
}

func readFiles(dir string) (map[string][]byte, error) {
	if err := checkFolder(dir); err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	names := append(tokenizerFiles(), "config.json")
	entries, err := os.ReadDir(filepath.Join(dir, templateFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, path.Join(templateFolder, e.Name()))
		}
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	for _, name := range names {
		full := filepath.Join(dir, filepath.FromSlash(name))
		info, err := os.Stat(full)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a regular file", full)
		}
		if info.Size() > mostBytes {
			return nil, fmt.Errorf("%s has %d bytes, over the limit of %d", full, info.Size(), mostBytes)
		}
		if files[name], err = os.ReadFile(full); err != nil {
			return nil, err
		}
		if bytes.HasPrefix(files[name], []byte("version https://git-lfs")) {
			return nil, fmt.Errorf("%s is a pointer of git-lfs, not the file; run git lfs pull in its folder", full)
		}
	}
	return files, nil
}

// ReadFiles is ReadFolder for files in memory, by name. The tokenizer keeps the files.
func ReadFiles(files map[string][]byte) (Tokenizer, error) {
	s, err := readSettings(files)
	if err != nil {
		return nil, err
	}
	raw, err := mainFile(files, s)
	if err != nil {
		return nil, err
	}
	kept := map[string][]byte{}
	for name, b := range files {
		if slices.Contains(tokenizerFiles(), name) || strings.HasPrefix(name, templateFolder+"/") {
			kept[name] = b
		}
	}
	if c, ok := asChar(raw); ok {
		return withFiles(c, kept), nil
	}
	if asByte(raw) {
		return withFiles(Byte{}, kept), nil
	}
	p, err := newPipeline(raw, s)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	p.files = kept
	return p, nil
}

// mainFile returns tokenizer.json, or its equivalent for vocab.json and merges.txt, or for tokenizer.model.
func mainFile(files map[string][]byte, s *settings) ([]byte, error) {
	if raw, ok := files["tokenizer.json"]; ok {
		return bytes.TrimPrefix(raw, []byte("\xEF\xBB\xBF")), nil
	}
	vocab, hasVocab := files["vocab.json"]
	merges, hasMerges := files["merges.txt"]
	switch {
	case hasVocab && hasMerges:
		return fromVocabFiles(vocab, merges, s)
	case files[sentencePieceFile] != nil:
		return fromSentencePiece(files, s)
	case hasVocab || hasMerges:
		return nil, errors.New("tokenizer.json is missing, and so is one of vocab.json and merges.txt")
	}
	return nil, errors.New("tokenizer.json is missing")
}

// fromVocabFiles returns the tokenizer.json of a byte-level BPE stored in GPT-2's two
// files, as transformers would convert it.
func fromVocabFiles(vocab, merges []byte, s *settings) ([]byte, error) {
	level := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false}
	var normal, pre any
	switch s.class {
	case "GPT2Tokenizer", "GPT2TokenizerFast":
		pre = level
	case "Qwen2Tokenizer", "Qwen2TokenizerFast":
		level["use_regex"] = false
		normal = typed{Type: "NFC"}
		pre = map[string]any{"type": "Sequence", "pretokenizers": []any{
			split{Type: "Split", Pattern: pattern{Regex: patternQwen}, Behavior: "Isolated"}, level}}
	default:
		return nil, fmt.Errorf("tokenizer.json is missing; vocab.json and merges.txt are supported for "+
			"GPT2Tokenizer "+
			"and Qwen2Tokenizer, but tokenizer_config.json has tokenizer_class %q", s.class)
	}
	var lines []string
	for _, line := range strings.Split(string(merges), "\n") {
		if line = strings.TrimSuffix(line, "\r"); line != "" && !strings.HasPrefix(line, "#version") {
			lines = append(lines, line)
		}
	}
	return json.Marshal(map[string]any{"version": "1.0", "added_tokens": []any{}, "normalizer": normal,
		"pre_tokenizer": pre,
		"decoder":       level, "model": map[string]any{"type": "BPE", "vocab": json.RawMessage(vocab),
			"merges": lines}})
}

// mostCharFile is far above the size of a Char of all Unicode characters.
const mostCharFile = 64 << 20

// asChar returns the Char that wrote this tokenizer.json, or nil.
func asChar(raw []byte) (*Char, bool) {
	var file tokenizerJSON
	if len(raw) > mostCharFile || !bytes.Contains(raw, []byte(`"WordLevel"`)) {
		return nil, false
	}
	if json.Unmarshal(raw, &file) != nil || file.Model.Type != "WordLevel" || file.Normalizer != nil ||
		len(file.AddedTokens) != 1 || file.AddedTokens[0].Content != EndToken {
		return nil, false
	}
	if s := file.PreTokenizer; s.Type != "Split" || s.Pattern.Regex != anyCharacter ||
		s.Behavior != "Isolated" || s.Invert {
		return nil, false
	}
	var alphabet strings.Builder
	for piece := range file.Model.Vocab {
		if piece != EndToken {
			alphabet.WriteString(piece)
		}
	}
	c, err := NewChar(alphabet.String())
	if err != nil || len(file.Model.Vocab) != c.VocabSize() {
		return nil, false
	}
	for piece, id := range file.Model.Vocab {
		if own, ok := c.TokenID(piece); !ok || int(own) != id {
			return nil, false
		}
	}
	return c, true
}

// filed is one of our tokenizers read from a folder with more files than it writes.
type filed struct {
	Tokenizer
	files map[string][]byte
}

func (f filed) Files() map[string][]byte { return maps.Clone(f.files) }

// withFiles returns t, with files attached if they differ from the ones it writes.
func withFiles(t Tokenizer, files map[string][]byte) Tokenizer {
	if maps.EqualFunc(t.Files(), files, bytes.Equal) {
		return t
	}
	return filed{t, files}
}
