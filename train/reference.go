package train

import (
	"fmt"
	"reflect"
	"slices"

	"exp/train/model"
)

// Teacher is a frozen model that is the reference policy for the problems of one data set.
type Teacher struct {
	Model  *model.Model // of any architecture with the policy's tokens
	Source string       // Parts.Route of those problems, not empty
}

// referenceModels returns Reference and the Teachers' models, nothing if no reference is needed.
func (p *Parts) referenceModels() (list []*model.Model) {
	if p.Reference == nil {
		return nil
	}
	list = append(list, p.Reference)
	for _, x := range p.Teachers {
		list = append(list, x.Model)
	}
	return list
}

// reference is a reference policy and its passes.
type reference struct {
	model  *model.Model
	passes *passes // the policy's if it has its architecture
	own    bool    // whether this reference closes the passes, which later ones may share
}

// addReferences makes the passes of the reference policies, one for each architecture.
func (t *Trainer) addReferences(rows Rows) (err error) {
	for _, m := range t.referenceModels() {
		x := reference{model: m}
		if reflect.DeepEqual(m.Config, t.Policy.Config) {
			x.passes = t.passes
		}
		for _, other := range t.references {
			if reflect.DeepEqual(m.Config, other.model.Config) {
				x.passes = other.passes
			}
		}
		if x.passes == nil {
			x.passes, err = newPasses(t.Backend, t.data, m.Config, m.Heads, rows, true, model.KeepNothing)
			if err != nil {
				return err
			}
			x.own = true
		}
		t.references = append(t.references, x)
	}
	return nil
}

// refer sets b.ref to the log-probs of the reference policies, each of the problems that it is for, and b.taught to
// their k likeliest tokens, if k is not 0. step is for Parts.Phase; 0: a step is not under way.
func (t *Trainer) refer(b *batch, step, k int) {
	if len(t.Teachers) == 0 {
		b.ref, b.taught = t.referred(t.references[0], b, step, k)
		return
	}
	n := len(b.mask)
	ref, x := make([]float32, n), taught{k: k, tokens: make([]int32, n*k), logProb: make([]float32, n*k)}
	pupils := t.pupils(b)
	for i, r := range t.references {
		index := pupils[i]
		if len(index) == 0 {
			continue
		}
		own, of := t.referred(r, b.chosen(index), step, k)
		at := 0
		for _, row := range index {
			lo, hi := b.rows[row], b.rows[row+1]
			end := at + hi - lo
			copy(ref[lo:hi], own[at:end])
			copy(x.tokens[lo*k:hi*k], of.tokens[at*k:end*k])
			copy(x.logProb[lo*k:hi*k], of.logProb[at*k:end*k])
			at = end
		}
	}
	b.ref, b.taught = ref, x
}

// pupils returns the rows of b that each reference is for.
func (t *Trainer) pupils(b *batch) [][]int {
	rows := make([][]int, len(t.references))
	of := 0
	for row, x := range b.traj {
		if row == 0 || x.Problem != b.traj[row-1].Problem {
			source := t.Route(x.Problem)
			of = 1 + slices.IndexFunc(t.Teachers, func(x Teacher) bool { return x.Source == source })
		}
		rows[of] = append(rows[of], row)
	}
	return rows
}

// referred returns the log-probs [N] of a reference policy for all rows of b, and its k likeliest tokens.
func (t *Trainer) referred(r reference, b *batch, step, k int) ([]float32, taught) {
	if step > 0 {
		t.rows(r.passes, step, "reference", len(b.traj))
	}
	temperature := t.cfg.Sampling.Temperature
	if k > 0 {
		return r.passes.teacher(r.model, b, k, t.Policy.Config.Vocab, temperature)
	}
	return r.passes.logProbs(r.model, b, 0, len(b.traj), temperature), taught{}
}

// follows returns an error unless a reference of another architecture can read the policy's sequences.
func follows(reference, policy model.Config, longest int) error {
	switch {
	case reference.Vocab < policy.Vocab:
		return fmt.Errorf("train: the reference has %d tokens, the policy %d", reference.Vocab, policy.Vocab)
	case longest > reference.MaxPositions:
		return fmt.Errorf("train: the longest prompt with max_new_tokens has %d tokens, the reference holds %d "+
			"positions", longest, reference.MaxPositions)
	}
	return nil
}
