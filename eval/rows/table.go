package rows

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// separator returns what separates the cells of a table, as the name of its file says: no first bytes tell
// a table from a text. 0 is any other file.
func separator(path string) rune {
	name := strings.ToLower(path)
	for _, packed := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, packed)
	}
	return map[string]rune{".csv": ',', ".tsv": '\t'}[filepath.Ext(name)]
}

// readTable yields the rows of a table (RFC 4180) whose first line names the columns. Cells are texts, which
// Row.Number reads as numbers, and an empty one is null, as pandas and the Hugging Face hub read it. A column
// without a name, such as the row numbers that pandas writes, is left out.
func readTable(r io.Reader, separator rune, path string, take takeRow, yield func(Row, error) bool) {
	table := csv.NewReader(r)
	table.Comma = separator
	place := func() string {
		line, _ := table.FieldPos(0)
		return fmt.Sprintf("%s:%d", path, line)
	}
	var names []string
	var from *order
	for {
		cells, err := table.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		switch {
		case err != nil:
			yield(Row{}, tableError(path, err, len(cells), len(names)))
			return
		case !utf8.ValidString(strings.Join(cells, "")):
			yield(Row{}, &Error{Where: place(), Err: errors.New("not UTF-8")})
			return
		case names == nil:
			if names, from, err = columns(cells); err != nil {
				yield(Row{}, &Error{Where: place(), Err: err})
				return
			}
			continue
		}
		index, ok := take(func(to []byte) []byte { return appendCells(to, cells) })
		if !ok {
			continue
		}
		row := Row{Path: path, Where: place(), Index: index, Fields: map[string]any{}, order: from,
			cells: true}
		for i, name := range names {
			if row.Fields[name] = cells[i]; cells[i] == "" {
				row.Fields[name] = nil
			}
		}
		delete(row.Fields, "")
		if !yield(row, nil) {
			return
		}
	}
}

// columns returns the names in a table's first line, "" for a column to leave out.
func columns(cells []string) (names []string, from *order, err error) {
	from = &order{fields: map[string]*order{}}
	for i, name := range cells {
		if i == 0 {
			name = strings.TrimPrefix(name, "\ufeff")
		}
		name = strings.TrimSpace(name)
		if _, twice := from.fields[name]; twice {
			return nil, nil, fmt.Errorf("the first line names column %q twice", name)
		}
		if names = append(names, name); name != "" {
			from.names, from.fields[name] = append(from.names, name), nil
		}
	}
	if len(from.names) == 0 {
		return nil, nil, errors.New("the first line must name the columns")
	}
	return names, from, nil
}

// tableError places an error of package csv in a table of some columns.
func tableError(path string, err error, cells, columns int) error {
	var at *csv.ParseError
	if !errors.As(err, &at) {
		return &Error{Where: path, Err: err}
	}
	why := at.Err
	switch {
	case errors.Is(why, csv.ErrFieldCount):
		why = fmt.Errorf("%d cells, but the first line names %d columns", cells, columns)
	case errors.Is(why, csv.ErrQuote), errors.Is(why, csv.ErrBareQuote):
		why = errors.New(`a quote inside a cell, or a quoted cell without its end; quote the whole cell and double ` +
			`the quotes in it: "say ""yes"""`)
	}
	return &Error{Where: fmt.Sprintf("%s:%d", path, at.StartLine), Err: why}
}

// appendCells appends what equal rows of a table have in common.
func appendCells(to []byte, cells []string) []byte {
	for _, cell := range cells {
		to = append(strconv.AppendInt(to, int64(len(cell)), 10), ' ')
		to = append(to, cell...)
	}
	return to
}
