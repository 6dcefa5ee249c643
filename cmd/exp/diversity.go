package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/diversity"
	"exp/reports/compare"
)

func diversityCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "diversity",
		Category:  "Results",
		Usage:     "ask a language model in how many ways runs solve a problem",
		ArgsUsage: "SEL...",
		Description: "The judge reads the recorded completions of one problem together and gives a score from 1 " +
			"(nearly all share an approach) to 5, as for figure 4 of FlowRL (arXiv:2509.15207). Scores are means " +
			"over problems, passes and runs. Arms are formed as in exp compare: each of several SEL is an arm, a " +
			"single one is grouped by experiment, or by --by. Differences are paired by problem and corrected by " +
			"Holm's method; from 3 runs an arm intervals cover the variation between runs, too.\n" +
			"The judge is any server with OpenAI's chat completions. It does not learn which run it reads. The " +
			"order of completions is drawn anew for each pass, and two passes show how far the judge agrees with " +
			"itself. Failed judgements are counted and left out. Answers are kept in the store by the digest of " +
			"their request, so the same command asks nothing again. Each run records its scores as " +
			"judged_diversity (with --right judged_diversity_right), which exp compare and exp report show.\n" +
			"--template FILE replaces the message: {prompt}, {responses}, {n} and {rubric} are filled in, and the " +
			"last number of the answer is the score. --dry-run prints the first message and how many there are.",
		UsageText: strings.Join([]string{
			"exp diversity flowrl --vs ppo --url http://127.0.0.1:8000/v1 --model judge # two arms",
			"exp diversity @last --suite aime24 --url URL --model NAME # one run",
			"exp diversity flowrl ppo --right --problems 50 --url URL --model NAME # right completions only",
			"exp diversity flowrl ppo --dry-run --url URL --model NAME # what would be sent",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "url", Usage: "`URL` of the server, up to its version; /chat/completions is added"},
			&cli.StringFlag{Name: "model", Usage: "model `NAME` to ask for"},
			&cli.StringFlag{Name: "key-env", Aliases: []string{"api-key-env"},
				Usage: "environment `VARIABLE` that holds the API key"},
			&cli.StringFlag{Name: "suite", Usage: "completions of suite `S`",
				DefaultText: "the first of the final evaluation"},
			&cli.StringFlag{Name: "vs", Usage: "compare the other arms with the arm `SEL`"},
			&cli.StringFlag{Name: "by", Usage: "one arm per value of `KEY`, as in exp compare", DefaultText: "xid"},
			&cli.BoolFlag{Name: "right", Usage: "compare right completions only"},
			&cli.IntFlag{Name: "problems", Usage: "judge `N` problems, drawn with --seed; 0 for all"},
			&cli.IntFlag{Name: "passes", Value: 2, Usage: "judge each problem `N` times"},
			&cli.IntFlag{Name: "excerpt", Value: 4000,
				Usage: "show the judge `N` characters of a completion; 0 for all"},
			&cli.Int64Flag{Name: "seed", Usage: "draw problems and the order of completions with `N`"},
			&cli.StringFlag{Name: "template", Usage: "ask with the message in `FILE`"},
			&cli.IntFlag{Name: "max-tokens", Aliases: []string{"max-new-tokens"}, Value: 512,
				Usage: "an answer of the judge, thinking included, has at most `N` tokens"},
			&cli.IntFlag{Name: "concurrent", Value: 4, Usage: "`N` requests in flight at once"},
			&cli.Float64Flag{Name: "rate", Usage: "at most `N` requests a second; 0 for no limit"},
			&cli.StringFlag{Name: "timeout", Value: "1m", Usage: "time limit `T` of a request"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print the first message and the number of requests"},
		},
		BashComplete: a.completesRuns(0, false, a.compareCandidates),
		Action:       a.changesIf(func(c *cli.Context) bool { return !c.Bool("dry-run") }, 1, -1, a.diversity),
	}
}

// judgedRuns are the arms, and the completions of all their runs.
type judgedRuns struct {
	labels []string               // of the arms
	runs   [][]string             // ids of each arm's runs
	of     [][]int                // indices of each arm's runs in Gathered.Runs
	list   []recorded.Completions // where each run's lie
	diversity.Gathered
	suite string
}

func (a *app) diversity(c *cli.Context, db *store.DB, args []string) error {
	o, err := a.diversityOptions(c, db)
	if err != nil {
		return err
	}
	j, err := a.gatherRuns(c, db, args)
	if err != nil {
		return err
	}
	requests := len(j.IDs) * len(j.Runs) * o.Passes
	if c.Bool("dry-run") {
		a.Note("%s: %s, %s, %s", j.suite, quantity.Plural(len(j.Runs), "run"), quantity.Plural(len(j.IDs), "problem"),
			quantity.Plural(requests, "request"))
		_, err := fmt.Fprintln(a.Stdout, o.Message(j.Runs[0][0]))
		return err
	}
	display := a.Progress()
	display.StageStart(term.Stage{Kind: "judge", Label: j.suite, Total: requests, Unit: "judgement"})
	start, done := time.Now(), 0
	rated := make([][][]diversity.Pass, len(j.Runs))
	walls := make([]time.Duration, len(j.Runs))
	for i, problems := range j.Runs {
		began := time.Now()
		rated[i], err = diversity.Rate(c.Context, problems, o, func(n int) {
			display.StageProgress(term.Step{Step: done + n})
		})
		if err != nil {
			a.CloseProgress()
			if c.Context.Err() != nil {
				return cli.Stoppedf(c.Context, "stopped; the judge's answers are kept: the same command goes on")
			}
			return err
		}
		done += len(problems) * o.Passes
		walls[i] = time.Since(began)
	}
	display.StageDone(term.Result{Status: term.Done, Wall: time.Since(start)})
	a.CloseProgress()
	arms := make([][][][]diversity.Pass, len(j.of))
	for k, list := range j.of {
		for _, i := range list {
			arms[k] = append(arms[k], rated[i])
		}
	}
	r := diversity.Compare(j.labels, j.runs, arms, j.IDs, c.IsSet("vs"))
	if len(r.Problems) == 0 {
		return cli.Failf(cli.ExitEvaluation, "no problem has a judgement in every run: %s",
			diversity.FirstFailure(rated))
	}
	if err := a.recordJudgements(c, o, j, rated, walls); err != nil {
		return err
	}
	return a.printDiversity(diversityDocument{Suite: j.suite, Judge: judgeUsed{o.Judge.URL, o.Judge.Model,
		diversity.Digest(o.Template), o.Passes, o.Excerpt, o.Seed}, Right: c.Bool("right"), Few: j.Few, Result: r},
		diversity.FirstFailure(rated))
}

// recordJudgements keeps what the judge said with each run.
func (a *app) recordJudgements(c *cli.Context, o diversity.Options, j judgedRuns, rated [][][]diversity.Pass,
	walls []time.Duration) error {
	for i, of := range j.list {
		err := o.Record(c.Context, diversity.Rated{Of: of, Problems: j.Runs[i], Passes: rated[i], Wall: walls[i]},
			c.Bool("right"))
		switch {
		case errors.Is(err, store.ErrBusy), errors.Is(err, diversity.ErrNotScored):
			a.Warn("the judgements are not recorded with run %s: %v", of.Run.RID.Short(), err)
		case err != nil:
			return err
		}
	}
	return nil
}

// diversityOptions reads the flags about the judge.
func (a *app) diversityOptions(c *cli.Context, db *store.DB) (o diversity.Options, err error) {
	for _, name := range []string{"url", "model"} {
		if c.String(name) == "" {
			return o, a.Usagef("--%s is missing: which server judges?", name)
		}
	}
	for _, x := range []struct {
		name  string
		least int
	}{{"passes", 1}, {"concurrent", 1}, {"max-tokens", 1}, {"excerpt", 0}, {"problems", 0}} {
		if n := c.Int(x.name); n < x.least {
			return o, a.Usagef("--%s %d: want at least %d", x.name, n, x.least)
		}
	}
	timeout, err := time.ParseDuration(c.String("timeout"))
	if err != nil || timeout <= 0 {
		return o, a.Usagef("--timeout %s: want a time such as 90s or 2m", c.String("timeout"))
	}
	if !(c.Float64("rate") >= 0) {
		return o, a.Usagef("--rate %g: want at least 0", c.Float64("rate"))
	}
	o = diversity.Options{Passes: c.Int("passes"), Excerpt: c.Int("excerpt"), Seed: uint64(c.Int64("seed")),
		Template: diversity.Template,
		Judge: diversity.Judge{URL: c.String("url"), Model: c.String("model"), MaxTokens: c.Int("max-tokens"),
			Concurrent: c.Int("concurrent"), Rate: c.Float64("rate"), Timeout: timeout, Retries: 6,
			Cache: store.JudgeDir(db.Dir()), Flags: true,
			Waits: func(why string) { a.Note("the judge does not answer yet, and is asked again: %s", why) }}}
	if name := c.String("key-env"); name != "" {
		if o.Judge.Key = a.Getenv(name); o.Judge.Key == "" {
			return o, a.Usagef("--key-env names %s, which is not set or empty", name)
		}
	}
	if path := c.String("template"); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return o, a.Usagef("--template: %w", err)
		}
		o.Template = string(text)
	}
	if err := diversity.CheckTemplate(o.Template); err != nil {
		return o, a.Usagef("--template %s: %w", c.String("template"), err)
	}
	return o, nil
}

// gatherRuns reads the completions of the selected arms.
func (a *app) gatherRuns(c *cli.Context, db *store.DB, args []string) (j judgedRuns, err error) {
	arms, _, err := a.arms(c, db, args)
	if err != nil {
		return j, err
	}
	for i, label := range compare.Labels(arms) {
		j.labels, j.runs, j.of = append(j.labels, label), append(j.runs, nil), append(j.of, nil)
		for _, run := range arms[i].Runs {
			suite, q, err := sampleQuery(c, db, run)
			switch {
			case err != nil:
				return j, err
			case suite == recorded.TrainSuite:
				return j, a.Usagef("--suite train: steps have too few completions of a problem to compare; name an " +
					"evaluated suite")
			case j.suite == "":
				j.suite = suite
			case suite != j.suite:
				return j, a.Usagef("run %s was scored on %s first, others on %s: say which with --suite",
					run.RID.Short(), suite, j.suite)
			}
			j.of[i] = append(j.of[i], len(j.list))
			j.runs[i] = append(j.runs[i], run.RID.String())
			j.list = append(j.list, recorded.Completions{DB: db, Run: run, Suite: suite, Query: q})
		}
	}
	j.Gathered, err = diversity.Gather(c.Context, j.list, diversity.Choice{Right: c.Bool("right"),
		Problems: c.Int("problems"), Seed: uint64(c.Int64("seed"))})
	if err == nil && len(j.IDs) == 0 {
		kind := ""
		if c.Bool("right") {
			kind = "right "
		}
		err = cli.Failf(cli.ExitNotFound, "no problem of %s has %d %scompletions in every run: fewer are not compared",
			j.suite, diversity.MinResponses, kind).Advise("sample more of them: exp eval RUN --suite S --n 16")
	}
	return j, err
}

// diversityDocument is the JSON of exp diversity.
type diversityDocument struct {
	Suite string    `json:"suite"`
	Judge judgeUsed `json:"judge"`
	Right bool      `json:"right"` // right completions only
	Few   int       `json:"few"`   // problems left out: too few completions
	diversity.Result
}

type judgeUsed struct {
	URL      string `json:"url"`
	Model    string `json:"model"`
	Template string `json:"template"` // digest
	Passes   int    `json:"passes"`
	Excerpt  int    `json:"excerpt"`
	Seed     uint64 `json:"seed"`
}

func (a *app) printDiversity(d diversityDocument, why string) error {
	if d.Failed > 0 {
		a.Note("%s failed and do not count; the first: %s", quantity.Plural(d.Failed, "judgement"), why)
	}
	switch a.Out.Format {
	case cli.FormatCSV, cli.FormatTSV, cli.FormatMD:
		return a.Out.PrintTable(diversityTable(d))
	}
	return a.Out.PrintDocument(cli.Document{Schema: "exp.diversity/1", Data: d, Human: func(w io.Writer) error {
		p := a.Out.NewPage(w)
		p.Paragraph(diversityHeading(d))
		t := diversityTable(d)
		err := p.Table(t.Columns, t.Rows)
		for _, x := range d.Pairs {
			p.Line("%s", diversityPair(x))
		}
		return errors.Join(err, p.Close())
	}})
}

// diversityHeading says what was judged and how far the judge agrees with itself.
func diversityHeading(d diversityDocument) string {
	kind := "completions"
	if d.Right {
		kind = "right completions"
	}
	text := fmt.Sprintf("Diversity of %s, 1 to 5, by %s: %s of %s", kind, d.Judge.Model,
		quantity.Plural(len(d.Problems), "problem"), d.Suite)
	if n := d.Few + d.LeftOut; n > 0 {
		text += fmt.Sprintf(" (%d left out)", n)
	}
	if d.Same != nil {
		text += fmt.Sprintf("; two passes give the same score %.0f %% of the time, at most 1 apart %.0f %%",
			100**d.Same, 100**d.WithinOne)
	}
	return text
}

// diversityTable has a row for each arm.
func diversityTable(d diversityDocument) cli.Table {
	t := cli.Table{Schema: "exp.diversity.arms/1", Columns: []cli.Column{{Key: "arm"}, {Key: "runs"},
		{Key: "diversity"}, {Key: "lo"}, {Key: "hi"}, {Key: "score_1", Title: "1"}, {Key: "score_2", Title: "2"},
		{Key: "score_3", Title: "3"}, {Key: "score_4", Title: "4"}, {Key: "score_5", Title: "5"}}}
	for _, x := range d.Arms {
		row := []any{x.Label, len(x.Runs), fixed2(&x.Score), fixed2(x.Lo), fixed2(x.Hi)}
		for k := 1; k <= 5; k++ {
			row = append(row, x.Of[k])
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// fixed2 rounds to two digits: a judge's scores are coarse. Nil stays nil.
func fixed2(v *float64) any {
	if v == nil {
		return nil
	}
	return quantity.Fixed(*v, 2)
}

func diversityPair(x diversity.Pair) string {
	text := fmt.Sprintf("%s − %s: %+.2f", x.A, x.B, x.Delta)
	if x.Lo != nil {
		text += fmt.Sprintf(" [%+.2f, %+.2f]", *x.Lo, *x.Hi)
	}
	if x.PHolm != nil {
		text += "  p " + probability(x.PHolm)
	}
	return text
}
