// Package codefile reads the published files of code benchmarks into problems of one
// type: HumanEval, MBPP and their EvalPlus versions, LiveCodeBench, CodeElo, TACO, APPS,
// CodeContests, and the rows that RL trainers keep (verl's layout, and DeepCoder's).
//
// A file is JSON, an object a line or a list. What comes as parquet has the same
// columns: give its rows to Row.
//
// Prompts are plain texts, without a chat template. Where the published file has none,
// the text is ours.
package codefile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"exp/eval/grade/code"
	"exp/eval/task"
)

// Format is the layout of a file's rows.
type Format string

// The formats.
const (
	HumanEval     Format = "humaneval"     // task_id, prompt, entry_point, canonical_solution, test; also evalplus/humanevalplus
	MBPP          Format = "mbpp"          // task_id, text or prompt, code, test_list; also sanitized and evalplus/mbppplus
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

// Detect finds the format of a row by its columns; ok is false if it has none of ours.
func Detect(object []byte) (f Format, ok bool) {
	var columns map[string]json.RawMessage
	if json.Unmarshal(object, &columns) != nil {
		return "", false
	}
	return detect(columns)
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

// Open reads a file; an empty format is found by the columns of each row.
func Open(path string, f Format) ([]code.Problem, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err // names the path
	}
	defer file.Close() // only read: an error on closing loses nothing
	return Read(file, path, f)
}

// longestRow is the longest row that is read, in bytes; LiveCodeBench's reach tens of MB.
const longestRow = 512 << 20

// Read reads rows from r; name is the file's, for errors. A row that is broken is a
// *task.LineError with its line, or its place in the list.
func Read(r io.Reader, name string, f Format) ([]code.Problem, error) {
	var problems []code.Problem
	seen := make(map[string]int)
	add := func(object []byte, number int) error {
		p, err := Row(f, object, number)
		if err != nil {
			return &task.LineError{Path: name, Line: number, Err: err}
		}
		if first, ok := seen[p.ID]; ok {
			return &task.LineError{Path: name, Line: number, Err: fmt.Errorf("the id %s is that of row %d as well", p.ID, first)}
		}
		seen[p.ID] = number
		problems = append(problems, p)
		return nil
	}
	in := bufio.NewReaderSize(r, 1<<20)
	if begin, err := firstByte(in); err == nil && begin == '[' {
		err := readList(in, name, add)
		return problems, err
	}
	for number := 1; ; number++ {
		line, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, &task.LineError{Path: name, Line: number, Err: err}
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			if err := add(text, number); err != nil {
				return nil, err
			}
		}
		if err != nil {
			break
		}
	}
	if len(problems) == 0 {
		return nil, fmt.Errorf("%s: there are no problems in it", name)
	}
	return problems, nil
}

// firstByte skips white space and peeks.
func firstByte(in *bufio.Reader) (byte, error) {
	for {
		b, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		if b != ' ' && b != '\t' && b != '\r' && b != '\n' {
			return b, in.UnreadByte()
		}
	}
}

func readLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > longestRow {
			return nil, fmt.Errorf("the line is longer than %d MB", longestRow>>20)
		}
	}
}

// readList reads a JSON list of rows.
func readList(in io.Reader, name string, add func([]byte, int) error) error {
	d := json.NewDecoder(in)
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	number := 0
	for d.More() {
		number++
		var object json.RawMessage
		if err := d.Decode(&object); err != nil {
			return &task.LineError{Path: name, Line: number, Err: err}
		}
		if err := add(object, number); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("%s: the list does not end: %w", name, err)
	}
	if number == 0 {
		return fmt.Errorf("%s: there are no problems in it", name)
	}
	return nil
}

// Window keeps the problems that were published from one day to another, both as
// 2024-08-31 and both included; an empty bound is none. Problems without a date are left
// out.
func Window(problems []code.Problem, from, to string) (kept []code.Problem) {
	for _, p := range problems {
		if p.Date != "" && p.Date >= from && (to == "" || p.Date <= to) {
			kept = append(kept, p)
		}
	}
	return kept
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
