package stage

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"exp/eval"
	"exp/experiments/ident"
	"exp/experiments/spelling"
	"exp/train/checkpoint"
	"exp/train/ranks"
	"exp/train/rl"
)

// Best is the best validation of a run so far.
type Best struct {
	Step   int     `json:"step"`
	Metric string  `json:"metric"`
	Value  float64 `json:"value"`
}

// bestGroup names the weights of the best validation in checkpoints.
const bestGroup = "best"

// bestWeights keeps the weights that scored best in a validation (eval.online.best) in a file next to the checkpoints,
// which hold it, too. Only the first rank has a file. A nil one keeps nothing.
type bestWeights struct {
	metric string
	least  bool // the lowest value is best
	dir    string
	again  bool // the stage is only compared with the record, so files of its checkpoints are not copied
	best   *Best
	file   checkpoint.Linked
	// unscored is why the last validation has no scores; nil: it has, or there was none.
	unscored *UnscoredError
}

// newBestWeights returns nil if the run's last weights count.
func newBestWeights(e *Env, dir string) *bestWeights {
	o := e.run().Eval.Online
	if !o.Chooses() {
		return nil
	}
	metric, least := o.BestMetric()
	return &bestWeights{metric: metric, least: least, dir: dir, again: e.Again}
}

// found returns the best validation so far; nil without one.
func (b *bestWeights) found() *Best {
	if b == nil {
		return nil
	}
	return b.best
}

// files returns the weights of the best validation, as a checkpoint holds them.
func (b *bestWeights) files() []checkpoint.Linked {
	if b.found() == nil {
		return nil
	}
	return []checkpoint.Linked{b.file}
}

// waits reports whether the last step's validation could not be graded, so that training cannot go on. Every rank
// knows.
func (b *bestWeights) waits() bool { return b != nil && b.unscored != nil }

// improves reports whether a validation is better than all before; of equal ones the earliest counts. One without a
// finite value is worse than all others.
func (b *bestWeights) improves(val []rl.Metric) (value float64, better bool) {
	value = math.NaN()
	if i := slices.IndexFunc(val, func(m rl.Metric) bool { return m.Name == b.metric }); i >= 0 {
		value = val[i].Value
	}
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		return value, false
	case b.best == nil:
		return value, true
	case b.least:
		return value, value < b.best.Value
	}
	return value, value > b.best.Value
}

// noBestMetric is the kind of the event of a metric without a value.
const noBestMetric = "no-best-metric"

// checkBest returns an error if validations cannot have the metric that chooses the weights.
func (r *reinforcement) checkBest(o *onlineEval) error {
	c := r.run().Eval.Online
	if !c.Chooses() {
		return nil
	}
	sources := slices.Compact(slices.Sorted(maps.Values(o.sources)))
	known, name := c.Metrics(r.run().Task.Mixes(), sources, o.turns), ""
	if name, _ = c.BestMetric(); slices.Contains(known, name) {
		return nil
	}
	err := fmt.Errorf("eval.online.best: validations have no metric %s", name)
	if near := spelling.Nearest(name, known); near != "" {
		return fmt.Errorf("%w; did you mean %s?", err, near)
	}
	return fmt.Errorf("%w; they have %s", err, strings.Join(known, ", "))
}

// restore continues from the best validation of a checkpoint.
func (b *bestWeights) restore(best *Best, c *checkpoint.Checkpoint) error {
	if best == nil {
		return nil
	}
	if best.Metric != b.metric {
		return fmt.Errorf("checkpoint %s chose by %s, not by eval.online.best: %s", c.Dir, best.Metric, b.metric)
	}
	l, ok := c.Linked(bestGroup)
	if !ok {
		return fmt.Errorf("checkpoint %s has no weights of its best validation, of step %d", c.Dir, best.Step)
	}
	if !b.again {
		var err error
		if l, err = l.LinkInto(b.dir); err != nil {
			return err
		}
	}
	b.best, b.file = best, l
	return nil
}

// keepBest keeps the present weights if a validation is the best so far. All ranks call it after a validation, the
// first one with its metrics, or with the reason why it has none.
func (r *reinforcement) keepBest(step int, val []rl.Metric, ungraded *eval.NotGradedError) error {
	if r.best == nil {
		return nil
	}
	unscored, err := ranks.Any(r.group(), ungraded != nil)
	if err != nil {
		return err
	}
	if r.best.unscored = nil; unscored {
		r.best.unscored = &UnscoredError{Step: step, Cause: ungraded}
		return nil
	}
	var value float64
	var better bool
	if r.leads() {
		if value, better = r.best.improves(val); math.IsNaN(value) || math.IsInf(value, 0) {
			r.event(noBestMetric, "eval.online.best: %s has no value at step %d, so it is not the best",
				r.best.metric, step)
		}
	}
	if better, err = ranks.Any(r.group(), better); err != nil || !better {
		return err
	}
	err = r.withLearned(r.trainer, func(tensors []checkpoint.Source) error {
		l, err := checkpoint.WriteLinked(r.best.dir, bestGroup, tensors)
		if err == nil {
			r.best.best, r.best.file = &Best{step, r.best.metric, value}, l
		}
		return err
	})
	return r.trainer.Meet(err)
}

// UnscoredError reports a validation without scores in a run whose weights validations choose.
type UnscoredError struct {
	Step  int                  // after which it was; 0: before the first one
	Cause *eval.NotGradedError // nil on ranks that do not grade
	Saved bool                 // a checkpoint of the step was written
}

func (e *UnscoredError) Error() string {
	cause := "the first rank says why"
	if e.Cause != nil {
		cause = e.Cause.Error()
	}
	return fmt.Sprintf("eval.online.best needs the validation of step %d, which was not graded: %s", e.Step, cause)
}

// Unwrap returns the cause.
func (e *UnscoredError) Unwrap() error {
	if e.Cause == nil {
		return nil
	}
	return e.Cause
}

// ExitCode says that an evaluation's infrastructure failed.
func (e *UnscoredError) ExitCode() int { return ungradedExit }

// Hint says how to continue.
func (e *UnscoredError) Hint() string {
	kept := "fix the cause and run again"
	if e.Saved {
		kept = fmt.Sprintf("step %d is saved; fix the cause and run again, which goes on with this validation", e.Step)
	}
	return kept + "; eval.online.max_not_graded sets the limit"
}

// endUnscored saves the step whose validation could not be graded, and returns the error. All ranks call it.
func (r *reinforcement) endUnscored() error {
	e := r.best.unscored
	if at := r.trainer.State().Step; !r.Again && at > 0 && at != r.saver.at {
		if err := r.checkpoint(); err != nil {
			return errors.Join(e, err)
		}
	}
	e.Saved = r.saver.at == e.Step && e.Step > 0
	return e
}

// weights stores the weights that training ends with: the last ones, or those of the best validation, if any had a
// value.
func (r *reinforcement) weights() (Output, error) {
	chosen, err := ranks.Any(r.group(), r.best.found() != nil)
	if err != nil {
		return Output{}, err
	}
	if !chosen {
		if r.best != nil && r.leads() {
			r.event(noBestMetric, "eval.online.best: %s had no value in any validation, so the last weights count",
				r.best.metric)
		}
		return r.putLearned(r.trainer)
	}
	if !r.leads() {
		return Output{}, nil
	}
	file := r.best.file
	in, err := os.Open(file.Path)
	if err != nil {
		return Output{}, err
	}
	defer in.Close()
	d, size, err := r.Blobs.PutWritten(func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
	if err != nil {
		return Output{}, err
	}
	if d != ident.Digest(file.Info.SHA256) {
		return Output{}, fmt.Errorf("%s, the weights of step %d, changed while the run trained: find what wrote to "+
			"it, and run again; training goes on from a checkpoint without the damage", file.Path, r.best.best.Step)
	}
	if !r.Again { // checkpoints have their own
		if err := os.Remove(file.Path); err != nil {
			r.warn("%v; it is not needed any more", err)
		}
	}
	return Output{Role: RoleWeights, Digest: d, Size: size, Kind: "weights"}, nil
}
