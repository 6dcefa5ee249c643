package run

import (
	"errors"
	"testing"

	"exp/train/ranks"
)

// The panic of an exchange with a lost rank is its error, so that the launcher can name the rank;
// any other panic keeps its stack.
func TestRecovered(t *testing.T) {
	call := func(f func()) (err error) {
		defer recovered(&err)
		f()
		return nil
	}
	gone := errors.New("rank 1 is gone")
	var lost *ranks.Error
	var bug *PanicError
	if err := call(func() { ranks.Must(gone) }); !errors.As(err, &lost) || !errors.Is(err, gone) || errors.As(err, &bug) {
		t.Errorf("a lost rank: %v", err)
	}
	if err := call(func() { panic("bug") }); !errors.As(err, &bug) || len(bug.Stack) == 0 {
		t.Errorf("a bug: %v", err)
	}
	if err := call(func() {}); err != nil {
		t.Error(err)
	}
}
