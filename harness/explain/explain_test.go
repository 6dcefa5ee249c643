package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/experiments/ident"
	"exp/experiments/store"
)

func digest(text string) ident.Digest { return ident.Sum([]byte(text)) }

// house is a store under construction.
type house struct {
	*testing.T
	db  *store.DB
	ctx context.Context
}

func newHouse(t *testing.T) *house {
	t.Helper()
	db, err := store.Open(t.TempDir(), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &house{t, db, context.Background()}
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) run(name string) store.Run {
	h.Helper()
	r, _, err := h.db.EnsureRun(h.ctx, store.NewRun{RID: digest(name), XID: digest("x"), Name: name,
		Config: store.Config{Digest: digest("config"), JSON: "{}"}})
	h.must(err)
	return r
}

// train is the stage that the others differ from.
func train() store.Stage {
	return store.Stage{Kind: "train", Params: json.RawMessage(`{"train.steps":4}`), Code: digest("code"),
		Numerics: "cpu/fma", Seed: "seed=0",
		Inputs: []store.IO{{Role: "weights", Digest: digest("w")}}}
}

// done records a finished stage with one output, its sid made of all that it is.
func (h *house) done(r store.Run, s store.Stage, output string) store.Stage {
	h.Helper()
	if s.SID.IsZero() {
		s.SID = digest(fmt.Sprintf("%+v", s))
	}
	s.Run = r.ID
	s, err := h.db.BeginStage(h.ctx, s)
	h.must(err)
	d, err := h.db.Blobs.PutBytes([]byte(output))
	h.must(err)
	h.must(h.db.FinishStage(h.ctx, s.ID, []store.IO{{Role: "weights", Digest: d, Size: int64(len(output)),
		Kind: "text"}}, store.StageResult{}, nil))
	return s
}

// explain explains the only stage of a name.
func (h *house) explain(r store.Run, only string) Stage {
	h.Helper()
	e, err := OfRun(h.ctx, h.db, r, only)
	h.must(err)
	if len(e.Stages) != 1 || e.Run != r.RID {
		h.Fatalf("got %+v, want one stage of %s", e, r.Name)
	}
	return e.Stages[0]
}

// Each part of a stage's id, changed alone, is the one reason.
func TestReasons(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(s *store.Stage)
		want []Reason
	}{
		{"parameter", func(s *store.Stage) { s.Params = json.RawMessage(`{"train.steps":5,"zz":"new"}`) },
			[]Reason{{What: Params, Name: "train.steps", Old: 4.0, New: 5.0}, {What: Params, Name: "zz", New: "new"}}},
		{"suite", func(s *store.Stage) { s.Label = "test" }, []Reason{{What: Params, Name: "suite", New: "test"}}},
		{"input", func(s *store.Stage) { s.Inputs[0].Digest = digest("made here") },
			[]Reason{{What: Input, Name: "weights", Old: digest("w"), New: digest("made here"), By: "sft"}}},
		{"other input", func(s *store.Stage) { s.Inputs[0].Role = "base" },
			[]Reason{{What: Input, Name: "base", New: digest("w")}, {What: Input, Name: "weights", Old: digest("w")}}},
		{"numerics", func(s *store.Stage) { s.Numerics = "cpu" }, []Reason{{What: Numerics, Old: "cpu/fma", New: "cpu"}}},
		{"seed", func(s *store.Stage) { s.Seed = "seed=1" }, []Reason{{What: Seed, Old: "seed=0", New: "seed=1"}}},
		{"code that is gone", func(s *store.Stage) { s.Code = digest("lost") },
			[]Reason{{What: Code, Name: "sources that are not in the store", Old: digest("code"), New: digest("lost")}}},
		{"code", func(s *store.Stage) { s.Code = digest("new code") }, []Reason{
			{What: Code, Name: "Go compiler", Old: "go1", New: "go2"},
			{What: Code, Name: "added.go", New: Present}, {What: Code, Name: "edited.go", Old: Present,
				New: Changed}, {What: Code, Name: "gone.go", Old: Present},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t)
			archive, err := h.db.Blobs.PutBytes([]byte("sources"))
			h.must(err)
			for _, s := range []store.Source{
				{Code: digest("code"), Go: "go1", Files: []ident.File{{Path: "edited.go", SHA256: digest("1")},
					{Path: "gone.go", SHA256: digest("2")}}},
				{Code: digest("new code"), Go: "go2", Files: []ident.File{{Path: "added.go", SHA256: digest("3")},
					{Path: "edited.go", SHA256: digest("4")}}},
			} {
				s.Archive, s.Size = archive, 7
				h.must(h.db.AddSource(h.ctx, s))
			}
			a, b := h.run("a"), h.run("b")
			before := h.done(a, train(), "a")
			h.done(b, store.Stage{Kind: "sft", SID: digest("sft")}, "made here")
			s := train()
			tt.edit(&s)
			h.done(b, s, "b")
			got := h.explain(b, "train")
			if d := cmp.Diff(tt.want, got.Reasons); d != "" {
				t.Errorf("reasons (-want +got):\n%s", d)
			}
			if got.Miss != Differs || got.Nearest.Run != a.RID || got.Nearest.SID != before.SID {
				t.Errorf("miss %q, nearest %+v", got.Miss, got.Nearest)
			}
		})
	}
}

// The nearest stage differs in the fewest kinds of things; of equals it is the newest.
func TestNearest(t *testing.T) {
	h := newHouse(t)
	stage := func(seed, numerics string) store.Stage {
		s := train()
		s.Seed, s.Numerics = seed, numerics
		return s
	}
	h.done(h.run("two kinds"), stage("seed=1", "cpu"), "1")
	h.done(h.run("older"), stage("seed=2", "cpu/fma"), "2")
	h.done(h.run("newer"), stage("seed=3", "cpu/fma"), "3")
	h.done(h.run("two kinds again"), stage("seed=4", "cpu"), "4")
	r := h.run("r")
	h.done(r, train(), "r")
	if got := h.explain(r, "train"); got.Nearest.Name != "newer" {
		t.Errorf("nearest %+v", got.Nearest)
	}
}

func TestFirstAgainCached(t *testing.T) {
	h := newHouse(t)
	a, b, c := h.run("a"), h.run("b"), h.run("c")
	first := h.done(a, train(), "out")
	if got := h.explain(a, ""); got.Miss != First || got.Nearest != nil || len(got.Reasons) > 0 {
		t.Errorf("first: %+v", got)
	}
	again := train()
	again.SID = first.SID
	h.done(b, again, "out")
	if got := h.explain(b, "train"); got.Miss != Again || got.Nearest.Run != a.RID || got.Status != store.Repeated {
		t.Errorf("again: %+v", got)
	}
	hit, err := h.db.Hit(h.ctx, first.SID)
	h.must(err)
	_, err = h.db.ReuseStage(h.ctx, store.Stage{SID: first.SID, Run: c.ID, Kind: "train"}, hit)
	h.must(err)
	if got := h.explain(c, "train"); got.Miss != "" || got.Nearest.Run != a.RID || got.Nearest.Name != "a" {
		t.Errorf("cached: %+v", got)
	}
	if _, err := OfRun(h.ctx, h.db, a, "merge"); !errors.Is(err, ErrNoStage) {
		t.Errorf("a stage that it does not have: %v", err)
	}
}

// A stage that a run executed twice is explained once, as it was executed last.
func TestExecutedTwice(t *testing.T) {
	h := newHouse(t)
	r := h.run("r")
	s := train()
	s.Label, s.SID, s.Run = "test", digest("sid"), r.ID
	failed, err := h.db.BeginStage(h.ctx, s)
	h.must(err)
	h.must(h.db.FailStage(h.ctx, failed.ID, "out of memory"))
	h.done(r, s, "out")
	if got := h.explain(r, "train[test]"); got.Name != "train[test]" || got.Status != store.Done || got.Miss != First {
		t.Errorf("got %+v", got)
	}
}
