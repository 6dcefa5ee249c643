package lineage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	trainB := stage(b, "train", []store.IO{{Role: "problems", Digest: problems.Digest},
		{Role: "weights", Digest: weightsA.Digest}}, weightsB)

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
	if got, err := w.RunNames(ctx, g); err != nil || !maps.Equal(got, map[ident.Digest]string{a.RID: "a#0",
		b.RID: "b#0"}) {
		t.Errorf("names %v, %v", got, err)
	}
	if edges := g.Edges(); len(edges) != 6 || len(g.StageList()) != 3 || len(g.BlobList()) != 3 ||
		!slices.Contains(edges, Edge{weightsA.Digest, trainB.SID, "weights"}) {
		t.Errorf("edges %v", edges)
	}
	traces(t, w, a, b)
	find(t, db, weightsA.Digest)
}

// traces checks what run a read and wrote: b reads the problems and the weights.
func traces(t *testing.T, w *Walker, a, b store.Run) {
	t.Helper()
	list, err := w.Traces(context.Background(), a.ID)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range list {
		got = append(got, fmt.Sprintf("%s %s %s by %q for %d", x.Stage, x.Way, x.Role, x.MadeBy, len(x.UsedBy)))
		if len(x.UsedBy) > 0 && x.UsedBy[0].String() != b.RID.Short() {
			t.Errorf("%s is used by %v, want %s", x.Role, x.UsedBy, b.RID.Short())
		}
	}
	id := a.RID.Short()
	want := []string{
		"prepare out problems by \"prepare of " + id + "\" for 1",
		"train in problems by \"prepare of " + id + "\" for 1",
		"train in tokenizer by \"\" for 0",
		"train out weights a by \"train of " + id + "\" for 1",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("traces (-want +got):\n%s", d)
	}
}

// find checks references to a digest that was made of a text.
func find(t *testing.T, db *store.DB, d ident.Digest) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "copy")
	if err := os.WriteFile(path, []byte("weights a"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		ref  string
		file bool
		err  error
	}{
		{d.Short(), false, nil},
		{strings.ToUpper(d.String()), false, nil},
		{path, true, nil},
		{dir, false, ErrFolder},
		{d.String()[:3], false, store.ErrNotFound},
		{filepath.Join(dir, "none"), false, store.ErrNotFound},
	} {
		got, file, err := Find(context.Background(), db, tt.ref)
		if !errors.Is(err, tt.err) || err == nil && (got != d || file != tt.file) {
			t.Errorf("%s: %s, %v, %v", tt.ref, got.Short(), file, err)
		}
	}
}

func TestAmbiguousError(t *testing.T) {
	e := &AmbiguousError{Ref: "abcd", Digests: []ident.Digest{{0xab, 0xcd, 0xef, 0x01, 0x23}, {0xab, 0xcd, 0xff}}}
	if got, want := e.Error(), `"abcd" matches several digests: abcdef01, abcdff00`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
