package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"exp/eval"
	"exp/eval/exchange"
	"exp/eval/grade/peer"
	"exp/eval/layout"
	"exp/eval/published"
	"exp/eval/suite"
	"exp/eval/task"
	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/fault"
	"exp/harness/suites"
	"exp/sandbox"
	"exp/train/rollout"
)

func evalCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "eval",
		Category:  "Results",
		Usage:     "score a run or a folder of weights on suites, or responses without a model",
		ArgsUsage: "[RUN | FOLDER]",
		Description: "With RUN: samples and scores suites with the run's final weights. The scores join the run's, under their protocol; nothing is trained, and what is " +
			"stored is not made again: another grader samples nothing. The store must have the suites (exp suite add NAME FILE).\n" +
			"With FOLDER: the same with weights in the layout of Hugging Face, such as a merged model's; the scores are those of a run of their own that trains nothing. " +
			"FOLDER may also hold LoRA adapters in PEFT's layout, if the model that they name is here; else --adapter DIR adds them to the model's folder.\n" +
			"Without: reads what a model answered from a file and grades it again: samples of lm-evaluation-harness, details of lighteval, verl's dumps and generations, " +
			"samples and results of HumanEval, EvalPlus and LiveCodeBench, or rows with id, gold, response (or responses). What a file is shows in its content. " +
			"Gold answers come from the file, or from --suite: a suite of the store, a benchmark's file, or a definition (.yaml). " +
			"Prints avg@n, pass@k and maj@k with 95 % intervals over problems, under each grader and under their union, beside the verdicts that the file carries, " +
			"and a histogram of how answers are written with what each grader accepts of each form. " +
			"Graders: " + strings.Join(suite.Graders(), ", ") + "; verl is for each problem the one that verl takes for its data source. " +
			"Those of programs run them in the sandbox: code by our rules, code_upstream by the published ones, which accept some wrong outputs, code_partial with the share of tests that pass.",
		UsageText: strings.Join([]string{
			"exp eval @last --suite math500 --n 4 # the run's final weights on a suite of the store",
			"exp eval weights/qwen2.5-0.5b --suite gsm8k --suite math500 --limit 50 --temperature 0 --n 1 # a model's folder, on the first problems of two suites",
			"exp eval weights/qwen2.5-0.5b --adapter my-lora --suite gsm8k # the model with LoRA adapters",
			"exp eval @last --suite math500 --grader exp --grader math_dapo # score what was sampled again, side by side",
			"exp eval --responses samples_gsm8k.jsonl # grade a published model's outputs again",
			"exp eval --responses 50.jsonl --suite aime24 --grader exp --grader math_dapo # with the gold answers of a suite",
			"exp eval --responses gen.parquet --protocol flowrl-math --out verdicts.jsonl # every verdict with its reason",
			"exp eval --responses gen.parquet --write lm-eval=samples.jsonl # in another program's form, with our verdicts",
			"exp eval --responses samples.jsonl --suite humaneval # run programs in the sandbox",
		}, "\n"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "responses", Usage: "read responses from `FILE`"},
			&cli.StringSliceFlag{Name: "suite", Usage: "take problems and gold answers from `SUITE`, a name or a file; of weights also several", DefaultText: "from the file itself"},
			&cli.StringSliceFlag{Name: "grader", Usage: "grade with `NAME`; may be given again", DefaultText: "those of the suite"},
			&cli.StringFlag{Name: "k", Usage: "the k of pass@k and maj@k: `N,N`", DefaultText: "powers of two up to n, and n"},
			&cli.BoolFlag{Name: "partial", Usage: "accept problems without responses, or with fewer than others, and say how many"},
			&cli.StringFlag{Name: "protocol", Usage: "the responses were made by protocol `NAME` (--protocol list): its settings are printed, its n is checked"},
			&cli.StringFlag{Name: "published", Usage: "show the scores of `FILE` beside ours: results of lm-evaluation-harness or lighteval, or flowrl_v3, the tables of FlowRL's paper"},
			&cli.StringFlag{Name: "out", Usage: "write the verdicts on each response to `FILE`"},
			&cli.StringSliceFlag{Name: "write", Usage: "write the responses with the first grader's verdicts: `FORM=FILE`, " + strings.Join(append(exchange.WriteFormats(), harnessResults), ", ")},
		}, evalRunFlags()...),
		BashComplete: a.completes(func(c *cli.Context, w word) []candidate {
			switch w.Flag {
			case "grader":
				return plainCandidates(suite.Graders())
			case "suite":
				return a.storedSuites(c.Context)
			case "responses", "published":
				return pathCandidates(w.Text, hasExt(".jsonl", ".json", ".parquet", ".gz"))
			}
			return nil
		}),
		Action: func(c *cli.Context) error {
			args, err := positionals(c, 0, 1)
			if err != nil {
				return err
			}
			if len(args) == 1 && c.String("responses") == "" {
				return a.evalWeights(c, args[0])
			}
			if len(args) == 1 {
				return usagef("either RUN or FOLDER, or --responses FILE, not both").see(a.line.command())
			}
			for _, f := range evalRunFlags() {
				if name := f.Names()[0]; c.IsSet(name) {
					return usagef("--%s is of a run or a folder of weights, and none is given", name).see(a.line.command())
				}
			}
			return a.eval(c)
		},
	}
}

func plainCandidates(list []string) (out []candidate) {
	for _, s := range list {
		out = append(out, candidate{s, ""})
	}
	return out
}

// harnessResults is the form of --write for scores instead of responses.
const harnessResults = "lm-eval-results"

// evaluation is the scoring of one file.
type evaluation struct {
	file     *exchange.File
	suite    *suite.Suite // nil: the problems are those of the file
	protocol *eval.Protocol
	panel    eval.Panel
	ks       []int
	least    int // samples of a problem
	most     int
	missing  int // problems of the suite without responses
	scores   []eval.ColumnScore
	forms    []eval.FormCount
	formOf   []string
	results  []exchange.Result         // published
	digest   ident.Digest              // of the problems
	ends     []map[sandbox.Verdict]int // of programs, by column
}

func (a *app) eval(c *cli.Context) error {
	if c.String("protocol") == "list" {
		return a.out.printTable(protocolTable())
	}
	if c.String("responses") == "" {
		return usagef("RUN, FOLDER or --responses FILE is needed: whose answers are scored").see(a.line.command())
	}
	e, err := a.readEvaluation(c)
	if err != nil {
		return err
	}
	names := e.graders(c.StringSlice("grader"))
	programs, err := runsPrograms(names)
	if err != nil {
		return err
	}
	if programs {
		err = e.gradePrograms(a, c, names)
	} else {
		err = e.grade(c, names)
	}
	if err != nil {
		return err
	}
	e.fileVerdicts()
	if err := e.measure(); err != nil {
		return err
	}
	if path := c.String("out"); path != "" {
		if err := replaceFile(path, e.writeVerdicts); err != nil {
			return err
		}
	}
	for _, to := range c.StringSlice("write") {
		if err := e.export(to); err != nil {
			return err
		}
	}
	return a.out.printDocument(document{Schema: "exp.eval/1", Data: e.data(), Human: func(w io.Writer) error { return e.human(a, w) }})
}

// paperResults are a paper's scores on a suite.
func paperResults(p published.Reference, s *suite.Suite) ([]exchange.Result, error) {
	if s == nil {
		return nil, usagef("--published %s wants --suite, which says whose scores to show", p.Name)
	}
	scores, err := p.Scores(s.Name)
	if err != nil {
		return nil, usagef("--published %s: %w", p.Name, err)
	}
	var list []exchange.Result
	for _, r := range scores {
		list = append(list, exchange.Result{Task: r.Table + ": " + r.Row, Metric: r.Metric + " by " + r.Protocol, Value: r.Value})
	}
	return list, nil
}

// readEvaluation reads the files that the flags name, and finds each response's
// problem.
func (a *app) readEvaluation(c *cli.Context) (*evaluation, error) {
	e := &evaluation{}
	var err error
	if name := c.String("protocol"); name != "" {
		p, err := eval.ProtocolByName(name)
		if err != nil {
			return nil, usagef("--protocol: %w", err)
		}
		e.protocol = &p
	}
	paper, isPaper := published.ByName(c.String("published"))
	if path := c.String("published"); path != "" && !isPaper {
		if e.results, err = exchange.ReadResults(path); err != nil {
			return nil, badFile(err)
		}
	}
	if e.file, err = exchange.Read(c.String("responses")); err != nil {
		return nil, badFile(err)
	}
	if e.suite, err = a.evalSuite(c); err != nil {
		return nil, err
	}
	if isPaper {
		if e.results, err = paperResults(paper, e.suite); err != nil {
			return nil, err
		}
	}
	if e.suite == nil {
		if e.panel.Problems, err = e.file.Problems(); err != nil {
			f := failf(exitUsage, "%w", err)
			f.Help = "--suite NAME or --suite FILE gives the gold answers"
			return nil, f
		}
	} else {
		if e.panel.Problems = e.suite.Problems; len(e.panel.Problems) == 0 {
			return nil, usagef("suite %s has no problems", e.suite.Name)
		}
		reworded, err := e.file.Match(e.panel.Problems)
		if err != nil {
			return nil, badFile(err)
		}
		if reworded > 0 {
			a.warn("%d of %d responses have the id of a problem of %s and a prompt without its text: is this the right suite?", reworded, len(e.file.Responses), e.suite.Name)
		}
	}
	e.panel.Samples = e.file.Samples()
	var b bytes.Buffer
	if err := task.Write(&b, e.panel.Problems); err != nil {
		return nil, err
	}
	e.digest = ident.Sum(b.Bytes())
	if err := e.count(c.Bool("partial")); err != nil {
		return nil, err
	}
	e.ks, err = e.passK(c.String("k"))
	return e, err
}

// badFile words an error about a file of responses.
func badFile(err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return failf(exitNotFound, "%w", err)
	case fault.IsBadFile(err):
		return failf(exitUsage, "%w", err)
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
		return nil, usagef("--suite: responses are of one suite, not of %d", len(names)).see(a.line.command())
	}
	ref := names[0]
	if info, err := os.Stat(ref); err == nil && !info.IsDir() {
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(ref), ".gz"), filepath.Ext(strings.TrimSuffix(ref, ".gz")))
		if _, known := suite.ByName(name); !known {
			name = ""
		}
		return readSuite(name, ref)
	}
	err = a.withStore(func(db *store.DB) error {
		row, err := findSuite(c.Context, db, ref)
		if err != nil {
			return err
		}
		s, err = suites.Load(db, row)
		return err
	})
	return s, err
}

// count checks that there are as many responses as a score needs: what is missing must
// be declared.
func (e *evaluation) count(partial bool) error {
	n := map[string]int{}
	for _, s := range e.panel.Samples {
		n[s.ProblemID]++
	}
	e.missing = len(e.panel.Problems) - len(n)
	e.least, e.most = slices.Min(slices.Collect(maps.Values(n))), slices.Max(slices.Collect(maps.Values(n)))
	var lack string
	switch {
	case partial:
		return nil
	case e.missing > 0:
		lack = fmt.Sprintf("%d of %d problems of %s have no response", e.missing, len(e.panel.Problems), e.suite.Name)
	case e.least != e.most:
		lack = fmt.Sprintf("some problems have %d responses and others %d", e.least, e.most)
	case e.protocol != nil && e.protocol.N != e.most:
		lack = fmt.Sprintf("protocol %s has %d samples per problem; the file has %d", e.protocol.Name, e.protocol.N, e.most)
	default:
		return nil
	}
	f := failf(exitUsage, "%s: %s", e.file.Path, lack)
	f.Help = "--partial scores what there is and says how much that is"
	return f
}

func (e *evaluation) passK(text string) ([]int, error) {
	if text == "" {
		var ks []int
		for k := 1; k < e.least; k *= 2 {
			ks = append(ks, k)
		}
		return append(ks, e.least), nil
	}
	var ks []int
	for part := range strings.SplitSeq(text, ",") {
		k, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || k < 1 {
			return nil, usagef("--k %s: whole numbers from 1 are needed", text)
		}
		if k > e.most {
			return nil, usagef("--k %d: there are at most %d responses to a problem, and pass@k is not extrapolated", k, e.most)
		}
		ks = append(ks, k)
	}
	slices.Sort(ks)
	return slices.Compact(ks), nil
}

// graders are those asked for, else the suite's, else ours and the two that most
// published scores were made with, and verl's choice where it has one for all problems.
func (e *evaluation) graders(asked []string) []string {
	if len(asked) > 0 {
		return asked
	}
	list := []string{"exp", "math_dapo", "math_reward"}
	if e.suite != nil {
		list = e.suite.Graders
	}
	for i := range e.panel.Problems {
		facts, err := layout.FactsOf(&e.panel.Problems[i])
		if err != nil {
			return list
		}
		if _, err := peer.Route(facts.Source); err != nil {
			return list
		}
	}
	return append(slices.Clone(list), "verl")
}

// grade fills the panel: a column a grader, and their union.
func (e *evaluation) grade(c *cli.Context, names []string) error {
	for _, name := range names {
		g, err := suite.Grader(name)
		if err != nil {
			return usagef("--grader: %w", err)
		}
		verdicts, err := eval.Score(c.Context, g, e.panel.Problems, e.panel.Samples, runtime.GOMAXPROCS(0))
		switch {
		case c.Context.Err() != nil:
			return stoppedf(c.Context, "grading stopped")
		case errors.Is(err, peer.ErrNoRoute):
			return usagef("--grader %s: %w", name, err)
		case err != nil:
			return err
		}
		e.panel.Columns = append(e.panel.Columns, eval.Column{Grader: name, Verdicts: verdicts, Classes: name == "exp" || name == "exp_strict"})
	}
	if len(e.panel.Columns) > 1 {
		e.panel.Columns = append(e.panel.Columns, eval.Union(e.panel.Columns))
	}
	return nil
}

// fileVerdicts adds what the file says itself.
func (e *evaluation) fileVerdicts() {
	for _, name := range ownVerdicts(e.file.ScoreNames()) {
		col := eval.Column{Grader: "file:" + name}
		for i, r := range e.file.Responses {
			v := rollout.Verdict{Status: rollout.Graded, Correct: r.Scores[name] >= 1, Reward: r.Scores[name], Reason: "as the file has it"}
			v.Answer = e.panel.Columns[0].Verdicts[i].Answer
			col.Verdicts = append(col.Verdicts, v)
		}
		e.panel.Columns = append(e.panel.Columns, col)
	}
}

// ownVerdicts picks, of the numbers that a file has for each response, those that are
// verdicts: acc where verl wrote it, else score, else all.
func ownVerdicts(names []string) []string {
	for _, best := range []string{"acc", "score"} {
		if slices.Contains(names, best) {
			return []string{best}
		}
	}
	return names
}

func (e *evaluation) measure() error {
	for _, col := range e.panel.Columns {
		// The seed of resampling comes from what is resampled.
		s, err := e.panel.Measure(col, e.ks, ident.Seed(0, "eval/responses/"+e.digest.String()))
		if err != nil {
			return err
		}
		if e.ends != nil {
			s.Votes = nil // equal programs are no votes for an answer
		}
		if o, ok := suite.CodeOptions(col.Grader); ok && o.Partial {
			if m, ok := e.partialScore(col); ok {
				s.Metrics = append(s.Metrics, m)
			}
		}
		e.scores = append(e.scores, s)
	}
	if e.ends != nil { // programs have no form of answer
		for range e.panel.Samples {
			e.formOf = append(e.formOf, "")
		}
		return nil
	}
	forms, of := e.panel.Forms()
	e.forms = forms
	for _, f := range of {
		e.formOf = append(e.formOf, string(f))
	}
	return nil
}

func protocolTable() table {
	t := table{Schema: "exp.protocol/1", Columns: []column{{Key: "name", ID: true}, {Key: "n"}, {Key: "temperature"}, {Key: "top_p"}, {Key: "top_k"},
		{Key: "max_prompt_tokens", Title: "prompt"}, {Key: "max_new_tokens", Title: "response"}, {Key: "truncate", Title: "cut"}, {Key: "dtype"}, {Key: "about", Wrap: true},
		{Key: "prompt", Wide: true}, {Key: "metrics", Wide: true}, {Key: "grader", Wide: true}, {Key: "source", Wide: true}}}
	for _, p := range eval.Protocols() {
		t.Rows = append(t.Rows, []any{p.Name, p.N, p.Temperature, p.TopP, p.TopK, p.MaxPromptTokens, p.MaxNewTokens, p.Truncate, p.DType, p.About, p.Prompt, p.Metrics, p.Grader, p.Source})
	}
	return t
}
