package main

import (
	"context"
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
	"exp/experiments/quantity"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/config"
)

// samplesShown is how many completions people see by default.
const samplesShown = 20

func samplesCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "samples",
		Category:  "Results",
		Usage:     "read the model's completions, with scores",
		ArgsUsage: "RUN",
		Description: "Shows the stored completions: of the newest final evaluation of a suite, of the " +
			"evaluation before training (--suite test@start), or of training (--suite train, or --step N). " +
			"store.samples.eval and store.samples.train set how many are kept. The column gold has " +
			"the right answer, or one of many.",
		UsageText: strings.Join([]string{
			"exp samples @last # of the final evaluation",
			"exp samples @last --wrong --text -n 3 # whole prompts and completions of three failures",
			"exp samples @last --step 10 --right # what training rewarded at step 10",
			"exp samples @last --item 3,4,5=35 --grep '[*]' # one problem's completions that contain a product",
			"exp samples @last -o jsonl > samples.jsonl # every completion, for programs",
			"exp samples @last --suite train --token-ids -o jsonl > r.jsonl # to train on (rollout.recorded)",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "suite", Usage: "completions of suite `S`, or train",
				DefaultText: "the first of the final evaluation"},
			&cli.Int64Flag{Name: "step", Usage: "completions of training step `N`", DefaultText: "all"},
			&cli.StringFlag{Name: "item", Usage: "only problem `ID`"},
			&cli.BoolFlag{Name: "right", Usage: "only correct completions, no demonstrations"},
			&cli.BoolFlag{Name: "wrong", Usage: "only incorrect completions, no demonstrations"},
			&cli.StringFlag{Name: "grep", Usage: "only completions that match `RE`"},
			&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "show at most `N`, 0 for all",
				DefaultText: "20 for people, else all"},
			&cli.BoolFlag{Name: "all", Usage: "show all"},
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
	s := recorded.Completions{DB: db, Run: run, Suite: suite, Query: q, Match: grep}
	list, more, err := s.Read(c.Context, int(limit))
	if err != nil {
		return err
	}
	if err := recorded.AddGolds(c.Context, db, list); err != nil {
		return err
	}
	if err := recorded.AddScores(c.Context, db, run, list); err != nil {
		return err
	}
	if len(list) == 0 {
		if err := explainNone(c.Context, s); err != nil {
			return err
		}
		text, err := noMatchText(c.Context, s)
		if err != nil {
			return err
		}
		a.Note("%s", text)
	}
	if more {
		defer a.Note("there are more; --all shows all") // below them
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
	addColumns(&t, list, c.Bool("token-ids"))
	return a.Out.PrintTable(t)
}

// addColumns adds what some completions have, and with tokens what rollout.recorded reads.
func addColumns(t *cli.Table, list []recorded.Completion, tokens bool) {
	addModelScores(t, list)
	if slices.ContainsFunc(list, func(s recorded.Completion) bool { return s.Components != nil }) {
		t.Columns = append(t.Columns, cli.Column{Key: "components", Wide: true})
		for i, s := range list {
			var parts any // null of a completion without
			if s.Components != nil {
				parts = s.Components
			}
			t.Rows[i] = append(t.Rows[i], parts)
		}
	}
	if tokens {
		t.Columns = append(t.Columns, cli.Column{Key: "token_ids", Wide: true},
			cli.Column{Key: "logprobs", Wide: true})
		for i, s := range list {
			t.Rows[i] = append(t.Rows[i], s.TokenIDs, s.LogProbs)
		}
	}
	if slices.ContainsFunc(list, func(s recorded.Completion) bool { return len(s.Inserted) > 0 }) {
		t.Columns = append(t.Columns, cli.Column{Key: "inserted", Wide: true})
		for i, s := range list {
			t.Rows[i] = append(t.Rows[i], append([]recorded.Span{}, s.Inserted...))
		}
	}
	if slices.ContainsFunc(list, func(s recorded.Completion) bool { return len(s.Later) > 0 }) {
		t.Columns = append(t.Columns, cli.Column{Key: "later", Wide: true})
		for i, s := range list {
			t.Rows[i] = append(t.Rows[i], append([]recorded.Conversation{}, s.Later...))
		}
	}
	if slices.ContainsFunc(list, func(s recorded.Completion) bool { return len(s.Acts) > 0 }) {
		t.Columns = append(t.Columns, cli.Column{Key: "turns", Wide: true})
		for i, s := range list {
			t.Rows[i] = append(t.Rows[i], append([]recorded.Act{}, s.Acts...))
		}
	}
	if slices.ContainsFunc(list, func(s recorded.Completion) bool { return len(s.Steps) > 0 }) {
		t.Columns = append(t.Columns, cli.Column{Key: "steps", Wide: true})
		for i, s := range list {
			t.Rows[i] = append(t.Rows[i], append([]recorded.Step{}, s.Steps...))
		}
	}
	if tokens && slices.ContainsFunc(list, func(s recorded.Completion) bool { return len(s.Images) > 0 }) {
		t.Columns = append(t.Columns, cli.Column{Key: "images", Wide: true})
		for i, s := range list {
			t.Rows[i] = append(t.Rows[i], append([]recorded.Image{}, s.Images...))
		}
	}
}

// addModelScores adds the scores of the evaluation's reward model behind the grader's.
func addModelScores(t *cli.Table, list []recorded.Completion) {
	if !slices.ContainsFunc(list, func(s recorded.Completion) bool { return s.ModelScore != nil }) {
		return
	}
	at := 1 + slices.IndexFunc(t.Columns, func(c cli.Column) bool { return c.Key == "score" })
	t.Columns = slices.Insert(t.Columns, at, cli.Column{Key: "model_score", Digits: 3})
	for i, s := range list {
		var score any // null of a completion without
		if s.ModelScore != nil {
			score = *s.ModelScore
		}
		t.Rows[i] = slices.Insert(t.Rows[i], at, score)
	}
}

// sampleQuery turns flags into a query and the name of the suite.
func sampleQuery(c *cli.Context, db *store.DB, run store.Run) (string, store.SampleQuery, error) {
	q := store.SampleQuery{Item: c.String("item"), Step: c.Int64("step")}
	if c.Bool("right") || c.Bool("wrong") {
		right := c.Bool("right")
		q.Correct, q.Sampled = &right, true
	}
	suite := c.String("suite")
	labels, err := recorded.Suites(c.Context, db, run)
	if err != nil {
		return "", q, err
	}
	switch {
	case suite == recorded.TrainSuite || suite == "" && q.Step > 0:
		q.Scope = "train"
		return recorded.TrainSuite, q, nil
	case q.Step > 0:
		return "", q, cli.Usagef("--step is for training completions, not for --suite %s", suite).See("exp samples")
	case suite == "" && len(labels) == 0:
		return "", q, cli.Failf(cli.ExitNotFound, "run %s has no final evaluation yet", run.RID.Short()).
			Advise("exp samples " + run.RID.Short() + " --suite train shows what training sampled")
	case suite == "":
		suite = recorded.FirstTrained(labels)
	}
	suite = strings.TrimPrefix(suite, run.Task+"/")
	if !slices.Contains(labels, suite) {
		return "", q, cli.Failf(cli.ExitNotFound, "run %s has no suite %q", run.RID.Short(), suite).
			Advise("it has " + strings.Join(append(labels, recorded.TrainSuite), ", "))
	}
	q, err = recorded.OfSuite(c.Context, db, run, string(config.EvalGen), suite, q)
	return suite, q, err
}

// noMatchText says that no completion matches. If the run continues another one, it names that run, which has the
// completions of the earlier steps.
func noMatchText(ctx context.Context, s recorded.Completions) (string, error) {
	text := "no completion matches"
	if s.Run.Parent == 0 || s.Query.Scope != recorded.TrainSuite {
		return text, nil
	}
	parent, err := s.DB.RunByID(ctx, s.Run.Parent)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s; run %s continues %s, which has the completions of the steps before: exp samples %s", text,
		s.Run.RID.Short(), parent.RID.Short(), parent.RID.Short()), nil
}

// explainNone returns an error if no completions were kept, nil if the flags matched none.
func explainNone(ctx context.Context, s recorded.Completions) error {
	kept, err := s.DB.Samples(ctx, s.Run.ID, store.SampleQuery{Scope: s.Query.Scope, Label: s.Query.Label, Limit: 1})
	if err != nil || len(kept) > 0 {
		return err
	}
	key := "store.samples.eval"
	if s.Query.Scope == recorded.TrainSuite {
		key = "store.samples.train"
	}
	rate, known := configNumber(ctx, s.DB, s.Run, key)
	f := cli.Failf(cli.ExitNotFound, "no completions of %s are recorded for run %s", s.Suite, s.Run.RID.Short())
	switch {
	case known && rate == 0:
		f = cli.Failf(cli.ExitNotFound, "run %s kept no completions of %s: %s was none", s.Run.RID.Short(), s.Suite,
			key)
		f.Help = "to keep them, rerun: exp run CONFIG --no-cache --set " + key + "=all"
	case s.Run.Status != store.Done:
		f.Help = "the run is " + string(s.Run.Status) + "; completions of training are written every 25 steps and " +
			"at its end"
	}
	return f
}

// configNumber is a number of a run's configuration.
func configNumber(ctx context.Context, db *store.DB, run store.Run, key string) (float64, bool) {
	v, ok := recorded.ConfigValue(ctx, db, run, key).(float64)
	return v, ok
}

// rewardParts lists the named parts of the reward: "correct 0.00, format 1.00".
func rewardParts(s *recorded.Completion) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(s.Components)) {
		list = append(list, name+" "+quantity.Fixed(s.Components[name], 2))
	}
	return strings.Join(list, ", ")
}

var verdictStyle = styleOf(map[string]term.Style{"right": term.Good, "wrong": term.Bad, "not graded": term.Warn})

func (a *app) sampleTable(list []recorded.Completion) cli.Table {
	training := slices.ContainsFunc(list, func(s recorded.Completion) bool { return s.Step > 0 })
	known := slices.ContainsFunc(list, func(s recorded.Completion) bool { return oneLine(s.Gold) != "" })
	t := cli.Table{Schema: "exp.samples/1", Columns: []cli.Column{
		{Key: "suite", Wide: true}, {Key: "step", Wide: !training}, {Key: "item"}, {Key: "k"},
		{Key: "verdict", Style: verdictStyle},
		{Key: "score", Digits: 2}, {Key: "tokens"}, {Key: "logp", Digits: 2}, {Key: "finish"},
		{Key: "gold", Wide: !known, Min: 8, Rank: 2, Drop: 1}, {Key: "answer", Wide: true},
		{Key: "reason", Wide: true}, {Key: "prompt", Wide: true}, {Key: "completion", Rank: 1, Min: 16},
	}}
	for _, s := range list {
		completion, gold := any(s.Text), any(s.Gold)
		switch {
		case s.Gold == "":
			gold = nil
		case a.Out.ForPeople():
			gold = oneLine(s.Gold)
		}
		switch {
		case !s.Kept && a.Out.ForPeople():
			completion = "(not kept)"
		case !s.Kept:
			completion = nil
		case a.Out.ForPeople():
			completion = visible(s.Text)
		}
		t.Rows = append(t.Rows, []any{s.Suite, s.Step, s.Item, s.K, s.Verdict(), numberOrNil(s.Reward), s.OutTokens,
			numberOrNil(s.LogProbSum), s.Finish, gold, s.Answer, s.Reason, s.Prompt, completion})
	}
	return t
}

// oneLine is a text of one line; of a longer one, such as a program, nothing.
func oneLine(text string) string {
	if strings.Contains(text, "\n") {
		return ""
	}
	return text
}

// visible puts a text on one line, with its line ends marked.
func visible(text string) string { return strings.ReplaceAll(text, "\n", "⏎") }

// writeSamples writes whole prompts and completions.
func writeSamples(p *cli.Page, list []recorded.Completion) {
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
		if s.ModelScore != nil {
			score += "  model score " + quantity.Fixed(*s.ModelScore, 3)
		}
		logp := ""
		if !math.IsNaN(s.LogProbSum) {
			logp = "  logp " + quantity.Fixed(s.LogProbSum, 2)
		}
		fmt.Fprintf(p, "%s  %s%s  %d tokens%s  %s\n", term.Strong.Paint(term.Clean(where), p.Layout.Color),
			verdictStyle(s.Verdict()).Paint(s.Verdict(), p.Layout.Color), score, s.OutTokens, logp, s.Finish)
		p.Facts(cli.Fact{Name: "gold", Text: oneLine(s.Gold)}, cli.Fact{Name: "answer", Text: s.Answer},
			cli.Fact{Name: "reason", Text: s.Reason}, cli.Fact{Name: "reward", Text: rewardParts(&s)},
			cli.Fact{Name: "turns", Text: s.Earned()}, cli.Fact{Name: "steps", Text: s.StepScores()})
		if !s.Kept {
			p.Line("(the text was not kept)")
			continue
		}
		fmt.Fprintln(p, term.Faint.Paint("  prompt", p.Layout.Color))
		p.Text("    ", s.Prompt)
		writeTurns(p, &s)
	}
}

// writeTurns writes a completion, and apart from it what tools wrote and the prompts of further conversations.
func writeTurns(p *cli.Page, s *recorded.Completion) {
	parts := s.Parts()
	if len(parts) == 0 {
		parts = []recorded.Part{{}}
	}
	title := "  completion"
	for _, x := range parts {
		next := "  completion, continued"
		switch {
		case x.Tool && s.Agent:
			title = "  agent"
		case x.Tool:
			title = "  tool"
		case x.Prompt:
			title, next = "  another conversation: prompt", "  completion"
		}
		fmt.Fprintln(p, term.Faint.Paint(title, p.Layout.Color))
		p.Text("    ", strings.Trim(x.Text, "\n"))
		title = next
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
	labels, err := recorded.Suites(ctx, db, run)
	if err != nil {
		return nil
	}
	return cli.Candidates(append(labels, recorded.TrainSuite))
}
