package store

import (
	"context"
	"database/sql"
	"fmt"

	"exp/experiments/ident"
)

// Suite is a set of problems for evaluation, by the digest of its content.
type Suite struct {
	ID      int64 // set by the store
	Digest  ident.Digest
	Name    string // "countdown/test"
	Version string
	Scorer  string // grader and version, "countdown/1"
	License string // of the problems; may be empty
	Items   []Item // read back by DB.Items only
}

// Item is a problem of a suite.
type Item struct {
	ID      string
	Cluster string // what it must not be counted independently of; empty is itself
	// Difficulty is on the suite's own scale; NaN if unknown.
	Difficulty float64
}

// EnsureSuite returns the id of the suite with s's digest, making it with its
// items if it is not there.
func (db *DB) EnsureSuite(ctx context.Context, s Suite) (id int64, err error) {
	err = db.write(ctx, "record suite "+s.Name, func(tx *sql.Tx) error {
		known, err := query(ctx, tx, scanInt, `SELECT id FROM suites WHERE digest = ?`, s.Digest)
		if err != nil || len(known) == 1 {
			id = first(known)
			return err
		}
		id, err = queryOne(ctx, tx, scanInt, `INSERT INTO suites (digest, name, version, scorer, license, n_items)
			VALUES (?, ?, ?, ?, ?, ?) RETURNING id`, s.Digest, s.Name, s.Version, s.Scorer, s.License, len(s.Items))
		if err != nil {
			return err
		}
		for _, item := range s.Items {
			_, err := tx.ExecContext(ctx, `INSERT INTO items (suite, item, cluster, difficulty) VALUES (?, ?, ?, ?)`,
				id, item.ID, item.Cluster, item.Difficulty)
			if err != nil {
				return fmt.Errorf("item %q: %w", item.ID, err)
			}
		}
		return nil
	})
	return id, err
}

// Items returns the items of a suite, by id.
func (db *DB) Items(ctx context.Context, suite int64) ([]Item, error) {
	all, err := query(ctx, db.r, func(r *sql.Rows) (i Item, err error) {
		err = r.Scan(&i.ID, &i.Cluster, number{&i.Difficulty})
		return i, err
	}, `SELECT item, cluster, difficulty FROM items WHERE suite = ? ORDER BY item`, suite)
	return all, db.fail("read items", err)
}
