package lineage

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// Two runs share problems; the second trains on from the first one's weights:
//
//	prepare(a, b) -> problems -> train(a) -> weights a -> train(b) -> weights b
//	                 problems ------------------------> train(b)
//	a tokenizer that nobody made -> train(a)
func TestWalk(t *testing.T) {
	db, err := store.Open(t.TempDir(), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put := func(text string) store.IO {
		d, err := db.Blobs.PutBytes([]byte(text))
		must(err)
		return store.IO{Role: text, Digest: d, Size: int64(len(text)), Kind: "text"}
	}
	run := func(name string) store.Run {
		r, _, err := db.EnsureRun(ctx, store.NewRun{RID: ident.Sum([]byte(name)), XID: ident.Sum([]byte("x")), Name: name,
			Config: store.Config{Digest: ident.Sum([]byte("config")), JSON: "{}", Origins: "{}"}})
		must(err)
		return r
	}
	stage := func(r store.Run, kind string, in []store.IO, out store.IO) store.Stage {
		s, err := db.BeginStage(ctx, store.Stage{SID: ident.Sum([]byte(kind + out.Role)), Run: r.ID, Kind: kind, Inputs: in})
		must(err)
		must(db.FinishStage(ctx, s.ID, []store.IO{out}, store.StageResult{}, nil))
		return s
	}
	a, b := run("a"), run("b")
	tokenizer := store.IO{Role: "tokenizer", Digest: ident.Sum([]byte("tokenizer"))}
	problems, weightsA, weightsB := put("problems"), put("weights a"), put("weights b")
	prepare := stage(a, "prepare", nil, problems)
	hit, err := db.Hit(ctx, prepare.SID)
	must(err)
	_, err = db.ReuseStage(ctx, store.Stage{SID: prepare.SID, Run: b.ID, Kind: "prepare"}, hit)
	must(err)
	stage(a, "train", []store.IO{{Role: "problems", Digest: problems.Digest}, tokenizer}, weightsA)
	trainB := stage(b, "train", []store.IO{{Role: "problems", Digest: problems.Digest}, {Role: "weights", Digest: weightsA.Digest}}, weightsB)

	names := func(g *Graph) string {
		var list []string
		for _, s := range g.Stages {
			text := s.Kind
			for _, o := range s.Outputs {
				text += ">" + o.Role
			}
			list = append(list, text)
		}
		for _, x := range g.Blobs {
			text := x.Role
			if x.Unknown {
				text += "?"
			}
			list = append(list, text)
		}
		slices.Sort(list)
		return strings.Join(list, ", ")
	}
	w := &Walker{DB: db}
	for _, tt := range []struct {
		start ident.Digest
		dir   Direction
		want  string
	}{
		{weightsB.Digest, Up, "prepare>problems, problems, tokenizer?, train>weights a, train>weights b, weights, weights b"},
		{weightsA.Digest, Up, "prepare>problems, problems, tokenizer?, train>weights a, weights a"},
		{weightsA.Digest, Down, "train>weights b, weights a, weights b"},
		{problems.Digest, Down, "problems, train>weights a, train>weights b, weights a, weights b"},
		{tokenizer.Digest, Down, "tokenizer?, train>weights a, train>weights b, weights a, weights b"},
		{problems.Digest, Up, "prepare>problems, problems"},
	} {
		g, _, err := w.OfDigest(ctx, tt.start, tt.dir)
		must(err)
		if got := names(g); got != tt.want {
			t.Errorf("from %s, direction %d:\n%s, want\n%s", tt.start.Short(), tt.dir, got, tt.want)
		}
	}
	if _, _, err := w.OfDigest(ctx, ident.Sum([]byte("stranger")), Up); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a stranger: %v", err)
	}
	g, start, err := w.OfRun(ctx, b.ID, Up)
	must(err)
	if len(start) != 2 || start[1].SID != trainB.SID || !slices.Equal(start[0].Runs, []ident.Digest{a.RID, b.RID}) {
		t.Errorf("start %+v", start)
	}
	if got, want := names(g), "prepare>problems, problems, tokenizer?, train>weights a, train>weights b, weights"; got != want {
		t.Errorf("of run b: %s, want %s", got, want)
	}
}
