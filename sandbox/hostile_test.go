//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"os"
	"testing"
)

// openAt opens a pool that gives exactly level, or skips with the reason.
func openAt(t testing.TB, level Level, cfg Config) *Pool {
	t.Helper()
	cfg.Require, cfg.Most = level, level
	p, err := Open(context.Background(), cfg)
	if err != nil && level == Landlock && cfg.Python == "" {
		// The first interpreter in PATH may be readable by one user only.
		cfg.Python = "/usr/bin/python3"
		p, err = Open(context.Background(), cfg)
	}
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

// TestHostilePrograms: every hostile program gets its verdict, and nothing it must not get, at every level
// that this machine supports. Below the best level every third program is tried; EXP_TEST_ALL=1 tries all.
func TestHostilePrograms(t *testing.T) {
	t.Setenv("EXP_TEST_CANARY", "canary")
	var best Level
	for _, level := range Levels() {
		t.Run(string(level), func(t *testing.T) {
			p := openAt(t, level, Config{Slots: 8})
			ctx := context.Background()
			list, err := attacks(hostileText)
			if err != nil || len(list) < 60 {
				t.Fatalf("%d programs, %v", len(list), err)
			}
			if list = runnable(ctx, list); best != "" && os.Getenv("EXP_TEST_ALL") == "" {
				var some []attack
				for i := 0; i < len(list); i += 3 {
					some = append(some, list[i])
				}
				list = some
			}
			best = level
			n := 0
			err = p.attemptAll(ctx, list, func(o Outcome) {
				n++
				if !o.OK && !o.Unpromised {
					t.Errorf("%s (%s): %s, must be one of %v: %s", o.Name, o.What, o.Verdict, o.Expected, o.Problem)
				}
			})
			if err != nil {
				t.Error(err)
			}
			if n != len(list) {
				t.Errorf("%d programs of %d", n, len(list))
			}
			if n, err := p.InfraErrors(); n != 0 {
				t.Errorf("%d infrastructure errors, the last: %v", n, err)
			}
		})
	}
}
