package store

import (
	"context"
	"database/sql"
	"errors"
)

// Bucket summarises a series over a range of steps.
type Bucket struct {
	From, To int64   // first and last step with a point
	N        int64   // points
	Min, Max float64 // of the points that are not NaN; NaN if all are
}

// Overview returns a run's series in at most n buckets with equal numbers of steps,
// ascending, without empty buckets. A display of n pixels needs no more, and every
// extreme stays visible. ErrNotFound if the series does not exist. It panics if n is not
// positive.
func (db *DB) Overview(ctx context.Context, run int64, name string, n int64) ([]Bucket, error) {
	if n < 1 {
		panic("store: overview of no buckets")
	}
	tx, err := db.r.BeginTx(ctx, nil)
	if err != nil {
		return nil, db.fail("overview of "+name, err)
	}
	defer tx.Rollback() // read only
	all, err := overview(ctx, tx, run, name, n)
	return all, db.fail("overview of "+name, err)
}

// overview queries one bucket after the other. Points are stored by step, so each query
// reads only its own; grouping all points in one statement would sort them first.
func overview(ctx context.Context, tx *sql.Tx, run int64, name string, n int64) ([]Bucket, error) {
	var series, first, last int64
	err := tx.QueryRowContext(ctx, `SELECT id, coalesce((SELECT min(step) FROM metrics WHERE run = ?1), 0), coalesce(last_step, -1)
		FROM series WHERE run = ?1 AND name = ?2`, run, name).Scan(&series, &first, &last)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	one, err := tx.PrepareContext(ctx, `SELECT
			coalesce((SELECT step FROM metrics WHERE run = ?1 AND step BETWEEN ?2 AND ?3 AND series = ?4 ORDER BY step LIMIT 1), 0),
			coalesce((SELECT step FROM metrics WHERE run = ?1 AND step BETWEEN ?2 AND ?3 AND series = ?4 ORDER BY step DESC LIMIT 1), 0),
			count(*), min(value), max(value)
		FROM metrics WHERE run = ?1 AND step BETWEEN ?2 AND ?3 AND series = ?4`)
	if err != nil {
		return nil, err
	}
	defer one.Close()
	var all []Bucket
	width := (last-first)/n + 1
	for at := first; at <= last; {
		var b Bucket
		end := at - (at-first)%width + width - 1
		if err := one.QueryRowContext(ctx, run, at, end, series).Scan(&b.From, &b.To, &b.N, number{&b.Min},
			number{&b.Max}); err != nil {
			return nil, err
		}
		if at = end + 1; b.N > 0 {
			all = append(all, b)
			continue
		}
		// Empty: skip to the next point.
		next, err := query(ctx, tx, scanInt,
			`SELECT step FROM metrics WHERE run = ? AND step > ? AND series = ? ORDER BY step LIMIT 1`, run,
			end, series)
		if err != nil || len(next) == 0 {
			return all, err
		}
		at = next[0]
	}
	if len(all) == 0 {
		return nil, ErrNotFound
	}
	return all, nil
}
