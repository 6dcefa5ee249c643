package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// AddTag tags a run; twice is once.
func (db *DB) AddTag(ctx context.Context, run int64, tag string) error {
	return db.write(ctx, fmt.Sprintf("tag run %d", run), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO run_tags (run, tag) VALUES (?, ?) ON CONFLICT DO NOTHING`, run, tag)
		return err
	})
}

// RemoveTag takes a tag off a run; ErrNotFound if it is not on it.
func (db *DB) RemoveTag(ctx context.Context, run int64, tag string) error {
	return db.updateRun(ctx, "untag", run, `DELETE FROM run_tags WHERE run = ? AND tag = ?`, run, tag)
}

// Tags returns the tags of a run in the order of the alphabet.
func (db *DB) Tags(ctx context.Context, run int64) ([]string, error) {
	tags, err := query(ctx, db.r, scanText, `SELECT tag FROM run_tags WHERE run = ? ORDER BY tag`, run)
	return tags, db.fail("read tags", err)
}

// Note is a remark on a run.
type Note struct {
	Time time.Time
	Text string
}

// AddNote adds a remark to a run.
func (db *DB) AddNote(ctx context.Context, run int64, text string) error {
	return db.updateRun(ctx, "note on", run, `INSERT INTO run_notes (run, t, text) VALUES (?, ?, ?)`, run, db.now(), text)
}

// Notes returns the remarks on a run, oldest first.
func (db *DB) Notes(ctx context.Context, run int64) ([]Note, error) {
	notes, err := query(ctx, db.r, func(r *sql.Rows) (n Note, err error) {
		var t int64
		err = r.Scan(&t, &n.Text)
		n.Time = fromMilli(t)
		return n, err
	}, `SELECT t, text FROM run_notes WHERE run = ? ORDER BY id`, run)
	return notes, db.fail("read notes", err)
}
