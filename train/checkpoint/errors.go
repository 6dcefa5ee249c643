package checkpoint

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
	// ErrExists means that the target exists.
	ErrExists = errors.New("exists already")
	// ErrNone means that a directory holds no usable checkpoint.
	ErrNone = errors.New("no usable checkpoint")
	// ErrNewer means that a newer version of the program wrote the checkpoint.
	ErrNewer = errors.New("written by a newer version")
)

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
		return fmt.Sprintf("%s %s: tensor %q: %v", e.Op, e.Path, shortName(e.Tensor), e.Err)
	}
	return fmt.Sprintf("%s %s: %v", e.Op, e.Path, e.Err)
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// fileError returns the *Error of a failed system call. It names the system's path if there
// is one.
func fileError(op, path string, err error) error {
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

// corrupt returns an *Error that wraps ErrCorrupt with details.
func corrupt(path, tensor, format string, args ...any) *Error {
	err := fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
	return &Error{Op: "read", Path: path, Tensor: tensor, Err: err, Hint: hint(err)}
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

// MismatchError reports tensors of a file that differ from the requested ones. It lists all
// of them, sorted by name.
type MismatchError struct {
	Path       string
	Missing    []string   // requested, not in the file
	Unexpected []string   // in the file, not requested
	Misshaped  []Misshape // in both, but different
}

// Misshape is a tensor whose type or shape differs from the requested one.
type Misshape struct {
	Name      string
	Got, Want string // such as "F32 [4,8]"
}

func (e *MismatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "read %s: the tensors do not fit:", e.Path)
	list := func(what string, names []string) {
		for i, name := range names {
			if i == listed {
				fmt.Fprintf(&b, "\n  %s: and %d more", what, len(names)-i)
				return
			}
			fmt.Fprintf(&b, "\n  %s: %s", what, shortName(name))
		}
	}
	list("missing", e.Missing)
	list("unexpected", e.Unexpected)
	var shapes []string
	for _, m := range e.Misshaped {
		shapes = append(shapes, fmt.Sprintf("%s: the file has %s, wanted %s", m.Name, m.Got, m.Want))
	}
	list("shape", shapes)
	return b.String()
}

// shortName returns the name of a tensor shortened for errors.
func shortName(name string) string {
	const most = 300
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}

// listed is how many tensors of a kind an error names: a wrong architecture mismatches
// hundreds, and a few are enough.
const listed = 12

// orNil returns e, or nil if it lists nothing.
func (e *MismatchError) orNil() error {
	if len(e.Missing)+len(e.Unexpected)+len(e.Misshaped) == 0 {
		return nil
	}
	return e
}

// ProbeError reports a written folder that differs from its source. It names the first
// number that differs.
type ProbeError struct {
	Path        string // of the folder
	What        string // "elements of lm_head.weight"
	Row, Column int
	Got, Want   uint64 // bits, of the folder and of the trained model
}

func (e *ProbeError) Error() string {
	return fmt.Sprintf("merge %s: %s differ at row %d, column %d: bits are %#x in the folder, %#x in the model",
		e.Path, e.What, e.Row, e.Column, e.Got, e.Want)
}
