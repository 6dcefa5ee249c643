//go:build !linux

package blob

import (
	"errors"
	"os"
)

func cloneInto(file, *os.File) error { return errors.ErrUnsupported }
