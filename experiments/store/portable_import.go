package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"

	"exp/experiments/ident"
)

// ImportRows adds the rows that next returns table by table (io.EOF ends them), in the
// order and form of ExportRows, in one durable transaction: all or nothing. Blobs must
// already be stored.
//
// An existing run stays unchanged if its steps are the same, but gets weights and texts that it lacks
// (portable_fill.go). A stage that was already done
// here becomes Repeated. A new run adopts the work it shares with an existing run that got
// less far here. If the bundle's record of the same work differs, ImportRows
// returns a *DivergenceError and adds nothing. Errors about contradictory rows wrap
// ErrConstraint.
func (db *DB) ImportRows(ctx context.Context, next func() (PortableRows, error)) (*Imported, error) {
	return db.ImportRowsOver(ctx, nil, next)
}

// ImportRowsOver is ImportRows, but the record of a run in over takes the place of the one here, unless another
// run depends on it (portable_over.go). The caller holds their locks, and knows that the bundle has all their
// attempts.
func (db *DB) ImportRowsOver(ctx context.Context, over map[ident.Digest]bool,
	next func() (PortableRows, error)) (*Imported, error) {
	var in *importer
	err := db.writeDurable(ctx, "import", func(tx *sql.Tx) error {
		in = &importer{db: db, ctx: ctx, tx: tx, numbers: map[string][]int64{}, had: map[string][]bool{},
			homes: map[int64]int64{}, fresh: map[int64]bool{}, undone: map[string]*undone{},
			present: map[int64]int{}, textless: map[int64]bool{}, over: over}
		return in.all(next)
	})
	if err != nil {
		return nil, err
	}
	return &in.done, nil
}

// importer is the state of one ImportRows.
type importer struct {
	db      *DB
	ctx     context.Context
	tx      *sql.Tx
	numbers map[string][]int64 // by table and position - 1: the row's number here
	had     map[string][]bool  // whether the row already existed
	homes   map[int64]int64    // of stages, by number
	fresh   map[int64]bool     // stages that this import added, by number
	demoted [][2]int64         // stages that became repeated, and the original of each
	undone  map[string]*undone // by sid
	adopted bool               // whether a stage was adopted
	present map[int64]int      // index in done.Present of a run, by number
	// textless tells of a stage, by number, whether a sample of it has no text.
	textless map[int64]bool
	over     map[ident.Digest]bool // runs to replace
	replaced []replaced
	done     Imported
}

func (in *importer) all(next func() (PortableRows, error)) error {
	list := portables()
	for {
		rows, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		at := slices.IndexFunc(list, func(p portable) bool { return p.name == rows.Table })
		if at < 0 {
			return fmt.Errorf("%w: no table %s belongs here", ErrConstraint, rows.Table)
		}
		if err := in.table(list[at], rows); err != nil {
			return fmt.Errorf("table %s: %w", rows.Table, err)
		}
		list = list[at+1:]
	}
	if err := in.compareDemoted(); err != nil {
		return err
	}
	if err := in.finishReplaced(); err != nil {
		return err
	}
	return in.fillOutputs()
}

// table imports the rows of one table.
func (in *importer) table(p portable, rows PortableRows) error {
	t, err := in.newTable(p, rows)
	if err != nil {
		return err
	}
	for place := 1; ; place++ {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return t.flush()
		}
		if err != nil {
			return err
		}
		if len(row) != len(rows.Columns) {
			return fmt.Errorf("%w: row %d has %d values, not %d", ErrConstraint, place, len(row), len(rows.Columns))
		}
		if err := t.add(row); err != nil {
			return fmt.Errorf("row %d: %w", place, err)
		}
	}
}

// importTable adds rows to one table.
type importTable struct {
	*importer
	p       portable
	columns []string
	at      map[string]int // index of a column
	refs    []importRef
	batch   []any     // values of rows to insert
	rows    int       // in batch
	insert  *sql.Stmt // of a full batch, or of one row that others refer to; nil until needed
	many    *sql.Stmt // of a full batch of rows that others refer to; nil until needed
	points  pointBatch
}

func (in *importer) newTable(p portable, rows PortableRows) (*importTable, error) {
	known, err := columnsOf(in.ctx, in.tx, p.name)
	if err != nil {
		return nil, err
	}
	t := &importTable{importer: in, p: p, at: map[string]int{}}
	for i, c := range rows.Columns {
		if !slices.Contains(known, c) || c.Name == "id" {
			return nil, fmt.Errorf("%w: a column %s of type %s is unexpected", ErrConstraint, c.Name, c.Type)
		}
		t.columns = append(t.columns, c.Name)
		t.at[c.Name] = i
	}
	for column, to := range p.refs {
		if i, ok := t.at[column]; ok {
			t.refs = append(t.refs, importRef{column: column, at: i, to: to, owner: column == p.owner})
		}
	}
	needed := append([]string{p.key, p.owner}, map[string][]string{
		"blobs": {"size"}, "stages": {"sid", "status"}, "steps": {"step", "chain"},
		"samples": {"scope", "step", "item", "k"}, "metrics": {"step", "series", "value"},
		"stage_io": {"dir", "role", "digest"}, "evals": {"suite", "protocol", "metric"},
		"artifacts": {"stage", "name"},
	}[p.name]...)
	for _, needed := range needed {
		if _, ok := t.at[needed]; needed != "" && !ok {
			return nil, fmt.Errorf("%w: column %s is missing", ErrConstraint, needed)
		}
	}
	return t, nil
}

// add adds a row or maps it to an existing one.
func (t *importTable) add(row []any) error {
	owned, err := t.resolve(row)
	if err != nil {
		return err
	}
	if t.p.name == "blobs" {
		if err := t.checkBlob(row); err != nil {
			return err
		}
	}
	if owned {
		switch t.p.name {
		case "steps":
			return t.compareStep(row)
		case "stage_io":
			return t.compareOutput(row)
		case "evals":
			return t.noteScore(row)
		case "artifacts":
			return t.fillImage(row)
		case "samples":
			if err := t.fillText(row); err != nil {
				return err
			}
		}
		if t.p.id {
			return t.standIn(row)
		}
		return nil
	}
	if !t.p.id {
		return t.queue(row)
	}
	if t.p.name == "samples" {
		if stage, ok := row[t.at["stage"]].(int64); ok && t.fresh[stage] {
			return t.queueNumbered(row) // the stage had no samples here
		}
	}
	if t.p.key != "" || t.p.name == "samples" {
		if err := t.flushNumbered(); err != nil {
			return err
		}
		here, err := t.find(row)
		if err == nil && here != 0 && t.p.name == "samples" {
			err = t.fillText(row)
		}
		if err != nil || here != 0 {
			t.number(here, true)
			return err
		}
	}
	if t.p.name == "stages" {
		return t.addStage(row)
	}
	_, err = t.insertOne(row)
	return err
}

// addStage inserts a stage. If its sid is already done here, it becomes a repetition, and
// its outputs are compared after they are imported.
func (t *importTable) addStage(row []any) error {
	sid, status, original := row[t.at["sid"]], t.at["status"], int64(0)
	if row[status] == string(Done) {
		found, err := query(t.ctx, t.tx, scanInt, `SELECT id FROM stages WHERE sid = ? AND status = 'done'`, sid)
		if err != nil {
			return err
		}
		if original = first(found); original != 0 {
			row[status] = string(Repeated)
		}
	}
	work := t.adopts(row)
	id, err := t.insertOne(row)
	if err != nil {
		return err
	}
	t.adopt(work, id)
	t.fresh[id] = true
	if original != 0 {
		t.demoted = append(t.demoted, [2]int64{id, original})
	}
	_, err = t.tx.ExecContext(t.ctx, `UPDATE stages SET home = (SELECT min(id) FROM stages WHERE sid = ?1),
		reused_from = iif(status = 'cached', (SELECT id FROM stages WHERE sid = ?1 AND status = 'done'), NULL) WHERE id = ?2`, sid, id)
	return err
}

// compareDemoted compares the outputs of repeated stages with the originals'.
func (in *importer) compareDemoted() error {
	for _, pair := range in.demoted {
		both, err := stagesOf(in.ctx, in.tx, `s.id IN (?, ?)`, pair[0], pair[1])
		if err != nil {
			return err
		}
		slices.SortFunc(both, func(a, b Stage) int { return int(a.ID - b.ID) }) // the original is older
		if d := compareOutputs(both[1], both[0].Outputs, both[1].Outputs); d != nil {
			return d
		}
	}
	return nil
}

// checkBlob checks that the blob of a row exists.
func (t *importTable) checkBlob(row []any) error {
	raw, _ := row[t.at["digest"]].([]byte)
	if len(raw) != len(ident.Digest{}) || ident.Digest(raw).IsZero() {
		return fmt.Errorf("%w: a blob without a digest", ErrConstraint)
	}
	got, err := t.db.Blobs.Stat(ident.Digest(raw))
	if err == nil && got != row[t.at["size"]] {
		err = fmt.Errorf("%w: blob %s has %d bytes, not %v", ErrConstraint, ident.Digest(raw).Short(), got,
			row[t.at["size"]])
	}
	return err
}

// compareStep compares a step of an existing run with the recorded one.
func (t *importTable) compareStep(row []any) error {
	run, step, chain := row[t.at["run"]], row[t.at["step"]], row[t.at["chain"]]
	type known struct {
		rid, chain []byte
	}
	had, err := query(t.ctx, t.tx, func(r *sql.Rows) (k known, err error) {
		err = r.Scan(&k.rid, &k.chain)
		return k, err
	}, `SELECT r.rid, s.chain FROM steps s JOIN runs r ON r.id = s.run WHERE s.run = ? AND s.step = ?`, run, step)
	if err != nil || len(had) == 0 {
		return err
	}
	theirs, _ := chain.([]byte)
	if bytes.Equal(theirs, had[0].chain) {
		return nil
	}
	e := &DivergenceError{RID: ident.Digest(had[0].rid), Field: "chain", Want: ident.Digest(had[0].chain)}
	e.Step, _ = step.(int64)
	copy(e.Got[:], theirs)
	return e
}
