package evaluate

import (
	"context"
	"slices"
	"strings"

	"exp/experiments/keep"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/stage"
	"exp/kernels"
)

// Checkpoint writes the policy that a run had after a step of training as the new folder dir, from the checkpoint of
// that step. r is the run's configuration. The error is a *keep.NoCheckpointError if there is no such checkpoint.
func Checkpoint(ctx context.Context, db *store.DB, run store.Run, r *config.Resolved, be kernels.Backend, step int64,
	dir string) error {
	from, err := checkpointOf(db, run, step)
	if err != nil {
		return err
	}
	stages, err := db.Stages(ctx, run.ID)
	if err != nil {
		return err
	}
	in := stage.Inputs{}
	for _, s := range stages {
		for _, x := range s.Inputs {
			if s.Kind == string(config.Train) && x.Role == stage.RoleWeights {
				in[stage.RoleBase] = x.Digest
			}
		}
	}
	e := &stage.Env{Config: r, Backend: be, Blobs: db.Blobs, Dir: db.RunDir(run.RID)}
	return stage.MergeCheckpoint(e, in, from, dir)
}

// checkpointOf returns the folder of the newest checkpoint of a step of training.
func checkpointOf(db *store.DB, run store.Run, step int64) (string, error) {
	saved, err := keep.Saved(db, run.RID)
	if err != nil {
		return "", err
	}
	saved = slices.DeleteFunc(saved, func(s keep.SavedCheckpoint) bool {
		return !strings.HasPrefix(s.Stage, string(config.Train)+"-")
	})
	slices.SortStableFunc(saved, func(a, b keep.SavedCheckpoint) int { return b.Time.Compare(a.Time) })
	var there []int64
	for _, s := range saved {
		if s.Step == step {
			return s.Dir, nil
		}
		there = append(there, s.Step)
	}
	slices.Sort(there)
	return "", &keep.NoCheckpointError{RID: run.RID, Step: step, There: slices.Compact(there)}
}
