package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"exp/experiments/ident"
)

// Verification is one check of a run's record, passed or failed.
type Verification struct {
	ID       int64
	Run      int64
	Attempt  int64     // 0 if none
	Time     time.Time // set by the store
	Level    string    // "blobs", "score", "sample", "prefix", "full": each includes the one before
	FromStep int64     // first training step that was executed again; 0 if none was
	ToStep   int64
	OK       bool
	Detail   json.RawMessage // checks and results, a JSON object
}

// levels lists the levels of a verification, ascending.
var levels = []string{"blobs", "score", "sample", "prefix", "full"}

// VerifiedNo is the result of Verified for a run whose record is wrong.
const VerifiedNo = "failed"

// Verified returns the highest level that a run's record passed. It returns
// VerifiedNo if the newest verification of some level failed and no later one of a higher
// level passed, and "" without verifications.
func Verified(list []Verification) string {
	newest := map[string]Verification{}
	for _, v := range list {
		newest[v.Level] = v
	}
	best := ""
	for i, l := range levels { // ascending; only a newer pass at a higher level overrides a failure
		v, ok := newest[l]
		switch {
		case !ok:
		case v.OK:
			best = l
		case !slices.ContainsFunc(levels[i:], func(above string) bool {
			return newest[above].OK &&
				newest[above].ID > v.ID
		}):
			return VerifiedNo
		}
	}
	return best
}

// AddVerification records a verification durably.
func (db *DB) AddVerification(ctx context.Context, v Verification) error {
	return db.writeDurable(ctx, "record verification", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO verifications (run, attempt, t, level, from_step, to_step, ok, detail)
			VALUES (?, nullif(?, 0), ?, ?, nullif(?, 0), nullif(?, 0), ?, ?)`,
			v.Run, v.Attempt, db.now(), v.Level, v.FromStep, v.ToStep, v.OK, orEmpty(string(v.Detail), "{}"))
		return err
	})
}

// Verifications returns the verifications of a run, oldest first.
func (db *DB) Verifications(ctx context.Context, run int64) ([]Verification, error) {
	return db.verifications(ctx, `WHERE run = ?`, run)
}

// AllVerifications returns the verifications of all runs, by run, oldest first.
func (db *DB) AllVerifications(ctx context.Context) (map[int64][]Verification, error) {
	all, err := db.verifications(ctx, ``)
	byRun := map[int64][]Verification{}
	for _, v := range all {
		byRun[v.Run] = append(byRun[v.Run], v)
	}
	return byRun, err
}

func (db *DB) verifications(ctx context.Context, where string, args ...any) ([]Verification, error) {
	all, err := query(ctx, db.r, func(r *sql.Rows) (v Verification, err error) {
		var t int64
		var detail string
		err = r.Scan(&v.ID, &v.Run, &v.Attempt, &t, &v.Level, &v.FromStep, &v.ToStep, &v.OK, &detail)
		v.Time, v.Detail = fromMilli(t), json.RawMessage(detail)
		return v, err
	}, `SELECT id, run, coalesce(attempt, 0), t, level, coalesce(from_step, 0), coalesce(to_step, 0), ok, detail
		FROM verifications `+where+` ORDER BY id`, args...)
	return all, db.fail("read verifications", err)
}

// BlobUse is a blob that a run's record needs.
type BlobUse struct {
	Use    string // "stage train: weights", "samples of train", "sources of train"
	Digest ident.Digest
	Size   int64
}

// BlobsOf returns the blobs that a run's record needs, each once: the outputs of its
// finished stages, the packs of its samples, its files, the sources of its stages, and
// the problems of the suites it was scored on. It omits what the run was imported without.
func (db *DB) BlobsOf(ctx context.Context, run int64) ([]BlobUse, error) {
	all, err := query(ctx, db.r, func(r *sql.Rows) (b BlobUse, err error) {
		err = r.Scan(&b.Use, &b.Digest, &b.Size)
		return b, err
	}, `WITH mine AS (SELECT * FROM stages WHERE run = ?1 AND status IN ('done', 'cached', 'repeated')),
		uses (part, place, use, digest, size) AS (
			SELECT 1, m.id, 'stage ' || rtrim(m.kind || ' ' || m.label) || ': ' || io.role, io.digest, coalesce(io.size, b.size)
				FROM mine m JOIN stage_io io ON io.stage = coalesce(m.reused_from, m.id) AND io.dir = 'out'
				LEFT JOIN blobs b ON b.digest = io.digest WHERE coalesce(io.size, b.size) IS NOT NULL
			UNION ALL
			SELECT 2, min(m.id), 'samples of ' || rtrim(m.kind || ' ' || m.label), s.pack, b.size
				FROM stages m JOIN samples s ON s.stage = m.home JOIN blobs b ON b.digest = s.pack WHERE m.run = ?1 GROUP BY s.pack
			UNION ALL
			SELECT 3, a.id, 'file ' || a.name, a.digest, b.size FROM artifacts a JOIN blobs b ON b.digest = a.digest WHERE a.run = ?1
			UNION ALL
			SELECT 4, m.id, 'sources of ' || m.kind, s.archive, b.size
				FROM mine m JOIN sources s ON s.code = m.code JOIN blobs b ON b.digest = s.archive
			UNION ALL
			SELECT 5, u.id, 'problems of ' || u.name, u.digest, b.size
				FROM evals e JOIN suites u ON u.id = e.suite JOIN blobs b ON b.digest = u.digest WHERE e.run = ?1)
		SELECT use, digest, size FROM (SELECT *, row_number() OVER (PARTITION BY digest ORDER BY part, place, use) AS nth FROM uses)
		WHERE nth = 1 ORDER BY part, place, use`, run)
	return all, db.fail("read blobs of run", err)
}

// CheckStep compares a re-executed step with its record. field is the first field that
// differs, "" if none does. Equal chains with a different field mean that the
// record was changed after it was written; different chains mean a different trajectory,
// and set diverged. ErrNotFound: the step is not recorded.
func (db *DB) CheckStep(ctx context.Context, run int64, s *Step) (field string, diverged *DivergenceError, err error) {
	had, err := queryOne(ctx, db.r, scanStep, stepSelect+` WHERE run = ? AND step = ?`, run, s.Det.Step)
	if err == nil {
		had.Det.Metrics, err = detMetrics(ctx, db.r, run, s.Det.Step)
	}
	if err != nil {
		return "", nil, db.fail(fmt.Sprintf("read step %d", s.Det.Step), err)
	}
	field = string(had.Det.Differs(storedBits(s.Det)))
	if had.Chain == s.Chain {
		return field, nil, nil
	}
	id, err := rid(ctx, db.r, run)
	return field, &DivergenceError{RID: id, Step: s.Det.Step, Field: orEmpty(field, "chain"), Want: had.Chain,
		Got: s.Chain}, err
}

// AddDivergence records that repeated work gave a different result.
func (db *DB) AddDivergence(ctx context.Context, run, attempt int64, e *DivergenceError) error {
	return db.writeDurable(ctx, "record divergence", func(tx *sql.Tx) error {
		return db.addDivergence(ctx, tx, run, attempt, e)
	})
}
