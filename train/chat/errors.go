package chat

import (
	"errors"
	"fmt"
)

// Error is an error of a template with its place.
type Error struct {
	Line, Column int    // from 1; columns count code points
	Msg          string // the error
	Raised       bool   // the template itself called raise_exception(Msg)
	err          error
}

func (e *Error) Error() string {
	return fmt.Sprintf("template line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

// Unwrap returns the cause: ErrLimit or the error of a context among others.
func (e *Error) Unwrap() error { return e.err }

// ErrLimit is in the chain of an error when a template exceeds the steps, text or nesting
// of one rendering.
var ErrLimit = errors.New("limit reached")

// errDeep reports values nested beyond maxValueDepth.
var errDeep = limitErr("values are nested more than %d deep", maxValueDepth)

// pyError is an error that Python would raise as an exception of class kind.
type pyError struct{ kind, msg string }

func (e *pyError) Error() string { return e.msg }

// Classes of pyErrors that code must distinguish.
const (
	kindType     = "TypeError"
	kindValue    = "ValueError"
	kindLookup   = "LookupError"
	kindOverflow = "OverflowError"
	kindZero     = "ZeroDivisionError"
	kindUndef    = "UndefinedError"
	kindSecurity = "SecurityError"
	kindRaised   = "TemplateError"
)

func typeErr(format string, args ...any) error {
	return &pyError{kindType, fmt.Sprintf(format, args...)}
}

func valueErr(format string, args ...any) error {
	return &pyError{kindValue, fmt.Sprintf(format, args...)}
}

func overflowErr(format string, args ...any) error {
	return &pyError{kindOverflow, fmt.Sprintf(format, args...)}
}

func limitErr(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrLimit, fmt.Sprintf(format, args...))
}

// undefErr is the error of using the undefined value u.
func undefErr(u *undefined) error {
	if u.unsafe {
		return &pyError{kindSecurity, u.why()}
	}
	return &pyError{kindUndef, u.why()}
}

// isKind reports whether err is a Python exception of one of the classes.
func isKind(err error, kinds ...string) bool {
	var e *pyError
	if !errors.As(err, &e) {
		return false
	}
	for _, k := range kinds {
		if e.kind == k {
			return true
		}
	}
	return false
}
