package task

import (
	"context"
	"fmt"
	"math"
	"strings"

	"exp/train/rollout"
)

// Outcomes is a toy task with a known optimum (after Figure 1 of FlowRL, arXiv:2509.15207): one prompt,
// "?", and Count outcomes of one character each. Outcome i earns
//
//	r(i) = Σ_m Height_m · exp(-½·((i - Center_m) / Width_m)²)
//
// and is correct if r(i) is at least half of the largest r. Any other completion earns Reward.Wrong. The
// policy that maximises β·E[r] - KL(π‖π_ref) is π ∝ π_ref·exp(β·r); see Enumerable. With
// rollout.max_new_tokens 1 a completion is one token.
//
// There is one problem. All splits are the same, and n problems are n names for it, so that a training step
// can have several groups.
type Outcomes struct {
	Count int // at most 62: digits, then upper case, then lower case letters
	Modes []Mode
}

// Mode is a bump in the reward.
type Mode struct {
	Center int     // outcome index
	Width  float64 // standard deviation in outcomes
	Height float64
}

const (
	outcomePrompt = "?"
	outcomeChars  = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

type outcomes struct {
	chars   string
	rewards []float64 // [Count]
	correct []bool    // [Count]
	reward  Reward
}

func newOutcomes(cfg Outcomes, reward Reward) (*outcomes, error) {
	bad := func(key, format string, args ...any) error {
		return &ConfigError{Key: "task.outcomes." + key, Problem: fmt.Sprintf(format, args...)}
	}
	if cfg.Count < 2 || cfg.Count > len(outcomeChars) {
		return nil, bad("count", "%d is not between 2 and %d", cfg.Count, len(outcomeChars))
	}
	if len(cfg.Modes) == 0 {
		return nil, bad("modes", "empty; a reward needs at least one mode")
	}
	for i, m := range cfg.Modes {
		switch {
		case m.Center < 0 || m.Center >= cfg.Count:
			return nil, bad("modes", "mode %d has its center at %d, not between 0 and %d", i, m.Center, cfg.Count-1)
		case !(m.Width > 0) || math.IsInf(m.Width, 0):
			return nil, bad("modes", "mode %d has the width %v, not a positive number", i, m.Width)
		case !(m.Height > 0) || math.IsInf(m.Height, 0):
			return nil, bad("modes", "mode %d has the height %v, not a positive number", i, m.Height)
		}
	}

	t := &outcomes{chars: outcomeChars[:cfg.Count], reward: reward}
	var highest float64
	for i := range cfg.Count {
		var r float64
		for _, m := range cfg.Modes {
			z := float64(i-m.Center) / m.Width
			r += float64(m.Height * math.Exp(-0.5*z*z))
		}
		t.rewards = append(t.rewards, r)
		highest = max(highest, r)
	}
	for _, r := range t.rewards {
		t.correct = append(t.correct, r >= highest/2)
	}
	return t, nil
}

// Alphabet is the prompt and the outcomes.
func (t *outcomes) Alphabet() string { return outcomePrompt + t.chars }

// Generate returns the one problem n times, as outcomes-0 to outcomes-(n-1). Targets cycle through the
// outcomes, so that supervised fine-tuning teaches the uniform policy.
func (t *outcomes) Generate(split Split, n int, _ uint64) ([]rollout.Problem, error) {
	if err := split.check(n); err != nil {
		return nil, err
	}
	problems := make([]rollout.Problem, n)
	for i := range problems {
		at := i % len(t.chars)
		problems[i] = rollout.Problem{
			ID:     fmt.Sprintf("outcomes-%d", i),
			Prompt: outcomePrompt,
			Target: t.chars[at : at+1],
		}
	}
	return problems, nil
}

func (t *outcomes) check(p *rollout.Problem) error {
	if p.Prompt != outcomePrompt {
		return fmt.Errorf("the prompt is %q; the task has only %q", clip(p.Prompt), outcomePrompt)
	}
	return nil
}

// Grade looks up the completion. Answer is the character of the outcome.
func (t *outcomes) Grade(_ context.Context, _ *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	return t.judge(c.Text), nil
}

func (t *outcomes) judge(text string) rollout.Verdict {
	i := strings.Index(t.chars, text)
	if len(text) != 1 || i < 0 {
		return t.reward.verdict(false, "", "not an outcome")
	}
	v := rollout.Verdict{
		Status:  rollout.Graded,
		Correct: t.correct[i],
		Reward:  t.rewards[i],
		Answer:  text,
		Reason:  "below half of the highest reward",
	}
	if v.Correct {
		v.Reason = "correct"
	}
	return v
}

// Enumerate lists the outcomes in order, then the prompt's character and the empty text.
func (t *outcomes) Enumerate() []Outcome {
	var list []Outcome
	for _, text := range append(strings.Split(t.chars, ""), outcomePrompt, "") {
		v := t.judge(text)
		list = append(list, Outcome{Text: text, Reward: v.Reward, Correct: v.Correct})
	}
	return list
}
