package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A lock belongs to an open file, so two handles of one process exclude each
// other as two processes do.
func TestLockRun(t *testing.T) {
	db := open(t)
	rid := digest("rid")
	if _, alive := db.Alive(rid); alive {
		t.Error("a run that nobody executes is alive")
	}
	lock, err := db.LockRun(rid) // 1 s
	if err != nil {
		t.Fatal(err)
	}
	host, _ := os.Hostname()
	want := Holder{PID: os.Getpid(), Host: host, Start: start.Add(time.Second)}
	if got, alive := db.Alive(rid); !alive || got != want {
		t.Errorf("Alive = %+v, %t, want %+v", got, alive, want)
	}
	_, err = db.LockRun(rid)
	var e *LockedError
	if !errors.As(err, &e) || !errors.Is(err, ErrBusy) || e.Holder != want || e.RID != rid {
		t.Errorf("second lock: error %#v, want *LockedError with the holder", err)
	}
	for _, part := range []string{rid.Short(), host, "2026-01-02T03:04:06Z"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %s", err, part)
		}
	}
	other, err := db.LockRun(digest("another run"))
	if err != nil {
		t.Errorf("another run: %v", err)
	} else if err := other.Release(); err != nil {
		t.Error(err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if holder, alive := db.Alive(rid); alive {
		t.Errorf("a released run is alive: %+v", holder)
	}
	again, err := db.LockRun(rid)
	if err != nil {
		t.Fatal(err)
	}
	again.Release()
}

// A run that is recorded as running is interrupted as soon as nobody holds its lock;
// other statuses stay.
func TestStatusNow(t *testing.T) {
	db := open(t)
	r := Run{RID: digest("rid"), Status: Running}
	lock, err := db.LockRun(r.RID)
	if err != nil {
		t.Fatal(err)
	}
	if got := db.StatusNow(&r); got != Running {
		t.Errorf("executed: %s", got)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if got := db.StatusNow(&r); got != Interrupted {
		t.Errorf("killed: %s", got)
	}
	r.Status = Done
	if got := db.StatusNow(&r); got != Done {
		t.Errorf("done: %s", got)
	}
}

// Asking whether a run is alive holds its lock for a moment, which keeps nobody
// from executing it.
func TestLockRunOutwaitsAlive(t *testing.T) {
	db := open(t)
	rid := digest("rid")
	lock, err := db.LockRun(rid)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(db.RunDir(rid), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(2*lockPatience, func() { f.Close() })
	lock, err = db.LockRun(rid)
	if err != nil {
		t.Fatal(err)
	}
	lock.Release()
}
