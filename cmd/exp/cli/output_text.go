package cli

import (
	"bufio"
	"encoding/csv"
	"strings"

	"exp/cmd/exp/term"
)

// PrintAligned prints t for people, whatever the format. A note names the columns that a narrow terminal has no room
// for.
func (o *Output) PrintAligned(t Table) error {
	out := term.Table{NoHeader: !o.Header, Rows: make([][]term.Cell, 0, len(t.Rows))}
	for i, c := range t.Columns {
		out.Columns = append(out.Columns, term.Column{
			Title: c.Heading(), Right: o.right(t, i), Rank: c.Rank, Min: c.Min, Wrap: c.Wrap, Drop: c.Drop,
		})
		if o.Fields != nil || o.Format != FormatTable {
			out.Columns[i].Drop = 0
		}
	}
	all := make([]term.Cell, len(t.Rows)*len(t.Columns))
	for _, row := range t.Rows {
		var cells []term.Cell
		cells, all = all[:len(row):len(row)], all[len(row):]
		for i, v := range row {
			cells[i].Text = o.Text(t.Columns[i], v)
			if style := t.Columns[i].Style; style != nil {
				cells[i].Style = style(v)
			}
		}
		out.Rows = append(out.Rows, cells)
	}
	layout := o.Stream.Layout()
	narrow, leftOut := out.Narrowed(layout)
	if err := narrow.Write(o.W, layout); err != nil {
		return err
	}
	if len(leftOut) > 0 && o.note != nil {
		o.note("no room for %s; -o wide shows all columns", strings.Join(leftOut, ", "))
	}
	return nil
}

// right reports whether a column holds only numbers.
func (o *Output) right(t Table, i int) bool {
	numbers := 0
	for _, row := range t.Rows {
		switch {
		case row[i] == nil:
		case isNumber(row[i]):
			numbers++
		default:
			return false
		}
	}
	return numbers > 0
}

// printMarkdown prints a Markdown table.
func (o *Output) printMarkdown(t Table) error {
	out := bufio.NewWriter(o.W)
	line := func(n int, cell func(i int) string) {
		for i := range n {
			out.WriteString("| " + cell(i) + " ")
		}
		out.WriteString("|\n")
	}
	if o.Header {
		line(len(t.Columns), func(i int) string { return markdownCell(t.Columns[i].Heading()) })
		line(len(t.Columns), func(i int) string {
			if o.right(t, i) {
				return "---:"
			}
			return "---"
		})
	}
	for _, row := range t.Rows {
		line(len(row), func(i int) string { return markdownCell(o.Text(t.Columns[i], row[i])) })
	}
	return out.Flush()
}

// markdownCell escapes a text for a cell.
func markdownCell(s string) string {
	s = term.CleanLines(s)
	return strings.NewReplacer(
		`\`, `\\`, "|", `\|`, "\n", "<br>", "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`,
	).Replace(s)
}

// printCSV prints all columns with RFC 4180 quoting; an absent value is empty.
func (o *Output) printCSV(t Table) error {
	out := csv.NewWriter(o.W)
	if o.Header {
		if err := out.Write(keys(t)); err != nil {
			return err
		}
	}
	for _, row := range t.Rows {
		if err := out.Write(machineTexts(row)); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// printTSV prints all columns; tab, newline, return and backslash inside a value
// are \t, \n, \r and \\.
func (o *Output) printTSV(t Table) error {
	out := bufio.NewWriter(o.W)
	escape := strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)
	line := func(texts []string) {
		for i, text := range texts {
			if i > 0 {
				out.WriteByte('\t')
			}
			out.WriteString(escape.Replace(text))
		}
		out.WriteByte('\n')
	}
	if o.Header {
		line(keys(t))
	}
	for _, row := range t.Rows {
		line(machineTexts(row))
	}
	return out.Flush()
}

// printNames prints the id of each row, whole, whatever --fields says.
func (o *Output) printNames(t Table) error {
	id := -1
	for i, c := range t.Columns {
		if c.ID {
			id = i
		}
	}
	if id < 0 {
		return Usagef("this result has no names to print with -o name")
	}
	out := bufio.NewWriter(o.W)
	for _, row := range t.Rows {
		out.WriteString(MachineText(TreeOf(row[id])) + "\n")
	}
	return out.Flush()
}

func keys(t Table) []string {
	out := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		out[i] = c.Key
	}
	return out
}

func machineTexts(row []any) []string {
	out := make([]string, len(row))
	for i, v := range row {
		out[i] = MachineText(TreeOf(v))
	}
	return out
}
