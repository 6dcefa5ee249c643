package checkpoint

import (
	"errors"
	"os"
)

// errNotRegular is the reason why a pipe, a device or a folder is not read: opening one
// can wait for ever, and reading one can have no end.
var errNotRegular = errors.New("is not a regular file")

// openRegular opens a file for reading, or a link to one.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		return nil, fileError("read", path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError("read", path, err)
	}
	return f, nil
}
