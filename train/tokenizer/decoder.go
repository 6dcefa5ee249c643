package tokenizer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// decoder turns token texts into the text they stand for. A chain of decoders works step by
// step; the results of the last one are joined.
type decoder interface {
	decode(tokens []string) ([]string, error)
}

// byteDecoder undoes the byte level. A token with a character that stands for no byte is
// kept as is.
type byteDecoder struct{}

func (byteDecoder) decode(tokens []string) ([]string, error) {
	var b []byte
	for _, t := range tokens {
		b = append(b, byteLevelBytes(t)...)
	}
	return []string{validText(b)}, nil
}

func byteLevelBytes(token string) string {
	if s, ok := fromByteLevel(token); ok {
		return s
	}
	return token
}

// metaspaceDecoder writes the mark as a space, and drops it in the first token, where the
// pre-tokenizer put it.
type metaspaceDecoder struct {
	mark  string
	strip bool
}

func (d metaspaceDecoder) decode(tokens []string) ([]string, error) {
	out := make([]string, len(tokens))
	for i, t := range tokens {
		out[i] = d.token(t, i == 0)
	}
	return out, nil
}

func (d metaspaceDecoder) token(t string, first bool) string {
	if first && d.strip {
		return strings.ReplaceAll(t, d.mark, "")
	}
	return strings.ReplaceAll(t, d.mark, " ")
}

// replaceDecoder replaces in each token.
type replaceDecoder replace

func (d replaceDecoder) decode(tokens []string) ([]string, error) {
	out := make([]string, len(tokens))
	started := time.Now()
	for i, t := range tokens {
		var err error
		if out[i], err = d.token(t); err != nil {
			return nil, err
		}
		if i%1024 == 1023 && time.Since(started) > searchTimeout {
			return nil, fmt.Errorf("tokenizer: the decoder Replace took more than %v", searchTimeout)
		}
	}
	return out, nil
}

func (d replaceDecoder) token(t string) (string, error) {
	p, err := replace(d).normalize(stretch{text: t})
	return p.text, err
}

// fallbackDecoder joins runs of byte tokens. A run that is not UTF-8 becomes a token U+FFFD
// for each of its bytes.
type fallbackDecoder struct{}

func (fallbackDecoder) decode(tokens []string) ([]string, error) {
	var out []string
	var run []byte
	flush := func() {
		if utf8.Valid(run) {
			out = append(out, string(run))
		} else {
			out = append(out, slices.Repeat([]string{"\uFFFD"}, len(run))...)
		}
		run = run[:0]
	}
	for _, t := range tokens {
		if b, ok := byteToken(t); ok {
			run = append(run, b)
			continue
		}
		if len(run) > 0 {
			flush()
		}
		out = append(out, t)
	}
	if len(run) > 0 {
		flush()
	}
	return out, nil
}

// byteToken reads a token <0xHH>.
func byteToken(t string) (byte, bool) {
	if len(t) != 6 || t[:3] != "<0x" || t[5] != '>' {
		return 0, false
	}
	digits := t[3:5]
	if digits[0] == '+' { // like Rust's number parser
		digits = digits[1:]
	}
	n, err := strconv.ParseUint(digits, 16, 8)
	return byte(n), err == nil && digits != "" && digits[0] != '_'
}

// fuse joins all tokens.
type fuse struct{}

func (fuse) decode(tokens []string) ([]string, error) {
	return []string{strings.Join(tokens, "")}, nil
}

// stripDecoder drops up to start characters at the start of each token, and up to stop at
// its end, if they equal content.
type stripDecoder struct {
	content     rune
	start, stop int
}

func (d stripDecoder) decode(tokens []string) ([]string, error) {
	out := make([]string, len(tokens))
	for i, t := range tokens {
		out[i] = d.token(t)
	}
	return out, nil
}

func (d stripDecoder) token(t string) string {
	c := string(d.content)
	for n := d.start; n > 0 && strings.HasPrefix(t, c); n-- {
		t = t[len(c):]
	}
	for n := d.stop; n > 0 && strings.HasSuffix(t, c); n-- {
		t = t[:len(t)-len(c)]
	}
	return t
}

// suffixDecoder is BPEDecoder: the suffix of a word's last token becomes a space, and
// nothing in the very last token.
type suffixDecoder string

func (d suffixDecoder) decode(tokens []string) ([]string, error) {
	out := make([]string, len(tokens))
	for i, t := range tokens {
		out[i] = d.token(t, i == len(tokens)-1)
	}
	return out, nil
}

func (d suffixDecoder) token(t string, last bool) string {
	if last {
		return strings.ReplaceAll(t, string(d), "")
	}
	return strings.ReplaceAll(t, string(d), " ")
}

// parseDecoders builds the decoders of tokenizer.json, with sequences flattened.
func parseDecoders(c component) ([]decoder, error) { return flattened(c, "decoders", parseDecoder) }

func parseDecoder(c component) (decoder, error) {
	switch c.Type {
	case "ByteLevel":
		return byteDecoder{}, nil
	case "Metaspace":
		m, err := parseMetaspace(c)
		return metaspaceDecoder{m.mark, m.scheme != prependNever}, err
	case "Replace":
		m, err := c.pattern()
		if err != nil {
			return nil, err
		}
		content, err := c.text("content")
		return replaceDecoder{m, content}, err
	case "ByteFallback":
		return fallbackDecoder{}, nil
	case "Fuse":
		return fuse{}, nil
	case "BPEDecoder":
		suffix, err := c.text("suffix")
		return suffixDecoder(suffix), err
	case "Strip":
		d := stripDecoder{}
		var err error
		if d.content, err = c.char("content"); err != nil {
			return nil, err
		}
		if d.start, err = c.number("start", 0); err != nil {
			return nil, err
		}
		d.stop, err = c.number("stop", 0)
		return d, err
	}
	return nil, fmt.Errorf("%s: decoder %q is not supported", c.where, c.Type)
}

// pieces returns what each token adds to a growing text, as long as the decoders work token
// by token.
type pieces struct {
	decoders []decoder
	joined   bool // without decoders tokens are joined by spaces
}

// piece returns what a token adds to a text that has begun. The bytes of a byte token may
// be part of a character.
func (p pieces) piece(token string) []byte {
	if p.joined {
		return []byte(" " + token)
	}
	for i, d := range p.decoders {
		switch d := d.(type) {
		case byteDecoder:
			token = byteLevelBytes(token)
		case metaspaceDecoder:
			token = d.token(token, false)
		case replaceDecoder:
			if short, err := d.token(token); err == nil {
				token = short
			}
		case fallbackDecoder:
			if b, ok := byteToken(token); ok {
				return []byte{b}
			}
		case suffixDecoder:
			token = d.token(token, false)
		case stripDecoder:
			token = d.token(token)
		case fuse:
			if i < len(p.decoders)-1 { // later decoders see the whole text
				return []byte(token)
			}
		}
	}
	return []byte(token)
}
