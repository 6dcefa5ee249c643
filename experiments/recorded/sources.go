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

// ErrOccupied means that the folder to write exists and is not empty.
var ErrOccupied = errors.New("already exists and will not be overwritten")

// Sources describes the extracted sources, with the schema exp.sources/1.
type Sources struct {
	Run   ident.Digest `json:"run"`
	Code  ident.Digest `json:"code"` // of the training stage
	Go    string       `json:"go"`
	Dir   string       `json:"dir"`
	Files int          `json:"files"`

	// Others lists the stages that other sources executed, as store.StageName. This can
	// happen for cached stages.
	Others []string `json:"-"`
}

// WriteSources writes the sources that trained a run to a new or empty folder, all or
// nothing. The error wraps store.ErrNotFound if the store lacks them, ErrOccupied if the
// folder is in use.
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

// checkFree refuses an occupied path.
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
		_ = os.Remove(dir) // an empty folder; anything else makes the next call fail
		err = os.Rename(tmp, dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	return nil
}

// otherSources names the stages of a run that other sources than those in dir executed.
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

// holds reports whether dir has the files of a code digest unchanged.
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
