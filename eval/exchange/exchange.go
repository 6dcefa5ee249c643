// Package exchange reads and writes files of model responses that other programs use: samples of
// lm-evaluation-harness, details of lighteval, generations and validation dumps of verl, samples and
// results of HumanEval and EvalPlus, output of LiveCodeBench; and our own rows.
//
// The format is detected from the fields (Formats), not the name. Errors are system errors or *rows.Error,
// with file, line or row, and field.
//
// The package reads responses with their gold answers and verdicts and ignores the rest. It does not grade.
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

// Response is one response to one problem as another program wrote it. Fields that the format lacks are
// empty.
type Response struct {
	Item   string   // the problem's id; without ids in the format, its number in the file
	Sample int      // index among the problem's responses, from 0, in file order
	Text   string   // what the model wrote; in code formats the program
	Prompt string   // what the model was given
	Golds  []string // equally right gold answers
	Source string   // the data set; verl picks its grader by it
	Finish rollout.Finish
	// Scores holds the file's own verdicts under their names there. A value of at least 1 means right.
	Scores map[string]float64
	Where  string // file and line or row, for errors
}

// File is the content of a file of responses.
type File struct {
	Path      string
	Format    string // a name of Formats
	Responses []Response

	docs map[string]int // lm-evaluation-harness: document -> index of its first response
}

// Format is a file format.
type Format struct {
	Name   string
	Fields []string // the fields that identify it: its rows have all of them
	read   func(r rows.Row, f *File) error
}

// Formats lists the formats in the order Read tries them.
func Formats() []Format {
	return []Format{
		{"lm-eval", []string{"doc_id", "doc", "resps"}, readHarness},            // samples_TASK_TIME.jsonl
		{"lighteval", []string{"doc", "model_response"}, readLighteval},         // details_TASK_TIME.parquet
		{"lighteval", []string{"__doc__", "__model_response__"}, readLighteval}, // of earlier releases
		{"verl-parquet", []string{"prompt", "responses", "reward_model"}, readGenerations},
		{"verl-dump", []string{"input", "output"}, readDump},                    // of rollouts, STEP.jsonl
		{"evalplus", []string{"eval"}, readEvalPlus},                            // *_eval_results.json
		{"lcb", []string{"question_id", "output_list"}, readLiveCodeBench},      // with or without verdicts
		{"lcb-custom", []string{"question_id", "code_list"}, readLiveCodeBench}, // input of the custom evaluator
		{"humaneval", []string{"task_id", "completion"}, readHumanEval},         // and EvalPlus: samples, results
		{"humaneval", []string{"task_id", "solution"}, readHumanEval},           // whole programs
		{"exp", []string{"response"}, readOurs},                                 // with id, gold; see readOurs
		{"exp", []string{"responses"}, readOurs},                                // several in a row
		{"exp-samples", []string{"item", "k", "completion"}, readSamples},       // exp samples -o jsonl
	}
}

// ProgramFormats lists the formats whose responses are bare programs rather than texts that contain a
// program.
func ProgramFormats() []string { return []string{"humaneval", "evalplus", "lcb-custom"} }

// ErrScores is wrapped by the error for a file with scores but no responses.
var ErrScores = errors.New("the file has scores but no responses")

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

// detect finds the format from the first row.
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
	fields := slices.Sorted(maps.Keys(r.Fields))
	for i, name := range fields {
		if r.Fields[name] == nil {
			fields[i] += " (null)"
		}
	}
	return nil, r.Errorf("", "unknown response format with the fields %s; known: %s", strings.Join(fields, ", "),
		strings.Join(known, "; "))
}

// number numbers the responses of each problem. If the format has no ids, each different prompt gets one,
// or each different gold answer without prompts.
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

// Problems returns the problems that the file itself describes, in file order. It is an error if a response
// has no gold answer, or one that differs from the first of its problem.
func (f *File) Problems() ([]rollout.Problem, error) {
	var problems []rollout.Problem
	owner := map[string]int{}
	for _, r := range f.Responses {
		if len(r.Golds) == 0 {
			return nil, &rows.Error{Where: r.Where, Err: errors.New("no gold answer; name the suite that has it")}
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

// Samples returns the responses as samples of an evaluation.
func (f *File) Samples() []eval.Sample {
	var list []eval.Sample
	for _, r := range f.Responses {
		list = append(list, eval.Sample{ProblemID: r.Item, K: r.Sample, Completion: rollout.Completion{Text: r.Text,
			Finish: r.Finish}})
	}
	return list
}

// ScoreNames returns, sorted, the names of the verdicts that every response has.
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
