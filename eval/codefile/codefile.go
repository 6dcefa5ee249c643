// Package codefile reads the published files of code benchmarks into one problem type: HumanEval, MBPP and
// their EvalPlus versions, LiveCodeBench, CodeElo, TACO, APPS, CodeContests, and the rows that RL trainers
// keep (verl's layout and DeepCoder's).
//
// Files are in any form that package rows reads; rows have the published columns.
//
// Prompts are plain texts without a chat template. Where the published file has no prompt, we supply the
// wording.
package codefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"exp/eval/grade/code"
	"exp/eval/rows"
)

// Format is the layout of a file's rows.
type Format string

// The formats.
const (
	// task_id, prompt, entry_point, canonical_solution, test; also evalplus/humanevalplus
	HumanEval Format = "humaneval"
	// task_id, text or prompt, code, test_list; also sanitized and evalplus/mbppplus
	MBPP          Format = "mbpp"
	EvalPlus      Format = "evalplus"      // HumanEvalPlus.jsonl, MbppPlus.jsonl: base_input, plus_input
	LiveCodeBench Format = "livecodebench" // question_content, public_test_cases, private_test_cases
	CodeElo       Format = "codeelo"       // problem_id, description, input, output, examples
	TACO          Format = "taco"          // question, input_output; also APPS
	CodeContests  Format = "codecontests"  // name, description, public_tests, private_tests, generated_tests
	DeepCoder     Format = "deepcoder"     // problem, tests; also rllm's own files
	Verl          Format = "verl"          // data_source, prompt, reward_model.ground_truth
)

// layout is a format: its reader and the columns that identify it.
type layout struct {
	format  Format
	columns []string
	read    func(r row) (code.Problem, error)
}

// layouts are in order of detection, the most specific columns first.
func layouts() []layout {
	return []layout{
		{Verl, []string{"reward_model", "prompt"}, verl},
		{EvalPlus, []string{"base_input", "plus_input", "entry_point"}, evalPlus},
		{HumanEval, []string{"entry_point", "prompt", "test"}, humanEval},
		{MBPP, []string{"test_list", "code"}, mbpp},
		{LiveCodeBench, []string{"question_content", "public_test_cases"}, liveCodeBench},
		{CodeContests, []string{"public_tests", "description"}, codeContests},
		{CodeElo, []string{"examples", "description"}, codeElo},
		{TACO, []string{"input_output", "question"}, taco},
		{DeepCoder, []string{"problem", "tests"}, deepCoder},
	}
}

// Formats lists all formats.
func Formats() (list []Format) {
	for _, l := range layouts() {
		list = append(list, l.format)
	}
	return list
}

// row holds the columns of a row.
type row struct {
	columns map[string]json.RawMessage
	number  int // from 1, used if the row lacks an id
}

func detect(columns map[string]json.RawMessage) (f Format, ok bool) {
	for _, l := range layouts() {
		all := true
		for _, c := range l.columns {
			_, has := columns[c]
			all = all && has
		}
		if all {
			return l.format, true
		}
	}
	return "", false
}

// Row reads one row, a JSON object; number counts rows from 1. An empty format is detected from the
// columns.
func Row(f Format, object []byte, number int) (code.Problem, error) {
	r := row{number: number}
	if err := json.Unmarshal(object, &r.columns); err != nil {
		return code.Problem{}, err
	}
	return parse(f, r)
}

func parse(f Format, r row) (code.Problem, error) {
	if f == "" {
		var ok bool
		if f, ok = detect(r.columns); !ok {
			return code.Problem{}, fmt.Errorf("the columns match no known format: %v", Formats())
		}
	}
	for _, l := range layouts() {
		if l.format != f {
			continue
		}
		p, err := l.read(r)
		if err == nil {
			err = p.Check()
		}
		return p, err
	}
	return code.Problem{}, fmt.Errorf("unknown format %q; known: %v", f, Formats())
}

// Open reads a file in any form that package rows reads. An empty format is detected from the columns of
// each row. Errors are system errors or *rows.Error, with the place of the row. Two problems with one id
// are an error.
func Open(path string, f Format) ([]code.Problem, error) {
	var problems []code.Problem
	seen := make(map[string]string) // id -> where it was seen
	for r, err := range rows.Read(path) {
		if err != nil {
			return nil, err
		}
		p, err := FromRow(f, r)
		if err != nil {
			return nil, err
		}
		if first, ok := seen[p.ID]; ok {
			return nil, r.Errorf("", "id %s also belongs to %s", p.ID, first)
		}
		seen[p.ID] = r.Where
		problems = append(problems, p)
	}
	if len(problems) == 0 {
		return nil, &rows.Error{Where: path, Err: errors.New("no problems in the file")}
	}
	return problems, nil
}

// FromRow reads one row of a file. Errors are *rows.Error.
func FromRow(f Format, from rows.Row) (code.Problem, error) {
	columns, err := columnsOf(from)
	if err != nil {
		return code.Problem{}, err
	}
	p, err := parse(f, row{columns, from.Index + 1})
	if err != nil {
		return p, from.Errorf("", "%w", err)
	}
	return p, nil
}

// DetectRow detects the format of a file's row. RL data sets have the same columns whatever the task, so
// for them data_source decides.
func DetectRow(from rows.Row) (f Format, ok bool) {
	columns, err := columnsOf(from)
	if err != nil {
		return "", false
	}
	if f, ok = detect(columns); f == Verl {
		source, err := from.Text("data_source")
		return f, err == nil && slices.Contains(sources(), source)
	}
	return f, ok
}

func columnsOf(from rows.Row) (map[string]json.RawMessage, error) {
	columns := make(map[string]json.RawMessage, len(from.Fields))
	for name, v := range from.Fields {
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, from.Errorf(name, "%w", err)
		}
		columns[name] = raw
	}
	return columns, nil
}

// text returns a string or number column as text; empty if absent or null.
func (r row) text(names ...string) (string, error) {
	for _, name := range names {
		raw, ok := r.columns[name]
		if !ok || string(raw) == "null" {
			continue
		}
		var v any
		if err := decode(raw, &v); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
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

// texts reads columns that must be present.
func (r row) texts(names []string, to ...*string) (err error) {
	for i, name := range names {
		if _, ok := r.columns[name]; !ok {
			return fmt.Errorf("column %s is missing", name)
		}
		if *to[i], err = r.text(name); err != nil {
			return err
		}
	}
	return nil
}

// into decodes a column that may also be JSON text. If it is absent, to is unchanged.
func (r row) into(name string, to any) error {
	raw, ok := r.columns[name]
	if !ok || string(raw) == "null" {
		return nil
	}
	if raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if strings.TrimSpace(s) == "" {
			return nil
		}
		raw = []byte(s)
	}
	if err := decode(raw, to); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// decode reads one JSON value and keeps numbers as written.
func decode(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(to)
}
