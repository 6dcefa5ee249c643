package bundle

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"exp/experiments/store"
)

// Rows that are inserted many at a time keep what refers to them: here 250 samples, in a store whose
// own samples take the first numbers, with verdicts on some.
func TestImportManySamples(t *testing.T) {
	fill := func(db *store.DB, name string, n int) store.Run {
		m := maker{t, db}
		r := m.run(name, 0)
		m.samples(r, "test", n)
		return r
	}
	from, dir := open(t, t.TempDir()), t.TempDir()
	r := fill(from, "many", 250)
	path, _ := write(t, from, Options{}, r)
	to := open(t, dir)
	fill(to, "other", 7)
	for range 2 { // the second time everything is there
		if _, err := load(t, path, to); err != nil {
			t.Fatal(err)
		}
	}
	checkVerdicts(t, dir, 84+3)
}

// Samples that are already here come between new ones: run a was scored again after b, which reuses a's work.
func TestImportSamplesBetween(t *testing.T) {
	from, dir := open(t, t.TempDir()), t.TempDir()
	m := maker{t, from}
	start := []store.IO{m.blob("weights", "weights", "start")}
	a, b := m.run("a", 0), m.run("b", 0)
	m.stage(a, "init", "", start, nil)
	m.stage(b, "init", "", start, nil)
	m.samples(a, "first", 4)
	m.samples(b, "first", 9)
	m.samples(a, "second", 5)
	m.samples(b, "second", 8)
	to := open(t, dir)
	for _, r := range []store.Run{a, b} {
		path, _ := write(t, from, Options{}, r)
		if _, err := load(t, path, to); err != nil {
			t.Fatal(err)
		}
	}
	checkVerdicts(t, dir, 2+3+2+3)
}

// samples gives a run a stage with n samples, and every third of them a verdict whose answer is the
// sample's reward.
func (m maker) samples(r store.Run, label string, n int) {
	m.t.Helper()
	ctx := context.Background()
	gen := m.stage(r, "eval.gen", label, []store.IO{m.blob("completions", "completions", r.Name+label)}, nil)
	rows := make([]store.Sample, n)
	for k := range rows {
		rows[k] = store.Sample{Stage: gen.Home, Scope: label, Item: fmt.Sprint("p", k/2), K: k % 2, Reward: float64(k), LogProbSum: math.NaN()}
	}
	m.must(m.db.AddSamples(ctx, rows, nil))
	kept, err := m.db.Samples(ctx, r.ID, store.SampleQuery{Scope: label})
	m.must(err)
	var verdicts []store.Verdict
	for i, s := range kept {
		if i%3 == 0 {
			verdicts = append(verdicts, store.Verdict{Sample: s.ID, Graded: true, Answer: fmt.Sprint(s.Reward)})
		}
	}
	m.must(m.db.AddVerdicts(ctx, store.Scorer{Digest: digestOf("scorer"), Name: "countdown/1"}, verdicts))
}

// checkVerdicts checks that a store has n verdicts, all on the samples that they were given.
func checkVerdicts(t *testing.T, dir string, n int) {
	t.Helper()
	raw, err := sql.Open("sqlite3", filepath.Join(dir, "exp.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	var got, wrong int
	if err := raw.QueryRow(`SELECT count(*), sum(abs(CAST(v.answer AS REAL) - s.reward) > 0) FROM verdicts v JOIN samples s ON s.id = v.sample`).
		Scan(&got, &wrong); err != nil || got != n || wrong != 0 {
		t.Errorf("%d verdicts, %d on another sample, %v; want %d, 0", got, wrong, err, n)
	}
}

// What a run's folder shares with the store's blobs is written once.
func TestImportWritesOnce(t *testing.T) {
	db := open(t, t.TempDir())
	m := maker{t, db}
	r := m.run("a", 0)
	weights := m.blob("weights", "weights", "merged weights")
	m.stage(r, "merge", "", []store.IO{weights}, nil)
	model := filepath.Join(db.RunDir(r.RID), "model", "model.safetensors")
	m.must(os.MkdirAll(filepath.Dir(model), 0o777))
	m.must(os.Link(db.Blobs.Path(weights.Digest), model))
	path, _ := write(t, db, Options{}, r)
	to := open(t, t.TempDir())
	if _, err := load(t, path, to); err != nil {
		t.Fatal(err)
	}
	a, errA := os.Stat(to.Blobs.Path(weights.Digest))
	b, errB := os.Stat(filepath.Join(to.RunDir(r.RID), "model", "model.safetensors"))
	if errA != nil || errB != nil || !os.SameFile(a, b) {
		t.Errorf("two files, or none: %v, %v", errA, errB)
	}
}
