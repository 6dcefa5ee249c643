package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"exp/cmd/exp/term"
	"exp/experiments/quantity"
)

// format is a value of --output.
type format string

// The formats. table, wide and md are for people and may change at any time;
// the others are a contract.
const (
	formatTable format = "table" // the default
	formatWide  format = "wide"  // with all columns
	formatJSON  format = "json"
	formatJSONL format = "jsonl" // one object a line, without envelope
	formatCSV   format = "csv"
	formatTSV   format = "tsv"
	formatMD    format = "md"
	formatYAML  format = "yaml"
	formatName  format = "name" // ids only

	formatDot format = "dot" // Graphviz; only of exp graph
)

var formats = []format{
	formatTable, formatWide, formatJSON, formatJSONL, formatCSV, formatTSV, formatMD, formatYAML, formatName,
}

// column describes one field of a result in every format. The zero value of
// everything but Key is a good default.
type column struct {
	Key    string // snake_case; the name in JSON, CSV and --fields
	Title  string // heading for people; empty: Key with spaces
	Wide   bool   // not in the narrow table
	ID     bool   // what -o name prints
	Digits int    // digits after the point of floats, for people; 0: about three that matter
	Rank   int    // as in term.Column: who gives way on a narrow terminal
	Min    int
	Wrap   bool
	Drop   int // as in term.Column: what is left out on a narrow terminal, but not of what --fields or -o wide asked for

	// Text overrides how a value reads for people. Style gives it a colour; the
	// text must say the same.
	Text  func(v any) string
	Style func(v any) term.Style
}

// hexID is a digest or another long id in hexadecimal. People see the first 8
// digits, programs all.
type hexID string

// table is a result with the same fields in every row. Cells are nil (absent),
// bool, string, hexID, any integer or float, time.Time, time.Duration, or a
// slice, map or struct of such.
type table struct {
	Schema  string // "exp.ls/1"; fields are only ever added within a version
	Columns []column
	Rows    [][]any // each [len(Columns)]
}

// document is a result that is one thing with parts. Human writes it for people;
// programs get Data, a struct or map whose fields have json tags.
type document struct {
	Schema string
	Data   any
	Human  func(w io.Writer) error
}

// output prints results to stdout in the format that the user asked for.
type output struct {
	w        io.Writer
	stream   term.Stream
	format   format
	fields   []string // --fields; nil: the format's own choice
	header   bool
	zone     *time.Location // for people; nil: local. Programs get UTC
	store    string         // path of the store, for the envelope; may be empty
	warnings []string       // for the envelope
}

// hasEnvelope tells whether results are wrapped in schema, store and warnings.
func (o *output) hasEnvelope() bool {
	return o.format == formatJSON || o.format == formatYAML
}

// forPeople tells whether a person reads the result: then it may be cut, rounded
// and shortened.
func (o *output) forPeople() bool {
	return o.format == formatTable || o.format == formatWide || o.format == formatMD
}

// printTable prints t.
func (o *output) printTable(t table) error {
	picked, err := o.pick(t)
	if err != nil {
		return err
	}
	switch o.format {
	case formatJSON, formatYAML:
		return o.printEnvelope(t.Schema, objects(picked))
	case formatJSONL:
		return o.printLines(objects(picked))
	case formatCSV:
		return o.printCSV(picked)
	case formatTSV:
		return o.printTSV(picked)
	case formatMD:
		return o.printMarkdown(picked)
	case formatName:
		return o.printNames(t)
	}
	return o.printAligned(picked)
}

// printDocument prints d.
func (o *output) printDocument(d document) error {
	data := treeOf(d.Data)
	if members, ok := data.(object); ok && o.fields != nil {
		var err error
		if data, err = o.pickMembers(members); err != nil {
			return err
		}
	}
	switch o.format {
	case formatJSON, formatYAML:
		return o.printEnvelope(d.Schema, data)
	case formatJSONL:
		return o.printLines([]any{data})
	case formatTable, formatWide:
		if o.fields == nil {
			return d.Human(o.w)
		}
	}
	members, ok := data.(object)
	if !ok || o.format == formatName {
		return usagef("this result has no form %q; use table, json or yaml", o.format)
	}
	return o.printTable(asTable(d.Schema, members))
}

// asTable makes a document a table of one row.
func asTable(schema string, members object) table {
	t := table{Schema: schema, Rows: make([][]any, 1)}
	for _, m := range members {
		t.Columns = append(t.Columns, column{Key: m.key})
		t.Rows[0] = append(t.Rows[0], m.value)
	}
	return t
}

// pick returns t with the columns that the user or the format wants.
func (o *output) pick(t table) (table, error) {
	var keep []int
	switch {
	case o.fields != nil:
		var known []string
		for _, c := range t.Columns {
			known = append(known, c.Key)
		}
		var err error
		if keep, err = pickKeys(o.fields, known); err != nil {
			return table{}, err
		}
	default:
		for i, c := range t.Columns {
			if o.shows(c) {
				keep = append(keep, i)
			}
		}
	}
	picked := table{Schema: t.Schema, Rows: make([][]any, len(t.Rows))}
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

// shows reports whether a column is printed of which --fields says nothing.
func (o *output) shows(c column) bool {
	return o.fields != nil || !c.Wide || o.format != formatTable && o.format != formatMD
}

func (o *output) pickMembers(members object) (object, error) {
	var known []string
	for _, m := range members {
		known = append(known, m.key)
	}
	keep, err := pickKeys(o.fields, known)
	if err != nil {
		return nil, err
	}
	var picked object
	for _, i := range keep {
		picked = append(picked, members[i])
	}
	return picked, nil
}

// pickKeys finds the places of the wanted keys among the known ones.
func pickKeys(wanted, known []string) ([]int, error) {
	var places []int
	for _, key := range wanted {
		i := slices.Index(known, strings.TrimSpace(key))
		if i < 0 {
			err := usagef("--fields: no field %q; there are %s", key, strings.Join(known, ", "))
			if s := nearest(key, known); s != "" {
				err.Help = "did you mean " + s + "?"
			}
			return nil, err
		}
		places = append(places, i)
	}
	return places, nil
}

// title is the heading of a column.
func (c column) title() string {
	return or(c.Title, strings.ReplaceAll(c.Key, "_", " "))
}

// text is how a value reads for people.
func (o *output) text(c column, v any) string {
	if c.Text != nil {
		return c.Text(v)
	}
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case hexID:
		if o.format == formatWide {
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
		return o.localTime(v)
	case []string:
		return strings.Join(v, ", ")
	}
	return machineText(treeOf(v))
}

func (c column) float(v float64) string {
	if c.Digits > 0 {
		return quantity.Fixed(v, c.Digits)
	}
	return quantity.Short(v)
}

func (o *output) localTime(t time.Time) string {
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

// isNumber tells whether people expect v aligned to the right.
func isNumber(v any) bool {
	switch v.(type) {
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64, number, time.Duration:
		return true
	}
	return false
}

// machineText is a value as programs read it, without quotes: the text of CSV
// cells. Nested values are JSON.
func machineText(v any) string {
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
	case number:
		return string(v)
	case object, []any:
		return jsonText(v)
	}
	panic(fmt.Sprintf("output: a tree has no %T", v))
}
