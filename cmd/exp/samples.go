package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/blob"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/config"
)

// samplesShown is how many completions people see by default.
const samplesShown = 20

// trainSuite is the suite name for the completions of training.
const trainSuite = "train"

func samplesCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "samples",
		Category:  "Results",
		Usage:     "read the model's completions, with scores",
		ArgsUsage: "RUN",
		Description: "Shows the stored completions: of the newest final evaluation of a suite, of the " +
			"evaluation before training (--suite test@start), or of training (--suite train, or --step N). " +
			"store.samples.eval and store.samples.train set how many are kept.",
		UsageText: strings.Join([]string{
			"exp samples @last # of the final evaluation",
			"exp samples @last --wrong --text -n 3 # whole prompts and completions of three failures",
			"exp samples @last --step 10 --right # what training rewarded at step 10",
			"exp samples @last --item 3,4,5=35 --grep '[*]' # one problem's completions that contain a product",
			"exp samples @last -o jsonl > samples.jsonl # all of them, for programs",
			"exp samples @last --suite train --token-ids -o jsonl > r.jsonl # to train on (rollout.recorded)",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "suite", Usage: "completions of suite `S`, or train",
				DefaultText: "the first of the final evaluation"},
			&cli.Int64Flag{Name: "step", Usage: "completions of training step `N`", DefaultText: "all"},
			&cli.StringFlag{Name: "item", Usage: "only problem `ID`"},
			&cli.BoolFlag{Name: "right", Usage: "only correct completions"},
			&cli.BoolFlag{Name: "wrong", Usage: "only incorrect completions"},
			&cli.StringFlag{Name: "grep", Usage: "only completions that match `RE`"},
			&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "show at most `N`, 0 for all",
				DefaultText: "20 for people, else all"},
			&cli.BoolFlag{Name: "text", Usage: "show whole prompts and completions"},
			&cli.BoolFlag{Name: "token-ids", Usage: "add the ids and log-probs of tokens, as rollout.recorded " +
				"reads them"},
		},
		BashComplete: a.completesRuns(1, true, func(ctx context.Context, db *store.DB, w cli.Word) []cli.Candidate {
			return a.suiteCandidates(ctx, db, w)
		}),
		Action: a.reads(1, 1, a.samples),
	}
}

// shownSample is the schema exp.samples/1.
type shownSample struct {
	Suite      string
	Step       int64
	Item       string
	K          int
	Correct    *bool // nil: not graded, or no verdict
	Reward     float64
	Answer     string
	Reason     string
	OutTokens  int64
	LogProbSum float64
	Finish     string
	Prompt     string
	Text       string
	Kept       bool // the texts are there
	TokenIDs   []int32
	LogProbs   []float32
	Components map[string]float64 // named parts of the reward; nil if it has none
}

// keptText is the part of a packed record that this command reads (harness/run writes it).
type keptText struct {
	Prompt string `json:"prompt"`
	Text   string `json:"text"`

	Tokens   []int32   `json:"tokens"`
	LogProbs []float32 `json:"logprobs"`

	Components map[string]float64 `json:"components"`
}

func (a *app) samples(c *cli.Context, db *store.DB, args []string) error {
	limit, err := a.rowLimitOf(c, samplesShown)
	if err != nil {
		return err
	}
	grep, err := regexp.Compile(c.String("grep"))
	if err != nil {
		return a.Usagef("--grep: %w", err)
	}
	if c.Bool("right") && c.Bool("wrong") {
		return a.Usagef("--right and --wrong exclude each other")
	}
	if c.IsSet("step") && c.Int64("step") < 1 {
		return a.Usagef("--step %d: steps count from 1", c.Int64("step"))
	}
	run, err := a.oneRun(c.Context, db, args[0])
	if err != nil {
		return err
	}
	suite, q, err := sampleQuery(c, db, run)
	if err != nil {
		return err
	}
	s := sampleReader{ctx: c.Context, db: db, run: run, suite: suite, query: q, grep: grep}
	list, more, err := s.read(int(limit))
	if err != nil {
		return err
	}
	if len(list) == 0 {
		if err := s.explainNone(); err != nil {
			return err
		}
		a.Note("no completion matches")
	}
	if more {
		a.Note("there are more; -n 0 shows all")
	}
	if a.Out.ForPeople() && c.Bool("text") {
		return a.Out.PrintDocument(cli.Document{Schema: "exp.samples/1", Data: []any{},
			Human: func(w io.Writer) error {
				p := a.Out.NewPage(w)
				writeSamples(p, list)
				return p.Close()
			}})
	}
	t := a.sampleTable(list)
	if slices.ContainsFunc(list, func(s shownSample) bool { return s.Components != nil }) {
		t.Columns = append(t.Columns, cli.Column{Key: "components", Wide: true})
		for i, s := range list {
			var parts any // null of a completion without
			if s.Components != nil {
				parts = s.Components
			}
			t.Rows[i] = append(t.Rows[i], parts)
		}
	}
	if c.Bool("token-ids") {
		t.Columns = append(t.Columns, cli.Column{Key: "token_ids", Wide: true},
			cli.Column{Key: "logprobs", Wide: true})
		for i, s := range list {
			t.Rows[i] = append(t.Rows[i], s.TokenIDs, s.LogProbs)
		}
	}
	return a.Out.PrintTable(t)
}

// sampleQuery turns flags into a query and the name of the suite.
func sampleQuery(c *cli.Context, db *store.DB, run store.Run) (string, store.SampleQuery, error) {
	q := store.SampleQuery{Item: c.String("item"), Step: c.Int64("step")}
	if c.Bool("right") || c.Bool("wrong") {
		right := c.Bool("right")
		q.Correct = &right
	}
	suite := c.String("suite")
	labels, err := suiteLabels(c.Context, db, run)
	if err != nil {
		return "", q, err
	}
	switch {
	case suite == trainSuite || suite == "" && q.Step > 0:
		q.Scope = "train"
		return trainSuite, q, nil
	case q.Step > 0:
		return "", q, cli.Usagef("--step is for training completions, not for --suite %s", suite).See("exp samples")
	case suite == "" && len(labels) == 0:
		return "", q, cli.Failf(cli.ExitNotFound, "run %s has no final evaluation yet", run.RID.Short()).
			Advise("exp samples " + run.RID.Short() + " --suite train shows what training sampled")
	case suite == "":
		suite = firstTrained(labels)
	}
	suite = strings.TrimPrefix(suite, run.Task+"/")
	if !slices.Contains(labels, suite) {
		return "", q, cli.Failf(cli.ExitNotFound, "run %s has no suite %q", run.RID.Short(), suite).
			Advise("it has " + strings.Join(append(labels, trainSuite), ", "))
	}
	q.Scope, q.Label = "eval", suite
	// A suite may have been sampled several times: with more completions, or otherwise.
	switch generation, err := db.NewestStage(c.Context, run.ID, string(config.EvalGen), suite); {
	case err == nil:
		q.Stage = generation.Home
	case !errors.Is(err, store.ErrNotFound):
		return "", q, err
	}
	return suite, q, nil
}

// suiteLabels lists the suites of a run's evaluations.
func suiteLabels(ctx context.Context, db *store.DB, run store.Run) ([]string, error) {
	stages, err := db.Stages(ctx, run.ID)
	var labels []string
	for _, st := range stages {
		if st.Label != "" && !slices.Contains(labels, st.Label) {
			labels = append(labels, st.Label)
		}
	}
	return labels, err
}

// firstTrained is the first suite that the trained weights were evaluated on.
func firstTrained(labels []string) string {
	for _, l := range labels {
		if !strings.Contains(l, "@") {
			return l
		}
	}
	return labels[0]
}

// sampleReader reads completions with their texts.
type sampleReader struct {
	ctx   context.Context
	db    *store.DB
	run   store.Run
	suite string
	query store.SampleQuery
	grep  *regexp.Regexp
}

// samplePage is how many rows are read at a time.
const samplePage = 1000

// read returns the first most matching completions, 0 for all, and whether there are more.
func (s sampleReader) read(most int) (list []shownSample, more bool, err error) {
	packs := s.db.Blobs.NewPackReader()
	defer packs.Close()
	q := s.query
	for q.Limit = samplePage; ; {
		rows, err := s.db.Samples(s.ctx, s.run.ID, q)
		if err != nil {
			return nil, false, err
		}
		for _, row := range rows {
			shown, err := s.sample(packs, row)
			if err != nil {
				return nil, false, err
			}
			if !s.grep.MatchString(shown.Text) {
				continue
			}
			if most > 0 && len(list) == most {
				return list, true, nil
			}
			list = append(list, shown)
		}
		if len(rows) < samplePage {
			return list, false, nil
		}
		q.After = rows[len(rows)-1].ID
	}
}

func (s sampleReader) sample(packs *blob.PackReader, row store.Sample) (shownSample, error) {
	out := shownSample{Suite: s.suite, Step: row.Step, Item: row.Item, K: row.K, Reward: row.Reward,
		OutTokens:  row.OutTokens,
		LogProbSum: row.LogProbSum, Finish: row.Finish}
	if v := row.Verdict; v != nil {
		out.Answer, out.Reason = v.Answer, v.Reason
		if v.Graded {
			out.Correct, out.Reward = &v.Correct, v.Reward
		}
	}
	if row.Ref.Pack.IsZero() {
		return out, nil
	}
	var kept keptText
	if err := packs.Read(row.Ref, &kept); err != nil {
		return out, fmt.Errorf("sample %d of problem %s: %w", row.K, row.Item, err)
	}
	out.Prompt, out.Text, out.Kept = kept.Prompt, kept.Text, true
	out.TokenIDs, out.LogProbs, out.Components = kept.Tokens, kept.LogProbs, kept.Components
	return out, nil
}

// explainNone returns an error if no completions were kept, nil if the flags matched none.
func (s sampleReader) explainNone() error {
	kept, err := s.db.Samples(s.ctx, s.run.ID, store.SampleQuery{Scope: s.query.Scope, Label: s.query.Label, Limit: 1})
	if err != nil || len(kept) > 0 {
		return err
	}
	key := "store.samples.eval"
	if s.query.Scope == trainSuite {
		key = "store.samples.train"
	}
	rate, known := configNumber(s.ctx, s.db, s.run, key)
	f := cli.Failf(cli.ExitNotFound, "no completions of %s are recorded for run %s", s.suite, s.run.RID.Short())
	switch {
	case known && rate == 0:
		f = cli.Failf(cli.ExitNotFound, "run %s kept no completions of %s: %s was none", s.run.RID.Short(), s.suite,
			key)
		f.Help = "to keep them, rerun: exp run CONFIG --no-cache --set " + key + "=all"
	case s.run.Status != store.Done:
		f.Help = "the run is " + string(s.run.Status) + "; completions of training are written every 25 steps and " +
			"at its end"
	}
	return f
}

// configNumber is a number of a run's configuration.
func configNumber(ctx context.Context, db *store.DB, run store.Run, key string) (float64, bool) {
	v, ok := configValue(ctx, db, run, key).(float64)
	return v, ok
}

// verdict says how a completion was graded.
func (s shownSample) verdict() string {
	switch {
	case s.Correct == nil:
		return "not graded"
	case *s.Correct:
		return "right"
	}
	return "wrong"
}

// parts lists the named parts of the reward: "correct 0.00, format 1.00".
func (s shownSample) parts() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(s.Components)) {
		list = append(list, name+" "+quantity.Fixed(s.Components[name], 2))
	}
	return strings.Join(list, ", ")
}

var verdictStyle = styleOf(map[string]term.Style{"right": term.Good, "wrong": term.Bad, "not graded": term.Warn})

func (a *app) sampleTable(list []shownSample) cli.Table {
	training := slices.ContainsFunc(list, func(s shownSample) bool { return s.Step > 0 })
	t := cli.Table{Schema: "exp.samples/1", Columns: []cli.Column{
		{Key: "suite", Wide: true}, {Key: "step", Wide: !training}, {Key: "item"}, {Key: "k"},
		{Key: "verdict", Style: verdictStyle},
		{Key: "score", Digits: 2}, {Key: "tokens"}, {Key: "logp", Digits: 2}, {Key: "finish"},
		{Key: "answer", Wide: true},
		{Key: "reason", Wide: true}, {Key: "prompt", Wide: true}, {Key: "completion", Rank: 1, Min: 16},
	}}
	for _, s := range list {
		completion := any(s.Text)
		switch {
		case !s.Kept && a.Out.ForPeople():
			completion = "(not kept)"
		case !s.Kept:
			completion = nil
		case a.Out.ForPeople():
			completion = visible(s.Text)
		}
		t.Rows = append(t.Rows, []any{s.Suite, s.Step, s.Item, s.K, s.verdict(), numberOrNil(s.Reward), s.OutTokens,
			numberOrNil(s.LogProbSum), s.Finish, s.Answer, s.Reason, s.Prompt, completion})
	}
	return t
}

// visible puts a text on one line, with its line ends marked.
func visible(text string) string { return strings.ReplaceAll(text, "\n", "⏎") }

// writeSamples writes whole prompts and completions.
func writeSamples(p *cli.Page, list []shownSample) {
	for i, s := range list {
		if i > 0 {
			fmt.Fprintln(p)
		}
		where := "item " + s.Item + "  sample " + strconv.Itoa(s.K)
		if s.Step > 0 {
			where = "step " + strconv.FormatInt(s.Step, 10) + "  " + where
		}
		score := ""
		if !math.IsNaN(s.Reward) {
			score = "  score " + quantity.Fixed(s.Reward, 2)
		}
		logp := ""
		if !math.IsNaN(s.LogProbSum) {
			logp = "  logp " + quantity.Fixed(s.LogProbSum, 2)
		}
		fmt.Fprintf(p, "%s  %s%s  %d tokens%s  %s\n", term.Strong.Paint(term.Clean(where), p.Layout.Color),
			verdictStyle(s.verdict()).Paint(s.verdict(), p.Layout.Color), score, s.OutTokens, logp, s.Finish)
		p.Facts(cli.Fact{Name: "answer", Text: s.Answer}, cli.Fact{Name: "reason", Text: s.Reason},
			cli.Fact{Name: "reward", Text: s.parts()})
		if !s.Kept {
			p.Line("(the text was not kept)")
			continue
		}
		fmt.Fprintln(p, term.Faint.Paint("  prompt", p.Layout.Color))
		p.Text("    ", s.Prompt)
		fmt.Fprintln(p, term.Faint.Paint("  completion", p.Layout.Color))
		p.Text("    ", s.Text)
	}
}

// suiteCandidates proposes the suites of the run named before, or of the newest one.
func (a *app) suiteCandidates(ctx context.Context, db *store.DB, w cli.Word) []cli.Candidate {
	if w.Flag != "suite" {
		return nil
	}
	ref := "@last"
	if len(w.Args) > 0 {
		ref = w.Args[0]
	}
	run, err := a.finder(db).One(ctx, ref)
	if err != nil {
		return nil
	}
	labels, err := suiteLabels(ctx, db, run)
	if err != nil {
		return nil
	}
	return cli.Candidates(append(labels, trainSuite))
}
