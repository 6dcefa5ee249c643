package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"exp/cmd/exp/cli"
	"exp/experiments/query"
	"exp/harness/config"
	"exp/harness/fault"
	harness "exp/harness/run"
)

// describe says what an error means to the caller of the program; cause is why the
// command's context was cancelled, nil if it was not.
func describe(err, cause error) *cli.Failure { return cli.Describe(err, cause, known) }

// known gives the errors of the packages below an exit code and advice; nil for an
// error it does not know. If an error wraps several, damage and divergence outrank
// things that are merely missing.
func known(err error) *cli.Failure {
	if f := knownConfig(err); f != nil {
		return f
	}
	f := &cli.Failure{Err: err, Help: fault.Hint(err)}
	switch kind := fault.Of(err); {
	case kind == fault.Divergence:
		f.Code = cli.ExitDivergence
	case kind == fault.Damage:
		f.Code = cli.ExitIntegrity
	case isResource(err), kind == fault.Unavailable:
		f.Code = cli.ExitResource
		if f.Help == "" && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) {
			f.Help = "free some space and run again: finished work is kept"
		}
		if f.Help == "" && errors.Is(err, syscall.EFBIG) {
			f.Help = "the file system or ulimit -f allows no file of this size; raise it and run again"
		}
		if f.Help == "" && errors.Is(err, syscall.EIO) {
			f.Help = "the disk failed, dmesg says how; run again once it works: finished work is kept"
		}
	case kind == fault.Ungraded:
		f.Code = cli.ExitEvaluation
	case kind == fault.Absent:
		f.Code = cli.ExitNotFound
	case kind == fault.BadInput:
		f.Code, f.Kind = cli.ExitUsage, "config"
	case isAny[*harness.PanicError](err):
		f.Code = cli.ExitFailure
		f.Kind = "panic"
		f.Help = "this is a bug in exp; please report it with the stack"
	case isBadPath(err):
		f.Code = cli.ExitNotFound
		f.Help = cmp.Or(f.Help, "check the path: nothing can have this name")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		f.Code = cli.ExitResource
		f.Help = cmp.Or(f.Help, "check its permissions, or name another place")
	case f.Help == "":
		return nil
	default:
		f.Code = cli.ExitFailure
		var coder interface{ ExitCode() int }
		if errors.As(err, &coder) {
			f.Code = cli.ExitCode(coder.ExitCode())
		}
	}
	return f
}

// requireIndent is where the texts of a *harness.RequireError begin, after "  missing  ".
const requireIndent = 11

// knownConfig is known for user input: filters, and configurations that are wrong or
// need what this machine lacks.
func knownConfig(err error) *cli.Failure {
	var faults config.Errors
	var fault *config.Error
	if errors.As(err, &fault) {
		faults = config.Errors{fault}
	}
	if errors.As(err, &faults) || fault != nil {
		f := &cli.Failure{Code: cli.ExitUsage, Kind: "config",
			Err: errors.New(strings.TrimRight(faults.Error(), "\n")), Render: faults.Text}
		for _, e := range faults {
			f.Problems = append(f.Problems, cli.Problem{ID: e.Code, File: e.Source, Line: e.Line, Column: e.Col,
				Message: e.Message, Help: e.Help})
		}
		return f
	}
	var lack *harness.RequireError
	if errors.As(err, &lack) {
		f := &cli.Failure{Code: cli.ExitCode(lack.ExitCode()), Err: err, Hang: requireIndent}
		for _, m := range lack.Missing {
			f.Problems = append(f.Problems, cli.Problem{Message: m})
		}
		f.Problems[0].Help = strings.Join(lack.Do, "; ")
		return f
	}
	var held *harness.StoppedError
	if errors.As(err, &held) {
		return &cli.Failure{Code: cli.ExitCondition, Err: err}
	}
	var syntax *query.SyntaxError
	if errors.As(err, &syntax) {
		return &cli.Failure{Code: cli.ExitUsage, Err: err,
			Problems: []cli.Problem{{Message: fmt.Sprintf("%s %q: %s", syntax.Language, syntax.Text, syntax.Msg),
				Help: syntax.Help, Column: syntax.Col + 1}}}
	}
	return nil
}

// isAny reports whether err is or wraps an E.
func isAny[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// isBadPath reports whether a path leads through a file or in circles, or is too long.
func isBadPath(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENAMETOOLONG)
}

// isResource reports whether the machine, not the program, is at fault.
func isResource(err error) bool {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.ENOMEM, syscall.EMFILE,
		syscall.ENFILE, syscall.EIO, syscall.EFBIG} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
