// Package bundle carries runs from store to store in one file with everything that
// they are made of: rows, blobs, sources, checkpoints.
//
// A bundle is a plain tar, which `tar tf` lists:
//
//	rows/TABLE.jsonl   a line with the columns, then one row a line
//	data/SHA256        contents of blobs and files, each once
//	manifest.json      what is in it, with digests (Manifest)
//	seal               SHA-256 of all bytes before it; the last 2 KiB of the file
//
// The same record gives the same bytes, wherever it was exported: no time of the
// export, no numbers of rows. Open accepts a file only if every bit of it is as it
// was written, and Import hashes all contents again as it reads them; rows become
// visible in one transaction, after everything that they refer to is in its place.
//
// The seal protects against damage and against changes by hand. It is no signature:
// who rewrites a bundle whole can write another seal.
package bundle

import (
	"errors"
	"fmt"
)

// ErrCorrupt is wrapped by errors about a file that is not a bundle, or not as it was
// written.
var ErrCorrupt = errors.New("damaged or no bundle")

// Error is something wrong with a bundle.
type Error struct {
	Path string
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("bundle %s: %v", e.Path, e.Err) }

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// Hint says what a person can do.
func (e *Error) Hint() string {
	if errors.Is(e.Err, ErrCorrupt) {
		return "nothing was imported; copy the file again from where it was made, or export the runs again"
	}
	return ""
}

// corrupt is an error that wraps ErrCorrupt and says what is wrong.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
}

// NewerError is returned for a bundle of a store that this program is too old for.
type NewerError struct {
	Path       string
	Have, Want int // schema of the bundle, newest that this program knows
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("bundle %s: schema version %d was written by a newer exp, this one knows up to %d", e.Path,
		e.Have, e.Want)
}

// Hint says what a person can do.
func (e *NewerError) Hint() string { return "use a newer exp" }

// ExitCode is that of a resource that is missing here.
func (e *NewerError) ExitCode() int { return 7 }
