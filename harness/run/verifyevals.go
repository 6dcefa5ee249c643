package run

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/stage"
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

// sampleAgain samples some completions of an evaluation again, other ones each time, and compares them with the
// record.
func (v *verifier) sampleAgain(ctx context.Context, i int) error {
	s, row := v.p.Stages[i], v.done[i]
	_, in, ok := v.p.Inputs(i, v.output)
	completions, had := v.output(i, stage.RoleCompletions)
	switch {
	case !ok || !had:
		return nil // it was never made
	case v.o.SampleLimit > 0 && v.sampling > v.o.SampleLimit:
		v.v.Unsampled++
		return nil
	}
	most := v.o.Completions
	if most == 0 {
		most = DefaultCompletions
	}
	info := v.info(i)
	v.Watch.StageStart(info)
	start := time.Now()
	var list []stage.Repeated
	err := func() (err error) {
		defer recovered(&err)
		list, err = stage.SampleAgain(ctx, v.againEnv(i, row.SID), s.Label, in, completions, func(n int) []int {
			return rand.Perm(n)[:min(n, most)]
		})
		return err
	}()
	took := time.Since(start)
	v.sampling += took
	v.Watch.StageDone(info, StageEnd{Wall: took, Failed: err != nil})
	if err != nil {
		return &StageError{Stage: s.Name(), Err: err}
	}
	v.v.Evaluated++
	for _, c := range list {
		where := fmt.Sprintf("%s: sample %d of %s", s.Label, c.K, c.Problem)
		v.v.Sampled = append(v.v.Sampled, where)
		if c.Field == "" {
			continue
		}
		if err := v.diverged(where, &store.DivergenceError{SID: row.SID, Kind: row.Kind, Field: c.Field, Want: c.Want,
			Got: c.Got}); err != nil {
			return err
		}
	}
	return nil
}
