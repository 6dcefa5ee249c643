package task

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode"

	"exp/eval/grade/extract"
	"exp/eval/grade/instruct"
	"exp/eval/layout"
	"exp/eval/rows"
	"exp/train/rollout"
)

// Instructions is the task of following instructions that a program can check, in prompts read from files: IFEval, and
// training sets with its instructions.
//
// The reward is Reward.Correct if a completion follows all instructions of its prompt. With Partial it rises from
// Reward.Wrong to Reward.Correct with the share that it follows.
type Instructions struct {
	Rules   instruct.Rules // empty: instruct.Strict
	Partial bool
}

// InstructionGraders names the graders of instructions, the default first: a response is right if it follows all
// instructions of its prompt, as it stands or read loosely. The reward is the share that it follows.
func InstructionGraders() []string { return []string{strictInstructions, looseInstructions} }

const (
	strictInstructions = "ifeval"
	looseInstructions  = "ifeval_loose"
)

// OfInstructionGrader returns the task whose verdicts a grader of InstructionGraders gives.
func OfInstructionGrader(name string) (Task, error) {
	o := Instructions{Rules: instruct.Strict, Partial: true}
	if name == looseInstructions {
		o.Rules = instruct.Loose
	}
	return New(Config{Kind: instructionsKind, Reward: Reward{Correct: 1}, Instructions: o})
}

const instructionsKind = "instructions"

type instructionsTask struct {
	onlyRead
	cfg    Instructions
	reward Reward
}

func newInstructions(cfg Instructions, reward Reward) (*instructionsTask, error) {
	switch cfg.Rules {
	case "":
		cfg.Rules = instruct.Strict
	case instruct.Strict, instruct.Loose:
	default:
		return nil, &ConfigError{Key: "task.instructions.rules",
			Problem: fmt.Sprintf("%q is neither %s nor %s", cfg.Rules, instruct.Strict, instruct.Loose)}
	}
	return &instructionsTask{cfg: cfg, reward: reward}, nil
}

// readRows reads prompts with instructions. Repeated ones are dropped.
func (t *instructionsTask) readRows(all iter.Seq2[rows.Row, error], from Source) ([]rollout.Problem, layout.Copies,
	error) {
	return layout.InstructionsAt(all, from.columns())
}

// check rejects a problem without instructions, or with one that nothing here can check.
func (t *instructionsTask) check(p *rollout.Problem) error {
	_, _, err := checksOf(p)
	return err
}

func checksOf(p *rollout.Problem) (list []instruct.Instruction, checks []instruct.Check, err error) {
	facts, err := layout.FactsOf(p)
	if err != nil {
		return nil, nil, err
	}
	if len(facts.Instructions) == 0 {
		return nil, nil, errors.New("no instructions (data.instructions)")
	}
	for _, i := range facts.Instructions {
		c, err := i.Check()
		if err != nil {
			return nil, nil, err
		}
		checks = append(checks, c)
	}
	return facts.Instructions, checks, nil
}

// Grade checks what follows a completion's thinking; thinking without an end follows nothing. Verdict.Answer names the
// instructions that the answer follows, see instruct.Answer.
func (t *instructionsTask) Grade(_ context.Context, p *rollout.Problem,
	c *rollout.Completion) (rollout.Verdict, error) {
	list, checks, err := checksOf(p)
	if err != nil {
		return rollout.Verdict{}, fmt.Errorf("problem %s: %w", p.ID, err)
	}
	response, ended := extract.AfterThought(c.Text)
	switch {
	case !ended:
		response = ""
	case len(response) < len(c.Text): // thinking models write blank lines after it; as in lm-eval and open-instruct
		response = strings.TrimLeftFunc(response, unicode.IsSpace)
	}
	var follows, misses []string
	for i, ok := range instruct.Followed(checks, response, t.cfg.Rules) {
		if ok {
			follows = append(follows, list[i].ID)
		} else {
			misses = append(misses, list[i].ID)
		}
	}
	reason := fmt.Sprintf("follows %d of %d", len(follows), len(list))
	if len(misses) > 0 {
		reason += "; not " + strings.Join(misses, ", ")
	}
	v := t.reward.verdict(len(misses) == 0, instruct.Answer(follows), reason)
	if share := float64(len(follows)) / float64(len(list)); t.cfg.Partial && !v.Correct {
		v.Reward = t.reward.Wrong + share*(t.reward.Correct-t.reward.Wrong)
	}
	return v, nil
}
