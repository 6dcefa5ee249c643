package train

import (
	"context"
	"fmt"

	"exp/kernels"
	"exp/train/model"
	"exp/train/rl"
	"exp/train/rollout"
)

// SelfReward is a reward that the policy or its completions give, without a verdict. The Grader's verdicts
// then only serve metrics.
type SelfReward uint8

const (
	RewardGraded SelfReward = iota // none: the Grader's reward
	// RewardMajority rewards the completions that have the most frequent answer of their group (TTRL,
	// arXiv:2504.16084 §2). On a tie the answer that comes first wins.
	RewardMajority
	// RewardConfidence is the mean of -entropy over a completion's sampled tokens, in nats (RENT,
	// arXiv:2505.22660 §3).
	RewardConfidence
	// RewardLikelihood is the likelihood of the reference answer after the completion's reasoning (RLPR,
	// arXiv:2506.18254; VeriFree, arXiv:2505.21493). It reads gold answers, but no verdict.
	RewardLikelihood
)

// VoteRewards holds the rewards of RewardMajority.
type VoteRewards struct {
	Right  float64 // of the most frequent answer
	Wrong  float64 // of a completion without an answer
	Format float64 // of another answer
}

// votes counts what RewardMajority did in a step.
type votes struct {
	groups, right int     // that had an answer, and whose most frequent one is right
	share         float64 // of completions with that answer, summed over groups
	agree, graded int     // completions whose label is the Grader's verdict, of all graded ones
}

// selfRewards counts what a SelfReward did in a step.
type selfRewards struct {
	votes       votes
	likelihoods likelihoods
}

func (s *selfRewards) metrics() []rl.Metric {
	return append(s.votes.metrics(), s.likelihoods.metrics()...)
}

// rewardSelf replaces the rewards of graded completions by those that Config.Self names. all holds whole
// groups.
func (t *Trainer) rewardSelf(ctx context.Context, step int, all []Trajectory, s *selfRewards) error {
	switch t.cfg.Self {
	case RewardLikelihood:
		return t.rewardLikelihood(step, all, &s.likelihoods)
	case RewardConfidence:
		rewardConfidence(all)
	case RewardMajority:
		for i := 0; i < len(all); i += t.cfg.Samples {
			group := all[i : i+t.cfg.Samples]
			answers, err := t.agreement(ctx, group)
			if err != nil {
				return err
			}
			s.votes.label(group, answers, t.cfg.Votes)
		}
	}
	return nil
}

// RewardAgain gives graded completions that m sampled the rewards of c.Self, outside a run. They need not be whole
// groups, so that votes are not held again, which voted reports. answer is as in Parts.
func RewardAgain(be kernels.Backend, m *model.Model, c Config,
	answer func(*rollout.Problem, *rollout.Completion) (*Answer, error), all []Trajectory) (voted bool, err error) {
	switch c.Self {
	case RewardLikelihood:
		return false, likelihoodAgain(be, m, c, answer, all)
	case RewardConfidence:
		rewardConfidence(all)
	case RewardMajority:
		return true, nil
	}
	return false, nil
}

// ReadsAnswers reports whether a reward needs Parts.Answer.
func (s SelfReward) ReadsAnswers() bool { return s == RewardLikelihood }

func rewardConfidence(all []Trajectory) {
	for i := range all {
		if tr := &all[i]; tr.Verdict.Status == rollout.Graded {
			tr.Verdict.Reward = Confidence(tr.Completion)
		}
	}
}

// agreement returns the answers of the completions in a group, equal where they agree.
func (t *Trainer) agreement(ctx context.Context, group []Trajectory) ([]string, error) {
	list := make([]*rollout.Completion, len(group))
	for i := range group {
		list[i] = group[i].Completion
	}
	answers, err := t.Agreement(ctx, group[0].Problem, list)
	if err != nil {
		return nil, fmt.Errorf("problem %s: %w", group[0].Problem.ID, err)
	}
	for i := range group {
		if group[i].Verdict.Status != rollout.Graded {
			answers[i] = "" // it is not trained on
		}
	}
	return answers, nil
}

// label rewards a group by its most frequent answer.
func (v *votes) label(group []Trajectory, answers []string, rewards VoteRewards) {
	count := map[string]int{}
	for _, a := range answers {
		count[a]++
	}
	winner, first := "", 0
	for i, a := range answers {
		if a != "" && (winner == "" || count[a] > count[winner]) {
			winner, first = a, i
		}
	}
	if winner != "" {
		v.groups++
		v.share += float64(count[winner]) / float64(len(group))
		if group[first].Verdict.Correct {
			v.right++
		}
	}
	for i := range group {
		x := &group[i].Verdict
		if x.Status != rollout.Graded {
			continue
		}
		v.graded++
		if x.Correct == (answers[i] != "" && answers[i] == winner) {
			v.agree++
		}
		switch answers[i] {
		case "":
			x.Reward = rewards.Wrong
		case winner:
			x.Reward = rewards.Right
		default:
			x.Reward = rewards.Format
		}
	}
}

// metrics are RewardMajority's; none where no group had an answer.
func (v *votes) metrics() []rl.Metric {
	if v.groups == 0 {
		return nil
	}
	n := float64(v.groups)
	return []rl.Metric{
		{Name: "reward/majority_share", Value: v.share / n},
		{Name: "reward/majority_right", Value: float64(v.right) / n},
		{Name: "reward/label_accuracy", Value: float64(v.agree) / float64(v.graded)},
	}
}

// Confidence returns the mean of -entropy over the sampled tokens of a completion, in nats; 0 without one.
func Confidence(c *rollout.Completion) float64 {
	var sum float64
	for _, h := range c.Entropies { // 0 for inserted tokens
		sum -= float64(h)
	}
	return sum / float64(max(1, c.SampledTokens()))
}
