package run

import (
	"sync"
	"time"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// activityEvery is how often the store learns what a run is doing. Writing it takes some 50 µs.
const activityEvery = time.Second

// activity tells the store what a stage is doing, for those who watch the run. Work only changes
// a variable; a goroutine writes it. After an error it writes no more: no run fails because of it.
type activity struct {
	db   *store.DB
	rid  ident.Digest
	end  chan struct{}
	over sync.WaitGroup

	mu      sync.Mutex
	now     store.Activity
	changed bool
}

// newActivity begins to tell of a stage. Its owner must close it.
func newActivity(db *store.DB, rid ident.Digest, s StageInfo) *activity {
	name := s.Kind
	if s.Label != "" {
		name += " " + s.Label
	}
	a := &activity{db: db, rid: rid, end: make(chan struct{}), changed: true,
		now: store.Activity{Stage: name, Of: int64(s.Steps), Since: time.Now()}}
	a.over.Go(a.write)
	return a
}

// progress is for Hooks.Progress: finished steps of a stage that has steps, else finished pieces.
func (a *activity) progress(done, total int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed = true
	if a.now.Of > 0 {
		a.now.Step = int64(done)
		return
	}
	a.now.Done, a.now.Total = int64(done), int64(total)
}

// phase is for Hooks.Phase: what a step is at.
func (a *activity) phase(step int, phase string, done, total int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if phase != a.now.Phase || int64(step) != a.now.Step {
		a.now.Since = time.Now()
	}
	a.now.Step, a.now.Phase, a.now.Done, a.now.Total = int64(step), phase, int64(done), int64(total)
	a.changed = true
}

// write is the goroutine.
func (a *activity) write() {
	tick := time.NewTicker(activityEvery)
	defer tick.Stop()
	for {
		a.mu.Lock()
		now, changed := a.now, a.changed
		a.changed = false
		a.mu.Unlock()
		if changed && a.db.WriteActivity(a.rid, now) != nil {
			return
		}
		select {
		case <-a.end:
			return
		case <-tick.C:
		}
	}
}

// close ends the goroutine and removes what it wrote.
func (a *activity) close() {
	close(a.end)
	a.over.Wait()
	a.db.RemoveActivity(a.rid)
}
