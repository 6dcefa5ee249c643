package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"exp/experiments/ident"
)

// record writes steps and waits for them.
func record(t *testing.T, db *DB, run int64, steps ...Step) error {
	t.Helper()
	w := db.NewStepWriter(run, 0, func(name string) string {
		if name == "time" {
			return "s"
		}
		return ""
	})
	for _, s := range steps {
		if err := w.Record(s); err != nil {
			t.Logf("Record: %v", err)
		}
	}
	return w.Close()
}

// metricStep is a step with these deterministic metrics.
func metricStep(n int64, metrics map[string]float64) Step {
	s := step60(n)
	s.Det.Metrics, s.Measured = metrics, nil
	return s
}

func TestRecordSteps(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 0))
	one := metricStep(1, map[string]float64{"loss": 3, "kl": 0.5})
	one.Measured = map[string]float64{"time": 1.25}
	two := metricStep(2, map[string]float64{"loss": 2})
	two.Events = []Event{{Level: LevelInfo, Kind: "checkpoint", Data: json.RawMessage(`{"bytes":5}`)}, {Level: LevelDebug, Kind: "x"}}
	if err := record(t, db, run.ID, one, two); err != nil {
		t.Fatal(err)
	}

	curves, err := db.Metrics(ctx, run.ID, "", 0, AllSteps)
	want := []Curve{
		{Series{Run: run.ID, Name: "kl", Det: true, N: 1, Last: 0.5, LastStep: 1, Min: 0.5, Max: 0.5, ArgMin: 1, ArgMax: 1}, []int64{1}, []float64{0.5}},
		{Series{Run: run.ID, Name: "loss", Det: true, N: 2, Last: 2, LastStep: 2, Min: 2, Max: 3, ArgMin: 2, ArgMax: 1}, []int64{1, 2}, []float64{3, 2}},
		{Series{Run: run.ID, Name: "time", Unit: "s", N: 1, Last: 1.25, LastStep: 1, Min: 1.25, Max: 1.25, ArgMin: 1, ArgMax: 1}, []int64{1}, []float64{1.25}},
	}
	if diff := cmp.Diff(want, curves, cmpopts.IgnoreFields(Series{}, "ID")); err != nil || diff != "" {
		t.Errorf("Metrics: %v (-want +got):\n%s", err, diff)
	}
	steps, err := db.Steps(ctx, run.ID, 0, AllSteps)
	if err != nil || len(steps) != 2 {
		t.Fatalf("%d steps, %v", len(steps), err)
	}
	det := one.Det
	det.Metrics = nil
	wantStep := StepRow{Time: start.Add(2 * time.Second), Tokens: 4096, Chain: one.Chain, Det: det}
	if diff := cmp.Diff(wantStep, steps[0]); diff != "" {
		t.Errorf("first step (-want +got):\n%s", diff)
	}
	if r, _ := db.RunByID(ctx, run.ID); r.Steps != 2 || r.Tokens != 8192 || r.Chain != two.Chain {
		t.Errorf("run has %d steps, %d tokens, chain %s", r.Steps, r.Tokens, r.Chain)
	}
	events, err := db.Events(ctx, run.ID, 0)
	if err != nil || len(events) != 2 || events[0].Kind != "checkpoint" || string(events[0].Data) != `{"bytes":5}` || string(events[1].Data) != "{}" {
		t.Errorf("events %+v, %v", events, err)
	}
	if later, err := db.Events(ctx, run.ID, events[0].ID); err != nil || len(later) != 1 || later[0].ID != events[1].ID {
		t.Errorf("later events %+v, %v", later, err)
	}
}

func TestMetricsSelection(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run, other := ensure(t, db, newRun("x", 0)), ensure(t, db, newRun("x", 1))
	for _, r := range []Run{run, other} {
		var steps []Step
		for n := int64(1); n <= 5; n++ {
			steps = append(steps, metricStep(n, map[string]float64{"a/x": float64(n), "a/y": 0, "b/x": float64(r.Seed)}))
		}
		if err := record(t, db, r.ID, steps...); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		glob     string
		from, to int64
		want     string // name:steps
	}{
		{"", 0, AllSteps, "a/x:[1 2 3 4 5] a/y:[1 2 3 4 5] b/x:[1 2 3 4 5] "},
		{"*x", 2, 3, "a/x:[2 3] b/x:[2 3] "},
		{"a/?", 5, 9, "a/x:[5] a/y:[5] "},
		{"[b]/x", 6, AllSteps, "b/x:[] "},
		{"none", 0, AllSteps, ""},
	}
	for _, tt := range tests {
		curves, err := db.Metrics(ctx, run.ID, tt.glob, tt.from, tt.to)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, c := range curves {
			got += fmt.Sprintf("%s:%v ", c.Name, c.Steps)
		}
		if got != tt.want {
			t.Errorf("%q %d:%d: %s, want %s", tt.glob, tt.from, tt.to, got, tt.want)
		}
	}
}

// Several globs give each series once, in the order of the globs.
func TestMetricsOf(t *testing.T) {
	db := open(t)
	run := ensure(t, db, newRun("x", 0))
	if err := record(t, db, run.ID, metricStep(1, map[string]float64{"a": 1, "b": 2, "c": 3})); err != nil {
		t.Fatal(err)
	}
	curves, err := db.MetricsOf(context.Background(), run.ID, []string{"c", "[ac]", "none"}, 0, AllSteps)
	if err != nil || len(curves) != 2 || curves[0].Name != "c" || curves[1].Name != "a" {
		t.Errorf("curves %+v, %v", curves, err)
	}
	if got, want := DetByStep(curves), map[int64]map[string]float64{1: {"a": 1, "c": 3}}; !cmp.Equal(got, want) {
		t.Errorf("by step %v, want %v", got, want)
	}
	curves[0].Det = false
	if got, want := DetByStep(curves), map[int64]map[string]float64{1: {"a": 1}}; !cmp.Equal(got, want) {
		t.Errorf("deterministic ones %v, want %v", got, want)
	}
}

// Values that are not numbers are stored and named; a summary leaves NaN out.
func TestNonFiniteMetrics(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 0))
	values := []float64{math.NaN(), math.Inf(1), 5, math.Inf(-1), math.NaN()}
	var steps []Step
	for i, v := range values {
		steps = append(steps, metricStep(int64(i+1), map[string]float64{"loss": v, "z": math.NaN(), "ok": 1}))
		steps[i].Events = []Event{{Level: LevelWarn, Kind: "nonfinite", Data: json.RawMessage(`{"text":"y is NaN"}`)}}
		steps[i].Det.Metrics["y"] = math.NaN()
	}
	if err := record(t, db, run.ID, steps...); err != nil {
		t.Fatal(err)
	}
	curves, err := db.Metrics(ctx, run.ID, "loss", 0, AllSteps)
	if err != nil {
		t.Fatal(err)
	}
	want := Curve{
		Series{ID: curves[0].ID, Run: run.ID, Name: "loss", Det: true, N: 5, Last: math.NaN(), LastStep: 5,
			Min: math.Inf(-1), Max: math.Inf(1), ArgMin: 4, ArgMax: 2},
		[]int64{1, 2, 3, 4, 5}, values,
	}
	if diff := cmp.Diff(want, curves[0], cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("loss (-want +got):\n%s", diff)
	}
	z, err := db.Series(ctx, run.ID, "z")
	if err != nil || !math.IsNaN(z[0].Min) || !math.IsNaN(z[0].Max) || z[0].N != 5 {
		t.Errorf("a series of NaN: %+v, %v", z, err)
	}
	events, err := db.Events(ctx, run.ID, 0)
	if err != nil || len(events) != 10 {
		t.Fatalf("%d events, %v, want one a step, and one more for NaN that it does not name", len(events), err)
	}
	if e := events[1]; e.Kind != "nan" || e.Level != LevelWarn || string(e.Data) !=
		`{"metrics":["loss","z"],"step":1,"text":"step 1: NaN in loss, z"}` {
		t.Errorf("event %+v", e)
	}
	if e := events[3]; string(e.Data) != `{"metrics":["z"],"step":2,"text":"step 2: NaN in z"}` {
		t.Errorf("event %+v", e)
	}
}

// Recording the same again changes nothing; recording something else names the
// first field that differs, keeps the old record, and stops the writer.
func TestRecordAgain(t *testing.T) {
	base := func() Step { return metricStep(2, map[string]float64{"kl": 0.5, "loss": 2}) }
	nan := base()
	nan.Det.Metrics["loss"] = math.NaN()
	tests := []struct {
		name  string
		first Step
		edit  func(*Step)
		want  string // field; "": no divergence
	}{
		{"equal", base(), func(s *Step) {}, ""},
		{"measured differs", base(), func(s *Step) { s.Measured = map[string]float64{"time": 9} }, ""},
		{"items", base(), func(s *Step) { s.Det.Items, s.Chain = digest("x"), digest("c") }, "items"},
		{"tokens", base(), func(s *Step) { s.Det.Tokens, s.Chain = digest("x"), digest("c") }, "tokens"},
		{"log-probs", base(), func(s *Step) { s.Det.LogProbs, s.Chain = digest("x"), digest("c") }, "logprobs"},
		{"rewards", base(), func(s *Step) { s.Det.Rewards, s.Chain = digest("x"), digest("c") }, "rewards"},
		{"parameters", base(), func(s *Step) { s.Det.Params, s.Chain = digest("x"), digest("c") }, "params"},
		{"a metric", base(), func(s *Step) { s.Det.Metrics["loss"], s.Chain = 2.5, digest("c") }, "metrics.loss"},
		{"an earlier step", base(), func(s *Step) { s.Chain = digest("c") }, "chain"},
		{"NaN is NaN", nan, func(s *Step) { s.Chain = digest("c") }, "chain"},
		{"NaN became a number", nan, func(s *Step) { s.Det.Metrics["loss"], s.Chain = 1, digest("c") }, "metrics.loss"},
		{"-0 is stored as 0", base(), func(s *Step) { s.Det.Metrics["loss"], s.Chain = 2, digest("c") }, "chain"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			db := open(t)
			ctx := context.Background()
			run := ensure(t, db, newRun("x", 0))
			if err := record(t, db, run.ID, step60(1), tt.first); err != nil {
				t.Fatal(err)
			}
			before := dump(t, db)
			second := tt.first
			second.Det.Metrics = map[string]float64{}
			for k, v := range tt.first.Det.Metrics {
				second.Det.Metrics[k] = v
			}
			tt.edit(&second)
			err := record(t, db, run.ID, step60(1), second)
			divergences, derr := db.Divergences(ctx, run.ID)
			if derr != nil {
				t.Fatal(derr)
			}
			if tt.want == "" {
				if err != nil || len(divergences) != 0 {
					t.Errorf("error %v, divergences %v", err, divergences)
				}
				if diff := cmp.Diff(before, dump(t, db)); diff != "" {
					t.Errorf("recording again changed (-before +after):\n%s", diff)
				}
				return
			}
			want := DivergenceError{RID: run.RID, Step: 2, Field: tt.want, Want: tt.first.Chain, Got: second.Chain}
			var d *DivergenceError
			if !errors.As(err, &d) {
				t.Fatalf("error %v, want *DivergenceError", err)
			}
			if diff := cmp.Diff(want, *d); diff != "" {
				t.Errorf("divergence (-want +got):\n%s", diff)
			}
			if len(divergences) != 1 || divergences[0].What != want {
				t.Errorf("recorded divergences %+v", divergences)
			}
			if diff := cmp.Diff(before, dump(t, db)); diff != "" {
				t.Errorf("the divergence changed (-before +after):\n%s", diff)
			}
		})
	}
}

// dump is all steps, points and summaries, as text.
func dump(t *testing.T, db *DB) []string {
	t.Helper()
	rows, err := query(context.Background(), db.r, scanText, `
		SELECT 'step ' || run || ' ' || step || ' ' || t || ' ' || hex(chain) FROM steps
		UNION ALL SELECT 'point ' || run || ' ' || step || ' ' || series || ' ' || coalesce(value, 'NaN') FROM metrics
		UNION ALL SELECT 'series ' || name || ' ' || n || ' ' || coalesce(last, 'NaN') FROM series
		UNION ALL SELECT 'run ' || id || ' ' || steps || ' ' || tokens || ' ' || hex(chain) FROM runs
		UNION ALL SELECT 'event ' || kind || ' ' || data FROM events
		ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// A chain can be recomputed from what the store keeps.
func TestChainFromStore(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 0))
	chain := ident.ChainStart(run.RID)
	var steps []Step
	for n := int64(1); n <= 5; n++ {
		s := step60(n)
		var err error
		if chain, err = s.Det.Next(chain); err != nil {
			t.Fatal(err)
		}
		s.Chain = chain
		steps = append(steps, s)
	}
	if err := record(t, db, run.ID, steps...); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Steps(ctx, run.ID, 0, AllSteps)
	if err != nil {
		t.Fatal(err)
	}
	got := ident.ChainStart(run.RID)
	for _, row := range rows {
		if row.Det.Metrics, err = detMetrics(ctx, db.r, run.ID, row.Det.Step); err != nil {
			t.Fatal(err)
		}
		if got, err = row.Det.Next(got); err != nil || got != row.Chain {
			t.Fatalf("step %d: chain %s, %v, recorded %s", row.Det.Step, got, err, row.Chain)
		}
	}
}
