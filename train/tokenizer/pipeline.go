package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Pipeline is the tokenizer of a tokenizer.json as Hugging Face's library computes it: it
// cuts added tokens out of a text, normalizes the stretches between them and splits them
// into pieces, turns pieces into ids with a model, and may put tokens around them with a
// post-processor. Use ReadFolder or ReadFiles. Safe for concurrent use.
type Pipeline struct {
	added     *addedTokens
	normalize normalizer // nil for none
	splitters []splitter
	model     model
	post      template
	decoders  []decoder

	size     int            // one more than the largest id
	texts    map[int]string // decoded added tokens by id
	special  map[int32]bool
	settings *settings
	ends     []int32
	pieces   []byte   // of all ids, one after another; special tokens and unknown ids have none
	cuts     []uint32 // by id: where its piece begins; one more than ids
	digest   string
	notes    []string
	files    map[string][]byte
	memories sync.Pool
}

// tokenizerFile is tokenizer.json.
type tokenizerFile struct {
	Version     *string         `json:"version"`
	AddedTokens []addedToken    `json:"added_tokens"`
	Normalizer  json.RawMessage `json:"normalizer"`
	Splitter    json.RawMessage `json:"pre_tokenizer"`
	Post        json.RawMessage `json:"post_processor"`
	Decoder     json.RawMessage `json:"decoder"`
	Model       json.RawMessage `json:"model"`
}

// newPipeline builds a tokenizer from tokenizer.json and its companion files.
func newPipeline(raw []byte, s *settings) (*Pipeline, error) {
	if !utf8.Valid(raw) {
		return nil, fmt.Errorf("the file is not UTF-8")
	}
	var f tokenizerFile
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	if f.Version != nil && *f.Version != "1.0" {
		return nil, fmt.Errorf("version %q is not supported; 1.0 is", *f.Version)
	}
	if absent(f.Model) {
		return nil, fmt.Errorf("it has no model")
	}
	p := &Pipeline{settings: s, texts: map[int]string{}, special: map[int32]bool{}}
	p.memories.New = func() any { return newMemory() }
	f.Splitter = s.prefixSpace(f.Splitter)
	h := newDigest()
	var err error
	if p.model, err = parseModel(f.Model, h); err != nil {
		return nil, err
	}
	if err := p.parseSteps(f, h); err != nil {
		return nil, err
	}
	if p.added, err = newAddedTokens(s.merge(f.AddedTokens, p.model.words()), p.normalize); err != nil {
		return nil, err
	}
	if err := p.added.resolve(p.model.words()); err != nil {
		return nil, err
	}
	p.notes = gapNotes(f.AddedTokens, p.model.words())
	p.indexTokens()
	p.useBytes()
	if err := p.findEnds(); err != nil {
		return nil, err
	}
	if err := p.fillPieces(); err != nil {
		return nil, err
	}
	h.add(p.added.canonical(), p.ends, s.special)
	p.digest = h.sum()
	return p, nil
}

// parseSteps builds all parts except the model and the added tokens.
func (p *Pipeline) parseSteps(f tokenizerFile, h *digest) error {
	c, err := parseComponent(f.Normalizer, "normalizer")
	if err == nil {
		p.normalize, err = parseNormalizer(c)
	}
	if err != nil {
		return err
	}
	if c, err = parseComponent(f.Splitter, "pre_tokenizer"); err == nil {
		p.splitters, err = parseSplitters(c)
	}
	if err != nil {
		return err
	}
	if c, err = parseComponent(f.Post, "post_processor"); err == nil {
		p.post, err = parsePost(c)
	}
	if err != nil {
		return err
	}
	if c, err = parseComponent(f.Decoder, "decoder"); err == nil {
		p.decoders, err = parseDecoders(c)
	}
	for _, raw := range []json.RawMessage{f.Normalizer, f.Splitter, f.Post, f.Decoder} {
		h.component(raw)
	}
	return err
}

// useBytes lets a BPE work on bytes if the byte level is the last step: both sides then
// skip writing each byte as a character.
func (p *Pipeline) useBytes() {
	m, ok := p.model.(*bpe)
	n := len(p.splitters)
	if !ok || n == 0 {
		return
	}
	for i, s := range p.splitters {
		if _, is := s.(byteLevelSplit); is != (i == n-1) {
			return
		}
	}
	if m.useBytes() {
		last := p.splitters[n-1].(byteLevelSplit)
		last.raw = true
		p.splitters[n-1] = last
		if !last.cut && !last.space { // nothing left to do
			p.splitters = p.splitters[:n-1]
		}
	}
}

// indexTokens fills the tables of added tokens by id.
func (p *Pipeline) indexTokens() {
	p.size = p.model.words().size()
	for _, t := range p.added.list {
		p.size = max(p.size, t.ID+1)
		text := t.Content
		if t.Normalized && t.normal != "" {
			text = t.normal
		}
		p.texts[t.ID] = text
	}
	for id, text := range p.model.words().byID() {
		// A unigram vocabulary may contain a text twice.
		if _, added := p.texts[int(id)]; !added && p.added.special[text] {
			p.special[id] = true
		}
	}
	for id, text := range p.texts {
		if p.added.special[text] {
			p.special[int32(id)] = true
		}
	}
}

// findEnds collects the ids that end a completion.
func (p *Pipeline) findEnds() error {
	add := func(id int32) {
		if !slices.Contains(p.ends, id) {
			p.ends = append(p.ends, id)
		}
	}
	for _, id := range p.settings.ends {
		if id < 0 || id > math.MaxInt32 {
			return fmt.Errorf("eos_token_id %d is not an id", id)
		}
		add(int32(id))
	}
	if text := p.settings.special.EOS; text != "" {
		if id, ok := p.TokenID(text); ok {
			add(id)
		}
	}
	return nil
}

// tokenText returns the text of a token as decoders see it.
func (p *Pipeline) tokenText(id int32) (string, bool) {
	if text, ok := p.texts[int(id)]; ok {
		return text, true
	}
	return p.model.words().of(id)
}

// fillPieces computes Piece for every id.
func (p *Pipeline) fillPieces() error {
	started := time.Now()
	steps := pieces{p.decoders, len(p.decoders) == 0}
	p.cuts = make([]uint32, p.size+1)
	for id := range p.size {
		p.cuts[id] = uint32(len(p.pieces))
		text, ok := p.tokenText(int32(id))
		if !ok || p.special[int32(id)] {
			continue
		}
		if id%1024 == 0 && time.Since(started) > searchTimeout {
			return fmt.Errorf("decoder: its regular expressions took more than %v", searchTimeout)
		}
		if p.pieces = append(p.pieces, steps.piece(text)...); len(p.pieces) > mostBytes {
			return fmt.Errorf("decoder: the tokens' texts take more than %d bytes", mostBytes)
		}
	}
	p.cuts[p.size] = uint32(len(p.pieces))
	return nil
}

// Encode returns the ids of text. It reads invalid UTF-8 as U+FFFD. It fails if the model
// has no token for a piece and none for unknown ones, or if a regular expression of the
// file takes too long.
func (p *Pipeline) Encode(text string, o Options) ([]int32, error) {
	if !utf8.ValidString(text) {
		text = validText([]byte(text))
	}
	w := p.memories.Get().(*memory)
	defer p.memories.Put(w)
	e := encoder{p: p, w: w, ids: make([]int32, 0, len(text)/3+1)}
	exact := p.added.exact
	if !o.Added {
		exact = nil
	}
	err := exact.cut(text, func(start, end int) error {
		s := stretch{text: text[start:end]}
		if start == 0 {
			_, s.head = utf8.DecodeRuneInString(s.text)
		}
		return e.stretch(s, o.Added)
	}, e.token)
	if err != nil {
		return nil, err
	}
	return p.post.apply(e.ids, o.Special), nil
}

// encoder is the state of one Encode.
type encoder struct {
	p   *Pipeline
	w   *memory
	ids []int32
}

func (e *encoder) token(t addedToken) error {
	e.ids = append(e.ids, int32(t.ID))
	return nil
}

// stretch encodes a stretch between exact added tokens.
func (e *encoder) stretch(s stretch, added bool) error {
	if e.p.normalize != nil {
		var err error
		if s, err = e.p.normalize.normalize(s); err != nil {
			return err
		}
	}
	normed := e.p.added.normed
	if !added {
		normed = nil
	}
	return normed.cut(s.text, func(start, end int) error {
		return e.split(s.part(start, end), e.p.splitters)
	}, e.token)
}

// split passes a stretch through the splitters and the model.
func (e *encoder) split(s stretch, steps []splitter) error {
	if len(steps) == 0 {
		var err error
		e.ids, err = e.p.model.encode(e.ids, s.text, e.w)
		return err
	}
	return steps[0].split(s, func(s stretch) error { return e.split(s, steps[1:]) })
}

// Decode returns the text of ids as Hugging Face's library does, without special tokens.
func (p *Pipeline) Decode(ids []int32) string { return p.decode(ids, false) }

// DecodeAll is Decode with the special tokens written out.
func (p *Pipeline) DecodeAll(ids []int32) string { return p.decode(ids, true) }

func (p *Pipeline) decode(ids []int32, special bool) string {
	tokens := make([]string, 0, len(ids))
	for _, id := range ids {
		if text, ok := p.tokenText(id); ok && (special || !p.special[id]) {
			tokens = append(tokens, text)
		}
	}
	if len(p.decoders) == 0 {
		return strings.Join(tokens, " ")
	}
	for _, d := range p.decoders {
		var err error
		if tokens, err = d.decode(tokens); err != nil {
			return "" // a regular expression takes too long on a token
		}
	}
	return strings.Join(tokens, "")
}

// Piece returns the bytes that id adds to a text that has begun.
func (p *Pipeline) Piece(id int32) []byte {
	if id < 0 || int(id) >= p.size {
		return nil
	}
	return p.pieces[p.cuts[id]:p.cuts[id+1]:p.cuts[id+1]]
}

// VocabSize is one more than the largest id, including added tokens.
func (p *Pipeline) VocabSize() int { return p.size }

// EndIDs returns the ids of eos_token_id in generation_config.json and config.json and of
// eos_token in tokenizer_config.json, without repetition.
func (p *Pipeline) EndIDs() []int32 { return slices.Clone(p.ends) }

// SpecialTokens returns the special tokens of tokenizer_config.json and special_tokens_map.json.
func (p *Pipeline) SpecialTokens() Special {
	s := p.settings.special
	s.Named, s.Additional = maps.Clone(s.Named), slices.Clone(s.Additional)
	return s
}

// TokenID returns the id of an added token, else of an entry of the vocabulary.
func (p *Pipeline) TokenID(text string) (int32, bool) {
	if i, ok := p.added.byText[text]; ok {
		return int32(p.added.list[i].ID), true
	}
	return p.model.words().id(text)
}

// Token returns the text of id as written in the vocabulary, "" if it has none.
func (p *Pipeline) Token(id int32) string {
	text, _ := p.tokenText(id)
	return text
}

// Description returns `hf/1 sha256:` and a digest of the parts of tokenizer.json, the added
// tokens with their flags, the special tokens and the end ids.
func (p *Pipeline) Description() string { return "hf/1 sha256:" + p.digest }

// Files returns the files that the tokenizer was read from, byte for byte.
func (p *Pipeline) Files() map[string][]byte { return maps.Clone(p.files) }
