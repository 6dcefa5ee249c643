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
	// ErrCorrupt is returned when a file is not what was written: truncated,
	// changed, or never in this format.
	ErrCorrupt = errors.New("corrupt file")
	// ErrExists is returned when the place to write to is taken.
	ErrExists = errors.New("exists already")
	// ErrNone is returned when a directory holds no usable checkpoint.
	ErrNone = errors.New("no usable checkpoint")
	// ErrNewer is returned when a newer version of the program wrote a checkpoint.
	ErrNewer = errors.New("written by a newer version")
)

// Error is an operation on a file or folder that did not work. A full disk is
// found with errors.Is(err, syscall.ENOSPC), a missing file with fs.ErrNotExist, a
// damaged one with ErrCorrupt.
type Error struct {
	Op     string // "read", "write", "merge", …
	Path   string
	Tensor string // the tensor that it is about; may be empty
	Err    error
	Hint   string // what a person can do; may be empty
}

func (e *Error) Error() string {
	if e.Tensor != "" {
		return fmt.Sprintf("%s %s: tensor %q: %v", e.Op, e.Path, shortName(e.Tensor), e.Err)
	}
	return fmt.Sprintf("%s %s: %v", e.Op, e.Path, e.Err)
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// fileError is the *Error of an operation that the system refused. It names the
// path that the system named, if it did.
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

// corrupt is an *Error that wraps ErrCorrupt and says what is wrong.
func corrupt(path, tensor, format string, args ...any) *Error {
	err := fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
	return &Error{Op: "read", Path: path, Tensor: tensor, Err: err, Hint: hint(err)}
}

func hint(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space and run again; nothing half-written was left, and what was there is kept"
	case errors.Is(err, ErrCorrupt):
		return "the file is cut short or damaged; fetch or write it again"
	case errors.Is(err, fs.ErrPermission):
		return "give the user who runs this permission, or choose another place"
	}
	return ""
}

// MismatchError is returned when the tensors of a file are not those that were
// asked for. It lists all of them, sorted by name.
type MismatchError struct {
	Path       string
	Missing    []string   // asked for, not in the file
	Unexpected []string   // in the file, not asked for
	Misshaped  []Misshape // in both, but unlike
}

// Misshape is a tensor whose type or shape is not the one that was asked for.
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

// shortName is the name of a tensor as errors show it.
func shortName(name string) string {
	const most = 300
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}

// listed is how many tensors of a kind an error's text names: a wrong
// architecture mismatches hundreds, and a few show which.
const listed = 12

// orNil returns e, or nil if it lists nothing.
func (e *MismatchError) orNil() error {
	if len(e.Missing)+len(e.Unexpected)+len(e.Misshaped) == 0 {
		return nil
	}
	return e
}

// ProbeError is returned when a folder that was written does not hold what it was written
// from. It names the first number that differs.
type ProbeError struct {
	Path        string // of the folder
	What        string // "elements of lm_head.weight"
	Row, Column int
	Got, Want   uint64 // bits, of the folder and of the trained model
}

func (e *ProbeError) Error() string {
	return fmt.Sprintf("merge %s: %s differ at row %d, column %d: the folder gives bits %#x, the model %#x",
		e.Path, e.What, e.Row, e.Column, e.Got, e.Want)
}
