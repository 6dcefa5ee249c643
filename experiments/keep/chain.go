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

// chain describes an error in a run's steps, "" without one. It recomputes each
// step's chain hash from the recorded chain of the step before and the step's record. A
// different value means that the step was changed, unless a metric is NaN, whose bits the
// database does not keep. It does not keep the sign of zero either: both are tried.
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
	negative := map[string]bool{} // zeros that were -0 in the step before
	atRunChain := now.Steps == 0  // its first steps came after the read
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

// mostZeros is the number of zeros in a step that are tried with both signs: computing
// 2^8 chains takes a few milliseconds.
const mostZeros = 8

// follows reports whether chain results from d after prev for some signs of d's zero
// metrics; decided is false if that cannot be determined. negative names the zeros that
// were negative in the last step and probably still are.
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
