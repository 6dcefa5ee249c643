package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"exp/experiments/blob"
)

// evalRun is a run with an eval.gen stage on suite "test".
func evalRun(t testing.TB, db *DB) (Run, Stage) {
	t.Helper()
	run := ensure(t, db, newRun("x", 0))
	return run, begin(t, db, run.ID, "eval.gen", "test", "gen")
}

// pack stores n records and returns samples of stage that refer to them, two for
// each item.
func pack(t testing.TB, db *DB, stage int64, n int) ([]Sample, []blob.Pack) {
	t.Helper()
	w := db.Blobs.NewPackWriter()
	samples := make([]Sample, n)
	for i := range samples {
		if err := w.Add(fmt.Sprintf("text %d", i)); err != nil {
			t.Fatal(err)
		}
		samples[i] = Sample{
			Stage: stage, Scope: "eval", Item: fmt.Sprintf("p%d", i/2), K: i % 2, PromptTokens: 10, OutTokens: int64(i),
			Finish: "stop", Reward: math.NaN(), LogProbSum: -float64(i),
		}
	}
	refs, packs, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	for i := range samples {
		samples[i].Ref = refs[i]
	}
	return samples, packs
}

func TestSamples(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run, gen := evalRun(t, db)
	samples, packs := pack(t, db, gen.Home, 6)
	samples[5].Ref = blob.Ref{} // its text was not kept
	// Twice, as a stage that was killed and runs again would: the same samples, the same ids.
	again := slices.Clone(samples)
	for _, list := range [][]Sample{samples, again} {
		if err := db.AddSamples(ctx, list, packs); err != nil {
			t.Fatal(err)
		}
	}
	got, err := db.Samples(ctx, run.ID, SampleQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]Sample{samples, again} {
		if diff := cmp.Diff(list, got, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("samples (-added +got):\n%s", diff)
		}
	}
	reader := db.Blobs.NewPackReader()
	defer reader.Close()
	var text string
	if err := reader.Read(got[3].Ref, &text); err != nil || text != "text 3" {
		t.Errorf("text of sample 3: %q, %v", text, err)
	}

	// Verdicts: odd samples are right, sample 4 could not be graded, 5 has none.
	old, new := Scorer{digest("old"), "grader/1"}, Scorer{digest("new"), "grader/2"}
	var verdicts []Verdict
	for i, s := range got[:5] {
		verdicts = append(verdicts, Verdict{Sample: s.ID, Graded: i != 4, Correct: i%2 == 1, Reward: float64(i % 2),
			Answer: fmt.Sprint("a", i), Reason: "because", CPUMS: 1, WallMS: 2, MemKB: 3})
	}
	for range 2 {
		if err := db.AddVerdicts(ctx, old, verdicts); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ = db.Samples(ctx, run.ID, SampleQuery{}); got[5].Verdict != nil || got[1].Verdict == nil {
		t.Fatalf("verdicts %v, %v", got[1].Verdict, got[5].Verdict)
	}
	want := verdicts[1]
	want.Scorer = old
	if diff := cmp.Diff(want, *got[1].Verdict); diff != "" {
		t.Errorf("verdict (-want +got):\n%s", diff)
	}
	if v := got[4].Verdict; v.Graded || v.Correct {
		t.Errorf("a sample that could not be graded: %+v", v)
	}

	// A newer scorer finds sample 0 right too.
	better := verdicts[0]
	better.Correct = true
	if err := db.AddVerdicts(ctx, new, []Verdict{better}); err != nil {
		t.Fatal(err)
	}
	yes, no := true, false
	tests := []struct {
		name  string
		query SampleQuery
		want  string // indices
	}{
		{"all", SampleQuery{}, "0 1 2 3 4 5"},
		{"right", SampleQuery{Correct: &yes}, "0 1 3"},
		{"wrong", SampleQuery{Correct: &no}, "2"},
		{"right by the old scorer", SampleQuery{Correct: &yes, Scorer: old.Digest}, "1 3"},
		{"wrong by the old scorer", SampleQuery{Correct: &no, Scorer: old.Digest}, "0 2"},
		{"right by the new scorer", SampleQuery{Correct: &yes, Scorer: new.Digest}, "0"},
		{"right by no scorer", SampleQuery{Correct: &yes, Scorer: digest("none")}, ""},
		{"one item", SampleQuery{Item: "p1"}, "2 3"},
		{"scope", SampleQuery{Scope: "eval"}, "0 1 2 3 4 5"},
		{"another scope", SampleQuery{Scope: "train"}, ""},
		{"suite", SampleQuery{Label: "test", Limit: 1}, "0"},
		{"another suite", SampleQuery{Label: "other"}, ""},
		{"step", SampleQuery{Step: 1}, ""},
		{"page", SampleQuery{After: got[1].ID, Limit: 2}, "2 3"},
	}
	for _, tt := range tests {
		all, err := db.Samples(ctx, run.ID, tt.query)
		if err != nil {
			t.Fatal(err)
		}
		var indices []string
		for _, s := range all {
			indices = append(indices, fmt.Sprint(s.OutTokens))
		}
		if strings.Join(indices, " ") != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, indices, tt.want)
		}
	}
}

// Samples belong to the work, not to one execution of it: a run that reuses the stage
// has them, and so does a run that executes it again.
func TestSamplesOfReusedStage(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run, gen := evalRun(t, db)
	samples, packs := pack(t, db, gen.Home, 4)
	if err := db.AddSamples(ctx, samples, packs); err != nil {
		t.Fatal(err)
	}
	if err := db.FinishStage(ctx, gen.ID, nil, StageResult{}, nil); err != nil {
		t.Fatal(err)
	}
	reuser, repeater, stranger := ensure(t, db, newRun("x", 1)), ensure(t, db, newRun("x", 2)), ensure(t, db, newRun("x", 3))
	if _, err := db.ReuseStage(ctx, spec(reuser.ID, "eval.gen", "test", "gen"), hit(t, db, "gen")); err != nil {
		t.Fatal(err)
	}
	again := begin(t, db, repeater.ID, "eval.gen", "test", "gen")
	samples, packs = pack(t, db, again.Home, 4)
	if err := db.AddSamples(ctx, samples, packs); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		run  Run
		want int
	}{{run, 4}, {reuser, 4}, {repeater, 4}, {stranger, 0}} {
		if got, err := db.Samples(ctx, tt.run.ID, SampleQuery{}); err != nil || len(got) != tt.want {
			t.Errorf("seed %d: %d samples, %v, want %d", tt.run.Seed, len(got), err, tt.want)
		}
	}
}

func TestSamplesInChunks(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run, gen := evalRun(t, db)
	samples, packs := pack(t, db, gen.Home, 2*maxRows+1)
	if err := db.AddSamples(ctx, samples, packs); err != nil {
		t.Fatal(err)
	}
	got, err := db.Samples(ctx, run.ID, SampleQuery{})
	if err != nil || len(got) != len(samples) {
		t.Fatalf("%d samples, %v, want %d", len(got), err, len(samples))
	}
	verdicts := make([]Verdict, len(got))
	for i := range got {
		verdicts[i] = Verdict{Sample: got[i].ID, Graded: true, Correct: true}
	}
	if err := db.AddVerdicts(ctx, Scorer{digest("s"), "s"}, verdicts); err != nil {
		t.Fatal(err)
	}
	yes := true
	if got, err := db.Samples(ctx, run.ID, SampleQuery{Correct: &yes}); err != nil || len(got) != len(samples) {
		t.Errorf("%d right samples, %v, want %d", len(got), err, len(samples))
	}
}

func TestSampleErrors(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	if err := db.AddSamples(ctx, []Sample{{Stage: 99, Scope: "eval", Item: "p7", K: 3}}, nil); !errors.Is(err, ErrConstraint) || !strings.Contains(err.Error(), `sample 3 of "p7"`) {
		t.Errorf("sample of no stage: error %v", err)
	}
	if err := db.AddSamples(ctx, nil, []blob.Pack{{Digest: digest("none"), Size: 1}}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("pack that is not stored: error %v", err)
	}
	if err := db.AddVerdicts(ctx, Scorer{digest("s"), "s"}, []Verdict{{Sample: 99}}); !errors.Is(err, ErrConstraint) {
		t.Errorf("verdict on no sample: error %v", err)
	}
}

func TestSuites(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	s := Suite{Digest: digest("s"), Name: "test", Version: "1", Scorer: "countdown/1", License: "MIT",
		Items: []Item{{ID: "b", Cluster: "c", Difficulty: 2}, {ID: "a", Difficulty: math.NaN()}}}
	id, err := db.EnsureSuite(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := db.EnsureSuite(ctx, s); err != nil || again != id {
		t.Errorf("again: %d, %v, want %d", again, err, id)
	}
	items, err := db.Items(ctx, id)
	want := []Item{s.Items[1], s.Items[0]}
	if diff := cmp.Diff(want, items, cmpopts.EquateNaNs()); err != nil || diff != "" {
		t.Errorf("items: %v (-want +got):\n%s", err, diff)
	}
	twice := Suite{Digest: digest("t"), Items: []Item{{ID: "a"}, {ID: "a"}}}
	if _, err := db.EnsureSuite(ctx, twice); !errors.Is(err, ErrConstraint) || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("an item twice: error %v", err)
	}
}

// Of several scores of a suite under one protocol the newest count; another
// protocol or suite is kept next to them.
func TestEvals(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 0))
	suite, err := db.EnsureSuite(ctx, Suite{Digest: digest("s"), Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	score := func(id, protocol, metric string, value float64) {
		t.Helper()
		s := begin(t, db, run.ID, "eval.score", "test", id)
		e := Eval{Suite: suite, Protocol: digest("%s", protocol), N: 16, Metric: metric, Value: value, SE: 0.1, Lo: 0, Hi: math.NaN(), Items: 8, Clusters: 4, InfraErrors: 1}
		if err := db.FinishStage(ctx, s.ID, nil, StageResult{}, []Eval{e}); err != nil {
			t.Fatal(err)
		}
	}
	score("1", "p", "pass@1", 0.25)
	score("2", "q", "pass@1", 0.5)
	score("3", "p", "pass@1", 0.75)
	score("4", "p", "pass@2", math.NaN())
	evals, err := db.Evals(ctx, run.ID)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range evals {
		got = append(got, fmt.Sprintf("%s %s %v", e.Protocol.Short(), e.Metric, e.Value))
	}
	want := []string{digest("q").Short() + " pass@1 0.5", digest("p").Short() + " pass@2 NaN"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("evaluations (-want +got):\n%s", diff)
	}
	e := evals[0]
	if e.SuiteName != "test" || e.SuiteDigest != digest("s") || e.N != 16 || e.SE != 0.1 || e.Lo != 0 || !math.IsNaN(e.Hi) ||
		e.Items != 8 || e.Clusters != 4 || e.InfraErrors != 1 || e.StageGen != 0 {
		t.Errorf("evaluation %+v", e)
	}
	// Another stage may add to the scores of an earlier one, and do so again.
	for _, v := range []float64{3, 4} {
		j := begin(t, db, run.ID, "eval.judge", "test", fmt.Sprint("judge", v))
		more := Eval{StageScore: e.StageScore, Suite: suite, Protocol: e.Protocol, N: 16, Metric: "judged", Value: v, Items: 2}
		if err := db.FinishStage(ctx, j.ID, nil, StageResult{}, []Eval{more}); err != nil {
			t.Fatal(err)
		}
	}
	evals, err = db.Evals(ctx, run.ID)
	if last := evals[len(evals)-1]; err != nil || len(evals) != 3 || last.Metric != "judged" || last.Value != 4 ||
		last.StageScore != e.StageScore {
		t.Errorf("with an added score: %+v, %v", evals, err)
	}
	s := begin(t, db, run.ID, "eval.score", "test", "5")
	if err := db.FinishStage(ctx, s.ID, nil, StageResult{}, []Eval{{Suite: 99, Protocol: digest("p"), Metric: "m"}}); !errors.Is(err, ErrConstraint) {
		t.Errorf("evaluation on no suite: error %v", err)
	}
	// The stage did not become done with half of its rows.
	if hit(t, db, "5") != nil {
		t.Error("a stage whose evaluations were refused is done")
	}
}

func TestArtifacts(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run, stage := evalRun(t, db)
	add := func(name, content string) {
		t.Helper()
		o := output(t, db, name, content)
		err := db.write(ctx, "add artifact", func(tx *sql.Tx) error {
			if err := db.addBlob(ctx, tx, o.Digest, o.Size, "artifact"); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, `INSERT INTO artifacts (run, stage, name, media, digest) VALUES (?, ?, ?, ?, ?)`,
				run.ID, stage.ID, name, "text/plain", o.Digest)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	add("b.txt", "333")
	add("a.txt", "22")
	got, err := db.Artifacts(ctx, run.ID)
	want := []Artifact{
		{run.ID, stage.ID, "a.txt", "text/plain", content("22"), 2},
		{run.ID, stage.ID, "b.txt", "text/plain", content("333"), 3},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("artifacts: %v (-want +got):\n%s", err, diff)
	}
}

func TestCheckpoints(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 0)) // 1 s
	for _, step := range []int64{10, 20, 10} {
		c := Checkpoint{Run: run.ID, Step: step, Digest: digest("%d", step), Chain: digest("chain"), Bytes: 100 * step}
		if err := db.AddCheckpoint(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	got, err := db.Checkpoints(ctx, run.ID)
	if err != nil || len(got) != 2 || got[0].Step != 20 || got[1].Step != 10 || got[1].Bytes != 1000 {
		t.Errorf("checkpoints %+v, %v", got, err)
	}
	err = db.AddCheckpoint(ctx, Checkpoint{Run: run.ID, Step: 10, Digest: digest("other"), Chain: digest("chain")})
	want := DivergenceError{RID: run.RID, Step: 10, Field: "checkpoint", Want: digest("%d", 10), Got: digest("other")}
	var d *DivergenceError
	if !errors.As(err, &d) || *d != want {
		t.Errorf("another checkpoint of a step: error %v, want %v", err, &want)
	}
	if all, err := db.Divergences(ctx, run.ID); err != nil || len(all) != 1 || all[0].What != want {
		t.Errorf("divergences %+v, %v", all, err)
	}
	if err := db.ForgetCheckpoint(ctx, run.ID, 10); err != nil {
		t.Fatal(err)
	}
	if err := db.ForgetCheckpoint(ctx, run.ID, 10); !errors.Is(err, ErrNotFound) {
		t.Errorf("forgetting twice: error %v", err)
	}
	if got, _ := db.Checkpoints(ctx, run.ID); len(got) != 1 {
		t.Errorf("checkpoints after forgetting: %+v", got)
	}
}

// The problems that a run brings itself carry its own task and their role in it, although another run, which had them
// first, gave them a name.
func TestNameOfOwnProblems(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	score := func(name, task, label string, value float64) Run {
		t.Helper()
		n := newRun(name, 0)
		n.Task = task
		run := ensure(t, db, n)
		suite, err := db.EnsureSuite(ctx, Suite{Digest: digest("same problems"), Name: task + "/" + label})
		if err != nil {
			t.Fatal(err)
		}
		s := begin(t, db, run.ID, "eval.score", label, name+label)
		e := Eval{Suite: suite, Protocol: digest("p"), Metric: "pass@1", Value: value}
		if err := db.FinishStage(ctx, s.ID, nil, StageResult{}, []Eval{e}); err != nil {
			t.Fatal(err)
		}
		return run
	}
	score("a", "prompts", "test", 0.5)
	run := score("b", "math", "val", 0.25)
	score("b", "math", "test", 0.75)
	evals, err := db.Evals(ctx, run.ID)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range evals {
		got = append(got, fmt.Sprint(e.SuiteName, " ", e.Value))
	}
	if diff := cmp.Diff([]string{"math/val 0.25", "math/test 0.75"}, got); diff != "" {
		t.Errorf("evaluations (-want +got):\n%s", diff)
	}
	val, test := Field{Kind: FieldEval, Suite: "val", Name: "pass@1"}, Field{Kind: FieldEval, Suite: "test", Name: "pass@1"}
	_, values, err := db.RunFields(ctx, RunQuery{Name: "b"}, []Field{val, test})
	if err != nil || values[0][0] != 0.25 || values[0][1] != 0.75 {
		t.Errorf("fields %v, %v", values, err)
	}
	if got, err := db.Recorded(ctx, val); err != nil || !got {
		t.Errorf("recorded %v, %v", got, err)
	}
	names, err := queryOne(ctx, db.r, func(r *sql.Rows) (text string, err error) { return text, r.Scan(&text) },
		`SELECT group_concat(name || ' ' || suite || ' ' || evaluation || ' ' || value, ', ') FROM (SELECT * FROM v_results ORDER BY value)`)
	if want := "b math/val val 0.25, a prompts/test test 0.5, b math/test test 0.75"; err != nil || names != want {
		t.Errorf("v_results has %s, %v, want %s", names, err, want)
	}

	// So it is whether a benchmark's file brings them before or after.
	for _, name := range []string{"mine", "prompts/test"} {
		if _, err := db.w.Exec(`UPDATE suites SET name = ?, scorer = 'exp/1'`, name); err != nil {
			t.Fatal(err)
		}
		score("c"+name, "math", "mine", 1)
		got, err := queryOne(ctx, db.r, scanText, `SELECT group_concat(DISTINCT suite ORDER BY suite) FROM v_results`)
		if want := "math/test,math/val,mine,prompts/test"; err != nil || got != want {
			t.Errorf("with the row %s: v_results has %s, %v, want %s", name, got, err, want)
		}
		run, err := db.Runs(ctx, RunQuery{Name: "c" + name})
		if err != nil {
			t.Fatal(err)
		}
		if evals, err := db.Evals(ctx, run[0].ID); err != nil || evals[0].SuiteName != "mine" {
			t.Errorf("with the row %s: %+v, %v", name, evals, err)
		}
	}
}
