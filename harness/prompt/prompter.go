// Package prompt turns problems and conversations into the tokens that a model reads: it reads the tokenizer, the chat
// template and the tools of a configuration, finds the tokens that end a completion, and writes what tools answer.
package prompt

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/train/chat"
	"exp/train/model"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// Prompter turns problems into token ids for the model: it renders the chat template,
// or takes the prompt as plain text, and encodes the result. It caches the ids, so that
// the stages of a run encode each prompt once, and keeps the ids of large data sets on
// disk for the next run. Safe for concurrent use.
type Prompter struct {
	Tokenizer tokenizer.Tokenizer
	Stops     []StopID // tokens that end a completion
	stop      []string // rollout.stop

	data      config.Data
	cutKey    string // sets data.Truncate; "": data.truncate
	tools     config.Tools
	template  *template // nil: plain text
	own       bool      // the tokenizer is one of characters or bytes of ours: prompts are text only
	vocab     int       // of the model; 0: unknown, or the tokenizer's
	before    []int32   // what the post-processor puts before a text
	bos       int32     // -1: none
	escaper   *escaper  // nil: text of problems may be tokens
	untrusted *escaper  // for what tools say, which is never a token
	sft       config.FineTuning
	learns    *ConversationPlan // of the file that the plan read
	prefer    config.Preferring
	prefers   *PairPlan // of the file that the plan read
	judged    *AnswerPlan
	rates     config.RewardTraining
	ratings   *RatedPlan // of the pairs that the plan read
	heldOut   *RatedPlan
	// The same of answers in steps.
	stepped, steppedVal *SteppedPlan

	cache  *promptCache
	images *ImageReader // nil: the model reads text alone
	unread string       // what makes it read images, for errors; may be empty
	// show returns the tokens of an image; nil: prompts repeat the pad.
	show   func(rollout.Picture) (model.Image, error)
	shown  *ImagePlan           // of the files that the plan read; nil: no images
	noted  int                  // problems of these files
	seen   map[seenImage]bool   // that plans have counted
	folder func() *promptFolder // opens it once; nil: none
	// ownTools and lostTools are of the files that the plan read: see Plan.
	ownTools, lostTools int
}

// New reads the tokenizer and the chat template of a configuration, and the data if the alphabet comes from it. vocab
// is the size of the model's vocabulary; 0: unknown, or the tokenizer's.
func New(c *config.Run, vocab int) (*Prompter, error) {
	tok, own, err := readTokenizer(c)
	if err != nil {
		return nil, err
	}
	p := &Prompter{Tokenizer: tok, data: c.Data, tools: c.Rollout.Tools, stop: c.Rollout.Stop, own: own, bos: -1,
		vocab: vocab, cache: &promptCache{}, sft: c.SFT, prefer: c.Prefer, rates: c.RewardModel, untrusted: &escaper{}}
	p.folder = sync.OnceValue(p.openFolder)
	if p.template, err = newTemplate(c, tok); err != nil {
		return nil, &ChatError{err}
	}
	if p.Stops, err = stopIDs(c, tok, p.template); err != nil {
		return nil, &StopError{err}
	}
	if !own {
		p.untrusted = &escaper{addedTokens(tok)}
	}
	if c.Data.EscapeSpecial {
		p.escaper = p.untrusted
	}
	return p, p.findBefore()
}

// ChatError is an error of New about the chat template.
type ChatError struct{ Err error }

func (e *ChatError) Error() string { return "chat template: " + e.Err.Error() }
func (e *ChatError) Unwrap() error { return e.Err }

// StopError is an error of New about rollout.stop_ids.
type StopError struct{ Err error }

func (e *StopError) Error() string { return e.Err.Error() }
func (e *StopError) Unwrap() error { return e.Err }

// findBefore finds the tokens that the post-processor puts before a text. Those it puts after one,
// such as an end token, do not belong to a text that continues.
func (p *Prompter) findBefore() error {
	if text := p.Tokenizer.SpecialTokens().BOS; text != "" {
		if id, ok := p.Tokenizer.TokenID(text); ok {
			p.bos = id
		}
	}
	if p.own {
		return nil
	}
	if add, ok := p.saysBOS(); ok {
		if add && p.bos >= 0 {
			p.before = []int32{p.bos}
		}
		return nil
	}
	const probe = "a"
	bare, err := p.Tokenizer.Encode(probe, tokenizer.Options{})
	if err != nil {
		return nil // a small alphabet, without a post-processor
	}
	whole, err := p.Tokenizer.Encode(probe, tokenizer.Options{Special: true})
	if err != nil {
		return err
	}
	for i := 0; i+len(bare) <= len(whole); i++ {
		if slices.Equal(whole[i:i+len(bare)], bare) {
			p.before = whole[:i]
			return nil
		}
	}
	return errors.New("tokenizer: the post-processor changes the text")
}

// saysBOS returns what tokenizer_config.json says about the token before a text, if it overrules
// the post-processor: in the tokenizer classes of Llama, Gemma and Cohere.
func (p *Prompter) saysBOS() (add, ok bool) {
	var conf struct {
		Class string `json:"tokenizer_class"`
		Add   *bool  `json:"add_bos_token"`
	}
	if json.Unmarshal(p.Tokenizer.Files()["tokenizer_config.json"], &conf) != nil || conf.Add == nil {
		return false, false
	}
	for _, family := range []string{"Llama", "CodeLlama", "Gemma", "Cohere"} {
		ok = ok || strings.HasPrefix(conf.Class, family+"Tokenizer")
	}
	return *conf.Add, ok
}

// Vocabulary returns the tokenizer with the run's stop ids.
func (p *Prompter) Vocabulary() tokenizer.Tokenizer {
	s := stopping{Tokenizer: p.Tokenizer}
	for _, stop := range p.Stops {
		s.ends = append(s.ends, stop.ID)
	}
	if end, err := p.End(); err == nil { // where one is written for an answer, it is the first
		i := slices.Index(s.ends, end)
		copy(s.ends[1:i+1], s.ends[:i])
		s.ends[0] = end
	}
	return s
}

// End returns the token that ends an answer to learn from: the template's end of turn, else the
// first stop id that the model has.
func (p *Prompter) End() (int32, error) {
	first := int32(-1)
	for _, s := range p.Stops {
		switch {
		case int(s.ID) >= p.vocabulary():
		case slices.Contains(s.From, turnEnd):
			return s.ID, nil
		case first < 0:
			first = s.ID
		}
	}
	if first < 0 {
		return 0, errors.New("the tokenizer has no end token; name one: rollout.stop_ids")
	}
	return first, nil
}

// Text returns the prompt of a problem as a text, in which images have their names.
func (p *Prompter) Text(q *rollout.Problem) (string, error) {
	if p.template == nil {
		return q.Prompt, nil
	}
	list, tools := p.template.messagesOf(q), p.template.toolsOf(q)
	if len(q.Images) > 0 {
		_, text, err := p.encodeChat(p.escaper, list, tools, true, q.Images...)
		return text, err
	}
	return p.template.prompt(list, tools)
}

// Encode returns the ids of a problem's prompt, at most data.max_prompt_tokens;
// data.truncate decides how a longer one is cut.
func (p *Prompter) Encode(q *rollout.Problem) ([]int32, error) {
	ids, err := p.tokens(q)
	if err != nil {
		return ids, err
	}
	return p.cut(q, ids)
}

// TemplateDigest returns the digest of the chat template; zero for plain text.
func (p *Prompter) TemplateDigest() (d ident.Digest) {
	if p.template == nil {
		return d
	}
	if x := p.template.withTools; x != nil {
		return sha256.Sum256([]byte(p.template.Digest() + x.Digest()))
	}
	b, _ := hex.DecodeString(p.template.Digest()) // 64 digits
	copy(d[:], b)
	return d
}

// Chats reports whether prompts are chats, which a template writes.
func (p *Prompter) Chats() bool { return p.template != nil }

// Chat returns the messages and the tools of a problem's prompt. The run must have a template.
func (p *Prompter) Chat(q *rollout.Problem) ([]rollout.Message, json.RawMessage) {
	return p.template.messagesOf(q), p.template.toolsOf(q)
}

// OwnTemplate returns the source of the chat template if the run brings its own.
func (p *Prompter) OwnTemplate() (source string, ok bool) {
	if p.template == nil || !p.template.own {
		return "", false
	}
	return p.template.source, true
}

// SettingsDigest covers what prompts depend on besides tokenizer, template, stop ids and tools.
func (p *Prompter) SettingsDigest() (ident.Digest, error) {
	d := p.data
	of := map[string]any{"system": d.System, "vars": anyMap(d.TemplateVars), "date": d.TemplateDate,
		"escape": d.EscapeSpecial, "limit": int64(d.MaxPromptTokens)}
	if p.images != nil {
		settings, err := json.Marshal(p.images)
		if err != nil {
			return ident.Digest{}, err
		}
		of["images"] = string(settings)
	}
	if p.HasVideos() {
		settings, err := json.Marshal(p.images.Video)
		if err != nil {
			return ident.Digest{}, err
		}
		of["videos"] = string(settings)
	}
	return ident.Hash("exp/prompts/1", of)
}

// StopsDigest covers the stop ids in order.
func (p *Prompter) StopsDigest() (ident.Digest, error) {
	return ident.Hash("exp/stop-ids/1", p.stopList())
}

func (p *Prompter) stopList() []any {
	list := make([]any, len(p.Stops))
	for i, id := range p.Vocabulary().EndIDs() {
		list[i] = int64(id)
	}
	slices.SortFunc(list, func(a, b any) int { return int(a.(int64) - b.(int64)) })
	return list
}

// tokens returns all ids of a prompt, its images' too.
func (p *Prompter) tokens(q *rollout.Problem) ([]int32, error) {
	if err := p.checkImages(q); err != nil {
		return nil, err
	}
	ids, err := p.whole(q)
	if err != nil {
		return nil, err
	}
	return p.illustrated(q.Images, ids)
}

// whole returns all ids of a prompt, with a pad for each image.
func (p *Prompter) whole(q *rollout.Problem) ([]int32, error) {
	key, err := promptKey(q)
	if err != nil {
		return nil, err
	}
	if ids, ok := p.cache.get(key); ok {
		return ids, nil
	}
	var ids []int32
	if p.template == nil {
		ids, err = p.plain(q.Prompt)
	} else {
		ids, err = p.chat(q)
	}
	if err == nil {
		err = p.known(ids)
	}
	if err != nil {
		return nil, err
	}
	p.cache.put(key, ids)
	return slices.Clip(ids), nil
}

// known refuses ids that the model has no embedding for: some tokenizers have more
// tokens than their model.
func (p *Prompter) known(ids []int32) error {
	if p.vocab == 0 || len(ids) == 0 {
		return nil
	}
	if most := slices.Max(ids); int(most) >= p.vocab {
		return fmt.Errorf("the text has the token %d, %s, and the model's vocabulary ends at %d", most,
			p.Tokenizer.Token(most), p.vocab-1)
	}
	return nil
}

// Answer returns the ids of a gold answer, without a token that ends it.
func (p *Prompter) Answer(text string) ([]int32, error) {
	ids, err := p.Tokenizer.Encode(text, tokenizer.Options{})
	if err == nil {
		err = p.known(ids)
	}
	return ids, err
}

// plain encodes a prompt without a template.
func (p *Prompter) plain(text string) ([]int32, error) {
	if p.own {
		return p.Tokenizer.Encode(text, tokenizer.Options{})
	}
	ids, err := p.Tokenizer.Encode(text, tokenizer.Options{Added: p.escaper == nil})
	if err != nil || len(p.before) == 0 {
		return ids, err
	}
	return slices.Concat(p.before, ids), nil
}

// EncodeText returns the ids of a text that the model continues, without a template.
func (p *Prompter) EncodeText(text string) ([]int32, error) {
	ids, err := p.plain(text)
	if err == nil {
		err = p.known(ids)
	}
	return ids, err
}

// WithVars returns a prompter for EncodeChat whose template sees further variables. It has no tools.
func (p *Prompter) WithVars(vars map[string]any) (*Prompter, error) {
	t := *p.template
	all := maps.Clone(anyMap(p.data.TemplateVars))
	maps.Copy(all, vars)
	v, err := chat.FromGo(all)
	if err != nil {
		return nil, err
	}
	t.vars, _ = v.(*chat.Dict)
	return &Prompter{Tokenizer: p.Tokenizer, Stops: p.Stops, template: &t, bos: p.bos, before: p.before,
		escaper: p.escaper, cache: &promptCache{}, vocab: p.vocab, images: p.images, show: p.show}, nil
}

// chat encodes a rendered chat. Its special tokens are the template's, except the first one of
// models whose tokenizer puts one before every text, if the template does not.
func (p *Prompter) chat(q *rollout.Problem) (ids []int32, err error) {
	ids, _, err = p.encodeChat(p.escaper, p.template.messagesOf(q), p.template.toolsOf(q), true, q.Images...)
	return ids, err
}

// EncodeChat is chat for messages whose ImageParts stand for images, in order; open ends it where the assistant
// speaks. Text of the messages that spells the place of an image stays text.
func (p *Prompter) EncodeChat(list []rollout.Message, tools json.RawMessage, open bool,
	images ...rollout.Picture) (ids []int32, err error) {
	if err := p.checkShown(list, images); err != nil {
		return nil, err
	}
	e := p.escaper
	if e == nil && p.images != nil {
		e = &escaper{p.images.spellings(p.Tokenizer)}
	}
	if ids, _, err = p.encodeChat(e, list, tools, open, images...); err == nil && len(images) > 0 {
		ids, err = p.illustrated(images, ids)
	}
	return ids, err
}

// AskedChat returns the ids and the text of a chat that a program asks. The ImageParts of its messages stand for
// images, in order; text that spells a token stays text.
func (p *Prompter) AskedChat(list []rollout.Message, tools json.RawMessage, images ...rollout.Picture) (ids []int32,
	text string, err error) {
	if p.template == nil {
		return nil, "", errors.New("the run has no chat template (data.chat)")
	}
	if err := p.checkShown(list, images); err != nil {
		return nil, "", err
	}
	if ids, text, err = p.encodeChat(p.untrusted, list, tools, true, images...); err == nil {
		err = p.known(ids)
	}
	if err == nil && len(images) > 0 {
		ids, err = p.illustrated(images, ids)
	}
	return ids, text, err
}

// AskedText is AskedChat for a text that the model continues.
func (p *Prompter) AskedText(text string) ([]int32, error) {
	if p.own {
		return p.Tokenizer.Encode(text, tokenizer.Options{})
	}
	ids, err := p.Inserted("", text, "")
	if err != nil || len(p.before) == 0 {
		return ids, err
	}
	return slices.Concat(p.before, ids), nil
}

// encodeChat encodes a chat whose texts e escapes; nil: none are. text has no marks, and the names of images in their
// places, where ids has pads.
func (p *Prompter) encodeChat(e *escaper, list []rollout.Message, tools json.RawMessage, open bool,
	images ...rollout.Picture) (ids []int32, text string, err error) {
	return p.encodeChatAnd(e, list, tools, open, "", images...)
}

// encodeChatAnd is encodeChat with a text behind the chat, which e escapes too.
func (p *Prompter) encodeChatAnd(e *escaper, list []rollout.Message, tools json.RawMessage, open bool, behind string,
	images ...rollout.Picture) (ids []int32, text string, err error) {
	mark := rune(0)
	if e != nil {
		all := append(slices.Clone(list), rollout.Message{Content: behind})
		if all, tools, mark, err = e.chat(all, tools); err != nil {
			return nil, "", err
		}
		list, behind = all[:len(list)], all[len(list)].Content
	}
	if text, err = p.template.render(list, tools, open); err != nil {
		return nil, "", err
	}
	written, err := p.timed(images, text+behind)
	if err != nil {
		return nil, "", err
	}
	text += behind
	o := tokenizer.Options{Added: true}
	if mark != 0 {
		ids, err = e.encode(p.Tokenizer, written, mark, o)
	} else {
		ids, err = p.Tokenizer.Encode(written, o)
	}
	if text = p.named(images, text); mark != 0 { // a text that spells the pad has a mark in it
		text = strings.ReplaceAll(text, string(mark), "")
	}
	if err != nil {
		return nil, "", err
	}
	if len(p.before) > 0 && p.before[0] == p.bos && (len(ids) == 0 || ids[0] != p.bos) {
		ids = slices.Concat(p.before, ids)
	}
	if p.bos >= 0 && len(ids) > 1 && ids[0] == p.bos && ids[1] == p.bos && p.startsOnce() {
		return nil, "", fmt.Errorf("the prompt begins with two of %s: the template writes it, and the message has it "+
			"too", p.Tokenizer.SpecialTokens().BOS)
	}
	return ids, text, nil
}

// startsOnce reports whether the first token only marks the beginning: Qwen's files give as
// bos_token the token that also ends a text.
func (p *Prompter) startsOnce() bool {
	return !slices.ContainsFunc(p.Stops, func(s StopID) bool { return s.ID == p.bos })
}
