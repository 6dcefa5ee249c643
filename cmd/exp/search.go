package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/query"
	"exp/experiments/store"
	"exp/harness/config"
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
		if err := setTwice(c, "--grid", axis.Key); err != nil {
			return nil, err
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

// setTwice returns an error if --set gives one value to a key that flag gives several.
func setTwice(c *cli.Context, flag, key string) error {
	for _, text := range c.StringSlice("set") {
		if k, _, _ := strings.Cut(text, "="); strings.TrimSpace(k) == key {
			return cli.Usagef("%s and --set both set %s: keep one of them", flag, key)
		}
	}
	return nil
}

func rangesOf(c *cli.Context) (ranges []sweep.Range, err error) {
	for _, text := range c.StringSlice("range") {
		r, err := sweep.ParseRange(text)
		if err != nil {
			return nil, cli.Usagef("--range: %v", err)
		}
		if err := setTwice(c, "--range", r.Key); err != nil {
			return nil, err
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

// objective ranks the trials of a search, and shows them.
type objective struct {
	*sweep.Objective
	a     *app
	name  string
	again []string // words of the command that repeats a run, without keys and seeds
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
	sense, text := sweep.CutSense(o.name)
	field, err := a.fieldOf("--objective", text)
	if err != nil {
		return nil, err
	}
	o.Objective, err = sweep.NewObjective(field, text, sense, ranges, configs)
	var wrong *sweep.ObjectiveError
	if errors.As(err, &wrong) {
		return nil, cli.Usagef("--objective %s: %w", o.name, err).Advise(wrong.Advice)
	}
	return o, err
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
			"search-seed", "seeds", "seed", "o", "output"}, name):
			skip = !joined
		default:
			words = append(words, w)
		}
	}
	return words
}

// print writes the trials, the best first.
func (o *objective) print(ctx context.Context, db *store.DB, results []harness.Result) error {
	var runs []store.Run
	for _, r := range results {
		runs = append(runs, r.Run)
	}
	trials, err := o.Rank(ctx, db, runs)
	if err != nil {
		return err
	}
	if err := o.a.Out.PrintTable(o.table(trials)); err != nil {
		return err
	}
	if o.a.Out.ForPeople() {
		o.say(trials)
	}
	return nil
}

func (o *objective) table(trials []*sweep.Trial) cli.Table {
	t := cli.Table{Schema: "exp.search/1", Columns: []cli.Column{{Key: "rank"}, {Key: "run", ID: true},
		{Key: "name", ID: true, Rank: 1, Min: 12}, {Key: "status", Style: statusStyle}, {Key: "seeds"}}}
	for _, key := range o.Keys {
		short := key[strings.LastIndexByte(key, '.')+1:]
		t.Columns = append(t.Columns, cli.Column{Key: key, Title: short, Text: exactText})
	}
	t.Columns = append(t.Columns, cli.Column{Key: "objective", Title: o.name, Digits: 3},
		cli.Column{Key: "lo", Title: "from", Digits: 3}, cli.Column{Key: "hi", Title: "to", Digits: 3})
	ranks := sweep.Ranks(trials)
	for i, tr := range trials {
		first := tr.Runs[0]
		row := []any{ranks[i], first.RID.Short(), first.Name, string(tr.Status()), query.Seeds(tr.Runs)}
		row = append(row, tr.Drawn...)
		t.Rows = append(t.Rows, append(row, numberOrNil(tr.Value), numberOrNil(tr.Lo), numberOrNil(tr.Hi)))
	}
	return t
}

// say explains the intervals and warns of reading too much into the first row.
func (o *objective) say(trials []*sweep.Trial) {
	best := trials[0]
	if math.IsNaN(best.Value) {
		o.a.Note("no trial has %s", o.name)
		return
	}
	of := "over problems; with one seed a trial, nothing measures the spread between seeds"
	if best.BetweenSeeds {
		of = "over seeds"
	}
	same, have := sweep.Overlaps(trials)
	if math.IsNaN(best.Lo) {
		o.a.Note("the scores have no interval: run several --seeds to see how far they can be trusted")
	} else {
		o.a.Note("95 %% intervals are %s. The first one overlaps %d of %d others", of, same, have)
	}
	if !best.Complete() {
		o.a.Note("no trial ran to its end, so the order says little")
		return
	}
	if len(trials) == 1 {
		return
	}
	o.a.Note("The best of %d looks better than it is: the highest of several scores is partly luck.", len(trials))
	last := sweep.LastSeed(trials)
	words := slices.Clone(o.again)
	for i, key := range o.Keys {
		words = append(words, "--set", key+"="+exactText(best.Drawn[i]))
	}
	words = append(words, "--seeds", fmt.Sprintf("%d-%d", last+1, last+3))
	o.a.Note("Confirm it on new seeds:\n  %s", strings.Join(quoteAll(words), " "))
}
