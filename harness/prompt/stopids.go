package prompt

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/harness/config"
	"exp/train/checkpoint"
	"exp/train/pyjson"
	"exp/train/tokenizer"
	"exp/train/toolcall"
)

// StopID is a token that ends a completion.
type StopID struct {
	ID    int32    `json:"id"`
	Token string   `json:"token"` // as the tokenizer's files write it
	From  []string `json:"from"`  // the file and field that says so
}

// stopIDsKey is the source of the tokens that a configuration names.
const stopIDsKey = "rollout.stop_ids"

// turnEnd is the source of the token that ends a turn in a template.
const turnEnd = "end of turn of the chat template"

// stopIDs returns the tokens that end completions of a run: rollout.stop_ids, or all that the
// model's files and the chat template name. The padding token is one only if one of them says so.
func stopIDs(c *config.Run, tok tokenizer.Tokenizer, t *template) ([]StopID, error) {
	var list []StopID
	add := func(id int32, from string) {
		i := slices.IndexFunc(list, func(s StopID) bool { return s.ID == id })
		if i < 0 {
			i, list = len(list), append(list, StopID{ID: id})
		}
		list[i].From = append(list[i].From, from)
	}
	if own := c.Rollout.StopIDs; len(own) > 0 {
		for _, id := range own {
			if id >= tok.VocabSize() {
				return nil, fmt.Errorf("%s has %d, the vocabulary ends at %d", stopIDsKey, id, tok.VocabSize()-1)
			}
			add(int32(id), stopIDsKey)
		}
	} else {
		files := endSources(c, tok)
		for _, id := range tok.EndIDs() {
			from := files[id]
			if len(from) == 0 {
				from = []string{"the tokenizer"}
			}
			for _, f := range from {
				add(id, f)
			}
		}
		if t != nil && t.channels {
			for _, text := range toolcall.ChannelEnds() {
				if id, ok := tok.TokenID(text); ok {
					add(id, "channels of the chat template")
				}
			}
		} else if id, ok := turnEndID(tok, t); ok {
			add(id, turnEnd)
		}
	}
	for i := range list {
		list[i].Token = tok.Token(list[i].ID)
	}
	return list, nil
}

// vocabulary is the number of ids that the sampler can draw.
func (p *Prompter) vocabulary() int {
	if p.vocab > 0 {
		return p.vocab
	}
	return p.Tokenizer.VocabSize()
}

// IdleStops returns the stop ids that end nothing: the vocabulary ends before them.
func (p *Prompter) IdleStops() (list []StopID) {
	for _, s := range p.Stops {
		if int(s.ID) >= p.vocabulary() {
			list = append(list, s)
		}
	}
	return list
}

// IdleStopsNote tells the user of IdleStops; empty for none.
func (p *Prompter) IdleStopsNote() string {
	list := p.IdleStops()
	if len(list) == 0 {
		return ""
	}
	end, key := "ends", "eos_token_id there"
	if len(list) > 1 {
		end = "end"
	}
	if slices.ContainsFunc(list, func(s StopID) bool { return slices.Contains(s.From, stopIDsKey) }) {
		key = stopIDsKey
	} else if len(list) < len(p.Stops) {
		key += ", or list the others in " + stopIDsKey
	}
	return fmt.Sprintf("stop ids: %s %s nothing, as the model's vocabulary ends at %d; correct %s", StopText(list),
		end, p.vocabulary()-1, key)
}

// turnEndID returns the first special token that the template writes after an answer.
func turnEndID(tok tokenizer.Tokenizer, t *template) (int32, bool) {
	if t == nil {
		return 0, false
	}
	ids, err := tok.Encode(t.endOfTurn(), tokenizer.Options{Added: true})
	if err != nil {
		return 0, false
	}
	i := slices.IndexFunc(ids, func(id int32) bool { return len(tok.Piece(id)) == 0 })
	if i < 0 {
		return 0, false
	}
	return ids[i], true
}

// endSources returns the files that name a token that ends a completion.
func endSources(c *config.Run, tok tokenizer.Tokenizer) map[int32][]string {
	from := map[int32][]string{}
	files := tok.Files()
	if c.Tokenizer.Kind == "model" { // it belongs to the model, not to its tokenizer
		if b, err := os.ReadFile(filepath.Join(checkpoint.TextsFolder(c.Model.Base), "config.json")); err == nil {
			files["config.json"] = b
		}
	}
	for _, name := range []string{"generation_config.json", "config.json"} {
		var file struct {
			EOS json.RawMessage `json:"eos_token_id"`
		}
		if json.Unmarshal(pyjson.Plain(files[name]), &file) != nil {
			continue
		}
		var list []int32
		var one int32
		if json.Unmarshal(file.EOS, &one) == nil && len(file.EOS) > 0 && string(file.EOS) != "null" {
			list = []int32{one}
		} else {
			_ = json.Unmarshal(file.EOS, &list) // which the tokenizer has read
		}
		for _, id := range list {
			from[id] = append(from[id], name)
		}
	}
	if eos := tok.SpecialTokens().EOS; eos != "" {
		if id, ok := tok.TokenID(eos); ok {
			from[id] = append(from[id], "eos_token of tokenizer_config.json")
		}
	}
	return from
}

// fileToken is a token as Hugging Face's files write it.
type fileToken struct {
	Content string `json:"content"`
}

// addedTokens returns the texts that Encode reads as tokens on request, long ones first.
func addedTokens(tok tokenizer.Tokenizer) []string {
	texts := map[string]bool{}
	var main struct {
		Added []fileToken `json:"added_tokens"`
	}
	_ = json.Unmarshal(tok.Files()["tokenizer.json"], &main) // which the tokenizer has read
	for _, t := range main.Added {
		texts[t.Content] = true
	}
	var conf struct {
		Added map[string]fileToken `json:"added_tokens_decoder"`
	}
	_ = json.Unmarshal(tok.Files()["tokenizer_config.json"], &conf)
	for _, t := range conf.Added {
		texts[t.Content] = true
	}
	for _, text := range tokenizer.SpecialTexts(tok) {
		texts[text] = true
	}
	delete(texts, "")
	return slices.SortedFunc(maps.Keys(texts), func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
}

// stopping is a tokenizer with the tokens that end completions of a run. They have no text,
// whatever text the tokenizer gives them.
type stopping struct {
	tokenizer.Tokenizer
	ends []int32
}

func (s stopping) EndIDs() []int32 { return s.ends }

func (s stopping) Piece(id int32) []byte {
	if slices.Contains(s.ends, id) {
		return nil
	}
	return s.Tokenizer.Piece(id)
}

// StopText formats the list for people.
func StopText(list []StopID) string {
	var parts []string
	for _, s := range list {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%d %s", s.ID, s.Token))+" ("+strings.Join(s.From,
			", ")+")")
	}
	return strings.Join(parts, "; ")
}
