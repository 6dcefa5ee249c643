package store

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// batchRows is the number of rows one statement inserts. More rows do not reduce the time
// per row.
const batchRows = 100

// pointBatch holds points to insert for one step of a run: the statement
// names the run and the step once, which saves a quarter of the time.
type pointBatch struct {
	args []any // the run, the step, and a series and a value for each
	text string
	n    int // points that text inserts
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
// verdicts, may already exist; an adopted stage reads what the one that did the work read.
func (t *importTable) statement(n int) string {
	row := "(" + strings.TrimSuffix(strings.Repeat("?, ", len(t.columns)), ", ") + ")"
	text := `INSERT INTO ` + t.p.name + ` ("` + strings.Join(t.columns, `", "`) + `") VALUES ` +
		strings.TrimSuffix(strings.Repeat(row+", ", n), ", ")
	if t.p.key != "" && !t.p.id || t.p.name == "verdicts" || t.p.name == "stage_io" && t.adopted {
		text += ` ON CONFLICT DO NOTHING`
	}
	return text
}
