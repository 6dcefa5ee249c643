package store

import (
	"context"
	"testing"
)

// Every table and view is explained, and nothing that is not there.
func TestDescriptions(t *testing.T) {
	db := openAt(t, t.TempDir(), Options{Create: true})
	columns, err := db.TableColumns(context.Background())
	if err != nil || len(columns) < 150 {
		t.Fatalf("%d columns, %v", len(columns), err)
	}
	have := map[string]map[string]bool{}
	for _, c := range columns {
		if have[c.Table] == nil {
			have[c.Table] = map[string]bool{}
		}
		have[c.Table][c.Name] = true
	}
	told := map[string]bool{}
	for _, d := range Descriptions() {
		if told[d.Table] = true; have[d.Table] == nil || d.Text == "" {
			t.Errorf("table %s: not there, or without words", d.Table)
		}
		for name := range d.Columns {
			if !have[d.Table][name] {
				t.Errorf("%s has no column %s", d.Table, name)
			}
		}
	}
	for table := range have {
		if !told[table] {
			t.Errorf("table %s is explained nowhere", table)
		}
	}
}
