package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// NewAttempt starts entry i of a job list on this node. The environment says what started it: Slurm, a
// pod of Kubernetes, or ssh.
func NewAttempt(list string, i int, program string, log io.Writer, getenv func(string) string) (*Attempt, error) {
	entry, spool, err := readEntry(list, i)
	if err != nil {
		return nil, err
	}
	job := getenv(JobVariable)
	a := &Attempt{Entry: entry, Spool: spool, Program: program, Log: log, Number: fmt.Sprintf("%s_%d", job, i)}
	if array := getenv("SLURM_ARRAY_JOB_ID"); array != "" {
		a.Number = array + "_" + getenv("SLURM_ARRAY_TASK_ID")
		a.onSlurm(getenv)
	}
	a.Uncounted = job != "" && !a.overSSH()
	return a, nil
}

// onSlurm lets an attempt put its job back into Slurm's queue.
func (a *Attempt) onSlurm(getenv func(string) string) {
	a.Restarts, _ = strconv.Atoi(getenv("SLURM_RESTART_COUNT")) // unset at the first start
	a.Store = cmp.Or(a.Store, getenv("SLURM_TMPDIR"))           // else TMPDIR or /tmp
	a.Nodes, _ = strconv.Atoi(getenv("SLURM_JOB_NUM_NODES"))
	a.Requeue = func() error { return Slurm{}.Requeue(context.Background(), a.Number) }
	a.Fate = func() Fate {
		fate, err := Slurm{}.FateOf(context.Background(), a.Number, a.Restarts)
		if err != nil {
			fmt.Fprintln(a.Log, err)
		}
		return fate
	}
}

// overSSH reports whether ssh started the attempt.
func (a *Attempt) overSSH() bool { return strings.HasPrefix(a.Number, OverSSH) }

// FollowSSH makes an attempt that ssh started report its progress, and stop when its input ends, as it
// does when the connection breaks. It does nothing to other attempts.
func (a *Attempt) FollowSSH(ctx context.Context, in io.Reader) context.Context {
	if !a.overSSH() {
		return ctx
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // else it would die without saving
	enc := json.NewEncoder(a.Log)
	a.Progress = func(e Event) { _ = enc.Encode(e) } // the listener may be gone
	stop, lost := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		lost()
	}()
	return stop
}
