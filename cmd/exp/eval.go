package main

import (
	"errors"
	"io"
	"os"
	"strings"

	"exp/cmd/exp/cli"
	"exp/eval"
	"exp/eval/exchange"
	"exp/eval/published"
	"exp/eval/suite"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/evaluate"
	"exp/harness/fault"
	"exp/harness/rescore"
	harness "exp/harness/run"
	"exp/harness/suites"
)

func evalCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "eval",
		Category:  "Results",
		Usage:     "score a run or a folder of weights on suites, or responses without a model",
		ArgsUsage: "[RUN | FOLDER]",
		Description: "With RUN: samples and scores suites with the run's final weights. The scores join the run's, " +
			"under their protocol; nothing is trained, and what is stored is not made again: another grader samples " +
			"nothing. The store must have the suites (exp suite add NAME FILE).\n" +
			"With FOLDER: the same with weights in the layout of Hugging Face, such as a merged model's; the scores " +
			"are those of a run of their own that trains nothing. FOLDER may also hold LoRA adapters in PEFT's " +
			"layout, if the model that they name is here; else --adapter DIR adds them to the model's folder.\n" +
			"Without: reads what a model answered from a file and grades it again: samples of " +
			"lm-evaluation-harness, details of lighteval, verl's dumps and generations, samples and results of " +
			"HumanEval, EvalPlus and LiveCodeBench, or rows with id, gold, response (or responses). What a file is " +
			"shows in its content. Gold answers come from the file, or from --suite: a suite of the store, a " +
			"benchmark's file, or a definition (.yaml). Prints avg@n, pass@k and maj@k with 95 % intervals over " +
			"problems, under each grader and under their union, beside the verdicts that the file carries, and a " +
			"histogram of how answers are written with what each grader accepts of each form. Graders: " +
			strings.Join(suite.Graders(), ", ") + "; verl is for each problem the one that verl takes for its " +
			"data source. Those of programs run them in the sandbox: code by our rules, code_upstream by the " +
			"published ones, which accept some wrong outputs, code_partial with the share of tests that pass.",
		UsageText: strings.Join([]string{
			"exp eval @last --suite math500 --n 4 # the run's final weights on a suite of the store",
			"exp eval weights/qwen2.5-0.5b --suite gsm8k --suite math500 --limit 50 --temperature 0 --n 1 # a " +
				"model's folder, on the first problems of two suites",
			"exp eval weights/qwen2.5-0.5b --adapter my-lora --suite gsm8k # the model with LoRA adapters",
			"exp eval @last --suite math500 --grader exp --grader math_dapo # score what was sampled again, " +
				"side by side",
			"exp eval --responses samples_gsm8k.jsonl # grade a published model's outputs again",
			"exp eval --responses 50.jsonl --suite aime24 --grader exp --grader math_dapo # with the gold answers " +
				"of a suite",
			"exp eval --responses gen.parquet --protocol flowrl-math --out verdicts.jsonl # every verdict with " +
				"its reason",
			"exp eval --responses gen.parquet --write lm-eval=samples.jsonl # in another program's form, with " +
				"our verdicts",
			"exp eval --responses samples.jsonl --suite humaneval # run programs in the sandbox",
		}, "\n"),
		Flags: append(responseFlags(), evalRunFlags()...),
		BashComplete: a.Completes(func(c *cli.Context, w cli.Word) []cli.Candidate {
			switch w.Flag {
			case "grader":
				return cli.Candidates(suite.Graders())
			case "suite":
				return a.storedSuites(c.Context)
			case "responses", "published":
				return cli.PathCandidates(w.Text, cli.HasExt(".jsonl", ".json", ".parquet", ".gz"))
			}
			return nil
		}),
		Action: func(c *cli.Context) error {
			args, err := cli.Positionals(c, 0, 1)
			if err != nil {
				return err
			}
			if len(args) == 1 && c.String("responses") == "" {
				return a.evalWeights(c, args[0])
			}
			if len(args) == 1 {
				return a.Usagef("either RUN or FOLDER, or --responses FILE, not both")
			}
			for _, f := range evalRunFlags() {
				if name := f.Names()[0]; c.IsSet(name) {
					return a.Usagef("--%s is of a run or a folder of weights, and none is given", name)
				}
			}
			return a.eval(c)
		},
	}
}

// responseFlags are the flags for responses in a file.
func responseFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "responses", Usage: "read responses from `FILE`"},
		&cli.StringSliceFlag{Name: "suite", Usage: "take problems and gold answers from `SUITE`, a name or a " +
			"file; of weights also several", DefaultText: "from the file itself"},
		&cli.StringSliceFlag{Name: "grader", Usage: "grade with `NAME`; may be given again",
			DefaultText: "those of the suite"},
		&cli.StringFlag{Name: "k", Usage: "the k of pass@k and maj@k: `N,N`",
			DefaultText: "powers of two up to n, and n"},
		&cli.BoolFlag{Name: "partial", Usage: "accept problems without responses, or with fewer than others, " +
			"and say how many"},
		&cli.StringFlag{Name: "protocol", Usage: "the responses were made by protocol `NAME` (--protocol list): " +
			"its settings are printed, its n is checked"},
		&cli.StringFlag{Name: "published", Usage: "show the scores of `FILE` beside ours: results of " +
			"lm-evaluation-harness or lighteval, or flowrl_v3, the tables of FlowRL's paper"},
		&cli.StringFlag{Name: "out", Usage: "write the verdicts on each response to `FILE`"},
		&cli.StringSliceFlag{Name: "write", Usage: "write the responses with the first grader's verdicts: " +
			"`FORM=FILE`, " + strings.Join(rescore.WriteForms(), ", ")},
	}
}

func (a *app) eval(c *cli.Context) error {
	if c.String("protocol") == "list" {
		return a.Out.PrintTable(protocolTable())
	}
	if c.String("responses") == "" {
		return a.Usagef("RUN, FOLDER or --responses FILE is needed: whose answers are scored")
	}
	e, err := a.readEvaluation(c)
	if err != nil {
		return err
	}
	if err := e.Grade(c.Context, c.StringSlice("grader"), &gradeWatcher{app: a}); err != nil {
		if c.Context.Err() != nil {
			return cli.Stoppedf(c.Context, "grading stopped")
		}
		return badInput(err)
	}
	if path := c.String("out"); path != "" {
		if err := replaceFile(path, e.WriteVerdicts); err != nil {
			return err
		}
	}
	for _, to := range c.StringSlice("write") {
		if err := writeResponses(e, to); err != nil {
			return err
		}
	}
	r := e.Report()
	return a.Out.PrintDocument(cli.Document{Schema: "exp.eval/1", Data: r, Human: func(w io.Writer) error {
		return a.writeEvaluation(w, r)
	}})
}

// readEvaluation reads the files that the flags name, and finds each response's
// problem.
func (a *app) readEvaluation(c *cli.Context) (e *rescore.Evaluation, err error) {
	o := rescore.Options{Partial: c.Bool("partial"), K: c.String("k")}
	if name := c.String("protocol"); name != "" {
		p, err := eval.ProtocolByName(name)
		if err != nil {
			return nil, cli.Usagef("--protocol: %w", err)
		}
		o.Protocol = &p
	}
	paper, isPaper := published.ByName(c.String("published"))
	if path := c.String("published"); path != "" && !isPaper {
		if o.Published, err = exchange.ReadResults(path); err != nil {
			return nil, badFile(err)
		}
	}
	if o.File, err = exchange.Read(c.String("responses")); err != nil {
		return nil, badFile(err)
	}
	if o.Suite, err = a.evalSuite(c); err != nil {
		return nil, err
	}
	if isPaper {
		if o.Published, err = rescore.PublishedBy(paper, o.Suite); err != nil {
			return nil, badInput(err)
		}
	}
	if e, err = rescore.New(o); err != nil {
		return nil, badInput(badFile(err))
	}
	if n := e.Reworded(); n > 0 {
		a.Warn("%d of %d responses have the id of a problem of %s and a prompt without its text: is this the "+
			"right suite?", n, len(o.File.Responses), o.Suite.Name)
	}
	return e, nil
}

// badInput gives errors about what was asked for the exit code of bad usage.
func badInput(err error) error {
	var bad *rescore.InputError
	if errors.As(err, &bad) {
		f := cli.Failf(cli.ExitUsage, "%w", err)
		f.Help = bad.Help
		return f
	}
	return err
}

// badFile words an error about a file of responses.
func badFile(err error) error {
	var bad *rescore.InputError
	switch {
	case errors.As(err, &bad): // badInput words it
		return err
	case errors.Is(err, os.ErrNotExist):
		return cli.Failf(cli.ExitNotFound, "%w", err)
	case fault.IsBadFile(err):
		return cli.Failf(cli.ExitUsage, "%w", err)
	}
	return err
}

// evalSuite is what --suite names: a suite of the store, else a file.
func (a *app) evalSuite(c *cli.Context) (s *suite.Suite, err error) {
	names := c.StringSlice("suite")
	switch len(names) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, a.Usagef("--suite: responses are of one suite, not of %d", len(names))
	}
	ref := names[0]
	if info, err := os.Stat(ref); err == nil && !info.IsDir() {
		return readSuite(suite.KnownName(ref), ref)
	}
	err = a.WithStore(func(db *store.DB) error {
		row, err := findSuite(c.Context, db, ref)
		if err != nil {
			return err
		}
		s, err = suites.Load(db, row)
		return err
	})
	return s, err
}

func protocolTable() cli.Table {
	t := cli.Table{Schema: "exp.protocol/1", Columns: []cli.Column{{Key: "name", ID: true}, {Key: "n"},
		{Key: "temperature"}, {Key: "top_p"}, {Key: "top_k"},
		{Key: "max_prompt_tokens", Title: "prompt"}, {Key: "max_new_tokens", Title: "response"},
		{Key: "truncate", Title: "cut"}, {Key: "dtype"}, {Key: "about", Wrap: true},
		{Key: "prompt", Wide: true}, {Key: "metrics", Wide: true}, {Key: "grader", Wide: true},
		{Key: "source", Wide: true}}}
	for _, p := range eval.Protocols() {
		t.Rows = append(t.Rows, []any{p.Name, p.N, p.Temperature, p.TopP, p.TopK, p.MaxPromptTokens, p.MaxNewTokens,
			p.Truncate, p.DType, p.About, p.Prompt, p.Metrics, p.Grader, p.Source})
	}
	return t
}

// evalModel scores a folder of weights on suites: a run that trains nothing and is
// recorded like any other, so that the same again is taken from the store.
func (a *app) evalModel(c *cli.Context, db *store.DB, dir string, suites []string) error {
	f, err := a.modelAndAdapter(c, dir)
	if err != nil {
		return err
	}
	if f.Dir == "" {
		return adapterWithoutModel(f.Adapter, "exp eval MODEL --adapter")
	}
	values := evalValues(c, suites)
	if v := a.Getenv("EXP_THREADS"); v != "" {
		values = append(values, config.Value{Path: "compute.threads", Value: v, From: "EXP_THREADS"})
	}
	for _, s := range modelSettings() {
		values = s.appendTo(values, c)
	}
	r, err := evaluate.Folder{Folder: f, User: a.userConfig(), Values: values, Sets: c.StringSlice("set")}.Config()
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return a.dryRun(c.Context, []*config.Resolved{r}, nil)
	}
	if _, err := harness.RequireAll(c.Context, db, r); err != nil {
		return err
	}
	return a.scoreSuites(c, db, job{r, r.Run.Seed}, suites, harness.Options{NoCache: c.Bool("rescore")})
}

// modelSettings are the flags of exp eval FOLDER that stand for keys beyond the protocol.
func modelSettings() []evalSetting {
	return []evalSetting{{"template", "data.chat"}, {"system", "data.system"}}
}

// evalSuites are the suites that --suite names. With --limit N those of the store are
// cut to their first N problems, each under a name that says so.
func (a *app) evalSuites(c *cli.Context, db *store.DB) ([]string, error) {
	names := c.StringSlice("suite")
	if !c.IsSet("limit") {
		return names, nil
	}
	n := c.Int("limit")
	if n < 1 {
		return nil, cli.Usagef("--limit %d: at least one problem is needed", n)
	}
	var out []string
	for _, name := range names {
		if name == "test" || name == "val" {
			return nil, cli.Usagef("--limit is for suites of the store; %s is the run's own data", name)
		}
		part, err := suites.Limit(c.Context, db, name, n)
		if err != nil {
			return nil, suiteMissing(err)
		}
		out = append(out, part)
	}
	return out, nil
}
