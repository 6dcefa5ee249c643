package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/mattn/go-sqlite3"
)

// ErrSQL means that the user's SQL is invalid or does more than read.
var ErrSQL = errors.New("sql")

// SQL runs a user's read-only statement: it may not access other files, change settings
// or call functions that reach outside the database. It returns the names of the columns
// and calls row with the values of each row: nil, int64, float64, string or []byte.
// Errors of the statement wrap ErrSQL.
func (db *DB) SQL(ctx context.Context, text string, row func(columns []string, values []any) error) ([]string, error) {
	conn, err := db.r.Conn(ctx)
	if err != nil {
		return nil, db.fail("query", err)
	}
	defer conn.Close()
	var refused string
	if err := conn.Raw(func(c any) error {
		c.(*sqlite3.SQLiteConn).RegisterAuthorizer(func(action int, a, b, _ string) int {
			return authorize(action, a,
				b, &refused)
		})
		return nil
	}); err != nil {
		return nil, db.fail("query", err)
	}
	defer conn.Raw(func(c any) error {
		c.(*sqlite3.SQLiteConn).RegisterAuthorizer(nil)
		return nil
	})
	rows, err := conn.QueryContext(ctx, text)
	if err != nil {
		return nil, db.sqlError(ctx, err, refused)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, db.sqlError(ctx, err, refused)
	}
	values := make([]any, len(columns))
	dest := make([]any, len(columns))
	for i := range values {
		dest[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return columns, db.sqlError(ctx, err, refused)
		}
		if err := row(columns, values); err != nil {
			return columns, err
		}
	}
	if err := rows.Err(); err != nil {
		return columns, db.sqlError(ctx, err, refused)
	}
	return columns, nil
}

// authorize is SQLite's callback for every action of a statement. The numbers are from
// sqlite3.h, as the driver names only some.
func authorize(action int, a, b string, refused *string) int {
	const function, recursive = 31, 33
	switch action {
	case sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, recursive:
		return sqlite3.SQLITE_OK
	case function:
		if b != "load_extension" {
			return sqlite3.SQLITE_OK
		}
	case sqlite3.SQLITE_PRAGMA:
		switch strings.ToLower(a) {
		case "table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list",
			"user_version",
			"page_count", "page_size", "freelist_count", "compile_options", "function_list", "quick_check",
			"integrity_check", "foreign_key_check":
			return sqlite3.SQLITE_OK
		}
		*refused = "PRAGMA " + a + " may do more"
	}
	if *refused == "" {
		*refused = "this would change it or reach outside it"
	}
	return sqlite3.SQLITE_DENY
}

// sqlError separates mistakes in the statement from store errors.
func (db *DB) sqlError(ctx context.Context, err error, refused string) error {
	var s sqlite3.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &s) && s.Code == sqlite3.ErrAuth:
		return fmt.Errorf("%w: the store is read-only here; %s", ErrSQL, refused)
	case errors.As(err, &s) && (s.Code == sqlite3.ErrError || s.Code == sqlite3.ErrReadonly ||
		s.Code == sqlite3.ErrMisuse || s.Code == sqlite3.ErrRange || s.Code == sqlite3.ErrTooBig):
		return fmt.Errorf("%w: %v", ErrSQL, err)
	}
	return db.fail("query", err)
}

// TableColumn is a column of a table or view in the database.
type TableColumn struct {
	Table  string
	Kind   string // "table" or "view"
	Name   string
	Type   string // INTEGER, TEXT, …; empty where a view computes it
	Key    bool   // part of the primary key
	RefsTo string // the table that it points to; may be empty
}

// TableColumns returns the columns of all tables and views, tables first, in creation
// order.
func (db *DB) TableColumns(ctx context.Context) ([]TableColumn, error) {
	all, err := query(ctx, db.r, func(r *sql.Rows) (c TableColumn, err error) {
		err = r.Scan(&c.Table, &c.Kind, &c.Name, &c.Type, &c.Key, &c.RefsTo)
		return c, err
	}, `SELECT t.name, t.type, c.name, c.type, c.pk > 0, coalesce((SELECT f."table" FROM pragma_foreign_key_list(t.name) f WHERE f."from" = c.name), '')
		FROM sqlite_schema t JOIN pragma_table_info(t.name) c
		WHERE t.type IN ('table', 'view') AND t.name NOT LIKE 'sqlite%' ORDER BY t.type, t.rowid, c.cid`)
	return all, db.fail("read schema", err)
}
