package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// errShape reports well-formed JSON of an unexpected shape.
var errShape = errors.New("unexpected JSON value")

// jsonReader walks over the two large parts of tokenizer.json, vocab and merges, without
// allocating a value per element. The JSON has already been validated.
type jsonReader struct {
	text string
	at   int
}

// next skips white space and returns the next byte, 0 at the end.
func (r *jsonReader) next() byte {
	for r.at < len(r.text) {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return c
		}
	}
	return 0
}

// skip consumes c if it is next.
func (r *jsonReader) skip(c byte) bool {
	if r.next() != c {
		return false
	}
	r.at++
	return true
}

// str reads a string. Without escapes it shares the text's memory.
func (r *jsonReader) str() (string, error) {
	if !r.skip('"') {
		return "", errShape
	}
	from, escaped := r.at, false
	for ; r.at < len(r.text); r.at++ {
		switch r.text[r.at] {
		case '\\':
			escaped = true
			r.at++
		case '"':
			r.at++
			s := r.text[from : r.at-1]
			if !escaped {
				return s, nil
			}
			err := json.Unmarshal([]byte(r.text[from-1:r.at]), &s)
			return s, err
		}
	}
	return "", errShape
}

// number reads a number's text.
func (r *jsonReader) number() string {
	r.next()
	from := r.at
	for r.at < len(r.text) {
		switch c := r.text[r.at]; {
		case c >= '0' && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
			r.at++
		default:
			return r.text[from:r.at]
		}
	}
	return r.text[from:]
}

// list calls element for each element of an array.
func (r *jsonReader) list(element func() error) error {
	if !r.skip('[') {
		return errShape
	}
	if r.skip(']') {
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if !r.skip(',') {
			break
		}
	}
	if !r.skip(']') {
		return errShape
	}
	return nil
}

// readVocab reads {"text": id, …} in file order.
func readVocab(raw json.RawMessage, entry func(text string, id int64) error) error {
	r := &jsonReader{text: string(raw)}
	if !r.skip('{') {
		return errors.New("vocab: not an object of ids")
	}
	if r.skip('}') {
		return nil
	}
	for {
		text, err := r.str()
		if err != nil {
			return fmt.Errorf("vocab: %w", err)
		}
		if !r.skip(':') {
			return errors.New("vocab: " + errShape.Error())
		}
		number := r.number()
		id, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return fmt.Errorf("vocab: the id of token %q is not a whole number: %q", text, number)
		}
		if err := entry(text, id); err != nil {
			return fmt.Errorf("vocab: %w", err)
		}
		if !r.skip(',') {
			break
		}
	}
	if !r.skip('}') {
		return errors.New("vocab: not an object of ids")
	}
	return nil
}

// readScores reads [["piece", score], …].
func readScores(raw json.RawMessage, entry func(text string, score float64) error) error {
	r := &jsonReader{text: string(raw)}
	err := r.list(func() error {
		if !r.skip('[') {
			return errShape
		}
		text, err := r.str()
		if err != nil {
			return err
		}
		if !r.skip(',') {
			return errShape
		}
		number := r.number()
		score, ok := scoreOf(number)
		if !ok {
			return fmt.Errorf("the score of %q is not a number: %q", text, number)
		}
		if !r.skip(']') {
			return errShape
		}
		return entry(text, score)
	})
	if err != nil {
		return fmt.Errorf("vocab: %w", err)
	}
	return nil
}

// scoreOf reads a number as Hugging Face's library does, with serde_json: the digits as a
// whole number, then one multiplication or division by a power of ten. The result may be
// one unit in the last place off the nearest number, and that decides between equally good
// segmentations.
func scoreOf(number string) (score float64, ok bool) {
	mantissa, tail, _ := strings.Cut(strings.ToLower(number), "e")
	exponent := 0
	if tail != "" {
		n, err := strconv.Atoi(tail)
		if err != nil || n < -10000 || n > 10000 {
			return 0, false
		}
		exponent = n
	}
	if _, err := strconv.ParseFloat(number, 64); err != nil {
		return 0, false
	}
	var digits uint64
	full, point := false, false
	for _, c := range []byte(strings.TrimPrefix(mantissa, "-")) {
		if c == '.' {
			point = true
			continue
		}
		d := uint64(c - '0')
		full = full || digits > (math.MaxUint64-d)/10
		switch {
		case full && !point:
			exponent++
		case !full:
			digits = digits*10 + d
			if point {
				exponent--
			}
		}
	}
	score = float64(digits)
	for exponent < -308 && score != 0 {
		score /= 1e308
		exponent += 308
	}
	switch {
	case score == 0:
	case exponent < 0:
		score /= math.Pow10(-exponent)
	default:
		score *= math.Pow10(exponent)
	}
	if strings.HasPrefix(mantissa, "-") {
		score = -score
	}
	return score, !math.IsInf(score, 0)
}

// readMerges reads merges as "a b" strings or ["a", "b"] pairs.
func readMerges(raw json.RawMessage, merge func(a, b string) error) error {
	r := &jsonReader{text: string(raw)}
	n := 0
	err := r.list(func() error {
		n++
		if r.next() == '[' {
			r.at++
			a, err := r.str()
			if err != nil || !r.skip(',') {
				return errShape
			}
			b, err := r.str()
			if err != nil || !r.skip(']') {
				return errShape
			}
			return merge(a, b)
		}
		line, err := r.str()
		if err != nil {
			return err
		}
		return mergeLine(line, merge)
	})
	if err != nil {
		return fmt.Errorf("merges: entry %d: %w", n, err)
	}
	return nil
}

// mergeLine reads a merge "a b", or a "#version" line, which is not a merge.
func mergeLine(line string, merge func(a, b string) error) error {
	if len(line) >= 8 && line[:8] == "#version" {
		return nil
	}
	a, b, found := cutOnce(line)
	if !found {
		return fmt.Errorf("%q is not two tokens with one space between them; tokens with a space inside need "+
			"the form [\"a\", \"b\"]", line)
	}
	return merge(a, b)
}

// cutOnce cuts line at its only space.
func cutOnce(line string) (a, b string, found bool) {
	at := -1
	for i := range len(line) {
		if line[i] == ' ' {
			if at >= 0 {
				return "", "", false
			}
			at = i
		}
	}
	if at < 0 {
		return "", "", false
	}
	return line[:at], line[at+1:], true
}

// absent reports whether a part of a file is null or missing.
func absent(raw json.RawMessage) bool {
	return len(raw) == 0 || bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}
