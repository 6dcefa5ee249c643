package store

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

func TestSQL(t *testing.T) {
	db := openAt(t, t.TempDir(), Options{Create: true})
	ctx := context.Background()
	run, _, err := db.EnsureRun(ctx, newRun("asked", 3))
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]any
	columns, err := db.SQL(ctx, `SELECT name, seed, h1, rid, 0.5 AS half FROM runs`, func(_ []string, v []any) error {
		rows = append(rows, append([]any(nil), v...))
		return nil
	})
	if err != nil || strings.Join(columns, " ") != "name seed h1 rid half" || len(rows) != 1 {
		t.Fatalf("columns %v, rows %v, %v", columns, rows, err)
	}
	if r := rows[0]; r[0] != "asked" || r[1] != int64(3) || r[2] != nil || string(r[3].([]byte)) != string(run.RID[:]) || r[4] != 0.5 {
		t.Errorf("row %v", r)
	}
	elsewhere := t.TempDir() + "/elsewhere.db"
	for _, text := range []string{`DELETE FROM runs`, `SELECT 1; DELETE FROM runs`, `ATTACH '` + elsewhere + `' AS e`, `VACUUM INTO '` + elsewhere + `'`, `PRAGMA query_only = OFF`,
		`PRAGMA writable_schema = ON`, `BEGIN IMMEDIATE`, `CREATE TEMP TABLE t (a)`, `SELECT load_extension('x')`, `SELECT`, `SELECT nonsense FROM runs`} {
		_, err := db.SQL(ctx, text, func([]string, []any) error { return nil })
		if !errors.Is(err, ErrSQL) {
			t.Errorf("%s: %v, want ErrSQL", text, err)
		}
	}
	if _, err := os.Stat(elsewhere); err == nil {
		t.Error("a statement made a file")
	}
	// The connection serves others as before, and nothing was changed.
	if again, err := db.RunByID(ctx, run.ID); err != nil || again.Name != "asked" {
		t.Errorf("run %+v, %v", again, err)
	}
	stop := errors.New("enough")
	if _, err := db.SQL(ctx, `SELECT 1 UNION SELECT 2`, func([]string, []any) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the caller's error: %v", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := db.SQL(cancelled, `SELECT 1`, func([]string, []any) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A run whose files were removed gets a new lock, not the file that is gone.
func TestLockOfRemovedFiles(t *testing.T) {
	db := openAt(t, t.TempDir(), Options{Create: true})
	rid := digest("rid")
	first, err := db.LockRun(rid)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(db.RunDir(rid)); err != nil {
		t.Fatal(err)
	}
	second, err := db.LockRun(rid)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Release(); err != nil {
		t.Error(err)
	}
	if _, alive := db.Alive(rid); !alive || isAt(first.file, second.file.Name()) {
		t.Error("releasing the file that is gone released the run")
	}
	if !isAt(second.file, second.file.Name()) {
		t.Error("the lock is not at its path")
	}
	if err := second.Release(); err != nil {
		t.Error(err)
	}
}
