package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"exp/cmd/exp/term"
)

// exitCode is what the process exits with.
type exitCode int

// The exit codes, one per thing that a script may want to react to.
const (
	exitOK            exitCode = 0
	exitFailure       exitCode = 1 // unexpected
	exitUsage         exitCode = 2 // bad usage or bad config
	exitNotFound      exitCode = 3 // not found or ambiguous reference
	exitIntegrity     exitCode = 4 // digest mismatch, corrupt blob, broken chain
	exitDivergence    exitCode = 5 // re-execution, resume or cache gave other bits
	exitNotComparable exitCode = 6 // arms that must not be compared
	exitResource      exitCode = 7 // disk full, out of memory, no device, lock timeout
	exitEvaluation    exitCode = 8 // sandbox unusable, too many infrastructure errors
	exitCondition     exitCode = 9 // a --fail-if condition held
	exitInterrupted   exitCode = 130
	exitTerminated    exitCode = 143
)

// kind is the word for the code in JSON errors.
func (c exitCode) kind() string {
	switch c {
	case exitUsage:
		return "usage"
	case exitNotFound:
		return "not_found"
	case exitIntegrity:
		return "integrity"
	case exitDivergence:
		return "divergence"
	case exitNotComparable:
		return "not_comparable"
	case exitResource:
		return "resource"
	case exitEvaluation:
		return "evaluation"
	case exitCondition:
		return "condition"
	case exitInterrupted:
		return "interrupted"
	case exitTerminated:
		return "terminated"
	}
	return "failure"
}

// failure is an error of which the command line knows all there is to say.
type failure struct {
	Code exitCode
	Kind string // for JSON errors; empty: the code's own word
	Err  error  // what is wrong, lower-case
	Help string // what to do, one line; may be empty
	See  string // the command whose help explains it; may be empty

	// Text, if not empty, is printed as it is instead of "error: …": several
	// errors with their places, or a table that explains. Render, if not nil, makes
	// that text for a terminal with or without colour.
	Text   string
	Render func(color bool) string

	// Problems, if not empty, are the "errors" of a JSON error; else Err is.
	Problems []problem
}

// problem is one of the errors that were found, with its place if it has one.
type problem struct {
	Message string `json:"message"`
	Help    string `json:"help,omitempty"`
	ID      string `json:"id,omitempty"` // "E102"
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"` // from 1
	Column  int    `json:"column,omitempty"`
	Stack   string `json:"stack,omitempty"`
}

func (f *failure) Error() string { return f.Err.Error() }
func (f *failure) Unwrap() error { return f.Err }

// ExitCode makes failure what describe looks for in any error.
func (f *failure) ExitCode() int { return int(f.Code) }

// see names the command whose help explains the error.
func (f *failure) see(command string) *failure {
	f.See = command
	return f
}

// failf makes an error with an exit code; format is as in fmt.Errorf.
func failf(code exitCode, format string, args ...any) *failure {
	return &failure{Code: code, Err: fmt.Errorf(format, args...)}
}

// usagef makes an error for arguments that make no sense.
func usagef(format string, args ...any) *failure {
	return failf(exitUsage, format, args...)
}

// errSaid ends the program with a code when the command has already printed all
// there is to say.
func errSaid(code exitCode) error {
	return &failure{Code: code, Err: errors.New("")}
}

// stoppedf makes the error of a command that a signal kept from finishing: ctx
// is the command's, the text says what was saved and how to go on.
func stoppedf(ctx context.Context, format string, args ...any) error {
	return &stopError{fmt.Sprintf(format, args...), context.Cause(ctx)}
}

type stopError struct {
	text  string
	cause error
}

func (e *stopError) Error() string { return e.text }
func (e *stopError) Unwrap() error { return e.cause }

// signalError is the cause of a context that a signal cancelled.
type signalError struct{ sig os.Signal }

func (e *signalError) Error() string { return e.sig.String() }

// Is makes it a context.Canceled, which is what code below returns.
func (e *signalError) Is(target error) bool { return target == context.Canceled }

// signalCode is 128 plus the number of the signal, as shells count.
func signalCode(sig os.Signal) exitCode {
	if sig == syscall.SIGTERM {
		return exitTerminated
	}
	return exitInterrupted
}

// describe finds out what an error means to the caller of the program. cause is
// why the command's context was cancelled, nil if it was not.
//
// Errors carry their code by a method ExitCode() int. Errors of packages that
// know no exit codes are told apart by known.
func describe(err, cause error) *failure {
	var sig *signalError
	if errors.As(cause, &sig) && errors.Is(err, context.Canceled) {
		if errors.Unwrap(err) == nil { // "context canceled" tells a person nothing
			err = errors.New("the command did not finish")
		}
		return &failure{Code: signalCode(sig.sig), Err: err}
	}
	var f *failure
	if errors.As(err, &f) {
		d := *f
		d.Err = err // with what was wrapped around it
		return &d
	}
	if f := known(err); f != nil {
		return f
	}
	var coder interface{ ExitCode() int }
	if errors.As(err, &coder) {
		return &failure{Code: exitCode(coder.ExitCode()), Err: err}
	}
	return &failure{Code: exitFailure, Err: err}
}

// isResource is true of errors of the machine and not of the program.
func isResource(err error) bool {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// report prints err to stderr and returns the exit code. A nil error is silent.
func (a *app) report(ctx context.Context, err error) exitCode {
	if err == nil {
		return exitOK
	}
	f := describe(err, context.Cause(ctx))
	switch {
	case a.wantsJSONErrors():
		writeJSONError(a.stderr, f)
	case f.Err.Error() == "": // errSaid
	default:
		writeError(a.stderr, f, a.errStream())
	}
	return f.Code
}

// wantsJSONErrors also looks at the arguments themselves, for errors that come
// before the parser.
func (a *app) wantsJSONErrors() bool {
	if a.jsonErrors || a.line.global(flagJSON) == "true" {
		return true
	}
	f := format(a.line.global(flagOutput))
	return f == formatJSON || f == formatJSONL
}

// writeError prints an error for a person: one line that says what is wrong,
// then what to do.
func writeError(w io.Writer, f *failure, s term.Stream) {
	text := f.Text
	if f.Render != nil {
		text = f.Render(s.Color)
	}
	if text != "" {
		_, _ = io.WriteString(w, strings.TrimRight(text, "\n")+"\n")
		return
	}
	label, style := "error:", term.Bad
	code := ""
	switch {
	case f.Code >= exitInterrupted:
		label, style = f.Code.kind()+":", term.Warn
	case f.Code >= exitNotFound:
		code = fmt.Sprintf(" (exit %d)", f.Code)
	}
	help := ""
	switch {
	case f.See != "" && f.Help != "":
		code, help = "; "+f.Help+code, "see "+f.See+" --help\n"
	case f.See != "":
		help = "see " + f.See + " --help\n"
	case f.Help != "":
		help = "  " + term.Accent.Paint("help:", s.Color) + " " + term.CleanLines(f.Help) + "\n"
	}
	// The code belongs to the first line: those after it may be a list or a table.
	first, rest, more := strings.Cut(term.CleanLines(f.Err.Error()), "\n")
	if more {
		rest = "\n" + rest
	}
	fmt.Fprintf(w, "%s %s%s%s\n%s", style.Paint(label, s.Color), first, code, rest, help)
}

// jsonError is the schema exp.error/1.
type jsonError struct {
	Schema string    `json:"schema"`
	Code   exitCode  `json:"code"`
	Kind   string    `json:"kind"`
	Errors []problem `json:"errors"`
}

func writeJSONError(w io.Writer, f *failure) {
	problems := f.Problems
	if len(problems) == 0 {
		for _, err := range parts(f.Err) {
			problems = append(problems, problem{Message: err.Error()})
		}
		problems[0].Help = f.Help
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(jsonError{"exp.error/1", f.Code, or(f.Kind, f.Code.kind()), problems})
}

// parts takes errors.Join apart, to report each error. Other errors that wrap
// several have words of their own around them and stay whole.
func parts(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		if list := joined.Unwrap(); len(list) > 0 && errors.Join(list...).Error() == err.Error() {
			return list
		}
	}
	return []error{err}
}

// reportPanic reports a bug of ours. Only panics of the command's own goroutine
// come here.
func (a *app) reportPanic(value any, stack []byte) exitCode {
	f := failf(exitFailure, "internal error: %v", value)
	f.Kind = "panic"
	f.Help = "this is a bug in exp; please report it with the stack"
	where := ""
	if a.panicLog != nil {
		where = a.panicLog(value, stack)
	}
	if where != "" {
		f.Help += " in " + where
		stack = nil
	}
	if a.wantsJSONErrors() {
		f.Problems = []problem{{Message: f.Err.Error(), Help: f.Help, Stack: string(stack)}}
		writeJSONError(a.stderr, f)
		return f.Code
	}
	writeError(a.stderr, f, a.errStream())
	_, _ = a.stderr.Write(stack)
	return f.Code
}
