package cluster

import (
	"context"
	"errors"

	"exp/experiments/bundle"
	"exp/experiments/ident"
	"exp/experiments/store"
)

// Collected is the result of Collect.
type Collected struct {
	Added   []Submitted // imported now
	Waiting []Submitted // done, but a run whose stages they reuse is not
	Left    int         // not done yet
}

// Collect imports the runs that are done and that db lacks. A run waits for the run that
// made the stages it reuses: that one would come with it, unfinished, and its own bundle
// could not add the rest.
func Collect(ctx context.Context, db *store.DB, spool Spool) (*Collected, error) {
	jobs, err := spool.Submitted()
	if err != nil {
		return nil, err
	}
	c := &collecting{ctx: ctx, db: db, spool: spool, of: map[ident.Digest]Submitted{}, out: &Collected{}}
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
		if err != nil {
			return c.out, err
		}
		if done {
			continue
		}
		if st, err := spool.State(j.ID); err != nil {
			return c.out, err
		} else if st.Status == Done {
			c.out.Waiting = append(c.out.Waiting, j)
		} else {
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
	out   *Collected
}

// add imports a run after the runs that it depends on; done reports whether the store has it.
func (c *collecting) add(j Submitted) (done bool, err error) {
	run, err := c.db.Run(c.ctx, j.RID)
	if err == nil {
		return run.Status == store.Done, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	if st, err := c.spool.State(j.ID); err != nil || st.Status != Done {
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
			return false, err
		}
	}
	if _, err := b.Import(c.ctx, c.db, nil); err != nil {
		return false, err
	}
	c.out.Added = append(c.out.Added, j)
	return true, nil
}
