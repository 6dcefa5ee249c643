package checkpoint

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"exp/train/checkpoint/fault"
)

var (
	// ErrCorrupt means that a file is not as written: truncated, changed, or never in this
	// format.
	ErrCorrupt = fault.ErrCorrupt
	// ErrExists means that the target exists.
	ErrExists = errors.New("exists already")
	// ErrNone means that a directory holds no usable checkpoint.
	ErrNone = errors.New("no usable checkpoint")
	// ErrNewer means that a newer version of the program wrote the checkpoint.
	ErrNewer = errors.New("written by a newer version")
)

// Error is a failed operation on a file or folder.
type Error = fault.Error

// fileError returns the *Error of a failed system call.
func fileError(op, path string, err error) error { return fault.File(op, path, err) }

// corrupt returns an *Error that wraps ErrCorrupt with details.
func corrupt(path, tensor, format string, args ...any) *Error {
	return fault.Corrupt(path, tensor, format, args...)
}

// ofTensor names the tensor in an error that has none, unless the system failed.
func ofTensor(name string, err error) error {
	var system syscall.Errno
	if e := (*Error)(nil); errors.As(err, &e) && e.Tensor == "" && !errors.As(err, &system) {
		named := *e
		named.Tensor = name
		return &named
	}
	return err
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
			fmt.Fprintf(&b, "\n  %s: %s", what, fault.ShortName(name))
		}
	}
	list("missing", e.Missing)
	list("unexpected", e.Unexpected)
	var types, shapes []string
	for _, m := range e.Misshaped {
		got, shape, _ := strings.Cut(m.Got, " ")
		if m.Want == string(F32)+" "+shape && !DType(got).convertible() {
			types = append(types, fmt.Sprintf("%s: the file has %s; only F32, BF16, F16 and F64 can be read", m.Name,
				got))
			continue
		}
		shapes = append(shapes, fmt.Sprintf("%s: the file has %s, wanted %s", m.Name, m.Got, m.Want))
	}
	list("type", types)
	list("shape", shapes)
	return b.String()
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
