package task

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"exp/train/rollout"
)

// maxLine is the longest line, in bytes, that a problem file may have; maxCodeLine that
// of programs' problems, whose tests may have tens of MB.
const (
	maxLine     = 16 << 20
	maxCodeLine = 1 << 30
)

// LineError says which line of a problem file is broken.
type LineError struct {
	Path string
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// ReadFile reads the problems of a JSONL file; see Read. Those of mathematics and of code
// may be in any form that package rows reads, and come once, however often they are in
// the file.
func ReadFile(t Task, path string) ([]rollout.Problem, error) {
	if any, ok := t.(interface {
		readProblems(path string) ([]rollout.Problem, error)
	}); ok {
		return any.readProblems(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err // names the path
	}
	defer f.Close() // only read: an error on closing loses nothing
	return Read(t, f, path)
}

// Read reads problems, one JSON object a line; name is the file's, for errors.
// Blank lines are skipped. A row with a "prompt" is a rollout.Problem as Write
// writes it; any other has the layout of the task's published files, if there is one
// (countdown: nums, target, solution). There a problem that comes again gets the ID
// of the first with #2, #3 …; among stored problems two equal IDs are an error. Every
// error of a line is a *LineError for the first line that has one.
func Read(t Task, r io.Reader, name string) ([]rollout.Problem, error) {
	var problems []rollout.Problem
	seen := make(map[string]bool) // ids
	scanner := bufio.NewScanner(r)
	longest := maxLine
	if _, ok := t.(*codeTask); ok {
		longest = maxCodeLine
	}
	scanner.Buffer(nil, longest)
	line := 0
	for scanner.Scan() {
		line++
		text := bytes.TrimSpace(scanner.Bytes())
		if len(text) == 0 {
			continue
		}
		p, stored, err := readRow(t, text)
		if err != nil {
			return nil, &LineError{name, line, err}
		}
		if seen[p.ID] && stored {
			return nil, &LineError{name, line, fmt.Errorf("a second problem with the id %q", clip(p.ID))}
		}
		for id, times := p.ID, 2; seen[p.ID]; times++ {
			p.ID = fmt.Sprintf("%s#%d", id, times)
		}
		seen[p.ID] = true
		problems = append(problems, p)
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, &LineError{name, line + 1, fmt.Errorf("longer than %d bytes", longest)}
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return problems, nil
}

// readRow reads one row, and says whether it is a stored problem.
func readRow(t Task, text []byte) (p rollout.Problem, stored bool, err error) {
	if !utf8.Valid(text) {
		return p, false, errors.New("not UTF-8")
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		return p, false, rowError(err)
	}
	if _, stored = keys["prompt"]; !stored {
		p, err = t.parseRow(text)
		return p, false, rowError(err)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, true, rowError(err)
	}
	switch {
	case p.ID == "":
		return p, true, errors.New(`no "id"`)
	case p.Prompt == "":
		return p, true, errors.New(`an empty "prompt"`)
	}
	return p, true, t.check(&p)
}

// rowError puts what encoding/json says into words about the row.
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

// Write writes problems one a line, as Read reads them: equal problems give equal
// bytes.
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
