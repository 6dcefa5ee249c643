package store

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"
)

func TestStepWriterStopsAtFirstError(t *testing.T) {
	db := open(t)
	run := ensure(t, db, newRun("x", 0))
	w := db.NewStepWriter(run.ID, 0, nil)
	bad := metricStep(2, map[string]float64{"a": 1})
	bad.Measured = map[string]float64{"a": 2}
	if err := errors.Join(w.Record(step60(1)), w.Record(bad)); err != nil {
		t.Fatal(err)
	}
	w.Record(step60(3)) // an error already if the second was quick
	if err := w.Flush(context.Background()); !errors.Is(err, ErrConstraint) {
		t.Errorf("Flush: error %v, want ErrConstraint", err)
	}
	if err := w.Record(step60(4)); !errors.Is(err, ErrConstraint) {
		t.Errorf("Record: error %v, want the first error", err)
	}
	for range 2 {
		if err := w.Close(); !errors.Is(err, ErrConstraint) {
			t.Errorf("Close: error %v, want the first error", err)
		}
	}
	steps, err := db.Steps(context.Background(), run.ID, 0, AllSteps)
	if err != nil || len(steps) != 1 || steps[0].Det.Step != 1 {
		t.Errorf("steps %+v, %v, want the first alone", steps, err)
	}
}

func TestStepWriterClosed(t *testing.T) {
	db := open(t)
	run := ensure(t, db, newRun("x", 0))
	w := db.NewStepWriter(run.ID, 0, nil)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Record(step60(1)); !errors.Is(err, ErrClosed) {
		t.Errorf("Record: error %v, want ErrClosed", err)
	}
	if err := w.Flush(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("Flush: error %v, want ErrClosed", err)
	}
}

// While the database is held by another process, as many steps as the queue
// takes cost the trainer nothing; then it waits, which is an event, and no step
// is lost.
func TestStepWriterFullQueue(t *testing.T) {
	dir := t.TempDir()
	db := openAt(t, dir, Options{Create: true, Clock: clock()})
	other := openAt(t, dir, Options{})
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 0))
	tx, err := other.w.Begin()
	if err != nil {
		t.Fatal(err)
	}
	const n = queueLength + 5
	w := db.NewStepWriter(run.ID, 0, nil)
	blocked := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := int64(1); i <= n; i++ {
			if i == queueLength+2 { // one is being written, the queue is full
				close(blocked)
			}
			if err := w.Record(metricStep(i, map[string]float64{"loss": 1})); err != nil {
				t.Error(err)
			}
		}
	})
	select {
	case <-blocked:
	case <-time.After(4 * time.Second):
		t.Error("Record waited before the queue was full")
	}
	time.Sleep(20 * time.Millisecond)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	steps, err := db.Steps(ctx, run.ID, 0, AllSteps)
	if err != nil || len(steps) != n {
		t.Errorf("%d steps, %v, want %d", len(steps), err, n)
	}
	events, err := db.Events(ctx, run.ID, 0)
	if err != nil || len(events) == 0 {
		t.Fatalf("%d events, %v, want the wait", len(events), err)
	}
	var waited float64
	for _, e := range events {
		var data struct {
			Wait float64 `json:"wait_s"`
		}
		if err := json.Unmarshal(e.Data, &data); err != nil || e.Kind != "store_wait" {
			t.Errorf("event %+v, %v", e, err)
		}
		waited += data.Wait
	}
	if waited < 0.01 || waited > 10 {
		t.Errorf("waited %g s, want some 0.02", waited)
	}
}

func TestStepWriterConcurrently(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 0))
	w := db.NewStepWriter(run.ID, 0, nil)
	var wg sync.WaitGroup
	for g := range int64(4) {
		wg.Go(func() {
			for i := range int64(25) {
				if err := w.Record(metricStep(1+g+4*i, map[string]float64{"loss": float64(i)})); err != nil {
					t.Error(err)
				}
				if i == 10 {
					if err := w.Flush(ctx); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	curves, err := db.Metrics(ctx, run.ID, "loss", 0, AllSteps)
	if err != nil || len(curves[0].Steps) != 100 || curves[0].N != 100 || curves[0].LastStep != 100 || curves[0].Last != 24 {
		t.Errorf("loss: %+v, %v", curves[0].Series, err)
	}
	// Whatever the order of writing, the run ends with the last step's chain.
	if r, _ := db.RunByID(ctx, run.ID); r.Steps != 100 || r.Chain != digest("chain 100") {
		t.Errorf("run has %d steps, chain %s", r.Steps, r.Chain)
	}
}
