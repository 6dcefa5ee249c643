package translate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// places are the folders in which files that a script names are looked for: those that the user gives, the
// script's own, and the folders above it, up to the root of a repository.
type places []string

func placesOf(script string, given []string) places {
	list := slices.Clone(given)
	dir, err := filepath.Abs(filepath.Dir(script))
	if err != nil {
		return list
	}
	for {
		list = append(list, dir)
		up := filepath.Dir(dir)
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil || up == dir {
			return list
		}
		dir = up
	}
}

// find returns where a file is: at its path, or below one of the folders. A script may start a path with
// variables that only its author's shell has, so the path may also lack its first folders.
func (p places) find(path string) (at string, ok bool) {
	path = place(path)
	if isFile(path) {
		return path, true
	}
	for rest := strings.TrimLeft(filepath.Clean("/"+path), "/"); rest != ""; {
		for _, dir := range p {
			if at := filepath.Join(dir, rest); isFile(at) {
				return at, true
			}
		}
		_, rest, _ = strings.Cut(rest, "/")
		if !strings.Contains(rest, "/") { // any folder may have a file of that name
			break
		}
	}
	return path, false
}

// found returns where a file is, or its path if it is not here.
func (p places) found(path string) string {
	at, _ := p.find(path)
	return at
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
