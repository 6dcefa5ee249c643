package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"exp/cmd/exp/cli"
)

// checkOutputFolder returns an error if the folder of a file to be written does not exist.
func checkOutputFolder(path string) error {
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return cli.Usagef("cannot write %s: the folder %s does not exist", path, dir).
			Advise(strings.Join(quoteAll([]string{"mkdir", "-p", dir}), " "))
	}
	return nil
}
