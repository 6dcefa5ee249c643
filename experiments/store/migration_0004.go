package store

import (
	"context"
	"database/sql"
	"fmt"
)

// migration0004 allows the status "stopped" of runs and attempts. SQLite has no statement
// that changes a CHECK, and copying runs would break the references to it, so this edits
// the stored text of the tables, as the section "Making Other Kinds Of Table Schema
// Changes" of its documentation of ALTER TABLE describes.
func migration0004(ctx context.Context, tx *sql.Tx) error {
	var version int
	if err := tx.QueryRowContext(ctx, `PRAGMA schema_version`).Scan(&version); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, fmt.Sprintf(`
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''failed'', ''interrupted'')', '''failed'', ''interrupted'', ''stopped'')')
	WHERE type = 'table' AND name IN ('runs', 'attempts');
PRAGMA schema_version = %d;
PRAGMA writable_schema = RESET;
`, version+1))
	return err
}
