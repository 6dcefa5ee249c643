package cli

import (
	"cmp"
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

// ExitCode is the exit code of the process.
type ExitCode int

// The exit codes, one for each case that a script may handle.
const (
	ExitOK            ExitCode = 0
	ExitFailure       ExitCode = 1  // unexpected
	ExitUsage         ExitCode = 2  // bad usage or bad config
	ExitNotFound      ExitCode = 3  // not found or ambiguous reference
	ExitIntegrity     ExitCode = 4  // digest mismatch, corrupt blob, broken chain
	ExitDivergence    ExitCode = 5  // re-execution, resume or cache gave other bits
	ExitNotComparable ExitCode = 6  // arms that must not be compared
	ExitResource      ExitCode = 7  // disk full, out of memory, no device, lock timeout
	ExitEvaluation    ExitCode = 8  // sandbox unusable, too many infrastructure errors
	ExitCondition     ExitCode = 9  // a condition of --fail-if or --stop-if held
	ExitRank          ExitCode = 10 // a rank was lost or hung: the run can be resumed
	ExitInterrupted   ExitCode = 130
	ExitTerminated    ExitCode = 143
)

// kind is the word for the code in JSON errors.
func (c ExitCode) kind() string {
	switch c {
	case ExitUsage:
		return "usage"
	case ExitNotFound:
		return "not_found"
	case ExitIntegrity:
		return "integrity"
	case ExitDivergence:
		return "divergence"
	case ExitNotComparable:
		return "not_comparable"
	case ExitResource:
		return "resource"
	case ExitEvaluation:
		return "evaluation"
	case ExitCondition:
		return "condition"
	case ExitRank:
		return "rank"
	case ExitInterrupted:
		return "interrupted"
	case ExitTerminated:
		return "terminated"
	}
	return "failure"
}

// Failure is an error with its exit code and advice.
type Failure struct {
	Code ExitCode
	Kind string // for JSON errors; empty: the code's own word
	Err  error  // the problem, lower-case
	Help string // what to do, one line; may be empty

	// Render, if not nil, makes the text to print instead of "error: …", with or
	// without colour: several errors with their places, or a table.
	Render func(color bool) string

	// Problems, if not empty, are the "errors" of a JSON error; else Err is.
	Problems []Problem

	// Hang, if above 0, is the column where lines after the first continue on a terminal.
	Hang int

	see string // the command whose help explains it; may be empty
}

// Problem is one error among several, with its place if it has one.
type Problem struct {
	Message string `json:"message"`
	Help    string `json:"help,omitempty"`
	ID      string `json:"id,omitempty"` // "E102"
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"` // from 1
	Column  int    `json:"column,omitempty"`
	Stack   string `json:"stack,omitempty"`
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// ExitCode returns the exit code, as for any error that carries one.
func (f *Failure) ExitCode() int { return int(f.Code) }

// See names the command whose help explains the error.
func (f *Failure) See(command string) *Failure {
	f.see = command
	return f
}

// Advise says what to do, in one line.
func (f *Failure) Advise(help string) *Failure {
	f.Help = help
	return f
}

// Failf makes an error with an exit code; format is as in fmt.Errorf.
func Failf(code ExitCode, format string, args ...any) *Failure {
	return &Failure{Code: code, Err: fmt.Errorf(format, args...)}
}

// Usagef makes an error for bad arguments.
func Usagef(format string, args ...any) *Failure {
	return Failf(ExitUsage, format, args...)
}

// Said ends the program with a code and no message: the command has printed everything.
func Said(code ExitCode) error {
	return &Failure{Code: code, Err: errors.New("")}
}

// Stoppedf makes the error of a command that a signal stopped. ctx is the command's;
// the text says what was saved and how to continue.
func Stoppedf(ctx context.Context, format string, args ...any) error {
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

// Is makes it a context.Canceled, as code below returns it.
func (e *signalError) Is(target error) bool { return target == context.Canceled }

// signalCode is 128 plus the number of the signal, as shells count.
func signalCode(sig os.Signal) ExitCode {
	if sig == syscall.SIGTERM {
		return ExitTerminated
	}
	return ExitInterrupted
}

// Describe turns an error into a Failure. cause is why the command's context was
// cancelled, nil if it was not.
//
// An error may carry its exit code in a method ExitCode() int; known, from Program.Known,
// comes first.
func Describe(err, cause error, known func(error) *Failure) *Failure {
	var sig *signalError
	if errors.As(cause, &sig) && errors.Is(err, context.Canceled) {
		if errors.Unwrap(err) == nil { // "context canceled" tells a person nothing
			err = errors.New("the command did not finish")
		}
		return &Failure{Code: signalCode(sig.sig), Err: err}
	}
	var f *Failure
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
		return &Failure{Code: ExitCode(coder.ExitCode()), Err: err}
	}
	return &Failure{Code: ExitFailure, Err: err}
}

// report prints err to stderr and returns the exit code. A nil error is silent.
func (a *App) report(ctx context.Context, err error) ExitCode {
	if err == nil {
		return ExitOK
	}
	f := Describe(err, context.Cause(ctx), a.known)
	switch {
	case a.wantsJSONErrors():
		writeJSONError(a.Stderr, f)
	case f.Err.Error() == "": // Said
	default:
		writeError(a.Stderr, f, a.errStream())
	}
	return f.Code
}

// wantsJSONErrors also looks at the raw arguments, for errors before the parser runs.
func (a *App) wantsJSONErrors() bool {
	if a.jsonErrors || a.line.global(flagJSON) == "true" {
		return true
	}
	f := Format(a.line.global(flagOutput))
	return f == FormatJSON || f == FormatJSONL
}

// writeError prints an error for a person: a line with the problem, then a line with the
// remedy.
func writeError(w io.Writer, f *Failure, s term.Stream) {
	if f.Render != nil {
		if text := f.Render(s.Color); text != "" {
			_, _ = io.WriteString(w, strings.TrimRight(text, "\n")+"\n")
			return
		}
	}
	label, style := "error:", term.Bad
	code := ""
	switch {
	case f.Code >= ExitInterrupted:
		label, style = f.Code.kind()+":", term.Warn
	case f.Code >= ExitNotFound:
		code = fmt.Sprintf(" (exit %d)", f.Code)
	}
	help := ""
	switch {
	case f.see != "" && f.Help != "":
		code, help = "; "+f.Help+code, "see "+f.see+" --help\n"
	case f.see != "":
		help = "see " + f.see + " --help\n"
	case f.Help != "":
		help = "  " + term.Accent.Paint("help:", s.Color) + " " + indented(term.CleanLines(f.Help), s) + "\n"
	}
	// The code belongs to the first line: those after it may be a list or a table.
	first, rest, more := strings.Cut(term.CleanLines(f.Err.Error()), "\n")
	if more && s.TTY && f.Hang > 0 {
		rest = hang(rest, s.Width(), f.Hang)
	}
	if more {
		rest = "\n" + rest
	}
	fmt.Fprintf(w, "%s %s%s%s\n%s", style.Paint(label, s.Color), first, code, rest, help)
}

// indented wraps a help text on a terminal, below "  help: ".
func indented(text string, s term.Stream) string {
	const indent = 8
	if !s.TTY || term.Width(text)+indent <= s.Width() || strings.Contains(text, "\n") {
		return text
	}
	return strings.Join(term.Wrap(text, s.Width()-indent), "\n"+strings.Repeat(" ", indent))
}

// jsonError is the schema exp.error/1.
type jsonError struct {
	Schema string    `json:"schema"`
	Code   ExitCode  `json:"code"`
	Kind   string    `json:"kind"`
	Errors []Problem `json:"errors"`
}

func writeJSONError(w io.Writer, f *Failure) {
	problems := f.Problems
	if len(problems) == 0 {
		for _, err := range parts(f.Err) {
			problems = append(problems, Problem{Message: err.Error()})
		}
		problems[0].Help = f.Help
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(jsonError{"exp.error/1", f.Code, cmp.Or(f.Kind, f.Code.kind()), problems})
}

// parts splits errors.Join, to report each error. Other errors that wrap several add
// words around them and stay whole.
func parts(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		if list := joined.Unwrap(); len(list) > 0 && errors.Join(list...).Error() == err.Error() {
			return list
		}
	}
	return []error{err}
}

// reportPanic reports a bug in exp. It sees only panics of the command's own goroutine.
func (a *App) reportPanic(value any, stack []byte) ExitCode {
	f := Failf(ExitFailure, "internal error: %v", value)
	f.Kind = "panic"
	f.Help = "this is a bug in exp; please report it with the stack"
	if a.wantsJSONErrors() {
		f.Problems = []Problem{{Message: f.Err.Error(), Help: f.Help, Stack: string(stack)}}
		writeJSONError(a.Stderr, f)
		return f.Code
	}
	writeError(a.Stderr, f, a.errStream())
	_, _ = a.Stderr.Write(stack)
	return f.Code
}
