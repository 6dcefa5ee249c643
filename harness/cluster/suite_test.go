package cluster

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/eval/suite"
	"exp/experiments/store"
	"exp/harness/plan"
	"exp/harness/stage"
	"exp/harness/suites"
)

// A benchmark of one store comes through the spool into another, with its digest and how it is asked. Examples come, too.
func TestSuite(t *testing.T) {
	ctx := context.Background()
	open := func() *store.DB {
		db, err := store.Open(filepath.Join(t.TempDir(), "store"), store.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	file := filepath.Join(t.TempDir(), "house.jsonl")
	if err := os.WriteFile(file, []byte(`{"problem": "1 + 1?", "answer": "2"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	house, err := suite.Read("house", file, suite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	house.Asking = suite.Asking{Shots: 1, ShotsSuite: "dev"}
	digest, data, err := suites.Digest(house)
	if err != nil {
		t.Fatal(err)
	}
	from, to := open(), open()
	row, err := suites.Add(ctx, from, house, digest, data)
	if err != nil {
		t.Fatal(err)
	}
	spool := Spool{t.TempDir()}
	if err := spool.Make(); err != nil {
		t.Fatal(err)
	}
	name, err := spool.PutSuite(from, row)
	if err != nil {
		t.Fatal(err)
	}
	a := &Attempt{Entry: Entry{ID: "x", Suites: []string{name}}, Spool: spool, db: to}
	if err := a.fetch(ctx); err != nil {
		t.Fatal(err)
	}
	got, err := suites.Find(ctx, to, "house")
	if row.Asking == "" || got.Asking != row.Asking {
		t.Errorf("it is asked as %q, want %q", got.Asking, row.Asking)
	}
	if err != nil || got.Digest != digest || got.Size != row.Size || got.N != 1 || suites.Check(to, got) != nil {
		t.Errorf("%+v, %v; want %+v", got, err, row)
	}
	s := &Study{suites: map[string]store.Suite{"house": row, "dev": {Name: "dev"}, "b": {Name: "b"}}}
	dev := &stage.Suite{Name: "dev"}
	var names []string
	for _, x := range s.suitesOf(&plan.Run{Suites: []stage.Suite{{Name: "house", Examples: dev}, {Name: "b", Examples: dev}}}) {
		names = append(names, x.Name)
	}
	if got := strings.Join(names, " "); got != "house dev b" {
		t.Errorf("a run reads the suites %s", got)
	}
}
