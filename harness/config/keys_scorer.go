package config

import (
	"exp/eval"
	"exp/train/rollout"
)

// ScorerKey names the reward model of the final evaluation.
const ScorerKey = "eval.final.scorer.weights"

// scorerKeys are the keys of the reward model that scores the completions of the final evaluation.
func scorerKeys() []Key {
	on, steps := []Clause{except(ScorerKey, None)}, except("eval.final.scorer.steps", None)
	folder := except(ScorerKey, TrainedReward)
	keys := []Key{
		{Path: ScorerKey, Kind: String, Role: External, Default: is(None),
			Pattern: pattern("none, trained, a path or hub:ORG/NAME@REVISION", `.+`),
			Help: "reward model that scores every completion, a Hugging Face folder as for reward.weights, for " +
				"best@k, maj@k, weighted_majority and score_auc; trained: the one that this run trains " +
				"(reward_model); none: these are not measured"},
	}
	keys = append(keys, block(on, nil, []Key{
		{Path: "eval.final.scorer.text", Kind: String, Default: is("{prompt}{response}"),
			Pattern: pattern("a text with {response}", `(?s).*\{response\}.*`), When: []Clause{folder},
			Help: "text that it reads unless it reads a chat, as for reward.text"},
		{Path: "eval.final.scorer.chat", Kind: Enum, Words: []string{Auto, None}, Default: is(Auto),
			When: []Clause{folder},
			Help: "auto: it reads the whole chat in its own folder's template, as for reward.chat; none: it reads " +
				"eval.final.scorer.text"},
		{Path: "eval.final.scorer.end", Kind: Bool, Default: is(false), When: []Clause{folder},
			Help: "an end token follows eval.final.scorer.text, as in reward models that this program and TRL " +
				"train on texts"},
		{Path: "eval.final.scorer.steps", Kind: Enum, Words: append([]string{None}, rollout.StepScores()...),
			Default: is(None),
			Help: "it is a process reward model, which scores each step of a completion: the score is this of the " +
				"probabilities that the steps are right, as for reward.steps"},
		{Path: "eval.final.scorer.split", Kind: String, Default: is("\n"), Pattern: pattern("a text", `(?s).+`),
			When: []Clause{steps}, Help: "text that separates the steps of a completion"},
		{Path: "eval.final.scorer.separator", Kind: String, Default: is("\n"), Pattern: pattern("a text", `(?s).+`),
			When: []Clause{steps, folder}, Help: "text that it reads after each step, as for reward.separator"},
		{Path: "eval.final.scorer.label", Kind: Int, Default: is(0), Range: atLeast(0), When: []Clause{folder},
			Help: "which of its labels is the score, counted from 0"},
		{Path: "eval.final.scorer.vote", Kind: Enum, Words: eval.Votes(),
			Default: by("eval.final.scorer.steps", is(eval.VoteScore), when(None, is(eval.VoteSigmoid))),
			Help: "weight of a vote in weighted_majority: sigmoid of the score, exp of it, or the score itself, 0 " +
				"if it is below 0"},
	})...)
	for i := range keys {
		keys[i].Late, keys[i].Stages = true, at(EvalScore)
	}
	return keys
}

// aboutScorer returns help that does not fit on a key's help line; empty for most keys.
func aboutScorer(path string) string {
	if path != ScorerKey {
		return ""
	}
	return `
  The reward model changes no verdict. Its scores say which of a problem's completions to choose:

    best@k             the best of k by its score
    maj@k              the most frequent answer of k; the scores play no part
    weighted_majority  the answer with the largest sum of weights (eval.final.scorer.vote) of all
    score_auc          how often it scores a right completion above a wrong one

  best@k and maj@k are exact expectations over all choices of k completions, for the k of
  eval.final.pass_k. The prompt is the one that the policy was asked. A completion that is too
  long for the reward model counts as one without a verdict (eval.final.max_not_graded).

    eval: {final: {n: 16, scorer: {weights: models/judge}}}
    exp eval RUN --suite math500 --score-by models/judge

  exp eval samples no completion again that RUN has.
`
}

// Scorer is the reward model that scores the completions of the final evaluation.
type Scorer struct {
	Weights string `key:"weights"` // None, TrainedReward or a path; the other fields are zero without one
	Text    string `key:"text"`    // of a path, as for the next two, Separator and Label
	Chat    string `key:"chat"`    // Auto or None
	End     bool   `key:"end"`
	Steps   string `key:"steps"` // None, or as in Reward
	Split   string `key:"split"` // Steps is not None, as for the next one

	Separator string `key:"separator"`

	Label int    `key:"label"`
	Vote  string `key:"vote"` // of eval.Votes
}

// Used reports whether there is one.
func (s *Scorer) Used() bool { return s.Weights != "" && s.Weights != None }

// Trained reports whether it is the reward model that the run trains.
func (s *Scorer) Trained() bool { return s.Weights == TrainedReward }

// scorerChecks checks a reward model that the run trains itself.
func scorerChecks() []check {
	return []check{{[]string{ScorerKey, "reward_model.steps"}, func(r *Run) (string, string) {
		switch s := r.Eval.Final.Scorer; {
		case !s.Trained():
		case r.RewardModel.Steps == 0:
			return ScorerKey + " is trained, but the run trains no reward model",
				"set reward_model.steps, or name the folder of a reward model"
		case r.RewardModel.OfSteps() != (s.Steps != None):
			return "eval.final.scorer.steps is " + s.Steps + ", but reward_model.kind is " + r.RewardModel.Kind,
				"min, product, last or mean for a reward model that learns from steps, else none"
		}
		return "", ""
	}}}
}

// ScoredBy returns the configuration of a run that is rewarded as its final evaluation is scored.
func (r *Run) ScoredBy() *Run {
	own, s := *r, r.Eval.Final.Scorer
	if s.Trained() {
		own.Reward = Reward{Kind: TrainedReward, Steps: s.Steps, Split: s.Split}
		return &own
	}
	own.Reward = Reward{Kind: modelReward().name, Weights: s.Weights, Text: s.Text, Chat: s.Chat, End: s.End,
		Steps: s.Steps, Split: s.Split, Separator: s.Separator, Label: s.Label}
	return &own
}
