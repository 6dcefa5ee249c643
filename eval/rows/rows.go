// Package rows reads data files row by row: JSON lines, a JSON array, one JSON object, parquet, or tables of
// cells in .csv and .tsv; texts plain or compressed by gzip or zstd. The first bytes tell the format, not
// the name, but for tables.
//
// A row is a tree of nil, bool, json.Number, string, []any and map[string]any. Fields are named by paths
// such as "reward_model.ground_truth". Every error names the file, the line or row, and the field. Packages
// layout and exchange interpret the rows.
package rows

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Row is one row of a file.
type Row struct {
	Path   string // of the file, as given
	Where  string // "problems.jsonl:3", "problems.parquet: row 3"; both count from 1
	Index  int    // of the row, from 0
	Fields map[string]any
	// Kept is called by a reader of problems that adds the row's to its list; nil if nobody asks.
	Kept func()

	text  []byte // the row as JSON; nil for other formats
	order *order // of the fields of objects; nil: sorted
	cells bool   // of a table: fields are texts, also numbers
}

// Error is an error at a place in a file.
type Error struct {
	Where string // as in Row
	Field string // path of the field; empty: the whole row
	Err   error
}

func (e *Error) Error() string {
	if e.Field == "" {
		return e.Where + ": " + e.Err.Error()
	}
	return fmt.Sprintf("%s: field %q: %v", e.Where, e.Field, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// maxLine bounds a line, so that a file without newlines is rejected before it fills the memory. Rows of
// code benchmarks reach about 10 MB.
const maxLine = 1 << 30

// Files returns the path of a file or, if it does not exist, the files that it matches as a pattern
// (path/filepath.Match), sorted. Without any, it returns the error for the missing file.
func Files(path string) ([]string, error) {
	_, err := os.Stat(path)
	if err == nil {
		return []string{path}, nil
	}
	if list, bad := filepath.Glob(path); bad == nil && len(list) > 0 {
		return list, nil // sorted
	}
	return nil, err
}

// AllFiles is Files of each path, one after the other.
func AllFiles(paths []string) (all []string, err error) {
	for _, path := range paths {
		list, err := Files(path)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// Read yields the rows of a file, or of all files that a pattern matches, one after the other: see Files.
// Rows are counted through. Read stops after an error, which is a system error or an *Error. A file without
// rows yields none.
func Read(path string) iter.Seq2[Row, error] { return (&Reader{Paths: []string{path}}).Rows() }

// All reads all rows of a file.
func All(path string) ([]Row, error) {
	var all []Row
	for row, err := range Read(path) {
		if err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, nil
}

// readJSON reads JSON lines, or one value that spans lines.
func readJSON(r *bufio.Reader, path string, take takeRow, yield func(Row, error) bool) {
	fail := func(where string, err error) { yield(Row{}, &Error{Where: where, Err: err}) }
	line, index := 0, 0
	for {
		text, err := readLine(r)
		line++
		where := fmt.Sprintf("%s:%d", path, line)
		if err != nil && err != io.EOF {
			fail(where, err)
			return
		}
		trimmed := bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))
		if len(trimmed) > 0 {
			if index == 0 && (trimmed[0] == '[' || !json.Valid(trimmed) && err == nil) {
				readValue(io.MultiReader(bytes.NewReader(trimmed), r), path, where, take, yield)
				return
			}
			if i, ok := take(textOf(trimmed)); ok {
				fields, bad := object(trimmed)
				if bad != nil {
					fail(where, bad)
					return
				}
				if !yield(Row{Path: path, Where: where, Index: i, Fields: fields, text: trimmed}, nil) {
					return
				}
			}
			index++
		}
		if err == io.EOF {
			return
		}
	}
}

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if err != bufio.ErrBufferFull {
			return line, err
		}
		if len(line) > maxLine {
			return nil, fmt.Errorf("line longer than %d bytes", maxLine)
		}
	}
}

// readValue reads a file that is one JSON value: an array of rows, or one row. where is the place of its
// first line.
func readValue(r io.Reader, path, where string, take takeRow, yield func(Row, error) bool) {
	fail := func(where string, err error) { yield(Row{}, &Error{Where: where, Err: err}) }
	data, err := io.ReadAll(r)
	if err != nil {
		fail(path, err)
		return
	}
	list, many, err := items(data)
	if err != nil {
		fail(where, err)
		return
	}
	for i, item := range list {
		where := path
		if many {
			where = fmt.Sprintf("%s: item %d", path, i+1)
		}
		index, ok := take(textOf(item))
		if !ok {
			continue
		}
		fields, err := object(item)
		if err != nil {
			fail(where, err)
			return
		}
		if !yield(Row{Path: path, Where: where, Index: index, Fields: fields, text: item}, nil) {
			return
		}
	}
}

// items returns the elements of an array, or the value itself if it is not an array.
func items(data []byte) (list []json.RawMessage, many bool, err error) {
	if data[0] != '[' {
		if _, err := value(data); err != nil {
			line, _, _ := bytes.Cut(data, []byte("\n"))
			err = fmt.Errorf("%w (neither this line nor the whole file is a JSON value)", err)
			return nil, false, misread(err, line)
		}
		return []json.RawMessage{data}, false, nil
	}
	if !utf8.Valid(data) {
		return nil, true, notUTF8(data)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&list); err != nil {
		return nil, true, notJSON(err, data)
	}
	return list, true, after(data, d.InputOffset())
}

func object(text []byte) (map[string]any, error) {
	v, err := value(text)
	if err != nil {
		return nil, err
	}
	fields, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s, not an object", kind(v))
	}
	return fields, nil
}

func value(text []byte) (v any, err error) {
	if !utf8.Valid(text) {
		return nil, notUTF8(text)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, notJSON(err, text)
	}
	return v, after(text, d.InputOffset())
}

// notJSON words the error of a text that cannot be read as JSON.
func notJSON(err error, text []byte) error {
	if err == io.ErrUnexpectedEOF {
		err = errors.New("text ends inside a value")
	}
	var at *json.SyntaxError
	if errors.As(err, &at) && 0 < at.Offset && at.Offset <= int64(len(text)) {
		for _, word := range []string{"NaN", "Infinity"} { // as Python writes them
			if bytes.HasPrefix(text[at.Offset-1:], []byte(word)) {
				return fmt.Errorf("not JSON, which has no %s: write null", word)
			}
		}
		before := bytes.TrimRight(text[:at.Offset-1], " \t\r\n")
		if c := text[at.Offset-1]; (c == ']' || c == '}') && bytes.HasSuffix(before, []byte(",")) {
			return fmt.Errorf("not JSON: a comma stands before the last %c; remove it", c)
		}
	}
	return fmt.Errorf("not JSON: %w", err)
}

// notUTF8 is the error for a text that is not UTF-8.
func notUTF8(text []byte) error {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return errors.New("UTF-16, not UTF-8: save it again, or iconv -f UTF-16 -t UTF-8")
	}
	return errors.New("not UTF-8")
}

// after returns an error if anything follows a value.
func after(text []byte, end int64) error {
	if rest := bytes.TrimSpace(text[end:]); len(rest) > 0 {
		if rest[0] == ',' {
			return errors.New("not JSON: a comma follows the value; lines of JSON have none between them, only " +
				"the items of an array in [ ]")
		}
		return fmt.Errorf("not JSON: %q follows the value", clip(string(rest)))
	}
	return nil
}

// clip shortens a text for an error.
func clip(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
