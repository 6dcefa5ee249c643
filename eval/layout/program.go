package layout

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"exp/eval/grade/code"
	"exp/eval/rows"
	"exp/train/rollout"
)

// programLayout says how published rows store programming problems: the columns that identify them, and
// their reader. Prompts are plain texts without a chat template. Where the published file has no prompt, we
// supply the wording.
type programLayout struct {
	name    string
	columns []string
	read    func(r row) (code.Problem, error)
}

// programLayouts are in order of detection, the most specific columns first.
func programLayouts() []programLayout {
	return []programLayout{
		{"verl", []string{"reward_model", "prompt"}, verl},
		// HumanEvalPlus.jsonl, MbppPlus.jsonl
		{"evalplus", []string{"base_input", "plus_input", "entry_point"}, evalPlus},
		{"humaneval", []string{"entry_point", "prompt", "test"}, humanEval}, // also evalplus/humanevalplus
		{"mbpp", []string{"test_list", "code"}, mbpp},                       // also sanitized and evalplus/mbppplus
		{"livecodebench", []string{"question_content", "public_test_cases"}, liveCodeBench},
		{"codecontests", []string{"public_tests", "description"}, codeContests},
		{"codeelo", []string{"examples", "description"}, codeElo},
		{"taco", []string{"input_output", "question"}, taco},   // also APPS
		{"deepcoder", []string{"problem", "tests"}, deepCoder}, // also rllm's own files
	}
}

// detectProgram finds the layout of a row; on failure it returns the names of all.
func detectProgram(r rows.Row) (l programLayout, others []string) {
	for _, l := range programLayouts() {
		absent := func(column string) bool {
			_, ok := r.Fields[column]
			return !ok
		}
		if !slices.ContainsFunc(l.columns, absent) {
			return l, nil
		}
		others = append(others, l.name)
	}
	return l, others
}

// OfPrograms reports whether a row holds a programming problem. RL data sets have the same columns whatever
// the task, so for them data_source decides.
func OfPrograms(r rows.Row) bool {
	l, _ := detectProgram(r)
	if l.name != "verl" {
		return l.name != ""
	}
	source, err := r.Text("data_source")
	if err != nil {
		return false
	}
	family, _ := familyOf(source)
	return family != ""
}

// program reads a row in a published layout. Errors are *rows.Error.
func program(r rows.Row) (code.Problem, error) {
	l, others := detectProgram(r)
	if l.name == "" {
		return code.Problem{}, r.Errorf("", "the columns match no known format: %v", others)
	}
	p, err := l.read(row{r})
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		err = r.Errorf("", "%w", err)
	}
	return p, err
}

// Programs reads the programming problems of a benchmark's rows. Two rows with one id are an error. Programs
// returns errors of all, or *rows.Error.
func Programs(all iter.Seq2[rows.Row, error]) ([]rollout.Problem, Copies, error) {
	return collect(all, func(r rows.Row) (i item, err error) {
		p, err := program(r)
		if err != nil {
			return i, err
		}
		i.problem, err = p.Rollout()
		i.content = r.Index // differs in every row
		return i, err
	}, func(r rows.Row, id string, owner map[string]string) (string, error) {
		return "", r.Errorf("", "id %s also belongs to %s", id, owner[id])
	})
}

// ProgramsAt reads the programming problems to train on: rows as package task writes them, or in a published
// layout. If column is not empty, the prompt stands there, and the tests where verl has them. Equal rows
// count as one problem; the id of a different problem with a known id gets #2, #3 … appended. APPS has
// some rows without tests: they are counted and skipped, unless every row is one.
func ProgramsAt(all iter.Seq2[rows.Row, error], column string) ([]rollout.Problem, Copies, error) {
	var untested error // of the first row without tests
	problems, copies, err := collect(all, func(r rows.Row) (item, error) {
		i, err := trainingProgram(r, column)
		if errors.Is(err, code.ErrNoTests) {
			untested = cmp.Or(untested, err)
			err = errUnanswered
		}
		return i, err
	}, func(_ rows.Row, id string, owner map[string]string) (string, error) { return numbered(id, owner), nil })
	if err == nil && len(problems) == 0 {
		err = untested
	}
	return problems, copies, err
}

func trainingProgram(r rows.Row, column string) (i item, err error) {
	p, messages, err := programAndChat(r, column)
	if err != nil {
		return i, err
	}
	id, tools := p.ID, Tools(r)
	p.ID = ""
	content, err := json.Marshal([]any{p, messages, tools})
	if err != nil {
		return i, err
	}
	p.ID = id
	i.problem, err = p.Rollout()
	i.problem.Messages, i.problem.Tools = messages, tools
	i.content = sha256.Sum256(content)
	return i, err
}

// programAndChat also returns the row's chat if that says more than the problem.
func programAndChat(r rows.Row, column string) (*code.Problem, []rollout.Message, error) {
	if column != "" {
		var err error
		if r, err = withPrompt(r, column); err != nil {
			return nil, nil, err
		}
	}
	if r.Has("id", "prompt", "data") {
		return storedProgram(r)
	}
	p, err := program(r)
	if err != nil {
		return nil, nil, err
	}
	var messages []rollout.Message
	if _, chat := r.Fields["prompt"].([]any); chat {
		messages, err = Messages(r, "prompt")
	}
	if rollout.Plain(messages) {
		messages = nil
	}
	return &p, messages, err
}

// withPrompt returns a row of verl's layout with that column as its prompt.
func withPrompt(r rows.Row, column string) (rows.Row, error) {
	if !r.Has(column) {
		return r, r.Errorf(column, "%w: the column with the prompt", rows.ErrMissing)
	}
	if !r.Has("reward_model") {
		return r, r.Errorf("reward_model", "%w: a code problem whose prompt is in the column %q must have "+
			"its tests in reward_model.ground_truth", rows.ErrMissing, column)
	}
	return r.WithField("prompt", column), nil
}

func storedProgram(r rows.Row) (*code.Problem, []rollout.Message, error) {
	var stored rollout.Problem
	b, err := json.Marshal(r.Fields)
	if err == nil {
		err = json.Unmarshal(b, &stored)
	}
	if err == nil && r.Has("messages") {
		stored.Messages, err = Messages(r, "messages")
	}
	if err != nil {
		return nil, nil, r.Errorf("", "%w", err)
	}
	p, err := code.ProblemOf(&stored)
	if err != nil {
		return nil, nil, r.Errorf("data", "%w", err)
	}
	return p, stored.Messages, nil
}

// row is a row of programs, whose columns may hold JSON as text.
type row struct{ rows.Row }

// first returns the first of these columns that is present: a text, or a number as written. It is empty if
// all are absent or null.
func (r row) first(names ...string) (string, error) {
	for _, name := range names {
		v, ok := r.Value(name)
		if !ok {
			continue
		}
		switch v := v.(type) {
		case string:
			return v, nil
		case json.Number:
			return v.String(), nil
		}
		return "", fmt.Errorf("%s must be a text", name)
	}
	return "", nil
}

// required reads columns of texts that must be present.
func (r row) required(names []string, to ...*string) (err error) {
	for i, name := range names {
		if _, ok := r.Fields[name]; !ok {
			return fmt.Errorf("column %s is missing", name)
		}
		if *to[i], err = r.first(name); err != nil {
			return err
		}
	}
	return nil
}

// into decodes a column that may also be JSON text. If it is absent, to is unchanged.
func (r row) into(name string, to any) error {
	v, ok := r.Value(name)
	if !ok {
		return nil
	}
	text, isText := v.(string)
	raw, err := []byte(text), error(nil)
	switch {
	case !isText:
		raw, err = json.Marshal(v)
	case strings.TrimSpace(text) == "":
		return nil
	}
	if err == nil {
		err = decode(raw, to)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// decode reads exactly one JSON value and keeps numbers as written.
func decode(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more text after the JSON value")
	}
	return nil
}
