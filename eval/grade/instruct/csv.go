package instruct

import "strings"

// longestField is the length from which Python's csv refuses a field, in characters.
const longestField = 131072

// csvReader reads rows as Python's csv does: a quotation mark within a bare field is text, and so is what follows a
// closing one.
type csvReader struct {
	delimiter rune
	rows      [][]string
	row       []string
	field     []rune
	state     csvState
}

type csvState int

const (
	beginsRecord csvState = iota
	beginsField
	inField
	inQuotes
	closesQuotes // or doubles the mark
	endsLine
)

// readCSV returns the rows; a blank line is one without fields. ok is false where Python's csv gives an error.
func readCSV(text string, delimiter rune) (rows [][]string, ok bool) {
	c := csvReader{delimiter: delimiter}
	for line := range strings.SplitAfterSeq(text, "\n") {
		if line == "" {
			break
		}
		for _, r := range line {
			if !c.read(r) {
				return nil, false
			}
		}
		c.endLine()
	}
	if c.state == inQuotes || len(c.field) > 0 {
		c.endField()
		c.endRecord()
	}
	return c.rows, true
}

func (c *csvReader) read(r rune) bool {
	newline := r == '\n' || r == '\r'
	switch c.state {
	case beginsRecord, beginsField:
		switch {
		case newline && c.state == beginsRecord:
			c.state = endsLine
		case r == '"':
			c.state = inQuotes
		default:
			return c.plain(r)
		}
	case inField:
		return c.plain(r)
	case inQuotes:
		if r != '"' {
			return c.add(r)
		}
		c.state = closesQuotes
	case closesQuotes:
		if r != '"' {
			return c.plain(r)
		}
		c.state = inQuotes
		return c.add(r)
	case endsLine:
		return newline
	}
	return true
}

// plain reads a character outside quotation marks.
func (c *csvReader) plain(r rune) bool {
	switch r {
	case '\n', '\r':
		c.endField()
		c.state = endsLine
	case c.delimiter:
		c.endField()
		c.state = beginsField
	default:
		c.state = inField
		return c.add(r)
	}
	return true
}

func (c *csvReader) add(r rune) bool {
	c.field = append(c.field, r)
	return len(c.field) <= longestField
}

// endLine is called after each line; within quotation marks the record goes on.
func (c *csvReader) endLine() {
	switch c.state {
	case beginsField, inField, closesQuotes:
		c.endField()
	case inQuotes:
		return
	}
	c.endRecord()
}

func (c *csvReader) endField() {
	c.row, c.field = append(c.row, string(c.field)), nil
}

func (c *csvReader) endRecord() {
	c.rows, c.row, c.state = append(c.rows, c.row), nil, beginsRecord
}
