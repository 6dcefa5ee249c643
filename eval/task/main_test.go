package task

import (
	"context"
	"errors"
	"os"
	"testing"

	"exp/sandbox"
)

func TestMain(m *testing.M) {
	if code, ok := sandbox.Enter(); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// openPool opens a sandbox, or skips where the machine cannot run programs.
func openPool(t testing.TB) *sandbox.Pool {
	t.Helper()
	p, err := sandbox.Open(context.Background(), sandbox.Config{Slots: 2})
	if bad := new(sandbox.LevelError); errors.As(err, &bad) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}
