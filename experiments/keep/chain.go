package keep

import (
	"fmt"
	"math"
	"slices"

	"exp/experiments/ident"
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

// chain says what is wrong with a run's steps, "" if nothing is. Each step's chain
// is computed again from the one before it, as recorded, and what is recorded of
// the step. Where that gives another value the step was changed, unless a metric
// is NaN, of which the database does not keep all bits. Nor does it keep the sign
// of zero: both are tried.
func (c *check) chain(r *store.Run) (string, error) {
	// A process may be recording: what a run says of itself is read first, and only
	// that many steps are looked at.
	now, err := c.db.RunByID(c.ctx, r.ID)
	if err != nil || now.Foreign() != "" { // a foreign run has no chain, and its steps are points only
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
	negative := map[string]bool{} // zeros that were -0 in the step before
	atRunChain := now.Steps == 0  // its first steps came meanwhile
	for i, s := range steps {
		c.report.Steps++
		if want := steps[0].Det.Step + int64(i); s.Det.Step != want {
			return fmt.Sprintf("step %d is missing", want), nil
		}
		atRunChain = atRunChain || s.Chain == now.Chain
		if i > 0 || s.Det.Step == 1 {
			s.Det.Metrics = metrics[s.Det.Step]
			ok, decided, err := follows(s.Det, prev, s.Chain, negative)
			switch {
			case err != nil:
				return "", err
			case ok:
				c.report.Recomputed++
			case decided:
				return fmt.Sprintf("step %d was changed: its chain, recorded as %s, does not follow from what is "+
					"recorded of it", s.Det.Step, s.Chain.Short()), nil
			}
		}
		prev = s.Chain
	}
	if !atRunChain {
		return fmt.Sprintf("the run's chain %s is not that of any of its steps", now.Chain.Short()), nil
	}
	return stepsMissing(now, int64(len(steps))), nil
}

// stepsMissing compares how many steps a run says it has with those that are there.
func stepsMissing(r store.Run, n int64) string {
	if r.Steps > n {
		return fmt.Sprintf("%d of its %d steps are missing", r.Steps-n, r.Steps)
	}
	return ""
}

// mostZeros is how many zeros of a step are tried with both signs: 2^8 chains are
// computed in a few milliseconds.
const mostZeros = 8

// follows reports whether chain is that of d after prev for some signs of its zero
// metrics; decided is false if that cannot be told. negative names the zeros that
// were negative the last time, which are likely to be so again.
func follows(d ident.Det, prev, chain ident.Digest, negative map[string]bool) (ok, decided bool, err error) {
	var zeros []string
	decided = true
	for name, v := range d.Metrics {
		if v == 0 {
			zeros = append(zeros, name)
			d.Metrics[name] = zero(negative[name])
		}
		decided = decided && !math.IsNaN(v)
	}
	slices.Sort(zeros)
	got, err := d.Next(prev)
	if err != nil || got == chain {
		return err == nil, true, err
	}
	if len(zeros) > mostZeros {
		return false, false, nil
	}
	for signs := range 1 << len(zeros) {
		for i, name := range zeros {
			d.Metrics[name] = zero(signs>>i&1 == 1)
		}
		if got, err = d.Next(prev); err != nil {
			return false, false, err
		}
		if got == chain {
			for i, name := range zeros {
				negative[name] = signs>>i&1 == 1
			}
			return true, true, nil
		}
	}
	return false, decided, nil
}

func zero(negative bool) float64 {
	if negative {
		return math.Copysign(0, -1)
	}
	return 0
}
