// Package rescore grades recorded answers again: responses from a file, by this program
// or another, under several graders side by side, with confidence intervals and
// statistics of how the answers are written. It samples and records nothing.
package rescore

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"exp/eval"
	"exp/eval/exchange"
	"exp/eval/grade/extract"
	"exp/eval/grade/peer"
	"exp/eval/layout"
	"exp/eval/published"
	"exp/eval/suite"
	"exp/eval/task"
	"exp/experiments/ident"
	"exp/sandbox"
)

// Options select what to score.
type Options struct {
	File      *exchange.File
	Suite     *suite.Suite      // source of problems and gold answers; nil: File
	Protocol  *eval.Protocol    // that the responses follow; nil: unknown
	Published []exchange.Result // scores to show next to ours
	Partial   bool              // accept problems without responses, or with fewer than others
	K         string            // the k of pass@k and maj@k, "1,4"; "": powers of two up to n, and n
}

// InputError says why responses cannot be scored as requested.
type InputError struct {
	Err  error
	Help string // what to do; may be empty
}

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

func inputf(format string, args ...any) error { return &InputError{Err: fmt.Errorf(format, args...)} }

// Evaluation is the scoring of one file.
type Evaluation struct {
	o        Options
	reworded int
	panel    eval.Panel
	ks       []int
	least    int // fewest samples of a problem
	most     int
	missing  int // problems of the suite without responses
	scores   []eval.ColumnScore
	forms    []eval.FormCount
	formOf   []string
	digest   ident.Digest              // digest of the problems
	ends     []map[sandbox.Verdict]int // how programs ended, by column
}

// New matches each response with its problem and checks that there are enough
// responses. Errors about the files or the options are *InputError, or from package
// eval/rows.
func New(o Options) (e *Evaluation, err error) {
	e = &Evaluation{o: o}
	if o.Suite == nil {
		if e.panel.Problems, err = o.File.Problems(); err != nil {
			return nil, &InputError{Err: err, Help: "--suite NAME or --suite FILE gives the gold answers"}
		}
	} else {
		if e.panel.Problems = o.Suite.Problems; len(e.panel.Problems) == 0 {
			return nil, inputf("suite %s has no problems", o.Suite.Name)
		}
		if e.reworded, err = o.File.Match(e.panel.Problems); err != nil {
			return nil, err
		}
	}
	e.panel.Samples = o.File.Samples()
	var b bytes.Buffer
	if err := task.Write(&b, e.panel.Problems); err != nil {
		return nil, err
	}
	e.digest = ident.Sum(b.Bytes())
	if err := e.count(); err != nil {
		return nil, err
	}
	e.ks, err = e.passK(o.K)
	return e, err
}

// Reworded returns how many responses have the id of one of the suite's problems but a
// prompt without its text, a sign of the wrong suite.
func (e *Evaluation) Reworded() int { return e.reworded }

// count checks that there are enough responses; the user must allow missing ones.
func (e *Evaluation) count() error {
	n := map[string]int{}
	for _, s := range e.panel.Samples {
		n[s.ProblemID]++
	}
	e.missing = len(e.panel.Problems) - len(n)
	e.least, e.most = slices.Min(slices.Collect(maps.Values(n))), slices.Max(slices.Collect(maps.Values(n)))
	p := e.o.Protocol
	var lack string
	switch {
	case e.o.Partial:
		return nil
	case e.missing > 0:
		lack = fmt.Sprintf("%d of %d problems of %s have no response", e.missing, len(e.panel.Problems),
			e.o.Suite.Name)
	case e.least != e.most:
		lack = fmt.Sprintf("some problems have %d responses and others %d", e.least, e.most)
	case p != nil && p.N != e.most:
		lack = fmt.Sprintf("protocol %s has %d samples per problem; the file has %d", p.Name, p.N, e.most)
	default:
		return nil
	}
	return &InputError{Err: fmt.Errorf("%s: %s", e.o.File.Path, lack),
		Help: "--partial scores the responses that are there and counts them"}
}

func (e *Evaluation) passK(text string) ([]int, error) {
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
			return nil, inputf("--k %s: give whole numbers from 1", text)
		}
		if k > e.most {
			return nil, inputf("--k %d: there are at most %d responses to a problem, and pass@k is not extrapolated",
				k, e.most)
		}
		ks = append(ks, k)
	}
	slices.Sort(ks)
	return slices.Compact(ks), nil
}

// graders returns the requested graders, else the suite's, else ours, the two behind
// most published scores, and verl's choice if it has one for all problems.
func (e *Evaluation) graders(asked []string) []string {
	if len(asked) > 0 {
		return asked
	}
	list := []string{"exp", "math_dapo", "math_reward"}
	if e.o.Suite != nil {
		list = e.o.Suite.Graders
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

// measure scores every column and counts how the answers are written.
func (e *Evaluation) measure() error {
	for _, col := range e.panel.Columns {
		// The resampling seed comes from the resampled data.
		s, err := e.panel.Measure(col, e.ks, ident.Seed(0, "eval/responses/"+e.digest.String()))
		if err != nil {
			return err
		}
		if e.ends != nil {
			s.Votes = nil // equal programs are not votes for an answer
		}
		if o, ok := suite.CodeOptions(col.Grader); ok && o.Partial {
			if m, ok := e.panel.TestsPassed(col); ok {
				s.Metrics = append(s.Metrics, m)
			}
		}
		if m, ok := e.panel.Score(col); ok {
			s.Metrics = append(s.Metrics, m)
		}
		if slices.Contains(task.InstructionGraders(), col.Grader) {
			if m, ok := e.panel.Followed(col); ok {
				s.Metrics = append(s.Metrics, m)
			}
		}
		e.scores = append(e.scores, s)
	}
	instructed := slices.ContainsFunc(e.panel.Columns, func(c eval.Column) bool {
		return slices.Contains(task.InstructionGraders(), c.Grader)
	})
	if e.ends != nil || instructed { // programs have no answer form, and these answers have any
		e.formOf = make([]string, len(e.panel.Samples))
		return nil
	}
	var of []extract.Form
	e.forms, of = e.panel.Forms()
	for _, f := range of {
		e.formOf = append(e.formOf, string(f))
	}
	return nil
}

// PublishedBy returns a paper's scores on a suite.
func PublishedBy(paper published.Reference, s *suite.Suite) ([]exchange.Result, error) {
	if s == nil {
		return nil, inputf("--published %s needs --suite to select the scores", paper.Name)
	}
	scores, err := paper.Scores(s.Name)
	if err != nil {
		return nil, inputf("--published %s: %w", paper.Name, err)
	}
	var list []exchange.Result
	for _, r := range scores {
		list = append(list, exchange.Result{Task: r.Table + ": " + r.Row, Metric: r.Metric + " by " + r.Protocol,
			Value: r.Value})
	}
	return list, nil
}
