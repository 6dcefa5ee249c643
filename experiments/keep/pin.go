package keep

import (
	"context"
	"fmt"
	"slices"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// NoCheckpointError reports a pin of a step without a checkpoint.
type NoCheckpointError struct {
	RID   ident.Digest
	Step  int64
	There []int64 // the steps with a checkpoint, each once
}

func (e *NoCheckpointError) Error() string {
	return fmt.Sprintf("run %s has no checkpoint of step %d", e.RID.Short(), e.Step)
}

// Unwrap returns store.ErrNotFound.
func (e *NoCheckpointError) Unwrap() error { return store.ErrNotFound }

// Pin protects a whole run from being collected.
func Pin(ctx context.Context, db *store.DB, run store.Run) error {
	return db.AddTag(ctx, run.ID, store.PinTag)
}

// Unpin undoes Pin; store.ErrNotFound if the run is not pinned.
func Unpin(ctx context.Context, db *store.DB, run store.Run) error {
	return db.RemoveTag(ctx, run.ID, store.PinTag)
}

// PinCheckpoint protects the checkpoint of one step from being collected or replaced by
// newer ones. The error is a *NoCheckpointError if it does not exist.
func PinCheckpoint(ctx context.Context, db *store.DB, run store.Run, step int64) error {
	saved, err := Saved(db, run.RID)
	if err != nil {
		return err
	}
	var there []int64
	for _, s := range saved {
		if !slices.Contains(there, s.Step) {
			there = append(there, s.Step)
		}
	}
	if !slices.Contains(there, step) {
		return &NoCheckpointError{RID: run.RID, Step: step, There: there}
	}
	return db.AddTag(ctx, run.ID, store.CheckpointPin(step))
}

// UnpinCheckpoint undoes PinCheckpoint, whether or not the files exist; store.ErrNotFound
// if the checkpoint is not pinned.
func UnpinCheckpoint(ctx context.Context, db *store.DB, run store.Run, step int64) error {
	return db.RemoveTag(ctx, run.ID, store.CheckpointPin(step))
}
