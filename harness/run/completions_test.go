package run

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/stage"
	"exp/train"
	"exp/train/rollout"
)

// keptTest is a completionRecord with a store.
type keptTest struct {
	*testing.T
	db  *store.DB
	run store.Run
	rec *completionRecord
}

func newKeptTest(t *testing.T) *keptTest {
	t.Helper()
	db, err := store.Open(filepath.Join(t.TempDir(), "store"), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	d := ident.Sum([]byte("kept"))
	run, _, err := db.EnsureRun(t.Context(), store.NewRun{RID: d, XID: d, Name: "kept", Numerics: "cpu/fma", Code: d,
		Config: store.Config{Digest: d, JSON: "{}", Origins: "{}"}})
	if err != nil {
		t.Fatal(err)
	}
	row, err := db.BeginStage(t.Context(), store.Stage{SID: d, Run: run.ID, Kind: "train", Code: d, Numerics: "cpu/fma"})
	if err != nil {
		t.Fatal(err)
	}
	return &keptTest{t, db, run, &completionRecord{db: db, stage: row.Home, scorer: store.Scorer{Digest: d, Name: "test/1"}, rate: 1}}
}

// step is a step whose completions have these texts; "NaN" has a log-prob that cannot be
// written.
func step(n int64, texts ...string) stage.Step {
	var s stage.Step
	s.Det.Step = n
	for k, text := range texts {
		c := &rollout.Completion{Text: text, Tokens: []int32{1}, LogProbs: []float32{-1}}
		if text == "NaN" {
			c.LogProbs[0] = float32(math.NaN())
		}
		s.Trajectories = append(s.Trajectories, train.Trajectory{Problem: &rollout.Problem{ID: "p"}, Sample: k, Completion: c,
			Verdict: rollout.Verdict{Status: rollout.Graded, Correct: k%2 == 1, Answer: fmt.Sprintf("%d of step %d", k, n),
				Basis: rollout.ByUnit}})
	}
	return s
}

// want checks that the database holds these texts, with their verdicts.
func (t *keptTest) want(texts ...string) {
	t.Helper()
	samples, err := t.db.Samples(t.Context(), t.run.ID, store.SampleQuery{})
	if err != nil {
		t.Fatal(err)
	}
	reader := t.db.Blobs.NewPackReader()
	defer reader.Close()
	var got []string
	for _, s := range samples {
		var kept keptSample
		if err := reader.Read(s.Ref, &kept); err != nil {
			t.Fatal(err)
		}
		got = append(got, kept.Text)
		if v := s.Verdict; v == nil || v.Answer != fmt.Sprintf("%d of step %d", s.K, s.Step) || v.Correct != (s.K%2 == 1) {
			t.Errorf("step %d, completion %d: verdict %+v", s.Step, s.K, v)
		}
		if want := map[bool]string{true: "unit"}[s.K%2 == 1]; kept.Basis != want { // of right answers only
			t.Errorf("step %d, completion %d: basis %q, want %q", s.Step, s.K, kept.Basis, want)
		}
	}
	if strings.Join(got, " ") != strings.Join(texts, " ") {
		t.Errorf("%d texts, want %d: %.40q, want %.40q", len(got), len(texts), got, texts)
	}
}

// Full packs are in the database before the record is flushed, packs of many steps too.
func TestCompletionsOfFullPacks(t0 *testing.T) {
	t := newKeptTest(t0)
	half := strings.Repeat("x", 1<<19)
	texts := []string{"a" + half, "b" + half, "c" + half, "d" + half, "e"}
	for i, s := range []stage.Step{step(1, texts[0]), step(2, texts[1], texts[2]), step(3, texts[3], texts[4])} {
		if err := t.rec.add(s); err != nil {
			t.Fatal(err)
		}
		if err := t.rec.wait(); err != nil {
			t.Fatal(err)
		}
		t.want(texts[:[]int{0, 2, 4}[i]]...) // a pack is full with the second and the fourth
	}
	for range 2 {
		if err := t.rec.flush(); err != nil {
			t.Fatal(err)
		}
		t.want(texts...)
	}
	for n := range int64(stepsPerPack) {
		t.want(texts...)
		if err := t.rec.add(step(4+n, fmt.Sprint(n))); err != nil {
			t.Fatal(err)
		}
		if err := t.rec.wait(); err != nil {
			t.Fatal(err)
		}
		if n == stepsPerPack-1 {
			for i := range n + 1 {
				texts = append(texts, fmt.Sprint(i))
			}
		}
	}
	t.want(texts...)
}

// A completion that cannot be written ends the run, and those before it are kept.
func TestCompletionsThatCannotBeWritten(t0 *testing.T) {
	t := newKeptTest(t0)
	if err := t.rec.add(step(1, "a", "b")); err != nil {
		t.Fatal(err)
	}
	if err := t.rec.add(step(2, "c", "NaN", "d")); err != nil {
		t.Fatalf("%v, before it can be known", err)
	}
	if err := t.rec.add(step(3, "e")); err == nil {
		t.Fatal("no error for a log-prob that is NaN")
	}
	if err := t.rec.flush(); err != nil {
		t.Fatal(err)
	}
	t.want("a", "b", "c")
}
