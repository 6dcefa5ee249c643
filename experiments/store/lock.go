package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"exp/experiments/ident"
)

// Holder is the process that executes a run.
type Holder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Start time.Time `json:"start"` // when it took the lock
}

// LockedError means that another process executes the run. It wraps ErrBusy.
type LockedError struct {
	RID    ident.Digest
	Path   string // the lock file
	Holder Holder // zero if it has not signed yet
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("run %s is being executed by process %d on %s since %s",
		e.RID.Short(), e.Holder.PID, orEmpty(e.Holder.Host, "an unknown host"),
		e.Holder.Start.UTC().Format(time.RFC3339))
}

// Unwrap returns ErrBusy.
func (e *LockedError) Unwrap() error { return ErrBusy }

// Lock is the right to execute a run. The system releases it when the process ends for
// any reason.
type Lock struct {
	file *os.File
}

// lockPatience is the time LockRun retries while another process executes the run, which
// may be about to end. readerPatience is the time it retries while others only look at
// the lock, which they do briefly.
const (
	lockPatience   = 200 * time.Millisecond
	readerPatience = 20 * time.Second
)

// LockRun takes the lock of a run, RUNDIR/lock, and signs it. If another process executes
// the run, it returns a *LockedError without waiting for the end.
func (db *DB) LockRun(rid ident.Digest) (*Lock, error) {
	path := filepath.Join(db.RunDir(rid), "lock")
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, db.fail("lock run", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, db.fail("lock run", err)
	}
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EWOULDBLOCK {
			break
		}
		patience := lockPatience
		if onlyRead(f) {
			patience = readerPatience
		}
		if time.Since(start) > patience {
			break
		}
	}
	if err == unix.EWOULDBLOCK {
		defer f.Close()
		return nil, &LockedError{RID: rid, Path: path, Holder: readHolder(path)}
	}
	if err != nil {
		f.Close()
		return nil, &Error{Op: "lock run", Path: path, Err: fmt.Errorf("%w: %w", ErrIO, err),
			Hint: "file systems that cannot lock files hold no store: use a local directory with --store DIR"}
	}
	if !isAt(f, path) { // whoever held it removed the run's files
		f.Close()
		return db.LockRun(rid)
	}
	if err := db.sign(f); err != nil {
		f.Close()
		return nil, &Error{Op: "lock run", Path: path, Err: err}
	}
	return &Lock{file: f}, nil
}

// onlyRead reports whether only readers (Alive) hold a lock.
func onlyRead(f *os.File) bool {
	if unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil {
		return false
	}
	unix.Flock(int(f.Fd()), unix.LOCK_UN)
	return true
}

// isAt reports whether f is the file that path names.
func isAt(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(mine, named)
}

func (db *DB) sign(f *os.File) error {
	host, _ := os.Hostname() // for people only
	b, err := json.Marshal(Holder{PID: os.Getpid(), Host: host, Start: db.clock().UTC()})
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(append(b, '\n'), 0)
	return err
}

// Release releases the lock. The file stays.
func (l *Lock) Release() error {
	return errors.Join(l.file.Truncate(0), l.file.Close())
}

// Alive reports whether a process executes a run, and which. A run with status Running
// that is not alive was killed.
func (db *DB) Alive(rid ident.Digest) (Holder, bool) {
	path := filepath.Join(db.RunDir(rid), "lock")
	f, err := os.Open(path)
	if err != nil {
		return Holder{}, false
	}
	defer f.Close() // which unlocks
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return readHolder(path), true
	}
	return Holder{}, false
}

// StatusNow returns a run's current status: Interrupted if the run is recorded as running
// but not alive, so it was killed.
func (db *DB) StatusNow(r *Run) Status {
	if r.Status == Running {
		if _, alive := db.Alive(r.RID); !alive {
			return Interrupted
		}
	}
	return r.Status
}

// readHolder returns the signer of a lock file; zero without one.
func readHolder(path string) (h Holder) {
	b, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(b, &h) != nil {
		return Holder{}
	}
	return h
}
