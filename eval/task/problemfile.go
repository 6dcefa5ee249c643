package task

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"exp/eval/rows"
	"exp/train/rollout"
)

// maxLine is the most bytes of a line in a problem file. maxReadLine is the same for tasks that read published files,
// where tests of programs and images may take tens of MB.
const (
	maxLine     = 16 << 20
	maxReadLine = 1 << 30
)

// LineError says which line of a problem file is broken.
type LineError struct {
	Path string
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// ReadFile reads all problems of a file; see Source.Read.
func ReadFile(t Task, path string) ([]rollout.Problem, error) {
	problems, _, err := Source{Path: path}.Read(t)
	return problems, err
}

// problemLines are the problems of one or several files.
type problemLines struct {
	task     Task
	problems []rollout.Problem
	seen     map[string]bool // their ids
	rate     string          // Source.Rate
	rates    rates           // of the problems
}

// readFile reads a file in any form that package rows reads. Errors are system errors or *rows.Error.
func (x *problemLines) readFile(path string) error {
	for row, err := range rows.Read(path) {
		if err != nil {
			return err
		}
		text, err := row.JSON()
		if err != nil {
			return err
		}
		if err := x.add(text); err != nil {
			return &rows.Error{Where: row.Where, Err: err}
		}
		if x.rate == "" {
			continue
		}
		if err := x.rates.add(row, x.rate); err != nil {
			return err
		}
	}
	return nil
}

// add reads the problem of a row.
func (x *problemLines) add(text []byte) error {
	p, stored, err := readRow(x.task, text)
	if err != nil {
		return err
	}
	if x.seen[p.ID] && stored {
		return fmt.Errorf("second problem with id %q", clip(p.ID))
	}
	for id, times := p.ID, 2; x.seen[p.ID]; times++ {
		p.ID = fmt.Sprintf("%s#%d", id, times)
	}
	x.seen[p.ID] = true
	x.problems = append(x.problems, p)
	return nil
}

// Read reads problems, one JSON object per line; name is the file's, for errors. Blank lines are skipped. A
// row with a "prompt" is a rollout.Problem as Write writes it; any other row, or one with verl's
// "reward_model", has the layout of the task's published files, if any (countdown: nums, target, solution).
// In published files a repeated problem gets
// the ID of the first with #2, #3 … appended; among stored problems equal IDs are an error. Errors in a
// line are *LineError, for the first bad line.
func Read(t Task, r io.Reader, name string) ([]rollout.Problem, error) {
	x := problemLines{task: t, seen: map[string]bool{}}
	err := x.read(r, name)
	if err != nil {
		return nil, err
	}
	return x.problems, nil
}

// read is Read; ids are different in all files.
func (x *problemLines) read(r io.Reader, name string) error {
	scanner := bufio.NewScanner(r)
	longest := maxLine
	if _, ok := x.task.(publishedTask); ok {
		longest = maxReadLine
	}
	scanner.Buffer(nil, longest)
	line := 0
	for scanner.Scan() {
		line++
		text := bytes.TrimSpace(scanner.Bytes())
		if len(text) == 0 {
			continue
		}
		if err := x.add(text); err != nil {
			return &LineError{name, line, err}
		}
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		return &LineError{name, line + 1, fmt.Errorf("longer than %d bytes", longest)}
	} else if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// rowParser is a task whose published files have one problem per line, in a layout of the task's.
type rowParser interface {
	parseRow(line []byte) (rollout.Problem, error)
}

// readRow reads one row; stored says that it is a problem written by Write.
func readRow(t Task, text []byte) (p rollout.Problem, stored bool, err error) {
	if !utf8.Valid(text) {
		return p, false, errors.New("not UTF-8")
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		return p, false, rowError(err)
	}
	_, stored = keys["prompt"]
	_, verl := keys["reward_model"]
	published, parses := t.(rowParser)
	switch {
	case parses && (verl || !stored):
		p, err = published.parseRow(text)
		return p, false, rowError(err)
	case !stored:
		return p, false, errors.New(`no "prompt"`)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, true, rowError(err)
	}
	switch {
	case p.ID == "":
		return p, true, errors.New(`no "id"`)
	case p.Prompt == "":
		return p, true, errors.New(`empty "prompt"`)
	}
	return p, true, t.check(&p)
}

// rowError rephrases errors of encoding/json in terms of the row.
func rowError(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON at byte %d: %w", syntax.Offset, err)
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("a JSON %s, not an object", kind.Value)
	case errors.As(err, &kind):
		return fmt.Errorf("%q is a JSON %s, not %s", kind.Field, kind.Value, kind.Type)
	}
	return err
}

// Write writes problems one per line, as Read expects them. Equal problems give equal bytes.
func Write(w io.Writer, problems []rollout.Problem) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range problems {
		if err := enc.Encode(&problems[i]); err != nil {
			return err
		}
	}
	return nil
}
