package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata")

// addColour is a migration that a later version might bring.
func addColour(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `ALTER TABLE runs ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'`)
	return err
}

func versionOf(t *testing.T, dir string) int {
	t.Helper()
	raw, err := sql.Open("sqlite3", filepath.Join(dir, "exp.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_, version, err := header(raw)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// oldStore makes a store of version 1 with one run.
func oldStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	db, err := Open(dir, Options{Create: true, Clock: clock(), migrations: migrations[:1]})
	if err != nil {
		t.Fatal(err)
	}
	ensure(t, db, newRun("x", 0))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMigrate(t *testing.T) {
	dir := oldStore(t)
	v2 := append(migrations[:1:1], addColour)

	// A reader does not migrate.
	_, err := Open(dir, Options{ReadOnly: true, migrations: v2})
	var v *VersionError
	if !errors.As(err, &v) || v.Have != 1 || v.Want != 2 || v.Hint() == "" {
		t.Errorf("read-only: error %v, want *VersionError 1, 2", err)
	}
	if got := versionOf(t, dir); got != 1 {
		t.Fatalf("a reader left version %d", got)
	}

	db := openAt(t, dir, Options{Clock: clock(), migrations: v2})
	var colour string
	if err := db.r.QueryRow(`SELECT colour FROM runs`).Scan(&colour); err != nil || colour != "red" {
		t.Errorf("colour = %q, %v", colour, err)
	}
	backups, _ := filepath.Glob(filepath.Join(dir, "*.bak"))
	// The clock's first look is 03:04:06.
	if want := filepath.Join(dir, "exp.db.v1.20260102T030406Z.bak"); len(backups) != 1 || backups[0] != want {
		t.Fatalf("backups %v, want %s", backups, want)
	}

	// The backup is a store of the old version.
	old := t.TempDir()
	if err := os.Rename(backups[0], filepath.Join(old, "exp.db")); err != nil {
		t.Fatal(err)
	}
	if runs, err := openAt(t, old, Options{migrations: migrations[:1]}).Runs(context.Background(), RunQuery{}); err != nil || len(runs) != 1 {
		t.Errorf("the backup has %d runs, %v, want 1", len(runs), err)
	}

	// Opening again makes no further backup.
	openAt(t, dir, Options{Clock: clock(), migrations: v2})
	if backups, _ := filepath.Glob(filepath.Join(dir, "*bak*")); len(backups) != 0 {
		t.Errorf("a second opening left %v", backups)
	}
}

func TestMigrateNewerStore(t *testing.T) {
	dir := oldStore(t)
	openAt(t, dir, Options{Clock: clock(), migrations: append(migrations[:1:1], addColour)}).Close()
	for _, o := range []Options{{}, {Create: true}, {ReadOnly: true}} {
		o.migrations = migrations[:1]
		_, err := Open(dir, o)
		var v *VersionError
		if !errors.As(err, &v) || v.Have != 2 || v.Want != 1 {
			t.Fatalf("%+v: error %v, want *VersionError 2, 1", o, err)
		}
		for _, part := range []string{"version 2", "up to 1", filepath.Join(dir, "exp.db")} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("error %q does not say %q", err, part)
			}
		}
	}
}

// A migration that fails changes nothing.
func TestMigrateFailure(t *testing.T) {
	dir := oldStore(t)
	boom := errors.New("boom")
	bad := func(ctx context.Context, tx *sql.Tx) error {
		if err := addColour(ctx, tx); err != nil {
			return err
		}
		return boom
	}
	if _, err := Open(dir, Options{Clock: clock(), migrations: append(migrations[:1:1], bad)}); !errors.Is(err, boom) {
		t.Fatalf("error %v, want boom", err)
	}
	if got := versionOf(t, dir); got != 1 {
		t.Errorf("version %d after a failed migration, want 1", got)
	}
	if runs, err := openAt(t, dir, Options{migrations: migrations[:1]}).Runs(context.Background(), RunQuery{}); err != nil || len(runs) != 1 {
		t.Errorf("%d runs, %v after a failed migration, want 1", len(runs), err)
	}
}

// Whoever comes second finds the migration done.
func TestMigrateConcurrently(t *testing.T) {
	dir := oldStore(t)
	v2 := append(migrations[:1:1], addColour)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			db, err := Open(dir, Options{Clock: clock(), migrations: v2})
			if err != nil {
				t.Error(err)
				return
			}
			db.Close()
		})
	}
	wg.Wait()
	if got := versionOf(t, dir); got != 2 {
		t.Errorf("version %d, want 2", got)
	}
}

// A store of every released version is brought up to date with what it holds.
func TestMigrateReal(t *testing.T) {
	dir := oldStore(t)
	db := openAt(t, dir, Options{Clock: clock()})
	if got := versionOf(t, dir); got != Version() {
		t.Errorf("version %d, want %d", got, Version())
	}
	runs, err := db.Runs(context.Background(), RunQuery{})
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v, want 1", len(runs), err)
	}
	if err := errors.Join(db.AddVerification(context.Background(), Verification{Run: runs[0].ID, Level: "full", OK: true}), db.Check(context.Background())); err != nil {
		t.Error(err)
	}
}

// Verifications keep all that they hold when the level "sample" comes.
func TestMigrateVerifications(t *testing.T) {
	ctx, dir := context.Background(), oldStore(t)
	old := openAt(t, dir, Options{Clock: clock(), migrations: migrations[:5]})
	runs, err := old.Runs(ctx, RunQuery{})
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v, want 1", len(runs), err)
	}
	had := Verification{Run: runs[0].ID, Level: "prefix", FromStep: 2, ToStep: 7, OK: true,
		Detail: json.RawMessage(`{"blobs": 3}`)}
	sample := Verification{Run: runs[0].ID, Level: "sample", OK: true}
	if err := old.AddVerification(ctx, had); err != nil {
		t.Fatal(err)
	}
	if err := old.AddVerification(ctx, sample); err == nil {
		t.Error("version 5 took the level sample")
	}
	want, err := old.Verifications(ctx, runs[0].ID)
	if err != nil || len(want) != 1 || want[0].ToStep != 7 {
		t.Fatalf("%+v, %v", want, err)
	}
	old.Close()
	db := openAt(t, dir, Options{Clock: clock()})
	if got, err := db.Verifications(ctx, runs[0].ID); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if err := errors.Join(db.AddVerification(ctx, sample), db.Check(ctx)); err != nil {
		t.Error(err)
	}
	if got, err := db.Verifications(ctx, runs[0].ID); err != nil || len(got) != 2 || got[1].ID <= got[0].ID {
		t.Errorf("%+v, %v", got, err)
	}
}

// The schema of a released version never changes. If this
// test fails, add a migration in place of changing one.
func TestSchema(t *testing.T) {
	db := open(t)
	rows, err := query(context.Background(), db.r, scanText, `SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC, name`)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(rows, ";\n") + ";\n"
	golden := filepath.Join("testdata", "schema.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("schema (-want +got):\n%s", diff)
	}
	strict, err := query(context.Background(), db.r, scanText, `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT strict AND name NOT LIKE 'sqlite_%'`)
	if err != nil || len(strict) > 0 {
		t.Errorf("tables that are not STRICT: %v, %v", strict, err)
	}
}

// The views are for people; here they are read once.
func TestViews(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 7))
	w := db.NewStepWriter(run.ID, 0, nil)
	s := step60(1)
	s.Det.Metrics = map[string]float64{"loss": 0.25}
	s.Measured = nil
	if err := errors.Join(w.Record(s), w.Close()); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`SELECT run || ' ' || name || ' ' || seed || ' ' || status || ' ' || created FROM run_list`: run.RID.Short() + " x 7 pending 2026-01-02 03:04:06",
		`SELECT run || ' ' || metric || ' ' || step || ' ' || value FROM metric_points`:             run.RID.Short() + " loss 1 0.25",
		`SELECT count(*) FROM eval_results`:                                                         "0",
	} {
		if got, err := queryOne(ctx, db.r, scanText, text); err != nil || got != want {
			t.Errorf("%s = %q, %v, want %q", text, got, err, want)
		}
	}
}

// A store from before the status "stopped" accepts it once migrated, and still refuses others.
func TestMigrateStopped(t *testing.T) {
	dir := oldStore(t)
	db := openAt(t, dir, Options{Clock: clock()})
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 0))
	if text, err := db.Reason(ctx, run.ID); text != "" || err != nil {
		t.Errorf("reason of a pending run: %q, %v", text, err)
	}
	a := beginAttempt(t, db, run.ID, AttemptRun)
	for _, text := range []string{"first", "kl > 1 at step 7"} {
		data := []byte(`{"text":"` + text + `"}`)
		if err := db.AddEvent(ctx, Event{Run: run.ID, Level: LevelWarn, Kind: StopEvent, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.EndAttempt(ctx, a.ID, "halted", 1); !errors.Is(err, ErrConstraint) {
		t.Errorf("an unknown status: %v, want ErrConstraint", err)
	}
	if err := db.EndAttempt(ctx, a.ID, Stopped, 9); err != nil {
		t.Fatal(err)
	}
	_, got, err := db.RunFields(ctx, RunQuery{}, []Field{{Kind: FieldColumn, Name: "status"},
		{Kind: FieldColumn, Name: "reason"}})
	if err != nil || len(got) != 1 || got[0][0] != "stopped" || got[0][1] != "kl > 1 at step 7" {
		t.Errorf("fields %+v, %v; want stopped by the newest condition", got, err)
	}
	// Another connection sees the new tables at once.
	b := beginAttempt(t, openAt(t, dir, Options{Clock: clock()}), run.ID, AttemptResume)
	if err := db.EndAttempt(ctx, b.ID, Stopped, 9); err != nil {
		t.Error(err)
	}
}

// A store whose tables are not as expected stays at its version, and its schema is protected again.
func TestMigrateStoppedElsewhere(t *testing.T) {
	db := openAt(t, t.TempDir(), Options{Create: true, Clock: clock(), migrations: migrations[:3]})
	ctx := context.Background()
	err := db.write(ctx, "test", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `ALTER TABLE attempts RENAME TO tries`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.migrate(3, migrations); err == nil || !strings.Contains(err.Error(), "1 of the tables runs and attempts") {
		t.Errorf("error %v", err)
	}
	if n, err := queryOne(ctx, db.w, scanInt, `PRAGMA writable_schema`); n != 0 || err != nil {
		t.Errorf("writable_schema is %d, %v", n, err)
	}
	if got := versionOf(t, db.Dir()); got != 3 {
		t.Errorf("version %d, want 3", got)
	}
}
