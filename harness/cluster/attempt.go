package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"exp/experiments/bundle"
	"exp/experiments/store"
)

// Attempt is one start of a job on a node.
type Attempt struct {
	Entry
	Spool    Spool
	Program  string
	Number   string // of the job
	Restarts int
	// Uncounted says that the batch system does not tell the restarts: the state counts them.
	Uncounted bool
	Nodes     int // on which the job's ranks are; 0: this one
	Log       io.Writer
	Progress  func(Event) // receives the program's progress; may be nil
	// Requeue puts the job back into the queue; the batch system then ends this process.
	// It is nil where nothing starts a job again.
	Requeue func() error
	// Fate says what the batch system does with the job; nil: nothing.
	Fate func() Fate

	mu     sync.Mutex
	state  State
	stages int // that this attempt found or made
	step   int // of the stage after them
	db     *store.DB
}

// Fate is a batch system's treatment of a job that it signalled.
type Fate uint8

// The fates of a job.
const (
	Kept      Fate = iota // it runs: the signal was a warning
	Requeuing             // the batch system ends it and starts it again
	Cancelled             // a person cancelled it
	Unknown               // the batch system does not answer
)

// Outcome says how an attempt ended.
type Outcome struct {
	Code    int  // for the batch system
	Waiting bool // the job is queued again: wait to be killed, since Slurm does not restart a job that exits
}

// heartbeat is the longest time between two writes of a running job's state.
const heartbeat = time.Minute

// publishPause is the time between two looks for a new checkpoint.
const publishPause = time.Second

// Run executes the job in a store of its own and publishes its results at each checkpoint
// and at the end. When stop is cancelled, or the program crashed, it puts the job back
// into the queue.
func (a *Attempt) Run(stop context.Context) (Outcome, error) {
	keep := context.WithoutCancel(stop)
	before, err := a.Spool.State(a.ID)
	if err != nil {
		return Outcome{}, err
	}
	if a.Uncounted {
		a.Restarts = before.restarts(a.Number)
	}
	host, _ := os.Hostname() // for people only
	a.state = State{ID: a.ID, RID: a.RID, Number: a.Number, Status: Running, Host: host, Restarts: a.Restarts,
		Checkpoint: before.Checkpoint, Step: before.Step}
	if a.Restarts > 0 || a.Uncounted && before.Number == a.Number {
		a.state.Crash, a.state.Stop = before.Crash, before.Stop
	}
	if err := a.say(nil); err != nil {
		return Outcome{}, err
	}
	how, err := a.execute(stop, keep)
	if err != nil {
		return a.fail(1, err.Error())
	}
	return a.settle(stop.Err() != nil, how)
}

// execute executes the program in a new store, which holds what the job needs, and
// publishes the results.
func (a *Attempt) execute(stop, keep context.Context) (how End, err error) {
	dir, release, err := a.makeStore()
	if err != nil {
		return End{}, err
	}
	defer release()
	if a.db, err = store.Open(dir, store.Options{Create: true}); err != nil {
		return End{}, err
	}
	defer a.db.Close()
	if err := a.fetch(keep); err != nil {
		return End{}, err
	}
	watch, end := context.WithCancel(keep)
	published := make(chan struct{})
	go func() { defer close(published); a.publishOften(watch) }()
	how = a.process(dir).Run(stop, keep)
	end()
	<-published
	if err := a.publish(keep, bundle.Options{}); err != nil && !errors.Is(err, store.ErrNotFound) {
		return how, fmt.Errorf("publish: %w", err)
	}
	return how, nil
}

// fetch imports the job's last bundle, which knows most of its run, then the others' bundles.
func (a *Attempt) fetch(ctx context.Context) error {
	own := a.Spool.Path(BundlePath(a.ID))
	if _, err := os.Stat(own); err == nil {
		if err := importFile(ctx, a.db, own); err != nil {
			return err
		}
	}
	for _, path := range a.Needs {
		if err := importFile(ctx, a.db, a.Spool.Path(path)); err != nil {
			return err
		}
	}
	for _, path := range a.Suites {
		if err := a.Spool.addSuite(ctx, a.db, path); err != nil {
			return err
		}
	}
	return nil
}

func importFile(ctx context.Context, db *store.DB, path string) error {
	b, err := bundle.Open(path)
	if err != nil {
		return err
	}
	defer b.Close()
	_, err = b.Import(ctx, db, nil)
	return err
}

func (a *Attempt) process(dir string) *Process {
	args := []string{"run", a.Spool.Path(a.Config), "--seeds", strconv.FormatInt(a.Seed, 10), "--store", dir,
		"--progress", "json", "--threads", strconv.Itoa(a.Threads)}
	if a.Until != "" {
		args = append(args, "--until", a.Until)
	}
	for _, tag := range a.Tags {
		args = append(args, "--tag", tag)
	}
	if a.Ranks > 0 {
		args = append(args, "--ranks", strconv.Itoa(a.Ranks))
	}
	if a.RankTimeout != "" {
		args = append(args, "--rank-timeout", a.RankTimeout)
	}
	heard := func(e Event) {
		if a.Progress != nil {
			a.Progress(e)
		}
		a.hear(e)
	}
	return &Process{Program: a.Program, Args: args, Env: []string{OneSignal + "=once"}, Log: a.Log, Heard: heard}
}

// hear notes how far the program is.
func (a *Attempt) hear(e Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case e.Event == "stage_end" && (e.Status == string(store.Done) || e.Status == string(store.Cached)):
		a.stages, a.step = a.stages+1, 0
	case e.Event == "step":
		a.step = e.Step
		if e.Stage == "train" {
			a.state.Step = e.Step
		}
	}
}

// publishOften publishes each new checkpoint. A bundle that could not be written is
// written at the next look.
func (a *Attempt) publishOften(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(publishPause):
		}
		newest, err := a.newestCheckpoint(ctx)
		a.mu.Lock()
		known := a.state.Checkpoint
		a.mu.Unlock()
		if err == nil && newest > known {
			if err = a.publish(ctx, bundle.Options{Live: true}); err == nil {
				err = a.say(func(s *State) { s.Checkpoint = newest })
			}
		}
		if a.silence() >= heartbeat {
			err = errors.Join(err, a.say(nil))
		}
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, store.ErrNotFound): // it has not begun
		case errors.Is(err, fs.ErrNotExist): // the run removed a file meanwhile
		default:
			fmt.Fprintln(a.Log, "publish:", err)
		}
	}
}

// newestCheckpoint returns the step of the run's newest checkpoint, 0 if it has none.
func (a *Attempt) newestCheckpoint(ctx context.Context) (step int64, err error) {
	run, err := a.db.Run(ctx, a.RID)
	if err != nil {
		return 0, err
	}
	list, err := a.db.Checkpoints(ctx, run.ID)
	for _, c := range list {
		step = max(step, c.Step)
	}
	return step, err
}

// publish replaces the job's bundle.
func (a *Attempt) publish(ctx context.Context, o bundle.Options) error {
	run, err := a.db.Run(ctx, a.RID)
	if err != nil {
		return err
	}
	_, err = bundle.Write(ctx, a.db, a.Spool.Path(BundlePath(a.ID)), []store.Run{run}, o)
	return err
}

// say changes the job's state and writes it to the spool.
func (a *Attempt) say(change func(*State)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if change != nil {
		change(&a.state)
	}
	a.state.Time = time.Now().UTC()
	return writeJSON(a.Spool.Path(StatePath(a.ID)), a.state)
}

// conditionHeld is the exit code of a run that a condition of run.stop_if ended.
const conditionHeld = 9

// rankLost is the exit code of a run that lost a rank. A sandbox or reward program that fails has
// another one: it would fail again.
const rankLost = 10

// silence returns the time since the job last wrote its state.
func (a *Attempt) silence() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Since(a.state.Time)
}

// settle decides how the job continues after its program ended; asked reports whether it
// was asked to stop.
func (a *Attempt) settle(asked bool, how End) (Outcome, error) {
	crash := how.Crashed() || a.Ranks > 0 && how.Code == rankLost
	switch {
	case how.Code == 0 && how.Err == nil:
		return Outcome{}, a.say(func(s *State) { s.Status = Done })
	case how.Code == conditionHeld:
		return Outcome{Code: how.Code}, a.say(func(s *State) { s.Status, s.Text = StoppedEarly, how.why() })
	case asked && (crash || how.Code == 130 || how.Code == 143):
		return a.stopped()
	case crash && a.state.Crash == a.state.Step+1:
		return a.fail(how.Code, fmt.Sprintf("its program crashed twice at step %d: %s", a.state.Step, how.why()))
	case crash && a.Restarts >= a.MaxRestarts:
		return a.fail(how.Code, fmt.Sprintf("its program crashed (%s), and the job was restarted %d times already",
			how.why(), a.Restarts))
	case a.Uncounted && how.Code == 1 && a.Restarts < a.MaxRestarts: // Kubernetes starts it again
		return a.again(how.why())
	case crash:
		a.state.Crash = a.state.Step + 1
		return a.again("its program crashed: " + how.why())
	}
	return a.fail(how.Code, how.why())
}

// stopped ends an attempt that was asked to stop and has saved its work.
func (a *Attempt) stopped() (Outcome, error) {
	fate := Kept
	if a.Fate != nil {
		fate = a.Fate()
	}
	switch fate {
	case Cancelled: // putting it back would undo what the person did
		fmt.Fprintf(a.Log, "%s: cancelled\n", a.Name)
		return Outcome{Code: 130}, a.say(func(s *State) { s.Status, s.Text = Stopped, "cancelled" })
	case Unknown: // perhaps a person cancelled it
		const why = "asked to stop, and Slurm did not say why; the same command submits it again"
		fmt.Fprintf(a.Log, "%s: %s\n", a.Name, why)
		return Outcome{Code: 130}, a.say(func(s *State) { s.Status, s.Text = Stopped, why })
	case Requeuing:
		return Outcome{Waiting: true}, a.say(func(s *State) { s.Status, s.Text = Requeued, "preempted" })
	}
	if a.Requeue != nil {
		a.state.Stop = a.state.Stop.next(a.stages, a.step)
		if a.state.Stop.Idle == maxIdle {
			return a.fail(1, fmt.Sprintf("%d stops in a row came before it got further than %d stages and %d steps; "+
				"raise cluster.slurm.time or lower cluster.slurm.signal_before", maxIdle, a.state.Stop.Stages,
				a.state.Stop.Step))
		}
	}
	return a.again(askedToStop)
}

// maxIdle is the number of stops in a row without progress that end a job.
const maxIdle = 2

// again puts the job back into the queue.
func (a *Attempt) again(why string) (Outcome, error) {
	if a.Requeue == nil {
		return Outcome{Code: 130}, a.say(func(s *State) { s.Status, s.Text = Stopped, why })
	}
	if err := a.say(func(s *State) { s.Status, s.Text = Requeued, why }); err != nil {
		return Outcome{}, err
	}
	fmt.Fprintf(a.Log, "%s: %s; back into the queue\n", a.Name, why)
	if err := a.Requeue(); err != nil { // perhaps the batch system has begun to do so
		fmt.Fprintln(a.Log, err)
	}
	return Outcome{Waiting: true}, nil
}

// fail ends the job.
func (a *Attempt) fail(code int, why string) (Outcome, error) {
	fmt.Fprintf(a.Log, "%s: %s\n", a.Name, why)
	return Outcome{Code: max(code, 1)}, a.say(func(s *State) { s.Status, s.Text = Failed, why })
}

// readEntry returns one entry of a list, and the spool that the list lies in.
func readEntry(list string, i int) (Entry, Spool, error) {
	var entries []Entry
	if err := readJSON(list, &entries); err != nil {
		return Entry{}, Spool{}, err
	}
	if i < 0 || i >= len(entries) {
		return Entry{}, Spool{}, fmt.Errorf("%s: no entry %d", list, i)
	}
	return entries[i], Spool{filepath.Dir(filepath.Dir(list))}, nil
}
