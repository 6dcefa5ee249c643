package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"exp/cmd/exp/cli"
	"exp/eval"
	"exp/eval/stat"
	"exp/experiments/ident"
	"exp/experiments/query"
	"exp/experiments/spelling"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/metric"
	harness "exp/harness/run"
	"exp/harness/sweep"
)

// defaultTrials is the length of a search without --trials.
const defaultTrials = 10

// armsOf returns the arms of --grid or --search and the flag that made them; without them, one arm
// as configured.
func armsOf(c *cli.Context) (arms []sweep.Arm, from string, err error) {
	if c.IsSet("search") {
		arms, err = trialsOf(c)
		return arms, "--range", err
	}
	for _, flag := range []string{"range", "objective", "trials", "search-seed"} {
		if c.IsSet(flag) {
			return nil, "", cli.Usagef("--%s is for a search: add --search random", flag)
		}
	}
	arms, err = gridOf(c)
	return arms, "--grid", err
}

func gridOf(c *cli.Context) ([]sweep.Arm, error) {
	var axes []sweep.Axis
	for _, text := range c.StringSlice("grid") {
		axis, err := sweep.ParseAxis(text)
		if err != nil {
			return nil, cli.Usagef("--grid: %v", err)
		}
		axes = append(axes, axis)
	}
	arms, err := sweep.Grid(axes)
	if err != nil {
		return nil, cli.Usagef("--grid: %v", err)
	}
	return arms, nil
}

// noTPE says what to use instead of --search tpe:N.
func noTPE(trials string) error {
	n := defaultTrials
	if k, err := strconv.Atoi(trials); err == nil && k > 0 {
		n = k
	}
	return cli.Usagef("--search tpe is left out: no well-kept Go library for it has been tried").Advise(fmt.Sprintf(
		"--search random --trials %d draws the same number of trials from --range; the best ones show where to "+
			"search next", n))
}

// trialsOf draws the trials of --search.
func trialsOf(c *cli.Context) ([]sweep.Arm, error) {
	if how := c.String("search"); how == "tpe" || strings.HasPrefix(how, "tpe:") {
		return nil, noTPE(strings.TrimPrefix(strings.TrimPrefix(how, "tpe"), ":"))
	}
	if _, err := cli.OneOf("--search", c.String("search"), []string{"random"}); err != nil {
		return nil, err
	}
	switch {
	case c.IsSet("grid"):
		return nil, cli.Usagef("--grid runs every combination and --search draws some: write --range KEY=LIST " +
			"instead of --grid")
	case !c.IsSet("range"):
		return nil, cli.Usagef("--search needs what to search: --range train.optim.lr=log:1e-6..1e-4")
	}
	trials := defaultTrials
	if c.IsSet("trials") {
		trials = c.Int("trials")
	}
	if trials < 1 {
		return nil, cli.Usagef("--trials %d: it must be at least 1", trials)
	}
	ranges, err := rangesOf(c)
	if err != nil {
		return nil, err
	}
	arms, err := sweep.Search(ranges, trials, c.Int64("search-seed"))
	if err != nil {
		return nil, cli.Usagef("--search: %v", err)
	}
	return arms, nil
}

func rangesOf(c *cli.Context) (ranges []sweep.Range, err error) {
	for _, text := range c.StringSlice("range") {
		r, err := sweep.ParseRange(text)
		if err != nil {
			return nil, cli.Usagef("--range: %v", err)
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

// objective ranks the trials of a search.
type objective struct {
	a      *app
	name   string
	field  store.Field
	metric metric.Metric
	lower  bool     // the least value is the best
	keys   []string // that are searched
	again  []string // words of the command that repeats a run, without keys and seeds
}

// objectiveOf reads --objective and checks that the runs will have it; nil without --search.
func (a *app) objectiveOf(c *cli.Context, configs []*config.Resolved) (*objective, error) {
	if !c.IsSet("search") {
		return nil, nil
	}
	ranges, err := rangesOf(c)
	if err != nil {
		return nil, err
	}
	o := &objective{a: a, name: cmp.Or(c.String("objective"), "eval.test.pass@1"), again: withoutSearch(a.Args)}
	field, lower := strings.CutPrefix(o.name, "min:")
	field, higher := strings.CutPrefix(field, "max:")
	for _, r := range ranges {
		o.keys = append(o.keys, r.Key)
	}
	if o.field, err = a.fieldOf("--objective", field); err != nil {
		return nil, err
	}
	known := false
	o.metric, known = metric.Find(o.field.Name)
	for _, r := range configs {
		suites := r.Run.Eval.Final.Suites
		switch {
		case o.field.Kind == store.FieldEval && !slices.Contains(suites, o.field.Suite):
			return nil, cli.Usagef("--objective %s: %s is not among the suites that %s is scored on: %s", o.name,
				o.field.Suite, r.Run.Name, strings.Join(suites, ", ")).Advise("eval.final.suites lists them")
		case o.field.Kind != store.FieldEval && o.field.Kind != store.FieldMetric:
			return nil, cli.Usagef("--objective %s: it must be a score or a metric", o.name).
				Advise("eval.test.pass@1, metric.val/pass@1.max")
		case !known:
			err := cli.Usagef("--objective %s: no metric %q", o.name, o.field.Name)
			if near := spelling.Nearest(o.field.Name, metricNames()); near != "" {
				err.Help = "did you mean " + near + "?"
			}
			return nil, err
		case o.metric.Direction == "" && !lower && !higher:
			return nil, cli.Usagef("--objective %s: neither more nor less of it is better in itself", o.name).
				Advise("write max:" + field + " or min:" + field)
		}
	}
	o.lower = lower || o.metric.Direction == eval.Down && !higher
	return o, nil
}

// withoutSearch returns the words of a search's command without what makes it one, and without seeds.
func withoutSearch(args []string) (words []string) {
	skip := false
	for _, w := range args {
		name, _, joined := strings.Cut(strings.TrimLeft(w, "-"), "=")
		switch {
		case skip:
			skip = false
		case strings.HasPrefix(w, "-") && slices.Contains([]string{"search", "range", "objective", "trials",
			"search-seed", "seeds", "o", "output"}, name):
			skip = !joined
		default:
			words = append(words, w)
		}
	}
	return words
}

// metricNames lists the metrics with fixed names, and pass@k as people write it.
func metricNames() []string {
	names := []string{"pass@1", "pass@4", "pass@8", "pass@16"}
	for _, m := range metric.All() {
		names = append(names, m.Name)
	}
	return names
}

// trial is a row of the table of a search: the runs of one experiment.
type trial struct {
	runs         []store.Run
	drawn        []any     // values of the searched keys
	seeds        []float64 // the objective's values
	value        float64   // their mean; NaN if no run has one
	lo, hi       float64   // 95 % interval; NaN if unknown
	betweenSeeds bool      // the interval is over seeds, not over problems
}

// print writes the trials, the best first.
func (o *objective) print(ctx context.Context, db *store.DB, results []harness.Result) error {
	var trials []*trial
	of, counted := map[ident.Digest]*trial{}, map[ident.Digest]bool{}
	for _, r := range results {
		if counted[r.Run.RID] {
			continue // two arms that are one experiment
		}
		counted[r.Run.RID] = true
		t := of[r.Run.XID]
		if t == nil {
			t = &trial{lo: math.NaN(), hi: math.NaN()}
			of[r.Run.XID] = t
			trials = append(trials, t)
		}
		t.runs = append(t.runs, r.Run)
		if err := o.measure(ctx, db, t, r.Run); err != nil {
			return err
		}
	}
	for _, t := range trials {
		t.sum()
	}
	slices.SortStableFunc(trials, func(x, y *trial) int {
		switch {
		case x.rank() != y.rank():
			return cmp.Compare(x.rank(), y.rank())
		case o.lower:
			return cmp.Compare(x.value, y.value)
		}
		return cmp.Compare(y.value, x.value)
	})
	if err := o.a.Out.PrintTable(o.table(trials)); err != nil {
		return err
	}
	if o.a.Out.ForPeople() {
		o.say(trials)
	}
	return nil
}

// rank returns 0 for a trial with all its scores, 1 for one that stopped or lacks a score, 2 for one
// without any.
func (t *trial) rank() int {
	switch {
	case math.IsNaN(t.value):
		return 2
	case t.status() != store.Done || len(t.seeds) < len(t.runs):
		return 1
	}
	return 0
}

// status is done if all runs are.
func (t *trial) status() store.Status {
	for _, r := range t.runs {
		if r.Status != store.Done {
			return r.Status
		}
	}
	return store.Done
}

// measure adds the objective of a run to its trial.
func (o *objective) measure(ctx context.Context, db *store.DB, t *trial, r store.Run) error {
	fields := []store.Field{o.field}
	for _, key := range o.keys {
		fields = append(fields, store.Field{Kind: store.FieldConfig, Name: key})
	}
	_, values, err := db.RunFields(ctx, store.RunQuery{IDPrefix: r.RID.String()}, fields)
	if err != nil || len(values) == 0 {
		return err
	}
	t.drawn = values[0][1:]
	v, ok := values[0][0].(float64)
	if !ok {
		return nil
	}
	t.seeds = append(t.seeds, v)
	if o.field.Kind != store.FieldEval {
		return nil
	}
	evals, err := db.Evals(ctx, r.ID)
	for _, e := range evals {
		of := e.SuiteName == o.field.Suite || e.SuiteName == r.Task+"/"+o.field.Suite
		if of && e.Metric == o.field.Name && e.Value == v {
			t.lo, t.hi = e.Lo, e.Hi
		}
	}
	return err
}

// sum sets the mean of the seeds; of several, also the interval of their mean. Equal values say
// nothing about their spread, so they have none.
func (t *trial) sum() {
	t.value = math.NaN()
	if len(t.seeds) == 0 {
		return
	}
	m := stat.ClusterMean(t.seeds, nil)
	t.value = m.Value
	if len(t.seeds) == 1 {
		return
	}
	t.lo, t.hi = math.NaN(), math.NaN()
	if iv, ok := stat.TInterval(m, 0.95); ok && iv.Hi > iv.Lo {
		t.lo, t.hi, t.betweenSeeds = iv.Lo, iv.Hi, true
	}
}

func (o *objective) table(trials []*trial) cli.Table {
	t := cli.Table{Schema: "exp.search/1", Columns: []cli.Column{{Key: "rank"}, {Key: "run", ID: true},
		{Key: "name", ID: true, Rank: 1, Min: 12}, {Key: "status", Style: statusStyle}, {Key: "seeds"}}}
	for _, key := range o.keys {
		short := key[strings.LastIndexByte(key, '.')+1:]
		t.Columns = append(t.Columns, cli.Column{Key: key, Title: short, Text: exactText})
	}
	t.Columns = append(t.Columns, cli.Column{Key: "objective", Title: o.name, Digits: 3},
		cli.Column{Key: "lo", Title: "from", Digits: 3}, cli.Column{Key: "hi", Title: "to", Digits: 3})
	for i, tr := range trials {
		first := tr.runs[0]
		row := []any{i + 1, first.RID.Short(), first.Name, string(tr.status()), query.Seeds(tr.runs)}
		row = append(row, tr.drawn...)
		t.Rows = append(t.Rows, append(row, orNil(tr.value), orNil(tr.lo), orNil(tr.hi)))
	}
	return t
}

func orNil(v float64) any {
	if math.IsNaN(v) {
		return nil
	}
	return v
}

// say explains the intervals and warns of reading too much into the first row.
func (o *objective) say(trials []*trial) {
	best := trials[0]
	if math.IsNaN(best.value) {
		o.a.Note("no trial has %s", o.name)
		return
	}
	of := "over problems; with one seed a trial, nothing measures the spread between seeds"
	if best.betweenSeeds {
		of = "over seeds"
	}
	same, have := 0, 0
	for _, t := range trials[1:] {
		if math.IsNaN(t.lo) {
			continue
		}
		have++
		if t.lo <= best.hi && best.lo <= t.hi {
			same++
		}
	}
	if math.IsNaN(best.lo) {
		o.a.Note("the scores have no interval: run several --seeds to see how far they can be trusted")
	} else {
		o.a.Note("95 %% intervals are %s. The first one overlaps %d of %d others", of, same, have)
	}
	if best.rank() > 0 {
		o.a.Note("no trial ran to its end, so the order says little")
		return
	}
	if len(trials) == 1 {
		return
	}
	o.a.Note("The best of %d looks better than it is: the highest of several scores is partly luck.", len(trials))
	last := best.runs[0].Seed
	for _, t := range trials {
		for _, r := range t.runs {
			last = max(last, r.Seed)
		}
	}
	words := slices.Clone(o.again)
	for i, key := range o.keys {
		words = append(words, "--set", key+"="+exactText(best.drawn[i]))
	}
	words = append(words, "--seeds", fmt.Sprintf("%d-%d", last+1, last+3))
	o.a.Note("Confirm it on new seeds:\n  %s", strings.Join(quoteAll(words), " "))
}
