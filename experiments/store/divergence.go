package store

import (
	"context"
	"database/sql"
	"os"
	"time"

	"exp/experiments/ident"
)

// Divergence records work that gave two results.
type Divergence struct {
	ID      int64
	Time    time.Time
	Run     int64
	Attempt int64 // 0 if unknown
	What    DivergenceError
	Host    string // that produced the second result
}

// Divergences returns the divergences found in a run, oldest first.
func (db *DB) Divergences(ctx context.Context, run int64) ([]Divergence, error) {
	all, err := query(ctx, db.r, func(r *sql.Rows) (d Divergence, err error) {
		var t int64
		err = r.Scan(&d.ID, &t, &d.Run, &d.Attempt, &d.What.RID, &d.What.SID,
			&d.What.Kind, &d.What.Step, &d.What.Field, &d.What.Want, &d.What.Got, &d.Host)
		d.Time = fromMilli(t)
		return d, err
	}, `SELECT d.id, d.t, d.run, coalesce(d.attempt, 0), iif(d.sid IS NULL, r.rid, NULL), d.sid,
			d.kind, coalesce(d.step, 0), d.field, d.want, d.got, d.host
		FROM divergences d JOIN runs r ON r.id = d.run WHERE d.run = ? ORDER BY d.id`, run)
	return all, db.fail("read divergences", err)
}

// addDivergence records e. Steps and checkpoints have no sid.
func (db *DB) addDivergence(ctx context.Context, tx *sql.Tx, run, attempt int64, e *DivergenceError) error {
	var step any
	if e.SID.IsZero() {
		step = e.Step
	}
	host, _ := os.Hostname() // informative only
	_, err := tx.ExecContext(ctx, `INSERT INTO divergences (t, run, attempt, sid, kind, step, field, want, got, host)
		VALUES (?, ?, nullif(?, 0), ?, ?, ?, ?, ?, ?, ?)`,
		db.now(), run, attempt, e.SID, e.Kind, step, e.Field, e.Want, e.Got, host)
	return err
}

// rid returns the rid of a run.
func rid(ctx context.Context, q querier, run int64) (ident.Digest, error) {
	return queryOne(ctx, q, func(r *sql.Rows) (d ident.Digest, err error) {
		err = r.Scan(&d)
		return d, err
	}, `SELECT rid FROM runs WHERE id = ?`, run)
}
