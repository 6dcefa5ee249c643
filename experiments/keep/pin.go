package keep

import (
	"context"
	"fmt"
	"slices"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// NoCheckpointError is returned when a pin names a step whose checkpoint is not there.
type NoCheckpointError struct {
	RID   ident.Digest
	Step  int64
	There []int64 // the steps that have one, each once
}

func (e *NoCheckpointError) Error() string {
	return fmt.Sprintf("run %s has no checkpoint of step %d", e.RID.Short(), e.Step)
}

// Unwrap returns store.ErrNotFound.
func (e *NoCheckpointError) Unwrap() error { return store.ErrNotFound }

// Pin keeps all of a run from being collected.
func Pin(ctx context.Context, db *store.DB, run store.Run) error {
	return db.AddTag(ctx, run.ID, store.PinTag)
}

// Unpin undoes Pin; store.ErrNotFound if the run is not pinned.
func Unpin(ctx context.Context, db *store.DB, run store.Run) error {
	return db.RemoveTag(ctx, run.ID, store.PinTag)
}

// PinCheckpoint keeps the checkpoint of one step from being collected and from being
// replaced by newer ones. The error is a *NoCheckpointError if there is none.
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

// UnpinCheckpoint undoes PinCheckpoint, whether or not the files are there;
// store.ErrNotFound if the checkpoint is not pinned.
func UnpinCheckpoint(ctx context.Context, db *store.DB, run store.Run, step int64) error {
	return db.RemoveTag(ctx, run.ID, store.CheckpointPin(step))
}
