package main

import (
	"encoding/hex"
	"errors"
	"io"
	"strconv"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/store"
)

func queryCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "query",
		Category:  "Results",
		Usage:     "query the store in SQL, read-only",
		ArgsUsage: "SQL",
		Description: "The store is one SQLite file, and SQL can read all of it. Statements cannot write. " +
			"Digests are printed in hexadecimal; times are milliseconds since 1970: datetime(t/1000, " +
			"'unixepoch'). --schema explains every table on one page; start with the views v_runs, " +
			"v_metrics, v_results and v_samples, which stay stable over versions (docs/python.md). The same works " +
			"in the plain shell: sqlite3 -readonly .exp/exp.db. - reads the statement from stdin.",
		UsageText: strings.Join([]string{
			"exp query --schema # describe every table and column",
			"exp query 'SELECT run, name, seed, h1 FROM run_list ORDER BY h1 DESC LIMIT 5' # the best runs",
			"exp query 'SELECT * FROM v_results' -o csv > scores.csv",
			"exp query - --json < question.sql # for programs",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "schema", Usage: "explain the tables"},
		},
		Action: func(c *cli.Context) error {
			if c.Bool("schema") {
				return a.reads(0, 0, a.printSchema)(c)
			}
			args, err := cli.Positionals(c, 1, 1)
			if err != nil {
				return err
			}
			text := args[0]
			if text == "-" {
				b, err := io.ReadAll(a.Stdin)
				if err != nil {
					return err
				}
				text = string(b)
			}
			return cli.With(a.OpenStore, func(db *store.DB) error { return a.query(c, db, text) })
		},
	}
}

func (a *app) query(c *cli.Context, db *store.DB, text string) error {
	if strings.TrimSpace(text) == "" {
		return cli.Usagef("the statement is empty").See("exp query")
	}
	t := cli.Table{Schema: "exp.query/1"}
	columns, err := db.SQL(c.Context, text, func(_ []string, values []any) error {
		row := make([]any, len(values))
		for i, v := range values {
			row[i] = sqlCell(v)
		}
		t.Rows = append(t.Rows, row)
		return nil
	})
	if errors.Is(err, store.ErrSQL) {
		return cli.Usagef("%s", strings.TrimPrefix(err.Error(), "sql: ")).
			Advise("exp query --schema shows the tables and columns")
	}
	if err != nil {
		return err
	}
	t.Columns = a.sqlColumns(columns)
	if len(columns) == 0 {
		return nil
	}
	return a.Out.PrintTable(t)
}

// sqlCell converts a value of SQLite for output; digests become ids.
func sqlCell(v any) any {
	b, ok := v.([]byte)
	switch {
	case !ok:
		return v
	case len(b) == 32:
		return cli.HexID(hex.EncodeToString(b))
	}
	return hex.EncodeToString(b)
}

// sqlText is a value for people, who know what they asked for: six digits of a number, not three.
func (a *app) sqlText(v any) string {
	if x, ok := v.(float64); ok {
		return strconv.FormatFloat(x, 'g', 6, 64)
	}
	return a.Out.Text(cli.Column{}, v)
}

// sqlColumns gives columns unique keys: a statement may use a name twice. -o name prints
// the first column.
func (a *app) sqlColumns(names []string) []cli.Column {
	seen := map[string]bool{}
	list := make([]cli.Column, len(names))
	for i, n := range names {
		key := n
		for k := 2; seen[key]; k++ {
			key = n + "_" + strconv.Itoa(k)
		}
		seen[key] = true
		list[i] = cli.Column{Key: key, Title: n, ID: i == 0, Text: a.sqlText}
	}
	return list
}

// schemaColumn is a row of the schema exp.schema/1.
type schemaColumn struct {
	store.TableColumn
	About string // the table
	Note  string
}

// printSchema describes the tables: on one page for people, column by column for
// programs.
func (a *app) printSchema(c *cli.Context, db *store.DB, _ []string) error {
	have, err := db.TableColumns(c.Context)
	if err != nil {
		return err
	}
	columns := describeSchema(have)
	if a.Out.ForPeople() && a.Out.Format != cli.FormatMD && a.Out.Fields == nil {
		return a.Out.PrintDocument(cli.Document{Schema: "exp.schema/1", Data: []any{}, Human: func(w io.Writer) error {
			p := a.Out.NewPage(w)
			writeSchema(p, columns)
			return p.Close()
		}})
	}
	t := cli.Table{Schema: "exp.schema/1", Columns: []cli.Column{{Key: "table"}, {Key: "kind"},
		{Key: "column", ID: true}, {Key: "type"}, {Key: "key"},
		{Key: "references"}, {Key: "note"}}}
	for _, c := range columns {
		t.Rows = append(t.Rows, []any{c.Table, c.Kind, c.Name, c.Type, c.Key, c.RefsTo, c.Note})
	}
	return a.Out.PrintTable(t)
}

// describeSchema adds notes to columns, in the order of the notes; columns without one
// come last.
func describeSchema(have []store.TableColumn) (list []schemaColumn) {
	byTable := map[string][]store.TableColumn{}
	for _, c := range have {
		byTable[c.Table] = append(byTable[c.Table], c)
	}
	add := func(columns []store.TableColumn, d store.Description) {
		for _, c := range columns {
			list = append(list, schemaColumn{c, d.Text, d.Columns[c.Name]})
		}
		delete(byTable, d.Table)
	}
	for _, d := range store.Descriptions() {
		add(byTable[d.Table], d)
	}
	for _, c := range have {
		if columns, ok := byTable[c.Table]; ok {
			add(columns, store.Description{Table: c.Table})
		}
	}
	return list
}

func writeSchema(p *cli.Page, columns []schemaColumn) {
	width := p.ProseWidth()
	p.Prose(width, schemaPreface)
	for len(columns) > 0 {
		n := 1
		for n < len(columns) && columns[n].Table == columns[0].Table {
			n++
		}
		p.Heading(columns[0].Table)
		p.Prose(width, columns[0].About)
		var plain []string
		var notes []cli.Fact
		for _, c := range columns[:n] {
			name := c.Name
			if c.Key {
				name += "*"
			}
			if c.RefsTo != "" {
				name += " -> " + c.RefsTo
			}
			plain = append(plain, name)
			if c.Note != "" {
				notes = append(notes, cli.Fact{Name: c.Name, Text: c.Note})
			}
		}
		p.Prose(width, strings.Join(plain, ", "))
		p.Facts(notes...)
		columns = columns[n:]
	}
}

const schemaPreface = "Ids are row numbers; digests are blobs of 32 bytes, hex(rid); times are milliseconds since " +
	"1970 UTC, datetime(t / 1000, 'unixepoch'); columns that hold JSON are checked to, json ->> '$.train.steps'. * " +
	"marks the primary key, -> the table that a column points to. In the plain shell: sqlite3 -readonly exp.db"
