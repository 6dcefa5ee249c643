package store

import (
	"context"
	"database/sql"
	"time"
)

// Watch calls changed after other connections, of any process, have committed to the
// database; it looks every so often, until ctx ends or the database cannot be read.
// Changes that come close together are one call.
func (db *DB) Watch(ctx context.Context, every time.Duration, changed func()) error {
	conn, err := db.r.Conn(ctx) // the counter belongs to a connection
	if err != nil {
		return db.fail("watch store", err)
	}
	defer conn.Close()
	tick := time.NewTicker(every)
	defer tick.Stop()
	seen, err := dataVersion(ctx, conn)
	for err == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := seen
		if now, err = dataVersion(ctx, conn); err == nil && now != seen {
			seen = now
			changed()
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return db.fail("watch store", err)
}

func dataVersion(ctx context.Context, conn *sql.Conn) (n int64, err error) {
	err = conn.QueryRowContext(ctx, `PRAGMA data_version`).Scan(&n)
	return n, err
}
