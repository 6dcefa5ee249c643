package store

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"exp/experiments/ident"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random test of the store; 0 is from the clock")

// modelRun holds what the store should know of a run.
type modelRun struct {
	id          int64
	deleted     bool
	tags        map[string]bool
	chains      map[int64]ident.Digest       // by step
	points      map[string]map[int64]float64 // by series and step
	divergences int
	evals       map[ident.Digest]float64 // by sid of the scoring stage
}

// modelStore is a store in maps: slow, and simple enough to be right.
type modelStore struct {
	runs  map[ident.Digest]*modelRun
	order []ident.Digest          // of making
	done  map[ident.Digest]string // output by sid, of the stage that came first
}

// TestModel does the same random things to a store and to maps, closing and
// opening the store now and then, and compares all that can be read.
func TestModel(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	options := Options{Create: true, Clock: clock()}
	db, err := Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	m := &modelStore{runs: map[ident.Digest]*modelRun{}, done: map[ident.Digest]string{}}
	suite, err := db.EnsureSuite(context.Background(), Suite{Digest: digest("s"), Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ops := []func(*testing.T, *rand.Rand, *DB){
		m.ensure, m.ensure, m.tag, m.delete, m.record, m.record, m.record,
		func(t *testing.T, r *rand.Rand, db *DB) { m.stage(t, r, db, suite) },
	}
	for i := range 150 {
		ops[r.IntN(len(ops))](t, r, db)
		if i%30 == 29 {
			m.compare(t, db)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if db, err = Open(dir, options); err != nil {
				t.Fatal(err)
			}
		}
		if t.Failed() {
			t.Fatalf("after operation %d", i)
		}
	}
	m.compare(t, db)
	if err := errors.Join(db.Check(context.Background()), db.Close()); err != nil {
		t.Error(err)
	}
}

// pick returns any of the runs made, or nil.
func (m *modelStore) pick(r *rand.Rand) *modelRun {
	if len(m.order) == 0 {
		return nil
	}
	return m.runs[m.order[r.IntN(len(m.order))]]
}

func (m *modelStore) ensure(t *testing.T, r *rand.Rand, db *DB) {
	n := newRun(fmt.Sprint("x", r.IntN(3)), int64(r.IntN(3)))
	run, created, err := db.EnsureRun(context.Background(), n)
	had := m.runs[n.RID]
	if err != nil || created != (had == nil) {
		t.Errorf("EnsureRun: created %t, %v, known %t", created, err, had != nil)
		return
	}
	if had != nil {
		had.deleted = false
		return
	}
	m.runs[n.RID] = &modelRun{id: run.ID, tags: map[string]bool{}, chains: map[int64]ident.Digest{},
		points: map[string]map[int64]float64{}, evals: map[ident.Digest]float64{}}
	m.order = append(m.order, n.RID)
}

func (m *modelStore) tag(t *testing.T, r *rand.Rand, db *DB) {
	run := m.pick(r)
	if run == nil {
		return
	}
	tag := fmt.Sprint("t", r.IntN(3))
	if r.IntN(2) == 0 {
		if err := db.AddTag(context.Background(), run.id, tag); err != nil {
			t.Error(err)
		}
		run.tags[tag] = true
		return
	}
	err := db.RemoveTag(context.Background(), run.id, tag)
	if run.tags[tag] != (err == nil) || err != nil && !errors.Is(err, ErrNotFound) {
		t.Errorf("RemoveTag: %v, tagged %t", err, run.tags[tag])
	}
	delete(run.tags, tag)
}

func (m *modelStore) delete(t *testing.T, r *rand.Rand, db *DB) {
	run := m.pick(r)
	if run == nil {
		return
	}
	if err := db.DeleteRun(context.Background(), run.id); err != nil {
		t.Error(err)
	}
	run.deleted = true
}

// record hands some steps to a writer: new ones, known ones, and, rarely, a known
// one with another chain, which ends the writer.
func (m *modelStore) record(t *testing.T, r *rand.Rand, db *DB) {
	run := m.pick(r)
	if run == nil {
		return
	}
	w := db.NewStepWriter(run.id, 0, nil)
	diverged := false
	for range 1 + r.IntN(8) {
		n := int64(1 + r.IntN(30))
		s := Step{Det: ident.Det{Step: n, Metrics: map[string]float64{}}, Chain: digest("chain %d", n), Measured: map[string]float64{}}
		known, ok := run.chains[n]
		if ok && r.IntN(8) == 0 {
			s.Chain = digest("another chain of %d", n)
		}
		for i := range 3 {
			if r.IntN(2) == 0 {
				s.Det.Metrics[fmt.Sprint("det/", i)] = randomValue(r)
			}
			if r.IntN(2) == 0 {
				s.Measured[fmt.Sprint("time/", i)] = randomValue(r)
			}
		}
		if err := w.Record(s); err != nil && !diverged {
			t.Error(err)
		}
		switch {
		case diverged: // nothing more is written
		case !ok:
			run.record(s)
		case known != s.Chain:
			diverged = true
			run.divergences++
		}
	}
	var d *DivergenceError
	if err := w.Close(); errors.As(err, &d) != diverged || err != nil && !diverged {
		t.Errorf("Close: %v, diverged %t", err, diverged)
	}
}

func (run *modelRun) record(s Step) {
	run.chains[s.Det.Step] = s.Chain
	for _, metrics := range []map[string]float64{s.Det.Metrics, s.Measured} {
		for name, v := range metrics {
			if run.points[name] == nil {
				run.points[name] = map[int64]float64{}
			}
			run.points[name][s.Det.Step] = v
		}
	}
}

func randomValue(r *rand.Rand) float64 {
	special := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.MaxFloat64, math.SmallestNonzeroFloat64}
	if i := r.IntN(30); i < len(special) {
		return special[i]
	}
	return r.NormFloat64()
}

// stage executes or reuses a stage, and lets it finish with the usual or with
// another output, or fail.
func (m *modelStore) stage(t *testing.T, r *rand.Rand, db *DB, suite int64) {
	ctx := context.Background()
	run := m.pick(r)
	if run == nil {
		return
	}
	id := fmt.Sprint(r.IntN(10))
	sid := digest("sid %s", id)
	first, wasDone := m.done[sid]
	h := hit(t, db, id)
	if (h != nil) != wasDone {
		t.Errorf("Hit = %v, done before %t", h, wasDone)
		return
	}
	if h != nil && r.IntN(2) == 0 {
		if _, err := db.ReuseStage(ctx, spec(run.id, "eval.score", "test", id), h); err != nil {
			t.Error(err)
		}
		run.evals[sid] = float64(len(first))
		return
	}
	s := begin(t, db, run.id, "eval.score", "test", id)
	if r.IntN(4) == 0 {
		if err := db.FailStage(ctx, s.ID, "no luck"); err != nil {
			t.Error(err)
		}
		return
	}
	out := "output of " + id
	if r.IntN(4) == 0 {
		out += ", but another"
	}
	evals := []Eval{{Suite: suite, Protocol: sid, Metric: "m", Value: float64(len(out))}}
	err := db.FinishStage(ctx, s.ID, outputs(t, db, "out="+out), StageResult{}, evals)
	var d *DivergenceError
	switch {
	case wasDone && first != out:
		if !errors.As(err, &d) {
			t.Errorf("FinishStage: %v, want a divergence", err)
		}
		run.divergences++
		return
	case err != nil:
		t.Error(err)
	case !wasDone:
		m.done[sid] = out
	}
	run.evals[sid] = float64(len(out))
}

// compare reads everything back.
func (m *modelStore) compare(t *testing.T, db *DB) {
	t.Helper()
	ctx := context.Background()
	var want []ident.Digest
	for _, rid := range slices.Backward(m.order) {
		if !m.runs[rid].deleted {
			want = append(want, rid)
		}
	}
	runs, err := db.Runs(ctx, RunQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var got []ident.Digest
	for _, run := range runs {
		got = append(got, run.RID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	for _, run := range m.runs {
		run.compare(t, db)
	}
}

func (run *modelRun) compare(t *testing.T, db *DB) {
	t.Helper()
	ctx := context.Background()
	tags, err1 := db.Tags(ctx, run.id)
	steps, err2 := db.Steps(ctx, run.id, 0, AllSteps)
	curves, err3 := db.Metrics(ctx, run.id, "", 0, AllSteps)
	divergences, err4 := db.Divergences(ctx, run.id)
	evals, err5 := db.Evals(ctx, run.id)
	row, err6 := db.RunByID(ctx, run.id)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(run.tags)), tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	chains, points, scores := map[int64]ident.Digest{}, map[string]map[int64]float64{}, map[ident.Digest]float64{}
	for _, s := range steps {
		chains[s.Det.Step] = s.Chain
	}
	for _, c := range curves {
		points[c.Name] = map[int64]float64{}
		for i, step := range c.Steps {
			points[c.Name][step] = c.Values[i]
		}
		compareSummary(t, c)
	}
	for _, e := range evals {
		scores[e.Protocol] = e.Value
	}
	if diff := cmp.Diff(run.chains, chains); diff != "" {
		t.Errorf("chains (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(run.points, points, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(run.evals, scores); diff != "" {
		t.Errorf("evaluations (-want +got):\n%s", diff)
	}
	if len(divergences) != run.divergences {
		t.Errorf("%d divergences, want %d", len(divergences), run.divergences)
	}
	if row.Steps != int64(len(run.chains)) || len(run.chains) > 0 && row.Chain != chains[slices.Max(slices.Collect(maps.Keys(chains)))] {
		t.Errorf("run has %d steps and chain %s, want %d", row.Steps, row.Chain, len(run.chains))
	}
}

// compareSummary checks a series against its own points.
func compareSummary(t *testing.T, c Curve) {
	t.Helper()
	lo, hi := math.NaN(), math.NaN()
	for _, v := range c.Values {
		if !math.IsNaN(v) {
			lo, hi = min2(lo, v), -min2(-hi, -v)
		}
	}
	last := len(c.Values) - 1
	want := Series{ID: c.ID, Run: c.Run, Name: c.Name, Det: c.Det, N: int64(len(c.Values)), Last: c.Values[last], LastStep: c.Steps[last],
		Min: lo, Max: hi}
	if diff := cmp.Diff(want, c.Series, cmpopts.EquateNaNs(), cmpopts.IgnoreFields(Series{}, "ArgMin", "ArgMax")); diff != "" {
		t.Errorf("summary of %s (-want +got):\n%s", c.Name, diff)
	}
	for _, at := range []struct {
		step  int64
		value float64
	}{{c.ArgMin, lo}, {c.ArgMax, hi}} {
		if i := slices.Index(c.Steps, at.step); !math.IsNaN(at.value) && (i < 0 || c.Values[i] != at.value) {
			t.Errorf("%s: extreme %g is not at step %d", c.Name, at.value, at.step)
		}
	}
}

// min2 returns the smaller one, or the only number.
func min2(a, b float64) float64 {
	if math.IsNaN(a) || b < a {
		return b
	}
	return a
}
