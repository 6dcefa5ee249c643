// Package trackers exports our runs to the formats of other trackers, and imports the
// files of other frameworks as foreign runs (runs that exp did not execute).
//
// Export (Write): TensorBoard event files, CSV, Parquet, an MLflow database. wandb-offline
// is missing: wandb's offline log is undocumented, and only its Python client writes it.
// `wandb sync` reads TensorBoard files.
//
// Import (Read, Foreign.Enter): verl's console log, file logger and dumps of completions;
// TensorBoard event files; tables of metrics as CSV or JSON lines. A foreign run keeps
// its source files as blobs; its id is a digest of them, so the same files give the same
// run. It has series, and completions if there were dumps, but no configuration, no chain
// and no weights.
package trackers

import (
	"errors"
	"fmt"
)

// ErrFormat means that a file does not have the expected format.
var ErrFormat = errors.New("not in this format")

// FormatError locates an error in a file.
type FormatError struct {
	Path string
	Line int    // from 1; 0 if the file has no lines
	Msg  string // "the value of critic/score/mean is \"x\""
	Help string // may be empty
}

func (e *FormatError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.Path, e.Msg)
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Msg)
}

// Unwrap returns ErrFormat.
func (e *FormatError) Unwrap() error { return ErrFormat }

// Hint suggests what to do.
func (e *FormatError) Hint() string { return e.Help }

// ExitCode returns the code for bad input.
func (e *FormatError) ExitCode() int { return 2 }
