package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"exp/experiments/ident"
)

// portable is a table that bundles carry. Its rows come in insertion order: a row follows
// the rows it refers to.
type portable struct {
	name string
	// rows selects the rows of a selection of runs; ?1 holds their ids as JSON.
	rows string
	// key is the digest column of a table whose rows are identified by a digest. Existing
	// rows are left alone.
	key string
	// id is true if other rows refer to this table's rows by number. A bundle numbers
	// rows 1, 2, … in the order of their ids.
	id bool
	// refs lists the columns with such numbers, and their tables.
	refs map[string]string
	// owner is the column with the row that this row belongs to: if that row already
	// exists, this one is not added.
	owner string
}

const selected = `(SELECT value FROM json_each(?1))`
const selectedStages = `(SELECT id FROM stages WHERE run IN ` + selected + `)`

// selectedSuites are those that the runs were scored on, and those with the examples in their prompts.
const selectedSuites = `(SELECT suite FROM evals WHERE run IN ` + selected + ` UNION
	SELECT u.id FROM suites u JOIN stage_io io ON io.digest = u.digest
	WHERE io.role = '` + examplesRole + `' AND io.stage IN ` + selectedStages + `)`

// examplesRole is the role of a suite as the examples of another one's evaluation.
const examplesRole = "examples"

// selectedSamples is sorted, so rows found by it come in the order of their keys: nothing sorts them.
const selectedSamples = `(SELECT id FROM samples WHERE stage IN ` + selectedStages + `)`

// ofRun returns the entry of a table whose rows belong to a run.
func ofRun(name string, id bool, order string, refs ...string) portable {
	p := portable{name: name, id: id, owner: "run", refs: map[string]string{"run": "runs"},
		rows: `SELECT * FROM ` + name + ` WHERE run IN ` + selected + ` ORDER BY ` + order}
	for _, r := range refs {
		column, table, _ := strings.Cut(r, " ")
		p.refs[column] = table
	}
	return p
}

// portables lists the tables of a bundle. All other tables are local to a store
// (portable_test.go names them).
func portables() []portable {
	return []portable{
		{name: "blobs", key: "digest", rows: `SELECT * FROM blobs WHERE digest IN (
			SELECT io.digest FROM stage_io io WHERE io.stage IN ` + selectedStages + `
			UNION SELECT pack FROM samples WHERE stage IN ` + selectedStages + `
			UNION SELECT digest FROM artifacts WHERE run IN ` + selected + `
			UNION SELECT digest FROM suites WHERE id IN ` + selectedSuites + `
			UNION SELECT archive FROM sources WHERE code IN (` + selectedCode + `)) ORDER BY digest`},
		{name: "configs", key: "digest",
			rows: `SELECT * FROM configs WHERE digest IN (SELECT config FROM runs WHERE id IN ` + selected +
				`) ORDER BY digest`},
		{name: "sources", key: "code", rows: `SELECT * FROM sources WHERE code IN (` + selectedCode +
			`) ORDER BY code`},
		{name: "suites", key: "digest", id: true,
			rows: `SELECT * FROM suites WHERE id IN ` + selectedSuites + ` ORDER BY id`},
		{name: "items", owner: "suite", refs: map[string]string{"suite": "suites"},
			rows: `SELECT * FROM items WHERE suite IN ` + selectedSuites + ` ORDER BY suite, item`},
		{name: "scorers", key: "digest", id: true, rows: `SELECT * FROM scorers WHERE id IN (SELECT v.scorer FROM samples s JOIN verdicts v ON v.sample = s.id
			WHERE s.stage IN ` + selectedStages + `) ORDER BY id`},
		{name: "runs", key: "rid", id: true, refs: map[string]string{"parent": "runs"},
			rows: `SELECT * FROM runs WHERE id IN ` + selected + ` ORDER BY id`},
		ofRun("run_tags", false, "run, tag"),
		ofRun("run_notes", false, "id"),
		ofRun("attempts", true, "id"),
		ofRun("stages", true, "id", "attempt attempts", "home stages", "reused_from stages"),
		{name: "stage_io", owner: "stage", refs: map[string]string{"stage": "stages"},
			rows: `SELECT * FROM stage_io WHERE stage IN ` + selectedStages + ` ORDER BY stage, dir, role`},
		ofRun("artifacts", false, "id", "stage stages"),
		ofRun("events", false, "id", "attempt attempts"),
		ofRun("divergences", false, "id", "attempt attempts"),
		ofRun("verifications", false, "id", "attempt attempts"),
		ofRun("steps", false, "run, step"),
		ofRun("series", true, "id"),
		ofRun("metrics", false, "run, step, series", "series series"),
		ofRun("checkpoints", false, "id"),
		ofRun("evals", false, "id", "stage_gen stages", "stage_score stages", "suite suites"),
		{name: "samples", id: true, owner: "stage", refs: map[string]string{"stage": "stages"},
			rows: `SELECT * FROM samples WHERE id IN ` + selectedSamples + ` ORDER BY id`},
		{name: "verdicts", owner: "sample", refs: map[string]string{"sample": "samples", "scorer": "scorers"},
			rows: `SELECT * FROM verdicts WHERE sample IN ` + selectedSamples + ` ORDER BY sample, scorer`},
	}
}

// selectedCode selects the digests of the sources that executed a selection of runs.
const selectedCode = `SELECT code FROM runs WHERE id IN ` + selected + ` UNION SELECT code FROM stages WHERE run IN ` +
	selected

// Column is a column of a portable table.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"` // of SQLite: INTEGER, REAL, TEXT or BLOB
}

// PortableRows holds the rows of one table.
type PortableRows struct {
	Table   string
	Columns []Column
	// Next returns the next row, or io.EOF: nil, int64, float64, string or []byte for
	// each column.
	Next func() ([]any, error)
}

// Lineage returns runs, by row id, and all runs they depend on: the ones whose work they
// reuse, and the ones they continue.
func (db *DB) Lineage(ctx context.Context, runs []int64) ([]Run, error) {
	list, err := json.Marshal(runs)
	if err != nil {
		return nil, err
	}
	all, err := query(ctx, db.r, newRunScanner().scan, `WITH RECURSIVE wanted (id) AS (
			SELECT value FROM json_each(?)
			UNION SELECT r.parent FROM wanted w JOIN runs r ON r.id = w.id WHERE r.parent IS NOT NULL
			UNION SELECT o.run FROM wanted w JOIN stages s ON s.run = w.id JOIN stages o ON o.id = s.home
			UNION SELECT o.run FROM wanted w JOIN stages s ON s.run = w.id JOIN stages o ON o.id = s.reused_from
			UNION SELECT o.run FROM wanted w JOIN evals e ON e.run = w.id JOIN stages o ON o.id = e.stage_gen)
		SELECT `+runColumns+` FROM runs r WHERE r.id IN (SELECT id FROM wanted) ORDER BY r.id`, string(list))
	return all, db.fail("read lineage of runs", err)
}

// ExportRows calls emit for each portable table with the rows of runs, which must come
// from Lineage, in one snapshot. It replaces row numbers by positions, so the same record
// gives the same rows from any store.
func (db *DB) ExportRows(ctx context.Context, runs []int64, emit func(PortableRows) error) error {
	list, err := json.Marshal(runs)
	if err != nil {
		return err
	}
	tx, err := db.r.BeginTx(ctx, nil)
	if err != nil {
		return db.fail("export", err)
	}
	defer tx.Rollback() // it has only read
	places := map[string]map[int64]int64{}
	for _, p := range portables() {
		if err := exportTable(ctx, tx, p, string(list), places, emit); err != nil {
			return db.fail("export "+p.name, err)
		}
	}
	return nil
}

func exportTable(ctx context.Context, tx *sql.Tx, p portable, runs string, places map[string]map[int64]int64,
	emit func(PortableRows) error) error {
	columns, err := columnsOf(ctx, tx, p.name)
	if err != nil {
		return err
	}
	rows, err := tx.QueryContext(ctx, p.rows, runs)
	if err != nil {
		return err
	}
	defer rows.Close()
	place := map[int64]int64{}
	places[p.name] = place
	out := PortableRows{Table: p.name, Columns: slices.DeleteFunc(slices.Clone(columns),
		func(c Column) bool { return c.Name == "id" })}
	values := make([]any, len(columns))
	dest := make([]any, len(columns))
	for i := range values {
		dest[i] = &values[i]
	}
	out.Next = func() ([]any, error) {
		if !rows.Next() {
			return nil, orEOF(rows.Err())
		}
		if err := rows.Scan(dest...); err != nil {
			return nil, err
		}
		row := make([]any, 0, len(values))
		for i, c := range columns {
			if c.Name == "id" {
				place[values[i].(int64)] = int64(len(place) + 1)
			}
		}
		for i, c := range columns {
			v := values[i]
			if to, isRef := p.refs[c.Name]; isRef && v != nil {
				n, ok := places[to][v.(int64)]
				if !ok {
					return nil, fmt.Errorf("%w: %s.%s refers to row %d of %s, which belongs to another run",
						ErrConstraint, p.name, c.Name, v, to)
				}
				v = n
			}
			if c.Name != "id" {
				row = append(row, v)
			}
		}
		return row, nil
	}
	return emit(out)
}

// columnsOf returns the columns of a table in their order.
func columnsOf(ctx context.Context, q querier, table string) ([]Column, error) {
	return query(ctx, q, func(r *sql.Rows) (c Column, err error) {
		err = r.Scan(&c.Name, &c.Type)
		return c, err
	}, `SELECT name, type FROM pragma_table_info(?)`, table)
}

// Present is a run of a bundle that was already in the store.
type Present struct {
	RID      ident.Digest
	Steps    int64 // that the store has
	Theirs   int64 // that the bundle has
	Scores   int64 // that the bundle has and the store lacks
	Restored bool  // it was deleted and is restored
	Weights  bool  // it lacked weights and has them now
	Texts    bool  // it lacked texts of completions and has them now
}

// Imported is the result of ImportRows, by rid.
type Imported struct {
	Added   []ident.Digest
	Present []Present
	// Continued are runs that got less far here; the bundle's record has taken the place of theirs.
	Continued []Present
}

// orEOF returns err, or io.EOF for nil.
func orEOF(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}
