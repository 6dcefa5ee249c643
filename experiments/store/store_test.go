package store

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"exp/experiments/ident"
)

// start is when the clock of tests begins; every look at it takes a second.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// clock ticks a second a look.
func clock() func() time.Time {
	var mu sync.Mutex
	t := start
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		t = t.Add(time.Second)
		return t
	}
}

// open makes a store in a temporary folder.
func open(t testing.TB) *DB {
	t.Helper()
	return openAt(t, t.TempDir(), Options{Create: true, Clock: clock()})
}

func openAt(t testing.TB, dir string, o Options) *DB {
	t.Helper()
	db, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// digest returns a different digest for each text.
func digest(format string, args ...any) ident.Digest {
	return ident.Sum(fmt.Appendf(nil, format, args...))
}

// newRun is a run of the experiment x.
func newRun(x string, seed int64) NewRun {
	xid := digest("xid %s", x)
	return NewRun{
		RID: ident.RID(xid, seed, "cpu/fma"), XID: xid, Name: x, Task: "countdown", Algo: "ppo", Model: "tiny",
		Seed: seed, Numerics: "cpu/fma", StepsTotal: 100, Code: digest("code"),
		Config: Config{Digest: digest("config %s", x), JSON: `{"name":"` + x + `","train":{"steps":100}}`, Source: "name: " + x, Origins: "{}"},
	}
}

// ensure makes a run.
func ensure(t testing.TB, db *DB, n NewRun) Run {
	t.Helper()
	run, _, err := db.EnsureRun(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	return run
}
