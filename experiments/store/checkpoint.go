package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"exp/experiments/ident"
)

// Checkpoint records a checkpoint that is complete on disk, in the run's directory.
type Checkpoint struct {
	Run    int64        `json:"-"`
	Step   int64        `json:"step"`
	Time   time.Time    `json:"time"`  // set by the store
	Digest ident.Digest `json:"-"`     // of its manifest
	Chain  ident.Digest `json:"chain"` // the trajectory's, after Step
	Bytes  int64        `json:"bytes"`
}

// AddCheckpoint records a checkpoint. Recording a step again is a no-op if the digest is
// the same; otherwise it records a divergence and returns a *DivergenceError.
func (db *DB) AddCheckpoint(ctx context.Context, c Checkpoint) error {
	var diverged *DivergenceError
	err := db.writeDurable(ctx, fmt.Sprintf("record checkpoint of step %d", c.Step), func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `INSERT INTO checkpoints (run, step, t, digest, chain, bytes) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (run, step) DO NOTHING`, c.Run, c.Step, db.now(), c.Digest, c.Chain, c.Bytes)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 1 {
			return err
		}
		had, err := queryOne(ctx, tx, scanCheckpoint, checkpointSelect+` WHERE run = ? AND step = ?`, c.Run, c.Step)
		if err != nil || had.Digest == c.Digest {
			return err
		}
		id, err := rid(ctx, tx, c.Run)
		if err != nil {
			return err
		}
		diverged = &DivergenceError{RID: id, Step: c.Step, Field: "checkpoint", Want: had.Digest, Got: c.Digest}
		return db.addDivergence(ctx, tx, c.Run, 0, diverged)
	})
	if err == nil && diverged != nil {
		return diverged
	}
	return err
}

// ForgetCheckpoint removes the record of a checkpoint whose files are about to be
// deleted; ErrNotFound if the record is missing.
func (db *DB) ForgetCheckpoint(ctx context.Context, run, step int64) error {
	return db.updateRun(ctx, "forget checkpoint of", run, `DELETE FROM checkpoints WHERE run = ? AND step = ?`, run,
		step)
}

// Checkpoints returns the checkpoints of a run, newest first.
func (db *DB) Checkpoints(ctx context.Context, run int64) ([]Checkpoint, error) {
	all, err := query(ctx, db.r, scanCheckpoint, checkpointSelect+` WHERE run = ? ORDER BY step DESC`, run)
	return all, db.fail("read checkpoints", err)
}

const checkpointSelect = `SELECT run, step, t, digest, chain, bytes FROM checkpoints`

func scanCheckpoint(r *sql.Rows) (c Checkpoint, err error) {
	var t int64
	err = r.Scan(&c.Run, &c.Step, &t, &c.Digest, &c.Chain, &c.Bytes)
	c.Time = fromMilli(t)
	return c, err
}
