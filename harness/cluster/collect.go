package cluster

import (
	"context"
	"errors"
	"fmt"

	"exp/experiments/bundle"
	"exp/experiments/ident"
	"exp/experiments/store"
)

// Collected is the result of Collect.
type Collected struct {
	Added   []Submitted // imported now
	Waiting []Waiting   // done, but a run whose stages they reuse is not in the store
	Failed  []Uncollected
	Left    int // not done yet
}

// Waiting is a run that is done but not imported. It waits for another run, or the store has begun it.
type Waiting struct {
	Submitted
	For   Submitted
	State State // of the run that it waits for
}

// Why says for people why the store lacks the run.
func (w Waiting) Why() string {
	if w.For.ID == "" {
		return "is done, but this store has begun it: finish it here, or collect with another --store"
	}
	text := fmt.Sprintf("is done, but waits for %s, whose stages it reuses and which ", w.For.Name)
	switch w.State.Status {
	case "":
		return text + "has not started"
	case Failed, Stopped:
		return text + w.State.Status + ": " + w.State.Text
	case Done, StoppedEarly:
		return text + "cannot be collected"
	}
	return text + "is " + w.State.Status
}

// Uncollected is a run that Collect could not import: its bundle is damaged, or differs from
// what the store has.
type Uncollected struct {
	Submitted
	Err error
}

// Error implements error.
func (u Uncollected) Error() string { return fmt.Sprintf("%s cannot be collected: %v", u.Name, u.Err) }

// Unwrap returns u.Err.
func (u Uncollected) Unwrap() error { return u.Err }

// Err joins the errors of Failed, or returns nil.
func (c *Collected) Err() error {
	var list []error
	for _, u := range c.Failed {
		list = append(list, u)
	}
	return errors.Join(list...)
}

// why says why the store lacks a run that is done.
func (c *Collected) why(id string) string {
	for _, u := range c.Failed {
		if u.ID == id {
			return u.Err.Error()
		}
	}
	for _, w := range c.Waiting {
		if w.ID == id {
			return w.Why()
		}
	}
	return "is done, but waits for the run whose stages it reuses"
}

// Collect imports the runs that db lacks and that are done, or that their own conditions stopped.
// A run waits for the run that made the stages it reuses: that one would come with it, unfinished,
// and its own bundle could not add the rest. A run that cannot be imported does not hold up the
// others. After an error, the result says what was imported before it.
func Collect(ctx context.Context, db *store.DB, spool Spool) (*Collected, error) {
	c := &collecting{ctx: ctx, db: db, spool: spool, of: map[ident.Digest]Submitted{},
		tried: map[ident.Digest]attempted{}, blocked: map[ident.Digest]Submitted{}, out: &Collected{}}
	jobs, err := spool.Submitted()
	if err != nil {
		return c.out, err
	}
	for _, j := range jobs {
		if j.Until == "" {
			c.of[j.RID] = j
		}
	}
	for _, j := range jobs {
		if j.Until != "" {
			continue
		}
		done, err := c.add(j)
		if err := ctx.Err(); err != nil {
			return c.out, err
		}
		var st State
		if err == nil && !done {
			st, err = spool.State(j.ID)
		}
		first := c.blocked[j.RID]
		var held State
		if err == nil && first.ID != "" {
			held, err = spool.State(first.ID)
		}
		switch {
		case err != nil:
			c.out.Failed = append(c.out.Failed, Uncollected{j, err})
		case done:
		case st.Finished():
			c.out.Waiting = append(c.out.Waiting, Waiting{j, first, held})
		default:
			c.out.Left++
		}
	}
	return c.out, nil
}

type collecting struct {
	ctx   context.Context
	db    *store.DB
	spool Spool
	of    map[ident.Digest]Submitted
	tried map[ident.Digest]attempted
	// blocked names, for a run that is done, the run that keeps it from being imported.
	blocked map[ident.Digest]Submitted
	out     *Collected
}

// attempted is the outcome of collecting.add.
type attempted struct {
	done bool
	err  error
}

// add imports a run, once, after the runs that it depends on; done reports whether the store
// has it.
func (c *collecting) add(j Submitted) (done bool, err error) {
	if was, ok := c.tried[j.RID]; ok {
		return was.done, was.err
	}
	c.tried[j.RID] = attempted{} // breaks a cycle of bundles
	done, err = c.tryAdd(j)
	c.tried[j.RID] = attempted{done, err}
	return done, err
}

func (c *collecting) tryAdd(j Submitted) (done bool, err error) {
	run, err := c.db.Run(c.ctx, j.RID)
	if err == nil {
		return run.Status == store.Done || run.Status == store.Stopped, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	if st, err := c.spool.State(j.ID); err != nil || !st.Finished() {
		return false, err
	}
	b, err := bundle.Open(c.spool.Path(BundlePath(j.ID)))
	if err != nil {
		return false, err
	}
	defer b.Close()
	for _, r := range b.Manifest.Runs {
		first, ours := c.of[r.RID]
		if !ours || r.RID == j.RID {
			continue
		}
		if done, err := c.add(first); !done || err != nil {
			c.blocked[j.RID] = first
			if cause, further := c.blocked[first.RID]; further {
				c.blocked[j.RID] = cause
			}
			return false, nil // the error is the first run's
		}
	}
	if _, err := b.Import(c.ctx, c.db, nil); err != nil {
		return false, err
	}
	c.out.Added = append(c.out.Added, j)
	return true, nil
}
