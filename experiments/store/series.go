package store

import (
	"context"
	"database/sql"
)

// Series is a metric of a run over its steps, with its summary. Summaries are updated as
// steps are written, so lists and filters read no points.
type Series struct {
	ID       int64   `json:"-"`
	Run      int64   `json:"-"`
	Name     string  `json:"name"`
	Unit     string  `json:"unit"` // "s", "tokens"; may be empty
	Det      bool    `json:"-"`    // deterministic: part of the chain
	N        int64   `json:"n"`    // points
	Last     float64 `json:"last"`
	LastStep int64   `json:"last_step"`
	Min      float64 `json:"min"` // of all points that are not NaN, or NaN
	Max      float64 `json:"max"`
	ArgMin   int64   `json:"-"` // first step with Min
	ArgMax   int64   `json:"-"`
}

// Series returns the series of a run whose name matches glob (* any characters,
// ? one, [ab] a set; "" is all), by name.
func (db *DB) Series(ctx context.Context, run int64, glob string) ([]Series, error) {
	all, err := query(ctx, db.r, scanSeries, seriesSelect+` WHERE run = ? AND name GLOB ? ORDER BY name`, run,
		orEmpty(glob, "*"))
	return all, db.fail("read series", err)
}

const seriesSelect = `SELECT id, run, name, unit, det, n, last, coalesce(last_step, 0), min, max, coalesce(argmin, 0), coalesce(argmax, 0) FROM series`

func scanSeries(r *sql.Rows) (s Series, err error) {
	err = r.Scan(&s.ID, &s.Run, &s.Name, &s.Unit, &s.Det, &s.N, number{&s.Last}, &s.LastStep, number{&s.Min},
		number{&s.Max}, &s.ArgMin, &s.ArgMax)
	return s, err
}

// seriesID returns the id of the writer's series of that name, creating it if it is new.
func (w *StepWriter) seriesID(ctx context.Context, tx *sql.Tx, name string, det bool) (int64, error) {
	if id, ok := w.series[name]; ok {
		return id, nil
	}
	unit := ""
	if w.unit != nil {
		unit = w.unit(name)
	}
	const insert = `INSERT INTO series (run, name, unit, det) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`
	if _, err := tx.ExecContext(ctx, insert, w.run, name, unit, det); err != nil {
		return 0, err
	}
	id, err := queryOne(ctx, tx, scanInt, `SELECT id FROM series WHERE run = ? AND name = ?`, w.run, name)
	if err == nil {
		// If this transaction fails, the writer writes no other.
		w.series[name] = id
	}
	return id, err
}

// summarise updates the summaries of a run's series with the points of one step, which
// must be the only new ones.
func summarise(ctx context.Context, tx *sql.Tx, run, step int64) error {
	_, err := tx.ExecContext(ctx, summarisePoints, run, step)
	return err
}

// summariseNamed does so with the points of the series whose names are in a JSON list.
func summariseNamed(ctx context.Context, tx *sql.Tx, run, step int64, names string) error {
	_, err := tx.ExecContext(ctx, summarisePoints+` AND series.name IN (SELECT value FROM json_each(?))`,
		run, step, names)
	return err
}

// summarisePoints takes a run and a step.
const summarisePoints = `UPDATE series SET
			n = n + 1,
			last = iif(last_step > m.step, last, m.value),
			last_step = max(coalesce(last_step, m.step), m.step),
			argmin = iif(min IS NULL AND m.value IS NOT NULL OR m.value < min, m.step, argmin),
			argmax = iif(max IS NULL AND m.value IS NOT NULL OR m.value > max, m.step, argmax),
			min = coalesce(min(min, m.value), min, m.value),
			max = coalesce(max(max, m.value), max, m.value)
		FROM metrics m WHERE m.run = ? AND m.step = ? AND series.id = m.series`
