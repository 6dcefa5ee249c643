package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/train/checkpoint/gguf"
	"exp/train/model"
)

// Types of tokens in GGUF.
const (
	ggufNormal  = 1
	ggufControl = 3 // a special token
	ggufDefined = 4 // an added one that is text
	ggufUnused  = 5
)

// tokenizerFile is what a GGUF needs of tokenizer.json.
type tokenizerFile struct {
	Model struct {
		Type   string
		Vocab  map[string]int32
		Merges []json.RawMessage
		// ByteFallback belongs to SentencePiece's vocabularies.
		ByteFallback bool `json:"byte_fallback"`
		// IgnoreMerges takes a piece whole that is a token; llama.cpp does so with Llama 3's pattern alone.
		IgnoreMerges bool   `json:"ignore_merges"`
		Begin        string `json:"continuing_subword_prefix"`
		End          string `json:"end_of_word_suffix"`
	}
	Normalizer *struct{ Type string } // nil: none
	Added      []struct {
		ID      int32
		Content string
		Special bool
	} `json:"added_tokens"`
	Pre       json.RawMessage `json:"pre_tokenizer"`
	Processor json.RawMessage `json:"post_processor"`
}

// ggufTokenizer returns the tokenizer's settings, and the chat template.
func (p *packer) ggufTokenizer(conf model.Config) ([]gguf.Field, error) {
	raw, err := readSmall(filepath.Join(p.c.Texts, "tokenizer.json"), maxTokenizer)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &Error{Op: "convert", Path: p.c.Path,
			Err:  fmt.Errorf("no tokenizer.json is with the weights: %w", err),
			Hint: "name a folder that has it: --hf-config DIR"}
	}
	if err != nil {
		return nil, err
	}
	var f tokenizerFile
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	if err := f.plain(); err != nil {
		return nil, err
	}
	pre, err := f.pattern()
	if err == nil && f.Model.IgnoreMerges && pre != llama3Pattern {
		err = errors.New("tokenizer.json: llama.cpp has ignore_merges only with Llama 3's pattern")
	}
	if err != nil {
		return nil, err
	}
	tokens, types, err := f.tokens(conf.Vocab)
	if err != nil {
		return nil, err
	}
	merges, err := f.merges()
	if err != nil {
		return nil, err
	}
	list := []gguf.Field{{Key: "tokenizer.ggml.model", Value: "gpt2"}, {Key: "tokenizer.ggml.pre", Value: pre},
		{Key: "tokenizer.ggml.tokens", Value: tokens}, {Key: "tokenizer.ggml.token_type", Value: types},
		{Key: "tokenizer.ggml.merges", Value: merges}}
	var set tokenizerSettings
	for _, name := range []string{configFile, "generation_config.json", "tokenizer_config.json"} { // later ones win
		if err := set.read(filepath.Join(p.c.Texts, name), tokens); err != nil {
			return nil, err
		}
	}
	for _, x := range []struct {
		key string
		id  int32
		has bool
	}{{"bos", set.bos, set.hasBOS}, {"eos", set.eos, set.hasEOS}, {"padding", set.pad, set.hasPad}} {
		if x.has {
			list = append(list, gguf.Field{Key: "tokenizer.ggml." + x.key + "_token_id", Value: uint32(x.id)})
		}
	}
	begins := set.hasBOS && (set.addBOS || f.begins(tokens[set.bos]))
	list = append(list, gguf.Field{Key: "tokenizer.ggml.add_bos_token", Value: begins})
	template, err := chatTemplate(p.c.Texts, set.template)
	if template != "" {
		list = append(list, gguf.Field{Key: "tokenizer.chat_template", Value: template})
	}
	return list, err
}

// maxTokenizer bounds tokenizer.json; the largest published one has about 40 MB.
const maxTokenizer = 256 << 20

// tokens returns the texts and types of all ids of the model.
func (f *tokenizerFile) tokens(vocab int) (tokens []string, types []int32, err error) {
	tokens, types = make([]string, vocab), make([]int32, vocab)
	for i := range tokens {
		tokens[i], types[i] = fmt.Sprintf("[PAD%d]", i), ggufUnused
	}
	put := func(text string, id, kind int32) {
		if id < 0 || int(id) >= vocab {
			err = fmt.Errorf("tokenizer.json: token %q has id %d, and the model %d tokens", text, id, vocab)
			return
		}
		tokens[id], types[id] = text, kind
	}
	for text, id := range f.Model.Vocab {
		put(text, id, ggufNormal)
	}
	for _, a := range f.Added {
		if a.Special {
			put(a.Content, a.ID, ggufControl)
		} else {
			put(a.Content, a.ID, ggufDefined)
		}
	}
	return tokens, types, err
}

// merges returns the merges, each as two texts with a space between.
func (f *tokenizerFile) merges() ([]string, error) {
	list := make([]string, len(f.Model.Merges))
	for i, raw := range f.Model.Merges {
		var pair []string
		if json.Unmarshal(raw, &list[i]) == nil {
			continue
		}
		if err := json.Unmarshal(raw, &pair); err != nil || len(pair) != 2 {
			return nil, fmt.Errorf("tokenizer.json: merge %d is neither a text nor two", i)
		}
		list[i] = pair[0] + " " + pair[1]
	}
	return list, nil
}

// plain returns an error for steps that a GGUF cannot say. NFC, which llama.cpp leaves out, matters to few texts.
func (f *tokenizerFile) plain() error {
	if n := f.Normalizer; n != nil && n.Type != "NFC" {
		return fmt.Errorf("tokenizer.json: llama.cpp has no normalizer %s", n.Type)
	}
	if f.Model.Begin+f.Model.End != "" {
		return errors.New("tokenizer.json: llama.cpp has no continuing_subword_prefix and end_of_word_suffix")
	}
	return nil
}

// llama3Pattern is llama.cpp's name of Llama 3's pattern.
const llama3Pattern = "llama-bpe"

// ggufPatterns are the patterns that cut texts before BPE, and llama.cpp's names of them.
func ggufPatterns() map[string]string {
	const contractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|`
	const rest = `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	return map[string]string{contractions + `\p{N}` + rest: "qwen2", contractions + `\p{N}{1,3}` + rest: llama3Pattern}
}

// pattern returns llama.cpp's name of what cuts texts before BPE.
func (f *tokenizerFile) pattern() (string, error) {
	if f.Model.Type != "BPE" && (f.Model.Type != "" || len(f.Model.Merges) == 0) || f.Model.ByteFallback {
		return "", errors.New("tokenizer.json: only byte-level BPE is written as GGUF")
	}
	steps, err := preSteps(f.Pre)
	if err != nil {
		return "", err
	}
	last := len(steps) - 1
	if last < 0 || steps[last].Type != "ByteLevel" || !said(steps[last].AddPrefixSpace, false) {
		return "", errors.New("tokenizer.json: only byte-level BPE without a space before texts is written as GGUF")
	}
	var kinds []string
	for _, s := range steps {
		kinds = append(kinds, s.Type)
	}
	switch uses := !said(steps[last].UseRegex, false); {
	case last == 0 && uses:
		return "gpt-2", nil
	case last == 1 && uses && steps[0].Type == "Digits" && steps[0].IndividualDigits:
		return "smollm", nil
	case last == 1 && !uses && steps[0].Type == "Split" && steps[0].Behavior == "Isolated" && !steps[0].Invert:
		if name, ok := ggufPatterns()[steps[0].Pattern.Regex]; ok {
			return name, nil
		}
	}
	return "", fmt.Errorf("tokenizer.json: llama.cpp is not known to cut texts as this one does (%s)",
		strings.Join(kinds, ", "))
}

// said reports whether a setting is there and has a value.
func said(x *bool, value bool) bool { return x != nil && *x == value }

// preStep is a step of a pre-tokenizer.
type preStep struct {
	Type             string
	AddPrefixSpace   *bool `json:"add_prefix_space"` // absent: true
	UseRegex         *bool `json:"use_regex"`        // absent: true
	IndividualDigits bool  `json:"individual_digits"`
	Behavior         string
	Invert           bool
	Pattern          struct{ Regex string }
	Steps            []preStep `json:"pretokenizers"`
}

// preSteps returns the steps of a pre-tokenizer.
func preSteps(raw json.RawMessage) ([]preStep, error) {
	var s preStep
	if len(raw) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("tokenizer.json: pre_tokenizer: %w", err)
	}
	if s.Type == "Sequence" {
		return s.Steps, nil
	}
	return []preStep{s}, nil
}

// begins reports whether the post-processor puts the token before texts.
func (f *tokenizerFile) begins(token string) bool {
	var x struct {
		Type       string
		Single     []struct{ SpecialToken *struct{ ID string } }
		Processors []json.RawMessage
	}
	if json.Unmarshal(f.Processor, &x) != nil {
		return false
	}
	for _, raw := range x.Processors {
		if (&tokenizerFile{Processor: raw}).begins(token) {
			return true
		}
	}
	return x.Type == "TemplateProcessing" && len(x.Single) > 0 && x.Single[0].SpecialToken != nil &&
		x.Single[0].SpecialToken.ID == token
}

// tokenizerSettings holds what config.json, generation_config.json and tokenizer_config.json say of the tokenizer.
type tokenizerSettings struct {
	bos, eos, pad          int32
	hasBOS, hasEOS, hasPad bool
	addBOS                 bool
	template               string
}

// read reads the settings of a file, if there is one.
func (x *tokenizerSettings) read(path string, tokens []string) error {
	raw, err := readSmall(path, maxConfig)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var v map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	for name, to := range map[string]struct {
		id  *int32
		has *bool
	}{"bos": {&x.bos, &x.hasBOS}, "eos": {&x.eos, &x.hasEOS}, "pad": {&x.pad, &x.hasPad}} {
		if id, ok := tokenID(v[name+"_token_id"], v[name+"_token"], tokens); ok {
			*to.id, *to.has = id, true
		}
	}
	if raw, ok := v["add_bos_token"]; ok {
		_ = json.Unmarshal(raw, &x.addBOS) // null: false
	}
	if raw, ok := v["chat_template"]; ok {
		_ = json.Unmarshal(raw, &x.template) // several: chat_template.jinja has the default one
	}
	return nil
}

// tokenID returns the id of a token that a file names by id, by the first of several, by text, or by an object with a
// text. ok is false if it names no token of the model: some files have ids beyond the vocabulary.
func tokenID(id, text json.RawMessage, tokens []string) (_ int32, ok bool) {
	var one int32
	var several []int32
	known := func(id int32) (int32, bool) { return id, id >= 0 && int(id) < len(tokens) }
	switch {
	case string(id) == "null" || len(id) == 0:
	case json.Unmarshal(id, &one) == nil:
		return known(one)
	case json.Unmarshal(id, &several) == nil && len(several) > 0:
		return known(several[0])
	}
	var name string
	var object struct{ Content string }
	if json.Unmarshal(text, &name) != nil {
		_ = json.Unmarshal(text, &object) // neither: no token
		name = object.Content
	}
	at := -1
	if name != "" {
		at = slices.Index(tokens, name)
	}
	return int32(at), at >= 0
}

// chatTemplate returns a folder's chat template: of its own file, else of tokenizer_config.json.
func chatTemplate(dir, configured string) (string, error) {
	raw, err := readSmall(filepath.Join(dir, "chat_template.jinja"), maxConfig)
	if errors.Is(err, os.ErrNotExist) {
		return configured, nil
	}
	return string(raw), err
}
