package blob

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"exp/experiments/ident"
)

// ErrCorrupt means that a blob's bytes differ from the stored ones.
var ErrCorrupt = errors.New("corrupt blob")

// Error is a failed operation on a blob. errors.Is matches a full disk with
// syscall.ENOSPC and a missing blob with fs.ErrNotExist.
type Error struct {
	Op     string // "store", "open", "verify", …
	Path   string
	Digest ident.Digest // zero if not known yet
	Err    error
	Hint   string // suggested fix; may be empty
}

func (e *Error) Error() string {
	if e.Digest.IsZero() {
		return fmt.Sprintf("%s blob: %s: %v", e.Op, e.Path, e.Err)
	}
	return fmt.Sprintf("%s blob %s: %s: %v", e.Op, e.Digest.Short(), e.Path, e.Err)
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// corrupt returns an error that wraps ErrCorrupt.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
}

func hint(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space and run again: finished work is kept"
	case errors.Is(err, ErrCorrupt):
		return "the file was changed outside exp or the disk is failing; move it away and rerun its stage"
	case errors.Is(err, fs.ErrNotExist):
		return "the blob was deleted or never arrived here; rerun its stage to recreate it"
	}
	return ""
}
