package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net/url"
	"strconv"
	"time"

	"github.com/mattn/go-sqlite3"
)

// busyTimeout is the time SQLite itself waits for a lock; DB.patiently repeats that, so
// that a longer wait can be cancelled.
const busyTimeout = 5 * time.Second

// readers is the number of concurrent reading connections: reports read series of several
// runs at once, and each connection has a page cache of 2 MB.
const readers = 4

// statements is the number of prepared statements a connection keeps. A step uses six, a
// command a dozen.
const statements = 64

// connector opens connections to one database file with our settings. It replaces a data
// source name, so no driver is registered under a global name.
type connector struct {
	dsn    string
	driver *sqlite3.SQLiteDriver
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }

func (c connector) Driver() driver.Driver { return c.driver }

// NewForeign creates a SQLite file for another program's tables. It has no journal: if the
// process dies, the file is not complete.
func NewForeign(path string) (*sql.DB, error) {
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?mode=rwc&_journal_mode=OFF&_synchronous=OFF"
	db := sql.OpenDB(connector{dsn: dsn, driver: &sqlite3.SQLiteDriver{}})
	db.SetMaxOpenConns(1)
	return db, db.Ping()
}

// pool opens a set of connections to the database with params in addition to the common
// parameters.
func (db *DB) pool(params map[string]string, pragmas string, conns int) *sql.DB {
	q := url.Values{}
	q.Set("_busy_timeout", strconv.FormatInt(min(busyTimeout, db.lockWait).Milliseconds(), 10))
	q.Set("_foreign_keys", "on")
	q.Set("_stmt_cache_size", strconv.Itoa(statements))
	for k, v := range params {
		q.Set(k, v)
	}
	// The file name is percent-encoded: it may hold ? or #.
	dsn := "file:" + (&url.URL{Path: db.file}).EscapedPath() + "?" + q.Encode()
	conn := sql.OpenDB(connector{dsn: dsn, driver: &sqlite3.SQLiteDriver{
		ConnectHook: func(c *sqlite3.SQLiteConn) error {
			_, err := c.Exec("PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0; "+pragmas, nil)
			return err
		},
	}})
	conn.SetMaxOpenConns(conns)
	conn.SetMaxIdleConns(conns)
	return conn
}

// writerPool has exactly one connection. Its transactions take the write lock when they
// begin, so none can fail half-way for lack of it.
func (db *DB) writerPool(create bool) *sql.DB {
	params := map[string]string{"mode": "rw", "_txlock": "immediate", "_synchronous": "NORMAL", "_journal_mode": "WAL"}
	if create {
		params["mode"] = "rwc"
	}
	if db.rollback {
		// Without WAL: one process at a time, the database locked from the first access
		// on, every transaction synced.
		params["_journal_mode"], params["_synchronous"], params["_locking_mode"] = "DELETE", "FULL", "EXCLUSIVE"
	}
	return db.pool(params, "", 1)
}

// readerPool can only read. immutable is for a store in a read-only folder: it has no
// lock file, and nobody may be writing.
func (db *DB) readerPool(immutable bool) *sql.DB {
	params := map[string]string{"mode": "ro"}
	if immutable {
		params["immutable"] = "1"
	}
	return db.pool(params, "PRAGMA query_only = ON;", readers)
}
