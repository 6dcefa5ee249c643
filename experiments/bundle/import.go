package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/experiments/store"
)

// SpaceError reports that a bundle does not fit. It wraps syscall.ENOSPC.
type SpaceError struct {
	Dir        string
	Need, Free int64 // bytes
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("the bundle needs %s in %s, but only %s is free", quantity.Bytes(e.Need), e.Dir,
		quantity.Bytes(e.Free))
}

// Unwrap returns syscall.ENOSPC.
func (e *SpaceError) Unwrap() error { return syscall.ENOSPC }

// spareSpace is left free for the database's log and other writers.
const spareSpace = 64 << 20

// Import adds the runs of the bundle to a store: first blobs and files, then all rows in
// one transaction (store.DB.ImportRows), so a run is imported whole or not at all.
// Existing runs stay unchanged, but get what they were imported without; one that got less
// far, and whose attempts the bundle all has, is continued (continue.go). progress, if not
// nil, receives the bytes done and in total.
func (b *Bundle) Import(ctx context.Context, db *store.DB, progress func(done, of int64)) (*store.Imported, error) {
	if progress == nil {
		progress = func(int64, int64) {}
	}
	in := &importing{Bundle: b, ctx: ctx, db: db, progress: progress, fresh: map[ident.Digest]bool{},
		lacks: map[ident.Digest]map[string]bool{}, over: map[ident.Digest]bool{}, put: map[ident.Digest]bool{}}
	defer in.release()
	for _, step := range []func() error{in.lock, in.plan, in.putBlobs, in.stageFiles} {
		if err := step(); err != nil {
			return nil, b.fail(err)
		}
	}
	done, err := in.rows()
	// Contradictory rows are the bundle's fault, not the store's.
	if errors.Is(err, store.ErrConstraint) {
		err = corrupt("%v", err)
	}
	if err == nil {
		in.placed = nil // they stay
		for i, p := range done.Present {
			done.Present[i].Weights = p.Weights || len(in.lacks[p.RID]) > 0
		}
	}
	return done, b.fail(err)
}

// importing is one Import.
type importing struct {
	*Bundle
	ctx      context.Context
	db       *store.DB
	progress func(done, of int64)
	fresh    map[ident.Digest]bool            // runs not in the store
	lacks    map[ident.Digest]map[string]bool // folders of weights, of runs in the store
	over     map[ident.Digest]bool            // runs in the store that the bundle continues
	read     map[ident.Digest]*progress       // see recordedProgress; nil until then
	locks    []*store.Lock
	blobs    []Data                // not in the store
	put      map[ident.Digest]bool // blobs that this import wrote
	files    []File                // to add
	tmp      string
	placed   []string // to remove on failure
	done, of int64
}

// lock takes the locks of the runs to add or complete, so that nobody starts executing them.
func (in *importing) lock() error {
	for _, r := range in.Manifest.Runs {
		here, err := in.db.Run(in.ctx, r.RID)
		if err == nil {
			err = in.lockPresent(here)
			if err == nil {
				continue
			}
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		l, err := in.db.LockRun(r.RID)
		if err != nil {
			return err
		}
		in.locks = append(in.locks, l)
		in.fresh[r.RID] = true
	}
	return nil
}

// plan determines what to copy and checks the free space.
func (in *importing) plan() error {
	for _, d := range in.Manifest.Blobs {
		if !in.db.Blobs.Keep(d.SHA256, d.Size) {
			in.blobs = append(in.blobs, d)
			in.of += d.Size
		}
	}
	for _, f := range in.Manifest.Files {
		if in.fresh[f.Run] || in.lacks[f.Run][folderOf(f.Path)] {
			in.files = append(in.files, f)
			in.of += f.Size
		}
	}
	need := in.of + spareSpace
	if len(in.fresh) > 0 {
		for _, t := range in.Manifest.Tables {
			need += 2 * t.Size // once in the log and once in the database
		}
	}
	free, err := in.db.Blobs.Free()
	if err == nil && need > free {
		err = &SpaceError{Dir: in.db.Dir(), Need: need, Free: free}
	}
	return err
}

func (in *importing) putBlobs() error {
	for _, d := range in.blobs {
		if err := in.next(d); err != nil {
			return err
		}
		got, _, err := in.db.Blobs.Put(in.entry(dataDir + d.SHA256.String()))
		if err != nil {
			return err
		}
		if got != d.SHA256 {
			return corrupt("the bytes of %s have digest %s", d.SHA256.Short(), got.Short())
		}
		in.put[d.SHA256] = true
	}
	return nil
}

// next advances to an entry's bytes.
func (in *importing) next(d Data) error {
	in.progress(in.done, in.of)
	in.done += d.Size
	return in.ctx.Err()
}

// stageFiles writes files next to their destination and moves them
// there. Files of an unknown run are left over from a killed import and are replaced.
func (in *importing) stageFiles() error {
	if len(in.files) == 0 {
		return nil
	}
	err := os.MkdirAll(filepath.Join(in.db.Dir(), "tmp"), 0o777)
	if err == nil {
		in.tmp, err = os.MkdirTemp(filepath.Join(in.db.Dir(), "tmp"), "import-*")
	}
	if err != nil {
		return err
	}
	for _, f := range in.files {
		if err := in.writeFile(f); err != nil {
			return err
		}
	}
	for rid := range in.fresh {
		if err := in.place(rid); err != nil {
			return err
		}
	}
	for rid, folders := range in.lacks {
		for folder := range folders {
			if err := in.placeFolder(rid, folder); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in *importing) writeFile(f File) error {
	if err := in.next(f.Data); err != nil {
		return err
	}
	path := filepath.Join(in.tmp, f.Run.String(), filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	// Merged weights are links of blobs, as the run that made them left them.
	if in.put[f.SHA256] && os.Link(in.db.Blobs.Path(f.SHA256), path) == nil {
		return nil
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer out.Close()
	sum := newSummer(out)
	if _, err := io.Copy(sum, in.entry(dataDir+f.SHA256.String())); err != nil {
		return err
	}
	if sum.digest() != f.SHA256 {
		return corrupt("the bytes of %s have digest %s", f.Path, sum.digest().Short())
	}
	return errors.Join(out.Sync(), out.Close())
}

// place moves a run's new files into its directory.
func (in *importing) place(rid ident.Digest) error {
	from, to := filepath.Join(in.tmp, rid.String()), in.db.RunDir(rid)
	list, err := os.ReadDir(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		target := filepath.Join(to, e.Name())
		if err == nil {
			err = os.RemoveAll(target)
		}
		if err == nil {
			err = os.Rename(filepath.Join(from, e.Name()), target)
		}
		if err == nil {
			in.placed = append(in.placed, target)
		}
	}
	return err
}

// rows adds the rows.
func (in *importing) rows() (*store.Imported, error) {
	tables := in.Manifest.Tables
	return in.db.ImportRowsOver(in.ctx, in.over, func() (store.PortableRows, error) {
		if len(tables) == 0 {
			return store.PortableRows{}, io.EOF
		}
		t := tables[0]
		tables = tables[1:]
		sum := newSummer(io.Discard)
		rd, err := newRowReader(io.TeeReader(in.entry(rowsDir+t.Name+".jsonl"), sum))
		if err != nil {
			return store.PortableRows{}, err
		}
		n := int64(0)
		return store.PortableRows{Table: t.Name, Columns: rd.columns, Next: func() ([]any, error) {
			row, err := rd.next()
			if err == nil {
				n++
				return row, in.ctx.Err()
			}
			if err == io.EOF && (sum.digest() != t.SHA256 || n != t.Rows) {
				return nil, corrupt("the rows of %s do not match the manifest", t.Name)
			}
			return nil, err
		}}, nil
	})
}

// release undoes a failed import and releases the locks.
func (in *importing) release() {
	for _, path := range in.placed {
		os.RemoveAll(path)
	}
	if in.tmp != "" {
		os.RemoveAll(in.tmp)
	}
	for _, l := range in.locks {
		l.Release() // only closing the file counts
	}
}
