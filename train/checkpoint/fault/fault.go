// Package fault opens files of weights and holds the errors about them. They name the file,
// the tensor, the trouble and the cure. All readers of checkpoints return them.
package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

var (
	// ErrCorrupt means that a file is not as written: truncated, changed, or never in this
	// format.
	ErrCorrupt = errors.New("corrupt file")
	// ErrNotRegular refuses pipes, devices and folders: opening one can block for ever, and
	// reading one may never end.
	ErrNotRegular = errors.New("is not a regular file")
)

// OpenRegular opens a file for reading, or a link to one. Its errors are *Error.
func OpenRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotRegular
	}
	if errors.Is(err, fs.ErrNotExist) {
		if to, linked := os.Readlink(path); linked == nil {
			return nil, &Error{Op: "read", Path: path, Err: fmt.Errorf("is a link to %s, which does not exist", to),
				Hint: "the download is not complete; fetch it again"}
		}
	}
	if err != nil {
		return nil, File("read", path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, File("read", path, err)
	}
	return f, nil
}

// Error is a failed operation on a file or folder. Use errors.Is(err, syscall.ENOSPC) for a
// full disk, fs.ErrNotExist for a missing file, ErrCorrupt for a damaged one.
type Error struct {
	Op     string // "read", "write", "merge", …
	Path   string
	Tensor string // the tensor concerned; may be empty
	Err    error
	Hint   string // advice; may be empty
}

func (e *Error) Error() string {
	if e.Tensor != "" {
		return fmt.Sprintf("%s %s: tensor %q: %v", e.Op, e.Path, ShortName(e.Tensor), e.Err)
	}
	return fmt.Sprintf("%s %s: %v", e.Op, e.Path, e.Err)
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// File returns the *Error of a failed system call; an *Error is returned unchanged. It
// names the system's path if there is one.
func File(op, path string, err error) error {
	if done := (*Error)(nil); errors.As(err, &done) {
		return err
	}
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		path, err = pe.Path, pe.Err
	case errors.As(err, &le):
		path, err = le.New, le.Err
	}
	return &Error{Op: op, Path: path, Err: err, Hint: hint(err)}
}

// Corrupt returns an *Error that wraps ErrCorrupt with details. tensor may be empty.
func Corrupt(path, tensor, format string, args ...any) *Error {
	err := fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
	return &Error{Op: "read", Path: path, Tensor: tensor, Err: err, Hint: hint(err)}
}

// Refuse returns an *Error about a file that is as written but cannot be used, with advice.
func Refuse(path, tensor, hint, format string, args ...any) *Error {
	return &Error{Op: "read", Path: path, Tensor: tensor, Err: fmt.Errorf(format, args...), Hint: hint}
}

func hint(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space and run again; nothing partial was left, and earlier files are kept"
	case errors.Is(err, ErrCorrupt):
		return "the file is truncated or damaged; fetch or write it again"
	case errors.Is(err, fs.ErrPermission):
		return "give this user permission, or choose another place"
	}
	return ""
}

// ShortName returns the name of a tensor shortened for errors.
func ShortName(name string) string {
	const most = 300
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}
