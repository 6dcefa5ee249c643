// Package bundle exports runs to one file and imports them into another store, with all
// their rows, blobs, sources and checkpoints.
//
// A bundle is a plain tar, which `tar tf` lists:
//
//	rows/TABLE.jsonl   a line with the columns, then one row per line
//	data/SHA256        contents of blobs and files, each once
//	manifest.json      table of contents, with digests (Manifest)
//	seal               SHA-256 of all bytes before it; the last 2 KiB of the file
//
// The same record gives the same bytes in every export: no export time, no row ids. Open
// accepts only unchanged files, and Import rehashes all contents as it reads them; rows
// become visible in one transaction, after everything they refer to is in place.
//
// The seal detects damage and manual changes. It is not a signature: anyone who rewrites
// the whole bundle can write a new seal.
package bundle

import (
	"errors"
	"fmt"
)

// ErrCorrupt means that a file is not a bundle or was changed.
var ErrCorrupt = errors.New("damaged or not a bundle")

// Error is an error in a bundle.
type Error struct {
	Path string
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("bundle %s: %v", e.Path, e.Err) }

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// Hint suggests what to do.
func (e *Error) Hint() string {
	if errors.Is(e.Err, ErrCorrupt) {
		return "nothing was imported; copy the file again from where it was made, or export the runs again"
	}
	return ""
}

// corrupt returns an error that wraps ErrCorrupt.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
}

// NewerError reports a bundle from a newer program's store.
type NewerError struct {
	Path       string
	Have, Want int // schema of the bundle, newest that this program knows
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("bundle %s: schema version %d was written by a newer exp, this one knows up to %d", e.Path,
		e.Have, e.Want)
}

// Hint suggests what to do.
func (e *NewerError) Hint() string { return "use a newer exp" }

// ExitCode returns the code for a missing resource.
func (e *NewerError) ExitCode() int { return 7 }
