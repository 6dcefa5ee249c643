package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"exp/train/pyjson"
)

// settings holds the special tokens and options from tokenizer.json's companion files.
type settings struct {
	special Special
	added   []addedToken // of tokenizer_config.json's added_tokens_decoder, by id; nil if absent
	older   []addedToken // from added_tokens.json, by id; read if added_tokens_decoder is absent
	ends    []int64      // eos_token_id of generation_config.json, then of config.json
	class   string       // tokenizer_class
	space   *bool        // add_prefix_space, false if absent; nil for null
}

// readSettings reads tokenizer_config.json, special_tokens_map.json,
// generation_config.json and config.json; any may be missing.
func readSettings(files map[string][]byte) (*settings, error) {
	s := &settings{special: Special{Named: map[string]string{}}}
	for _, name := range []string{"tokenizer_config.json", "special_tokens_map.json"} {
		fields, err := objectOf(files, name)
		if err != nil {
			return nil, err
		}
		s.named(fields)
		if name != "tokenizer_config.json" {
			continue
		}
		if err := s.config(fields); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if s.added, err = addedDecoder(fields["added_tokens_decoder"]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, name := range []string{"generation_config.json", "config.json"} {
		fields, err := objectOf(files, name)
		if err != nil {
			return nil, err
		}
		ids, err := idList(fields["eos_token_id"])
		if err != nil {
			return nil, fmt.Errorf("%s: eos_token_id: %w", name, err)
		}
		s.ends = append(s.ends, ids...)
	}
	s.special.BOS, s.special.EOS = s.special.Named["bos_token"], s.special.Named["eos_token"]
	if s.added == nil {
		return s, s.olderTokens(files)
	}
	return s, nil
}

// olderTokens reads added_tokens.json, {"text": id, …}: the added tokens of folders from
// before added_tokens_decoder. The named ones are special, the others normalized.
func (s *settings) olderTokens(files map[string][]byte) error {
	const name = "added_tokens.json"
	fields, err := objectOf(files, name)
	if err != nil {
		return err
	}
	for text, raw := range fields {
		t := addedToken{Content: text, Special: slices.Contains(s.specialTexts(), text)}
		t.Normalized = !t.Special
		if err := json.Unmarshal(raw, &t.ID); err != nil || t.ID < 0 || t.ID > mostID {
			return fmt.Errorf("%s: %q has id %s; ids must be from 0 to %d", name, clip(text), raw, mostID)
		}
		s.older = append(s.older, t)
	}
	slices.SortFunc(s.older, func(a, b addedToken) int { return a.ID - b.ID })
	return nil
}

// specialTexts lists the special tokens, with and without names.
func (s *settings) specialTexts() []string {
	return slices.Concat(slices.Sorted(maps.Values(s.special.Named)), s.special.Additional)
}

// config reads the encoding settings of tokenizer_config.json.
func (s *settings) config(fields map[string]json.RawMessage) error {
	split, space := false, false
	if string(fields["add_prefix_space"]) != "null" {
		s.space = &space
	}
	for name, v := range map[string]any{"tokenizer_class": &s.class, "add_prefix_space": &space,
		"split_special_tokens": &split} {
		if !absent(fields[name]) {
			_ = json.Unmarshal(fields[name], v) // another type counts as absent
		}
	}
	if split {
		return errors.New("split_special_tokens is true: transformers treats special tokens in a text, and in a " +
			"chat template's, as plain text; remove the setting (data.escape_special keeps those in problems " +
			"from becoming tokens)")
	}
	return nil
}

// objectOf reads a file that is one JSON object.
func objectOf(files map[string][]byte, name string) (map[string]json.RawMessage, error) {
	raw, ok := files[name]
	if !ok {
		return nil, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(pyjson.Plain(bytes.TrimPrefix(raw, []byte("\xEF\xBB\xBF"))), &fields); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return fields, nil
}

// named adds the special tokens of a file that no earlier file has.
func (s *settings) named(fields map[string]json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch {
		case name == "additional_special_tokens" || name == "extra_special_tokens":
			s.additional(fields[name])
		case strings.HasSuffix(name, "_token") && !strings.HasPrefix(name, "add_"):
			if text := tokenText(fields[name]); text != "" && s.special.Named[name] == "" {
				s.special.Named[name] = text
			}
		}
	}
}

// additional reads a list of tokens, or an object of names and tokens.
func (s *settings) additional(raw json.RawMessage) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		for _, r := range list {
			if text := tokenText(r); text != "" && !slices.Contains(s.special.Additional, text) {
				s.special.Additional = append(s.special.Additional, text)
			}
		}
		return
	}
	var named map[string]json.RawMessage
	if json.Unmarshal(raw, &named) == nil {
		for _, name := range slices.Sorted(maps.Keys(named)) {
			if text := tokenText(named[name]); text != "" && s.special.Named[name] == "" {
				s.special.Named[name] = text
			}
		}
	}
}

// tokenText reads a token written as a string or as an object with its content.
func tokenText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var token struct {
		Content string `json:"content"`
	}
	_ = json.Unmarshal(raw, &token)
	return token.Content
}

// addedDecoder reads {"id": token, …}.
func addedDecoder(raw json.RawMessage) ([]addedToken, error) {
	if absent(raw) {
		return nil, nil
	}
	var byID map[string]addedToken
	if err := json.Unmarshal(raw, &byID); err != nil {
		return nil, fmt.Errorf("added_tokens_decoder: %w", err)
	}
	list := []addedToken{}
	for key, t := range byID {
		id, err := strconv.Atoi(key)
		if err != nil || id < 0 || id > mostID {
			return nil, fmt.Errorf("added_tokens_decoder: %q is not an id", key)
		}
		t.ID = id
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b addedToken) int { return a.ID - b.ID })
	return list, nil
}

// idList reads an id, a list of ids, or null.
func idList(raw json.RawMessage) ([]int64, error) {
	if absent(raw) {
		return nil, nil
	}
	var one int64
	if json.Unmarshal(raw, &one) == nil {
		return []int64{one}, nil
	}
	var list []int64
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("%s is neither a token's id nor a list of ids", clip(string(raw)))
	}
	return list, nil
}

// merge overrides tokenizer.json's added tokens with tokenizer_config.json's, and adds
// tokens found only there or in added_tokens.json. Tokens named there are special, even if
// they are plain entries of the vocabulary.
func (s *settings) merge(list []addedToken, v *vocabulary) []addedToken {
	at := map[string]int{}
	for i, t := range list {
		at[t.Content] = i
	}
	put := func(t addedToken) {
		if i, ok := at[t.Content]; ok {
			t.ID = list[i].ID
			list[i] = t
			return
		}
		at[t.Content] = len(list)
		list = append(list, t)
	}
	for _, t := range s.added {
		put(t)
	}
	taken := map[int]bool{}
	for _, t := range list {
		taken[t.ID] = true
	}
	for _, t := range s.older {
		if _, known := at[t.Content]; !known && !taken[t.ID] {
			put(t)
		}
	}
	for _, text := range s.specialTexts() {
		if i, ok := at[text]; ok {
			list[i].Special = true
		} else if _, known := v.id(text); known {
			put(addedToken{ID: noID, Content: text, Special: true})
		}
	}
	return list
}
