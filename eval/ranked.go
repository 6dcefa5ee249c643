package eval

import (
	"fmt"
	"math"
	"strconv"

	"exp/eval/stat"
	"exp/train/rollout"
)

// How the scores of a reward model become weights of votes.
const (
	VoteSigmoid = "sigmoid" // 1/(1+e^-score), the probability of a logit
	VoteExp     = "exp"     // e^score, the strength of Bradley and Terry's model
	VoteScore   = "score"   // the score itself, 0 if it is below 0
)

// Votes lists the ways in which scores become weights.
func Votes() []string { return []string{VoteSigmoid, VoteExp, VoteScore} }

// Ranked holds the scores that a reward model gave a problem's graded samples, in their order. Samples without a score
// are left out.
type Ranked struct {
	Vote   string    `json:"vote"` // of Votes
	Score  []float64 `json:"score"`
	Answer []int     `json:"answer"` // class of equal answers, from 0; -1: no answer
	Right  []bool    `json:"right"`
}

// weights returns the weights of votes. VoteExp's are relative to the largest.
func (r *Ranked) weights() []float64 {
	most := math.Inf(-1)
	for _, s := range r.Score {
		most = max(most, s)
	}
	list := make([]float64, len(r.Score))
	for i, s := range r.Score {
		switch r.Vote {
		case VoteExp:
			list[i] = math.Exp(s - most)
		case VoteScore:
			list[i] = max(0, s)
		default:
			list[i] = 1 / (1 + math.Exp(-s))
		}
	}
	return list
}

// Rank adds a scorer's scores of samples to the items of their problems. scores[i] is samples[i]'s; one that is
// not graded there has none. vote is one of Votes.
func Rank(items []Item, samples []Sample, verdicts, scores []rollout.Verdict, vote string) {
	if len(samples) != len(verdicts) || len(samples) != len(scores) {
		panic("eval: length mismatch")
	}
	ranked, classes := map[string]*Ranked{}, map[string]map[string]int{}
	for i, s := range samples {
		v := verdicts[i]
		if v.Status != rollout.Graded || scores[i].Status != rollout.Graded {
			continue
		}
		r, of := ranked[s.ProblemID], classes[s.ProblemID]
		if r == nil {
			r, of = &Ranked{Vote: vote}, map[string]int{}
			ranked[s.ProblemID], classes[s.ProblemID] = r, of
		}
		class := -1
		if v.Answer != "" {
			known, ok := of[v.Answer]
			if !ok {
				known = len(of)
				of[v.Answer] = known
			}
			class = known
		}
		r.Score = append(r.Score, scores[i].Reward)
		r.Answer, r.Right = append(r.Answer, class), append(r.Right, v.Correct)
	}
	for i := range items {
		items[i].Ranked = ranked[items[i].ProblemID]
	}
}

// describeBest and describeMajority describe metrics for k > 1; for k = 1 both are pass@1.
func describeBest(k string) Definition {
	return Definition{Name: "best@" + k, Unit: "share", Direction: Up,
		Definition: "chance that the best of " + k + " samples by the scorer's score is correct, over all " +
			"choices of " + k + " scored samples; of equal scores each is taken equally often"}
}

func describeMajority(k string) Definition {
	return Definition{Name: "maj@" + k, Unit: "share", Direction: Up,
		Definition: "chance that the most frequent answer of " + k + " samples is correct, over all choices of " + k +
			" scored samples; of equally frequent answers each wins equally often"}
}

// rankedMetrics returns the metrics of evaluations that a reward model scored, for some k.
func rankedMetrics(ks []int) []Definition {
	var list []Definition
	for _, family := range []struct {
		describe func(k string) Definition
		value    func(r *Ranked, k int) float64
	}{
		{describeBest, func(r *Ranked, k int) float64 { return stat.BestOf(r.Score, r.Right, k) }},
		{describeMajority, func(r *Ranked, k int) float64 { return stat.MajorityOf(r.Answer, r.Right, k) }},
	} {
		for _, k := range ks {
			if k < 2 {
				continue
			}
			d := family.describe(strconv.Itoa(k))
			d.K = k
			d.Value = func(it Item) (float64, bool) {
				if it.Ranked == nil || len(it.Ranked.Score) < k {
					return 0, false
				}
				return family.value(it.Ranked, k), true
			}
			list = append(list, d)
		}
	}
	return append(list,
		Definition{Name: "weighted_majority", Unit: "share", Direction: Up,
			Definition: "1 if the answer with the largest sum of weights, made of the scorer's scores, is " +
				"correct, first seen wins a tie, else 0",
			Value: func(it Item) (float64, bool) {
				if it.Ranked == nil {
					return 0, false
				}
				return stat.WeightedVote(it.Ranked.Answer, it.Ranked.weights(), it.Ranked.Right), true
			}},
		Definition{Name: "score_auc", Unit: "share", Direction: Up,
			Definition: "chance that the scorer scores a correct sample of a problem above a wrong one, over " +
				"problems with both",
			Value: func(it Item) (float64, bool) {
				if it.Ranked == nil {
					return 0, false
				}
				return stat.RankAccuracy(it.Ranked.Score, it.Ranked.Right)
			}})
}

// CheckScores returns an error that names the first sample whose score is not a finite number.
func CheckScores(samples []Sample, scores []rollout.Verdict) error {
	for i, v := range scores {
		if v.Status == rollout.Graded && (math.IsNaN(v.Reward) || math.IsInf(v.Reward, 0)) {
			return fmt.Errorf("the scorer's score of sample %d of problem %s is %v, which ranks nothing",
				samples[i].K, samples[i].ProblemID, v.Reward)
		}
	}
	return nil
}
