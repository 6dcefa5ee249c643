package keep

import (
	"errors"
	"fmt"

	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/experiments/store"
)

// chains checks each run's chain against its steps.
func (c *check) chains() error {
	for _, r := range c.ordered() {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		c.report.Runs++
		detail, err := c.chain(r)
		if err != nil {
			return err
		}
		if detail != "" {
			c.found(Finding{Fault: Chain, What: r.RID.String(), Detail: detail, Runs: []Run{{r}}})
		}
	}
	return nil
}

// chain describes an error in a run's steps, "" without one. It recomputes each
// step's chain hash from the recorded chain of the step before and the step's record. A
// different value means that the step was changed, unless a metric is NaN, whose bits the
// database does not keep.
func (c *check) chain(r *store.Run) (string, error) {
	// A process may be recording: read the run's row first and check only that many
	// steps.
	now, err := c.db.RunByID(c.ctx, r.ID)
	if err != nil || now.Foreign() != "" { // foreign runs have points, but no steps or chain
		return "", err
	}
	steps, err := c.db.Steps(c.ctx, r.ID, 0, store.AllSteps)
	if err != nil || len(steps) == 0 {
		return stepsMissing(now, 0), err
	}
	curves, err := c.db.Metrics(c.ctx, r.ID, "", 0, store.AllSteps)
	if err != nil {
		return "", err
	}
	metrics := store.DetByStep(curves)
	prev := ident.ChainStart(r.RID)
	var before map[string]float64
	atRunChain := now.Steps == 0 // its first steps came after the read
	for i, s := range steps {
		c.report.Steps++
		if want := steps[0].Det.Step + int64(i); s.Det.Step != want {
			return fmt.Sprintf("step %d is missing", want), nil
		}
		atRunChain = atRunChain || s.Chain == now.Chain
		if i > 0 || s.Det.Step == 1 {
			s.Det.Metrics = metrics[s.Det.Step]
			switch det, ok := store.ExactDet(s.Det, before, prev, s.Chain); {
			case ok:
				c.report.Recomputed++
				before = det.Metrics
			case !store.HasNaN(s.Det):
				return fmt.Sprintf("step %d was changed: its recorded chain hash %s does not match its record",
					s.Det.Step, s.Chain.Short()), nil
			}
		}
		prev = s.Chain
	}
	if !atRunChain {
		return fmt.Sprintf("the run's chain hash %s does not match any of its steps", now.Chain.Short()), nil
	}
	return stepsMissing(now, int64(len(steps))), nil
}

// stepsMissing compares a run's recorded number of steps with its steps.
func stepsMissing(r store.Run, n int64) string {
	if r.Steps > n {
		return fmt.Sprintf("%d of its %d steps are missing", r.Steps-n, r.Steps)
	}
	return ""
}

// summaries sums up each run's rows again.
func (c *check) summaries() error {
	for _, r := range c.ordered() {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		list, err := c.db.Recount(c.ctx, r.ID)
		if errors.Is(err, store.ErrNotFound) {
			continue // it was just removed
		}
		if err != nil {
			return err
		}
		var details []string
		for _, d := range list {
			details = append(details, d.Where()+": "+d.String())
		}
		if len(details) > 0 {
			c.found(Finding{Fault: Summary, What: r.RID.String(), Detail: quantity.AtMost(details, 4),
				Runs: []Run{{r}}})
		}
	}
	return nil
}
