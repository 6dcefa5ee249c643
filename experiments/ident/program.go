package ident

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Program covers a program and its arguments that are files or folders, but not the text of the arguments. The error
// says what cannot be found or read.
func Program(argv []string) (Digest, error) {
	program, err := exec.LookPath(argv[0])
	switch {
	case errors.Is(err, fs.ErrPermission):
		return Digest{}, fmt.Errorf("%w: make it executable, or name first what runs it, such as python3", err)
	case err != nil:
		return Digest{}, err
	}
	paths := []string{program}
	if script := scriptOf(argv); script != "" {
		if _, err := os.Stat(script); err != nil {
			return Digest{}, fmt.Errorf("the script of %s: %w", argv[0], err)
		}
	}
	for _, a := range argv[1:] {
		if _, err := os.Stat(a); err == nil {
			paths = append(paths, a)
		}
	}
	return Paths(paths)
}

// interpreters run the script that their first argument names.
var interpreters = []string{"bash", "node", "perl", "python", "ruby", "sh"}

// scriptOf returns the script of a command such as python3.11 reward.py; empty if it runs none.
func scriptOf(argv []string) string {
	name := strings.TrimRight(filepath.Base(argv[0]), "0123456789.")
	if len(argv) < 2 || strings.HasPrefix(argv[1], "-") || !slices.Contains(interpreters, name) {
		return ""
	}
	return argv[1]
}

// maxFiles and maxBytes limit the size of a program's folder: a larger one was probably named by
// mistake.
const (
	maxFiles = 10000
	maxBytes = 1 << 30
)

// Paths covers files and folders that a program reads, in their order: the contents of a file, and of a folder also
// the names in it, but not the paths themselves.
func Paths(paths []string) (Digest, error) {
	list := make([]map[string]Digest, len(paths))
	for i, p := range paths {
		var err error
		if list[i], err = filesIn(p); err != nil {
			return Digest{}, err
		}
	}
	return Hash("exp/files/1", list)
}

// filesIn returns the digest of each file in a folder, by name, or of the file "." itself.
func filesIn(path string) (map[string]Digest, error) {
	root, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	files := map[string]Digest{}
	var bytes int64
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Stat(name) // of the link's target
		switch {
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a file: a program of a run may read files, and folders without links to "+
				"folders", name)
		}
		if bytes += info.Size(); len(files) == maxFiles || bytes > maxBytes {
			return fmt.Errorf("%s holds more than %d files or %d MiB; list what the program reads more precisely",
				path, maxFiles, maxBytes>>20)
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(rel)], err = sumOf(name)
		return err
	})
	return files, err
}

func sumOf(path string) (Digest, error) {
	f, err := os.Open(path)
	if err != nil {
		return Digest{}, err
	}
	defer f.Close() // only read
	d, _, err := SumReader(f)
	return d, err
}
