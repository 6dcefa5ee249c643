package main

import (
	"context"
	"io"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/store"
)

// schemaColumn is a row of the schema exp.schema/1.
type schemaColumn struct {
	store.TableColumn
	About string // the table
	Note  string
}

// printSchema explains the tables: to people on one page, to programs column by
// column.
func (a *app) printSchema(ctx context.Context, db *store.DB) error {
	have, err := db.TableColumns(ctx)
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
	t := cli.Table{Schema: "exp.schema/1", Columns: []cli.Column{{Key: "table"}, {Key: "kind"}, {Key: "column", ID: true}, {Key: "type"}, {Key: "key"},
		{Key: "references"}, {Key: "note"}}}
	for _, c := range columns {
		t.Rows = append(t.Rows, []any{c.Table, c.Kind, c.Name, c.Type, c.Key, c.RefsTo, c.Note})
	}
	return a.Out.PrintTable(t)
}

// describeSchema puts words to columns, in the order of the words; what has none comes
// last.
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

const schemaPreface = "Ids are row numbers; digests are blobs of 32 bytes, hex(rid); times are milliseconds since 1970 UTC, " +
	"datetime(t / 1000, 'unixepoch'); columns that hold JSON are checked to, json ->> '$.train.steps'. * marks the primary key, " +
	"-> the table that a column points to. In the plain shell: sqlite3 -readonly exp.db"
