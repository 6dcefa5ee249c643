package keep

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// Lost returns the recorded blobs of a run that are missing or have the wrong size. It
// does not hash them.
func Lost(ctx context.Context, db *store.DB, run store.Run) ([]ident.Digest, error) {
	uses, err := db.UsesOf(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	recorded, err := db.BlobSizes(ctx, uses)
	if err != nil {
		return nil, err
	}
	var lost []ident.Digest
	for _, b := range recorded {
		size, err := db.Blobs.Stat(b.Digest)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && size != b.Size:
			lost = append(lost, b.Digest)
		case err != nil:
			return nil, err
		}
	}
	return lost, nil
}

// NeededBy returns the runs, except deleted ones, that depend on a run, each once.
func NeededBy(ctx context.Context, db *store.DB, run store.Run) ([]store.Run, error) {
	list, err := db.Dependants(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	var needed []store.Run
	for _, d := range list {
		if slices.ContainsFunc(needed, func(r store.Run) bool { return r.ID == d.Run }) {
			continue
		}
		other, err := db.RunByID(ctx, d.Run)
		if err != nil {
			return nil, err
		}
		if other.Deleted.IsZero() {
			needed = append(needed, other)
		}
	}
	return needed, nil
}
