package keep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// blobsAtOnce is the number of blobs removed per transaction, which blocks other writers.
const blobsAtOnce = 200

// Freed is the result of Apply.
type Freed struct {
	Items []Item // removed items; Bytes is the size freed
	// Kept lists items that came into use after the sweep or could not be removed, with
	// the reason.
	Kept []KeptItem
}

// KeptItem is an item that was not removed.
type KeptItem struct {
	Item Item
	Why  string
}

// Apply removes the items of a plan. It checks each one again right before removing it,
// so runs may be executed at the same time and keep what they need. Rows go before files:
// if Apply is interrupted, the next sweep finds the files.
func Apply(ctx context.Context, db *store.DB, p *Plan) (*Freed, error) {
	a := &applying{ctx: ctx, db: db, before: p.opts.Now.Add(-max(Grace, p.opts.OlderThan)), freed: &Freed{}}
	// Deleted runs may depend on each other: a run that another one needs waits for the
	// next round. Those that wait for each other go together.
	for items := p.Items; len(items) > 0; {
		waiting, err := a.round(items)
		if err != nil {
			return a.freed, err
		}
		if len(waiting) == len(items) {
			return a.freed, a.together(waiting)
		}
		items = waiting
	}
	return a.freed, nil
}

type applying struct {
	ctx    context.Context
	db     *store.DB
	before time.Time // blobs stored before it may go
	freed  *Freed
}

func (a *applying) keep(it Item, why string) {
	a.freed.Kept = append(a.freed.Kept, KeptItem{it, why})
}

func (a *applying) went(it Item, bytes int64) {
	it.Bytes = bytes
	a.freed.Items = append(a.freed.Items, it)
}

// round removes items and returns the ones that must wait for others.
func (a *applying) round(items []Item) (waiting []Item, err error) {
	for len(items) > 0 {
		if err := a.ctx.Err(); err != nil {
			return nil, err
		}
		it := items[0]
		n := 1
		switch it.Kind {
		case Unreferenced, Training:
			for n < len(items) && n < blobsAtOnce && items[n].Kind == it.Kind {
				n++
			}
			err = a.blobs(items[:n])
		case DeletedRuns:
			err = a.run(it)
		default:
			err = a.folder(it)
		}
		if errors.Is(err, store.ErrInUse) {
			waiting, err = append(waiting, it), nil
		}
		var locked *store.LockedError
		if errors.As(err, &locked) {
			a.keep(it, locked.Error())
			err = nil
		}
		if err != nil {
			return nil, err
		}
		items = items[n:]
	}
	return waiting, nil
}

// blobs removes blobs of one kind.
func (a *applying) blobs(items []Item) error {
	var digests []ident.Digest
	for _, it := range items {
		digests = append(digests, it.digests...)
	}
	if items[0].Kind == Training {
		if err := a.db.ForgetTexts(a.ctx, digests); err != nil {
			return err
		}
	}
	gone, err := a.removeBlobs(digests)
	for _, it := range items {
		if size, ok := gone[it.digests[0]]; ok {
			a.went(it, size)
		} else if err == nil {
			a.keep(it, "it came into use")
		}
	}
	return err
}

// removeBlobs returns the sizes of the removed blobs.
func (a *applying) removeBlobs(digests []ident.Digest) (map[ident.Digest]int64, error) {
	gone := map[ident.Digest]int64{}
	for len(digests) > 0 {
		n := min(len(digests), blobsAtOnce)
		err := a.db.RemoveBlobs(a.ctx, digests[:n], func(d ident.Digest) error {
			size, err := a.db.Blobs.Stat(d)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			removed, err := a.db.Blobs.Remove(d, a.before)
			if err == nil && !removed {
				return store.ErrInUse
			}
			if err == nil {
				gone[d] = size
			}
			return err
		})
		if err != nil {
			return gone, err
		}
		digests = digests[n:]
	}
	return gone, nil
}

// run removes a deleted run, its blobs and its folder.
func (a *applying) run(it Item) error {
	lock, err := a.db.LockRun(it.run.RID)
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := a.db.RemoveRun(a.ctx, it.run.ID); err != nil {
		return err
	}
	return a.leftBy(it)
}

// leftBy removes the blobs and the folder of a run whose rows are gone.
func (a *applying) leftBy(it Item) error {
	gone, err := a.removeBlobs(it.digests)
	var bytes int64
	for _, size := range gone {
		bytes += size
	}
	freed, e := a.discard(it.path)
	a.went(it, bytes+freed)
	return errors.Join(err, e)
}

// together removes deleted runs that depend on each other.
func (a *applying) together(items []Item) error {
	var ids []int64
	for _, it := range items {
		lock, err := a.db.LockRun(it.run.RID)
		if errors.Is(err, store.ErrBusy) {
			continue // in use: it stays, and so do the runs it depends on
		}
		if err != nil {
			return err
		}
		defer lock.Release()
		ids = append(ids, it.run.ID)
	}
	removed, err := a.db.RemoveRuns(a.ctx, ids)
	if err != nil {
		return err
	}
	for _, it := range items {
		if !slices.Contains(removed, it.run.ID) {
			a.keep(it, "another run depends on it, or it was restored")
		} else if err := a.leftBy(it); err != nil {
			return err
		}
	}
	return nil
}

// folder removes a file or folder of the store, a checkpoint under its run's lock.
func (a *applying) folder(it Item) error {
	if it.run != nil {
		lock, err := a.db.LockRun(it.run.RID)
		if err != nil {
			return err
		}
		defer lock.Release()
		tags, err := a.db.Tags(a.ctx, it.run.ID)
		if err != nil {
			return err
		}
		if store.KeepsCheckpoint(tags, it.step) {
			a.keep(it, "it was pinned")
			return nil
		}
		if err := a.db.ForgetCheckpoint(a.ctx, it.run.ID, it.step); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	freed, err := a.discard(it.path)
	if err == nil {
		a.went(it, freed)
	}
	return err
}

// discard deletes a path of the store. It renames the path first, so that nothing
// half-deleted can be found under its name.
func (a *applying) discard(path string) (int64, error) {
	from := filepath.Join(a.db.Dir(), path)
	size, err := treeSize(from)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	trash := filepath.Join(a.db.Dir(), "trash")
	if err := os.MkdirAll(trash, 0o777); err != nil {
		return 0, err
	}
	away, err := os.MkdirTemp(trash, "gone-*")
	if err != nil {
		return 0, err
	}
	if err := os.Rename(from, filepath.Join(away, filepath.Base(from))); err != nil {
		return 0, fmt.Errorf("remove %s: %w", path, errors.Join(err, os.Remove(away)))
	}
	return size, os.RemoveAll(away)
}
