package store

import (
	"database/sql"
	"errors"
	"fmt"

	"exp/experiments/ident"
)

// A bundle may continue a run that got less far here. Its record then takes the place of the one here, which it
// contains, together with what may be only here: tags, remarks, events apart from attempts, and texts of samples.

// replaced is a run whose record the bundle continues.
type replaced struct {
	rid   ident.Digest
	steps int64
	chain []byte
	tags  []string
	notes []noteRow
	apart []eventRow // events that belong to no attempt
	was   Present
}

type eventRow struct {
	t                 int64
	level, kind, data string
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
		return false, err // its rows would come after those that refer to them, which bundles do not allow
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
	old.apart, err = query(t.ctx, t.tx, func(r *sql.Rows) (e eventRow, err error) {
		err = r.Scan(&e.t, &e.level, &e.kind, &e.data)
		return e, err
	}, `SELECT t, level, kind, data FROM events WHERE run = ? AND attempt IS NULL ORDER BY id`, id)
	if err == nil {
		err = t.tx.QueryRowContext(t.ctx, `SELECT chain FROM runs WHERE id = ?`, id).Scan(&old.chain)
	}
	if err == nil {
		err = t.keepTexts(id)
	}
	if err == nil {
		_, err = t.tx.ExecContext(t.ctx, `DELETE FROM runs WHERE id = ?`, id)
	}
	t.replaced = append(t.replaced, old)
	return err == nil, err
}

// keepTexts remembers where the texts of a run's samples are, in a table of this connection alone: the bundle may
// be without them.
func (in *importer) keepTexts(run int64) error {
	const columns = `g.sid, s.scope, s.step, s.item, s.k, s.pack, s.off, s.len`
	const texts = ` FROM samples s JOIN stages g ON g.id = s.stage WHERE g.run = ? AND s.pack IS NOT NULL`
	text := `CREATE TEMP TABLE kept_texts AS SELECT ` + columns + texts
	if len(in.replaced) > 0 {
		text = `INSERT INTO kept_texts SELECT ` + columns + texts
	}
	if len(in.replaced) == 0 {
		if _, err := in.tx.ExecContext(in.ctx, `DROP TABLE IF EXISTS temp.kept_texts`); err != nil {
			return err
		}
	}
	_, err := in.tx.ExecContext(in.ctx, text, run)
	return err
}

// returnTexts gives the texts of keepTexts to samples that came without.
func (in *importer) returnTexts() error {
	if len(in.replaced) == 0 {
		return nil
	}
	for _, text := range []string{
		`CREATE INDEX temp.kept_texts_sample ON kept_texts (sid, scope, step, item, k)`,
		`UPDATE samples SET pack = t.pack, off = t.off, len = t.len FROM kept_texts t, stages g
			WHERE g.id = samples.stage AND t.sid = g.sid AND t.scope = samples.scope AND t.step = samples.step
			AND t.item = samples.item AND t.k = samples.k AND samples.pack IS NULL`,
		`DROP TABLE kept_texts`,
	} {
		if _, err := in.tx.ExecContext(in.ctx, text); err != nil {
			return err
		}
	}
	return nil
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
		for _, e := range old.apart {
			if _, err := in.tx.ExecContext(in.ctx, `INSERT INTO events (run, t, level, kind, data)
				SELECT ?1, ?2, ?3, ?4, ?5 WHERE NOT EXISTS
				(SELECT 1 FROM events WHERE run = ?1 AND t = ?2 AND kind = ?4 AND data = ?5)`, id, e.t, e.level, e.kind,
				e.data); err != nil {
				return err
			}
		}
		in.done.Continued = append(in.done.Continued, old.was)
	}
	return in.returnTexts()
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
