package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"exp/eval/grade"
	"exp/eval/grade/peer"
	"exp/eval/layout"
	"exp/eval/rows"
	"exp/train/rollout"
)

// Math is mathematics in words with an answer that a grader of answers compares:
// GSM8K, MATH, AIME, DAPO's training set, or any file in a layout that package layout
// knows. Problems are read, never made.
//
// The prompt is the problem as it stands in the file; verl's files have the
// instructions and the form of the answer written into it.
type Math struct {
	Grader string // one of Graders
}

const (
	// noAnswer is what math_dapo takes a response without an answer for.
	noAnswer     = "[INVALID]"
	strictGrader = "exp_strict" // our own; what is not sure is wrong
	routedGrader = "verl"       // by the problem's data source, see peer.Route
)

// Graders names what Math.Grader may be: the graders of package peer, "exp_strict",
// which is our own counting as wrong what it is not sure of, and "verl", which is for
// each problem the one that verl takes for its data source.
func Graders() []string { return append(peer.Names(), strictGrader, routedGrader) }

// ErrNotGenerated is returned by Generate of a task whose problems are read.
var ErrNotGenerated = errors.New("problems of this task are read from a file")

type mathTask struct {
	reward Reward
	judge  func(golds []string, source, response string) (grade.Verdict, error)
}

func newMath(cfg Math, reward Reward) (*mathTask, error) {
	t := &mathTask{reward: reward}
	switch cfg.Grader {
	case strictGrader:
		t.judge = firstRight(func(gold, response string) grade.Verdict {
			v := grade.Response(gold, response)
			if v.Correct && !v.Sure {
				v.Correct, v.Reason = false, "not sure: "+v.Reason
			}
			return v
		})
	case routedGrader:
		t.judge = func(golds []string, source, response string) (grade.Verdict, error) {
			v, _, err := peer.DefaultScore(source, golds, response)
			return v, err
		}
	default:
		g, err := peer.ByName(cfg.Grader)
		if err != nil {
			return nil, &ConfigError{Key: "task.math.grader",
				Problem: fmt.Sprintf("there is no grader %q; there are %s", cfg.Grader, strings.Join(Graders(), ", "))}
		}
		t.judge = firstRight(g.Response)
	}
	return t, nil
}

// firstRight grades against each of several gold answers: the first that fits counts,
// and if none does the first verdict.
func firstRight(judge func(gold, response string) grade.Verdict) func([]string, string,
	string) (grade.Verdict, error) {
	return func(golds []string, _, response string) (grade.Verdict, error) {
		first := judge(golds[0], response)
		if first.Correct {
			return first, nil
		}
		for _, gold := range golds[1:] {
			if v := judge(gold, response); v.Correct {
				return v, nil
			}
		}
		return first, nil
	}
}

// Alphabet is empty: such problems are for models with a tokenizer of their own.
func (t *mathTask) Alphabet() string { return "" }

// Generate returns ErrNotGenerated.
func (t *mathTask) Generate(Split, int, uint64) ([]rollout.Problem, error) {
	return nil, ErrNotGenerated
}

// Grade judges the whole completion. Verdict.Answer is the first gold answer if the
// completion is right, so that right answers are one answer however they are written;
// how they are stands in the reason. Another answer is given as the grader took it out.
func (t *mathTask) Grade(_ context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	facts, err := layout.FactsOf(p)
	if err != nil {
		return rollout.Verdict{}, err
	}
	golds := append([]string{p.Answer}, facts.Answers...)
	v, err := t.judge(golds, facts.Source, c.Text)
	if err != nil {
		return rollout.Verdict{}, fmt.Errorf("problem %s: %w", p.ID, err)
	}
	answer, reason := v.Extracted, v.Reason
	switch {
	case v.Correct:
		if answer != p.Answer {
			reason += ": " + answer
		}
		answer = p.Answer
	case answer == noAnswer:
		answer = ""
	}
	return t.reward.verdict(v.Correct, answer, reason), nil
}

// parseRow reads a row in any known layout.
func (t *mathTask) parseRow(line []byte) (rollout.Problem, error) {
	row := rows.Row{Where: "row"}
	d := json.NewDecoder(strings.NewReader(string(line)))
	d.UseNumber()
	if err := d.Decode(&row.Fields); err != nil {
		return rollout.Problem{}, err
	}
	l, err := layout.Detect(row)
	if err != nil {
		return rollout.Problem{}, err
	}
	return l.Parse(row)
}

// readProblems reads a file in any form and layout that is known. Problems that come
// again are left out: training files hold a hundred copies of each.
func (t *mathTask) readProblems(path string) ([]rollout.Problem, error) {
	problems, _, err := layout.Problems(rows.Read(path), nil)
	if err != nil {
		return nil, err
	}
	for i := range problems {
		if err := t.check(&problems[i]); err != nil {
			return nil, fmt.Errorf("%s: problem %s: %w", path, problems[i].ID, err)
		}
	}
	return problems, nil
}

// check refuses a gold answer that stands for "no answer" in the scorer: a response
// without one would be right.
func (t *mathTask) check(p *rollout.Problem) error {
	facts, err := layout.FactsOf(p)
	switch {
	case err != nil:
		return err
	case p.Answer == "":
		return errors.New("no gold answer")
	case slices.Contains(append(facts.Answers, p.Answer), noAnswer):
		return errors.New(`the gold answer "[INVALID]" is what math_dapo takes a response without an answer for`)
	}
	return nil
}
