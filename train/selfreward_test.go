package train

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"exp/train/rl"
	"exp/train/rollout"
)

// By hand: of eight completions one has no verdict and one no answer; a and b tie with two votes each, and a
// comes first.
func TestMajorityLabels(t *testing.T) {
	answers := []string{"", "c", "a", "b", "a", "b", "", "d"}
	group := make([]Trajectory, len(answers))
	for i := range group {
		group[i].Verdict = rollout.Verdict{Status: rollout.Graded, Correct: answers[i] == "b", Reward: 9}
	}
	group[6].Verdict = rollout.Verdict{Status: rollout.NotGraded}
	var v votes
	v.label(group, answers, VoteRewards{Right: 1, Wrong: -1, Format: 0.25})
	var got []float64
	for _, tr := range group {
		got = append(got, tr.Verdict.Reward)
	}
	if want := []float64{-1, 0.25, 1, 0.25, 1, 0.25, 0, 0.25}; !slices.Equal(got, want) {
		t.Errorf("rewards: got %v, want %v", got, want)
	}
	v.label(group[:2], []string{"", ""}, VoteRewards{}) // without an answer nobody votes
	for i := range 4 {
		group[i].Verdict.Correct = true
	}
	v.label(group[:4], []string{"x", "y", "y", "y"}, VoteRewards{Right: 1})
	// Shares 2/8 and 3/4; the majorities are wrong and right; labels are right for completions 0, 1 and 7 of the
	// first group, 0 and 1 of the second, and three of the third.
	want := []rl.Metric{{Name: "reward/majority_share", Value: 0.5}, {Name: "reward/majority_right", Value: 0.5},
		{Name: "reward/label_accuracy", Value: 8. / 13}}
	if got := v.metrics(); !slices.Equal(got, want) {
		t.Errorf("metrics: got %v, want %v", got, want)
	}
	if got := new(votes).metrics(); got != nil {
		t.Errorf("metrics without votes: %v", got)
	}
}

// A completion without a verdict is not trained on, and has no vote.
func TestMajorityOfGraded(t *testing.T) {
	r := newToyRun(t, GRPO, 1)
	tr := &Trainer{Parts: Parts{Agreement: byParity}, cfg: r.cfg}
	tr.cfg.Self, tr.cfg.Samples, tr.cfg.Votes = RewardMajority, 5, VoteRewards{Right: 1}
	group := make([]Trajectory, 5)
	for i := range group {
		c := &rollout.Completion{Tokens: make([]int32, 1+i%2)} // odd, even, odd, even, odd
		group[i] = Trajectory{Problem: &r.problems[0], Sample: i, Completion: c, Verdict: rollout.Verdict{Status: rollout.Graded}}
	}
	group[0].Verdict, group[2].Verdict = rollout.Verdict{Status: rollout.NotGraded}, rollout.Verdict{Status: rollout.NotGraded}
	var s selfRewards
	if err := tr.rewardSelf(context.Background(), 1, group, &s); err != nil {
		t.Fatal(err)
	}
	v := s.votes
	var got []float64
	for _, x := range group {
		got = append(got, x.Verdict.Reward)
	}
	if want := []float64{0, 1, 0, 1, 0}; !slices.Equal(got, want) || v.share != 0.4 || v.graded != 3 {
		t.Errorf("rewards %v, want %v; %+v", got, want, v)
	}
}

// Inserted tokens have no entropy, and are not counted.
func TestConfidence(t *testing.T) {
	c := &rollout.Completion{Tokens: make([]int32, 4), Entropies: []float32{0.5, 0, 0, 1}, Inserted: []rollout.Span{{Start: 1, End: 3}}}
	if got := Confidence(c); got != -0.75 {
		t.Errorf("got %v, want -0.75", got)
	}
	if got := Confidence(&rollout.Completion{}); got != 0 || math.Signbit(got) {
		t.Errorf("of nothing: got %v", got)
	}
}

// Training sees the votes, or the confidence, in the place of the grader's rewards: whether an answer is right
// changes no advantage, and the metrics tell both.
func TestSelfRewardTrains(t *testing.T) {
	for _, self := range []SelfReward{RewardMajority, RewardConfidence} {
		steps := map[bool]Step{}
		for _, right := range []bool{true, false} {
			r := newToyRun(t, GRPO, 1)
			r.cfg.Steps, r.cfg.Self, r.cfg.Votes = 1, self, VoteRewards{Right: 1, Format: 0.5}
			tr := r.start()
			tr.Grader = graderFunc(func(*rollout.Problem, *rollout.Completion) rollout.Verdict {
				return rollout.Verdict{Status: rollout.Graded, Correct: right, Reward: 7}
			})
			if err := tr.Run(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			steps[right] = *r.steps[0]
		}
		for i, x := range steps[true].Trajectories {
			y := steps[false].Trajectories[i]
			if x.Verdict.Reward != y.Verdict.Reward || x.Verdict.Correct == y.Verdict.Correct {
				t.Fatalf("%d: %+v and %+v", i, x.Verdict, y.Verdict)
			}
			if self == RewardConfidence && x.Verdict.Reward != Confidence(x.Completion) {
				t.Errorf("reward %v, confidence %v", x.Verdict.Reward, Confidence(x.Completion))
			}
		}
		value := func(s Step, name string) float64 {
			i := slices.IndexFunc(s.Metrics, func(m rl.Metric) bool { return m.Name == name })
			if i < 0 {
				return math.NaN()
			}
			return s.Metrics[i].Value
		}
		if a, b := steps[true], steps[false]; value(a, "actor/grad_norm") != value(b, "actor/grad_norm") || !(value(a, "actor/grad_norm") > 0) {
			t.Error("the gradient depends on the verdicts, or is 0")
		}
		if self == RewardMajority && (value(steps[true], "reward/majority_right") != 1 || value(steps[false], "reward/majority_right") != 0) {
			t.Error("majority_right does not say what the grader says")
		}
	}
}

func TestSelfRewardErrors(t *testing.T) {
	for _, advantage := range []string{"remax", "gdpo"} {
		r := newToyRun(t, GRPO, 1)
		r.cfg.Self, r.cfg.Advantage = RewardMajority, advantage
		if err := r.cfg.Validate(); err == nil || !strings.Contains(err.Error(), advantage) {
			t.Errorf("%s: got %v", advantage, err)
		}
	}
	r := newToyRun(t, GRPO, 1)
	r.cfg.Self = RewardMajority
	tr := r.start()
	broken := errors.New("broken")
	tr.Agreement = func(context.Context, *rollout.Problem, []*rollout.Completion) ([]string, error) { return nil, broken }
	if err := tr.Run(context.Background(), nil); !errors.Is(err, broken) || !strings.Contains(err.Error(), "problem ") {
		t.Errorf("got %v", err)
	}
}
