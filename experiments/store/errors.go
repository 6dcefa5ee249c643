package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/mattn/go-sqlite3"

	"exp/experiments/ident"
)

// Errors that this package wraps, for errors.Is.
var (
	// ErrNotFound means that a requested row does not exist.
	ErrNotFound = errors.New("not found")
	// ErrNoStore means that a directory has no store.
	ErrNoStore = errors.New("no store here")
	// ErrCorrupt means that the database is damaged or belongs to another program.
	ErrCorrupt = errors.New("damaged or not a store")
	// ErrBusy means that another process held the database or a run for longer than
	// Options.LockWait.
	ErrBusy = errors.New("locked by another process")
	// ErrFull means that the disk is full; it wraps syscall.ENOSPC.
	ErrFull = fmt.Errorf("disk full: %w", syscall.ENOSPC)
	// ErrIO means that a file of the store cannot be opened, read, written or locked now.
	ErrIO = errors.New("a file cannot be used")
	// ErrReadOnly means a write to a store that was opened read-only or has read-only
	// files.
	ErrReadOnly = errors.New("store is read-only")
	// ErrPlace means that a store's directory cannot be created: a file is in the way, or
	// permission is missing.
	ErrPlace = errors.New("no place for a store")
	// ErrNetwork means that the directory is on a network file system, where SQLite's
	// locks do not work.
	ErrNetwork = errors.New("network file system")
	// ErrConstraint means that rows contradict each other, such as a stage of a missing
	// run: a caller's mistake.
	ErrConstraint = errors.New("rows contradict each other")
	// ErrInUse means that something to be removed is needed, by other rows or because it
	// was restored.
	ErrInUse = errors.New("still in use")
	// ErrGone means that a stage to be reused was removed since it was looked up.
	ErrGone = errors.New("removed meanwhile")
)

// Error is a failed store operation.
type Error struct {
	Op   string // "open store", "record step 12", …
	Path string // the database or the file concerned
	Err  error
	Hint string // suggested fix; may be empty
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s: %v", e.Op, e.Path, e.Err) }

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// VersionError means that the store's schema is newer than this program's or, for
// readers, older.
type VersionError struct {
	Path string
	Have int // the store's
	Want int // this program's
}

func (e *VersionError) Error() string {
	if e.Have > e.Want {
		return fmt.Sprintf("open store: %s: schema version %d was written by a newer exp, this one knows up to %d",
			e.Path, e.Have, e.Want)
	}
	return fmt.Sprintf("open store: %s: schema version %d is older than this exp's %d, and this command only reads",
		e.Path, e.Have, e.Want)
}

// Hint suggests what to do.
func (e *VersionError) Hint() string {
	if e.Have > e.Want {
		return "use a newer exp, or another store with --store"
	}
	return "any command that writes, such as exp run, upgrades the store and keeps a backup"
}

// DivergenceError means that the same work was done twice with different results. The
// first record stays; the divergence is recorded separately.
type DivergenceError struct {
	RID   ident.Digest // zero for a stage shared by runs
	SID   ident.Digest // zero for a step
	Kind  string       // stage kind; "" for a step
	Step  int64        // of a step or a checkpoint
	Field string       // first field that differs: an output's role, "tokens", "metrics.actor/entropy"
	Want  ident.Digest // recorded first
	Got   ident.Digest
}

func (e *DivergenceError) Error() string { return "divergence: " + e.Text() }

// Text describes the difference, without the word divergence.
func (e *DivergenceError) Text() string {
	where := fmt.Sprintf("run %s: step %d", e.RID.Short(), e.Step)
	if e.Kind != "" {
		where = fmt.Sprintf("stage %s (%s)", e.Kind, e.SID.Short())
	}
	return fmt.Sprintf("%s: %s is %s, recorded as %s", where, e.Field, orNone(e.Got), orNone(e.Want))
}

func orNone(d ident.Digest) string {
	if d.IsZero() {
		return "none"
	}
	return d.Short()
}

// fail wraps the error of an operation in an *Error. It passes on this package's own
// errors and the caller's cancellation.
func (db *DB) fail(op string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var e *Error
	var d *DivergenceError
	var v *VersionError
	if errors.As(err, &e) || errors.As(err, &d) || errors.As(err, &v) {
		return err
	}
	path := db.file
	if pe, ok := err.(*fs.PathError); ok {
		path, err = pe.Path, pe.Err
	}
	hint, err := classify(err)
	if errors.Is(err, syscall.ENOTDIR) || op == "open store" && errors.Is(err, fs.ErrPermission) {
		err, hint = fmt.Errorf("%w: %w", ErrPlace, err),
			"name a writable directory with --store DIR or EXP_STORE"
	}
	return &Error{Op: op, Path: path, Err: err, Hint: hint}
}

// classify maps an SQLite error, by its code, to one of ours and a hint.
func classify(err error) (hint string, _ error) {
	var s sqlite3.Error
	if errors.As(err, &s) {
		if kind := kindOf(s); kind != nil {
			err = fmt.Errorf("%w: %v", kind, err)
		}
	}
	switch {
	case errors.Is(err, ErrBusy):
		return "another process is writing; run again, or end it", err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space and run again: everything recorded before is kept", err
	case errors.Is(err, ErrIO):
		return "check the disk (space, inodes, and dmesg for its errors), permissions and the number of files that " +
			"may be open (ulimit -n)", err
	case errors.Is(err, ErrCorrupt):
		return "restore it from a backup, or move it away and start a new store; blobs are kept apart and are not " +
			"affected", err
	case errors.Is(err, ErrReadOnly):
		return "make it writable, or copy runs to a store of yours: exp export SEL FILE, then exp import FILE " +
			"--store DIR", err
	}
	return "", err
}

// kindOf returns our error for an SQLite error, or nil.
func kindOf(s sqlite3.Error) error {
	switch s.Code {
	case sqlite3.ErrBusy, sqlite3.ErrLocked:
		return ErrBusy
	case sqlite3.ErrFull:
		return ErrFull
	case sqlite3.ErrReadonly, sqlite3.ErrPerm:
		return ErrReadOnly
	case sqlite3.ErrCorrupt, sqlite3.ErrNotADB, sqlite3.ErrFormat:
		return ErrCorrupt
	case sqlite3.ErrConstraint:
		return ErrConstraint
	case sqlite3.ErrInterrupt:
		return context.Canceled
	}
	if s.SystemErrno == syscall.ENOSPC || s.SystemErrno == syscall.EDQUOT {
		return ErrFull
	}
	switch s.Code {
	case sqlite3.ErrIoErr, sqlite3.ErrCantOpen, sqlite3.ErrProtocol:
		return ErrIO
	case sqlite3.ErrNomem:
		return syscall.ENOMEM
	}
	return nil
}

// unmarshal reads a column that holds JSON.
func unmarshal(column string, into any) error {
	if err := json.Unmarshal([]byte(column), into); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}
