package store

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"exp/experiments/ident"
)

func TestEnsureRun(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	n := newRun("x", 3)
	run, created, err := db.EnsureRun(ctx, n)
	if err != nil || !created {
		t.Fatalf("created %t, %v", created, err)
	}
	want := Run{
		ID: 1, RID: n.RID, XID: n.XID, Name: "x", Task: "countdown", Algo: "ppo", Model: "tiny", Seed: 3, Numerics: "cpu/fma",
		Status: Pending, Created: start.Add(time.Second), StepsTotal: 100, Config: n.Config.Digest, Code: n.Code,
	}
	if diff := cmp.Diff(want, run); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}

	// The same run again, under another name: it is there already.
	n.Name = "y"
	again, created, err := db.EnsureRun(ctx, n)
	if err != nil || created {
		t.Fatalf("again: created %t, %v", created, err)
	}
	if diff := cmp.Diff(want, again); diff != "" {
		t.Errorf("again (-want +got):\n%s", diff)
	}

	// One rid cannot be two experiments.
	n.XID = digest("other")
	if _, _, err := db.EnsureRun(ctx, n); !errors.Is(err, ErrConstraint) {
		t.Errorf("another experiment: error %v, want ErrConstraint", err)
	}

	child := newRun("child", 3)
	child.Parent = run.ID
	if got := ensure(t, db, child); got.Parent != run.ID {
		t.Errorf("child has parent %d, want %d", got.Parent, run.ID)
	}
	child.RID, child.Parent = digest("r"), 99
	if _, _, err := db.EnsureRun(ctx, child); !errors.Is(err, ErrConstraint) {
		t.Errorf("a parent that is not there: error %v, want ErrConstraint", err)
	}
	if _, err := db.Config(ctx, digest("config child")); err != nil {
		t.Errorf("config: %v", err)
	}
	if _, err := db.Config(ctx, digest("none")); !errors.Is(err, ErrNotFound) {
		t.Errorf("no config: error %v, want ErrNotFound", err)
	}
}

func TestRunLookups(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 0))
	byRID, err1 := db.Run(ctx, run.RID)
	byID, err2 := db.RunByID(ctx, run.ID)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(run, byRID); diff != "" {
		t.Errorf("Run (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(run, byID); diff != "" {
		t.Errorf("RunByID (-want +got):\n%s", diff)
	}
	_, err1 = db.Run(ctx, digest("none"))
	_, err2 = db.RunByID(ctx, 99)
	if !errors.Is(err1, ErrNotFound) || !errors.Is(err2, ErrNotFound) {
		t.Errorf("errors %v, %v, want ErrNotFound", err1, err2)
	}
}

func TestSetters(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 0))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(db.SetHeadline(ctx, run.ID, []Headline{{"pass@1", 0.5}, {"distinct", math.NaN()}, {"reward", math.Inf(1)}}))
	for _, tag := range []string{"b", "a", "b"} {
		must(db.AddTag(ctx, run.ID, tag))
	}
	must(db.AddNote(ctx, run.ID, "first"))
	must(db.AddNote(ctx, run.ID, "second"))

	got, err := db.RunByID(ctx, run.ID)
	must(err)
	want := []Headline{{"pass@1", 0.5}, {"distinct", math.NaN()}, {"reward", math.Inf(1)}}
	if diff := cmp.Diff(want, got.Headline, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("headline (-want +got):\n%s", diff)
	}
	tags, err := db.Tags(ctx, run.ID)
	must(err)
	if strings.Join(tags, " ") != "a b" {
		t.Errorf("tags %v, want a b", tags)
	}
	// A name finds the run until another run has it.
	other := newRun("y", 0)
	for _, name := range []string{"z", other.Name, "m;n"} {
		must(db.AddTag(ctx, run.ID, NameTag(name)))
	}
	named := func(want ...string) {
		t.Helper()
		names, err := db.OtherNames(ctx)
		if must(err); !slices.Equal(names[run.ID], want) || len(names) != 1 {
			t.Errorf("names %v, want %v", names, want)
		}
	}
	named("m;n", "y", "z")
	must(db.DeleteRun(ctx, ensure(t, db, other).ID))
	named("m;n", "y", "z")
	ensure(t, db, other) // restores it
	named("m;n", "z")

	must(db.RemoveTag(ctx, run.ID, "a"))
	if err := db.RemoveTag(ctx, run.ID, "a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("removing a tag twice: error %v, want ErrNotFound", err)
	}
	notes, err := db.Notes(ctx, run.ID)
	must(err)
	if len(notes) != 2 || notes[0].Text != "first" || notes[1].Time.Sub(notes[0].Time) != time.Second {
		t.Errorf("notes %v", notes)
	}

	for name, err := range map[string]error{
		"DeleteRun":  db.DeleteRun(ctx, 99),
		"RestoreRun": db.RestoreRun(ctx, 99),
	} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s of no run: error %v, want ErrNotFound", name, err)
		}
	}
	for name, err := range map[string]error{
		"AddTag":       db.AddTag(ctx, 99, "x"),
		"four results": db.SetHeadline(ctx, run.ID, make([]Headline, 4)),
		"comma":        db.SetHeadline(ctx, run.ID, []Headline{{Name: "a,b"}}),
	} {
		if !errors.Is(err, ErrConstraint) {
			t.Errorf("%s: error %v, want ErrConstraint", name, err)
		}
	}
}

func TestDeleteAndRestore(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 0))
	if err := db.DeleteRun(ctx, run.ID); err != nil {
		t.Fatal(err)
	}
	count := func(q RunQuery) int {
		runs, err := db.Runs(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := db.CountRuns(ctx, q); err != nil || n != len(runs) {
			t.Errorf("CountRuns(%+v) = %d, %v; Runs returns %d", q, n, err, len(runs))
		}
		return len(runs)
	}
	if live, deleted := count(RunQuery{}), count(RunQuery{Deleted: true}); live != 0 || deleted != 1 {
		t.Errorf("after delete: %d live, %d deleted", live, deleted)
	}
	if got, err := db.Run(ctx, run.RID); err != nil || got.Deleted.IsZero() {
		t.Errorf("Run of a deleted one: deleted %v, %v", got.Deleted, err)
	}
	if err := db.RestoreRun(ctx, run.ID); err != nil || count(RunQuery{}) != 1 {
		t.Errorf("after restore: %d live, %v", count(RunQuery{}), err)
	}
	// Executing it again restores it too.
	if err := db.DeleteRun(ctx, run.ID); err != nil {
		t.Fatal(err)
	}
	if got, created, err := db.EnsureRun(ctx, newRun("x", 0)); err != nil || created || !got.Deleted.IsZero() || got.ID != run.ID {
		t.Errorf("EnsureRun of a deleted run: %+v, created %t, %v", got, created, err)
	}
}

func TestRuns(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	for _, name := range []string{"a", "b"} {
		for seed := range int64(3) {
			run := ensure(t, db, newRun(name, seed))
			if seed == 1 {
				if err := db.AddTag(ctx, run.ID, "middle"); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	b2 := ident.RID(digest("xid b"), 2, "cpu/fma").String()
	tests := []struct {
		query RunQuery
		want  string // names and seeds, newest first
	}{
		{RunQuery{}, "b2 b1 b0 a2 a1 a0"},
		{RunQuery{Limit: 2}, "b2 b1"},
		{RunQuery{Name: "a"}, "a2 a1 a0"},
		{RunQuery{Name: "a", Limit: 1}, "a2"},
		{RunQuery{Tag: "middle"}, "b1 a1"},
		{RunQuery{Tag: "middle", Name: "a"}, "a1"},
		{RunQuery{Status: Pending, Limit: 1}, "b2"},
		{RunQuery{Status: Done}, ""},
		{RunQuery{IDPrefix: b2}, "b2"},
		{RunQuery{IDPrefix: b2[:7]}, "b2"},
		{RunQuery{IDPrefix: strings.ToUpper(b2[:8])}, "b2"},
		{RunQuery{XIDPrefix: digest("xid a").String()[:9]}, "a2 a1 a0"},
		{RunQuery{XIDPrefix: digest("xid a").String()[:9], Name: "b"}, ""},
	}
	for _, tt := range tests {
		runs, err := db.Runs(ctx, tt.query)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range runs {
			got = append(got, r.Name+string(rune('0'+r.Seed)))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%+v: %v, want %s", tt.query, got, tt.want)
		}
	}
	for _, prefix := range []string{"xyz", b2 + "0"} {
		if _, err := db.Runs(ctx, RunQuery{IDPrefix: prefix}); err == nil || !strings.Contains(err.Error(), prefix) {
			t.Errorf("prefix %s: error %v, want one that quotes it", prefix, err)
		}
	}
}

func TestRunFields(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	n := newRun("x", 5)
	n.Config.JSON = `{"train":{"optim":{"lr":1e-6},"steps":100},"flag":true,"none":null,"list":["a","b"],"od\"d.k":1,` +
		`"word":"12","eval":{"final":{"suites":["test"]}}}`
	run := ensure(t, db, n)
	suite, err := db.EnsureSuite(ctx, Suite{Digest: digest("s"), Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	w := db.NewStepWriter(run.ID, 0, nil)
	for i, v := range []float64{3, 1, 2, math.NaN()} {
		s := step60(int64(i + 1))
		s.Det.Metrics, s.Measured = map[string]float64{"critic/rewards/mean": v}, nil
		if err := w.Record(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	stage := begin(t, db, run.ID, "eval.score", "test", "1")
	own, err := db.EnsureSuite(ctx, Suite{Digest: digest("own"), Name: run.Task + "/heldout"})
	if err != nil {
		t.Fatal(err)
	}
	ownStage := begin(t, db, run.ID, "eval.score", "heldout", "2")
	if err := errors.Join(
		db.FinishStage(ctx, stage.ID, nil, StageResult{},
			[]Eval{{Suite: suite, Protocol: digest("p"), Metric: "pass@1", Value: 0.25}}),
		db.FinishStage(ctx, ownStage.ID, nil, StageResult{},
			[]Eval{{Suite: own, Protocol: digest("p"), Metric: "pass@1", Value: 0.5}}),
		// Scored again in another way: it replaces the score only on a suite that the configuration lacks.
		db.FinishStage(ctx, begin(t, db, run.ID, "eval.score", "test", "3").ID, nil, StageResult{},
			[]Eval{{Suite: suite, Protocol: digest("q"), Metric: "pass@1", Value: 0.75}}),
		db.FinishStage(ctx, begin(t, db, run.ID, "eval.score", "heldout", "4").ID, nil, StageResult{},
			[]Eval{{Suite: own, Protocol: digest("q"), Metric: "pass@1", Value: 0.625}}),
	); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.AddTag(ctx, run.ID, "b"), db.AddTag(ctx, run.ID, "a")); err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{"prefix", "blobs"} {
		if err := db.AddVerification(ctx, Verification{Run: run.ID, Level: level, OK: true}); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		field Field
		want  any
	}{
		{Field{Kind: FieldColumn, Name: "name"}, "x"},
		{Field{Kind: FieldColumn, Name: "seed"}, 5.0},
		{Field{Kind: FieldColumn, Name: "id"}, n.RID.String()},
		{Field{Kind: FieldColumn, Name: "created"}, run.Created},
		{Field{Kind: FieldColumn, Name: "started"}, nil},
		{Field{Kind: FieldColumn, Name: "steps"}, 4.0},
		{Field{Kind: FieldColumn, Name: "verified"}, "prefix"},
		{Field{Kind: FieldTag}, []any{"a", "b"}},
		{Field{Kind: FieldConfig, Name: "train.optim.lr"}, 1e-6},
		{Field{Kind: FieldConfig, Name: "train.steps"}, 100.0},
		{Field{Kind: FieldConfig, Name: "flag"}, true},
		{Field{Kind: FieldConfig, Name: "none"}, nil},
		{Field{Kind: FieldConfig, Name: "list"}, []any{"a", "b"}},
		{Field{Kind: FieldConfig, Name: "word"}, "12"},
		{Field{Kind: FieldConfig, Name: "not.there"}, nil},
		{Field{Kind: FieldConfig, Name: `odd"];drop`}, nil},
		{Field{Kind: FieldMetric, Name: "critic/rewards/mean"}, nil}, // the last is NaN
		{Field{Kind: FieldMetric, Name: "critic/rewards/mean", Agg: AggMin}, 1.0},
		{Field{Kind: FieldMetric, Name: "critic/rewards/mean", Agg: AggMax}, 3.0},
		{Field{Kind: FieldMetric, Name: "critic/rewards/mean", Agg: AggAt, Step: 3}, 2.0},
		{Field{Kind: FieldMetric, Name: "critic/rewards/mean", Agg: AggAt, Step: 9}, nil},
		{Field{Kind: FieldMetric, Name: "none"}, nil},
		{Field{Kind: FieldEval, Suite: "test", Name: "pass@1"}, 0.25},
		{Field{Kind: FieldEval, Suite: "test", Name: "pass@2"}, nil},
		{Field{Kind: FieldEval, Suite: "heldout", Name: "pass@1"}, 0.625}, // the task's
		{Field{Kind: FieldEval, Suite: "down/heldout", Name: "pass@1"}, nil},
	}
	var fields []Field
	for _, tt := range tests {
		fields = append(fields, tt.field)
	}
	runs, values, err := db.RunFields(ctx, RunQuery{Name: "x"}, fields)
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	for i, tt := range tests {
		if diff := cmp.Diff(tt.want, values[0][i]); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.field, diff)
		}
	}
	// The headline shows another evaluation of the configured suite: so does the field.
	if err := db.SetHeadline(ctx, run.ID, []Headline{{"pass@1", 0.75}, {"distinct", 1}}); err != nil {
		t.Fatal(err)
	}
	_, shown, err := db.RunFields(ctx, RunQuery{Name: "x"}, []Field{{Kind: FieldEval, Suite: "test", Name: "pass@1"}})
	if err != nil || shown[0][0] != 0.75 {
		t.Errorf("with the headline of another protocol: %v, %v", shown, err)
	}
	for _, f := range []Field{{}, {Kind: FieldColumn, Name: "config"}, {Kind: FieldMetric, Agg: 9}} {
		if _, _, err := db.RunFields(ctx, RunQuery{}, []Field{f}); !errors.Is(err, ErrNotFound) {
			t.Errorf("%+v: error %v, want ErrNotFound", f, err)
		}
	}
	for i, f := range fields {
		want := f.Kind != FieldMetric && f.Kind != FieldEval || values[0][i] != nil || f.Name == "critic/rewards/mean"
		if got, err := db.Recorded(ctx, f); err != nil || got != want {
			t.Errorf("%+v: recorded %v, want %v (%v)", f, got, want, err)
		}
	}
	for _, name := range Columns() {
		if _, _, err := db.RunFields(ctx, RunQuery{}, []Field{{Kind: FieldColumn, Name: name}}); err != nil {
			t.Errorf("column %s: %v", name, err)
		}
	}
}
