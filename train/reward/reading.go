package reward

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"exp/train/program"
)

// Reading says how a score is read from the text that a language model wrote about a completion.
type Reading struct {
	// Pattern finds the score in the judge's answer: the first group of its last match.
	// nil: the answer holds a JSON object, whose Field is the score.
	Pattern *regexp.Regexp
	Wanted  string // what Pattern finds, for errors; empty: reward.judge.pattern
	Field   string
	Parts   []string // further fields of the JSON object
	// Low and High bound a score; nil means no bound. Scores outside are rejected.
	Low, High *float64
}

// read finds the score in the judge's text.
func (r *Reading) read(content string) Score {
	s, err := r.extract(content)
	for _, x := range []struct {
		bad  bool
		what string
	}{
		{err == nil && r.Low != nil && s.Value < *r.Low, "is below reward.judge.low"},
		{err == nil && r.High != nil && s.Value > *r.High, "is above reward.judge.high"},
		{err == nil && (math.IsNaN(s.Value) || math.IsInf(s.Value, 0)), "is not a number"},
	} {
		if x.bad {
			err = fmt.Errorf("its score %v %s", s.Value, x.what)
		}
	}
	if err != nil {
		return Score{Reason: fmt.Sprintf("the judge: %v: %s", err, program.Excerpt([]byte(content)))}
	}
	s.Graded = true
	return s
}

func (r *Reading) extract(content string) (Score, error) {
	if r.Pattern != nil {
		all := r.Pattern.FindAllStringSubmatch(content, -1)
		if len(all) == 0 {
			return Score{}, fmt.Errorf("no %s in its answer", cmp.Or(r.Wanted, "match of reward.judge.pattern"))
		}
		last := all[len(all)-1][1]
		x, err := strconv.ParseFloat(strings.TrimSpace(last), 64)
		if err != nil {
			return Score{}, fmt.Errorf("reward.judge.pattern found %q, which is not a number", last)
		}
		return Score{Value: x}, nil
	}
	object, err := jsonObject(content)
	if err != nil {
		return Score{}, err
	}
	number := func(name string) (x float64, err error) {
		raw, ok := object[name]
		if !ok {
			return 0, fmt.Errorf("no field %q in its answer", name)
		}
		if err := json.Unmarshal(raw, &x); err != nil || string(raw) == "null" {
			return 0, fmt.Errorf("the field %q is %s, not a number", name, program.Excerpt(raw))
		}
		return x, nil
	}
	s := Score{}
	if s.Value, err = number(r.Field); err != nil {
		return s, err
	}
	for _, name := range r.Parts {
		x, err := number(name)
		if err != nil {
			return s, err
		}
		if s.Parts == nil {
			s.Parts = map[string]float64{}
		}
		s.Parts[name] = x
	}
	return s, nil
}

// jsonObject returns the last JSON object of a text: models put words, or a fence, around
// it.
func jsonObject(text string) (map[string]json.RawMessage, error) {
	var found map[string]json.RawMessage
	for at := 0; at < len(text); {
		i := strings.IndexByte(text[at:], '{')
		if i < 0 {
			break
		}
		var object map[string]json.RawMessage
		dec := json.NewDecoder(strings.NewReader(text[at+i:]))
		if dec.Decode(&object) == nil {
			found = object
			at += i + int(dec.InputOffset())
		} else {
			at += i + 1
		}
	}
	if found == nil {
		return nil, errors.New("no JSON object in its answer")
	}
	return found, nil
}
