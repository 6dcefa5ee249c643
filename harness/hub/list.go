package hub

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Kept is a repository in a cache.
type Kept struct {
	Repo      Repo
	Bytes     int64 // of all blobs, or of the files on a file system without links
	Snapshots []Snapshot
}

// Snapshot is a commit in a cache.
type Snapshot struct {
	Commit    string
	Revisions []string // that meant it when they were fetched last
	Files     int
	Path      string
}

// List returns the repositories in the cache, sorted by folder.
func (c Cache) List() ([]Kept, error) {
	entries, err := os.ReadDir(c.Dir)
	if c.Dir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Kept
	for _, e := range entries {
		kind, name, ok := strings.Cut(e.Name(), "--")
		repo := Repo{Kind: Kind(strings.TrimSuffix(kind, "s")), Name: strings.ReplaceAll(name, "--", "/")}
		if !ok || repo.Folder() != e.Name() || repo.Kind != Model && repo.Kind != DataSet {
			continue
		}
		k := Kept{Repo: repo}
		if k.Bytes, err = size(c.repo(repo)); err != nil {
			return nil, err
		}
		if k.Snapshots, err = c.snapshots(repo); err != nil {
			return nil, err
		}
		list = append(list, k)
	}
	return list, nil
}

// size adds up the regular files of a folder.
func size(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}

// snapshots lists the commits of a repository, sorted.
func (c Cache) snapshots(r Repo) (list []Snapshot, err error) {
	names := map[string][]string{}
	refs := filepath.Join(c.repo(r), "refs")
	err = filepath.WalkDir(refs, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		revision, err := filepath.Rel(refs, path)
		if commit := c.commit(r, filepath.ToSlash(revision)); commit != "" {
			names[commit] = append(names[commit], filepath.ToSlash(revision))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	entries, err := os.ReadDir(c.snapshot(r, ""))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		have, err := c.files(r, e.Name())
		if err != nil {
			return nil, err
		}
		slices.Sort(names[e.Name()])
		list = append(list, Snapshot{Commit: e.Name(), Revisions: names[e.Name()], Files: len(have),
			Path: c.snapshot(r, e.Name())})
	}
	return list, nil
}
