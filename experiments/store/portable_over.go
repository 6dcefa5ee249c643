package store

import (
	"database/sql"
	"errors"
	"fmt"

	"exp/experiments/ident"
)

// A bundle may continue a run that got less far here. Its record then takes the place of the one here, which it
// contains, together with what belongs to this store alone: tags and remarks.

// replaced is a run whose record the bundle continues.
type replaced struct {
	rid   ident.Digest
	steps int64
	chain []byte
	tags  []string
	notes []noteRow
	was   Present
}

type noteRow struct {
	t    int64
	text string
}

// replace removes the rows of a run that the bundle continues, and reports whether it did.
func (t *importTable) replace(rid ident.Digest, id int64, p Present) (bool, error) {
	if !t.over[rid] {
		return false, nil
	}
	on, err := query(t.ctx, t.tx, scanDependency, `SELECT * FROM (`+dependencies+`) WHERE on_run = ? LIMIT 1`, id)
	if err != nil || len(on) > 0 {
		return false, err
	}
	old := replaced{rid: rid, steps: p.Steps, was: p}
	if old.tags, err = query(t.ctx, t.tx, scanText, `SELECT tag FROM run_tags WHERE run = ?`, id); err != nil {
		return false, err
	}
	old.notes, err = query(t.ctx, t.tx, func(r *sql.Rows) (n noteRow, err error) {
		err = r.Scan(&n.t, &n.text)
		return n, err
	}, `SELECT t, text FROM run_notes WHERE run = ? ORDER BY id`, id)
	if err != nil {
		return false, err
	}
	err = t.tx.QueryRowContext(t.ctx, `SELECT chain FROM runs WHERE id = ?`, id).Scan(&old.chain)
	if err == nil {
		_, err = t.tx.ExecContext(t.ctx, `DELETE FROM runs WHERE id = ?`, id)
	}
	t.replaced = append(t.replaced, old)
	return err == nil, err
}

// finishReplaced checks that the new record of each replaced run continues the old one, and gives it the old
// tags and remarks.
func (in *importer) finishReplaced() error {
	for _, old := range in.replaced {
		id, err := queryOne(in.ctx, in.tx, scanInt, `SELECT id FROM runs WHERE rid = ?`, old.rid)
		if err != nil {
			return err
		}
		if err := in.continues(old, id); err != nil {
			return err
		}
		for _, tag := range old.tags {
			if _, err := in.tx.ExecContext(in.ctx, `INSERT INTO run_tags (run, tag) VALUES (?, ?) ON CONFLICT DO NOTHING`,
				id, tag); err != nil {
				return err
			}
		}
		for _, n := range old.notes {
			if _, err := in.tx.ExecContext(in.ctx, `INSERT INTO run_notes (run, t, text) SELECT ?1, ?2, ?3 WHERE NOT EXISTS
				(SELECT 1 FROM run_notes WHERE run = ?1 AND t = ?2 AND text = ?3)`, id, n.t, n.text); err != nil {
				return err
			}
		}
		in.done.Continued = append(in.done.Continued, old.was)
	}
	return nil
}

// continues returns a *DivergenceError if the steps of a replaced run are not the first ones of its new record.
func (in *importer) continues(old replaced, id int64) error {
	if old.steps == 0 {
		return nil
	}
	var chain []byte
	err := in.tx.QueryRowContext(in.ctx, `SELECT chain FROM steps WHERE run = ? AND step = ?`, id, old.steps).Scan(&chain)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: run %s lacks step %d", ErrConstraint, old.rid.Short(), old.steps)
	}
	if err != nil || string(chain) == string(old.chain) {
		return err
	}
	e := &DivergenceError{RID: old.rid, Step: old.steps, Field: "chain"}
	copy(e.Want[:], old.chain)
	copy(e.Got[:], chain)
	return e
}
