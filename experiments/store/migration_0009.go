package store

import (
	"context"
	"database/sql"
)

// migration0009 keeps how a suite is asked by default.
func migration0009(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `ALTER TABLE suites ADD COLUMN asking TEXT NOT NULL DEFAULT ''`)
	return err
}
