package trackers

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// Points of a run that recorded no times of its steps have the time of its end.
func TestWriteTimes(t *testing.T) {
	events := appendEvent(appendEvent(nil, time.UnixMilli(1000), 0, "", 0), time.UnixMilli(4000), 5, "a", 0.5)
	ended, rows := exported(t, "tensorboard", put(t, t.TempDir(), "events.out.tfevents.1", string(events)))
	if got, want := rows[1][6], ended.UTC().Format("2006-01-02T15:04:05.000Z"); got != want || ended.UnixMilli() != 4000 {
		t.Errorf("a point at %s, want %s", got, want)
	}
}

// Values of a table have all their digits.
func TestWriteDigits(t *testing.T) {
	_, rows := exported(t, "csv", put(t, t.TempDir(), "m.csv", "step,a\n1,0.5\n2,0.123456789012\n"))
	if len(rows) != 3 || rows[2][5] != "0.123456789012" {
		t.Errorf("%q", rows)
	}
}

// exported imports a file as a run, and returns the end of the run and its points as CSV.
func exported(t *testing.T, from, path string) (ended time.Time, rows [][]string) {
	t.Helper()
	db, ctx := open(t), context.Background()
	f, err := Read(from, []string{path})
	if err != nil {
		t.Fatal(err)
	}
	run, _, err := f.Enter(ctx, db)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.csv")
	if _, err := Write(ctx, db, []store.Run{run}, "csv", out, about); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if rows, err = csv.NewReader(bytes.NewReader(b)).ReadAll(); err != nil || len(rows) < 2 {
		t.Fatalf("%q, %v", rows, err)
	}
	return run.Ended, rows
}

// An export that fails leaves nothing.
func TestWriteFails(t *testing.T) {
	db, run := recorded(t)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	for _, format := range Formats() {
		dir := t.TempDir()
		_, err := Write(ctx, db, []store.Run{run}, format, filepath.Join(dir, "out"), about)
		left, readErr := os.ReadDir(dir)
		if !errors.Is(err, context.Canceled) || readErr != nil || len(left) != 0 {
			t.Errorf("%s: %v; left %v, %v", format, err, left, readErr)
		}
	}
}

// In MLflow the seeds of an experiment are runs of one, with their states; a long setting is cut between letters.
func TestWriteMLflowRuns(t *testing.T) {
	db, ctx := open(t), context.Background()
	text := `{"prompt":"` + strings.Repeat("é", mlflowValueLength+1) + `"}`
	var runs []store.Run
	for i, status := range []store.Status{store.Done, store.Stopped, store.Failed} {
		xid := ident.Sum([]byte("one"))
		if i == 2 {
			xid = ident.Sum([]byte("other"))
		}
		run, _, err := db.EnsureRun(ctx, store.NewRun{RID: ident.Sum([]byte{byte(i)}), XID: xid, Name: "r", Seed: int64(i),
			Config: store.Config{Digest: ident.Sum([]byte(text)), JSON: text}})
		if err != nil {
			t.Fatal(err)
		}
		at, err := db.BeginAttempt(ctx, store.Attempt{Run: run.ID, Kind: store.AttemptRun})
		if err == nil {
			err = db.EndAttempt(ctx, at.ID, status, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		if run, err = db.RunByID(ctx, run.ID); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	path := filepath.Join(t.TempDir(), "mlflow.db")
	if _, err := Write(ctx, db, runs, "mlflow", path, about); err != nil {
		t.Fatal(err)
	}
	out, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for query, want := range map[string]string{
		"SELECT group_concat(experiment_id || ' ' || status) FROM (SELECT * FROM runs ORDER BY name)": "1 FINISHED,1 KILLED,2 FAILED",
		"SELECT count(*) FROM experiments":                       "3", // with the default one
		"SELECT DISTINCT value FROM params WHERE key = 'prompt'": strings.Repeat("é", mlflowValueLength),
	} {
		var got string
		if err := out.QueryRow(query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %.80q, %v; want %.80q", query, got, err, want)
		}
	}
}
