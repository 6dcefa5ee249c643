package store

import (
	"context"
	"database/sql"
)

// Bucket is the extent of a series over some steps.
type Bucket struct {
	From, To int64   // first and last step with a point
	N        int64   // points
	Min, Max float64 // of the points that are not NaN; NaN if all are
}

// Overview returns the series of a run of that name in at most n buckets of equal
// numbers of steps, ascending; buckets without a point are left out. It is what a
// display of n pixels needs; no point is too short to be seen in it. ErrNotFound if
// there is no such series. It panics if n is not positive.
func (db *DB) Overview(ctx context.Context, run int64, name string, n int64) ([]Bucket, error) {
	if n < 1 {
		panic("store: overview of no buckets")
	}
	// The summary has no first step; the points of a run lie by step, so the first
	// one is found at once.
	all, err := query(ctx, db.r, func(r *sql.Rows) (b Bucket, err error) {
		err = r.Scan(&b.From, &b.To, &b.N, number{&b.Min}, number{&b.Max})
		return b, err
	}, `WITH s AS (SELECT id, last_step AS last, (SELECT min(step) FROM metrics WHERE run = ?1) AS first FROM series WHERE run = ?1 AND name = ?2)
		SELECT min(m.step), max(m.step), count(*), min(m.value), max(m.value)
		FROM s JOIN metrics m ON m.run = ?1 AND m.series = s.id
		GROUP BY (m.step - s.first) / ((s.last - s.first) / ?3 + 1) ORDER BY 1`, run, name, n)
	if err == nil && len(all) == 0 {
		err = ErrNotFound
	}
	return all, db.fail("overview of "+name, err)
}
