package store

import (
	"context"
	"database/sql"
)

// migration0006 allows the level "sample" of verifications. Nothing refers to the table, so a copy takes its place.
func migration0006(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `
ALTER TABLE verifications RENAME TO old_verifications;
CREATE TABLE verifications (
	id        INTEGER PRIMARY KEY,
	run       INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
	attempt   INTEGER REFERENCES attempts,
	t         INTEGER NOT NULL,
	level     TEXT NOT NULL CHECK (level IN ('blobs', 'score', 'sample', 'prefix', 'full')),
	from_step INTEGER,
	to_step   INTEGER,
	ok        INTEGER NOT NULL CHECK (ok IN (0, 1)),
	detail    TEXT NOT NULL CHECK (json_valid(detail))
) STRICT;
INSERT INTO verifications SELECT id, run, attempt, t, level, from_step, to_step, ok, detail FROM old_verifications;
DROP TABLE old_verifications;
CREATE INDEX verifications_run ON verifications (run);
CREATE INDEX verifications_attempt ON verifications (attempt);
`)
	return err
}
