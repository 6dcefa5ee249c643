package cluster

import (
	"context"
	"fmt"

	"exp/eval/suite"
	"exp/experiments/store"
	"exp/harness/suites"
)

// suiteFile is a benchmark in a spool.
type suiteFile struct {
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	License  string   `json:"license"`
	Graders  []string `json:"graders"`
	Problems []byte   `json:"problems"` // as in the store

	Asking suite.Asking `json:"asking,omitzero"`
}

// PutSuite copies a benchmark from a store into the spool and returns its path there.
func (s Spool) PutSuite(db *store.DB, row store.Suite) (string, error) {
	from, err := suites.Load(db, row)
	if err != nil {
		return "", err
	}
	_, data, err := suites.Digest(from)
	if err != nil {
		return "", err
	}
	name := SuitePath(row)
	return name, writeJSON(s.Path(name), suiteFile{from.Name, from.Version, from.License, from.Graders, data,
		from.Asking})
}

// SuitePath returns the path in a spool of a benchmark.
func SuitePath(row store.Suite) string { return "suites/" + row.Digest.String() }

// addSuite adds a benchmark of the spool to a store.
func (s Spool) addSuite(ctx context.Context, db *store.DB, name string) error {
	var f suiteFile
	if err := readJSON(s.Path(name), &f); err != nil {
		return err
	}
	to := &suite.Suite{Name: f.Name, Version: f.Version, License: f.License, Graders: f.Graders,
		Asking: f.Asking}
	if err := to.Decode(f.Problems); err != nil {
		return fmt.Errorf("%s: %w", s.Path(name), err)
	}
	digest, data, err := suites.Digest(to)
	if err != nil {
		return err
	}
	_, err = suites.Add(ctx, db, to, digest, data)
	return err
}
