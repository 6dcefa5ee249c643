package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"exp/eval"
	"exp/eval/task"
	"exp/experiments/blob"
	"exp/experiments/bundle"
	"exp/experiments/query"
	"exp/experiments/store"
	"exp/harness/config"
	harness "exp/harness/run"
	"exp/train"
	"exp/train/checkpoint"
	"exp/train/tokenizer"
)

// known says what an error of a package that knows no exit codes means, and what to
// do about it; nil if it is none of those. Of an error that wraps several, what
// damage or divergence it holds counts before what is merely not there.
func known(err error) *failure {
	if f := knownConfig(err); f != nil {
		return f
	}
	f := &failure{Err: err, Help: hintOf(err)}
	switch {
	case isDivergence(err):
		f.Code = exitDivergence
	case isDamage(err):
		f.Code = exitIntegrity
	case isResource(err), isUnavailable(err):
		f.Code = exitResource
		if f.Help == "" && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) {
			f.Help = "free some space and run again: what is finished is kept"
		}
	case isAny[*eval.NotGradedError](err):
		f.Code = exitEvaluation
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrNoStore), isAny[*query.AmbiguousError](err):
		f.Code = exitNotFound
	case isBadInput(err):
		f.Code, f.Kind = exitUsage, "config"
	case isAny[*harness.PanicError](err):
		f.Code = exitFailure
		f.Kind = "panic"
		f.Help = "this is a bug in exp; please report it with the stack"
	case f.Help == "":
		return nil
	default:
		f.Code = exitFailure
		var coder interface{ ExitCode() int }
		if errors.As(err, &coder) {
			f.Code = exitCode(coder.ExitCode())
		}
	}
	return f
}

// knownConfig is known for what a person wrote: configurations that are wrong or ask
// for what this machine has not, and filters.
func knownConfig(err error) *failure {
	var faults config.Errors
	var fault *config.Error
	if errors.As(err, &fault) {
		faults = config.Errors{fault}
	}
	if errors.As(err, &faults) || fault != nil {
		f := &failure{Code: exitUsage, Kind: "config", Err: errors.New(strings.TrimRight(faults.Error(), "\n")), Render: faults.Text}
		for _, e := range faults {
			f.Problems = append(f.Problems, problem{ID: e.Code, File: e.Source, Line: e.Line, Column: e.Col, Message: e.Message, Help: e.Help})
		}
		return f
	}
	var lack *harness.RequireError
	if errors.As(err, &lack) {
		f := &failure{Code: exitCode(lack.ExitCode()), Err: err}
		for _, m := range lack.Missing {
			f.Problems = append(f.Problems, problem{Message: m})
		}
		f.Problems[0].Help = strings.Join(lack.Do, "; ")
		return f
	}
	var syntax *query.SyntaxError
	if errors.As(err, &syntax) {
		return &failure{Code: exitUsage, Err: err,
			Problems: []problem{{Message: fmt.Sprintf("filter %q: %s", syntax.Text, syntax.Msg), Help: syntax.Help, Column: syntax.Col + 1}}}
	}
	return nil
}

// isDivergence: the same work gave other bits.
func isDivergence(err error) bool {
	return isAny[*store.DivergenceError](err) || isAny[*train.MismatchError](err)
}

// isDamage: what was stored is not what is there now. A blob that is missing is
// damage too: its row says that it was there.
func isDamage(err error) bool {
	var b *blob.Error
	return errors.Is(err, store.ErrCorrupt) || errors.Is(err, blob.ErrCorrupt) || errors.Is(err, bundle.ErrCorrupt) || errors.Is(err, checkpoint.ErrCorrupt) ||
		isAny[*checkpoint.ProbeError](err) || errors.As(err, &b) && errors.Is(b.Err, fs.ErrNotExist)
}

// isUnavailable: the store or a file is all right, but not for this program, here
// and now.
func isUnavailable(err error) bool {
	return errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrReadOnly) || errors.Is(err, store.ErrNetwork) || errors.Is(err, store.ErrPlace) ||
		isAny[*store.VersionError](err) || errors.Is(err, checkpoint.ErrNewer)
}

// isBadInput: files that a configuration names, or what it asks of a task, cannot
// be.
func isBadInput(err error) bool {
	return isAny[*task.ScarceError](err) || isAny[*task.LineError](err) || isAny[*task.ConfigError](err) ||
		isAny[*checkpoint.ConfigError](err) || isAny[*checkpoint.MismatchError](err) || isAny[*tokenizer.UnknownRuneError](err)
}

// isAny reports whether err is or wraps an E.
func isAny[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// hintOf is what an error advises: a method Hint, or the field of one of our error
// types; otherwise what can be said of the error's kind.
func hintOf(err error) string {
	var (
		method interface{ Hint() string }
		s      *store.Error
		b      *blob.Error
		c      *checkpoint.Error
		none   *query.NotFoundError
		locked *store.LockedError
		d      *store.DivergenceError
		g      *eval.NotGradedError
	)
	switch {
	case errors.As(err, &method) && method.Hint() != "":
		return method.Hint()
	case errors.As(err, &s) && s.Hint != "":
		return s.Hint
	case errors.As(err, &b) && b.Hint != "":
		return b.Hint
	case errors.As(err, &c) && c.Hint != "":
		return c.Hint
	case errors.As(err, &none) && none.Hint != "":
		return none.Hint
	case errors.As(err, &locked):
		return "wait until it is done, or stop that process and run again: what it saved is kept"
	case errors.As(err, &d):
		return divergenceHint(d)
	case isAny[*train.MismatchError](err):
		return "sampler and trainer disagree: a bug in the engine or bad memory; exp doctor tests the machine"
	case isAny[*checkpoint.ProbeError](err):
		return "the merged weights were not kept; run again, and if it happens again check the disk and the memory"
	case errors.As(err, &g):
		return "nothing was scored; mend what the reason names, then run again: the completions are kept"
	}
	return ""
}

func divergenceHint(d *store.DivergenceError) string {
	kept := "the first result is kept and the new one recorded as a divergence"
	if d.RID.IsZero() {
		return kept + "; exp doctor tests whether this machine computes the same twice"
	}
	return kept + "; see exp show " + d.RID.Short()
}
