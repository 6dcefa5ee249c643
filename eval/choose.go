package eval

import (
	"context"
	"slices"

	"exp/train/rollout"
)

// Scorer computes how likely a model finds given texts: completions[i][k] has the tokens of option k of list[i] and
// their log-probs at temperature 1. done is as in rollout.Sampler.
type Scorer interface {
	Score(ctx context.Context, list []rollout.Question, done func(n int)) ([][]rollout.Completion, error)
}

// Option is a text that may follow a prompt.
type Option struct {
	Text           string // without what separates it from the prompt
	Answer         string // what the completion says that chooses it
	Prompt, Tokens []int32
}

// Choose answers each problem with one of its options, options[i], and returns a sample for each, in order: the option
// with the largest sum of log-probs, the first of equal ones, with the scores of all. done is told the number of
// scored options now and then; it may be nil.
func Choose(ctx context.Context, scorer Scorer, problems []rollout.Problem, options [][]Option,
	done func(int)) ([]Sample, error) {
	list, at := questions(options)
	scored, err := scorer.Score(ctx, list, done)
	if err != nil {
		return nil, err
	}
	samples := make([]Sample, len(problems))
	for i, p := range problems {
		scores := make([]rollout.OptionScore, len(at[i]))
		for k, x := range at[i] {
			scores[k] = rollout.NewOptionScore(options[i][k].Text, scored[x.question][x.option].LogProbs)
		}
		best := max(0, rollout.Likeliest(scores, func(o rollout.OptionScore) float64 { return o.LogProb }))
		c := scored[at[i][best].question][at[i][best].option]
		c.Text, c.Options = options[i][best].Answer, scores
		samples[i] = Sample{ProblemID: p.ID, Completion: c}
	}
	return samples, nil
}

// Questions returns the questions that Choose asks a scorer about each problem's options.
func Questions(options [][]Option) []rollout.Question {
	list, _ := questions(options)
	return list
}

// place is where an option is in a list of questions.
type place struct{ question, option int }

// questions returns the questions, and each problem's options in them.
func questions(options [][]Option) (list []rollout.Question, at [][]place) {
	at = make([][]place, len(options))
	for i := range options {
		first := len(list)
		for _, o := range options[i] { // a token that spans both may give an option a prompt of its own
			same := func(q rollout.Question) bool { return slices.Equal(q.Prompt, o.Prompt) }
			k := slices.IndexFunc(list[first:], same)
			if k < 0 {
				k = len(list) - first
				list = append(list, rollout.Question{Prompt: o.Prompt})
			}
			q := &list[first+k]
			at[i] = append(at[i], place{first + k, len(q.Options)})
			q.Options = append(q.Options, o.Tokens)
		}
	}
	return list, at
}
