package config

import "fmt"

func likelihoodReward() rewardKind {
	return rewardKind{name: Likelihood,
		about: "how likely the policy finds the gold answer in the place of the completion's own,\n" +
			"after the reasoning before it (reward.likelihood), or reward.wrong if the\n" +
			"completion has no such place: RLPR (arXiv:2506.18254), VeriFree\n" +
			"(arXiv:2505.21493). Gold answers become training data",
		self: true, pays: []string{"wrong"}, keys: likelihoodKeys, checks: likelihoodChecks,
		help: map[string]string{"reward.likelihood.measure": aboutLikelihood,
			"reward.likelihood.learn": aboutLearning}}
}

func likelihoodKeys() []Key {
	return []Key{
		{Path: "reward.likelihood.measure", Kind: Enum, Words: []string{"mean", "product", "log"}, Default: is("mean"),
			Late: true,
			Help: "mean probability of the answer's tokens, their product, which is the answer's probability, or " +
				"its logarithm"},
		{Path: "reward.likelihood.baseline", Kind: Bool, Default: is(false), Late: true,
			Help: "subtract the likelihood of the same answer without reasoning, and clip the difference to 0 to 1"},
		{Path: "reward.likelihood.learn", Kind: Float, Default: is(0.0), Range: atLeast(0), Late: true,
			Help: "weight of a term of the loss that makes reference answers likelier; if it is not 0, the policy " +
				"loss learns the reasoning alone"},
	}
}

// likelihoodChecks checks rewards by the likelihood of reference answers.
func likelihoodChecks() []check {
	return []check{
		{[]string{"reward.kind", "task.kind"}, func(r *Run) (string, string) {
			if r.Reward.Kind == Likelihood && !r.JudgesAlone() && !r.Task.kind().oneAnswer {
				return "reward.kind likelihood puts the gold answer in the place of a completion's own, but task " +
					r.Task.Kind + " has no single answer in a place", "use it with task " + either(oneAnswer())
			}
			return "", ""
		}},
		{[]string{"reward.kind", "rollout.tools.kind"}, func(r *Run) (string, string) {
			if r.Reward.Kind == Likelihood && r.Rollout.Tools.Used() {
				return "reward.kind likelihood replaces the end of a completion, which may hold calls of tools",
					"rollout.tools.kind: none, or another reward.kind"
			}
			return "", ""
		}},
		{[]string{"reward.kind", "rollout.source"}, func(r *Run) (string, string) {
			if r.Reward.Kind == Likelihood && r.Rollout.Source == "recorded" {
				return "reward.kind likelihood asks the policy about its own reasoning, not about recorded rollouts",
					"rollout.source: policy, or another reward.kind"
			}
			return "", ""
		}},
		{[]string{"reward.likelihood.measure", "reward.wrong"}, func(r *Run) (string, string) {
			if r.Reward.Likelihood.Measure == "log" && r.Reward.Wrong >= 0 {
				return fmt.Sprintf("reward.wrong is %s, but reward.likelihood.measure log is never above 0: a "+
						"completion without an answer would be the best", formatFloat(r.Reward.Wrong)),
					"reward.wrong: -10, or lower for long answers"
			}
			return "", ""
		}},
		{[]string{"reward.likelihood.measure", "reward.likelihood.baseline"}, func(r *Run) (string, string) {
			if r.Reward.Likelihood.Measure == "log" && r.Reward.Likelihood.Baseline {
				return "reward.likelihood.baseline clips to 0 to 1, where no difference of logarithms belongs",
					"reward.likelihood.baseline: false, or measure: mean"
			}
			return "", ""
		}},
		{[]string{"reward.likelihood.learn", "algo.distill.top_k"}, func(r *Run) (string, string) {
			if r.Reward.Likelihood.Learn > 0 && r.Algo.Distill.TopK > 0 {
				return "reward.likelihood.learn puts answers where a teacher's likeliest tokens are not known",
					"algo.distill.top_k: 0, or reward.likelihood.learn: 0"
			}
			return "", ""
		}},
	}
}

// aboutLikelihood is the help of reward.likelihood.measure.
const aboutLikelihood = `
  The place of an answer is where the task's grader looks for it: after \boxed{, <answer>,
  Answer: or ####, the last one. The tokens before it stay as sampled; the answer and what
  closes it (}, </answer>, the end token) replace the rest. mean is of the answer's tokens
  alone, the others also of what closes it: models that write }$ or }. as one token find } alone
  unlikely, and have mean for a better measure.

    RLPR       algo: {kind: grpo}, reward.likelihood: {measure: mean, baseline: true}
    VeriFree   algo: {kind: rloo, aggregation: seq-mean-token-sum, kl: {loss_coef: 0}},
               reward.likelihood: {measure: product, learn: 1}
    JEPO       as VeriFree with measure: log and a negative reward.wrong (the bound of one
               sample, arXiv:2503.19618)

  RLPR's own baseline is of the policy before training; ours of the one that sampled.
`

// aboutLearning is the help of reward.likelihood.learn.
const aboutLearning = `
  With a likelihood f(answer | reasoning) the gradient of its expectation has two parts:
  f less a baseline times the gradient of log p(reasoning), which is the policy loss, and
  the gradient of f itself by the answer's tokens, which is this term. With 1, an algo.advantage
  that does not divide (rloo) and algo.aggregation seq-mean-token-sum the sum is exact. The
  completion's own answer is then in no loss.
`
