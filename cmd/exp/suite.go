package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"exp/eval/layout"
	"exp/eval/suite"
	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/fault"
)

func suiteCommand(a *app) *cli.Command {
	suites := a.completes(func(c *cli.Context, w word) []candidate { return a.storedSuites(c.Context) })
	return &cli.Command{
		Name:     "suite",
		Category: "Results",
		Usage:    "keep benchmarks: problems with gold answers, by digest",
		Description: "A suite is a set of problems with the digest of its content, a version, a licence and its graders. The problems of the known benchmarks are not " +
			"part of this program: suite add reads them from a file of yours, JSONL, JSON or parquet, in any published layout, and checks number and digest. " +
			"A suite of your own may also be described by a small YAML file: name, file, and optionally version, license, items, graders and layout " +
			"(id, problem, answer, within, cluster, difficulty, source: names of fields).",
		UsageText: "exp suite known # the benchmarks that this program knows of\n" +
			"exp suite add math500 MATH-500/test.jsonl # check and keep a benchmark\n" +
			"exp suite add humaneval HumanEval.jsonl.gz # programs with tests\n" +
			"exp suite show math500 --items -n 5 # its first problems",
		Subcommands: []*cli.Command{
			{
				Name: "add", ArgsUsage: "[NAME] FILE", Usage: "read a benchmark from a file and keep it in the store",
				Description: "NAME is one of exp suite known, or your own; without it the name is the file's, or what a definition (.yaml) says. " +
					"A file with another number of problems than the benchmark has is refused; one whose digest is of no known copy is kept with a warning.",
				UsageText: "exp suite add aime24 aime24.jsonl\nexp suite add house.yaml # a suite of your own",
				Flags:     []cli.Flag{&cli.StringFlag{Name: "expect", Usage: "fail unless the problems have the digest `HEX`, or one that begins so"}},
				Action:    a.suiteAdd,
			},
			{
				Name: "ls", Usage: "list the suites of the store",
				UsageText: "exp suite ls --json # for programs: exp.suite.ls/1",
				Action: func(c *cli.Context) error {
					return a.withStore(func(db *store.DB) error { return a.suiteList(c, db) })
				},
			},
			{
				Name: "known", Usage: "list the benchmarks that this program knows of",
				UsageText: "exp suite known -o wide # with sources and graders",
				Action: func(c *cli.Context) error {
					if _, err := positionals(c, 0, 0); err != nil {
						return err
					}
					return a.out.printTable(knownSuites())
				},
			},
			{
				Name: "show", ArgsUsage: "SUITE", Usage: "show a suite, or its problems",
				UsageText: "exp suite show gsm8k\nexp suite show gsm8k --items -n 0 -o jsonl # all problems, for programs",
				Flags: []cli.Flag{
					&cli.BoolFlag{Name: "items", Usage: "list the problems"},
					&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 20, Usage: "list at most `N`, 0 for all"},
				},
				BashComplete: suites,
				Action: func(c *cli.Context) error {
					return a.withSuite(c, a.openStore, func(db *store.DB, row store.Suite) error { return a.suiteShow(c, db, row) })
				},
			},
			{
				Name: "verify", ArgsUsage: "[SUITE...]", Usage: "hash the problems again and compare",
				UsageText:    "exp suite verify # all of them; exit code 4 if one is not what it was",
				BashComplete: suites,
				Action: func(c *cli.Context) error {
					return a.withStore(func(db *store.DB) error { return a.suiteVerify(c, db) })
				},
			},
			{
				Name: "rm", ArgsUsage: "SUITE", Usage: "forget a suite that no run was scored on",
				UsageText:    "exp suite rm house",
				BashComplete: suites,
				Action: func(c *cli.Context) error {
					return a.withSuite(c, a.openStoreToWrite, func(db *store.DB, row store.Suite) error {
						err := db.RemoveSuite(c.Context, row.ID)
						if errors.Is(err, store.ErrInUse) {
							return usagef("%d runs were scored on %s: their scores would be without problems", row.Evals, row.Name)
						}
						if err == nil {
							a.note("%s is forgotten; its problems stay until the store is tidied", row.Name)
						}
						return err
					})
				},
			},
		},
	}
}

// digestSuite is the digest of a suite, that of its canonical records, and the records.
func digestSuite(s *suite.Suite) (ident.Digest, []byte, error) {
	data, err := s.Encode()
	return ident.Sum(data), data, err
}

// readSuite reads a suite from a file; errors are worded for people.
func readSuite(name, path string) (*suite.Suite, error) {
	s, err := suite.Read(name, path)
	var count *suite.CountError
	switch {
	case errors.As(err, &count):
		f := failf(exitIntegrity, "%w", err)
		f.Help = "another selection of problems needs another name: exp suite add NAME " + path
		return nil, f
	case isBadRow(err):
		return nil, failf(exitUsage, "%w", err)
	case errors.Is(err, os.ErrNotExist):
		return nil, failf(exitNotFound, "%w", err)
	}
	return s, err
}

// isBadRow: a data file that a person named holds what it should not.
func isBadRow(err error) bool {
	return fault.IsBadFile(err)
}

func (a *app) suiteAdd(c *cli.Context) error {
	args, err := positionals(c, 1, 2)
	if err != nil {
		return err
	}
	name, path := "", args[0]
	if len(args) == 2 {
		name, path = args[0], args[1]
	}
	s, err := readSuite(name, path)
	if err != nil {
		return err
	}
	digest, data, err := digestSuite(s)
	if err != nil {
		return err
	}
	if want := c.String("expect"); !strings.HasPrefix(digest.String(), strings.ToLower(want)) {
		return failf(exitIntegrity, "%s: the problems have the digest %s, not %s", path, digest, want)
	}
	a.describeCopy(s, digest, path)

	db, err := a.openStoreToWrite()
	if err != nil {
		return err
	}
	return errors.Join(a.keepSuite(c.Context, db, suiteRow(s, digest), data), db.Close())
}

// suiteRow is what the store records of a suite.
func suiteRow(s *suite.Suite, digest ident.Digest) store.Suite {
	row := store.Suite{Digest: digest, Name: s.Name, Version: s.Version, Scorer: strings.Join(s.Graders, ","), License: s.License}
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

// describeCopy names the version of a known copy, and warns of what a person should
// know about the file.
func (a *app) describeCopy(s *suite.Suite, digest ident.Digest, path string) {
	if k, ok := suite.ByName(s.Name); ok && s.Version == "" && k.Versions != nil {
		if s.Version = k.Version(digest.String()); s.Version == "" {
			a.warn("%s: these problems are those of no copy of %s that is known here; scores on another copy may differ", path, s.Name)
		}
	}
	if s.Copies.Rows > s.Copies.Unique {
		a.warn("%s: %d rows are %d different problems, each %.3g times; they are kept once", path, s.Copies.Rows, s.Copies.Unique, s.Copies.Factor())
	}
	if s.Copies.Unanswered > 0 {
		a.warn("%s: %d rows have no answer and are left out", path, s.Copies.Unanswered)
	}
}

func (a *app) keepSuite(ctx context.Context, db *store.DB, row store.Suite, data []byte) error {
	kept, err := storeSuite(ctx, db, row, data)
	if err != nil {
		return err
	}
	if kept.Name != row.Name {
		return usagef("the store has these problems already, as %s", kept.Name)
	}
	return a.out.printTable(suiteTable([]store.Suite{kept}))
}

// storeSuite records a suite and returns what the store then has of these problems.
func storeSuite(ctx context.Context, db *store.DB, row store.Suite, data []byte) (store.Suite, error) {
	if _, _, err := db.Blobs.Put(bytes.NewReader(data)); err != nil {
		return store.Suite{}, err
	}
	id, err := db.AddSuite(ctx, row, int64(len(data)))
	if err != nil {
		return store.Suite{}, err
	}
	all, err := db.Suites(ctx)
	if err != nil {
		return store.Suite{}, err
	}
	return all[slices.IndexFunc(all, func(s store.Suite) bool { return s.ID == id })], nil
}

func suiteTable(list []store.Suite) table {
	t := table{Schema: "exp.suite.ls/1", Columns: []column{
		{Key: "name", ID: true}, {Key: "version"}, {Key: "items"}, {Key: "digest"}, {Key: "graders"}, {Key: "license"}, {Key: "runs"},
	}}
	for _, s := range list {
		t.Rows = append(t.Rows, []any{s.Name, s.Version, s.N, hexID(s.Digest.String()), strings.Split(s.Scorer, ","), s.License, s.Evals})
	}
	return t
}

func (a *app) suiteList(c *cli.Context, db *store.DB) error {
	if _, err := positionals(c, 0, 0); err != nil {
		return err
	}
	list, err := db.Suites(c.Context)
	if err != nil {
		return err
	}
	return a.out.printTable(suiteTable(list))
}

func knownSuites() table {
	t := table{Schema: "exp.suite.known/1", Columns: []column{
		{Key: "name", ID: true}, {Key: "about", Wrap: true}, {Key: "items", Text: func(v any) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", " or "), "[]") }},
		{Key: "license"}, {Key: "graders", Wide: true}, {Key: "source", Wide: true},
	}}
	for _, k := range suite.Catalog() {
		t.Rows = append(t.Rows, []any{k.Name, k.About, k.Counts, k.License, k.Graders, k.Source})
	}
	return t
}

// withSuite finds the suite that the only argument names and calls f with it.
func (a *app) withSuite(c *cli.Context, open func() (*store.DB, error), f func(*store.DB, store.Suite) error) error {
	args, err := positionals(c, 1, 1)
	if err != nil {
		return err
	}
	db, err := open()
	if err != nil {
		return err
	}
	row, err := findSuite(c.Context, db, args[0])
	if err == nil {
		err = f(db, row)
	}
	return errors.Join(err, db.Close())
}

// findSuite finds a suite by its name, the newest of several, or by at least four
// digits of its digest.
func findSuite(ctx context.Context, db *store.DB, ref string) (store.Suite, error) {
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
		f := failf(exitNotFound, "the store has no suite %q", ref)
		f.Help = "exp suite add " + ref + " FILE keeps one"
		if s := nearest(ref, known); s != "" {
			f.Help = "did you mean " + s + "?"
		}
		return store.Suite{}, f
	}
	return store.Suite{}, failf(exitNotFound, "%q begins the digests of %d suites", ref, len(found))
}

// loadSuite reads the problems of a suite of the store, checked against its digest.
func loadSuite(db *store.DB, row store.Suite) (*suite.Suite, error) {
	data, err := db.Blobs.Bytes(row.Digest)
	if err != nil {
		return nil, fmt.Errorf("suite %s: %w", row.Name, err)
	}
	s := &suite.Suite{Name: row.Name, Version: row.Version, License: row.License, Graders: strings.Split(row.Scorer, ",")}
	if err := s.Decode(data); err != nil {
		return nil, fmt.Errorf("suite %s: %w", row.Name, err)
	}
	return s, nil
}

func (a *app) suiteShow(c *cli.Context, db *store.DB, row store.Suite) error {
	s, err := loadSuite(db, row)
	if err != nil {
		return err
	}
	if c.Bool("items") {
		return a.out.printTable(problemTable(s, c.Int("limit")))
	}
	type shown struct {
		Name    string   `json:"name"`
		Version string   `json:"version"`
		Digest  string   `json:"digest"`
		License string   `json:"license"`
		Graders []string `json:"graders"`
		Items   int      `json:"items"`
		Runs    int64    `json:"runs"`
		Path    string   `json:"path"`
	}
	d := shown{row.Name, row.Version, row.Digest.String(), row.License, s.Graders, len(s.Problems), row.Evals, db.Blobs.Path(row.Digest)}
	return a.out.printDocument(document{Schema: "exp.suite.show/1", Data: d, Human: func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s  %s\ndigest   %s\nlicence  %s\ngraders  %s\nitems    %d\nruns     %d scored on it\nfile     %s\n", d.Name, d.Version, d.Digest,
			or(d.License, "unknown"), strings.Join(d.Graders, ", "), d.Items, d.Runs, d.Path)
		return err
	}})
}

func problemTable(s *suite.Suite, limit int) table {
	t := table{Schema: "exp.suite.items/1", Columns: []column{
		{Key: "id", ID: true}, {Key: "answer"}, {Key: "cluster", Wide: true}, {Key: "prompt", Wrap: true}, {Key: "data", Wide: true},
	}}
	for i, p := range s.Problems {
		if limit > 0 && i == limit {
			break
		}
		t.Rows = append(t.Rows, []any{p.ID, p.Answer, p.Cluster, p.Prompt, string(p.Data)})
	}
	return t
}

func (a *app) suiteVerify(c *cli.Context, db *store.DB) error {
	args, err := positionals(c, 0, -1)
	if err != nil {
		return err
	}
	list, err := db.Suites(c.Context)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		list = nil
		for _, ref := range args {
			row, err := findSuite(c.Context, db, ref)
			if err != nil {
				return err
			}
			list = append(list, row)
		}
	}
	t := table{Schema: "exp.suite.verify/1", Columns: []column{{Key: "name", ID: true}, {Key: "digest"}, {Key: "ok"}, {Key: "problem"}}}
	broken := 0
	for _, row := range list {
		if row.Size == 0 && len(args) == 0 {
			continue // recorded by a run, without problems of its own
		}
		s, err := loadSuite(db, row)
		if err == nil && int64(len(s.Problems)) != row.N {
			err = fmt.Errorf("%d problems, not %d", len(s.Problems), row.N)
		}
		problem := ""
		if err != nil {
			broken++
			problem = err.Error()
		}
		t.Rows = append(t.Rows, []any{row.Name, hexID(row.Digest.String()), err == nil, problem})
	}
	if err := a.out.printTable(t); err != nil {
		return err
	}
	if broken > 0 {
		return failf(exitIntegrity, "%d of %d suites are damaged", broken, len(t.Rows))
	}
	return nil
}

// storedSuites are the suites of the store, for completion.
func (a *app) storedSuites(ctx context.Context) []candidate {
	var list []candidate
	err := a.withStore(func(db *store.DB) error {
		all, err := db.Suites(ctx)
		for _, s := range all {
			list = append(list, candidate{s.Name, fmt.Sprintf("%d problems", s.N)})
		}
		return err
	})
	if err != nil {
		return nil // completion says nothing
	}
	return list
}
