package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"exp/experiments/ident"
)

// ImportRows adds the rows that next returns table by table (io.EOF ends them), in the
// order and form of ExportRows, in one durable transaction: all or nothing. Blobs must
// already be stored.
//
// An existing run stays as it is if its steps are the same. A stage that was already done
// here becomes Repeated. If the bundle's record of the same work differs, ImportRows
// returns a *DivergenceError and adds nothing. Errors about contradictory rows wrap
// ErrConstraint.
func (db *DB) ImportRows(ctx context.Context, next func() (PortableRows, error)) (*Imported, error) {
	var in *importer
	err := db.writeDurable(ctx, "import", func(tx *sql.Tx) error {
		in = &importer{db: db, ctx: ctx, tx: tx, numbers: map[string][]int64{}, had: map[string][]bool{},
			homes: map[int64]int64{}, fresh: map[int64]bool{}}
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
	done    Imported
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
	return in.compareDemoted()
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
	batch   []any     // values of rows that are to be inserted
	rows    int       // in batch
	insert  *sql.Stmt // of a full batch, or of one row that others refer to; nil until needed
	many    *sql.Stmt // of a full batch of rows that others refer to; nil until needed
	points  pointBatch
}

// pointBatch are points of one step of a run that are to be inserted: the statement
// names the run and the step once, which saves a quarter of the time.
type pointBatch struct {
	args []any // the run, the step, and a series and a value for each
	text string
	n    int // points that text inserts
}

// importRef is a column that holds places of rows of another table.
type importRef struct {
	column string
	at     int // its index
	to     string
	owner  bool // the row means nothing without the one it refers to
	// The last resolved position and its row: consecutive rows mostly refer to the same
	// one.
	place  int64
	number any
	owned  bool
}

// batchRows is the number of rows one statement inserts. More rows do not reduce the time
// per row.
const batchRows = 100

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
		if t.p.name == "steps" {
			return t.compareStep(row)
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

// resolve replaces positions by row numbers, and reports whether the row belongs to an
// existing one. A stage's home and original are found later, by its sid.
func (t *importTable) resolve(row []any) (owned bool, err error) {
	for k := range t.refs {
		r := &t.refs[k]
		if row[r.at] == nil {
			continue
		}
		if t.p.name == "stages" && r.to == "stages" {
			row[r.at] = nil
			continue
		}
		place, isInt := row[r.at].(int64)
		if !isInt || place < 1 || place != r.place {
			if err := t.resolveOne(r, row[r.at]); err != nil {
				return false, err
			}
		}
		row[r.at], owned = r.number, owned || r.owned
	}
	return owned, nil
}

// resolveOne replaces a column's position by the row number.
func (t *importTable) resolveOne(r *importRef, value any) error {
	numbers := t.numbers[r.to]
	place, isInt := value.(int64)
	if !isInt || place < 1 || place > int64(len(numbers)) {
		return fmt.Errorf("%w: %s is %v, but there are %d %s", ErrConstraint, r.column, value, len(numbers), r.to)
	}
	id := numbers[place-1]
	if t.p.name == "samples" && id != 0 {
		var err error
		if id, err = t.home(id); err != nil {
			return err
		}
	}
	if r.place, r.number = place, id; id == 0 {
		r.number = nil
	}
	// Another scorer may have judged an existing sample.
	r.owned = r.owner && t.had[r.to][place-1] && (t.p.name != "verdicts" || id == 0)
	return nil
}

// home returns the stage to which the samples of stage id belong.
func (t *importTable) home(id int64) (int64, error) {
	if home, ok := t.homes[id]; ok {
		return home, nil
	}
	home, err := queryOne(t.ctx, t.tx, scanInt, `SELECT home FROM stages WHERE id = ?`, id)
	t.homes[id] = home
	return home, err
}

// number records where the next row of the table went.
func (t *importTable) number(id int64, had bool) {
	t.numbers[t.p.name] = append(t.numbers[t.p.name], id)
	t.had[t.p.name] = append(t.had[t.p.name], had)
}

// find returns the number of the existing row that equals row, 0 if there is none. For a
// run it calls noteRun.
func (t *importTable) find(row []any) (int64, error) {
	where, args := t.p.key+` = ?`, []any(nil)
	if t.p.name == "samples" {
		where = `stage = ? AND scope = ? AND step = ? AND item = ? AND k = ?`
		for _, c := range []string{"stage", "scope", "step", "item", "k"} {
			args = append(args, row[t.at[c]])
		}
	} else {
		args = append(args, row[t.at[t.p.key]])
	}
	found, err := query(t.ctx, t.tx, scanInt, `SELECT id FROM `+t.p.name+` WHERE `+where, args...)
	if err != nil || t.p.name != "runs" {
		return first(found), err
	}
	return first(found), t.noteRun(row, first(found))
}

// noteRun notes that a run exists with number id, or is added if id is 0. It restores a
// deleted run, unless the bundle's is deleted too.
func (t *importTable) noteRun(row []any, id int64) error {
	raw, _ := row[t.at["rid"]].([]byte)
	if len(raw) != len(ident.Digest{}) {
		return fmt.Errorf("%w: a rid of %d bytes", ErrConstraint, len(raw))
	}
	rid := ident.Digest(raw)
	if id == 0 {
		t.done.Added = append(t.done.Added, rid)
		return nil
	}
	p := Present{RID: rid}
	if i, ok := t.at["steps"]; ok {
		p.Theirs, _ = row[i].(int64)
	}
	var err error
	if p.Steps, err = queryOne(t.ctx, t.tx, scanInt, `SELECT steps FROM runs WHERE id = ?`, id); err != nil {
		return err
	}
	if i, ok := t.at["deleted"]; !ok || row[i] == nil {
		res, err := t.tx.ExecContext(t.ctx, `UPDATE runs SET deleted = NULL WHERE id = ? AND deleted IS NOT NULL`, id)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return err
		}
		p.Restored = n == 1
	}
	t.done.Present = append(t.done.Present, p)
	return nil
}

// standIn finds the row that other runs' rows refer to in place of an existing run's row:
// for a stage, the one with the same sid; otherwise none.
func (t *importTable) standIn(row []any) error {
	if t.p.name != "stages" {
		t.number(0, true)
		return nil
	}
	found, err := query(t.ctx, t.tx, scanInt,
		`SELECT id FROM stages WHERE sid = ? ORDER BY status = 'done' DESC, id LIMIT 1`, row[t.at["sid"]])
	t.number(first(found), true)
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
	id, err := t.insertOne(row)
	if err != nil {
		return err
	}
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

// insertOne inserts a row that other rows refer to.
func (t *importTable) insertOne(row []any) (int64, error) {
	if t.insert == nil {
		var err error
		if t.insert, err = t.tx.PrepareContext(t.ctx, t.statement(1)); err != nil {
			return 0, err
		}
	}
	res, err := t.insert.ExecContext(t.ctx, row...)
	if err != nil {
		return 0, err
	}
	id, err := res.LastInsertId()
	t.number(id, false)
	return id, err
}

// queueNumbered queues a row that other rows refer to and that cannot be here yet.
func (t *importTable) queueNumbered(row []any) error {
	t.batch = append(t.batch, row...)
	if t.rows++; t.rows < batchRows {
		return nil
	}
	return t.flushNumbered()
}

// flushNumbered inserts the rows of queueNumbered. SQLite numbers the rows of one statement in
// their order, each one more than the one before, since nobody else writes meanwhile and ids are
// far below the greatest.
func (t *importTable) flushNumbered() error {
	if !t.p.id || t.rows == 0 {
		return nil
	}
	var res sql.Result
	var err error
	if t.rows == batchRows {
		if t.many == nil {
			if t.many, err = t.tx.PrepareContext(t.ctx, t.statement(batchRows)); err != nil {
				return err
			}
		}
		res, err = t.many.ExecContext(t.ctx, t.batch...)
	} else {
		res, err = t.tx.ExecContext(t.ctx, t.statement(t.rows), t.batch...)
	}
	if err != nil {
		return err
	}
	last, err := res.LastInsertId()
	for i := range t.rows {
		t.number(last-int64(t.rows-1-i), false)
	}
	t.batch, t.rows = t.batch[:0], 0
	return err
}

// queuePoint queues a metric to insert with the others of its step.
func (t *importTable) queuePoint(row []any) error {
	run, ok := row[t.at["run"]].(int64)
	step, isInt := row[t.at["step"]].(int64)
	if !ok || !isInt {
		return fmt.Errorf("%w: a metric of run %v at step %v", ErrConstraint, row[t.at["run"]], row[t.at["step"]])
	}
	b := &t.points
	if len(b.args) > 0 && (b.args[0] != run || b.args[1] != step || len(b.args) == 2+2*maxRows) {
		if err := t.flushPoints(); err != nil {
			return err
		}
	}
	if len(b.args) == 0 {
		b.args = append(b.args, run, step)
	}
	b.args = append(b.args, row[t.at["series"]], row[t.at["value"]])
	return nil
}

func (t *importTable) flushPoints() error {
	b := &t.points
	n := (len(b.args) - 2) / 2
	if n <= 0 {
		return nil
	}
	if n != b.n {
		b.n, b.text = n, insertPoints(n)
	}
	_, err := t.tx.ExecContext(t.ctx, b.text, b.args...)
	b.args = b.args[:0]
	return err
}

// queue queues a row that no other row refers to.
func (t *importTable) queue(row []any) error {
	if t.p.name == "metrics" {
		return t.queuePoint(row)
	}
	t.batch = append(t.batch, row...)
	if t.rows++; t.rows < batchRows {
		return nil
	}
	if t.insert == nil {
		var err error
		if t.insert, err = t.tx.PrepareContext(t.ctx, t.statement(batchRows)); err != nil {
			return err
		}
	}
	_, err := t.insert.ExecContext(t.ctx, t.batch...)
	t.batch, t.rows = t.batch[:0], 0
	return err
}

// flush inserts the queued rows.
func (t *importTable) flush() (err error) {
	if err := errors.Join(t.flushPoints(), t.flushNumbered()); err != nil {
		return err
	}
	if t.many != nil {
		err = t.many.Close()
	}
	if t.rows > 0 {
		_, err = t.tx.ExecContext(t.ctx, t.statement(t.rows), t.batch...)
	}
	if t.insert != nil {
		err = errors.Join(err, t.insert.Close())
	}
	return err
}

// statement returns the statement that inserts n rows. Rows identified by a digest, and
// verdicts, may already exist.
func (t *importTable) statement(n int) string {
	row := "(" + strings.TrimSuffix(strings.Repeat("?, ", len(t.columns)), ", ") + ")"
	text := `INSERT INTO ` + t.p.name + ` ("` + strings.Join(t.columns, `", "`) + `") VALUES ` +
		strings.TrimSuffix(strings.Repeat(row+", ", n), ", ")
	if t.p.key != "" && !t.p.id || t.p.name == "verdicts" {
		text += ` ON CONFLICT DO NOTHING`
	}
	return text
}

// orEOF returns err, or io.EOF for nil.
func orEOF(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}
