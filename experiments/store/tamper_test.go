package store_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mattn/go-sqlite3"

	"exp/experiments/ident"
	"exp/experiments/keep"
	"exp/experiments/store"
)

// Somebody who edits the database is found by keep.Check. The test is here because
// only this package may open the file as a database.
func TestTamper(t *testing.T) {
	for _, tt := range []struct{ name, statement, fault, detail string }{
		{"nothing", `SELECT 1`, "", ""},
		{"metric changed by its last bit", `UPDATE metrics SET value = 0.42857142857142849 WHERE step = 3 AND series = (SELECT id FROM series WHERE name = 'reward')`, "chain", "step 3 was changed"},
		{"metric removed", `DELETE FROM metrics WHERE step = 4 AND series = (SELECT id FROM series WHERE name = 'reward')`, "chain summary", "step 4 was changed"},
		{"zero made one", `UPDATE metrics SET value = 1 WHERE step = 2 AND series = (SELECT id FROM series WHERE name = 'clipped')`, "chain summary", "step 2 was changed"},
		{"digest changed", `UPDATE steps SET items = zeroblob(32) WHERE step = 2`, "chain", "step 2 was changed"},
		{"chain changed", `UPDATE steps SET chain = zeroblob(32) WHERE step = 2`, "chain", "step 2 was changed"},
		{"step removed", `DELETE FROM steps WHERE step = 3`, "chain", "step 3 is missing"},
		{"last step removed", `DELETE FROM steps WHERE step = 5`, "chain", "does not match any of its steps"},
		{"all steps removed", `DELETE FROM steps`, "chain", "5 of its 5 steps are missing"},
		{"run's chain changed", `UPDATE runs SET chain = zeroblob(32)`, "chain", "does not match any of its steps"},
		{"measured metric changed", `UPDATE metrics SET value = 2 WHERE step = 3 AND series = (SELECT id FROM series WHERE name = 'time')`, "summary", "series time: max is 1, but the rows in metrics give 2"},
		{"summary changed", `UPDATE series SET last = 3 WHERE name = 'reward'`, "summary", "series reward: last is 3, but the rows in metrics give"},
		{"dangling row", `UPDATE runs SET config = zeroblob(32)`, "database", "runs row 1 misses configs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			recordFive(t, dir)
			tamper(t, dir, tt.statement)
			db, err := store.Open(dir, store.Options{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			r, err := keep.Check(context.Background(), db, keep.CheckOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var got, detail string
			for _, f := range r.Findings {
				got, detail = strings.TrimSpace(got+" "+string(f.Fault)), detail+f.Detail
			}
			if got != tt.fault || !strings.Contains(detail, tt.detail) {
				t.Errorf("found %q (%q), want %q with %q", got, detail, tt.fault, tt.detail)
			}
		})
	}
}

// recordFive records a run of five steps with its true chain; one metric is zero and
// one is minus zero.
func recordFive(t *testing.T, dir string) {
	t.Helper()
	db, err := store.Open(dir, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rid := ident.Sum([]byte("rid"))
	run, _, err := db.EnsureRun(context.Background(), store.NewRun{RID: rid, XID: rid, Name: "five",
		Config: store.Config{Digest: ident.Sum([]byte("config")), JSON: "{}", Origins: "{}"}})
	if err != nil {
		t.Fatal(err)
	}
	w := db.NewStepWriter(run.ID, 0, nil)
	chain := ident.ChainStart(rid)
	for i := int64(1); i <= 5; i++ {
		d := ident.Det{Step: i, Items: ident.Sum(fmt.Append(nil, i)), Metrics: map[string]float64{
			"reward": float64(i) / 7, "clipped": 0, "loss": math.Copysign(0, -1)}}
		if chain, err = d.Next(chain); err != nil {
			t.Fatal(err)
		}
		if err := w.Record(store.Step{Det: d, Chain: chain, Measured: map[string]float64{"time": 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func tamper(t *testing.T, dir, statement string) {
	t.Helper()
	conn, err := (&sqlite3.SQLiteDriver{}).Open(filepath.Join(dir, "exp.db"))
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(opened{conn})
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

// opened is a connector of one connection that is there.
type opened struct{ conn driver.Conn }

func (o opened) Connect(context.Context) (driver.Conn, error) { return o.conn, nil }
func (o opened) Driver() driver.Driver                        { return &sqlite3.SQLiteDriver{} }
