package reward

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"exp/train/program"
)

// failure says why a process cannot answer: it ended or is silent. The rows may be retried.
type failure struct{ text string }

func (f *failure) Error() string { return f.text }

// answer is a line of output. ID is empty until a line arrives.
type answer struct {
	ID         string             `json:"id"`
	Score      *float64           `json:"score"`
	Components map[string]float64 `json:"components"`
	Error      string             `json:"error"`
	// These two may hold anything unless CommandOptions.Verdicts.
	Correct json.RawMessage `json:"correct"`
	Answer  json.RawMessage `json:"answer"`

	correct *bool
	text    string
}

// refusal begins the reason of a row that the program answered with an error.
const refusal = "the reward command: "

// Refused reports whether a completion has no score because the program said so, not because it
// failed.
func Refused(reason string) bool { return strings.HasPrefix(reason, refusal) }

func (a answer) score() Score {
	if a.Error != "" {
		return Score{Reason: refusal + a.Error}
	}
	return Score{Graded: true, Value: *a.Score, Parts: a.Components, Correct: a.correct, Answer: a.text}
}

// exchange sends rows and waits for their answers, by index; rows without an answer have no
// ID. The error is a *failure, a *BrokenError or ctx's.
func exchange(ctx context.Context, p *program.Process, rows []row, o CommandOptions) ([]answer, error) {
	answers := make([]answer, len(rows))
	waiting := make(map[string]int, len(rows))
	var input bytes.Buffer
	enc := json.NewEncoder(&input)
	enc.SetEscapeHTML(false)
	for i, r := range rows {
		waiting[r.ID] = i
		if err := enc.Encode(r); err != nil {
			return answers, fmt.Errorf("problem %s: %w", r.Problem, err)
		}
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		p.Write(input.Bytes()) // a broken pipe shows as the end of the output
	}()

	silence, whole := time.NewTimer(o.RowLimit), time.NewTimer(o.BatchLimit)
	defer silence.Stop()
	defer whole.Stop()
	fail := func(err error) ([]answer, error) {
		p.Stop(0)
		<-written
		return answers, err
	}
	for len(waiting) > 0 {
		select {
		case <-ctx.Done():
			return fail(ctx.Err())
		case <-silence.C:
			return fail(&failure{fmt.Sprintf("the reward command gave no answer within %v (reward.row_limit)%s",
				o.RowLimit, p.Said())})
		case <-whole.C:
			return fail(&failure{fmt.Sprintf("the reward command did not answer the batch within %v "+
				"(reward.batch_limit)%s", o.BatchLimit, p.Said())})
		case l, ok := <-p.Lines():
			if !ok {
				<-p.Ended()
				return fail(&failure{fmt.Sprintf("the reward command ended (%s) before it answered%s", p.State(),
					p.Said())})
			}
			if len(l.Text) == 0 && l.Err == nil {
				continue
			}
			a, i, err := parseAnswer(l, waiting, rows, o)
			if err != nil {
				return fail(&BrokenError{What: "reward command " + o.Argv[0], Err: err,
					Help: "write answers to standard output, one per line, and everything else to standard error"})
			}
			answers[i] = a
			delete(waiting, a.ID)
			silence.Reset(o.RowLimit)
		}
	}
	<-written
	return answers, nil
}

// parseAnswer reads a line of output as the answer to a waiting row, and returns the row's
// index.
func parseAnswer(l program.Line, waiting map[string]int, rows []row, o CommandOptions) (answer, int, error) {
	bad := func(format string, args ...any) (answer, int, error) {
		return answer{}, 0, fmt.Errorf("line %d of its output: %s", l.Number, fmt.Sprintf(format, args...))
	}
	if l.Err != nil {
		return bad("%v", l.Err)
	}
	var a answer
	if err := json.Unmarshal(l.Text, &a); err != nil {
		first := firstWaiting(waiting, rows)
		return bad("not a JSON answer, while the row with id %s (problem %s) waits: %s: %s", first.ID, first.Problem,
			answerWords(err, l.Text), program.Excerpt(l.Text))
	}
	i, ok := waiting[a.ID]
	if !ok {
		return bad("%s", notWaiting(a.ID, rows, firstWaiting(waiting, rows)))
	}
	where := fmt.Sprintf("the row with id %s (problem %s)", a.ID, rows[i].Problem)
	switch {
	case a.Error != "":
		return a, i, nil
	case a.Score == nil:
		return bad(`%s has neither "score" nor "error": %s`, where, program.Excerpt(l.Text))
	}
	for _, name := range o.Parts {
		if _, ok := a.Components[name]; !ok {
			return bad("%s lacks the component %q of reward.components: %s", where, name, program.Excerpt(l.Text))
		}
	}
	if o.Verdicts {
		if err := a.readVerdict(); err != nil {
			return bad("%s: %v: %s", where, err, program.Excerpt(l.Text))
		}
	}
	return a, i, nil
}

// readVerdict reads the fields "correct", true or false or 1 or 0, and "answer", a text or any other JSON; null counts
// as missing.
func (a *answer) readVerdict() error {
	switch string(a.Correct) {
	case "", "null":
	case "true", "1", "1.0", "false", "0", "0.0":
		right := a.Correct[0] == 't' || a.Correct[0] == '1'
		a.correct = &right
	default:
		return errors.New(`"correct" must be true or false`)
	}
	if string(a.Answer) == "null" {
		return nil
	}
	if json.Unmarshal(a.Answer, &a.text) != nil {
		a.text = string(a.Answer)
	}
	return nil
}

// answerWords says in the words of the protocol why a line is no answer.
func answerWords(err error, line []byte) string {
	if text := mismatch(err); text != "" {
		return text
	}
	for _, word := range []string{"NaN", "Infinity"} { // as Python writes them
		if bytes.Contains(line, []byte(word)) {
			return fmt.Sprintf(`JSON has no %s; a row without a score has an "error": %v`, word, err)
		}
	}
	return err.Error()
}

// mismatch says which value of a JSON text has another kind than wanted; "" for other errors.
func mismatch(err error) string {
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) {
		return ""
	}
	if kind.Field == "" {
		return "want an object, got " + article(kind.Value)
	}
	want := map[reflect.Kind]string{reflect.String: "a text", reflect.Float64: "a number",
		reflect.Map: "an object of numbers", reflect.Slice: "a list", reflect.Struct: "an object"}[kind.Type.Kind()]
	if number, ok := strings.CutPrefix(kind.Value, "number "); ok && kind.Type.Kind() == reflect.Float64 {
		return fmt.Sprintf("%q is %s, which no float64 can hold", kind.Field, number)
	}
	return fmt.Sprintf("%q must be %s, got %s", kind.Field, want, article(kind.Value))
}

// article puts an article before encoding/json's name of a kind of value.
func article(kind string) string {
	name, _, _ := strings.Cut(kind, " ")
	switch name {
	case "string":
		return "a text"
	case "bool":
		return "true or false"
	case "array":
		return "a list"
	case "object":
		return "an object"
	}
	return "a " + name
}

// firstWaiting returns the first row without an answer.
func firstWaiting(waiting map[string]int, rows []row) row {
	for _, r := range rows {
		if _, ok := waiting[r.ID]; ok {
			return r
		}
	}
	return row{}
}

// notWaiting says why no row waits with this id.
func notWaiting(id string, rows []row, waits row) string {
	if id == "" {
		return fmt.Sprintf(`no "id" (a text), while the row with id %s waits`, waits.ID)
	}
	for _, r := range rows {
		if r.ID == id {
			return fmt.Sprintf("a second answer to the row with id %s (problem %s)", id, r.Problem)
		}
	}
	first, _ := strconv.ParseInt(rows[0].ID, 10, 64)
	if n, err := strconv.ParseInt(id, 10, 64); err == nil && n > 0 && n < first {
		return fmt.Sprintf("the id %s belongs to an earlier row, which has been answered", id)
	}
	return fmt.Sprintf("the id %q is unknown; the row with id %s waits", id, waits.ID)
}
