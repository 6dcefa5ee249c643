package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/experiments/spelling"
)

// Format is a value of --output.
type Format string

// The formats. table, wide and md are for people and may change at any time; the
// others are a contract.
const (
	FormatTable Format = "table" // the default
	FormatWide  Format = "wide"  // with all columns
	FormatJSON  Format = "json"
	FormatJSONL Format = "jsonl" // one object a line, without envelope
	FormatCSV   Format = "csv"
	FormatTSV   Format = "tsv"
	FormatMD    Format = "md"
	FormatYAML  Format = "yaml"
	FormatName  Format = "name" // ids only

	FormatDot   Format = "dot"   // Graphviz; only of exp graph
	FormatLaTeX Format = "latex" // a table; only of exp compare
	FormatTypst Format = "typst" // the same
)

// Formats are the formats of every command. FormatDot, FormatLaTeX and FormatTypst are not among
// them.
var Formats = []Format{
	FormatTable, FormatWide, FormatJSON, FormatJSONL, FormatCSV, FormatTSV, FormatMD, FormatYAML, FormatName,
}

// Column describes one field of a result in every format. Only Key is required.
type Column struct {
	Key    string // snake_case; the name in JSON, CSV and --fields
	Title  string // heading for people; empty: Key with spaces
	Wide   bool   // not in the narrow table
	ID     bool   // what -o name prints
	Digits int    // digits after the point of floats, for people; 0: about three that matter
	Rank   int    // as in term.Column: which columns shrink on a narrow terminal
	Min    int
	Wrap   bool
	// as in term.Column: left out on a narrow terminal, unless --fields or -o wide asks for it
	Drop int

	// Text formats a value for people. Style gives it a colour; the text must say the
	// same.
	Text  func(v any) string
	Style func(v any) term.Style
}

// HexID is a digest or another long id in hexadecimal. People see the first 8 digits,
// programs all.
type HexID string

// Table is a result with the same fields in every row. A cell is nil (absent), a bool,
// string, HexID, integer, float, time.Time, time.Duration, or a slice, map or struct
// of these.
type Table struct {
	Schema  string // "exp.ls/1"; fields are only ever added within a version
	Columns []Column
	Rows    [][]any // each [len(Columns)]
}

// Document is a result with parts. Human writes it for people; programs get Data, a struct
// with json tags or a map.
type Document struct {
	Schema string
	Data   any
	Human  func(w io.Writer) error
}

// Output prints results to stdout in the format that the user asked for.
type Output struct {
	W        io.Writer
	Stream   term.Stream
	Format   Format
	Fields   []string // --fields; nil: the format's own choice
	Header   bool
	zone     *time.Location // for people; nil: local. Programs get UTC
	Store    string         // path of the store, for the envelope; may be empty
	warnings []string       // for the envelope

	// note prints a remark on a table below it; nil drops the remark
	note func(format string, args ...any)
}

// HasEnvelope reports whether results are wrapped in schema, store and warnings.
func (o *Output) HasEnvelope() bool {
	return o.Format == FormatJSON || o.Format == FormatYAML
}

// ForPeople reports whether the result is for people, who may get it cut, rounded and
// shortened.
func (o *Output) ForPeople() bool {
	return o.Format == FormatTable || o.Format == FormatWide || o.Format == FormatMD
}

// PrintTable prints t in the user's format.
func (o *Output) PrintTable(t Table) error {
	picked, err := o.pick(t)
	if err != nil {
		return err
	}
	switch o.Format {
	case FormatJSON, FormatYAML:
		return o.printEnvelope(t.Schema, objects(picked))
	case FormatJSONL:
		return o.printLines(objects(picked))
	case FormatCSV:
		return o.printCSV(picked)
	case FormatTSV:
		return o.printTSV(picked)
	case FormatMD:
		return o.printMarkdown(picked)
	case FormatName:
		return o.printNames(t)
	}
	return o.PrintAligned(picked)
}

// PrintDocument prints d in the user's format.
func (o *Output) PrintDocument(d Document) error {
	data := TreeOf(d.Data)
	if members, ok := data.(Object); ok && o.Fields != nil {
		var err error
		if data, err = o.pickMembers(members); err != nil {
			return err
		}
	}
	switch o.Format {
	case FormatJSON, FormatYAML:
		return o.printEnvelope(d.Schema, data)
	case FormatJSONL:
		return o.printLines([]any{data})
	case FormatTable, FormatWide:
		if o.Fields == nil {
			return d.Human(o.W)
		}
	}
	members, ok := data.(Object)
	if !ok || o.Format == FormatName {
		return Usagef("this result has no format %q; use table, json or yaml", o.Format)
	}
	return o.PrintTable(asTable(d.Schema, members))
}

// PrintText prints a document that people read as a text; format is as in fmt.Fprintf.
func (o *Output) PrintText(schema string, data any, format string, args ...any) error {
	return o.PrintDocument(Document{Schema: schema, Data: data, Human: func(w io.Writer) error {
		_, err := fmt.Fprintf(w, format, args...)
		return err
	}})
}

// asTable makes a document a table of one row.
func asTable(schema string, members Object) Table {
	t := Table{Schema: schema, Rows: make([][]any, 1)}
	for _, m := range members {
		t.Columns = append(t.Columns, Column{Key: m.Key})
		t.Rows[0] = append(t.Rows[0], m.Value)
	}
	return t
}

// pick returns t with the columns that the user or the format selects.
func (o *Output) pick(t Table) (Table, error) {
	var keep []int
	switch {
	case o.Fields != nil:
		var known []string
		for _, c := range t.Columns {
			known = append(known, c.Key)
		}
		var err error
		if keep, err = pickKeys(o.Fields, known); err != nil {
			return Table{}, err
		}
	default:
		for i, c := range t.Columns {
			if o.Shows(c) {
				keep = append(keep, i)
			}
		}
	}
	picked := Table{Schema: t.Schema, Rows: make([][]any, len(t.Rows))}
	cells := make([]any, len(t.Rows)*len(keep))
	for _, i := range keep {
		picked.Columns = append(picked.Columns, t.Columns[i])
	}
	for r, row := range t.Rows {
		if len(row) != len(t.Columns) {
			panic("output: row and columns differ in length")
		}
		picked.Rows[r], cells = cells[:len(keep):len(keep)], cells[len(keep):]
		for k, i := range keep {
			picked.Rows[r][k] = row[i]
		}
	}
	return picked, nil
}

// Shows reports whether the format has column c.
func (o *Output) Shows(c Column) bool {
	return o.Fields != nil || !c.Wide || o.Format != FormatTable && o.Format != FormatMD
}

func (o *Output) pickMembers(members Object) (Object, error) {
	var known []string
	for _, m := range members {
		known = append(known, m.Key)
	}
	keep, err := pickKeys(o.Fields, known)
	if err != nil {
		return nil, err
	}
	var picked Object
	for _, i := range keep {
		picked = append(picked, members[i])
	}
	return picked, nil
}

// pickKeys finds the indices of the wanted keys.
func pickKeys(wanted, known []string) ([]int, error) {
	var places []int
	for _, key := range wanted {
		i := slices.Index(known, strings.TrimSpace(key))
		if i < 0 {
			err := Usagef("--fields: no field %q; known are %s", key, strings.Join(known, ", "))
			if s := spelling.Nearest(key, known); s != "" {
				err.Help = "did you mean " + s + "?"
			}
			return nil, err
		}
		places = append(places, i)
	}
	return places, nil
}

// Heading is the heading of the column for people.
func (c Column) Heading() string {
	return cmp.Or(c.Title, strings.ReplaceAll(c.Key, "_", " "))
}

// Text formats a value of column c for people.
func (o *Output) Text(c Column, v any) string {
	if c.Text != nil {
		return c.Text(v)
	}
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case HexID:
		if o.Format == FormatWide {
			return string(v)
		}
		return string(v[:min(len(v), 8)])
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case float64:
		return c.float(v)
	case float32:
		return c.float(float64(v))
	case time.Duration:
		return quantity.Duration(v)
	case time.Time:
		return o.LocalTime(v)
	case []string:
		return strings.Join(v, ", ")
	}
	return MachineText(TreeOf(v))
}

func (c Column) float(v float64) string {
	if c.Digits > 0 {
		return quantity.Fixed(v, c.Digits)
	}
	return quantity.Short(v)
}

// LocalTime formats a time for people; "" for the zero time.
func (o *Output) LocalTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	if o.zone != nil {
		t = t.In(o.zone)
	} else {
		t = t.Local()
	}
	return t.Format("2006-01-02 15:04:05")
}

// isNumber reports whether v is aligned right.
func isNumber(v any) bool {
	switch v.(type) {
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64, Number, time.Duration:
		return true
	}
	return false
}

// MachineText is a tree as programs read it, without quotes: the text of CSV cells.
// Nested values are JSON.
func MachineText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case Number:
		return string(v)
	case Object, []any:
		return jsonText(v)
	}
	panic(fmt.Sprintf("output: a tree has no %T", v))
}
