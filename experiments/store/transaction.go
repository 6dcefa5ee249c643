package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/mattn/go-sqlite3"
)

// write runs fn in one exclusive write transaction and commits it if fn returns nil. A
// power cut may lose the whole transaction, never half of it.
func (db *DB) write(ctx context.Context, op string, fn func(tx *sql.Tx) error) error {
	return db.transact(ctx, op, how{}, fn)
}

// writeDurable is write for a transaction that must survive a power cut once it returns;
// all earlier ones then survive too, since they share the log.
func (db *DB) writeDurable(ctx context.Context, op string, fn func(tx *sql.Tx) error) error {
	return db.transact(ctx, op, how{durable: true}, fn)
}

// how configures a transaction.
type how struct {
	durable   bool // survives a power cut
	unchecked bool // fn keeps references between tables intact
}

func (db *DB) transact(ctx context.Context, op string, h how, fn func(tx *sql.Tx) error) error {
	if db.w == nil {
		return db.fail(op, ErrReadOnly)
	}
	conn, err := db.w.Conn(ctx)
	if err != nil {
		return db.fail(op, err)
	}
	defer conn.Close()
	if h.durable && !db.rollback {
		// The setting belongs to the connection and cannot change inside a transaction.
		// There is one writing connection, so no other transaction sees it.
		if _, err := conn.ExecContext(ctx, "PRAGMA synchronous = FULL"); err != nil {
			return db.fail(op, err)
		}
		defer conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA synchronous = NORMAL")
	}
	if h.unchecked { // also a setting of the connection
		if _, err := conn.ExecContext(ctx, "PRAGMA foreign_keys = OFF"); err != nil {
			return db.fail(op, err)
		}
		defer conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA foreign_keys = ON")
	}
	tx, err := db.begin(ctx, conn)
	if err != nil {
		return db.fail(op, err)
	}
	// Also when fn panics, or closing the connection would wait for ever. Once
	// committed there is nothing to roll back; if it fails, SQLite does it itself.
	defer tx.Rollback()
	if err := fn(tx); err != nil {
		return db.fail(op, err)
	}
	return db.fail(op, tx.Commit())
}

// begin waits for the lock and begins a transaction.
func (db *DB) begin(ctx context.Context, conn *sql.Conn) (tx *sql.Tx, err error) {
	err = db.patiently(ctx, func() error {
		tx, err = conn.BeginTx(ctx, nil)
		return err
	})
	return tx, err
}

// patiently retries an operation that needs a lock for at most db.lockWait.
func (db *DB) patiently(ctx context.Context, do func() error) error {
	for start := time.Now(); ; {
		err := do()
		if !isBusy(err) || ctx.Err() != nil {
			return err
		}
		if waited := time.Since(start); waited > db.lockWait {
			return fmt.Errorf("no lock within %s: %w", waited.Round(time.Millisecond), err)
		}
		time.Sleep(time.Millisecond) // some locks fail at once
	}
}

func isBusy(err error) bool {
	var s sqlite3.Error
	return errors.As(err, &s) && (s.Code == sqlite3.ErrBusy || s.Code == sqlite3.ErrLocked)
}

// querier is a pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// query returns all rows of a query.
func query[T any](ctx context.Context, q querier, scan func(*sql.Rows) (T, error), text string,
	args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// queryOne returns the only row of a query, or ErrNotFound.
func queryOne[T any](ctx context.Context, q querier, scan func(*sql.Rows) (T, error), text string,
	args ...any) (T, error) {
	all, err := query(ctx, q, scan, text, args...)
	if err != nil || len(all) == 1 {
		return first(all), err
	}
	if len(all) == 0 {
		return first(all), ErrNotFound
	}
	return first(all), fmt.Errorf("%d rows where one was expected", len(all))
}

func first[T any](all []T) (v T) {
	if len(all) > 0 {
		v = all[0]
	}
	return v
}
