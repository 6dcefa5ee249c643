package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"
)

// AddTag tags a run; tagging again has no effect.
func (db *DB) AddTag(ctx context.Context, run int64, tag string) error {
	return db.write(ctx, fmt.Sprintf("tag run %d", run), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO run_tags (run, tag) VALUES (?, ?) ON CONFLICT DO NOTHING`, run, tag)
		return err
	})
}

// RemoveTag removes a tag from a run; ErrNotFound if the run does not have it.
func (db *DB) RemoveTag(ctx context.Context, run int64, tag string) error {
	return db.updateRun(ctx, "untag", run, `DELETE FROM run_tags WHERE run = ? AND tag = ?`, run, tag)
}

// Tags returns the tags of a run, sorted.
func (db *DB) Tags(ctx context.Context, run int64) ([]string, error) {
	tags, err := query(ctx, db.r, scanText, `SELECT tag FROM run_tags WHERE run = ? ORDER BY tag`, run)
	return tags, db.fail("read tags", err)
}

// Note is a remark on a run.
type Note struct {
	ID   int64     `json:"-"` // counts up within the store
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// AddNote adds a remark to a run.
func (db *DB) AddNote(ctx context.Context, run int64, text string) error {
	return db.updateRun(ctx, "note on", run, `INSERT INTO run_notes (run, t, text) VALUES (?, ?, ?)`, run,
		db.now(), text)
}

// Notes returns the remarks on a run, oldest first.
func (db *DB) Notes(ctx context.Context, run int64) ([]Note, error) {
	notes, err := query(ctx, db.r, func(r *sql.Rows) (n Note, err error) {
		var t int64
		err = r.Scan(&n.ID, &t, &n.Text)
		n.Time = fromMilli(t)
		return n, err
	}, `SELECT id, t, text FROM run_notes WHERE run = ? ORDER BY id`, run)
	return notes, db.fail("read notes", err)
}

// RemoveNote removes a remark from a run; ErrNotFound if the run does not have it.
func (db *DB) RemoveNote(ctx context.Context, run, id int64) error {
	return db.updateRun(ctx, "remove note of", run, `DELETE FROM run_notes WHERE run = ? AND id = ?`, run, id)
}

// A pin is a tag, so it shows wherever tags do: PinTag protects a whole run from being
// collected, PinTag@STEP one checkpoint.
const PinTag = "pinned"

// NameTag returns the tag of a run that was run again under another name. It keeps its
// own name; the other finds it while no run has it.
func NameTag(name string) string { return nameTag + name }

// nameTag begins the tags that are names.
const nameTag = "name:"

// OtherNames returns the names, sorted, that find each run besides its own (NameTag).
func (db *DB) OtherNames(ctx context.Context) (map[int64][]string, error) {
	tags, err := query(ctx, db.r, func(r *sql.Rows) (t RunTag, err error) {
		err = r.Scan(&t.Run, &t.Tag)
		return t, err
	}, `SELECT run, tag FROM run_tags WHERE tag >= ? AND tag < ? AND NOT EXISTS (SELECT 1 FROM runs
		WHERE name = substr(tag, ?) AND deleted IS NULL) ORDER BY run, tag`, nameTag,
		strings.TrimSuffix(nameTag, ":")+";", len(nameTag)+1)
	names := map[int64][]string{}
	for _, t := range tags {
		names[t.Run] = append(names[t.Run], strings.TrimPrefix(t.Tag, nameTag))
	}
	return names, db.fail("read names", err)
}

// CheckpointPin returns the tag that pins the checkpoint of a step.
func CheckpointPin(step int64) string { return fmt.Sprintf("%s@%d", PinTag, step) }

// KeepsCheckpoint reports whether the tags of a run pin its checkpoint of a step.
func KeepsCheckpoint(tags []string, step int64) bool {
	return slices.Contains(tags, PinTag) || slices.Contains(tags, CheckpointPin(step))
}

// RunTag is a tag on a run.
type RunTag struct {
	Run int64
	Tag string
}

// AllTags returns the tags of all runs, deleted ones included.
func (db *DB) AllTags(ctx context.Context) ([]RunTag, error) {
	tags, err := query(ctx, db.r, func(r *sql.Rows) (t RunTag, err error) {
		err = r.Scan(&t.Run, &t.Tag)
		return t, err
	}, `SELECT run, tag FROM run_tags ORDER BY run, tag`)
	return tags, db.fail("read tags", err)
}
