package stage

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"exp/experiments/ident"
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
// which hold it, too. Only the first rank has a file. Its zero pointer keeps nothing.
type bestWeights struct {
	metric string
	least  bool // the lowest value is best
	dir    string
	again  bool // the stage is only compared with the record, so files of its checkpoints are not copied
	best   *Best
	file   checkpoint.Linked
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

// improves reports whether a validation is better than all before; of equal ones the earliest counts. A value that is
// not a number is worse than all others.
func (b *bestWeights) improves(val []rl.Metric) (value float64, better bool, err error) {
	i := slices.IndexFunc(val, func(m rl.Metric) bool { return m.Name == b.metric })
	if i < 0 {
		return 0, false, b.missing(val)
	}
	value = val[i].Value
	switch {
	case math.IsNaN(value):
		return value, false, nil
	case b.best == nil:
		return value, true, nil
	case b.least:
		return value, value < b.best.Value, nil
	}
	return value, value > b.best.Value, nil
}

// missing is the error of a metric that no validation has.
func (b *bestWeights) missing(val []rl.Metric) error {
	var names []string
	for _, m := range val {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return fmt.Errorf("eval.online.best: validations have no metric %s; they have %s", b.metric,
		strings.Join(names, ", "))
}

// restore continues from the best validation of a checkpoint.
func (b *bestWeights) restore(best *Best, c *checkpoint.Checkpoint) error {
	if best == nil {
		return nil
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
// first one with its metrics.
func (r *reinforcement) keepBest(step int, val []rl.Metric) error {
	if r.best == nil {
		return nil
	}
	var value float64
	var better bool
	var err error
	if r.leads() {
		value, better, err = r.best.improves(val)
	}
	if err = r.trainer.Meet(err); err != nil {
		return err
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

// weights stores the weights that training ends with: the last ones, or those of the best validation.
func (r *reinforcement) weights() (Output, error) {
	if r.best == nil {
		return r.putLearned(r.trainer)
	}
	b := r.best.found()
	if !r.leads() {
		return Output{}, nil
	}
	if b == nil {
		return Output{}, fmt.Errorf("eval.online.best: %s was not a number in any validation", r.best.metric)
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
		return Output{}, fmt.Errorf("%s, the weights of step %d, changed while the run trained", file.Path, b.Step)
	}
	if !r.Again {
		err = os.Remove(file.Path) // checkpoints have their own
	}
	return Output{Role: RoleWeights, Digest: d, Size: size, Kind: "weights"}, err
}
