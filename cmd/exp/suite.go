package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/eval/suite"
	"exp/eval/task"
	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/experiments/spelling"
	"exp/experiments/store"
	"exp/harness/dataset"
	"exp/harness/fault"
	"exp/harness/suites"
)

func suiteCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "suite",
		Category: "Results",
		Usage:    "manage benchmarks: problems with gold answers, identified by digest",
		Description: "A suite is a set of problems with the digest of its content, a version, a licence and its " +
			"graders. The known benchmarks are not part of this program: suite add reads the problems from your " +
			"file (JSONL, JSON, CSV or parquet, in any published layout) and checks their number and digest. You " +
			"can also describe your own suite in a small YAML file: name, file, and optionally version, " +
			"license, items, graders and layout (id, problem, answer, choices, within, cluster, difficulty, source, " +
			"images: names of fields; shuffle: true for choices whose right one always stands in the same field; " +
			"images: none leaves images out). Further " +
			"keys say how exp eval asks the suite unless its flags say otherwise: likelihood (letter or option), " +
			"shots, shots_suite, description and prompt; solutions: true keeps worked solutions.",
		UsageText: "exp suite known # the benchmarks this program knows\n" +
			"exp suite add math500 MATH-500/test.jsonl # check and store a benchmark\n" +
			"exp suite add humaneval HumanEval.jsonl.gz # programs with tests\n" +
			"exp suite show math500 --items -n 5 # its first problems",
		Subcommands: suiteCommands(a),
	}
}

// suiteCommands are the commands of exp suite.
func suiteCommands(a *app) []*cli.Command {
	suites := a.Completes(func(c *cli.Context, w cli.Word) []cli.Candidate { return a.storedSuites(c.Context) })
	return []*cli.Command{
		{
			Name: "add", ArgsUsage: "[NAME] FILE", Usage: "read a benchmark from a file into the store",
			Description: "NAME is one of exp suite known, or your own; by default it is the file's name, or " +
				"the one in a definition (.yaml). A file with a different number of problems than the " +
				"benchmark is refused; a file with an unknown digest is kept with a warning.",
			UsageText: "exp suite add aime24 aime24.jsonl\nexp suite add house.yaml # a suite of your own",
			Flags: []cli.Flag{&cli.StringFlag{Name: "expect",
				Usage: "fail unless the problems' digest is or begins with `HEX`"},
				&cli.BoolFlag{Name: "solutions", Usage: "keep worked solutions, for examples in prompts " +
					"(exp eval --shots-suite)"}},
			Action: cli.WithArgs(1, 2, a.suiteAdd),
		},
		{
			Name: "ls", Usage: "list the suites of the store",
			UsageText: "exp suite ls --json # for programs: exp.suite.ls/1",
			Action:    a.reads(0, 0, a.suiteList),
		},
		{
			Name: "known", Usage: "list the benchmarks this program knows",
			UsageText: "exp suite known -o wide # with sources and graders",
			Action: cli.WithArgs(0, 0, func(*cli.Context, []string) error {
				return a.Out.PrintTable(knownSuites())
			}),
		},
		{
			Name: "show", ArgsUsage: "SUITE", Usage: "show a suite, or its problems",
			UsageText: "exp suite show gsm8k\nexp suite show gsm8k --items -n 0 -o jsonl # all problems, " +
				"for programs",
			Flags: []cli.Flag{
				&cli.BoolFlag{Name: "items", Usage: "list the problems"},
				&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 20,
					Usage: "list at most `N`, 0 for all"},
			},
			BashComplete: suites,
			Action:       a.reads(1, 1, ofSuite(a.suiteShow)),
		},
		{
			Name: "verify", ArgsUsage: "[SUITE...]", Usage: "hash the problems again and compare",
			UsageText:    "exp suite verify # all of them; exit code 4 if one has changed",
			BashComplete: suites,
			Action:       a.reads(0, -1, a.suiteVerify),
		},
		{
			Name: "rm", ArgsUsage: "SUITE", Usage: "remove a suite that no run was scored on",
			UsageText:    "exp suite rm house",
			BashComplete: suites,
			Action: cli.WithArgs(1, 1, func(c *cli.Context, args []string) error {
				return cli.With(a.OpenStoreToWrite, func(db *store.DB) error {
					return ofSuite(a.suiteRemove)(c, db, args)
				})
			}),
		},
	}
}

// suiteRemove removes a suite from the store.
func (a *app) suiteRemove(c *cli.Context, db *store.DB, row store.Suite) error {
	err := db.RemoveSuite(c.Context, row.ID)
	if errors.Is(err, store.ErrInUse) && row.Evals == 0 {
		return cli.Usagef("%s has the examples of other suites' evaluations: they could not be verified without it",
			row.Name)
	}
	if errors.Is(err, store.ErrInUse) {
		return cli.Usagef("%s scored on %s would lose the problems of their scores",
			quantity.Plural(int(row.Evals), "run"), row.Name)
	}
	if err == nil {
		a.Note("%s is removed; its problems stay until exp gc", row.Name)
	}
	return err
}

// readSuite reads a suite from a file; errors are worded for people.
func readSuite(name, path string, solutions bool) (*suite.Suite, error) {
	s, err := suite.Read(name, path, suite.Options{Images: dataset.SuiteImages(), Solutions: solutions})
	var count *suite.CountError
	switch {
	case errors.As(err, &count):
		return nil, cli.Failf(cli.ExitIntegrity, "%w", err).
			Advise("a different selection of problems needs a different name: exp suite add NAME " + path)
	case fault.IsBadFile(err):
		return nil, cli.Failf(cli.ExitUsage, "%w", err)
	case errors.Is(err, os.ErrNotExist):
		return nil, cli.Failf(cli.ExitNotFound, "%w", err)
	}
	return s, err
}

func (a *app) suiteAdd(c *cli.Context, args []string) error {
	name, path := "", args[0]
	if len(args) == 2 {
		name, path = args[0], args[1]
	}
	s, digest, data, err := readNamedSuite(name, path, c.Bool("solutions"))
	if err != nil {
		return err
	}
	if c.Bool("solutions") && s.Solved() == 0 {
		return cli.Usagef("--solutions: %s has no worked solutions; they are read from columns such as solution, "+
			"and from answers like GSM8K's", path)
	}
	if slices.Contains(ownSplits, s.Name) {
		return cli.Usagef("%s cannot be the name of a suite: it stands for a run's own data", s.Name).
			Advise("exp suite add NAME " + path)
	}
	if want := c.String("expect"); !strings.HasPrefix(digest.String(), strings.ToLower(want)) {
		return cli.Failf(cli.ExitIntegrity, "%s: the problems have the digest %s, not %s", path, digest, want)
	}
	a.describeCopy(s, digest, path)

	db, err := a.OpenStoreToWrite()
	if err != nil {
		return err
	}
	return errors.Join(a.keepSuite(c.Context, db, s, digest, data), db.Close())
}

// describeCopy names the version of a known copy, and warns about oddities of the file.
func (a *app) describeCopy(s *suite.Suite, digest ident.Digest, path string) {
	if !suites.Identify(s, digest) {
		a.Warn("%s: these problems match no known copy of %s; scores on other copies may differ",
			path, s.Name)
	}
	if s.Copies.Rows > s.Copies.Unique {
		a.Warn("%s: %d rows hold %d different problems, each %.3g times; each is kept once", path, s.Copies.Rows,
			s.Copies.Unique, s.Copies.Factor())
	}
	if s.Copies.Unanswered > 0 {
		a.Warn("%s: left out %s without an answer", path, quantity.Plural(s.Copies.Unanswered, "row"))
	}
	a.warnOfGolds(s, path)
}

// warnOfGolds lists the gold answers that our grader does not understand, if the suite is graded with it.
func (a *app) warnOfGolds(s *suite.Suite, path string) {
	if !slices.ContainsFunc(s.Graders, task.OwnGrader) {
		return
	}
	list, err := task.UnreadGolds(s.Problems)
	if err != nil || len(list) == 0 {
		return // bad facts are an error where the problems are read
	}
	a.Warn("%s: our grader does not understand %d of %d gold answers and compares them as texts", path, len(list),
		len(s.Problems))
	for _, g := range list[:min(len(list), shownGolds)] {
		a.Warn("  problem %s: gold %q: %v", g.ID, g.Gold, g.Err)
	}
}

// shownGolds bounds the list of gold answers in a warning.
const shownGolds = 20

func (a *app) keepSuite(ctx context.Context, db *store.DB, s *suite.Suite, digest ident.Digest, data []byte) error {
	kept, err := suites.Add(ctx, db, s, digest, data)
	if err != nil {
		return askedOtherwise(err)
	}
	if kept.Name != s.Name {
		return cli.Usagef("the store has these problems already, as %s", kept.Name)
	}
	if k, ok := suite.ByName(s.Name); ok && k.Usual != "" && s.Asking == (suite.Asking{}) {
		a.Note("%s is usually scored with: exp eval MODEL --suite %[1]s %s", s.Name, k.Usual)
	}
	return a.Out.PrintTable(suiteTable([]store.Suite{kept}))
}

// askedOtherwise adds advice to the error about a suite that the store asks in another way.
func askedOtherwise(err error) error {
	var other *suites.AskedError
	if !errors.As(err, &other) {
		return err
	}
	return cli.Usagef("%w", err).Advise("exp suite rm " + other.Name + " first, if no run was scored on it; or set " +
		"it for one evaluation: exp eval --suite " + other.Name + " with --likelihood, --shots, --prompt")
}

// ownSplits name a run's own data among the suites that it is scored on.
var ownSplits = []string{"train", "val", "test"}

// readNamedSuite reads a suite from a file and returns its canonical records as well. Without a name that the catalog
// knows, problems that are a known copy of a benchmark become that benchmark, with its graders.
func readNamedSuite(name, path string, solutions bool) (*suite.Suite, ident.Digest, []byte, error) {
	s, err := readSuite(name, path, solutions)
	if err != nil {
		return nil, ident.Digest{}, nil, err
	}
	digest, data, err := suites.Digest(s)
	if err != nil || name != "" {
		return s, digest, data, err
	}
	known, ok := suite.ByDigest(digest.String())
	if !ok || known.Name == s.Name {
		return s, digest, data, nil
	}
	return readNamedSuite(known.Name, path, solutions)
}

// readSuiteFile reads the suite of a file that --suite names. A file that is named like a benchmark and has another
// number of problems is a suite of its own, and named after its folder too.
func (a *app) readSuiteFile(path string) (*suite.Suite, ident.Digest, []byte, error) {
	name := suite.KnownName(path)
	s, digest, data, err := readNamedSuite(name, path, false)
	var count *suite.CountError
	if !errors.As(err, &count) || name == "" || !suite.IsRows(path) {
		return s, digest, data, err
	}
	own, nameErr := withFolder(path, name)
	if nameErr != nil {
		return nil, ident.Digest{}, nil, nameErr
	}
	a.Note("%v: they are the suite %s", err, own)
	return readNamedSuite(own, path, false)
}

// withFolder puts the name of a file's folder before the name of its suite.
func withFolder(path, name string) (string, error) {
	abs, err := filepath.Abs(path)
	return filepath.Base(filepath.Dir(abs)) + "-" + name, err
}

// suiteOfFile returns the store's suite with a file's problems; it adds the suite if
// they are new.
func (a *app) suiteOfFile(ctx context.Context, db *store.DB, path string) (store.Suite, error) {
	s, digest, data, err := a.readSuiteFile(path)
	if err == nil && slices.Contains(ownSplits, s.Name) { // the usual names of published files
		s.Name, err = withFolder(path, s.Name)
	}
	if err != nil {
		return store.Suite{}, err
	}
	if kept, err := suites.Find(ctx, db, digest.String()); err == nil && !kept.OfRuns() {
		if newest, err := suites.Find(ctx, db, kept.Name); err != nil || newest.ID != kept.ID {
			return kept, cli.Usagef("%s holds the problems of an older suite %s; that name now stands for others "+
				"(exp suite ls), and scores are stored by name", path, kept.Name)
		}
		return kept, askedOtherwise(suites.CheckAsked(kept, s))
	}
	a.describeCopy(s, digest, path)
	kept, err := suites.Add(ctx, db, s, digest, data)
	if err != nil {
		return kept, askedOtherwise(err)
	}
	a.Note("the store now has suite %s, %s from %s", kept.Name, quantity.Plural(int(kept.N), "problem"), path)
	return kept, nil
}

func suiteTable(list []store.Suite) cli.Table {
	t := cli.Table{Schema: "exp.suite.ls/1", Columns: []cli.Column{
		{Key: "name", ID: true}, {Key: "version"}, {Key: "items"}, {Key: "digest"}, {Key: "graders"}, {Key: "license"},
		{Key: "runs"},
	}}
	for _, s := range list {
		t.Rows = append(t.Rows, []any{s.Name, s.Version, s.N, cli.HexID(s.Digest.String()),
			strings.Split(s.Scorer, ","), s.License, s.Evals})
	}
	return t
}

func (a *app) suiteList(c *cli.Context, db *store.DB, _ []string) error {
	list, err := db.Suites(c.Context)
	if err != nil {
		return err
	}
	return a.Out.PrintTable(suiteTable(list))
}

func knownSuites() cli.Table {
	t := cli.Table{Schema: "exp.suite.known/1", Columns: []cli.Column{
		{Key: "name", ID: true}, {Key: "about", Wrap: true},
		{Key: "items", Wrap: true, Min: 12, Text: func(v any) string {
			return strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", " or "), "[]")
		}},
		{Key: "license", Wrap: true, Min: 12}, {Key: "graders", Wide: true}, {Key: "source", Wide: true},
		{Key: "usual", Title: "usual flags of exp eval", Wide: true},
	}}
	for _, k := range suite.Catalog() {
		t.Rows = append(t.Rows, []any{k.Name, k.About, k.Counts, k.License, k.Graders, k.Source, k.Usual})
	}
	return t
}

// ofSuite makes an action of the suite that the first argument names.
func ofSuite(do func(c *cli.Context, db *store.DB, row store.Suite) error) action {
	return func(c *cli.Context, db *store.DB, args []string) error {
		row, err := findSuite(c.Context, db, args[0])
		if err != nil {
			return err
		}
		return do(c, db, row)
	}
}

// findSuite finds a suite of the store by its name or digest.
func findSuite(ctx context.Context, db *store.DB, ref string) (store.Suite, error) {
	row, err := suites.Find(ctx, db, ref)
	return row, suiteMissing(err)
}

// suiteMissing adds advice to the error about a missing suite.
func suiteMissing(err error) error {
	var none *suites.NotFoundError
	if !errors.As(err, &none) {
		return err
	}
	f := cli.Failf(cli.ExitNotFound, "%w", err)
	f.Help = "exp suite add " + none.Ref + " FILE adds it"
	if s := spelling.Nearest(none.Ref, none.Known); s != "" {
		f.Help = "did you mean " + s + "?"
	}
	return f
}

func (a *app) suiteShow(c *cli.Context, db *store.DB, row store.Suite) error {
	if row.OfRuns() && c.Bool("items") {
		return cli.Usagef("%s is the data of runs, not a benchmark", row.Name).
			Advise("exp samples RUN shows its problems")
	}
	if !row.OfRuns() {
		s, err := suites.Load(db, row)
		if err != nil {
			return err
		}
		if c.Bool("items") {
			return a.Out.PrintTable(problemTable(s, c.Int("limit")))
		}
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

		Asking json.RawMessage `json:"asking,omitempty"` // how it is asked by default
	}
	d := shown{row.Name, row.Version, row.Digest.String(), row.License, strings.Split(row.Scorer, ","), int(row.N),
		row.Evals,
		db.Blobs.Path(row.Digest), json.RawMessage(row.Asking)}
	asked := ""
	if row.Asking != "" {
		asked = "asked    " + row.Asking + "\n"
	}
	return a.Out.PrintText("exp.suite.show/1", d, "%s  %s\ndigest   %s\nlicence  %s\ngraders  %s\n%sitems    %d\n"+
		"runs     %d scored on it\nfile     %s\n", d.Name, d.Version, d.Digest, cmp.Or(d.License, "unknown"),
		strings.Join(d.Graders, ", "), asked, d.Items, d.Runs, d.Path)
}

func problemTable(s *suite.Suite, limit int) cli.Table {
	t := cli.Table{Schema: "exp.suite.items/1", Columns: []cli.Column{
		{Key: "id", ID: true}, {Key: "answer"}, {Key: "cluster", Wide: true}, {Key: "prompt", Wrap: true},
		{Key: "data", Wide: true},
	}}
	for i, p := range s.Problems {
		if limit > 0 && i == limit {
			break
		}
		t.Rows = append(t.Rows, []any{p.ID, p.Answer, p.Cluster, p.Prompt, string(p.Data)})
	}
	return t
}

func (a *app) suiteVerify(c *cli.Context, db *store.DB, args []string) error {
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
	t := cli.Table{Schema: "exp.suite.verify/1", Columns: []cli.Column{{Key: "name", ID: true}, {Key: "digest"},
		{Key: "ok"}, {Key: "problem"}}}
	broken := 0
	for _, row := range list {
		if row.Size == 0 && len(args) == 0 {
			continue // recorded by a run, without stored problems
		}
		if row.Size == 0 {
			return cli.Usagef("%s is the data of runs, and they keep it", row.Name).
				Advise("exp verify RUN --level blobs")
		}
		err := suites.Check(db, row)
		problem := ""
		if err != nil {
			broken++
			problem = err.Error()
		}
		t.Rows = append(t.Rows, []any{row.Name, cli.HexID(row.Digest.String()), err == nil, problem})
	}
	if err := a.Out.PrintTable(t); err != nil {
		return err
	}
	if broken > 0 {
		return cli.Failf(cli.ExitIntegrity, "%d of %d suites are damaged", broken, len(t.Rows))
	}
	return nil
}

// storedSuites proposes the suites of the store.
func (a *app) storedSuites(ctx context.Context) []cli.Candidate {
	var list []cli.Candidate
	err := cli.With(a.OpenStore, func(db *store.DB) error {
		all, err := db.Suites(ctx)
		for _, s := range all {
			list = append(list, cli.Candidate{Text: s.Name, Note: quantity.Plural(int(s.N), "problem")})
		}
		return err
	})
	if err != nil {
		return nil // completion says nothing
	}
	return list
}
