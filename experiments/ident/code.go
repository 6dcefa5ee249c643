package ident

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// File is one source file and the SHA-256 of its bytes.
type File struct {
	Path   string `json:"path"` // slash-separated, relative to the module's root
	SHA256 Digest `json:"sha256"`
}

// SumFiles returns the files of fsys that keep accepts, by path.
func SumFiles(fsys fs.FS, keep func(path string) bool) ([]File, error) {
	var files []File
	err := fs.WalkDir(fsys, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !keep(path) {
			return err
		}
		sum, err := sumFile(fsys, path)
		files = append(files, File{Path: path, SHA256: sum})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sources: %w", err)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// Code returns the digest of the sources that can change the bits of a stage. files must be sorted
// by path, as SumFiles returns them:
//
//	H("exp/code/1", {go: goVersion, files: [[path, sha256] by path]})
func Code(goVersion string, files []File) (Digest, error) {
	list := make([][]any, len(files))
	for i, f := range files {
		list[i] = []any{f.Path, f.SHA256}
	}
	return Hash("exp/code/1", map[string]any{"go": goVersion, "files": list})
}

// Change tells how a file differs between two lists of sources, a and b.
type Change string

// The changes of a file.
const (
	Changed Change = "changed"
	OnlyInA Change = "only in a"
	OnlyInB Change = "only in b"
)

// FileChange is a file that differs between two lists of sources.
type FileChange struct {
	Path   string
	Change Change
}

// CompareFiles returns the files that differ between two lists of sources, by path.
func CompareFiles(a, b []File) []FileChange {
	var changes []FileChange
	sums := map[string]Digest{}
	for _, f := range a {
		sums[f.Path] = f.SHA256
	}
	for _, f := range b {
		sum, ok := sums[f.Path]
		delete(sums, f.Path)
		switch {
		case !ok:
			changes = append(changes, FileChange{f.Path, OnlyInB})
		case sum != f.SHA256:
			changes = append(changes, FileChange{f.Path, Changed})
		}
	}
	for path := range sums {
		changes = append(changes, FileChange{path, OnlyInA})
	}
	slices.SortFunc(changes, func(x, y FileChange) int { return strings.Compare(x.Path, y.Path) })
	return changes
}

func sumFile(fsys fs.FS, path string) (Digest, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return Digest{}, err
	}
	defer f.Close()
	d, _, err := SumReader(f)
	return d, err
}
