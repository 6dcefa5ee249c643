// Package holder finds the process that executes a run and asks it to stop. It only
// signals the process that holds the run's lock on this machine.
package holder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"exp/experiments/store"
)

// Why says why no process was signalled.
type Why int

const (
	NotExecuted  Why = iota // nobody holds the run's lock
	OnOtherHost             // the holder is on another machine
	NotAttempt              // the holder only inspects the run, as gc and fsck briefly do
	ChangedHands            // the holder released the run in the meantime
	NotPermitted            // the system did not allow the signal
)

// Refusal reports that no process was signalled.
type Refusal struct {
	Why    Why
	Run    store.Run
	Holder store.Holder // zero if NotExecuted
	Host   string       // this machine
	Err    error        // the system's, if NotPermitted
}

func (e *Refusal) Error() string {
	id, pid := e.Run.RID.Short(), e.Holder.PID
	switch e.Why {
	case NotExecuted:
		return fmt.Sprintf("run %s is not being executed: it is %s", id, e.Run.Status)
	case OnOtherHost:
		host := e.Holder.Host
		if host == "" {
			host = "an unknown host"
		}
		return fmt.Sprintf("run %s is executed on %s, but this is %s", id, host, e.Host)
	case NotAttempt:
		return fmt.Sprintf("process %d holds run %s briefly without executing it; nothing was signalled",
			pid, id)
	case ChangedHands:
		return fmt.Sprintf("run %s changed hands or ended in the meantime; nothing was signalled", id)
	}
	return fmt.Sprintf("process %d cannot be signalled: %v", pid, e.Err)
}

// Unwrap returns the system's error.
func (e *Refusal) Unwrap() error { return e.Err }

// Stop signals the process that executes a run and returns its id: SIGTERM to finish the
// current step first or, with now, also SIGINT to stop at once. It does not wait (see
// WaitReleased). The error is a *Refusal if nothing was signalled.
func Stop(ctx context.Context, db *store.DB, run store.Run, now bool) (pid int, err error) {
	h, err := executor(ctx, db, run)
	if err != nil {
		return 0, err
	}
	// Open the process before checking it, so that the signal cannot reach another
	// process that got the same pid.
	p, err := os.FindProcess(h.PID)
	if err != nil {
		return 0, err
	}
	defer p.Release()
	path := filepath.Join(db.RunDir(run.RID), "lock")
	if again, alive := db.Alive(run.RID); !alive || again.PID != h.PID || !opens(h.PID, path) {
		return 0, &Refusal{Why: ChangedHands, Run: run, Holder: h}
	}
	signals := []os.Signal{syscall.SIGTERM}
	if now { // two different signals: two equal ones may arrive as one
		signals = []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	}
	for _, s := range signals {
		if err := p.Signal(s); errors.Is(err, os.ErrProcessDone) {
			return h.PID, nil
		} else if err != nil {
			return 0, &Refusal{Why: NotPermitted, Run: run, Holder: h, Err: err}
		}
	}
	return h.PID, nil
}

// executor returns the process on this machine that executes a run.
func executor(ctx context.Context, db *store.DB, run store.Run) (store.Holder, error) {
	h, alive := db.Alive(run.RID)
	if !alive {
		return h, &Refusal{Why: NotExecuted, Run: run}
	}
	host, err := os.Hostname()
	if err != nil {
		return h, err
	}
	attempts, err := db.Attempts(ctx, run.ID)
	if err != nil {
		return h, err
	}
	if h.Host != host {
		return h, &Refusal{Why: OnOtherHost, Run: run, Holder: h, Host: host}
	}
	if !slices.ContainsFunc(attempts, func(a store.Attempt) bool {
		return a.Status == store.Running && a.PID == h.PID
	}) {
		return h, &Refusal{Why: NotAttempt, Run: run, Holder: h}
	}
	return h, nil
}

// opens reports whether a process has a file open. If the system does not tell, it trusts
// the lock's signature.
func opens(pid int, path string) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		_, other := os.Stat("/proc/self/fd")
		return other != nil || errors.Is(err, os.ErrPermission)
	}
	want, err := os.Stat(path)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if got, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && os.SameFile(got, want) {
			return true
		}
	}
	return false
}

// WaitReleased waits until nobody holds the run's lock; it returns false if ctx ends
// first.
func WaitReleased(ctx context.Context, db *store.DB, run store.Run) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, alive := db.Alive(run.RID); !alive {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}
