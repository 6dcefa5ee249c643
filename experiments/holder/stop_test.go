package holder

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// newRun is a run whose attempt is recorded as executed by a process.
func newRun(t *testing.T, pid int) (*store.DB, store.Run) {
	t.Helper()
	ctx := context.Background()
	db, err := store.Open(t.TempDir(), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	r, _, err := db.EnsureRun(ctx, store.NewRun{RID: ident.Sum(nil), XID: ident.Sum(nil), Name: "r",
		Config: store.Config{Digest: ident.Sum(nil), JSON: "{}"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.BeginAttempt(ctx, store.Attempt{Run: r.ID, Kind: store.AttemptRun, PID: pid}); err != nil {
		t.Fatal(err)
	}
	return db, r
}

func lock(t *testing.T, db *store.DB, r store.Run) *store.Lock {
	t.Helper()
	l, err := db.LockRun(r.RID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Release() })
	return l
}

// refused checks why Stop signalled nobody.
func refused(t *testing.T, db *store.DB, r store.Run, want Why, says string) {
	t.Helper()
	_, err := Stop(context.Background(), db, r, false)
	var e *Refusal
	if !errors.As(err, &e) || e.Why != want || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want %d and %q", err, want, says)
	}
}

// Stop signals the process that holds the lock: this one.
func TestStop(t *testing.T) {
	got := make(chan os.Signal, 2)
	signal.Notify(got, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(got)
	db, r := newRun(t, os.Getpid())
	l := lock(t, db, r)
	for _, now := range []bool{false, true} {
		pid, err := Stop(context.Background(), db, r, now)
		if err != nil || pid != os.Getpid() {
			t.Fatalf("now %v: process %d, %v", now, pid, err)
		}
		signals := []os.Signal{<-got}
		if now {
			signals = append(signals, <-got)
		}
		if !slices.Contains(signals, os.Signal(syscall.SIGTERM)) || now != slices.Contains(signals,
			os.Signal(syscall.SIGINT)) {
			t.Errorf("now %v: signals %v", now, signals)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if WaitReleased(ended, db, r) {
		t.Error("the lock counts as released while it is held")
	}
	time.AfterFunc(20*time.Millisecond, func() { l.Release() })
	if !WaitReleased(context.Background(), db, r) {
		t.Error("the release was missed")
	}
	refused(t, db, r, NotExecuted, "is not being executed")
}

// Stop spares a process that holds the lock for a moment, one on another machine, and one
// that only the lock's text names.
func TestStopRefuses(t *testing.T) {
	bystander := exec.Command("sleep", "60")
	if err := bystander.Start(); err != nil {
		t.Skip(err)
	}
	defer func() { _ = bystander.Wait() }()
	defer func() { _ = bystander.Process.Kill() }()
	db, r := newRun(t, bystander.Process.Pid)
	lock(t, db, r)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	refused(t, db, r, NotAttempt, "without executing it")
	for _, tt := range []struct {
		signed store.Holder
		want   Why
		says   string
	}{
		{store.Holder{PID: bystander.Process.Pid, Host: "elsewhere"}, OnOtherHost,
			"is executed on elsewhere, but this is " + host},
		{store.Holder{PID: bystander.Process.Pid}, OnOtherHost, "is executed on an unknown host"},
		{store.Holder{PID: bystander.Process.Pid, Host: host}, ChangedHands, "changed hands or ended in the meantime"},
	} {
		text, err := json.Marshal(tt.signed)
		if err == nil {
			err = os.WriteFile(filepath.Join(db.RunDir(r.RID), "lock"), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		refused(t, db, r, tt.want, tt.says)
	}
	if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the bystander is gone: %v", err)
	}
}
