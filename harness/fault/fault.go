// Package fault translates errors of lower packages for people: what kind of trouble it
// is and what to do about it. It knows no exit codes.
package fault

import (
	"errors"
	"io/fs"

	"exp/eval"
	"exp/eval/rows"
	"exp/eval/suite"
	"exp/eval/task"
	"exp/experiments/blob"
	"exp/experiments/bundle"
	"exp/experiments/query"
	"exp/experiments/store"
	"exp/kernels"
	"exp/train"
	"exp/train/checkpoint"
	"exp/train/tokenizer"
)

// Kind is a kind of trouble.
type Kind int

// The kinds, gravest first. If an error wraps several, the gravest counts.
const (
	Divergence  Kind = 1 + iota // repeated work gave different bits
	Damage                      // stored data changed or is missing
	Unavailable                 // the store, a file or a device cannot be used now, but nothing is damaged
	Ungraded                    // an evaluation gave no verdicts
	Absent                      // a name matches nothing, or several things
	BadInput                    // a configuration names a bad file or asks the impossible of a task
)

// Of returns the kind of an error, or 0 if it has none.
func Of(err error) Kind {
	switch {
	case isAny[*store.DivergenceError](err), isAny[*train.MismatchError](err):
		return Divergence
	case isDamage(err):
		return Damage
	case isUnavailable(err):
		return Unavailable
	case isAny[*eval.NotGradedError](err):
		return Ungraded
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrNoStore), isAny[*query.AmbiguousError](err):
		return Absent
	case isBadInput(err):
		return BadInput
	}
	return 0
}

// IsBadFile reports whether a data file named by the user has bad contents.
func IsBadFile(err error) bool {
	return isAny[*rows.Error](err) || isAny[*suite.DefinitionError](err) || isBadInput(err)
}

// isDamage: a missing blob is damage too, since its row says that it existed.
func isDamage(err error) bool {
	var b *blob.Error
	return errors.Is(err, store.ErrCorrupt) || errors.Is(err, blob.ErrCorrupt) ||
		errors.Is(err, bundle.ErrCorrupt) || errors.Is(err, checkpoint.ErrCorrupt) ||
		isAny[*checkpoint.ProbeError](err) || errors.As(err, &b) && errors.Is(b.Err, fs.ErrNotExist)
}

func isUnavailable(err error) bool {
	return errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrReadOnly) || errors.Is(err, store.ErrIO) ||
		errors.Is(err, store.ErrNetwork) || errors.Is(err, store.ErrPlace) ||
		isAny[*store.VersionError](err) || errors.Is(err, checkpoint.ErrNewer) ||
		isAny[*kernels.DeviceError](err) || isAny[*kernels.RoomError](err)
}

// DeviceLost reports whether a device failed so that only another process can go on.
func DeviceLost(err error) bool {
	var e *kernels.DeviceError
	return errors.As(err, &e) && e.Lasting
}

func isBadInput(err error) bool {
	return isAny[*task.ScarceError](err) || isAny[*task.LineError](err) || isAny[*task.ConfigError](err) ||
		isAny[*checkpoint.ConfigError](err) || isAny[*checkpoint.MismatchError](err) ||
		isAny[*tokenizer.UnknownRuneError](err)
}

// isAny reports whether err is or wraps an E.
func isAny[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}
