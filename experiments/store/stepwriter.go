package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"exp/experiments/ident"
)

// queueLength is the number of steps that may wait to be written. If another process
// holds the database for a second, training at 50 steps per second does not stall.
const queueLength = 64

// ErrClosed means that a StepWriter is closed.
var ErrClosed = errors.New("step writer is closed")

// StepWriter records the steps of one run from its own goroutine: the training loop hands
// over a step in a microsecond and continues. Each step is one transaction, so a step and
// its metrics become visible together, and a killed process loses at most the queued
// steps. It never discards a step: when the queue is full, Record waits, and the wait
// becomes an event of the run ("store_wait").
//
// After an error it writes no further steps; Record, Flush and Close return the error. It
// is safe for concurrent use. Its owner must Close it.
type StepWriter struct {
	db      *DB
	run     int64
	attempt int64
	unit    func(name string) string

	queue  chan item
	joined chan struct{}         // closed when the goroutine has ended
	waited atomic.Int64          // nanoseconds that Record waited, not yet in an event
	failed atomic.Pointer[error] // the first error

	mu     sync.RWMutex // Record holds it shared, Close alone
	closed bool

	// Used only by the goroutine:
	series map[string]int64 // ids by name
	names  []string         // of the metrics of the step before, in order
	insert struct {         // the statement that inserted them
		points int
		text   string
	}
}

// item is a step to write, or a Flush to answer when all earlier steps are written.
type item struct {
	step   *Step
	scores bool // of RecordScores
	t      int64
	waited time.Duration
	done   chan struct{}
}

// NewStepWriter returns a writer for a run. unit names the unit of a metric
// ("s"); it may be nil.
func (db *DB) NewStepWriter(run, attempt int64, unit func(name string) string) *StepWriter {
	w := &StepWriter{
		db: db, run: run, attempt: attempt, unit: unit,
		queue:  make(chan item, queueLength),
		joined: make(chan struct{}),
		series: map[string]int64{},
	}
	go w.writeAll()
	return w
}

// Record queues a step and keeps it: do not change its maps and slices afterwards. The
// error is from an earlier step. Recording an existing step with the same chain changes
// nothing; with another chain it is a *DivergenceError.
func (w *StepWriter) Record(s Step) error {
	return w.put(item{step: &s})
}

// RecordScores queues metrics of the weights after a step, as Record does. The step may be 0, the weights that
// training starts from, which is not in the trajectory: it has no row and no chain; another one must be recorded.
// Metrics that the step has stay.
func (w *StepWriter) RecordScores(step int64, measured map[string]float64) error {
	return w.put(item{step: &Step{Det: ident.Det{Step: step}, Measured: measured}, scores: true})
}

// put queues a step.
func (w *StepWriter) put(it item) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if err := w.err(); err != nil {
		return err
	}
	if w.closed {
		return ErrClosed
	}
	it.t, it.waited = w.db.now(), time.Duration(w.waited.Swap(0))
	select {
	case w.queue <- it:
	default:
		start := time.Now()
		w.queue <- it
		w.waited.Add(int64(time.Since(start)))
	}
	return nil
}

// Flush waits until all queued steps are in the database.
func (w *StepWriter) Flush(ctx context.Context) error {
	done := make(chan struct{})
	w.mu.RLock()
	if w.closed {
		w.mu.RUnlock()
		return errors.Join(w.err(), ErrClosed)
	}
	w.queue <- item{done: done}
	w.mu.RUnlock()
	select {
	case <-done:
		return w.err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close writes the remaining steps, ends the goroutine and returns the writer's first
// error. Closing again returns the same.
func (w *StepWriter) Close() error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.queue)
	}
	w.mu.Unlock()
	<-w.joined
	return w.err()
}

func (w *StepWriter) err() error {
	if p := w.failed.Load(); p != nil {
		return *p
	}
	return nil
}

// writeAll is the goroutine.
func (w *StepWriter) writeAll() {
	defer close(w.joined)
	for it := range w.queue {
		if it.step != nil && w.err() == nil {
			if err := w.write(it); err != nil {
				w.failed.Store(&err)
			}
		}
		if it.done != nil {
			close(it.done)
		}
	}
	if waited := time.Duration(w.waited.Swap(0)); waited > 0 && w.err() == nil {
		if err := w.db.AddEvent(context.Background(), w.waitEvent(waited)); err != nil {
			w.failed.Store(&err)
		}
	}
}

// write records a step in its own transaction. It cannot be cancelled: a finished step is
// written even when the run is being stopped.
func (w *StepWriter) write(it item) error {
	ctx := context.Background()
	err := w.db.write(ctx, fmt.Sprintf("record step %d", it.step.Det.Step), func(tx *sql.Tx) error {
		if it.waited > 0 {
			if err := insertEvent(ctx, tx, w.waitEvent(it.waited), it.t); err != nil {
				return err
			}
		}
		if it.scores {
			return w.recordScores(ctx, tx, it.step, it.t)
		}
		return w.recordStep(ctx, tx, it.step, it.t)
	})
	var diverged *DivergenceError
	if errors.As(err, &diverged) {
		if recorded := w.db.writeDurable(ctx, "record divergence", func(tx *sql.Tx) error {
			return w.db.addDivergence(ctx, tx, w.run, w.attempt, diverged)
		}); recorded != nil {
			return errors.Join(err, recorded)
		}
	}
	return err
}

// waitEvent returns the event for a full queue.
func (w *StepWriter) waitEvent(waited time.Duration) Event {
	data, _ := json.Marshal(map[string]float64{"wait_s": waited.Seconds()}) // a duration is a number
	return Event{Run: w.run, Attempt: w.attempt, Level: LevelWarn, Kind: "store_wait", Data: data}
}
