// Package holder finds the process that executes a run and asks it to stop. It signals
// no process that does not hold the run's lock on this machine.
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
	NotAttempt              // the holder only looks at the run, as gc and fsck do for a moment
	ChangedHands            // the holder let go of the run meanwhile
	NotPermitted            // the system did not allow the signal
)

// Refusal is returned when no process was signalled.
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
		return fmt.Sprintf("run %s is executed on %s, and this is %s", id, host, e.Host)
	case NotAttempt:
		return fmt.Sprintf("process %d holds run %s and does not execute it, which takes a moment; nothing was "+
			"signalled",
			pid, id)
	case ChangedHands:
		return fmt.Sprintf("run %s has changed hands or ended meanwhile; nothing was signalled", id)
	}
	return fmt.Sprintf("process %d cannot be signalled: %v", pid, e.Err)
}

// Unwrap returns the system's error.
func (e *Refusal) Unwrap() error { return e.Err }

// Stop signals the process that executes a run and returns its id: SIGTERM, so that it
// finishes the step at hand, or, with now, also SIGINT, so that it does not. It returns
// without waiting (WaitReleased). The error is a *Refusal if nothing was signalled.
func Stop(ctx context.Context, db *store.DB, run store.Run, now bool) (pid int, err error) {
	h, err := executor(ctx, db, run)
	if err != nil {
		return 0, err
	}
	// The process is taken hold of first and looked at after, so that the signal cannot
	// reach another one that was given the same number.
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
	if now { // two different ones: two of a kind may arrive as one
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

// opens reports whether a process has a file open. Where the system does not tell, the
// lock's signature is believed.
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

// WaitReleased waits until nobody holds the run's lock; false if ctx ended first.
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
