package term

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Progress is told what happens in a run, in this order for each run: RunStart,
// then for each stage StageStart, StageProgress and StagePhase as often as wanted, StageDone, or
// StageCached alone; then RunDone. Note and Warn may come at any time. Implementations are safe
// for use by several goroutines and never fail: a closed terminal must not stop
// a training.
type Progress interface {
	RunStart(Run)
	StageStart(Stage)
	StageProgress(Step)
	StagePhase(Phase)
	StageDone(Result)
	RunDone(Outcome)

	// StageCached says that the result of a stage was already stored, made by the run
	// with the short id from.
	StageCached(st Stage, from string)

	// Note prints one line that stays. Warn does too, marked as a warning.
	Note(text string)
	Warn(text string)

	// Close takes a live block off the screen and joins the goroutine that
	// redraws. Nothing is printed afterwards. It may be called twice.
	Close()
}

// Run names the run that starts.
type Run struct {
	ID        string // short id, as printed
	Seed      int64
	Index, Of int // 1 of 2; 0 where there is only one
}

// Stage is a stage that starts.
type Stage struct {
	Kind  string // "train", "eval.gen"
	Label string // the suite of an evaluation; may be empty
	Total int    // steps in all; 0 where that is not known
	From  int    // steps already done before this execution (resume)
	Unit  string // what one step is; "" means "step"
}

// learn takes the number of steps that a stage finds out while it runs.
func (s *Stage) learn(st Step) {
	if s.Total == 0 {
		s.Total = st.Of
	}
}

// Step is one finished step, or several at once where steps are short.
type Step struct {
	Step    int      // steps done, counted from the start of the stage
	Of      int      // steps in all, where the stage's start did not know it; else 0
	Metrics []Metric // the headline, at most MaxMetrics of them are shown
}

// Phase is what the step after the last finished one is at.
type Phase struct {
	Work        string // "sampling"; empty if it is not known
	Done, Total int    // of Unit; Total is 0 where that is not known
	Unit        string // "completions"
}

// Metric is a number and the name that people know it by.
type Metric struct {
	Name  string
	Value float64
}

// MaxMetrics is how many headline metrics a step line shows; the rest are in
// the store.
const MaxMetrics = 8

// Status is how a stage or a run ended.
type Status string

// The statuses.
const (
	Done    Status = "done"
	Cached  Status = "cached"  // the result was already stored
	Stopped Status = "stopped" // interrupted, can be resumed
	Busy    Status = "busy"    // another process executes it
	Failed  Status = "failed"
)

func (s Status) style() Style {
	switch s {
	case Done:
		return Good
	case Cached:
		return Faint
	case Stopped, Busy:
		return Warn
	}
	return Bad
}

// Fact is something to say about a result, formatted by the caller.
type Fact struct {
	Name, Text string
	Counts     bool // reads "100 steps" and not "steps 100"
}

// Result is a stage that ended.
type Result struct {
	Status Status
	From   string // short id of the run that produced a cached result
	Facts  []Fact
	Wall   time.Duration
}

// Outcome is a run that ended.
type Outcome struct {
	Status Status
	Facts  []Fact
	Wall   time.Duration
}

// Clock is the time as the renderers see it; tests have their own.
type Clock struct {
	Now func() time.Time

	// Every calls f again and again with at least d between two calls, until
	// stop is called; stop returns only when f no longer runs.
	Every func(d time.Duration, f func()) (stop func())
}

// SystemClock is the real time.
func SystemClock() Clock {
	return Clock{Now: time.Now, Every: every}
}

func every(d time.Duration, f func()) (stop func()) {
	quit, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		ticker := time.NewTicker(d)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				f()
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-finished
	}
}

// Kind is the value of --progress.
type Kind string

// The values of --progress.
const (
	KindAuto  Kind = "auto"
	KindTTY   Kind = "tty"
	KindPlain Kind = "plain"
	KindJSON  Kind = "json"
	KindNone  Kind = "none"
)

// New returns the progress display of the given kind on w, a stream described by s. Auto
// is a live block on a terminal, and plain lines in a pipe, on a dumb terminal and under
// continuous integration (CI is set).
func New(kind Kind, w io.Writer, s Stream, c Clock, getenv func(string) string) Progress {
	if kind == KindAuto || kind == "" {
		kind = KindPlain
		if s.TTY && getenv("CI") == "" && getenv("TERM") != "dumb" {
			kind = KindTTY
		}
	}
	switch kind {
	case KindTTY:
		return newLive(w, s, c)
	case KindJSON:
		return newJSONLines(w, c)
	case KindNone:
		return &warnings{w: w}
	}
	return newPlain(w, c)
}

// warnings prints warnings and hides progress. It is safe for concurrent use.
type warnings struct {
	Silent
	mu sync.Mutex
	w  io.Writer
}

// Warn prints a warning, its further lines indented.
func (p *warnings) Warn(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "warning: %s\n", strings.ReplaceAll(CleanLines(text), "\n", "\n"+indent))
}

// Silent is the progress that shows nothing.
type Silent struct{}

// RunStart does nothing.
func (Silent) RunStart(Run) {}

// StageStart does nothing.
func (Silent) StageStart(Stage) {}

// StageProgress does nothing.
func (Silent) StageProgress(Step) {}

// StagePhase does nothing.
func (Silent) StagePhase(Phase) {}

// StageDone does nothing.
func (Silent) StageDone(Result) {}

// StageCached does nothing.
func (Silent) StageCached(Stage, string) {}

// RunDone does nothing.
func (Silent) RunDone(Outcome) {}

// Note does nothing.
func (Silent) Note(string) {}

// Warn does nothing.
func (Silent) Warn(string) {}

// Close does nothing.
func (Silent) Close() {}
