package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// migration0004 allows the status "stopped" of runs and attempts. SQLite has no statement
// that changes a CHECK, and copying runs would break the references to it, so this edits
// the stored text of the tables, as the section "Making Other Kinds Of Table Schema
// Changes" of its documentation of ALTER TABLE describes.
func migration0004(ctx context.Context, tx *sql.Tx) (err error) {
	var version int
	if err := tx.QueryRowContext(ctx, `PRAGMA schema_version`).Scan(&version); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `PRAGMA writable_schema = ON`); err != nil {
		return err
	}
	defer func() {
		if err != nil { // the setting outlives the transaction
			_, off := tx.ExecContext(context.WithoutCancel(ctx), `PRAGMA writable_schema = OFF`)
			err = errors.Join(err, off)
		}
	}()
	const old, now = `''failed'', ''interrupted'')`, `''failed'', ''interrupted'', ''stopped'')`
	done, err := tx.ExecContext(ctx, `UPDATE sqlite_schema SET sql = replace(sql, '`+old+`', '`+now+`')
		WHERE type = 'table' AND name IN ('runs', 'attempts') AND instr(sql, '`+old+`')`)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n != 2 {
		return errors.Join(fmt.Errorf("%d of the tables runs and attempts list the statuses as expected, not both",
			n), err)
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf(`PRAGMA schema_version = %d; PRAGMA writable_schema = RESET`, version+1))
	return err
}
