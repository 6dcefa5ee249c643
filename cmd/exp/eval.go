package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
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
	"exp/harness/hub"
	"exp/harness/inspect"
	"exp/harness/plan"
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
		Description: "With RUN: samples and scores suites with the run's final weights, and stores the scores " +
			"with the run. Nothing is trained or recomputed: another grader needs no sampling. Suites come from " +
			"the store (exp suite add) or a file, which then joins them.\n" +
			"With FOLDER: the same for weights in Hugging Face's layout, such as a merged model, for a checkpoint " +
			"that exp merge reads, or for hub:ORG/NAME@REV, fetched by exp hub get. The scores belong to a new run " +
			"that trains nothing. FOLDER may also hold LoRA adapters (PEFT) whose model is here; otherwise " +
			"--adapter DIR adds them to its folder.\n" +
			"Without either: reads a model's answers from a file and grades them again: samples of " +
			"lm-evaluation-harness, details of lighteval, verl's dumps and generations, samples and results of " +
			"HumanEval, EvalPlus and LiveCodeBench, or rows with id, gold, response (or responses). The content " +
			"tells the format. Gold answers come from the file or from --suite: a suite of the store, a " +
			"benchmark's file, or a definition (.yaml). Prints avg@n, pass@k and maj@k with 95 % intervals over " +
			"problems, for each grader and for their union, next to the verdicts in the file, and a histogram " +
			"of answer forms with what each grader accepts. Graders: " + strings.Join(suite.Graders(), ", ") +
			"; verl means, for each problem, the grader that verl picks for its data source. The graders of " +
			"programs run them in the sandbox: code by our rules, code_upstream by the published ones (they " +
			"accept some wrong outputs), code_partial by the share of passed tests. ifeval and ifeval_loose check " +
			"the instructions of the prompts of IFEval and IFBench. With --likelihood: " +
			strings.Join(eval.LikelihoodGraders(), ", ") + ".",
		UsageText: strings.Join([]string{
			"exp eval @last --suite math500 --n 4 # a run's final weights on a suite of the store",
			"exp eval DIR --suite gsm8k --suite math500 --limit 50 --temperature 0 --n 1 # a " +
				"model's folder, on the first problems of two suites",
			"exp eval weights/qwen2.5-0.5b --adapter my-lora --suite gsm8k # the model with LoRA adapters",
			"exp eval weights/llama-3.2-1b --suite arc --likelihood option # compare likelihoods of options",
			"exp eval DIR --suite mmlu --likelihood letter --shots 5 --shots-suite mmlu_dev # five examples",
			"exp eval @last --suite math500 --grader exp --grader math_dapo # score stored samples again, " +
				"side by side",
			"exp eval @last --suite math500 --score-by models/judge # have a reward model choose among them",
			"exp eval --responses samples_gsm8k.jsonl # grade a published model's outputs again",
			"exp eval --responses 50.jsonl --suite aime24 --grader exp --grader math_dapo # with the gold answers " +
				"of a suite",
			"exp eval --responses gen.parquet --protocol flowrl-math --out verdicts.jsonl # every verdict with " +
				"its reason",
			"exp eval --responses gen.parquet --write lm-eval=samples.jsonl # in another program's format, with " +
				"our verdicts",
			"exp eval --responses samples.jsonl --suite humaneval # run programs in the sandbox",
		}, "\n"),
		Flags: append(responseFlags(), evalRunFlags()...),
		BashComplete: a.Completes(func(c *cli.Context, w cli.Word) []cli.Candidate {
			switch w.Flag {
			case "grader":
				return cli.Candidates(append(suite.Graders(), eval.LikelihoodGraders()...))
			case "device":
				return deviceCandidates()
			case "suite":
				return a.storedSuites(c.Context)
			case "responses", "published":
				return cli.PathCandidates(w.Text, cli.HasExt(".jsonl", ".json", ".parquet", ".gz"))
			}
			return nil
		}),
		Action: cli.WithArgs(0, 1, a.evalAny),
	}
}

// evalAny scores weights, or the responses in a file.
func (a *app) evalAny(c *cli.Context, args []string) error {
	switch {
	case len(args) == 1 && c.String("responses") == "":
		return a.evalWeights(c, args[0])
	case len(args) == 1:
		return a.Usagef("either RUN or FOLDER, or --responses FILE, not both")
	}
	for _, f := range evalRunFlags() {
		if name := f.Names()[0]; c.IsSet(name) {
			return a.Usagef("--%s needs a RUN or a FOLDER of weights", name)
		}
	}
	return a.eval(c)
}

// responseFlags are the flags for responses in a file.
func responseFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "responses", Usage: "read responses from `FILE`"},
		&cli.StringSliceFlag{Name: "suite", Usage: "take problems and gold answers from `SUITE`, a name or a " +
			"file; for weights, may be given again", DefaultText: "from the file itself"},
		&cli.StringSliceFlag{Name: "grader", Usage: "grade with `NAME`; may be given again; for weights also none: " +
			"as in the suite, whatever a run's configuration says",
			DefaultText: "as in the suite"},
		&cli.StringFlag{Name: "k", Usage: "the k of pass@k and maj@k: `N,N`",
			DefaultText: "powers of two up to n, and n"},
		&cli.BoolFlag{Name: "partial", Usage: "accept problems with no or fewer responses than others, " +
			"and count them"},
		&cli.StringFlag{Name: "protocol", Usage: "the responses were made by protocol `NAME` (--protocol list): " +
			"its settings are printed, its n is checked"},
		&cli.StringFlag{Name: "published", Usage: "show the scores in `FILE` next to ours: results of " +
			"lm-evaluation-harness or lighteval, or flowrl_v3, the tables of FlowRL's paper"},
		&cli.StringFlag{Name: "out", Usage: "write the verdicts for each response to `FILE`"},
		&cli.StringSliceFlag{Name: "write", Usage: "write the responses with the first grader's verdicts: " +
			"`FORM=FILE`, " + strings.Join(rescore.WriteForms(), ", ")},
	}
}

func (a *app) eval(c *cli.Context) error {
	if c.String("protocol") == "list" {
		return a.Out.PrintTable(protocolTable())
	}
	if c.String("responses") == "" {
		return a.Usagef("name what to score: RUN, FOLDER or --responses FILE")
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

// readEvaluation reads the files that the flags name and matches responses to problems.
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
		a.Warn("%d of %d responses have the id of a problem of %s, but their prompt lacks its text: is this "+
			"the right suite?", n, len(o.File.Responses), o.Suite.Name)
	}
	return e, nil
}

// badInput gives errors in the user's input the exit code of bad usage.
func badInput(err error) error {
	var bad *rescore.InputError
	if errors.As(err, &bad) {
		return cli.Failf(cli.ExitUsage, "%w", err).Advise(bad.Help)
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

// evalSuite returns the suite that --suite names, from the store or a file.
func (a *app) evalSuite(c *cli.Context) (s *suite.Suite, err error) {
	names := c.StringSlice("suite")
	switch len(names) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, a.Usagef("--suite: responses belong to one suite, not %d", len(names))
	}
	ref := names[0]
	if isFile(ref) {
		s, _, _, err := a.readSuiteFile(ref)
		return s, err
	}
	err = cli.With(a.OpenStore, func(db *store.DB) error {
		row, err := findSuite(c.Context, db, ref)
		if err != nil {
			return err
		}
		s, err = suites.Load(db, row)
		return err
	})
	return s, err
}

// isFile reports whether a --suite is a file and not the name of a suite: a name has
// neither a dot nor a slash.
func isFile(ref string) bool {
	info, err := os.Stat(ref)
	return err == nil && !info.IsDir() && strings.ContainsAny(ref, "./"+string(filepath.Separator))
}

// namesFile reports whether a --suite without a file looks like a path.
func namesFile(ref string) bool {
	return strings.ContainsRune(ref, filepath.Separator) ||
		slices.Contains([]string{".jsonl", ".json", ".parquet", ".csv", ".tsv", ".yaml", ".yml", ".gz", ".zst"},
			filepath.Ext(ref))
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

// evalModel scores a folder of weights on suites. It is recorded as a run that trains
// nothing, so repeating it reads the store.
func (a *app) evalModel(c *cli.Context, db *store.DB, dir string, suites []string, values []config.Value) error {
	f, err := a.modelAndAdapter(c, dir)
	if err != nil {
		return err
	}
	if f.Dir == "" {
		return adapterWithoutModel(f.Adapter, "exp eval MODEL --adapter")
	}
	if v := a.Getenv("EXP_THREADS"); v != "" {
		values = append(values, config.Value{Path: "compute.threads", Value: v, From: "EXP_THREADS"})
	}
	for _, s := range modelSettings() {
		values = s.appendTo(values, c)
	}
	generation, err := a.generation(c, f.Dir)
	if err != nil {
		return err
	}
	r, err := evaluate.Folder{Folder: f, Ref: hubRef(c, f, dir), Find: a.hubCache().Find,
		User: a.userConfig(), Values: values, Generation: generation, Sets: c.StringSlice("set")}.Config()
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return a.dryRun(c.Context, []*config.Resolved{r}, nil, 1)
	}
	if _, err := harness.RequireAll(c.Context, db, r, harness.Alone()); err != nil {
		return err
	}
	return a.scoreSuites(c, db, plan.Wanted{Config: r, Seed: r.Run.Seed}, suites,
		harness.Options{NoCache: c.Bool("rescore")})
}

// hubRef is the argument if it names the model on a hub, else empty: adapters that name
// their model are not the model.
func hubRef(c *cli.Context, f inspect.Folder, arg string) string {
	if hub.IsRef(arg) && f.Adapter == c.String("adapter") {
		return arg
	}
	return ""
}

// modelSettings lists the flags of exp eval FOLDER that set keys outside the protocol.
func modelSettings() []evalSetting {
	return []evalSetting{{"template", "data.chat"}, {"system", "data.system"}}
}

// evalSuites returns the suites that --suite names, and adds a file's suite to the store.
// With --limit N, suites of the store are cut to their first N problems and renamed
// accordingly.
func (a *app) evalSuites(c *cli.Context, db *store.DB) ([]string, error) {
	names := slices.Clone(c.StringSlice("suite"))
	for i, name := range names {
		if !isFile(name) {
			if namesFile(name) {
				return nil, cli.Failf(cli.ExitNotFound, "--suite %s: no such file", name)
			}
			continue
		}
		if c.Bool("dry-run") {
			return nil, cli.Usagef("--dry-run stores nothing, and %s is not in the store: exp suite add %s", name,
				name)
		}
		kept, err := a.suiteOfFile(c.Context, db, name)
		if err != nil {
			return nil, err
		}
		names[i] = kept.Name
	}
	if !c.IsSet("limit") {
		return names, nil
	}
	n := c.Int("limit")
	if n < 1 {
		return nil, cli.Usagef("--limit %d: it must be at least 1", n)
	}
	var out []string
	for _, name := range names {
		if name == "test" || name == "val" {
			return nil, cli.Usagef("--limit works on suites of the store; %s is the run's own data", name)
		}
		part, err := suites.Limit(c.Context, db, name, n)
		if err != nil {
			return nil, askedOtherwise(suiteMissing(err))
		}
		out = append(out, part)
	}
	return out, nil
}
