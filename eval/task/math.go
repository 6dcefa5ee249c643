package task

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"exp/eval/grade"
	"exp/eval/grade/peer"
	"exp/eval/layout"
	"exp/eval/rows"
	"exp/train/rollout"
)

// Math is the task of mathematics in words, with answers checked by a grader: GSM8K, MATH, AIME, DAPO's
// training set, or any file in a layout that package layout knows. Problems are read, never generated.
//
// The prompt is the problem as the file has it; verl's files include the instructions and the answer
// format.
type Math struct {
	Grader string // one of Graders
}

const (
	// noAnswer is the answer that math_dapo assigns to a response without one.
	noAnswer     = "[INVALID]"
	strictGrader = "exp_strict" // our own grader; unsure means wrong
	routedGrader = "verl"       // chosen by the problem's data source, see peer.Route
)

// Graders lists the values of Math.Grader: the graders of package peer; "exp_strict", our own grader with
// unsure answers counted as wrong; and "verl", which uses for each problem the grader that verl picks for
// its data source.
func Graders() []string { return append(peer.Names(), strictGrader, routedGrader) }

type mathTask struct {
	onlyRead
	reward Reward
	routed bool // verl's grader for the data source of each problem
	own    bool // the grader is ours and says what its verdicts rest on
	judge  func(q peer.Question, source, response string) (grade.Verdict, error)
}

func newMath(cfg Math, reward Reward) (*mathTask, error) {
	t := &mathTask{reward: reward, own: OwnGrader(cfg.Grader), routed: cfg.Grader == routedGrader}
	switch cfg.Grader {
	case strictGrader:
		t.judge = firstRight(func(gold, response string) grade.Verdict {
			v := grade.Response(gold, response)
			if v.Correct && !v.Sure {
				v.Correct, v.Basis, v.Reason = false, grade.Proof, "not sure: "+v.Reason
			}
			return v
		})
	case routedGrader:
		t.judge = func(q peer.Question, source, response string) (grade.Verdict, error) {
			v, _, err := peer.DefaultScore(source, q.Golds, response)
			return v, err
		}
	default:
		g, err := peer.ByName(cfg.Grader)
		if err != nil {
			return nil, &ConfigError{Key: "task.math.grader",
				Problem: fmt.Sprintf("unknown grader %q; known: %s", cfg.Grader, strings.Join(Graders(), ", "))}
		}
		t.judge = firstRight(g.Response)
		if g.Posed != nil {
			t.judge = func(q peer.Question, _, response string) (grade.Verdict, error) {
				return g.Posed(q, response), nil
			}
		}
	}
	return t, nil
}

// firstRight grades against each gold answer and returns the first verdict that is right, or the first of
// all if none is.
func firstRight(judge func(gold, response string) grade.Verdict) func(peer.Question, string,
	string) (grade.Verdict, error) {
	return func(q peer.Question, _, response string) (grade.Verdict, error) {
		first := judge(q.Golds[0], response)
		if first.Correct {
			return first, nil
		}
		for _, gold := range q.Golds[1:] {
			if v := judge(gold, response); v.Correct {
				return v, nil
			}
		}
		return first, nil
	}
}

// errNoGold is returned for a problem that graders of mathematics cannot compare with anything.
var errNoGold = errors.New("no gold answer")

// Grade judges the whole completion. For a right completion Verdict.Answer is the first gold answer, so
// that all right answers count as one however they are written; the reason has the wording. A wrong answer
// is given as the grader extracted it.
func (t *mathTask) Grade(_ context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	facts, err := layout.FactsOf(p)
	if err != nil {
		return rollout.Verdict{}, err
	}
	golds := append([]string{p.Answer}, facts.Answers...)
	if len(golds) == 1 && p.Answer == "" {
		return rollout.Verdict{}, fmt.Errorf("problem %s: %w", p.ID, errNoGold)
	}
	q := peer.Question{Golds: golds, Decimals: facts.Decimals, Right: -1}
	if p.Choice != nil {
		q.Options, q.Right = p.Choice.Options, p.Choice.Right
	}
	v, err := t.judge(q, facts.Source, c.Text)
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
	out := t.reward.verdict(v.Correct, answer, reason)
	if v.Form != grade.AnyForm {
		out.Reward = t.reward.formed(v.Correct, v.Form == grade.InForm)
	}
	if v.Shared {
		worst := t.reward.verdict(false, v.Extracted, "").Reward
		out.Reward = worst + v.Share*(t.reward.Correct-worst)
	}
	if t.own {
		out.Basis = basisOf(v.Basis)
	}
	return out, nil
}

func basisOf(b grade.Basis) rollout.Basis {
	switch b {
	case grade.Convention:
		return rollout.ByConvention
	case grade.UnitRule:
		return rollout.ByUnit
	case grade.Guess:
		return rollout.ByGuess
	}
	return rollout.ByProof
}

// readRows reads rows in any known layout. Repeated problems are dropped: training files hold each a hundred
// times.
func (t *mathTask) readRows(all iter.Seq2[rows.Row, error], from Source) ([]rollout.Problem, layout.Copies, error) {
	problems, copies, err := layout.ProblemsAt(all, from.columns())
	if err != nil {
		return nil, copies, err
	}
	for i := range problems {
		if err := t.check(&problems[i]); err != nil {
			return nil, copies, fmt.Errorf("%s: problem %s: %w", strings.Join(from.Paths(), ", "), problems[i].ID, err)
		}
	}
	return problems, copies, nil
}

// check rejects a gold answer that stands for "no answer" in the scorer, which would accept responses
// without one, and a data source for which verl has no grader.
func (t *mathTask) check(p *rollout.Problem) error {
	facts, err := layout.FactsOf(p)
	switch {
	case err != nil:
		return err
	case p.Answer == "":
		return errNoGold
	case slices.Contains(append(facts.Answers, p.Answer), noAnswer):
		return errors.New(`the gold answer "[INVALID]" is what math_dapo assigns to a response without an answer`)
	}
	if t.routed {
		return checkRoute(facts.Source)
	}
	return nil
}

// checkRoute returns an error unless verl has a grader for a data source.
func checkRoute(source string) error {
	_, err := peer.Route(source)
	switch {
	case err == nil:
		return nil
	case source == "":
		err = errors.New("it names no data_source, by which verl picks a grader")
	}
	return fmt.Errorf("%w; choose another task.math.grader, such as exp; verl's grades %s", err,
		strings.Join(peer.Sources(), ", "))
}
