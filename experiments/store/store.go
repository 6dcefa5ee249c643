package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"exp/experiments/blob"
	"exp/experiments/ident"
)

// applicationID marks the database file as ours ("EXP1"); file(1) shows it.
const applicationID = 0x45585031

// Options configures Open. The zero value opens an existing store for reading and
// writing.
type Options struct {
	// Create creates the directory and the database if needed.
	Create bool
	// ReadOnly opens the store for reading: it neither migrates nor locks, and works in a
	// read-only folder. It only undoes the transaction that a killed process left half written.
	ReadOnly bool
	// Rollback uses a rollback journal and an exclusive lock instead of WAL: one
	// process at a time, but safe on a network file system.
	Rollback bool
	// Clock returns the times to record; nil is time.Now. Several goroutines call it.
	Clock func() time.Time
	// LockWait is the time a write waits for other processes; 0 is a minute.
	LockWait time.Duration

	migrations []migration                      // nil: the package's; for tests
	networkFS  func(dir string) (string, error) // nil: networkFS
}

// DB is an open store, made by Open. It is safe for concurrent use.
type DB struct {
	// Blobs are the store's files by content.
	Blobs *blob.Dir

	dir      string
	file     string
	w        *sql.DB // one connection; nil if read-only
	r        *sql.DB
	rollback bool
	clock    func() time.Time
	lockWait time.Duration
}

// Open opens the store in dir. The error is a *VersionError or an *Error that wraps
// ErrNetwork, ErrCorrupt, ErrBusy, or, for a missing store without o.Create, ErrNoStore.
func Open(dir string, o Options) (*DB, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	db := &DB{
		Blobs:    blob.At(dir),
		dir:      dir,
		file:     filepath.Join(dir, "exp.db"),
		rollback: o.Rollback,
		clock:    o.Clock,
		lockWait: o.LockWait,
	}
	if db.clock == nil {
		db.clock = time.Now
	}
	if db.lockWait == 0 {
		db.lockWait = time.Minute
	}
	if o.networkFS == nil {
		o.networkFS = networkFS
	}
	if o.migrations == nil {
		o.migrations = migrations
	}
	if err := db.open(o); err != nil {
		db.Close()
		return nil, db.fail("open store", err)
	}
	return db, nil
}

func (db *DB) open(o Options) error {
	if err := db.find(o); err != nil {
		return err
	}
	// Blobs are created after the database, so blobs without tables mean a lost database.
	// Checking in this order keeps that true while another process creates the store.
	_, err := os.Stat(filepath.Join(db.dir, "blobs"))
	hadBlobs := err == nil
	version, err := db.inspect()
	if _, known := classify(err); errors.Is(known, ErrReadOnly) && (!o.ReadOnly || writable(db.dir)) {
		version, err = db.rollBack()
	}
	switch {
	case err != nil:
		return err
	case version == 0 && hadBlobs:
		return fmt.Errorf("%w: exp.db is empty but there are blobs", ErrCorrupt)
	case version > len(o.migrations), o.ReadOnly && version > 0 && version < len(o.migrations):
		return &VersionError{Path: db.file, Have: version, Want: len(o.migrations)}
	case o.ReadOnly && version == 0:
		return db.noStore()
	case o.ReadOnly:
		return nil
	}
	if err := db.refuseNetwork(o); err != nil {
		return err
	}
	db.w = db.writerPool(o.Create)
	if o.Rollback {
		db.r.Close()
		db.r = db.w // the exclusive lock admits one connection
	}
	// Connecting turns WAL on, which may have to wait for other processes that are
	// opening the store.
	if err := db.patiently(context.Background(), db.w.Ping); err != nil {
		if mountedReadOnly(db.dir) { // SQLite says that it cannot open the file
			return fmt.Errorf("%w: %s", ErrReadOnly, mountedSo)
		}
		return err
	}
	return db.migrate(version, o.migrations)
}

// find creates the directory if o.Create is set; otherwise it checks that the directory
// has a database.
func (db *DB) find(o Options) error {
	if o.Create && !o.ReadOnly {
		if err := os.MkdirAll(db.dir, 0o777); errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
			return &Error{Op: "open store", Path: db.dir, Err: fmt.Errorf("%w: %w", ErrPlace, err),
				Hint: "it is a link that leads nowhere, or lies where no folder can be made; name another with " +
					"--store DIR"}
		} else if err != nil {
			return err
		}
		if err := db.refuseNetwork(o); err != nil {
			return err
		}
		// SQLite would create the file too, but a reader may come first.
		f, err := os.OpenFile(db.file, os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			return db.readOnly(err)
		}
		return f.Close()
	}
	_, err := os.Stat(db.file)
	if errors.Is(err, fs.ErrNotExist) {
		return db.noStore()
	}
	return err
}

// readOnly says why the database is there but cannot be opened for writing. It returns other errors as they are.
func (db *DB) readOnly(err error) error {
	if _, e := os.Stat(db.file); e != nil {
		return err
	}
	switch {
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: %s", ErrReadOnly, mountedSo)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: the file exists, but its permissions do not let user %d open it for writing",
			ErrReadOnly, os.Geteuid())
	}
	return err
}

// mountedSo is why no file of a store can be written.
const mountedSo = "the file exists, but its file system is mounted read-only"

func (db *DB) noStore() error {
	return &Error{
		Op: "open store", Path: db.dir, Err: ErrNoStore,
		Hint: "exp run creates one; --store DIR names one elsewhere",
	}
}

func (db *DB) refuseNetwork(o Options) error {
	if o.Rollback {
		return nil
	}
	dir := db.dir
	if target, err := os.Readlink(db.file); err == nil { // the database may lie on a disk of its own
		if !filepath.IsAbs(target) {
			target = filepath.Join(db.dir, target)
		}
		dir = filepath.Dir(target)
	}
	name, err := o.networkFS(dir)
	if err != nil || name == "" {
		return err
	}
	return &Error{
		Op: "open store", Path: db.dir, Err: fmt.Errorf("%w (%s)", ErrNetwork, name),
		Hint: "use a local directory with --store DIR; or --store-journal=rollback, with one process at a time",
	}
}

// inspect opens the readers and returns the schema version, 0 for an empty database,
// without changing the file.
func (db *DB) inspect() (int, error) {
	db.r = db.readerPool(false)
	app, version, err := header(db.r)
	if err != nil && !writable(db.dir) {
		// Without write permission SQLite cannot make the lock file that WAL needs.
		if err := db.whole(); err != nil {
			return 0, err
		}
		db.r.Close()
		db.r = db.readerPool(true)
		app, version, err = header(db.r)
	}
	if err != nil {
		return 0, err
	}
	if app != applicationID && (app != 0 || version != 0) {
		return 0, fmt.Errorf("%w: the database belongs to another program (application id %#x)", ErrCorrupt, app)
	}
	return version, nil
}

// whole returns an error if exp.db without the files next to it is not the state of the store: a killed process
// left transactions in the log, or a journal of one that must be undone.
func (db *DB) whole() error {
	for _, suffix := range []string{"-wal", "-journal"} {
		if info, err := os.Stat(db.file + suffix); err == nil && info.Size() > 0 {
			return &Error{
				Op: "open store", Path: db.file + suffix,
				Err:  fmt.Errorf("%w, and a killed process left this file, which must be applied first", ErrReadOnly),
				Hint: "make the folder writable, or copy all of it to one that is",
			}
		}
	}
	return nil
}

// rollBack undoes what a killed process had half written, then inspects again. Readers may not touch a rollback
// journal. A store has one until WAL is turned on, and with Options.Rollback always.
func (db *DB) rollBack() (int, error) {
	db.r.Close()
	w := db.pool(map[string]string{"mode": "rw"}, "", 1)
	err := db.patiently(context.Background(), func() error {
		_, _, err := header(w)
		return err
	})
	if err := errors.Join(err, w.Close()); err != nil {
		return 0, err
	}
	return db.inspect()
}

// header reads the file's ids in one statement, since another process may be creating the
// store.
func header(pool *sql.DB) (app, version int, err error) {
	err = pool.QueryRow("SELECT application_id, user_version FROM pragma_application_id, pragma_user_version").Scan(
		&app, &version)
	return app, version, err
}

func writable(dir string) bool {
	f, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return false
	}
	f.Close()
	os.Remove(f.Name())
	return true
}

// Close closes the connections. Close StepWriters first.
func (db *DB) Close() error {
	var errs []error
	if db.r != nil && db.r != db.w {
		errs = append(errs, db.r.Close())
	}
	if db.w != nil {
		errs = append(errs, db.w.Close())
	}
	return db.fail("close store", errors.Join(errs...))
}

// Dir returns the store's absolute directory.
func (db *DB) Dir() string { return db.dir }

// RunDir returns the directory of a run's files. Its first writer creates it.
func (db *DB) RunDir(rid ident.Digest) string { return RunDir(db.dir, rid) }

// RunDir is DB.RunDir of the store in dir, which another process may have open.
func RunDir(dir string, rid ident.Digest) string { return filepath.Join(dir, "runs", rid.String()) }

// JudgeDir returns the directory of judges' answers in the store in dir. Its first writer creates it.
func JudgeDir(dir string) string { return filepath.Join(dir, "judge") }

// FilesystemInfo is a file system as Filesystem finds it.
type FilesystemInfo struct {
	Name    string // "ext4", "NFS"; empty if unknown
	Network bool   // SQLite's locks do not work on it: Open refuses it
	Free    int64  // free bytes; -1 if unknown
}

// Version is the schema version that this program reads and writes.
func Version() int { return len(migrations) }

// QuickCheck is Check without indexes and references between tables, in a fraction of the
// time. It stops with ctx's error when ctx ends.
func (db *DB) QuickCheck(ctx context.Context) error {
	findings, err := query(ctx, db.r, scanText, "PRAGMA quick_check(5)")
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && (len(findings) != 1 || findings[0] != "ok") {
		err = fmt.Errorf("%w: %q", ErrCorrupt, findings)
	}
	return db.fail("check store", err)
}

// Check runs SQLite's check of the whole database and all references between tables; it
// takes seconds per GB. For damage it returns an *Error that wraps ErrCorrupt and names
// the first findings.
func (db *DB) Check(ctx context.Context) error {
	findings, err := query(ctx, db.r, scanText, "PRAGMA integrity_check(5)")
	if err == nil && (len(findings) != 1 || findings[0] != "ok") {
		err = fmt.Errorf("%w: %q", ErrCorrupt, findings)
	}
	if err != nil {
		return db.fail("check store", err)
	}
	findings, err = query(ctx, db.r, scanText,
		`SELECT "table" || ' row ' || coalesce(rowid, '?') || ' misses ' || parent FROM pragma_foreign_key_check LIMIT 5`)
	if err == nil && len(findings) > 0 {
		err = fmt.Errorf("%w: %q", ErrCorrupt, findings)
	}
	return db.fail("check store", err)
}

func scanText(r *sql.Rows) (s string, err error) {
	err = r.Scan(&s)
	return s, err
}

// now returns the clock's time as stored: milliseconds since 1970 UTC.
func (db *DB) now() int64 { return db.clock().UnixMilli() }

// fromMilli converts a stored time; 0 is the zero time.
func fromMilli(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
