package cluster

import (
	"context"
	"errors"
)

// Executor executes one job.
type Executor interface {
	// Run executes the job and waits for its end. When stop is cancelled, it asks the job
	// once to save and stop, and goes on waiting; kill ends it at once.
	Run(stop, kill context.Context) End
}

// Local executes jobs as children of this process, several at a time.
type Local struct {
	Jobs  []Job
	Slots int // how many jobs run at once
	// Executor returns the executor of job i in a slot.
	Executor func(i, slot int) Executor
	// Started and Ended are called for each job, one call at a time.
	Started func(i int)
	Ended   func(i int, e End)
	// Moved is called when a job loses its slot and another slot will execute it.
	Moved func(i int, e End)
	// Failed reports whether an unsuccessful end is a failure.
	Failed func(e End) bool
	// KeepGoing starts further jobs after one has failed, unless they need it.
	KeepGoing bool
}

// ErrNotStarted is the End.Err of a job that was not started because a job that it needs or
// another one failed, or the study was stopped.
var ErrNotStarted = errors.New("not started")

// Run executes the jobs and returns how each ended, by index. When stop is cancelled, it
// starts no more, asks the running ones to save, and waits for them.
func (l *Local) Run(stop, kill context.Context) []End {
	type end struct {
		job, slot int
		how       End
	}
	ends := make([]End, len(l.Jobs))
	state := make([]jobState, len(l.Jobs))
	ended := make(chan end)
	free := make([]int, l.Slots)
	for i := range free {
		free[i] = i
	}
	running, failed, slots := 0, false, l.Slots
	for {
		for len(free) > 0 && stop.Err() == nil && (!failed || l.KeepGoing) {
			i := l.next(state)
			if i < 0 {
				break
			}
			slot := free[0]
			free = free[1:]
			state[i] = started
			running++
			l.Started(i)
			p := l.Executor(i, slot)
			go func() { ended <- end{i, slot, p.Run(stop, kill)} }()
		}
		if running == 0 {
			break
		}
		e := <-ended
		running--
		if e.how.Lost && slots > 1 && stop.Err() == nil {
			slots--
			state[e.job] = waiting
			l.Moved(e.job, e.how)
			continue
		}
		free = append([]int{e.slot}, free...)
		ends[e.job], state[e.job] = e.how, done
		if e.how.Code != 0 || e.how.Err != nil {
			state[e.job] = broken
			failed = failed || l.Failed(e.how)
		}
		l.Ended(e.job, e.how)
	}
	for i := range ends {
		if state[i] == waiting {
			ends[i] = End{Code: -1, Err: ErrNotStarted}
		}
	}
	return ends
}

// jobState is the state of a job.
type jobState uint8

const (
	waiting jobState = iota
	started
	done
	broken
)

// next returns the first waiting job whose needs are met; -1: none.
func (l *Local) next(state []jobState) int {
	for i, j := range l.Jobs {
		ready := state[i] == waiting
		for _, n := range j.Needs {
			ready = ready && state[n] == done
		}
		if ready {
			return i
		}
	}
	return -1
}
