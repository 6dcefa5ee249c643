package suites

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"exp/eval/suite"
	"exp/experiments/store"
	"exp/train/rollout"
)

// open makes a store with suites of n problems each.
func open(t *testing.T, names ...string) *store.DB {
	t.Helper()
	db, err := store.Open(t.TempDir()+"/store", store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for i, name := range names {
		add(t, db, name, i+2)
	}
	return db
}

func add(t *testing.T, db *store.DB, name string, n int) store.Suite {
	t.Helper()
	s := &suite.Suite{Name: name, Graders: []string{"exp"}}
	for k := range n {
		s.Problems = append(s.Problems, rollout.Problem{ID: fmt.Sprint(name, k), Prompt: fmt.Sprint("What is ", k, "?"), Answer: fmt.Sprint(k)})
	}
	digest, data, err := Digest(s)
	if err != nil {
		t.Fatal(err)
	}
	row, err := Add(context.Background(), db, s, digest, data)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// Of several suites of a name the newest is found; digests begin with four digits or more.
func TestFind(t *testing.T) {
	db := open(t, "a", "b")
	newer := add(t, db, "a", 5)
	ctx := context.Background()
	if got, err := Find(ctx, db, "a"); err != nil || got.Digest != newer.Digest {
		t.Errorf("a: %v, %v", got.Digest.Short(), err)
	}
	digest := newer.Digest.String()
	if got, err := Find(ctx, db, digest[:4]); err != nil || got.ID != newer.ID {
		t.Errorf("%s: %v", digest[:4], err)
	}
	var none *NotFoundError
	for _, ref := range []string{"c", digest[:3]} {
		if _, err := Find(ctx, db, ref); !errors.As(err, &none) || none.ExitCode() != 3 || len(none.Known) != 3 {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

// The first problems of a suite are another suite, which is made once, and asked as the whole is.
func TestLimit(t *testing.T) {
	db := open(t, "short", "long")
	ctx := context.Background()
	for range 2 {
		if got, err := Limit(ctx, db, "long", 2); err != nil || got != "long.first2" {
			t.Fatalf("%s, %v", got, err)
		}
	}
	if got, err := Limit(ctx, db, "short", 2); err != nil || got != "short" {
		t.Errorf("%s, %v", got, err)
	}
	row, err := Find(ctx, db, "long.first2")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Load(db, row)
	if err != nil || len(s.Problems) != 2 || s.Problems[1].ID != "long1" || s.Graders[0] != "exp" {
		t.Errorf("%+v, %v", s, err)
	}
	if err := Check(db, row); err != nil {
		t.Error(err)
	}
	whole, err := Find(ctx, db, "long")
	if err != nil {
		t.Fatal(err)
	}
	if s, err = Load(db, whole); err != nil {
		t.Fatal(err)
	}
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s.Asking = suite.Asking{Description: "Sums."}
	var other *AskedError
	if _, err := Add(ctx, db, s, whole.Digest, data); !errors.As(err, &other) ||
		!strings.Contains(err.Error(), `as long, and asks them another way: as they are, not {"description":"Sums."}`) {
		t.Errorf("another asking: %v", err)
	}
	if err := db.RemoveSuite(ctx, whole.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := Add(ctx, db, s, whole.Digest, data); err != nil {
		t.Fatal(err)
	}
	if _, err := Limit(ctx, db, "long", 2); !errors.As(err, &other) || other.Name != "long.first2" {
		t.Errorf("the first problems, from before they were asked another way: %v", err)
	}
	row.N = 3
	if err := Check(db, row); err == nil || !strings.Contains(err.Error(), "2 problems, not 3") {
		t.Errorf("another number of problems: %v", err)
	}
}

// Only a benchmark whose copies are known has a version that can be unknown.
func TestIdentify(t *testing.T) {
	db := open(t)
	row := add(t, db, "house", 2)
	if !Identify(&suite.Suite{Name: "house"}, row.Digest) {
		t.Error("a private suite has no known copies")
	}
	for _, k := range suite.Catalog() {
		if k.Versions == nil {
			continue
		}
		s := &suite.Suite{Name: k.Name}
		if Identify(s, row.Digest) || s.Version != "" {
			t.Errorf("%s: other problems have the version %q", k.Name, s.Version)
		}
		return
	}
	t.Fatal("no benchmark with known copies")
}
