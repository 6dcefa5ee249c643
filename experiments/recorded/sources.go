package recorded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// ErrOccupied is returned when a folder to write is there and is not empty.
var ErrOccupied = errors.New("there is something already, and nothing is overwritten")

// Sources says which sources were written where, the schema exp.sources/1.
type Sources struct {
	Run   ident.Digest `json:"run"`
	Code  ident.Digest `json:"code"` // of the training stage
	Go    string       `json:"go"`
	Dir   string       `json:"dir"`
	Files int          `json:"files"`

	// Others are the stages that other sources executed, as store.StageName: those that
	// came from the cache may have been.
	Others []string `json:"-"`
}

// WriteSources writes the sources that trained a run to a folder that is new or empty,
// all or nothing. The error wraps store.ErrNotFound if the store does not have them,
// ErrOccupied if something is in the way.
func WriteSources(ctx context.Context, db *store.DB, run store.Run, dir string) (*Sources, error) {
	src, err := db.Source(ctx, run.Code)
	if err != nil {
		return nil, err
	}
	if err := checkFree(dir); err != nil {
		return nil, err
	}
	if err := extractWhole(db, src.Archive, dir); err != nil {
		return nil, err
	}
	out := &Sources{Run: run.RID, Code: run.Code, Go: src.Go, Dir: dir}
	if out.Others, err = otherSources(ctx, db, run, dir); err != nil {
		return nil, err
	}
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			out.Files++
		}
		return err
	})
	return out, err
}

// checkFree refuses a path where something is.
func checkFree(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil || len(entries) > 0:
		return fmt.Errorf("%s: %w", dir, ErrOccupied)
	}
	return nil
}

// extractWhole extracts an archive to dir all or nothing.
func extractWhole(db *store.DB, archive ident.Digest, dir string) error {
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(parent, ".exp-source-*")
	if err != nil {
		return err
	}
	err = errors.Join(os.Chmod(tmp, 0o777), db.Blobs.ExtractTree(archive, tmp))
	if err == nil {
		_ = os.Remove(dir) // where it is an empty folder; anything else makes the next call fail
		err = os.Rename(tmp, dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	return nil
}

// otherSources names the stages of a run that were executed by sources other than
// those in dir.
func otherSources(ctx context.Context, db *store.DB, run store.Run, dir string) ([]string, error) {
	stages, err := db.Stages(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	equal := map[ident.Digest]bool{}
	var others []string
	for i := range stages {
		st := &stages[i]
		same, seen := equal[st.Code]
		if !seen {
			if same, err = holds(ctx, db, st.Code, dir); err != nil {
				return nil, err
			}
			equal[st.Code] = same
		}
		if !same {
			others = append(others, st.Name())
		}
	}
	return others, nil
}

// holds reports whether dir has the files of a code digest, unchanged.
func holds(ctx context.Context, db *store.DB, code ident.Digest, dir string) (bool, error) {
	src, err := db.Source(ctx, code)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, f := range src.Files {
		b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f.Path)))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if ident.Sum(b) != f.SHA256 {
			return false, nil
		}
	}
	return true, nil
}
