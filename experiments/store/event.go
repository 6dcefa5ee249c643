package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"
)

// Level is the severity of an event.
type Level string

const (
	LevelDebug Level = "debug"
	LevelInfo  Level = "info"
	LevelWarn  Level = "warn"
	LevelError Level = "error"
)

// Event is something other than a metric that happened in a run.
type Event struct {
	ID      int64 // set by the store
	Run     int64
	Attempt int64     // 0 if none
	Time    time.Time // set by the store
	Level   Level
	Kind    string          // "nan", "checkpoint", "store_wait"
	Data    json.RawMessage // a JSON object; nil is {}
}

// AddEvent records an event. Events of a step are recorded with the step.
func (db *DB) AddEvent(ctx context.Context, e Event) error {
	return db.write(ctx, fmt.Sprintf("record event %s", e.Kind), func(tx *sql.Tx) error {
		return insertEvent(ctx, tx, e, db.now())
	})
}

func insertEvent(ctx context.Context, tx *sql.Tx, e Event, t int64) error {
	_, err := tx.ExecContext(ctx,
		`INSERT INTO events (run, attempt, t, level, kind, data) VALUES (?, nullif(?, 0), ?, ?, ?, ?)`,
		e.Run, e.Attempt, t, e.Level, e.Kind, orEmpty(string(e.Data), "{}"))
	return err
}

// Events returns the events of a run with an id greater than after, in recording order: 0
// returns all events, the id of the last one only newer events.
func (db *DB) Events(ctx context.Context, run, after int64) ([]Event, error) {
	all, err := query(ctx, db.r, func(r *sql.Rows) (e Event, err error) {
		var t int64
		var data string
		err = r.Scan(&e.ID, &e.Run, &e.Attempt, &t, &e.Level, &e.Kind, &data)
		e.Time, e.Data = fromMilli(t), json.RawMessage(data)
		return e, err
	}, `SELECT id, run, coalesce(attempt, 0), t, level, kind, data FROM events WHERE run = ? AND id > ? ORDER BY id`,
		run, after)
	return all, db.fail("read events", err)
}
