package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"exp/experiments/ident"
)

// RecordedBlob is a row of blobs.
type RecordedBlob struct {
	Digest ident.Digest
	Size   int64 // bytes
	Kind   string
}

// RecordedBlobs returns all recorded blobs, sorted by digest.
func (db *DB) RecordedBlobs(ctx context.Context) ([]RecordedBlob, error) {
	all, err := query(ctx, db.r, scanBlob, `SELECT digest, size, kind FROM blobs ORDER BY digest`)
	return all, db.fail("list blobs", err)
}

func scanBlob(r *sql.Rows) (b RecordedBlob, err error) {
	err = r.Scan(&b.Digest, &b.Size, &b.Kind)
	return b, err
}

// RemoveRun removes the rows of a deleted run for good. If the run is not deleted or
// another run depends on it, it removes nothing and returns an *Error that wraps
// ErrInUse.
func (db *DB) RemoveRun(ctx context.Context, run int64) error {
	return db.writeDurable(ctx, fmt.Sprintf("remove run %d", run), func(tx *sql.Tx) error {
		on, err := query(ctx, tx, scanDependency, `SELECT * FROM (`+dependencies+`) WHERE on_run = ? LIMIT 1`, run)
		if err != nil {
			return err
		}
		if len(on) > 0 {
			return fmt.Errorf("%w: run %d %s", ErrInUse, on[0].Run, on[0].Why)
		}
		return deleteRun(ctx, tx, run)
	})
}

// RemoveRuns is RemoveRun for runs that depend on each other, such as two that took one stage each
// from the other. It returns the runs that it removed: all but those that are not deleted, and those
// that a remaining run depends on.
func (db *DB) RemoveRuns(ctx context.Context, runs []int64) (removed []int64, err error) {
	err = db.writeDurable(ctx, "remove runs", func(tx *sql.Tx) error {
		if removed, err = removable(ctx, tx, runs); err != nil {
			return err
		}
		// Their rows refer to each other; SQLite checks references at the end. This lasts
		// until then.
		if _, err := tx.ExecContext(ctx, "PRAGMA defer_foreign_keys = ON"); err != nil {
			return err
		}
		for _, run := range removed {
			if err := deleteRun(ctx, tx, run); err != nil {
				return err
			}
		}
		return nil
	})
	return removed, err
}

// removable returns the deleted runs among some that no run outside the result depends on.
func removable(ctx context.Context, tx *sql.Tx, runs []int64) ([]int64, error) {
	list, err := json.Marshal(runs)
	if err != nil {
		return nil, err
	}
	left, err := query(ctx, tx, scanInt, `SELECT id FROM runs WHERE deleted IS NOT NULL
		AND id IN (SELECT value FROM json_each(?)) ORDER BY id`, string(list))
	if err != nil {
		return nil, err
	}
	depends, err := query(ctx, tx, scanDependency, dependencies)
	if err != nil {
		return nil, err
	}
	going := make(map[int64]bool, len(left))
	for _, run := range left {
		going[run] = true
	}
	for changed := true; changed; {
		changed = false
		for _, d := range depends {
			if going[d.On] && !going[d.Run] {
				going[d.On], changed = false, true
			}
		}
	}
	return slices.DeleteFunc(left, func(run int64) bool { return !going[run] }), nil
}

// deleteRun deletes a deleted run's rows, and its configuration if no other run has it.
func deleteRun(ctx context.Context, tx *sql.Tx, run int64) error {
	var config ident.Digest
	err := tx.QueryRowContext(ctx, `DELETE FROM runs WHERE id = ? AND deleted IS NOT NULL RETURNING config`,
		run).Scan(&config)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: the run is not deleted", ErrInUse)
	}
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx,
		`DELETE FROM configs WHERE digest = ?1 AND NOT EXISTS (SELECT 1 FROM runs WHERE config = ?1)`, config)
	return err
}

// RemoveBlobs removes the records of blobs that no run uses, and calls remove for each to
// delete its file. It does so in one transaction: no run can start using them meanwhile. It
// skips a blob in use, and a blob if remove returns ErrInUse.
func (db *DB) RemoveBlobs(ctx context.Context, digests []ident.Digest, remove func(ident.Digest) error) error {
	// Without unchecked, SQLite would search all samples for each blob row; neededBlobs
	// searches once for all.
	return db.transact(ctx, "remove blobs", how{unchecked: true}, func(tx *sql.Tx) error {
		needed, err := neededBlobs(ctx, tx)
		if err != nil {
			return err
		}
		for _, d := range digests {
			used := needed[d]
			if !used {
				if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM stage_io WHERE digest = ?)`,
					d).Scan(&used); err != nil {
					return err
				}
			}
			if used {
				continue
			}
			if err := remove(d); errors.Is(err, ErrInUse) {
				continue
			} else if err != nil {
				return err
			}
			for _, text := range []string{`DELETE FROM sources WHERE archive = ?`,
				`DELETE FROM blobs WHERE digest = ?`} {
				if _, err := tx.ExecContext(ctx, text, d); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// neededBlobs returns the blobs referred to by anything except stage inputs and outputs.
func neededBlobs(ctx context.Context, tx *sql.Tx) (map[ident.Digest]bool, error) {
	list, err := query(ctx, tx, func(r *sql.Rows) (d ident.Digest, err error) {
		err = r.Scan(&d)
		return d, err
	}, `SELECT pack FROM samples WHERE pack IS NOT NULL
		UNION SELECT digest FROM artifacts
		UNION SELECT digest FROM suites
		UNION SELECT archive FROM sources WHERE code IN (SELECT code FROM stages UNION SELECT code FROM runs)`)
	needed := make(map[ident.Digest]bool, len(list))
	for _, d := range list {
		needed[d] = true
	}
	return needed, err
}

// ForgetTexts clears the references of training samples to packs, so that the packs can
// be removed; the rest of the samples stays. Samples of evaluations keep their packs.
func (db *DB) ForgetTexts(ctx context.Context, packs []ident.Digest) error {
	return db.write(ctx, "forget texts of samples", func(tx *sql.Tx) error {
		drop := make(map[ident.Digest]bool, len(packs))
		for _, p := range packs {
			drop[p] = true
		}
		type at struct {
			id   int64
			pack ident.Digest
		}
		rows, err := query(ctx, tx, func(r *sql.Rows) (a at, err error) {
			err = r.Scan(&a.id, &a.pack)
			return a, err
		}, `SELECT id, pack FROM samples WHERE pack IS NOT NULL AND scope = 'train'`)
		if err != nil {
			return err
		}
		for _, a := range rows {
			if !drop[a.pack] {
				continue
			}
			if _, err := tx.ExecContext(ctx, `UPDATE samples SET pack = NULL, off = NULL, len = NULL WHERE id = ?`,
				a.id); err != nil {
				return err
			}
		}
		return nil
	})
}

// Unfinished returns the runs recorded as running, or with an attempt or stage recorded
// as running.
func (db *DB) Unfinished(ctx context.Context) ([]Run, error) {
	runs, err := query(ctx, db.r, newRunScanner().scan, `SELECT `+runColumns+` FROM runs r WHERE r.status = 'running'
		OR r.id IN (SELECT run FROM attempts WHERE status = 'running' UNION SELECT run FROM stages WHERE status = 'running') ORDER BY r.id`)
	return runs, db.fail("read running runs", err)
}

// CloseKilled marks a run and its running attempts and stages as interrupted. The caller
// holds the run's lock, so the process that executed the run is gone.
func (db *DB) CloseKilled(ctx context.Context, run int64) error {
	return db.write(ctx, fmt.Sprintf("close run %d", run), func(tx *sql.Tx) error {
		if err := endKilled(ctx, tx, run); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE runs SET status = 'interrupted',
			ended = (SELECT max(ended) FROM attempts WHERE run = ?1) WHERE id = ?1 AND status = 'running'`, run)
		return err
	})
}
