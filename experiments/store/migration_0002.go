package store

import (
	"context"
	"database/sql"
)

// migration0002 makes the table of verifications.
func migration0002(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `
CREATE TABLE verifications (
	id        INTEGER PRIMARY KEY,
	run       INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
	attempt   INTEGER REFERENCES attempts,
	t         INTEGER NOT NULL,
	level     TEXT NOT NULL CHECK (level IN ('blobs', 'score', 'prefix', 'full')),
	from_step INTEGER,
	to_step   INTEGER,
	ok        INTEGER NOT NULL CHECK (ok IN (0, 1)),
	detail    TEXT NOT NULL CHECK (json_valid(detail))
) STRICT;
CREATE INDEX verifications_run ON verifications (run);
CREATE INDEX verifications_attempt ON verifications (attempt);
`)
	return err
}
