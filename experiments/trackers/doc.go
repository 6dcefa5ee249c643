// Package trackers turns runs of ours into the files of other trackers, and files of
// other frameworks into foreign runs.
//
// Out: TensorBoard event files, CSV, Parquet, an MLflow file store (Write). There is
// no wandb-offline: the log of an offline run is wandb's own and undocumented, only
// its Python client writes it. `wandb sync` takes TensorBoard files.
//
// In: what verl writes (console log, its file logger, dumps of completions),
// TensorBoard event files, tables of metrics as CSV or JSON lines (Read, Foreign.Enter).
// A foreign run keeps the very files that it was read from as blobs; its id is a
// digest of them, so the same files are the same run. It has series, and completions
// where there were dumps; it has no configuration, no chain and no weights.
package trackers

import (
	"errors"
	"fmt"
)

// ErrFormat is wrapped by errors about files that are not of the format that they
// should be.
var ErrFormat = errors.New("not in this format")

// FormatError is a place in a file that cannot be read.
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

// Hint says what a person can do.
func (e *FormatError) Hint() string { return e.Help }

// ExitCode is that of bad input.
func (e *FormatError) ExitCode() int { return 2 }
