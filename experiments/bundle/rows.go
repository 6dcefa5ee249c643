package bundle

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"exp/experiments/store"
)

// A row is a JSON list: null, numbers, text; blobs as hexadecimal digits; infinite
// numbers as "Inf" and "-Inf"; text that is not UTF-8 as {"hex": "…"}.

// notText holds text that JSON cannot.
type notText struct {
	Hex string `json:"hex"`
}

// appendRow appends a row and the end of the line.
func appendRow(dst []byte, row []any) ([]byte, error) {
	dst = append(dst, '[')
	for i, v := range row {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendValue(dst, v); err != nil {
			return nil, err
		}
	}
	return append(dst, ']', '\n'), nil
}

func appendValue(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case float64:
		if math.IsInf(v, 0) {
			return append(strconv.AppendFloat(append(dst, '"'), v, 'g', -1, 64), '"'), nil
		}
		return strconv.AppendFloat(dst, v, 'g', -1, 64), nil
	case []byte:
		return append(hex.AppendEncode(append(dst, '"'), v), '"'), nil
	case string:
		if !utf8.ValidString(v) {
			return appendJSON(dst, notText{hex.EncodeToString([]byte(v))})
		}
		if ascii(v) {
			return append(append(append(dst, '"'), v...), '"'), nil
		}
		return appendJSON(dst, v)
	}
	return nil, errors.New("a column holds neither a number nor text nor bytes")
}

// ascii reports whether a text is its own JSON between quotes. Most are, and a JSON encoder takes ten
// times as long for them.
func ascii(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '\\' || c == '"' {
			return false
		}
	}
	return true
}

func appendJSON(dst []byte, v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte{'\n'})...), err
}

// rowReader reads the lines of a table.
type rowReader struct {
	columns []store.Column
	lines   *bufio.Reader
	values  []json.RawMessage
	row     []any
}

// newRowReader reads the first line, the columns.
func newRowReader(r io.Reader) (*rowReader, error) {
	rd := &rowReader{lines: bufio.NewReaderSize(r, 1<<16)}
	line, err := rd.lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &rd.columns)
	}
	if err != nil {
		return nil, corrupt("the columns: %v", err)
	}
	return rd, nil
}

// next returns the next row, valid until the following call, or io.EOF.
func (rd *rowReader) next() ([]any, error) {
	line, err := rd.line()
	if err == io.EOF && len(line) == 0 {
		return nil, io.EOF
	}
	if err != nil {
		return nil, corrupt("a row ends early: %v", err)
	}
	if err = rd.split(line); err != nil {
		return nil, err
	}
	rd.row = rd.row[:0]
	for i, v := range rd.values {
		x, err := parseValue(v, rd.columns[i].Type)
		if err != nil {
			return nil, corrupt("column %s: %s: %v", rd.columns[i].Name, v, err)
		}
		rd.row = append(rd.row, x)
	}
	return rd.row, nil
}

// line reads a line of any length.
func (rd *rowReader) line() ([]byte, error) {
	line, err := rd.lines.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return line, err
	}
	long := bytes.Clone(line)
	rest, err := rd.lines.ReadBytes('\n')
	return append(long, rest...), err
}

// split splits the JSON list of a row. It splits rows of numbers and digests, the
// majority, without a JSON parser, in a fifth of the time.
func (rd *rowReader) split(line []byte) error {
	body := bytes.TrimSuffix(bytes.TrimPrefix(line, []byte{'['}), []byte("]\n"))
	rd.values = rd.values[:0]
	if bytes.ContainsAny(body, "\\{[") || len(body)+3 != len(line) {
		rd.values = nil // the parser would write into the old values, which may be parts of this line by now
		if err := json.Unmarshal(line, &rd.values); err != nil {
			return corrupt("a row: %v", err)
		}
	} else {
		quoted, start := false, 0
		for i, c := range body {
			switch {
			case c == '"':
				quoted = !quoted
			case c == ',' && !quoted:
				rd.values = append(rd.values, json.RawMessage(body[start:i]))
				start = i + 1
			}
		}
		rd.values = append(rd.values, json.RawMessage(body[start:]))
	}
	if len(rd.values) != len(rd.columns) {
		return corrupt("a row of %d values, not %d", len(rd.values), len(rd.columns))
	}
	return nil
}

// plain reports whether the text between two quotes stands for itself.
func plain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c == '\\' || c == '"' {
			return false
		}
	}
	return utf8.Valid(text)
}

// parseValue reads a value of a column with an SQLite type.
func parseValue(text json.RawMessage, kind string) (any, error) {
	if string(text) == "null" {
		return nil, nil
	}
	inner, quoted := text, false
	if n := len(text); n >= 2 && text[0] == '"' && text[n-1] == '"' {
		inner, quoted = text[1:n-1], true
	}
	switch kind {
	case "INTEGER":
		return strconv.ParseInt(string(text), 10, 64)
	case "REAL":
		v, err := strconv.ParseFloat(string(inner), 64)
		if err == nil && quoted != math.IsInf(v, 0) || math.IsNaN(v) {
			err = errors.New("not a number")
		}
		return v, err
	case "BLOB":
		if !quoted {
			return nil, errors.New("not bytes")
		}
		return hex.DecodeString(string(inner))
	case "TEXT":
		if len(text) > 0 && text[0] == '{' {
			var odd notText
			if err := json.Unmarshal(text, &odd); err != nil {
				return nil, err
			}
			b, err := hex.DecodeString(odd.Hex)
			return string(b), err
		}
		if quoted && plain(inner) {
			return string(inner), nil
		}
		var s string
		err := json.Unmarshal(text, &s)
		return s, err
	}
	return nil, errors.New("a column of type " + kind)
}
