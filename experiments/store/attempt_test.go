package store

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func beginAttempt(t *testing.T, db *DB, run int64, kind AttemptKind) Attempt {
	t.Helper()
	a, err := db.BeginAttempt(context.Background(), Attempt{
		Run: run, Kind: kind, Host: "host", PID: 7, Device: "cpu", Build: "v1", Env: json.RawMessage(`{"cpu":"x"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAttempts(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 0)) // 1 s
	a := beginAttempt(t, db, run.ID, AttemptRun)
	if a.N != 1 || a.Status != Running || !a.Started.Equal(start.Add(2*time.Second)) {
		t.Errorf("first attempt %+v", a)
	}
	if got, _ := db.RunByID(ctx, run.ID); got.Status != Running || !got.Started.Equal(a.Started) || got.Device != "cpu" {
		t.Errorf("run of a first attempt: %+v", got)
	}
	if err := db.EndAttempt(ctx, a.ID, Failed, 1); err != nil { // 3 s: it took 1 s
		t.Fatal(err)
	}
	if got, _ := db.RunByID(ctx, run.ID); got.Status != Failed || got.WallS != 1 || !got.Ended.Equal(start.Add(3*time.Second)) {
		t.Errorf("run of a failed attempt: %+v", got)
	}
	if err := db.EndAttempt(ctx, a.ID, Done, 0); !errors.Is(err, ErrNotFound) { // 4 s
		t.Errorf("ending it twice: error %v, want ErrNotFound", err)
	}

	b := beginAttempt(t, db, run.ID, AttemptResume) // 5 s
	if got, _ := db.RunByID(ctx, run.ID); got.Status != Running || !got.Ended.IsZero() || !got.Started.Equal(a.Started) {
		t.Errorf("run of a second attempt: %+v", got)
	}
	if err := db.EndAttempt(ctx, b.ID, Done, 0); err != nil { // 6 s
		t.Fatal(err)
	}
	if got, _ := db.RunByID(ctx, run.ID); got.Status != Done || got.WallS != 2 {
		t.Errorf("run of two attempts: %+v", got)
	}

	// Verifying says nothing about the run itself.
	v := beginAttempt(t, db, run.ID, AttemptVerify)
	if err := db.EndAttempt(ctx, v.ID, Failed, 5); err != nil {
		t.Fatal(err)
	}
	if got, _ := db.RunByID(ctx, run.ID); got.Status != Done || got.WallS != 2 || !got.Ended.Equal(start.Add(6*time.Second)) {
		t.Errorf("run after verify: %+v", got)
	}

	all, err := db.Attempts(ctx, run.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := Attempt{
		ID: b.ID, Run: run.ID, N: 2, Kind: AttemptResume, Host: "host", PID: 7, Device: "cpu", Build: "v1",
		Started: start.Add(5 * time.Second), Ended: start.Add(6 * time.Second), Status: Done, Env: json.RawMessage(`{"cpu":"x"}`),
	}
	if len(all) != 3 {
		t.Fatalf("%d attempts, want 3", len(all))
	}
	if diff := cmp.Diff(want, all[1]); diff != "" {
		t.Errorf("second attempt (-want +got):\n%s", diff)
	}
	if _, err := db.BeginAttempt(ctx, Attempt{Run: 99, Kind: AttemptRun}); !errors.Is(err, ErrNotFound) {
		t.Errorf("attempt of no run: error %v, want ErrNotFound", err)
	}
	if _, err := db.BeginAttempt(ctx, Attempt{Run: 99, Kind: AttemptVerify}); !errors.Is(err, ErrConstraint) {
		t.Errorf("verify of no run: error %v, want ErrConstraint", err)
	}
}

// What a killed process left open is closed by the next attempt, at the time of
// its last sign of life.
func TestAttemptAfterKill(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 0))              // 1 s
	killed := beginAttempt(t, db, run.ID, AttemptRun) // 2 s
	stage := begin(t, db, run.ID, "train", "", "1")   // 3 s
	w := db.NewStepWriter(run.ID, killed.ID, nil)
	if err := errors.Join(w.Record(step60(1)), w.Record(step60(2)), w.Close()); err != nil { // 4 s, 5 s
		t.Fatal(err)
	}
	beginAttempt(t, db, run.ID, AttemptResume) // 6 s

	attempts, err := db.Attempts(ctx, run.ID)
	if err != nil || attempts[0].Status != Interrupted || !attempts[0].Ended.Equal(start.Add(5*time.Second)) {
		t.Errorf("killed attempt: %+v, %v", attempts[0], err)
	}
	stages, err := db.Stages(ctx, run.ID)
	if err != nil || stages[0].ID != stage.ID || stages[0].Status != Interrupted || !stages[0].Ended.Equal(start.Add(5*time.Second)) {
		t.Errorf("killed stage: %+v, %v", stages[0], err)
	}
	if got, _ := db.RunByID(ctx, run.ID); got.WallS != 3 || got.Status != Running {
		t.Errorf("run: %g s, %s, want 3 s, running", got.WallS, got.Status)
	}
}

// A run that is done stays done while attempts to repeat it end early, and fails if one fails.
func TestAttemptsRepeat(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 0))
	for _, tt := range []struct {
		kind     AttemptKind
		end, run Status
	}{
		{AttemptForced, Interrupted, Interrupted}, // nothing was done before
		{AttemptRun, Done, Done},
		{AttemptForced, Interrupted, Done},
		{AttemptForced, Stopped, Done}, // twice in a row
		{AttemptForced, Failed, Failed},
		{AttemptForced, Interrupted, Interrupted}, // it failed before
		{AttemptForced, Done, Done},
		{AttemptRun, Interrupted, Interrupted},
	} {
		a := beginAttempt(t, db, run.ID, tt.kind)
		if err := db.EndAttempt(ctx, a.ID, tt.end, 1); err != nil {
			t.Fatal(err)
		}
		if got, _ := db.RunByID(ctx, run.ID); got.Status != tt.run {
			t.Errorf("attempt %d, %s, ended %s: the run is %s, want %s", a.N, tt.kind, tt.end, got.Status, tt.run)
		}
	}
}

// TestAttemptAside: a run stays done if an addition to it fails.
func TestAttemptAside(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 0))
	if err := db.EndAttempt(ctx, beginAttempt(t, db, run.ID, AttemptRun).ID, Done, 0); err != nil {
		t.Fatal(err)
	}
	for _, end := range []Status{Interrupted, Failed, Done} {
		a, err := db.BeginAttempt(ctx, Attempt{Run: run.ID, Kind: AttemptRun, Aside: true})
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := db.RunByID(ctx, run.ID); got.Status != Done {
			t.Errorf("meanwhile the run is %s", got.Status)
		}
		if err := db.EndAttempt(ctx, a.ID, end, 1); err != nil {
			t.Fatal(err)
		}
		if got, _ := db.RunByID(ctx, run.ID); got.Status != Done {
			t.Errorf("after an attempt that ended %s the run is %s", end, got.Status)
		}
		all, err := db.Attempts(ctx, run.ID)
		if err != nil || all[len(all)-1].Status != end {
			t.Errorf("attempts %+v, %v; want the last %s", all, err, end)
		}
	}
}
