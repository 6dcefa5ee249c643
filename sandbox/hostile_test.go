//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"testing"
)

// openAt opens a pool that gives exactly level, or skips with the reason.
func openAt(t testing.TB, level Level, cfg Config) *Pool {
	t.Helper()
	cfg.Require, cfg.Most = level, level
	p, err := Open(context.Background(), cfg)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestHostilePrograms: every program of the list gets its verdict, and nothing that it
// must not, at every level that this machine has.
func TestHostilePrograms(t *testing.T) {
	t.Setenv("EXP_TEST_CANARY", "canary")
	for _, level := range []Level{Full, Namespaces} {
		t.Run(string(level), func(t *testing.T) {
			p := openAt(t, level, Config{Slots: 8})
			n := 0
			err := p.SelfTest(context.Background(), func(o Outcome) {
				n++
				if !o.OK {
					t.Errorf("%s (%s): %s, must be one of %v: %s", o.Name, o.What, o.Verdict, o.Expected, o.Problem)
				}
			})
			if err != nil {
				t.Error(err)
			}
			if n < 60 {
				t.Errorf("%d programs", n)
			}
			if n, err := p.InfraErrors(); n != 0 {
				t.Errorf("%d infrastructure errors, the last: %v", n, err)
			}
		})
	}
}
