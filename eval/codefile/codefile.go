// Package codefile reads the published files of code benchmarks into problems of one
// type: HumanEval, MBPP and their EvalPlus versions, LiveCodeBench, CodeElo, TACO, APPS,
// CodeContests, and the rows that RL trainers keep (verl's layout, and DeepCoder's).
//
// A file has any form that package rows reads, JSON lines or a list, parquet, compressed
// by gzip or not; a row has the published columns.
//
// Prompts are plain texts, without a chat template. Where the published file has none,
// the text is ours.
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

// layout is a format with the columns that tell it from others, and its reader.
type layout struct {
	format  Format
	columns []string
	read    func(r row) (code.Problem, error)
}

// layouts in the order of detection: the more telling columns first.
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

// Formats lists the formats.
func Formats() (list []Format) {
	for _, l := range layouts() {
		list = append(list, l.format)
	}
	return list
}

// row is a row's columns.
type row struct {
	columns map[string]json.RawMessage
	number  int // from 1, for what has no id
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

// Row reads one row, a JSON object; number counts rows from 1. An empty format is found
// by the columns.
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
			return code.Problem{}, fmt.Errorf("the row has the columns of no known format: there are %v", Formats())
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
	return code.Problem{}, fmt.Errorf("no format %q: there are %v", f, Formats())
}

// Open reads a file, in any form that package rows reads; an empty format is found by
// the columns of each row. Errors are the system's and *rows.Error, with the place of the
// row. Two problems of one id are an error.
func Open(path string, f Format) ([]code.Problem, error) {
	var problems []code.Problem
	seen := make(map[string]string) // where, by id
	for r, err := range rows.Read(path) {
		if err != nil {
			return nil, err
		}
		p, err := FromRow(f, r)
		if err != nil {
			return nil, err
		}
		if first, ok := seen[p.ID]; ok {
			return nil, r.Errorf("", "the id %s is that of %s as well", p.ID, first)
		}
		seen[p.ID] = r.Where
		problems = append(problems, p)
	}
	if len(problems) == 0 {
		return nil, &rows.Error{Where: path, Err: errors.New("there are no problems in it")}
	}
	return problems, nil
}

// FromRow reads one row of a file; errors are *rows.Error.
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

// DetectRow is Detect for the rows of a file. Rows of RL data sets have the same columns
// whatever the task: their data_source decides.
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

// text is a column that is a string or a number; empty where it is absent or null.
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

// texts reads columns that must be there.
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

// into reads a column that may also be a text of JSON; absent, it stays as it is.
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

// decode reads one JSON value, numbers as written.
func decode(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(to)
}
