package tokenizer

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// This file reads SentencePiece's tokenizer.model, a protocol buffer, as the tokenizer.json that gives the same ids as
// SentencePiece itself (Kudo and Richardson 2018, arXiv:1808.06226): BPE whose merges are in the order of the scores
// of what they make, or unigrams. SentencePiece knows no added tokens; the text between two of them begins like a text
// of its own, as in transformers' tokenizers without a tokenizer.json ("legacy").
//
// In a unigram model a text that spells a control piece, such as <s>, becomes it, as in transformers, and not in
// SentencePiece. Where a text merges into the same piece at two overlapping places in different ways, SentencePiece
// takes the left one; merges here have an order of their own, as in transformers.

const sentencePieceFile = "tokenizer.model"

// Kinds of pieces.
const (
	normalPiece      = 1
	unknownPiece     = 2
	controlPiece     = 3
	userDefinedPiece = 4
	unusedPiece      = 5
	bytePiece        = 6
)

// sentencePieces is a tokenizer.model.
type sentencePieces struct {
	pieces []sentencePiece

	unigram, fallback, suffix     bool
	unknown                       int64
	charsmap                      []byte
	prefix, trimmed, escaped      bool // add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces
	beginText, endText, otherKind string
}

type sentencePiece struct {
	text    string
	score   float32
	kind    uint64
	renamed bool // an added token takes its id
}

// fromSentencePiece returns the tokenizer.json of a tokenizer.model.
func fromSentencePiece(files map[string][]byte, s *settings) ([]byte, error) {
	m, err := readSentencePieces(files[sentencePieceFile])
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json is missing; %s: %w", sentencePieceFile, err)
	}
	fields, err := objectOf(files, "tokenizer_config.json")
	if err != nil {
		return nil, err
	}
	scheme, err := m.scheme(fields, s)
	if err == nil {
		err = m.supported()
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json is missing; %s: %w. transformers makes a tokenizer.json: "+
			"AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)", sentencePieceFile, err)
	}
	m.rename(s)
	normal, pre := m.steps(scheme)
	return json.Marshal(map[string]any{"version": "1.0", "added_tokens": m.added(), "normalizer": normal,
		"pre_tokenizer": pre, "post_processor": m.around(fields, s), "decoder": m.decoder(), "model": m.model()})
}

// scheme says where the space before a text goes: "always" before each text between added tokens, "first" before
// the first alone.
func (m *sentencePieces) scheme(fields map[string]json.RawMessage, s *settings) (string, error) {
	llama := strings.HasPrefix(s.class, "LlamaTokenizer")
	legacy := true
	said := !absent(fields["legacy"]) && json.Unmarshal(fields["legacy"], &legacy) == nil
	switch {
	case !m.prefix && llama:
		return "", fmt.Errorf("add_dummy_prefix is false, but %s puts a space before a text", s.class)
	case m.prefix && llama && !said:
		return "", fmt.Errorf("tokenizer_config.json has no legacy: transformers 4 takes true for %s, transformers 5 "+
			"false; write it there", s.class)
	case !legacy:
		return "first", nil
	}
	return "always", nil
}

// supported refuses what no tokenizer.json can say.
func (m *sentencePieces) supported() error {
	user := slices.ContainsFunc(m.pieces, func(p sentencePiece) bool { return p.kind == userDefinedPiece })
	switch {
	case m.otherKind != "":
		return fmt.Errorf("its model is of %s; BPE and unigrams are supported", m.otherKind)
	case m.suffix || !m.escaped:
		return errors.New("treat_whitespace_as_suffix must be false and escape_whitespaces true")
	case user && (len(m.charsmap) > 0 || m.trimmed):
		return errors.New("user-defined pieces with a normalization of texts are not supported")
	case slices.ContainsFunc(m.pieces, func(p sentencePiece) bool { return p.kind == unusedPiece }):
		return errors.New("unused pieces are not supported")
	case m.unknown < 0 || m.unknown >= int64(len(m.pieces)):
		return fmt.Errorf("the unknown piece is %d of %d", m.unknown, len(m.pieces))
	}
	return nil
}

// rename gives pieces whose ids tokenizer_config.json gives to added tokens the texts of those, unless another piece
// has it. Added tokens are cut out of the text as it is.
func (m *sentencePieces) rename(s *settings) {
	at := map[string]int{}
	for id, p := range m.pieces {
		at[p.text] = id
	}
	for i, t := range s.added {
		s.added[i].Normalized = false
		if _, taken := at[t.Content]; !taken && t.ID < len(m.pieces) {
			delete(at, m.pieces[t.ID].text)
			at[t.Content] = t.ID
			m.pieces[t.ID].text, m.pieces[t.ID].renamed = t.Content, true
		}
	}
}

// added lists the control pieces, such as <s>.
func (m *sentencePieces) added() []addedToken {
	list := []addedToken{}
	for id, p := range m.pieces {
		if p.kind == controlPiece && !p.renamed {
			list = append(list, addedToken{ID: id, Content: p.text, Special: true})
		}
	}
	return list
}

// space is SentencePiece's sign for a space.
const space = "▁"

// steps returns the normalizer and the pre-tokenizer.
func (m *sentencePieces) steps(scheme string) (normal, pre any) {
	var list, cuts []any
	swap := func(key, from, to string) {
		list = append(list, map[string]any{"type": "Replace", "pattern": map[string]any{key: from}, "content": to})
	}
	if len(m.charsmap) > 0 {
		list = append(list, map[string]any{"type": "Precompiled",
			"precompiled_charsmap": base64.StdEncoding.EncodeToString(m.charsmap)})
	}
	if m.trimmed {
		swap("Regex", `\A +| +\z`, "")
		swap("Regex", ` {2,}`, " ")
	}
	swap("String", " ", space)
	switch {
	case m.prefix && scheme == "always":
		list = append(list, map[string]any{"type": "Prepend", "prepend": space})
	case m.prefix:
		cuts = append(cuts, map[string]any{"type": "Metaspace", "replacement": space, "prepend_scheme": scheme,
			"split": false})
	}
	if user := m.userDefined(); len(user) > 0 {
		cuts = append(cuts, map[string]any{"type": "Split", "behavior": "Isolated", "invert": false,
			"pattern": map[string]any{"Regex": strings.Join(user, "|")}})
	}
	if len(cuts) > 0 {
		pre = map[string]any{"type": "Sequence", "pretokenizers": cuts}
	}
	return map[string]any{"type": "Sequence", "normalizers": list}, pre
}

// userDefined lists the pieces that are cut out whole wherever they stand, as expressions, long ones first.
func (m *sentencePieces) userDefined() (list []string) {
	for _, p := range m.pieces {
		if p.kind == userDefinedPiece && !p.renamed {
			list = append(list, p.text)
		}
	}
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for i, text := range list {
		list[i] = regexp.QuoteMeta(text)
	}
	return list
}

// around returns the post-processor.
func (m *sentencePieces) around(fields map[string]json.RawMessage, s *settings) any {
	begin := strings.HasPrefix(s.class, "LlamaTokenizer") || strings.HasPrefix(s.class, "InternLM")
	end := false
	for key, v := range map[string]*bool{"add_bos_token": &begin, "add_eos_token": &end} {
		if !absent(fields[key]) {
			_ = json.Unmarshal(fields[key], v) // another type counts as absent
		}
	}
	single, tokens := []any{}, map[string]any{}
	part := func(wanted bool, text string) {
		id := slices.IndexFunc(m.pieces, func(p sentencePiece) bool { return p.text == text })
		if wanted && id >= 0 {
			single = append(single, map[string]any{"SpecialToken": map[string]any{"id": text, "type_id": 0}})
			tokens[text] = map[string]any{"id": text, "ids": []int{id}, "tokens": []string{text}}
		}
	}
	part(begin, cmp.Or(s.special.BOS, m.beginText))
	single = append(single, map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}})
	if part(end, cmp.Or(s.special.EOS, m.endText)); len(tokens) == 0 {
		return nil
	}
	return map[string]any{"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": tokens}
}

// decoder returns the decoder.
func (m *sentencePieces) decoder() any {
	list := []any{map[string]any{"type": "Replace", "pattern": map[string]any{"String": space}, "content": " "}}
	if m.fallback {
		list = append(list, typed{Type: "ByteFallback"})
	}
	list = append(list, typed{Type: "Fuse"})
	if m.prefix {
		list = append(list, map[string]any{"type": "Strip", "content": " ", "start": 1, "stop": 0})
	}
	return map[string]any{"type": "Sequence", "decoders": list}
}

// model returns the model.
func (m *sentencePieces) model() any {
	if m.unigram {
		vocab := make([][2]any, len(m.pieces))
		for id, p := range m.pieces {
			vocab[id] = [2]any{p.text, float64(p.score)}
		}
		return map[string]any{"type": "Unigram", "unk_id": m.unknown, "vocab": vocab, "byte_fallback": m.fallback}
	}
	vocab := map[string]int{}
	for id, p := range m.pieces {
		vocab[p.text] = id
	}
	return map[string]any{"type": "BPE", "unk_token": m.pieces[m.unknown].text, "fuse_unk": true,
		"byte_fallback": m.fallback, "ignore_merges": len(m.userDefined()) > 0, "vocab": vocab, "merges": m.merges()}
}

// merges lists all pairs of pieces that make a piece: the best piece first, then the first piece, then the shortest
// left side.
func (m *sentencePieces) merges() [][2]string {
	type merge struct {
		score float32
		id    int
		pair  [2]string
	}
	list, merged := []merge{}, map[string]bool{}
	for _, p := range m.pieces {
		merged[p.text] = p.kind == normalPiece && !p.renamed
	}
	for id, p := range m.pieces {
		if !merged[p.text] {
			continue
		}
		for at := range p.text {
			if left, right := p.text[:at], p.text[at:]; at > 0 && merged[left] && merged[right] {
				list = append(list, merge{p.score, id, [2]string{left, right}})
			}
		}
	}
	slices.SortFunc(list, func(a, b merge) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id), strings.Compare(a.pair[0], b.pair[0]))
	})
	pairs := make([][2]string, len(list))
	for i, x := range list {
		pairs[i] = x.pair
	}
	return pairs
}

// errNotPieces is returned for a file in another format.
var errNotPieces = errors.New("it is not a model of SentencePiece")

// readSentencePieces reads a ModelProto.
func readSentencePieces(raw []byte) (*sentencePieces, error) {
	m := &sentencePieces{prefix: true, trimmed: true, escaped: true, unigram: true, beginText: "<s>", endText: "</s>"}
	seen := map[string]bool{}
	err := eachField(raw, func(number int, v uint64, inside []byte) error {
		switch number {
		case 1:
			p := sentencePiece{kind: normalPiece}
			err := eachField(inside, p.field)
			if len(m.pieces) > mostID || seen[p.text] || !utf8.ValidString(p.text) || p.kind > bytePiece {
				return errNotPieces
			}
			seen[p.text] = true
			m.pieces = append(m.pieces, p)
			return err
		case 2:
			return eachField(inside, m.trainer)
		case 3:
			return eachField(inside, m.normalizer)
		}
		return nil
	})
	if err == nil && len(m.pieces) == 0 {
		err = errNotPieces
	}
	return m, err
}

// field reads a field of a piece.
func (p *sentencePiece) field(number int, v uint64, inside []byte) error {
	switch number {
	case 1:
		p.text = string(inside)
	case 2:
		p.score = math.Float32frombits(uint32(v))
	case 3:
		p.kind = v
	}
	return nil
}

// trainer reads a field of the TrainerSpec.
func (m *sentencePieces) trainer(number int, v uint64, inside []byte) error {
	switch number {
	case 3:
		m.unigram = v == 1
		m.otherKind = map[uint64]string{3: "words", 4: "characters"}[v]
	case 24:
		m.suffix = v != 0
	case 35:
		m.fallback = v != 0
	case 40:
		m.unknown = int64(v)
	case 46:
		m.beginText = string(inside)
	case 47:
		m.endText = string(inside)
	}
	return nil
}

// normalizer reads a field of the NormalizerSpec.
func (m *sentencePieces) normalizer(number int, v uint64, inside []byte) error {
	switch number {
	case 2:
		m.charsmap = inside
	case 3:
		m.prefix = v != 0
	case 4:
		m.trimmed = v != 0
	case 5:
		m.escaped = v != 0
	}
	return nil
}

// eachField calls f with the fields of a protocol buffer: a number's bits, or the bytes of a text or message.
func eachField(raw []byte, f func(number int, v uint64, inside []byte) error) error {
	for len(raw) > 0 {
		key, n := binary.Uvarint(raw)
		if n <= 0 || key>>3 == 0 || key>>3 > 1<<29-1 {
			return errNotPieces
		}
		raw = raw[n:]
		var v uint64
		var inside []byte
		switch key & 7 {
		case 0:
			v, n = binary.Uvarint(raw)
		case 1:
			if n = 8; len(raw) >= n {
				v = binary.LittleEndian.Uint64(raw)
			}
		case 2:
			if v, n = binary.Uvarint(raw); n > 0 && v <= uint64(len(raw)-n) {
				inside = raw[n : n+int(v)]
				n += int(v)
			} else {
				n = 0
			}
		case 5:
			if n = 4; len(raw) >= n {
				v = uint64(binary.LittleEndian.Uint32(raw))
			}
		default:
			n = 0
		}
		if n <= 0 || n > len(raw) {
			return errNotPieces
		}
		if err := f(int(key>>3), v, inside); err != nil {
			return err
		}
		raw = raw[n:]
	}
	return nil
}
