package store

import (
	"context"
	"database/sql"
	"fmt"

	"exp/experiments/ident"
)

// addBlob records that a blob is in use. The file must already exist with that size, so
// every recorded blob is readable.
func (db *DB) addBlob(ctx context.Context, tx *sql.Tx, digest ident.Digest, size int64, kind string) error {
	got, err := db.Blobs.Stat(digest)
	if err != nil {
		return err
	}
	if got != size {
		return fmt.Errorf("blob %s has %d bytes, not %d", digest.Short(), got, size)
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO blobs (digest, size, kind, created) VALUES (?, ?, ?, ?)
		ON CONFLICT DO NOTHING`, digest, size, kind, db.now())
	if err != nil {
		return err
	}
	return fillOutputs(ctx, tx, digest, size)
}
