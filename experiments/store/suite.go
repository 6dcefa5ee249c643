package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"exp/experiments/ident"
)

// Suite is a set of problems for evaluation, identified by the digest of its content.
type Suite struct {
	ID      int64 // set by the store
	Digest  ident.Digest
	Name    string // "countdown/test"
	Version string
	Scorer  string // grader and version, "countdown/1"
	License string // of the problems; may be empty
	Asking  string // how it is asked by default, as JSON; empty: as it is
	Items   []Item // read back by DB.Items only
	// The following are read only.
	N     int64 // items
	Size  int64 // bytes of the blob of its problems, which has its digest; 0 without one
	Evals int64 // runs that were scored on it
}

// Item is a problem of a suite.
type Item struct {
	ID      string
	Cluster string // groups problems that are not independent; empty: the problem alone
	// Difficulty is on the suite's own scale; NaN if unknown.
	Difficulty float64
}

// EnsureSuite returns the id of the suite with s's digest, creating it with its items if
// needed.
func (db *DB) EnsureSuite(ctx context.Context, s Suite) (id int64, err error) {
	err = db.write(ctx, "record suite "+s.Name, func(tx *sql.Tx) error {
		id, err = ensureSuite(ctx, tx, s)
		return err
	})
	return id, err
}

func ensureSuite(ctx context.Context, tx *sql.Tx, s Suite) (int64, error) {
	known, err := query(ctx, tx, scanInt, `SELECT id FROM suites WHERE digest = ?`, s.Digest)
	if err != nil || len(known) == 1 {
		return first(known), err
	}
	id, err := queryOne(ctx, tx, scanInt, `INSERT INTO suites (digest, name, version, scorer, license, n_items, asking)
		VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`, s.Digest, s.Name, s.Version, s.Scorer, s.License, len(s.Items),
		s.Asking)
	if err != nil {
		return 0, err
	}
	return id, insertItems(ctx, tx, id, s.Items)
}

func insertItems(ctx context.Context, tx *sql.Tx, suite int64, items []Item) error {
	for _, item := range items {
		_, err := tx.ExecContext(ctx, `INSERT INTO items (suite, item, cluster, difficulty) VALUES (?, ?, ?, ?)`,
			suite, item.ID, item.Cluster, item.Difficulty)
		if err != nil {
			return fmt.Errorf("item %q: %w", item.ID, err)
		}
	}
	return nil
}

// AddSuite records a suite whose problems are in the blob with the suite's digest, which must exist with that size.
// If these are the problems of runs themselves, their row becomes the suite's. Another existing suite stays
// unchanged; the caller checks its name.
func (db *DB) AddSuite(ctx context.Context, s Suite, size int64) (id int64, err error) {
	err = db.write(ctx, "record suite "+s.Name, func(tx *sql.Tx) error {
		if err := db.addBlob(ctx, tx, s.Digest, size, "suite"); err != nil {
			return err
		}
		if id, err = ensureSuite(ctx, tx, s); err != nil {
			return err
		}
		return takeOver(ctx, tx, id, s)
	})
	return id, err
}

// OfRuns reports whether a suite holds the problems of runs themselves, such as countdown/test. They have the version
// of their task's scorer: countdown/1.
func (s *Suite) OfRuns() bool { return strings.Contains(s.Scorer, "/") }

// takeOver gives row id the record s if it holds the problems of runs themselves. Their scores keep their names
// (suiteOf).
func takeOver(ctx context.Context, tx *sql.Tx, id int64, s Suite) error {
	res, err := tx.ExecContext(ctx, `UPDATE suites SET name = ?, version = ?, scorer = ?, license = ?, n_items = ?,
		asking = ? WHERE id = ? AND instr(scorer, '/') > 0`, s.Name, s.Version, s.Scorer, s.License, len(s.Items),
		s.Asking, id)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM items WHERE suite = ?`, id); err != nil {
		return err
	}
	return insertItems(ctx, tx, id, s.Items)
}

// Suites returns all suites, without their items, in recording order.
func (db *DB) Suites(ctx context.Context) ([]Suite, error) {
	all, err := query(ctx, db.r, func(r *sql.Rows) (s Suite, err error) {
		err = r.Scan(&s.ID, &s.Digest, &s.Name, &s.Version, &s.Scorer, &s.License, &s.Asking, &s.N, &s.Size,
			&s.Evals)
		return s, err
	}, `SELECT u.id, u.digest, u.name, u.version, u.scorer, u.license, u.asking, u.n_items, coalesce(b.size, 0),
			(SELECT count(DISTINCT e.run) FROM evals e WHERE e.suite = u.id)
		FROM suites u LEFT JOIN blobs b ON b.digest = u.digest ORDER BY u.id`)
	return all, db.fail("read suites", err)
}

// RemoveSuite removes a suite and its items, but not the blob of its problems. The error
// is ErrNotFound if the suite does not exist, ErrInUse if runs were scored on it or with its examples.
func (db *DB) RemoveSuite(ctx context.Context, id int64) error {
	return db.write(ctx, fmt.Sprintf("remove suite %d", id), func(tx *sql.Tx) error {
		n, err := queryOne(ctx, tx, scanInt, `SELECT (SELECT count(*) FROM evals WHERE suite = ?1) +
			(SELECT count(*) FROM stage_io io JOIN suites u ON u.digest = io.digest WHERE u.id = ?1 AND io.role = ?2)`,
			id, examplesRole)
		if err != nil {
			return err
		}
		if n > 0 {
			return fmt.Errorf("%w by %d scores", ErrInUse, n)
		}
		return execOne(ctx, tx, `DELETE FROM suites WHERE id = ?`, id)
	})
}
