package store

import (
	"context"
	"database/sql"
	"slices"
	"testing"
)

// Every table is carried in bundles, or belongs to one store alone; every reference
// to a row by its number is known to be one. A migration that adds a table has to
// decide.
func TestPortableTables(t *testing.T) {
	local := []string{
		"meta", // of this store
	}
	db := open(t)
	ctx := context.Background()
	tables, err := query(ctx, db.r, scanText, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
	if err != nil {
		t.Fatal(err)
	}
	list := portables()
	for _, name := range tables {
		carried := slices.ContainsFunc(list, func(p portable) bool { return p.name == name })
		if carried == slices.Contains(local, name) {
			t.Errorf("table %s: carried in bundles %t, local %t", name, carried, !carried)
		}
	}
	numbered := func(table string) bool {
		columns, err := columnsOf(ctx, db.r, table)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(columns, Column{"id", "INTEGER"})
	}
	for i, p := range list {
		type key struct{ from, table string }
		keys, err := query(ctx, db.r, func(r *sql.Rows) (k key, err error) {
			err = r.Scan(&k.from, &k.table)
			return k, err
		}, `SELECT "from", "table" FROM pragma_foreign_key_list(?)`, p.name)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			if numbered(k.table) && p.refs[k.from] != k.table {
				t.Errorf("%s.%s refers to %s by number", p.name, k.from, k.table)
			}
			if !slices.ContainsFunc(list[:i+1], func(before portable) bool { return before.name == k.table }) {
				t.Errorf("%s precedes %s but refers to it", p.name, k.table)
			}
		}
		for _, to := range p.refs {
			if !slices.ContainsFunc(list, func(other portable) bool { return other.name == to && other.id }) {
				t.Errorf("%s refers to %s, whose numbers are not kept", p.name, to)
			}
		}
	}
}
