package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"exp/eval"
	"exp/experiments/ident"
	"exp/harness/answer"
	"exp/harness/config"
	"exp/harness/dataset"
	"exp/harness/prompt"
	"exp/train/checkpoint"
	"exp/train/model"
	"exp/train/reward"
	"exp/train/rl"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// newReward returns the grader of training and the function that closes it: the task itself, the task with the
// configured reward, or that reward alone. Only the ranks have its scorer that judge.
func (e *Env) newReward(t rollout.Grader) (g rollout.Grader, end func() error, err error) {
	if g, end, err = e.newOwnReward(t); err == nil {
		g = e.heeds(g)
	}
	return g, end, err
}

// newOwnReward is newReward without what agents say.
func (e *Env) newOwnReward(t rollout.Grader) (g rollout.Grader, end func() error, err error) {
	c := e.run().Reward
	if !c.ByTask() && !e.judges() {
		return reward.NewGrader(t, nil, c.Components), func() error { return nil }, nil
	}
	if e.run().JudgesAlone() {
		return e.newJudgeAlone(t, c.Components, creditOf(&c))
	}
	s, err := e.newScorer(c.Components)
	switch {
	case err != nil:
		return nil, nil, err
	case s == nil && len(c.Components) == 0:
		return t, func() error { return nil }, nil
	case s == nil:
		return reward.NewGrader(t, nil, c.Components), func() error { return nil }, nil
	}
	return reward.NewGrader(t, s, c.Components).Credits(creditOf(&c)), s.Close, nil
}

// creditOf returns what steps of completions earn in training; nil: completions earn their score.
func creditOf(r *config.Reward) *reward.Credit {
	if !r.RewardsSteps() {
		return nil
	}
	return &reward.Credit{Outcome: r.OutcomeWeight, Steps: rl.StepCredit{Wrong: r.StepWrong, Right: r.StepRight,
		Weight: r.StepWeight, Temperature: r.StepTemperature}}
}

// newJudgeAlone returns the grader of problems that only the reward judges, and the function that closes it. In a
// mixed task these are the prompts, and t grades the others.
func (e *Env) newJudgeAlone(t rollout.Grader, components []string,
	credit *reward.Credit) (g rollout.Grader, end func() error, err error) {
	s, err := e.newScorer(components)
	if err != nil {
		return nil, nil, err
	}
	alone := reward.NewAlone(s, e.run().Task.Prompts.Pass, components).Credits(credit)
	if e.run().Task.Kind != config.MixedTask {
		return e.heeds(alone), s.Close, nil
	}
	return e.heeds(reward.NewMixed(config.PromptsTask, alone, reward.NewGrader(t, nil, components))), s.Close, nil
}

// newScorer returns the configured scorer; nil if the task's reward counts.
func (e *Env) newScorer(components []string) (reward.Scorer, error) {
	scorer := rewardKindOf(&e.run().Reward).scorer
	if scorer == nil {
		return nil, nil
	}
	return scorer(e, slices.DeleteFunc(slices.Clone(components), reward.Builtin))
}

func (e *Env) newCommand(parts []string) *reward.Command {
	r := e.run()
	c := r.Reward
	return reward.NewCommand(reward.CommandOptions{Argv: c.Command, Parts: parts, Verdicts: r.JudgesAlone(),
		DataSource: r.Task.Kind, Workers: c.Workers, Batch: c.Batch,
		RowLimit: c.RowLimit, BatchLimit: c.BatchLimit, Retries: c.Retries, Restarts: c.Restarts,
		Log: (&stderrLines{show: func(line string) { e.warn("reward: %s", line) }}).add})
}

func (e *Env) newRewardModel() (*reward.Model, error) {
	r := e.run()
	policy, err := e.prompter()
	if err != nil {
		return nil, err
	}
	own, err := rewardPrompter(r, policy)
	if err != nil {
		return nil, err
	}
	o := reward.ModelOptions{Text: r.Reward.Text, Begin: r.Reward.Begin, End: r.Reward.End, Choice: r.Reward.Tokens,
		Label: r.Reward.Label, BatchTokens: r.Compute.MicroBatchTokens,
		Steps: stepsOf(&r.Reward, r.Reward.Separator, policy)}
	if own != nil {
		o.Read, o.ReadSteps = rewardChat(policy, own), rewardLayout(&r.Reward)(policy, own, r.Reward.Separator)
	}
	return reward.OpenModel(e.alone(), r.Reward.Weights, o)
}

// stepsOf returns how a process reward model reads completions of the policy with these prompts; nil for a reward
// model that scores their ends.
func stepsOf(r *config.Reward, separator string, policy *prompt.Prompter) *reward.Steps {
	if r.Steps == "" || r.Steps == config.None {
		return nil
	}
	s := &reward.Steps{Score: r.Steps, Split: r.Split, Separator: separator, Marks: r.Layout == rollout.StepsMarks}
	if r.RewardsSteps() {
		s.Piece = policy.Vocabulary().Piece
	}
	return s
}

func (e *Env) newJudge(parts []string) (*reward.Judge, error) {
	r := e.run().Reward
	c := r.Judge
	template, err := os.ReadFile(c.Template)
	if err != nil {
		return nil, err
	}
	o := reward.JudgeOptions{URL: c.URL, Model: c.Model, Template: string(template), Reading: reading(&r, parts),
		Temperature: c.Temperature, MaxTokens: c.MaxTokens, Concurrent: c.Concurrent, Rate: c.Rate,
		Timeout: c.Timeout, Retries: r.Retries, Block: e.rewardKey("judge."),
		Waits: func(why string) { e.warn("the judge does not answer yet, and is asked again: %s", why) }}
	if c.KeyEnv != "" {
		if o.Key = os.Getenv(c.KeyEnv); o.Key == "" {
			return nil, &KeyError{Key: e.rewardKey("judge.key_env"), Variable: c.KeyEnv}
		}
	}
	if c.Cache && e.Answers != "" {
		o.Cache = e.Answers
	}
	return reward.NewJudge(o.Share(e.seat())), nil
}

// reading returns how a judge's answers are read.
func reading(r *config.Reward, parts []string) reward.Reading {
	c := r.Judge
	x := reward.Reading{Field: c.Field, Parts: parts, Low: c.Low, High: c.High}
	if c.Pattern != "" {
		x.Pattern = must(regexp.Compile(c.Pattern))
	}
	return x
}

// KeyError says that the variable with the judge's API key is not set.
type KeyError struct{ Key, Variable string }

func (e *KeyError) Error() string {
	return fmt.Sprintf("%s names %s, which is not set or empty", e.Key, e.Variable)
}

// ExitCode is the code of a missing resource.
func (e *KeyError) ExitCode() int { return 7 }

// rewardDigests returns digests of the files that the reward depends on, by use. policy makes the
// prompts of the run. It tells bad the problems of each key.
func rewardDigests(c *config.Run, policy *prompt.Prompter,
	bad func(key, code, message, help string)) map[string]ident.Digest {
	x, add := digestsByUse("reward/", bad)
	if files := rewardKindOf(&c.Reward).files; files != nil {
		files(c, policy, add)
	}
	maps.DeleteFunc(x, func(_ string, d ident.Digest) bool { return d.IsZero() }) // no such file
	return x
}

// digestsByUse returns an empty map and a function that fills it, under a prefix. It tells bad the key of a digest
// that cannot be computed.
func digestsByUse(prefix string, bad func(key, code, message, help string)) (x map[string]ident.Digest,
	add func(key, use string, digest func() (ident.Digest, error))) {
	x = map[string]ident.Digest{}
	return x, func(key, use string, digest func() (ident.Digest, error)) {
		d, err := digest()
		if err != nil {
			bad(key, config.CodeData, err.Error(), "")
			return
		}
		x[prefix+use] = d
	}
}

// classifierDigest covers a reward model: architecture, weights and tokenizer.
func classifierDigest(r *config.Reward) (ident.Digest, error) {
	dir := r.Weights
	c, err := scorerConfig(r)
	if err != nil {
		return ident.Digest{}, err
	}
	arch, err := json.Marshal(c)
	if err != nil {
		return ident.Digest{}, err
	}
	parts, err := tokensAndWeights(dir)
	if err != nil {
		return ident.Digest{}, err
	}
	parts["config"] = string(arch)
	if len(r.Tokens) > 0 {
		parts["chooses"] = "tokens"
		err = checkChoice(r, c)
	} else if tokens, err := checkpoint.ClassifiesTokens(dir); err == nil && tokens {
		parts["classifies"] = "tokens"
	}
	if err != nil {
		return ident.Digest{}, err
	}
	return ident.Hash("exp/reward-model/1", parts)
}

// scorerConfig returns the architecture of the folder of a reward model.
func scorerConfig(r *config.Reward) (model.Config, error) {
	if len(r.Tokens) > 0 {
		return checkpoint.ReadConfig(r.Weights)
	}
	return checkpoint.ReadClassifierConfig(r.Weights)
}

// ScorerHeads returns what the memory of a reward model in a folder depends on.
func ScorerHeads(r *config.Reward) (model.Config, model.Heads, error) {
	c, err := scorerConfig(r)
	if err != nil || len(r.Tokens) > 0 {
		return c, model.Heads{Value: true}, err
	}
	h, err := checkpoint.ClassifierHeads(r.Weights)
	return c, h, err
}

// checkChoice says why a language model of architecture c cannot score by the tokens.
func checkChoice(r *config.Reward, c model.Config) error {
	tok, err := tokenizer.ReadFolder(r.Weights)
	if err != nil {
		return err
	}
	var ids [2]int32
	for i := range ids {
		if ids[i], err = reward.ChoiceToken(tok, r.Tokens[i]); err != nil {
			return err
		}
	}
	return checkpoint.CheckChoice(c, ids[0], ids[1])
}

// tokensAndWeights describes the model in a folder apart from its architecture.
func tokensAndWeights(dir string) (map[string]any, error) {
	tok, err := tokenizer.ReadFolder(dir)
	if err != nil {
		return nil, err
	}
	weights, err := weightsDigest(dir, false)
	return map[string]any{"weights": weights, "tokenizer": tok.Description()}, err
}

// newAnswers returns what puts reference answers in the places of completions' own.
func (e *Env) newAnswers(prompts *prompt.Prompter) (*answer.Writer, error) {
	end, err := prompts.End()
	return &answer.Writer{Task: dataset.TaskConfig(e.run()), Encode: prompts.Answer, Piece: prompts.Vocabulary().Piece,
		End: end}, err
}

// scorerBlock begins the keys of what scores evaluations, whose names are otherwise those of rewardBlock.
const (
	scorerBlock = "eval.final.scorer."
	rewardBlock = "reward."
)

// rewardKey returns the full name of a reward's key, or of the evaluation's scorer's.
func (e *Env) rewardKey(name string) string {
	if e.scoring {
		return scorerBlock + name
	}
	return rewardBlock + name
}

// scorerDigests is rewardDigests for what scores final evaluations; nil without a scorer.
func scorerDigests(c *config.Run, policy *prompt.Prompter,
	bad func(key, code, message, help string)) map[string]ident.Digest {
	if s := c.Eval.Final.Scorer; !s.Used() || s.Trained() {
		return nil
	}
	x, add := digestsByUse("scorer/", func(key, code, message, help string) {
		bad(key, code, strings.ReplaceAll(message, rewardBlock, scorerBlock), help)
	})
	own := c.ScoredBy()
	rewardKindOf(&own.Reward).files(own, policy, func(key, use string, digest func() (ident.Digest, error)) {
		add(scorerBlock+strings.TrimPrefix(key, rewardBlock), use, digest)
	})
	maps.DeleteFunc(x, func(_ string, d ident.Digest) bool { return d.IsZero() })
	return x
}

// scores has the scorer of the configuration score the samples of an evaluation, and adds its scores to the
// items. It reads the prompts that the policy was asked.
func (e *Env) scores(ctx context.Context, ev *Evaluation) error {
	scorer := e.run().Eval.Final.Scorer
	if !scorer.Used() || e.askingOf(ev.Label).Likelihood != "" {
		return nil
	}
	asked, err := e.rendered(ev.Problems, ev.Label)
	if err != nil {
		return err
	}
	own := *e
	own.Config, own.scoring = &config.Resolved{Run: *e.run().ScoredBy()}, true
	m, err := own.newScorer(nil)
	if err != nil {
		return err
	}
	list, err := eval.Score(ctx, reward.NewAlone(m, 0, nil), asked, ev.Samples,
		eval.Scoring{Limit: e.notGradedLimit()})
	if err = errors.Join(err, m.Close()); err == nil {
		err = eval.CheckScores(ev.Samples, list)
	}
	if err != nil {
		return err
	}
	eval.Rank(ev.Items, ev.Samples, ev.Verdicts, list, scorer.Vote)
	ev.Scores = list
	return nil
}
