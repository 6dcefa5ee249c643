// Package exchange reads and writes the files in which neighbouring programs keep what
// a model answered: samples of lm-evaluation-harness, details of lighteval, generations
// and validation dumps of verl, samples and results of HumanEval and EvalPlus, output of
// LiveCodeBench; and rows of our own.
//
// Which of them a file is shows in its fields (Formats), not in its name. Errors are
// the system's or *rows.Error, with file, line or row, and field.
//
// It takes responses, the gold answers and the verdicts that stand beside them, and
// leaves the rest. It does not grade.
package exchange

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"exp/eval"
	"exp/eval/layout"
	"exp/eval/rows"
	"exp/train/rollout"
)

// Response is one response to one problem, as another program wrote it down. Fields
// that the format does not have are empty.
type Response struct {
	Item   string   // the problem's id; of a format without ids, its number in the file
	Sample int      // which of the problem's responses, from 0, in the order of the file
	Text   string   // what the model wrote; of code formats the program
	Prompt string   // what the model was given
	Golds  []string // gold answers, of which any is right
	Source string   // the data set, by which verl chooses its grader
	Finish rollout.Finish
	// Scores are the verdicts that the file carries, by their names there. What is at
	// least 1 is right.
	Scores map[string]float64
	Where  string // file and line or row, for errors
}

// File is what a file of responses holds.
type File struct {
	Path      string
	Format    string // a name of Formats
	Responses []Response

	docs map[string]int // of lm-evaluation-harness: the first response of a document
}

// Format is a form of file.
type Format struct {
	Name   string
	About  string   // one line
	Fields []string // that tell it: all of them are in its rows
	read   func(r rows.Row, f *File) error
}

// Formats lists the forms in the order in which Read tries them.
func Formats() []Format {
	return []Format{
		{"lm-eval", "lm-evaluation-harness: samples_TASK_TIME.jsonl", []string{"doc_id", "doc", "resps"}, readHarness},
		{"lighteval", "lighteval: details_TASK_TIME.parquet", []string{"doc", "model_response"}, readLighteval},
		{"lighteval", "lighteval's earlier details", []string{"__doc__", "__model_response__"}, readLighteval},
		{"verl-parquet", "verl: its data with a column of responses", []string{"prompt", "responses", "reward_model"},
			readGenerations},
		{"verl-dump", "verl: rollout and validation dumps, STEP.jsonl", []string{"input", "output"}, readDump},
		{"evalplus", "EvalPlus: *_eval_results.json", []string{"eval"}, readEvalPlus},
		{"lcb", "LiveCodeBench: output, with or without verdicts", []string{"question_id", "output_list"},
			readLiveCodeBench},
		{"lcb-custom", "LiveCodeBench: input of the custom evaluator", []string{"question_id", "code_list"},
			readLiveCodeBench},
		{"humaneval", "HumanEval and EvalPlus: samples, results", []string{"task_id", "completion"}, readHumanEval},
		{"humaneval", "EvalPlus: samples of whole programs", []string{"task_id", "solution"}, readHumanEval},
		{"exp", "ours: id, gold, response or responses; also problem, source, finish", []string{"response"}, readOurs},
		{"exp", "the same with several responses a row", []string{"responses"}, readOurs},
		{"exp-samples", "ours: exp samples -o jsonl", []string{"item", "k", "completion"}, readSamples},
	}
}

// ProgramFormats are the formats whose responses are programs, and not texts with a
// program somewhere in them.
func ProgramFormats() []string { return []string{"humaneval", "evalplus", "lcb-custom"} }

// ErrScores is wrapped by the error for a file that has scores and no responses.
var ErrScores = errors.New("it holds scores and no responses")

// Read reads a file of responses.
func Read(path string) (*File, error) {
	f := &File{Path: path}
	var form *Format
	for row, err := range rows.Read(path) {
		if err != nil {
			return nil, err
		}
		if form == nil {
			if form, err = detect(row); err != nil {
				return nil, err
			}
			f.Format = form.Name
		}
		if err := form.read(row, f); err != nil {
			return nil, err
		}
	}
	if len(f.Responses) == 0 {
		return nil, &rows.Error{Where: path, Err: errors.New("no responses")}
	}
	f.number()
	return f, nil
}

// detect finds the format of the first row.
func detect(r rows.Row) (*Format, error) {
	var known []string
	for _, form := range Formats() {
		if r.Has(form.Fields...) {
			return &form, nil
		}
		known = append(known, form.Name+" ("+strings.Join(form.Fields, ", ")+")")
	}
	if isResults(r) {
		return nil, r.Errorf("", "%w: give the file with the responses, such as samples_*.jsonl or details_*.parquet",
			ErrScores)
	}
	return nil, r.Errorf("", "no known form of responses among the fields %s; known are %s",
		strings.Join(slices.Sorted(maps.Keys(r.Fields)), ", "), strings.Join(known, "; "))
}

// number counts the responses of each problem. A format without ids gets one for each
// different prompt, or gold answer where there is no prompt.
func (f *File) number() {
	ids := map[string]string{}
	next := map[string]int{}
	for i := range f.Responses {
		r := &f.Responses[i]
		if r.Item == "" {
			key := r.Prompt + "\x00" + strings.Join(r.Golds, "\x00")
			if ids[key] == "" {
				ids[key] = strconv.Itoa(len(ids))
			}
			r.Item = ids[key]
		}
		r.Sample = next[r.Item]
		next[r.Item]++
	}
}

// Problems returns the problems that the file itself describes, in its order. A
// response without a gold answer, or with another one than the first of its problem, is
// an error.
func (f *File) Problems() ([]rollout.Problem, error) {
	var problems []rollout.Problem
	owner := map[string]int{}
	for _, r := range f.Responses {
		if len(r.Golds) == 0 {
			return nil, &rows.Error{Where: r.Where, Err: errors.New("no gold answer; name the suite that has them")}
		}
		k, seen := owner[r.Item]
		if !seen {
			p := rollout.Problem{ID: r.Item, Prompt: r.Prompt}
			if err := layout.SetFacts(&p, r.Golds, r.Source); err != nil {
				return nil, &rows.Error{Where: r.Where, Err: err}
			}
			owner[r.Item] = len(problems)
			problems = append(problems, p)
			continue
		}
		if problems[k].Answer != r.Golds[0] {
			return nil, &rows.Error{Where: r.Where, Err: fmt.Errorf("problem %s has the gold answer %q here and "+
				"%q before", r.Item, r.Golds[0], problems[k].Answer)}
		}
	}
	return problems, nil
}

// Samples are the responses as those of an evaluation.
func (f *File) Samples() []eval.Sample {
	var list []eval.Sample
	for _, r := range f.Responses {
		list = append(list, eval.Sample{ProblemID: r.Item, K: r.Sample, Completion: rollout.Completion{Text: r.Text,
			Finish: r.Finish}})
	}
	return list
}

// ScoreNames are the names of the verdicts that every response of the file has, sorted.
func (f *File) ScoreNames() []string {
	var names []string
	for name := range f.Responses[0].Scores {
		if !slices.ContainsFunc(f.Responses, func(r Response) bool { _, ok := r.Scores[name]; return !ok }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
