package stage

import (
	"fmt"
	"os"
	"strings"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/prompt"
	"exp/train"
	"exp/train/reward"
	"exp/train/rl"
	"exp/train/rollout"
)

// rewardKind is what stages do for a kind of reward: a row of the only table of reward.kind in this package. The
// other one, of keys, checks and needs, is in harness/config.
type rewardKind struct {
	// train sets what the loop computes itself; nil: it learns from the grader's rewards.
	train func(t *train.Config, r *config.Reward)
	// scorer makes what scores completions, whose answers have the named parts; nil: the task's reward counts.
	scorer func(e *Env, parts []string) (reward.Scorer, error)
	// judges returns how many of so many ranks that sample score completions, each its share, while a number of others
	// may score too; nil: the first one alone.
	judges func(r *config.Reward, ranks, others int) int
	// reads returns the function that says what the scorer reads of a completion, where it scores equal ones once;
	// nil: it scores each.
	reads func(r *config.Reward) (func(it rollout.Item) string, error)
	// files adds the digests of files that the reward depends on, each under its key and use; a zero one is left out.
	files func(c *config.Run, policy *prompt.Prompter, add func(key, use string, digest func() (ident.Digest, error)))
	// note is a line of the plan; nil: there is none.
	note func(c *config.Run, x External) string
	// source is a line that identifies a scorer that is tried before any work, and hint what to do if it fails.
	source func(r *config.Reward) string
	hint   string
}

// rewardKinds has a row for each word of reward.kind.
func rewardKinds() map[string]rewardKind {
	return map[string]rewardKind{
		"task": {},
		"command": {
			scorer: func(e *Env, parts []string) (reward.Scorer, error) { return e.newCommand(parts), nil },
			files:  commandFiles,
			source: func(r *config.Reward) string { return "command: " + strings.Join(r.Command, " ") },
			hint: "run the program by hand: it reads a JSON row per line and answers each with a line like " +
				`{"id": "1", "score": 0.5}, flushed at once (Python: print(…, flush=True)); see docs/algorithms.md`,
		},
		"judge": {
			scorer: func(e *Env, parts []string) (reward.Scorer, error) { return e.newJudge(parts) },
			judges: func(r *config.Reward, ranks, others int) int {
				return max(1, min(ranks, r.Judge.Concurrent-others))
			},
			reads:  judgeReads,
			files:  judgeFiles,
			source: func(r *config.Reward) string { return "judge: " + r.Judge.URL },
			hint:   "check reward.judge.url, reward.judge.model and that the server answers",
		},
		"model": {
			scorer: func(e *Env, _ []string) (reward.Scorer, error) { return e.newRewardModel() },
			judges: allJudge,
			files:  rewardModelFiles,
			note:   rewardModelNote,
		},
		config.TrainedReward: {
			scorer: func(e *Env, _ []string) (reward.Scorer, error) { return e.newTrainedScorer() },
			judges: allJudge,
			note:   trainedRewardNote,
		},
		"genrm": {
			scorer: func(e *Env, parts []string) (reward.Scorer, error) { return e.newGenerative(parts) },
			judges: allJudge,
			reads:  judgeReads,
			files:  generativeFiles,
			note:   generativeNote,
			source: func(r *config.Reward) string { return "generative reward model: " + r.Weights },
			hint: "have the template of reward.judge.template ask for an answer that reward.judge.pattern or " +
				"reward.judge.field finds; exp chat FOLDER asks the model by hand",
		},
		config.Majority: {train: func(t *train.Config, r *config.Reward) {
			t.Self = train.RewardMajority
			t.Votes = train.VoteRewards{Right: r.Correct, Wrong: r.Wrong, Format: r.Format}
		}},
		config.Confidence: {train: func(t *train.Config, _ *config.Reward) { t.Self = train.RewardConfidence }},
		config.Likelihood: {train: func(t *train.Config, r *config.Reward) {
			l := r.Likelihood
			t.Self = train.RewardLikelihood
			t.Likelihood = train.LikelihoodReward{Measure: must(rl.ParseLikelihood(l.Measure)), Baseline: l.Baseline,
				Absent: r.Wrong, Learn: l.Learn}
		}},
	}
}

// allJudge is rewardKind.judges of a model that each rank holds.
func allJudge(_ *config.Reward, ranks, _ int) int { return ranks }

// judgeReads is rewardKind.reads of a judge that is asked by messages.
func judgeReads(r *config.Reward) (func(it rollout.Item) string, error) {
	template, err := os.ReadFile(r.Judge.Template)
	return func(it rollout.Item) string { return reward.Message(string(template), it) }, err
}

// rewardKindOf returns the row of a reward; an empty one if the task defines the reward.
func rewardKindOf(r *config.Reward) rewardKind { return rewardKinds()[r.Kind] }

func commandFiles(c *config.Run, _ *prompt.Prompter, add func(key, use string, digest func() (ident.Digest, error))) {
	r := &c.Reward
	add("reward.command", "command", func() (ident.Digest, error) { return ident.Program(r.Command) })
	if len(r.Files) > 0 {
		add("reward.files", "files", func() (ident.Digest, error) { return ident.Paths(r.Files) })
	}
}

func judgeFiles(c *config.Run, _ *prompt.Prompter, add func(key, use string, digest func() (ident.Digest, error))) {
	add("reward.judge.template", "template",
		func() (ident.Digest, error) { return ident.Paths([]string{c.Reward.Judge.Template}) })
}

func rewardModelFiles(c *config.Run, policy *prompt.Prompter,
	add func(key, use string, digest func() (ident.Digest, error))) {
	add("reward.weights", "model", func() (ident.Digest, error) { return classifierDigest(&c.Reward) })
	add("reward.weights", "chat template", func() (ident.Digest, error) { return rewardTemplate(c, policy) })
}

// RewardNote says in the plan how a reward scores; empty for most.
func RewardNote(c *config.Run, x External) string {
	if note := rewardKindOf(&c.Reward).note; note != nil {
		return note(c, x) + creditNote(&c.Reward)
	}
	return ""
}

// creditNote says what steps of completions earn; empty if they earn nothing by themselves.
func creditNote(r *config.Reward) string {
	if !r.RewardsSteps() {
		return ""
	}
	text := fmt.Sprintf("; each step earns %g (wrong) to %g (right)", r.StepWrong, r.StepRight)
	if r.StepWeight != 1 {
		text += fmt.Sprintf(" times %g", r.StepWeight)
	}
	if r.Credit == rl.CreditMin {
		text += ", of which the least counts"
	}
	if r.OutcomeWeight > 0 {
		return text + fmt.Sprintf(", and the answer %g times its verdict", r.OutcomeWeight)
	}
	return text + ", the answer nothing more"
}
