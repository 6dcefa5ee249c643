package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// writtenSources is the schema exp.sources/1.
type writtenSources struct {
	Run   ident.Digest `json:"run"`
	Code  ident.Digest `json:"code"` // of the training stage
	Go    string       `json:"go"`
	Dir   string       `json:"dir"`
	Files int          `json:"files"`
}

// writeSources writes the sources that trained a run to a folder that is new or
// empty. Stages that came from the cache may have been executed by other sources:
// those are warned of.
func (a *app) writeSources(ctx context.Context, db *store.DB, run store.Run, dir string) error {
	src, err := db.Source(ctx, run.Code)
	if errors.Is(err, store.ErrNotFound) {
		f := failf(exitNotFound, "the store has no sources of run %s", run.RID.Short())
		f.Help = "they are kept once a stage of the run was executed"
		return f
	}
	if err != nil {
		return err
	}
	if err := freeToWrite(dir); err != nil {
		return err
	}
	if err := extractWhole(db, src.Archive, dir); err != nil {
		return err
	}
	others, err := otherSources(ctx, db, run, dir)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		a.warn("executed by other sources than these: %s (exp show %s --stages has the code of each)", strings.Join(others, ", "), run.RID.Short())
	}
	out := writtenSources{Run: run.RID, Code: run.Code, Go: src.Go, Dir: dir}
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			out.Files++
		}
		return err
	})
	if err != nil {
		return err
	}
	return a.out.printDocument(document{Schema: "exp.sources/1", Data: out, Human: func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%d files of run %s (code %s, %s) are in %s\n", out.Files, run.RID.Short(), run.Code.Short(), src.Go, dir)
		return err
	}})
}

// freeToWrite refuses a path where something is.
func freeToWrite(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil || len(entries) > 0:
		f := usagef("--source %s: there is something already, and nothing is overwritten", dir)
		f.Help = "name a folder that does not exist or is empty"
		return f
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

// otherSources names the stages of a run that other sources executed than those in
// dir.
func otherSources(ctx context.Context, db *store.DB, run store.Run, dir string) ([]string, error) {
	stages, err := db.Stages(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	equal := map[ident.Digest]bool{}
	var others []string
	for _, st := range stages {
		same, seen := equal[st.Code]
		if !seen {
			if same, err = holds(ctx, db, st.Code, dir); err != nil {
				return nil, err
			}
			equal[st.Code] = same
		}
		if !same {
			others = append(others, stageName(st.Kind, st.Label))
		}
	}
	return others, nil
}

// holds reports whether the files of a code digest lie below dir as they were.
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
