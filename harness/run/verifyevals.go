package run

import (
	"context"
	"fmt"
	"path/filepath"

	"exp/experiments/ident"
)

// evaluations verifies the evaluations added to the run after it was planned. It lists those that this program
// cannot plan again, for example because other sources made them.
func (v *verifier) evaluations(ctx context.Context) error {
	dir := v.scratch
	for k, p := range v.o.Evaluations {
		v.p, v.scratch = p, filepath.Join(dir, fmt.Sprint("evaluation", k))
		if err := v.recorded(ctx); err != nil {
			return err
		}
		if err := v.repeat(ctx); err != nil {
			return err
		}
	}
	v.scratch = dir
	if v.v.Diverged() {
		return nil // repeat stopped there
	}
	return v.unchecked(ctx)
}

// unchecked lists the evaluations with scores in the record that were not scored again.
func (v *verifier) unchecked(ctx context.Context) error {
	stages, err := v.DB.Stages(ctx, v.run.ID)
	if err != nil {
		return err
	}
	ids, labels := map[int64]ident.Digest{}, map[int64]string{}
	for _, s := range stages {
		ids[s.ID], labels[s.ID] = s.SID, s.Label
	}
	scores, err := v.DB.Evals(ctx, v.run.ID)
	if err != nil {
		return err
	}
	listed := map[ident.Digest]bool{}
	for _, e := range scores {
		label, ok := labels[e.StageScore]
		if !ok || v.repeated[ids[e.StageScore]] || listed[ids[e.StageScore]] {
			continue
		}
		listed[ids[e.StageScore]] = true
		v.v.Unchecked = append(v.v.Unchecked, fmt.Sprintf("%s, %d samples each", label, e.N))
	}
	return nil
}
