package store

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"exp/experiments/ident"
)

// begin begins a stage whose sid is a digest of id.
func begin(t testing.TB, db *DB, run int64, kind, label, id string) Stage {
	t.Helper()
	s, err := db.BeginStage(context.Background(), spec(run, kind, label, id))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func spec(run int64, kind, label, id string) Stage {
	return Stage{
		SID: digest("sid %s", id), Run: run, Kind: kind, Label: label, Params: json.RawMessage(`{"steps":10}`),
		Inputs: []IO{{Role: "problems", Digest: digest("problems"), Size: 8}, {Role: "weights", Digest: digest("hf")}},
		Code:   digest("code"), Numerics: "cpu/fma", Seed: "seed=0",
	}
}

// output stores content as a blob and returns it as an output.
func output(t testing.TB, db *DB, role, content string) IO {
	t.Helper()
	d, err := db.Blobs.PutBytes([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return IO{Role: role, Digest: d, Size: int64(len(content)), Kind: "weights"}
}

func hit(t *testing.T, db *DB, id string) *Stage {
	t.Helper()
	h, err := db.Hit(context.Background(), digest("sid %s", id))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestStageLife(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 0))
	s := begin(t, db, run.ID, "train", "", "1")
	if s.Status != Running || s.Home != s.ID || hit(t, db, "1") != nil {
		t.Errorf("a running stage: %+v, hit %v", s, hit(t, db, "1"))
	}
	out := []IO{output(t, db, "weights", "abc"), output(t, db, "log", "")}
	result := StageResult{Result: json.RawMessage(`{"loss":0.5}`), WallS: 1.5, CPUS: 3, PeakMem: 1 << 30}
	if err := db.FinishStage(ctx, s.ID, out, result, nil); err != nil {
		t.Fatal(err)
	}
	got, err := db.Stages(ctx, run.ID)
	if err != nil || len(got) != 1 {
		t.Fatalf("%d stages, %v", len(got), err)
	}
	want := s
	want.Status, want.StageResult = Done, result
	want.Outputs = []IO{{Role: "log", Digest: out[1].Digest}, {Role: "weights", Digest: out[0].Digest, Size: 3}}
	if diff := cmp.Diff(want, got[0], cmpopts.IgnoreFields(Stage{}, "Ended")); diff != "" {
		t.Errorf("stage (-want +got):\n%s", diff)
	}
	if h := hit(t, db, "1"); h == nil || h.ID != s.ID || len(h.Outputs) != 2 {
		t.Errorf("hit %+v", h)
	}
	if err := db.FinishStage(ctx, s.ID, out, result, nil); !errors.Is(err, ErrConstraint) {
		t.Errorf("finishing twice: error %v, want ErrConstraint", err)
	}
	if err := db.FailStage(ctx, s.ID, "late"); !errors.Is(err, ErrNotFound) {
		t.Errorf("failing a done stage: error %v, want ErrNotFound", err)
	}

	f := begin(t, db, run.ID, "train", "", "2")
	if err := db.FailStage(ctx, f.ID, "out of memory"); err != nil {
		t.Fatal(err)
	}
	i := begin(t, db, run.ID, "train", "", "2")
	if err := db.InterruptStage(ctx, i.ID); err != nil {
		t.Fatal(err)
	}
	failed, err := db.StagesBySID(ctx, digest("sid 2"))
	if err != nil || len(failed) != 2 || failed[0].Status != Failed || failed[0].Error != "out of memory" || failed[1].Status != Interrupted {
		t.Errorf("failed and interrupted stages: %+v, %v", failed, err)
	}
	if failed[1].Home != f.ID {
		t.Errorf("second stage of a sid has home %d, want %d", failed[1].Home, f.ID)
	}
	if hit(t, db, "2") != nil {
		t.Error("a failed stage is a hit")
	}
}

// A stage is not done before its outputs are stored.
func TestFinishStageNeedsBlobs(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 0))
	s := begin(t, db, run.ID, "train", "", "1")
	missing := []IO{{Role: "weights", Digest: digest("none"), Size: 3}}
	if err := db.FinishStage(ctx, s.ID, missing, StageResult{}, nil); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "weights") {
		t.Errorf("missing output: error %v, want fs.ErrNotExist that names it", err)
	}
	wrong := output(t, db, "weights", "abc")
	wrong.Size = 4
	if err := db.FinishStage(ctx, s.ID, []IO{wrong}, StageResult{}, nil); err == nil {
		t.Error("took an output of another size")
	}
	if stages, _ := db.Stages(ctx, run.ID); stages[0].Status != Running || len(stages[0].Outputs) != 0 {
		t.Errorf("after refusals: %+v", stages[0])
	}
}

func TestHitNeedsBlobs(t *testing.T) {
	db := open(t)
	run := ensure(t, db, newRun("x", 0))
	s := begin(t, db, run.ID, "train", "", "1")
	out := output(t, db, "weights", "abc")
	if err := db.FinishStage(context.Background(), s.ID, []IO{out}, StageResult{}, nil); err != nil {
		t.Fatal(err)
	}
	path := db.Blobs.Path(out.Digest)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if hit(t, db, "1") != nil {
		t.Error("hit without its output")
	}
	if err := os.WriteFile(path, []byte("ab"), 0o444); err != nil {
		t.Fatal(err)
	}
	if hit(t, db, "1") != nil {
		t.Error("hit with a truncated output")
	}
	// Executing it again brings the output back, and the first stage is a hit.
	again := begin(t, db, run.ID, "train", "", "1")
	output(t, db, "weights", "abc")
	if err := db.FinishStage(context.Background(), again.ID, []IO{out}, StageResult{}, nil); err != nil {
		t.Fatal(err)
	}
	if h := hit(t, db, "1"); h == nil || h.ID != s.ID {
		t.Errorf("hit %+v, want the first stage", h)
	}
}

func TestRepeatedAndDiverged(t *testing.T) {
	tests := []struct {
		name       string
		outputs    []string // role=content
		want       string   // field; "": no divergence
		wantD, got string   // contents; "": no blob
	}{
		{"equal", []string{"a=1", "b=2"}, "", "", ""},
		{"one differs", []string{"a=1", "b=3"}, "output b", "2", "3"},
		{"both differ", []string{"a=x", "b=y"}, "output a", "1", "x"},
		{"one is missing", []string{"a=1"}, "output b", "2", ""},
		{"one more", []string{"a=1", "b=2", "c=3"}, "output c", "", "3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			db := open(t)
			ctx := context.Background()
			run := ensure(t, db, newRun("x", 0))
			other := ensure(t, db, newRun("x", 1))
			first := begin(t, db, run.ID, "sft", "", "1")
			if err := db.FinishStage(ctx, first.ID, outputs(t, db, "a=1", "b=2"), StageResult{}, nil); err != nil {
				t.Fatal(err)
			}
			second := begin(t, db, other.ID, "sft", "", "1")
			err := db.FinishStage(ctx, second.ID, outputs(t, db, tt.outputs...), StageResult{}, nil)

			stages, _ := db.Stages(ctx, other.ID)
			divergences, _ := db.Divergences(ctx, other.ID)
			if h := hit(t, db, "1"); h == nil || h.ID != first.ID {
				t.Errorf("hit %+v, want the first stage", h)
			}
			if tt.want == "" {
				if err != nil || stages[0].Status != Repeated || len(divergences) != 0 {
					t.Errorf("error %v, stage %s, divergences %v", err, stages[0].Status, divergences)
				}
				return
			}
			var d *DivergenceError
			if !errors.As(err, &d) {
				t.Fatalf("error %v, want *DivergenceError", err)
			}
			want := DivergenceError{SID: digest("sid 1"), Kind: "sft", Field: tt.want, Want: content(tt.wantD), Got: content(tt.got)}
			if diff := cmp.Diff(want, *d); diff != "" {
				t.Errorf("divergence (-want +got):\n%s", diff)
			}
			if stages[0].Status != Diverged || len(divergences) != 1 {
				t.Fatalf("stage %s, divergences %v", stages[0].Status, divergences)
			}
			if diff := cmp.Diff(want, divergences[0].What); diff != "" {
				t.Errorf("recorded divergence (-want +got):\n%s", diff)
			}
			if divergences[0].Host == "" || divergences[0].Time.IsZero() {
				t.Errorf("divergence without host or time: %+v", divergences[0])
			}
		})
	}
}

func outputs(t *testing.T, db *DB, list ...string) (out []IO) {
	for _, text := range list {
		role, content, _ := strings.Cut(text, "=")
		out = append(out, output(t, db, role, content))
	}
	return out
}

// content is the digest of a blob, zero for "".
func content(s string) ident.Digest {
	if s == "" {
		return ident.Digest{}
	}
	return ident.Sum([]byte(s))
}

func TestDivergenceErrorText(t *testing.T) {
	stage := &DivergenceError{SID: digest("s"), Kind: "sft", Field: "output weights", Want: digest("a"), Got: digest("b")}
	step := &DivergenceError{RID: digest("r"), Step: 7, Field: "tokens", Got: digest("b")}
	for err, want := range map[error]string{
		stage: "divergence: stage sft (" + digest("s").Short() + "): output weights is " + digest("b").Short() + ", recorded as " + digest("a").Short(),
		step:  "divergence: run " + digest("r").Short() + ": step 7: tokens is " + digest("b").Short() + ", recorded as none",
	} {
		if err.Error() != want {
			t.Errorf("got  %s\nwant %s", err, want)
		}
	}
}

// A stage that exp gc removes between Hit and ReuseStage is not reused, even if another stage got
// its row.
func TestReuseGoneStage(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	other, run := ensure(t, db, newRun("x", 1)), ensure(t, db, newRun("x", 0))
	s := begin(t, db, run.ID, "init", "", "1")
	out := output(t, db, "weights", "abc")
	if err := db.FinishStage(ctx, s.ID, []IO{out}, StageResult{}, nil); err != nil {
		t.Fatal(err)
	}
	h := hit(t, db, "1")
	if err := errors.Join(db.DeleteRun(ctx, run.ID), db.RemoveRun(ctx, run.ID)); err != nil {
		t.Fatal(err)
	}
	begin(t, db, ensure(t, db, newRun("x", 2)).ID, "init", "", "2")
	if _, err := db.ReuseStage(ctx, spec(other.ID, "init", "", "1"), h); !errors.Is(err, ErrGone) {
		t.Errorf("error %v", err)
	}
	if got, err := db.Stages(ctx, other.ID); err != nil || len(got) != 0 {
		t.Errorf("stages %+v, %v", got, err)
	}
}

func TestReuseStage(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run, other := ensure(t, db, newRun("x", 0)), ensure(t, db, newRun("x", 1))
	suite, err := db.EnsureSuite(ctx, Suite{Digest: digest("s"), Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	s := begin(t, db, run.ID, "eval.score", "test", "1")
	out := output(t, db, "verdicts", "abc")
	eval := Eval{Suite: suite, Protocol: digest("p"), Metric: "pass@1", Value: 0.5, N: 16, Items: 10, Clusters: 10}
	if err := db.FinishStage(ctx, s.ID, []IO{out}, StageResult{Result: json.RawMessage(`{"n":1}`), WallS: 9}, []Eval{eval}); err != nil {
		t.Fatal(err)
	}
	reused, err := db.ReuseStage(ctx, spec(other.ID, "eval.score", "test", "1"), hit(t, db, "1"))
	if err != nil {
		t.Fatal(err)
	}
	if reused.Status != Cached || reused.ReusedFrom != s.ID || reused.Home != s.ID || reused.Run != other.ID || reused.ReusedRun != run.RID {
		t.Errorf("reused stage %+v", reused)
	}
	got, err := db.Stages(ctx, other.ID)
	if err != nil || len(got) != 1 {
		t.Fatalf("%d stages, %v", len(got), err)
	}
	// It shows the outputs and the result of the first, but not its time.
	if got[0].Status != Cached || string(got[0].Result) != `{"n":1}` || got[0].WallS != 0 || got[0].Ended.IsZero() || got[0].ReusedRun != run.RID {
		t.Errorf("cached stage %+v", got[0])
	}
	if diff := cmp.Diff([]IO{{Role: "verdicts", Digest: out.Digest, Size: 3}}, got[0].Outputs); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	evals, err := db.Evals(ctx, other.ID)
	if err != nil || len(evals) != 1 || evals[0].Value != 0.5 || evals[0].StageScore != reused.ID {
		t.Errorf("evaluations of a reused stage: %+v, %v", evals, err)
	}
	// Once is enough.
	again, err := db.ReuseStage(ctx, spec(other.ID, "eval.score", "test", "1"), hit(t, db, "1"))
	if err != nil || again.ID != reused.ID {
		t.Errorf("reusing again: stage %d, %v, want %d", again.ID, err, reused.ID)
	}
	own, err := db.ReuseStage(ctx, spec(run.ID, "eval.score", "test", "1"), hit(t, db, "1"))
	if err != nil || own.ID != s.ID {
		t.Errorf("reusing one's own: stage %d, %v, want %d", own.ID, err, s.ID)
	}
}

func TestEdges(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run := ensure(t, db, newRun("x", 0))
	weights := output(t, db, "weights", "abc")
	sft := begin(t, db, run.ID, "sft", "", "1")
	if err := db.FinishStage(ctx, sft.ID, []IO{weights}, StageResult{}, nil); err != nil {
		t.Fatal(err)
	}
	s := spec(run.ID, "train", "", "2")
	s.Inputs = []IO{{Role: "start", Digest: weights.Digest, Size: 3}}
	train, err := db.BeginStage(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := db.Edges(ctx, weights.Digest)
	want := []Edge{{sft.ID, run.ID, "sft", true, "weights"}, {train.ID, run.ID, "train", false, "start"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("edges: %v (-want +got):\n%s", err, diff)
	}
	if got, err := db.Edges(ctx, digest("none")); err != nil || len(got) != 0 {
		t.Errorf("edges of nothing: %v, %v", got, err)
	}
}
