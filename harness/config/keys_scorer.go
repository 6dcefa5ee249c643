package config

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"exp/eval"
	"exp/train/rollout"
)

// ScorerKey names the reward model of the final evaluation.
const ScorerKey = "eval.final.scorer.weights"

// Blocks of keys: of the reward, and of what scores the final evaluation, which has keys of the same names.
const (
	rewardBlock = "reward."
	scorerBlock = "eval.final.scorer."
	scorerKind  = scorerBlock + "kind"
)

// scoresAlone reports whether a kind of reward can score completions of a final evaluation.
func (k *rewardKind) scoresAlone() bool { return k.judges && k.name != TrainedReward }

// ofScorer reports whether a kind takes what eval.final.scorer.weights names.
func ofScorer(weights bool) []string {
	return rewardsThat(func(k *rewardKind) bool { return k.scoresAlone() && k.weights == weights })
}

// scorerKeys are the keys of what scores the completions of the final evaluation.
func scorerKeys() []Key {
	keys := []Key{
		{Path: scorerKind, Kind: Enum, Words: rewardsThat((*rewardKind).scoresAlone), Default: is(modelReward().name),
			Help: "what scores every completion, as for reward.kind, for best@k, maj@k, weighted_majority and " +
				"score_auc"},
		{Path: ScorerKey, Kind: String, Role: External, Default: is(None),
			Pattern: pattern("none, trained, a path or hub:ORG/NAME@REVISION", `.+`),
			When:    []Clause{only(scorerKind, ofScorer(true)...)},
			Help: "reward model that scores every completion, a Hugging Face folder as for reward.weights, for " +
				"best@k, maj@k, weighted_majority and score_auc; trained: the one that this run trains " +
				"(reward_model); none: these are not measured"},
	}
	used := Clause{{Path: ScorerKey, Words: []string{None}, Not: true}, {Path: scorerKind, Words: ofScorer(false)}}
	ofModel := []Clause{except(ScorerKey, None), only(scorerKind, modelReward().name)}
	keys = append(keys, block(ofModel, nil, scorerModelKeys())...)
	keys = append(keys, scorerKindKeys()...)
	keys = append(keys, block([]Clause{used}, nil, []Key{
		{Path: "eval.final.scorer.vote", Kind: Enum, Words: eval.Votes(),
			Default: by(scorerKind, is(eval.VoteScore), when(modelReward().name,
				by("eval.final.scorer.steps", is(eval.VoteScore), when(None, is(eval.VoteSigmoid))))),
			Help: "weight of a vote in weighted_majority: sigmoid of the score, exp of it, or the score itself, 0 " +
				"if it is below 0"},
	})...)
	for i := range keys {
		keys[i].Late, keys[i].Stages = true, at(EvalScore)
	}
	return keys
}

// scorerModelKeys are the keys of a scorer that is a reward model.
func scorerModelKeys() []Key {
	steps, folder := except("eval.final.scorer.steps", None), except(ScorerKey, TrainedReward)
	return []Key{
		{Path: "eval.final.scorer.text", Kind: String, Default: is("{prompt}{response}"),
			Pattern: pattern("a text with {response}", `(?s).*\{response\}.*`), When: []Clause{folder},
			Help: "text that it reads unless it reads a chat, as for reward.text"},
		{Path: "eval.final.scorer.chat", Kind: Enum, Words: []string{Auto, Always, None}, Default: is(Auto),
			When: []Clause{folder},
			Help: "auto: it reads the whole chat in its own folder's template, as for reward.chat; always: it does " +
				"so with plain prompts, too; none: it reads eval.final.scorer.text"},
		{Path: "eval.final.scorer.begin", Kind: Bool, Default: is(false), When: []Clause{folder},
			Help: "the token that begins texts comes before eval.final.scorer.text, as for reward.begin"},
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
		{Path: "eval.final.scorer.layout", Kind: Enum, Words: rollout.StepLayouts(), Default: is(rollout.StepsApart),
			When: []Clause{steps, folder}, Help: "how it reads steps, as for reward.layout"},
		{Path: "eval.final.scorer.label", Kind: Int, Default: is(0), Range: atLeast(0), When: []Clause{folder},
			Help: "which of its labels is the score, counted from 0"},
		{Path: "eval.final.scorer.tokens", Kind: String, List: true, Default: is([]string{}),
			Pattern: pattern("a token", `(?s).+`), When: []Clause{folder},
			Help: "[right, wrong]: it is a language model that scores by two next tokens, as for reward.tokens"},
	}
}

// scorerKindKeys are the keys of scorers of other kinds: those of the rewards, under other names.
func scorerKindKeys() []Key {
	retries := rewardsThat(func(k *rewardKind) bool { return k.scoresAlone() && k.retries > 0 })
	keys := []Key{{Path: "eval.final.scorer.retries", Kind: Int, Range: between(0, 100), Role: Nonsemantic,
		Default: ofScorerDefault(retriesByKind()), When: []Clause{only(scorerKind, retries...)},
		Help: "how often to ask again about a completion, as for reward.retries"}}
	for _, k := range rewardKinds() {
		if !k.scoresAlone() || k.name == modelReward().name {
			continue
		}
		for _, key := range k.keys() {
			if key.When == nil {
				key.When = ofReward(k.name)
			}
			key.Path, key.Help, key.Default = scorerText(key.Path), scorerText(key.Help), ofScorerDefault(key.Default)
			key.When = slices.Clone(key.When)
			for i, clause := range key.When {
				key.When[i] = slices.Clone(clause)
				for j := range clause {
					key.When[i][j].Path = scorerText(clause[j].Path)
				}
			}
			keys = append(keys, key)
		}
	}
	return keys
}

// scorerText names the keys of a text about a reward as those of a scorer.
func scorerText(s string) string { return strings.ReplaceAll(s, rewardBlock, scorerBlock) }

// ofScorerDefault is a reward's default for a scorer.
func ofScorerDefault(d Default) Default {
	d.by = scorerText(d.by)
	return d
}

// ScorerFiles lists the keys of a scorer that name something outside the configuration.
func ScorerFiles() []string {
	var paths []string
	for _, k := range schema().keys {
		if strings.HasPrefix(k.Path, scorerBlock) && k.Role == External {
			paths = append(paths, k.Path)
		}
	}
	return paths
}

// aboutScorer returns help that does not fit on a key's help line; empty for most keys.
func aboutScorer(path string) string {
	if path != ScorerKey {
		return ""
	}
	return `
  The scorer changes no verdict. Its scores say which of a problem's completions to choose:

    best@k             the best of k by its score
    maj@k              the most frequent answer of k; the scores play no part
    weighted_majority  the answer with the largest sum of weights (eval.final.scorer.vote) of all
    score_auc          how often it scores a right completion above a wrong one

  best@k and maj@k are exact expectations over all choices of k completions, for the k of
  eval.final.pass_k. The prompt is the one that the policy was asked. A completion that is too
  long for the reward model counts as one without a verdict (eval.final.max_not_graded).

    eval: {final: {n: 16, scorer: {weights: models/rm}}}
    exp eval RUN --suite math500 --score-by models/rm

  exp eval samples no completion again that RUN has. A judge and a program score, too; their keys
  are those of the reward (exp config explain reward.judge.url, reward.command):

    eval: {final: {scorer: {kind: command, command: [python3, score.py]}}}
    exp eval RUN --suite math500 --score-by '[python3, score.py]'
    exp eval RUN --suite math500 --score-by http://127.0.0.1:8000/v1 \\
        --score-with judge.model=qwen --score-with judge.template=judge.txt
    exp eval RUN --suite math500 --score-by models/judge --score-with kind=genrm \\
        --score-with judge.template=judge.txt
`
}

// Scorer is what scores the completions of the final evaluation.
type Scorer struct {
	Kind    string `key:"kind"`    // of Reward.Kind
	Weights string `key:"weights"` // None, TrainedReward or a path; the other fields are zero without one
	Text    string `key:"text"`    // of a path, as for the next three, Separator, Layout, Label and Tokens
	Chat    string `key:"chat"`    // Auto, Always or None
	Begin   bool   `key:"begin"`
	End     bool   `key:"end"`
	Steps   string `key:"steps"` // None, or as in Reward
	Split   string `key:"split"` // Steps is not None, as for the next two

	Separator string `key:"separator"`
	Layout    string `key:"layout"`

	Label  int      `key:"label"`
	Tokens []string `key:"tokens"`

	// As in Reward.
	Retries    int           `key:"retries"`
	Command    []string      `key:"command"`
	Files      []string      `key:"files"`
	Workers    int           `key:"workers"`
	Batch      int           `key:"batch"`
	RowLimit   time.Duration `key:"row_limit"`
	BatchLimit time.Duration `key:"batch_limit"`
	Restarts   int           `key:"restarts"`
	Judge      Judge         `key:"judge"`

	Vote string `key:"vote"` // of eval.Votes
}

// Used reports whether there is one.
func (s *Scorer) Used() bool {
	return s.Weights != "" && s.Weights != None || slices.Contains(ofScorer(false), s.Kind)
}

// Trained reports whether it is the reward model that the run trains.
func (s *Scorer) Trained() bool { return s.Weights == TrainedReward }

// scorerChecks checks what scores the final evaluation.
func scorerChecks() []check {
	list := []check{{[]string{ScorerKey, "reward_model.steps"}, func(r *Run) (string, string) {
		switch s := r.Eval.Final.Scorer; {
		case !s.Trained():
		case s.Kind != modelReward().name:
			return ScorerKey + " is trained, but eval.final.scorer.kind is " + s.Kind,
				"the model that the run trains is of kind model"
		case r.RewardModel.Steps == 0:
			return ScorerKey + " is trained, but the run trains no reward model",
				"set reward_model.steps, or name the folder of a reward model"
		case r.RewardModel.OfSteps() != (s.Steps != None):
			return "eval.final.scorer.steps is " + s.Steps + ", but reward_model.kind is " + r.RewardModel.Kind,
				"min, product, last or mean for a reward model that learns from steps, else none"
		}
		return "", ""
	}}, {[]string{scorerKind, ScorerKey}, func(r *Run) (string, string) {
		if s := r.Eval.Final.Scorer; s.Kind != modelReward().name && s.Weights == None {
			return "eval.final.scorer.kind is " + s.Kind + ", but " + ScorerKey + " names no model",
				"name its folder, or set eval.final.scorer.kind: model"
		}
		return "", ""
	}}}
	for _, k := range rewardKinds() {
		if k.scoresAlone() && k.checks != nil {
			list = append(list, ofScorerChecks(k.checks())...)
		}
	}
	return list
}

// ofScorerChecks are the checks of a reward for a scorer.
func ofScorerChecks(list []check) (own []check) {
	for _, c := range list {
		var keys []string
		for _, path := range c.keys {
			if path = scorerText(path); lookup(path) != nil {
				keys = append(keys, path)
			}
		}
		if len(keys) < len(c.keys) {
			continue // it is about parts of rewards
		}
		own = append(own, check{keys, func(r *Run) (string, string) {
			if !r.Eval.Final.Scorer.Used() {
				return "", ""
			}
			message, help := c.fails(r.ScoredBy())
			return scorerText(message), scorerText(help)
		}})
	}
	return own
}

// ScoredBy returns the configuration of a run that is rewarded as its final evaluation is scored.
func (r *Run) ScoredBy() *Run {
	own, s := *r, r.Eval.Final.Scorer
	if s.Trained() {
		own.Reward = Reward{Kind: TrainedReward, Steps: s.Steps, Split: s.Split}
		return &own
	}
	own.Reward = Reward{Kind: cmp.Or(s.Kind, modelReward().name), Weights: s.Weights, Text: s.Text, Chat: s.Chat,
		Begin: s.Begin, End: s.End, Steps: s.Steps, Split: s.Split, Separator: s.Separator, Layout: s.Layout,
		Label: s.Label, Tokens: s.Tokens, Retries: s.Retries, Command: s.Command, Files: s.Files, Workers: s.Workers,
		Batch: s.Batch, RowLimit: s.RowLimit, BatchLimit: s.BatchLimit, Restarts: s.Restarts, Judge: s.Judge}
	return &own
}
