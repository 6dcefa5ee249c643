package store

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"
)

// A lock held longer than LockWait is ErrBusy; a lock released in time gives no error.
func TestBusy(t *testing.T) {
	dir := t.TempDir()
	db := openAt(t, dir, Options{Create: true, Clock: clock(), LockWait: 20 * time.Millisecond})
	other := openAt(t, dir, Options{})
	ctx := context.Background()
	conn, err := other.w.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = db.EnsureRun(ctx, newRun("x", 0))
	var e *Error
	if !errors.Is(err, ErrBusy) || !errors.As(err, &e) || e.Hint == "" {
		t.Errorf("error %v, want ErrBusy with hint", err)
	}
	if _, err := db.Runs(ctx, RunQuery{}); err != nil {
		t.Errorf("a reader was kept out: %v", err)
	}

	patient := openAt(t, dir, Options{Clock: clock(), LockWait: time.Minute})
	go func() {
		time.Sleep(50 * time.Millisecond)
		tx.Rollback()
	}()
	if _, _, err := patient.EnsureRun(ctx, newRun("x", 0)); err != nil {
		t.Errorf("with patience: %v", err)
	}
}

func TestCancel(t *testing.T) {
	db := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := db.EnsureRun(ctx, newRun("x", 0)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if runs, err := db.Runs(context.Background(), RunQuery{}); err != nil || len(runs) != 0 {
		t.Errorf("%d runs, %v after a cancelled write", len(runs), err)
	}
}

// A mistake that panics inside a transaction is a panic, not a deadlock, and
// leaves the store usable.
func TestPanicInTransaction(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was lost")
			}
		}()
		db.write(ctx, "panic", func(tx *sql.Tx) error {
			if _, err := tx.Exec(`DELETE FROM meta`); err != nil {
				t.Error(err)
			}
			panic("boom")
		})
	}()
	if n, err := queryOne(ctx, db.r, scanInt, `SELECT count(*) FROM meta`); err != nil || n != 2 {
		t.Errorf("%d rows of meta, %v, want 2", n, err)
	}
	ensure(t, db, newRun("x", 0))
}

// A full disk: SQLite is told that it may not have another page. What was
// recorded before stays, and the store works again once there is room.
func TestDiskFull(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 0))
	var pages int
	if err := db.w.QueryRow("PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	limit := func(n int) {
		var got int
		if err := db.w.QueryRow("PRAGMA max_page_count = " + strconv.Itoa(n)).Scan(&got); err != nil {
			t.Fatal(err)
		}
	}
	limit(pages + 1)
	note := strings.Repeat("x", 100_000)
	err := db.AddNote(ctx, run.ID, note)
	var e *Error
	if !errors.Is(err, ErrFull) || !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &e) || !strings.Contains(e.Hint, "space") {
		t.Errorf("error %v, want ErrFull, ENOSPC and a hint", err)
	}
	w := db.NewStepWriter(run.ID, 0, nil)
	var werr error
	for n := int64(1); n < 100 && werr == nil; n++ {
		werr = errors.Join(w.Record(step60(n)), w.Flush(ctx))
	}
	if !errors.Is(werr, ErrFull) || !errors.Is(w.Close(), ErrFull) {
		t.Errorf("step writer: error %v, want ErrFull", werr)
	}
	limit(1 << 20)
	if err := db.AddNote(ctx, run.ID, note); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if err := db.Check(ctx); err != nil {
		t.Error(err)
	}
}

// Errors of SQLite are told apart by their codes.
func TestClassify(t *testing.T) {
	tests := []struct {
		code sqlite3.ErrNo
		want error
	}{
		{sqlite3.ErrBusy, ErrBusy},
		{sqlite3.ErrLocked, ErrBusy},
		{sqlite3.ErrFull, syscall.ENOSPC},
		{sqlite3.ErrReadonly, ErrReadOnly},
		{sqlite3.ErrCorrupt, ErrCorrupt},
		{sqlite3.ErrNotADB, ErrCorrupt},
		{sqlite3.ErrConstraint, ErrConstraint},
		{sqlite3.ErrInterrupt, context.Canceled},
		{sqlite3.ErrIoErr, ErrIO},
		{sqlite3.ErrCantOpen, ErrIO},
		{sqlite3.ErrProtocol, ErrIO},
		{sqlite3.ErrNomem, syscall.ENOMEM},
	}
	for _, tt := range tests {
		if _, got := classify(sqlite3.Error{Code: tt.code}); !errors.Is(got, tt.want) {
			t.Errorf("code %d: %v, want %v", tt.code, got, tt.want)
		}
	}
	if _, got := classify(sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.ENOSPC}); !errors.Is(got, ErrFull) {
		t.Errorf("I/O error for want of space: %v", got)
	}
	if _, got := classify(sqlite3.Error{Code: sqlite3.ErrIoErr}); errors.Is(got, ErrFull) {
		t.Errorf("another I/O error: %v", got)
	}
}
