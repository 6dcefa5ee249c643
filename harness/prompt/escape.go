package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"exp/train/rollout"
	"exp/train/tokenizer"
)

// escaper keeps text of a problem that spells a token from becoming that token. It cuts the
// spelling after its first character; the two parts are encoded as separate texts. In a chat a mark
// stands for the cut until the template is rendered.
type escaper struct {
	tokens []string // that Encode would read, long ones first
}

// marks are noncharacters of Unicode, which no text should have.
func marks() []rune {
	var list []rune
	for r := '\uFDD0'; r <= '\uFDEF'; r++ {
		list = append(list, r)
	}
	return list
}

// cut puts mark into every spelling of a token in text.
func (e *escaper) cut(text string, mark rune) string {
	for again := true; again; { // cutting a long token may leave a shorter one
		again = false
		for _, t := range e.tokens {
			_, first := utf8.DecodeRuneInString(t)
			if first == len(t) || !strings.Contains(text, t) {
				continue
			}
			text, again = strings.ReplaceAll(text, t, t[:first]+string(mark)+t[first:]), true
		}
	}
	return text
}

// freeMark returns a mark that text does not contain.
func freeMark(text []byte) (rune, error) {
	for _, r := range marks() {
		if !bytes.ContainsRune(text, r) {
			return r, nil
		}
	}
	return 0, fmt.Errorf("it has all of U+FDD0 to U+FDEF, which are noncharacters")
}

// chat cuts the texts of messages and tools, and returns the mark at the cuts.
func (e *escaper) chat(list []rollout.Message, tools json.RawMessage) ([]rollout.Message, json.RawMessage, rune,
	error) {
	raw, err := json.Marshal(list)
	if err != nil {
		return nil, nil, 0, err
	}
	mark, err := freeMark(append(raw, tools...))
	if err != nil {
		return nil, nil, 0, err
	}
	if tools, err = e.json(tools, mark); err != nil {
		return nil, nil, 0, err
	}
	list, err = e.messages(list, mark)
	return list, tools, mark, err
}

// messages cuts the texts of messages.
func (e *escaper) messages(list []rollout.Message, mark rune) (_ []rollout.Message, err error) {
	out := make([]rollout.Message, len(list))
	for i, m := range list {
		out[i] = rollout.Message{Role: e.cut(m.Role, mark), Content: e.cut(m.Content, mark)}
		if out[i].Parts, err = e.json(m.Parts, mark); err != nil {
			return nil, err
		}
		for _, f := range m.More {
			v, err := e.json(f.Value, mark)
			if err != nil {
				return nil, err
			}
			out[i].More = append(out[i].More, rollout.Field{Name: f.Name, Value: v})
		}
	}
	return out, nil
}

// json cuts the strings of a JSON text.
func (e *escaper) json(raw json.RawMessage, mark rune) (json.RawMessage, error) {
	if len(raw) == 0 {
		return raw, nil
	}
	var b bytes.Buffer
	for rest := []byte(raw); len(rest) > 0; {
		from := bytes.IndexByte(rest, '"')
		if from < 0 {
			b.Write(rest)
			break
		}
		b.Write(rest[:from])
		rest = rest[from:]
		d := json.NewDecoder(bytes.NewReader(rest))
		var s string
		if err := d.Decode(&s); err != nil {
			return nil, err
		}
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(e.cut(s, mark)); err != nil {
			return nil, err
		}
		b.Truncate(b.Len() - 1) // the line end
		rest = rest[d.InputOffset():]
	}
	return b.Bytes(), nil
}

// encode encodes the texts between the marks.
func (e *escaper) encode(tok tokenizer.Tokenizer, text string, mark rune, o tokenizer.Options) ([]int32, error) {
	var ids []int32
	for part := range strings.SplitSeq(text, string(mark)) {
		more, err := tok.Encode(part, o)
		if err != nil {
			return nil, err
		}
		ids = append(ids, more...)
	}
	return ids, nil
}
