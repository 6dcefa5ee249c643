// Package fault says what the errors of the packages below mean to a person: which kind of
// trouble it is, and what to do about it. It knows no exit codes.
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
	"exp/train"
	"exp/train/checkpoint"
	"exp/train/tokenizer"
)

// Kind is a kind of trouble.
type Kind int

// The kinds, the gravest first. Where an error wraps several, the gravest counts.
const (
	Divergence  Kind = 1 + iota // the same work gave other bits
	Damage                      // what was stored is not what is there now
	Unavailable                 // the store or a file is all right, but not for this program, here and now
	Ungraded                    // an evaluation gave no verdicts
	Absent                      // nothing has that name, or several things do
	BadInput                    // a file that a configuration names, or what it asks of a task, is wrong
)

// Of is the kind of an error; 0 if it is none of them.
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

// IsBadFile reports whether a data file that a person named holds what it should not.
func IsBadFile(err error) bool {
	return isAny[*rows.Error](err) || isAny[*suite.DefinitionError](err) || isBadInput(err)
}

// isDamage: a missing blob is damage too, since its row says that it was there.
func isDamage(err error) bool {
	var b *blob.Error
	return errors.Is(err, store.ErrCorrupt) || errors.Is(err, blob.ErrCorrupt) ||
		errors.Is(err, bundle.ErrCorrupt) || errors.Is(err, checkpoint.ErrCorrupt) ||
		isAny[*checkpoint.ProbeError](err) || errors.As(err, &b) && errors.Is(b.Err, fs.ErrNotExist)
}

func isUnavailable(err error) bool {
	return errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrReadOnly) ||
		errors.Is(err, store.ErrNetwork) || errors.Is(err, store.ErrPlace) ||
		isAny[*store.VersionError](err) || errors.Is(err, checkpoint.ErrNewer)
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
