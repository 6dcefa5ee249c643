package main

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/experiments/query"
	"exp/experiments/spelling"
	"exp/experiments/store"
	"exp/harness/config"
)

// lsRows is the default length of a list for people.
const lsRows = 50

func lsCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "ls",
		Category:  "Results",
		Usage:     "list runs",
		ArgsUsage: "[SEL...]",
		Description: "Lists the runs of the store, newest first. SEL is a run (@last, an id or its beginning, " +
			"NAME, NAME#SEED), several (tag:NAME, xid:PREFIX), a filter in quotes, or - for ids on stdin. An " +
			"xid is an experiment id: runs that differ only in the seed share it.\n" +
			"A filter compares fields with values, as in: algo = flowrl and metric.actor/entropy > 0.5 and " +
			"created < 2d\n" +
			"  operators  = != < <= > >= ~ (glob)   in [a, b] (one of)   is set\n" +
			"             and or not ( )   an interval: seed >= 0 and seed <= 9\n" +
			"  fields     " + strings.Join(store.Columns()[:8], " ") + "\n" +
			"             " + strings.Join(store.Columns()[8:], " ") + " tag\n" +
			"             config.PATH   metric.NAME[.min|.max|.at(STEP)]   eval.SUITE.NAME\n" +
			"             a result of the list, such as pass@1\n" +
			"--sort and --cols take the same fields. Results are from the final evaluation. With --group, numbers " +
			"are means ± the standard deviation between runs.",
		UsageText: strings.Join([]string{
			"exp ls # the newest runs",
			"exp ls -F 'algo = flowrl and created < 2d' # recent experiments of one algorithm",
			"exp ls --sort -pass@1 -n 5 # the best five",
			"exp ls --group xid # one row per experiment: mean and spread over seeds",
			"exp ls --group algo.flowrl.beta # one row per value of a key",
			"exp ls countdown-flowrl --cols config.algo.flowrl.beta,metric.actor/entropy # more columns",
			"exp ls -F 'status = failed' -o name # only ids, for scripts",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "filter", Aliases: []string{"F"}, Usage: "only runs that match `EXPR`"},
			&cli.StringFlag{Name: "sort", Usage: "sort by `KEY`, a field or a result; -KEY for descending",
				DefaultText: "-created"},
			&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "list at most `N` runs, 0 for all",
				DefaultText: "50 for people, else all"},
			&cli.BoolFlag{Name: "all", Usage: "list all runs"},
			&cli.StringFlag{Name: "group", Usage: "one row per value of `KEY`: xid (experiment id), name, " +
				"algo, model, task or a configuration key"},
			&cli.StringSliceFlag{Name: "cols", Aliases: []string{"columns"}, Usage: "more columns: `FIELD,FIELD`"},
			&cli.BoolFlag{Name: "deleted", Usage: "list deleted runs instead"},
		},
		BashComplete: a.completesRuns(0, false, lsValues),
		Action:       a.reads(0, -1, a.list),
	}
}

// list prints the runs that the arguments select. Collecting garbage less often makes
// a list of 10,000 runs a fifth faster; the program ends before the memory matters.
func (a *app) list(c *cli.Context, db *store.DB, _ []string) error {
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	q, err := a.lsQueryOf(c)
	if err != nil {
		return err
	}
	f := a.finder(db)
	f.Deleted = c.Bool("deleted")
	var l query.List
	if q.limit > 0 && q.filter == nil && q.sort.Newest() && c.NArg() == 0 && !c.IsSet("group") {
		l, err = f.Newest(c.Context, q.fields(), int(q.limit))
	} else {
		l, err = f.List(c.Context, q.filter, q.fields())
	}
	if err != nil {
		return err
	}
	if c.NArg() > 0 {
		chosen, err := a.selectRuns(c.Context, db, f, c.Args().Slice())
		if err != nil {
			return err
		}
		l.Keep(chosen)
	}
	if err := errors.Join(a.warnUnrecorded(c.Context, db, q, &l), sortRuns(&l, q.sort)); err != nil {
		return err
	}
	if c.IsSet("group") {
		t := a.groupTable(q, &l)
		a.noteEmpty(c, db, len(t.Rows))
		n := q.limit.of(len(t.Rows))
		defer a.noteLeftOut(n, len(t.Rows), "groups")
		t.Rows = t.Rows[:n]
		return a.Out.PrintTable(t)
	}
	proofs, err := db.AllVerifications(c.Context)
	if err != nil {
		return err
	}
	also, err := db.OtherNames(c.Context)
	if err != nil {
		return err
	}
	n := q.limit.of(len(l.Runs))
	t := a.runTable(l.Runs, n, also, append([]runColumn{a.verifiedColumn(proofs, l.Runs[:n], q.names(verifiedKey)),
		{alsoNamed, func(_ int, r *store.Run) any { return otherNames(also[r.ID]) }}},
		q.columns(&l, a.Out.Stream.TTY && a.Out.Stream.Width() < 100)...))
	a.noteEmpty(c, db, len(l.Runs))
	if err := a.Out.PrintTable(t); err != nil {
		return err
	}
	a.noteLeftOut(len(t.Rows), len(l.Runs)+l.More, "runs")
	if q.names("reason") {
		return nil
	}
	return a.noteFailed(c.Context, db, l.Runs[:n])
}

// noteFailed says why the newest runs of a list failed, if that was within a day: older failures are known.
func (a *app) noteFailed(ctx context.Context, db *store.DB, runs []store.Run) error {
	const most, longest = 3, 120 // runs; characters of a reason
	if !a.Out.ForPeople() {
		return nil
	}
	told := 0
	for _, r := range runs {
		if r.Status != store.Failed || a.Clock.Now().Sub(r.Ended) > 24*time.Hour {
			continue
		}
		if told++; told > most {
			a.Note("exp ls --cols reason says why others failed")
			break
		}
		reason, err := db.Reason(ctx, r.ID)
		if err != nil {
			return err
		}
		reason, _, _ = strings.Cut(reason, "\n")
		a.Note("%s failed: %s", r.RID.Short(), term.Cut(term.Clean(reason), longest, "…"))
	}
	return nil
}

// noteEmpty says why a list is empty.
func (a *app) noteEmpty(c *cli.Context, db *store.DB, n int) {
	switch {
	case n > 0 || !a.Out.ForPeople():
	case c.IsSet("filter") || c.NArg() > 0:
		a.Note("no run matches")
	case c.Bool("deleted"):
		a.Note("no run is deleted")
	default:
		a.Note("%s", noRuns(c.Context, db))
	}
}

// noRuns says why a store shows no runs.
func noRuns(ctx context.Context, db *store.DB) string {
	deleted, err := db.Runs(ctx, store.RunQuery{Deleted: true})
	if err != nil || len(deleted) == 0 {
		return "the store has no runs yet; exp run CONFIG adds one"
	}
	return "the store has deleted runs only (" + quantity.Plural(len(deleted), "run") + "): exp ls --deleted lists " +
		"them, exp restore RUN brings one back"
}

func (a *app) noteLeftOut(shown, of int, what string) {
	if shown < of {
		a.Note("%d of %d %s left out; --all lists all", of-shown, of, what)
	}
}

// rowLimit is the number of rows to print; 0 is all.
type rowLimit int

func (l rowLimit) of(n int) int {
	if l <= 0 {
		return n
	}
	return min(n, int(l))
}

// rowLimitOf reads -n and --all; 0 means all. The default is usual for people and all for
// programs.
func (a *app) rowLimitOf(c *cli.Context, usual int) (rowLimit, error) {
	switch n := c.Int("limit"); {
	case c.Bool("all"):
		return 0, nil
	case n < 0:
		return 0, a.Usagef("-n %d: it must not be negative", n)
	case c.IsSet("limit"):
		return rowLimit(n), nil
	case a.Out.ForPeople():
		return rowLimit(usual), nil
	}
	return 0, nil
}

// lsQuery selects what a list shows.
type lsQuery struct {
	filter *query.Filter // nil: all
	sort   query.Order
	cols   []namedField
	group  *namedField   // nil: a row is a run
	tested []store.Field // by the filters
	limit  rowLimit
}

// groupColumnNames are the columns of runs that --group takes.
var groupColumnNames = []string{"xid", "name", "algo", "model", "task", "seed", "numerics", "device"}

type namedField struct {
	name  string
	field store.Field
}

func (a *app) lsQueryOf(c *cli.Context) (q lsQuery, err error) {
	if q.limit, err = a.rowLimitOf(c, lsRows); err != nil {
		return q, err
	}
	if key := c.String("group"); key != "" {
		if _, ok := config.Describe(key); ok && !slices.Contains(store.Columns(), key) {
			key = "config." + key // as in compare --by
		}
		f, err := a.fieldOf("--group", key)
		if err != nil {
			return q, err
		}
		if f.Kind == store.FieldResult || f.Kind == store.FieldColumn && !slices.Contains(groupColumnNames, f.Name) {
			return q, a.Usagef("--group takes %s or a configuration key, not %s",
				strings.Join(groupColumnNames, ", "), f.Name)
		}
		q.group = &namedField{strings.TrimPrefix(key, "config."), f}
	}
	if c.IsSet("filter") {
		if q.filter, err = config.Fields().Parse(c.String("filter")); err != nil {
			return q, err
		}
		q.tested = q.filter.Fields()
	}
	for _, arg := range c.Args().Slice() {
		if f, err := config.Fields().Parse(arg); err == nil { // else it names runs
			q.tested = append(q.tested, f.Fields()...)
		}
	}
	for _, f := range q.tested {
		a.warnUnknownKey(f)
	}
	for _, list := range c.StringSlice("cols") {
		for name := range strings.SplitSeq(list, ",") {
			name = strings.TrimSpace(name)
			f, err := a.fieldOf("--cols", name)
			if err != nil {
				return q, err
			}
			q.cols = append(q.cols, namedField{name, f})
		}
	}
	q.sort = a.orderOf(cmp.Or(c.String("sort"), "-created"))
	return q, nil
}

// fields lists the values that the list needs: the columns, the group, then the sort key.
func (q *lsQuery) fields() []store.Field {
	var list []store.Field
	for _, c := range q.cols {
		list = append(list, c.field)
	}
	if q.group != nil {
		list = append(list, q.group.field)
	}
	if q.sort.Needs() {
		list = append(list, q.sort.Field)
	}
	return list
}

// names reports whether --cols names a field.
func (q *lsQuery) names(name string) bool {
	return slices.ContainsFunc(q.cols, func(c namedField) bool { return c.name == name })
}

// titles returns the titles of the columns that --cols adds: the last part of a name where short is set, unless two
// share it.
func (q *lsQuery) titles(short bool) []string {
	var list []string
	for _, c := range q.cols {
		title := strings.TrimPrefix(strings.TrimPrefix(c.name, "config."), "metric.")
		if last := lastPart(title); short && !slices.ContainsFunc(q.cols, func(d namedField) bool {
			return d != c && lastPart(d.name) == last
		}) {
			title = last
		}
		list = append(list, title)
	}
	return list
}

// columns returns the columns that --cols adds.
func (q *lsQuery) columns(l *query.List, short bool) []runColumn {
	var list []runColumn
	titles := q.titles(short)
	for i, c := range q.cols {
		if c.name == verifiedKey {
			continue // in every list
		}
		list = append(list, runColumn{cli.Column{Key: c.name, Title: titles[i], Text: textOf(c.field)},
			func(row int, _ *store.Run) any {
				return l.Values[row][i]
			}})
	}
	return list
}

// lastPart returns a name without its blocks: "beta" of algo.flowrl.beta.
func lastPart(name string) string { return name[strings.LastIndexAny(name, "./")+1:] }

// warnUnrecorded warns of metrics and evaluations that no run of the store has: a typo
// would otherwise look like runs without a value.
func (a *app) warnUnrecorded(ctx context.Context, db *store.DB, q lsQuery, l *query.List) error {
	fields := q.fields()
	missing := func(i int) bool {
		return !slices.ContainsFunc(l.Values, func(row []any) bool { return row[i] != nil })
	}
	var doubtful []store.Field
	for i, f := range fields {
		if missing(i) {
			doubtful = append(doubtful, f)
		}
	}
	if len(l.Runs) == 0 {
		doubtful = q.tested
	}
	for _, f := range doubtful {
		known, err := db.Recorded(ctx, f)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		name, hint := "metric."+f.Name, ""
		switch f.Kind {
		case store.FieldEval:
			name = "eval." + f.Suite + "." + f.Name
		case store.FieldResult:
			name = f.Name
		}
		if s := spelling.Nearest(name, fieldNames(ctx, db)); s != "" {
			hint = "; did you mean " + s + "?"
		}
		a.Warn("no run has recorded %s%s", name, hint)
	}
	return nil
}

// textOf returns how values of a field are written: of a configuration every digit, of others about three.
func textOf(f store.Field) func(any) string {
	if f.Kind == store.FieldConfig {
		return exactText
	}
	return fieldText
}

// fieldText formats the value of a field: whole numbers without a point, lists without
// brackets.
func fieldText(v any) string { return listText(v, quantity.Short) }

// exactText is fieldText with every digit of a number, which tells settings and groups apart.
func exactText(v any) string {
	return listText(v, func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) })
}

func listText(v any, number func(float64) string) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return strconv.FormatInt(int64(v), 10)
		}
		return number(v)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = listText(v[i], number)
		}
		return strings.Join(parts, ", ")
	}
	return cli.MachineText(cli.TreeOf(v))
}

// fieldOf reads the name of a field.
func (a *app) fieldOf(flag, name string) (store.Field, error) {
	f, err := config.Fields().ParseField(name)
	if err != nil {
		e := a.Usagef("%s: %w", flag, err)
		if s := config.Fields().Suggest(name); s != "" {
			e.Help = "did you mean " + s + "?"
		}
		return f, e
	}
	a.warnUnknownKey(f)
	return f, nil
}

// warnUnknownKey warns of an unknown configuration key: a typo would otherwise look like
// runs without a value.
func (a *app) warnUnknownKey(f store.Field) {
	if f.Kind != store.FieldConfig {
		return
	}
	if _, ok := config.Describe(f.Name); !ok {
		var paths []string
		for _, k := range config.Keys() {
			paths = append(paths, k.Path)
		}
		hint := ""
		if s := spelling.Nearest(f.Name, paths); s != "" {
			hint = "; did you mean config." + s + "?"
		}
		a.Warn("unknown configuration key %s%s", f.Name, hint)
	}
}

// lsValues completes the values of the flags of ls.
func lsValues(ctx context.Context, db *store.DB, w cli.Word) []cli.Candidate {
	switch w.Flag {
	case "group":
		list := cli.Candidates(groupColumnNames)
		for _, k := range config.Keys() {
			list = append(list, cli.Candidate{Text: k.Path, Note: k.Help})
		}
		return list
	case "sort", "cols":
		// What stands before the last comma, or the sign, belongs to every proposal.
		at := strings.LastIndexAny(w.Text, ",-") + 1
		if w.Flag == "cols" {
			at = strings.LastIndexByte(w.Text, ',') + 1
		}
		var list []cli.Candidate
		for _, name := range fieldNames(ctx, db) {
			list = append(list, cli.Candidate{Text: w.Text[:at] + name})
		}
		return list
	}
	return nil
}

// fieldNames lists the fields for --sort and --cols: columns, the results and metrics
// of the newest runs, and configuration keys.
func fieldNames(ctx context.Context, db *store.DB) []string {
	names := query.FieldNames(ctx, db)
	for _, k := range config.Keys() {
		names = append(names, "config."+k.Path)
	}
	return names
}
