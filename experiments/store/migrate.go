package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
)

// migration changes the schema from one version to the next, inside a transaction. Never
// edit a merged one: it has run on users' stores.
type migration func(ctx context.Context, tx *sql.Tx) error

// migrations[i] leads from version i to i+1; an empty database has version 0.
var migrations = []migration{
	migration0001,
	migration0002,
	migration0003,
	migration0004,
	migration0005,
	migration0006,
	migration0007,
	migration0008,
	migration0009,
}

// migrate brings the database to the last version. It first backs up a store that holds
// data. It creates a new store in one transaction: a concurrent reader finds no store
// rather than an old version.
func (db *DB) migrate(version int, list []migration) error {
	ctx := context.Background()
	if version == 0 {
		return db.migrateAtOnce(ctx, 0, list)
	}
	if version < len(list) {
		if err := db.backup(ctx, version); err != nil {
			return fmt.Errorf("backup before migration: %w", err)
		}
	}
	for v := version; v < len(list); v++ {
		if err := db.migrateAtOnce(ctx, v, list[v:v+1]); err != nil {
			return err
		}
	}
	return nil
}

// migrateAtOnce applies the migrations from a version on in one transaction.
func (db *DB) migrateAtOnce(ctx context.Context, version int, list []migration) error {
	return db.writeDurable(ctx, "migrate store", func(tx *sql.Tx) error {
		for i, m := range list {
			if err := applyOnce(ctx, tx, version+i, m); err != nil {
				return fmt.Errorf("migration to version %d: %w", version+i+1, err)
			}
		}
		return nil
	})
}

// applyOnce applies a migration unless another process already did.
func applyOnce(ctx context.Context, tx *sql.Tx, version int, m migration) error {
	var now int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&now); err != nil || now > version {
		return err
	}
	if err := m(ctx, tx); err != nil {
		return err
	}
	// Pragmas take no parameters.
	_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d",
		applicationID, version+1))
	return err
}

// backup copies the database to exp.db.v1.20260102T030405Z.bak. Nothing deletes the copy:
// only the user knows when it is no longer needed.
func (db *DB) backup(ctx context.Context, version int) error {
	dir := filepath.Join(db.dir, "tmp") // where a sweep finds what a killed process left
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, "backup-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // no effect after the rename
	if err := tmp.Close(); err != nil {
		return err
	}
	err = db.patiently(ctx, func() error {
		// An empty file may be overwritten, unlike any other.
		_, err := db.w.ExecContext(ctx, "VACUUM INTO ?", tmp.Name())
		return err
	})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s.v%d.%s.bak", db.file, version, db.clock().UTC().Format("20060102T150405Z"))
	return os.Rename(tmp.Name(), name)
}
