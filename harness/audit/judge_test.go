package audit

import (
	"math"
	"testing"

	"exp/eval/suite"
	"exp/experiments/store"
	"exp/train/rollout"
)

// Of several recorded verdicts, the one that gave the reward counts; an evaluation has no reward: the newest counts.
func TestRewarding(t *testing.T) {
	verdicts := []store.Verdict{{Graded: false}, {Graded: true, Reward: 1, Reason: "old"}, {Graded: true, Reward: 1, Reason: "again"},
		{Graded: true, Reward: 0, Reason: "new"}}
	newest := &verdicts[3]
	for _, tt := range []struct {
		reward float64
		want   string
	}{{1, "old"}, {0, "new"}, {math.NaN(), "new"}} {
		if got := rewarding(store.Sample{Reward: tt.reward, Verdict: newest}, verdicts); got.Reason != tt.want {
			t.Errorf("reward %v: %+v, want %q", tt.reward, got, tt.want)
		}
	}
	if got := rewarding(store.Sample{Reward: 1}, nil); got != nil {
		t.Errorf("no verdicts: %+v", got)
	}
}

// The cause follows the recorded verdict and its basis, not today's.
func TestJudgeByTheRecord(t *testing.T) {
	dapo, err := suite.Grader("math_dapo")
	if err != nil {
		t.Fatal(err)
	}
	own, err := suite.Grader("exp")
	if err != nil {
		t.Fatal(err)
	}
	a := &auditor{graders: map[string]rollout.Grader{"math_dapo": dapo, "exp": own}}
	for _, tt := range []struct {
		name, text, grader, basis string
		right                     bool
		want                      Cause
		accepted                  string
	}{
		{"recorded as a guess, though proven today", "\\boxed{12}", "exp", "guess", true, Guess, "exp"},
		{"recorded as proven, though a unit today", "\\boxed{12\\text{ apples}}", "exp", "proof", true, "", "exp"},
		{"basis not recorded", "\\boxed{12\\text{ apples}}", "exp", "", true, Unit, "exp"},
		{"right today", "\\boxed{12}", "exp", "", false, Changed, "exp today"},
		{"wrong today", "\\boxed{13}", "exp", "proof", true, Changed, "exp"},
		{"another grader's", "Answer: 12", "math_dapo", "", true, "", "math_dapo"},
		{"another grader reads the last line", "\\boxed{12}.\nAnswer: 13", "math_dapo", "", false, Disagreement, "exp"},
		{"a grader that is gone", "\\boxed{12}", "gone", "", false, Disagreement, "exp"},
	} {
		c := completion{problem: &rollout.Problem{ID: "p", Answer: "12"}, kept: kept{Text: tt.text, Basis: tt.basis},
			verdict: &store.Verdict{Graded: true, Correct: tt.right, Scorer: store.Scorer{Name: tt.grader + "/1"}}}
		f, err := a.judge(t.Context(), c)
		if err != nil || f.cause != tt.want || f.right != tt.right || len(f.accepted) == 0 || f.accepted[0] != tt.accepted {
			t.Errorf("%s: %v, %+v", tt.name, err, f)
		}
	}
	f, err := a.judge(t.Context(), completion{problem: &rollout.Problem{Answer: "12"}, kept: kept{Text: "\\boxed{12 apples}"}})
	if err != nil || !f.right || f.cause != Unit {
		t.Errorf("no verdict recorded: %v, %+v", err, f)
	}
}
