package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"exp/experiments/ident"
)

func TestAddSuite(t *testing.T) {
	db := open(t)
	ctx := t.Context()
	data := []byte("{\"id\":\"a\"}\n{\"id\":\"b\"}\n")
	s := Suite{Digest: ident.Sum(data), Name: "house", Version: "1", Scorer: "exp", License: "CC0", Asking: `{"shots":1}`,
		Items: []Item{{ID: "a", Cluster: "c", Difficulty: 2}, {ID: "b", Difficulty: math.NaN()}}}
	if _, err := db.AddSuite(ctx, s, int64(len(data))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without its problems: %v", err)
	}
	if _, _, err := db.Blobs.Put(bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	id, err := db.AddSuite(ctx, s, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	again := s
	again.Name = "other"
	if twice, err := db.AddSuite(ctx, again, int64(len(data))); err != nil || twice != id {
		t.Errorf("a second time: %d, %v; want %d", twice, err, id)
	}
	used, err := db.EnsureSuite(ctx, Suite{Digest: ident.Sum([]byte("x")), Name: "countdown/test", Items: []Item{{ID: "p"}}})
	if err != nil {
		t.Fatal(err)
	}
	list, err := db.Suites(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := []Suite{{ID: id, Digest: s.Digest, Name: "house", Version: "1", Scorer: "exp", License: "CC0",
		Asking: s.Asking, N: 2, Size: int64(len(data))},
		{ID: used, Digest: ident.Sum([]byte("x")), Name: "countdown/test", N: 1}}
	if d := cmp.Diff(want, list); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	items, err := db.Items(ctx, id)
	if d := cmp.Diff(s.Items, items, cmpopts.EquateNaNs()); err != nil || d != "" {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}

	// A suite with scores stays; another goes with its items.
	run, gen := evalRun(t, db)
	score := begin(t, db, run.ID, "eval.score", "test", "score")
	if err := db.FinishStage(ctx, score.ID, nil, StageResult{}, []Eval{{StageGen: gen.ID, Suite: used, N: 1, Metric: "pass@1", Protocol: ident.Sum(nil)}}); err != nil {
		t.Fatal(err)
	}
	if err := db.RemoveSuite(ctx, used); !errors.Is(err, ErrInUse) {
		t.Errorf("with a score: %v", err)
	}
	if err := db.RemoveSuite(ctx, id); err != nil {
		t.Error(err)
	}
	if err := db.RemoveSuite(ctx, id); !errors.Is(err, ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if list, err := db.Suites(ctx); err != nil || len(list) != 1 || list[0].Evals != 1 {
		t.Errorf("left are %+v, %v", list, err)
	}
	if items, err := db.Items(ctx, id); err != nil || len(items) != 0 {
		t.Errorf("left are items %+v, %v", items, err)
	}

	// Problems of runs themselves become the suite, though runs were scored on them.
	if id, err = db.EnsureSuite(ctx, Suite{Digest: s.Digest, Name: "math/test", Scorer: "math_dapo/1", Items: s.Items[1:]}); err != nil {
		t.Fatal(err)
	}
	if taken, err := db.AddSuite(ctx, s, int64(len(data))); err != nil || taken != id {
		t.Errorf("taken over: %d, %v; want %d", taken, err, id)
	}
	list, err = db.Suites(ctx)
	if d := cmp.Diff(want[0], list[1], cmpopts.IgnoreFields(Suite{}, "ID")); err != nil || d != "" {
		t.Errorf("taken over: %v (-want +got)\n%s", err, d)
	}
	items, err = db.Items(ctx, id)
	if d := cmp.Diff(s.Items, items, cmpopts.EquateNaNs()); err != nil || d != "" {
		t.Errorf("taken over: %v (-want +got)\n%s", err, d)
	}
}

// Items returns the items of a suite, by id.
func (db *DB) Items(ctx context.Context, suite int64) ([]Item, error) {
	all, err := query(ctx, db.r, func(r *sql.Rows) (i Item, err error) {
		err = r.Scan(&i.ID, &i.Cluster, number{&i.Difficulty})
		return i, err
	}, `SELECT item, cluster, difficulty FROM items WHERE suite = ? ORDER BY item`, suite)
	return all, db.fail("read items", err)
}
