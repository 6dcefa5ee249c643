// Package suites manages benchmarks in the experiment store: it finds, reads, adds and
// cuts them. Package eval/suite defines a suite and reads files of other programs.
package suites

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"exp/eval/layout"
	"exp/eval/suite"
	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/experiments/store"
)

// NotFoundError says that the store has no suite with a name.
type NotFoundError struct {
	Ref   string
	Known []string // the names that there are
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("the store has no suite %q", e.Ref) }

// ExitCode is the code for a reference that matches nothing.
func (e *NotFoundError) ExitCode() int { return 3 }

// AmbiguousError says that several suites' digests begin with a reference.
type AmbiguousError struct {
	Ref string
	N   int
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q matches the digests of %d suites", e.Ref, e.N)
}

// ExitCode is the code for an ambiguous reference.
func (e *AmbiguousError) ExitCode() int { return 3 }

// Find finds a suite by name (the newest of several) or by at least the first four
// digits of its digest.
func Find(ctx context.Context, db *store.DB, ref string) (store.Suite, error) {
	list, err := db.Suites(ctx)
	if err != nil {
		return store.Suite{}, err
	}
	var found []store.Suite
	var known []string
	for _, s := range list {
		known = append(known, s.Name)
		if s.Name == ref {
			found = []store.Suite{s}
		}
	}
	for _, s := range list {
		if len(found) == 0 && len(ref) >= 4 && strings.HasPrefix(s.Digest.String(), ref) {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return store.Suite{}, &NotFoundError{Ref: ref, Known: known}
	}
	return store.Suite{}, &AmbiguousError{Ref: ref, N: len(found)}
}

// Load reads the problems of a suite in the store and checks their digest.
func Load(db *store.DB, row store.Suite) (*suite.Suite, error) {
	data, err := db.Blobs.Bytes(row.Digest)
	if err != nil {
		return nil, fmt.Errorf("suite %s: %w", row.Name, err)
	}
	s := &suite.Suite{Name: row.Name, Version: row.Version, License: row.License,
		Graders: strings.Split(row.Scorer, ",")}
	if err = s.Decode(data); err == nil {
		s.Asking, err = suite.ParseAsking(row.Asking)
	}
	if err != nil {
		return nil, fmt.Errorf("suite %s: %w", row.Name, err)
	}
	return s, nil
}

// Check reads a suite in the store and compares it with its record. It compares the digest alone of a suite of runs.
func Check(db *store.DB, row store.Suite) error {
	if row.OfRuns() {
		_, err := db.Blobs.Bytes(row.Digest)
		return err
	}
	s, err := Load(db, row)
	if err == nil && int64(len(s.Problems)) != row.N {
		err = fmt.Errorf("%s, not %d", quantity.Plural(len(s.Problems), "problem"), row.N)
	}
	return err
}

// Digest returns a suite's canonical records and their digest.
func Digest(s *suite.Suite) (ident.Digest, []byte, error) {
	data, err := s.Encode()
	return ident.Sum(data), data, err
}

// Identify sets the version of a suite whose problems match a known copy, worked solutions aside. It returns
// false if copies of the benchmark are known and these problems match none.
func Identify(s *suite.Suite, digest ident.Digest) bool {
	k, ok := suite.ByName(s.Name)
	if !ok || s.Version != "" || k.Versions == nil {
		return true
	}
	if s.Solved() > 0 {
		bare := suite.Suite{Problems: s.WithoutSolutions()}
		var err error
		if digest, _, err = Digest(&bare); err != nil {
			return false
		}
	}
	s.Version = k.Version(digest.String())
	return s.Version != ""
}

// AskedError says that the store asks the problems of a suite in another way.
type AskedError struct {
	Name         string // in the store
	Kept, Wanted suite.Asking
}

func (e *AskedError) Error() string {
	return fmt.Sprintf("the store has these problems already as %s, and asks them another way: %s, not %s", e.Name,
		cmp.Or(e.Kept.String(), "as they are"), cmp.Or(e.Wanted.String(), "as they are"))
}

// CheckAsked returns an *AskedError unless the row of a suite's problems asks them as the suite does.
func CheckAsked(kept store.Suite, s *suite.Suite) error {
	a, err := suite.ParseAsking(kept.Asking)
	if err == nil && a != s.Asking {
		err = &AskedError{Name: kept.Name, Kept: a, Wanted: s.Asking}
	}
	return err
}

// Add records a suite with the results of Digest, and returns the store's row for these problems, which may have
// another name. If the row has this name, and asks the problems in another way, the error is an *AskedError.
func Add(ctx context.Context, db *store.DB, s *suite.Suite, digest ident.Digest, data []byte) (store.Suite, error) {
	if _, _, err := db.Blobs.Put(bytes.NewReader(data)); err != nil {
		return store.Suite{}, err
	}
	id, err := db.AddSuite(ctx, rowOf(s, digest), int64(len(data)))
	if err != nil {
		return store.Suite{}, err
	}
	all, err := db.Suites(ctx)
	if err != nil {
		return store.Suite{}, err
	}
	kept := all[slices.IndexFunc(all, func(s store.Suite) bool { return s.ID == id })]
	if kept.Name == s.Name {
		err = CheckAsked(kept, s)
	}
	return kept, err
}

// rowOf returns the store's row for a suite.
func rowOf(s *suite.Suite, digest ident.Digest) store.Suite {
	row := store.Suite{Digest: digest, Name: s.Name, Version: s.Version, License: s.License,
		Scorer: strings.Join(s.Graders, ","), Asking: s.Asking.String()}
	for i := range s.Problems {
		p := &s.Problems[i]
		item := store.Item{ID: p.ID, Cluster: p.Cluster, Difficulty: math.NaN()}
		if facts, err := layout.FactsOf(p); err == nil && facts.Difficulty != nil {
			item.Difficulty = *facts.Difficulty
		}
		row.Items = append(row.Items, item)
	}
	return row
}

// Limit stores the first n problems of a suite as a new suite and returns its name. A
// suite with at most n problems is returned itself.
func Limit(ctx context.Context, db *store.DB, ref string, n int) (string, error) {
	row, err := Find(ctx, db, ref)
	if err != nil {
		return "", err
	}
	s, err := Load(db, row)
	if err != nil {
		return "", err
	}
	if len(s.Problems) <= n {
		return row.Name, nil
	}
	s.Problems = s.Problems[:n]
	s.Name = fmt.Sprintf("%s.first%d", row.Name, n)
	digest, data, err := Digest(s)
	if err != nil {
		return "", err
	}
	kept, err := Add(ctx, db, s, digest, data)
	return kept.Name, err
}
