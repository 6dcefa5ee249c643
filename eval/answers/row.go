// Package answers grades answers in a file: rows of JSON with a problem's gold answers and an answer or a whole
// response. It writes a verdict for each row and counts, by tag, how often the grader agrees with the labels.
package answers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"exp/eval/grade"
	"exp/eval/grade/extract"
	"exp/eval/grade/peer"
)

// Row is a row of input.
type Row struct {
	ID         json.RawMessage `json:"id"`
	Gold       Golds           `json:"gold"`
	Prediction *Text           `json:"prediction"`
	Response   *Text           `json:"response"`
	Kind       string          `json:"kind"`
	Expected   *bool           `json:"expected"`
	Tags       []string        `json:"tags"`
}

// Text is a text, or a number as it was written.
type Text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(data []byte) error {
	var list Golds
	if err := list.UnmarshalJSON(data); err != nil || data[0] == '[' {
		return errors.New("prediction or response is not a text or a number")
	}
	*t = Text(list[0])
	return nil
}

// Golds is a text, a number, or a list of them; any one is right.
type Golds []string

// UnmarshalJSON implements json.Unmarshaler.
func (g *Golds) UnmarshalJSON(data []byte) error {
	list := []json.RawMessage{data}
	if data[0] == '[' {
		list = nil // its element would be written over data
		if err := json.Unmarshal(data, &list); err != nil {
			return err
		}
	}
	for _, raw := range list {
		var s string
		switch {
		case raw[0] == '"':
			if err := json.Unmarshal(raw, &s); err != nil {
				return err
			}
		case raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9':
			s = string(raw)
		default:
			return errors.New("gold is not a text, a number or a list of them")
		}
		*g = append(*g, s)
	}
	return nil
}

// Verdict is a row of output.
type Verdict struct {
	ID        json.RawMessage `json:"id"`
	Correct   bool            `json:"correct"`
	Sure      bool            `json:"sure"`
	Extracted string          `json:"extracted"`
	Reason    string          `json:"reason"`
	// Score is the share of the full score; only graders of shares give it.
	Score *float64 `json:"score,omitempty"`
}

// Judge grades one row; the first matching gold answer counts, or all of them by a grader of shares. If strict is set,
// an unsure verdict is wrong.
func (r *Row) Judge(g peer.Grader, strict bool) Verdict {
	if g.Shares {
		v := g.Posed(peer.Question{Golds: r.Gold, Right: -1}, r.text())
		return Verdict{r.ID, v.Correct && (v.Sure || !strict), v.Sure, v.Extracted, v.Reason, &v.Share}
	}
	var v grade.Verdict
	for _, gold := range r.Gold {
		var w grade.Verdict
		switch {
		case r.Response != nil:
			w = g.Response(gold, string(*r.Response))
		case r.Kind == "response":
			w = g.Response(gold, string(*r.Prediction))
		default:
			w = g.Answer(gold, string(*r.Prediction))
		}
		if strict && !w.Sure {
			w.Correct = false
		}
		if v.Reason == "" || w.Correct {
			v = w
		}
		if v.Correct {
			break
		}
	}
	return Verdict{r.ID, v.Correct, v.Sure, v.Extracted, v.Reason, nil}
}

// text is what the row says, an answer or a whole response.
func (r *Row) text() string {
	if r.Response != nil {
		return string(*r.Response)
	}
	return string(*r.Prediction)
}

// EndTurns returns a grader that reads texts up to the first special token.
func EndTurns(g peer.Grader, special []string) peer.Grader {
	turns, response, answer := extract.NewTurns(special), g.Response, g.Answer
	g.Response = func(gold, s string) grade.Verdict { return response(gold, turns.First(s)) }
	g.Answer = func(gold, s string) grade.Verdict { return answer(gold, turns.First(s)) }
	return g
}

// RowError is a row that cannot be graded.
type RowError struct {
	Line int
	Err  error
}

func (e *RowError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *RowError) Unwrap() error { return e.Err }

// inWords rephrases errors of encoding/json about the kind of a value.
func inWords(err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &kind):
		return err
	case kind.Field == "":
		return fmt.Errorf("a JSON %s, not an object", kind.Value)
	}
	return fmt.Errorf("%q is a JSON %s, not a %s", kind.Field, kind.Value, kind.Type)
}

// batch is how many rows are in memory at a time.
const batch = 512

// read reads up to batch rows after line, skipping blank lines.
func read(r *bufio.Reader, line int) (rows []Row, last int, more bool, err error) {
	for len(rows) < batch {
		text, err := r.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, line, false, err
		}
		line++
		if line == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			var row Row
			if err := json.Unmarshal(text, &row); err != nil {
				return nil, line, false, &RowError{line, inWords(err)}
			}
			switch {
			case len(row.Gold) == 0:
				return nil, line, false, &RowError{line, errors.New("no gold")}
			case row.Prediction == nil && row.Response == nil:
				return nil, line, false, &RowError{line, errors.New("neither prediction nor response")}
			case len(row.ID) == 0:
				row.ID = json.RawMessage("null")
			}
			rows = append(rows, row)
		}
		if err == io.EOF {
			return rows, line, false, nil
		}
	}
	return rows, line, true, nil
}
