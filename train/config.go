package train

import (
	"errors"
	"fmt"

	"exp/kernels"
	"exp/train/model"
	"exp/train/optim"
	"exp/train/ranks"
	"exp/train/rl"
	"exp/train/rollout"
)

// Optim holds the settings of one optimizer.
type Optim struct {
	Kind                               optim.Kind
	Momentum                           float64 // of SGD and Muon
	LR, Beta1, Beta2, Eps, WeightDecay float64
	// GradClip bounds the global L2 norm of a mini-batch's gradient.
	GradClip float64
	// BRatio multiplies LR for the B of adapters (LoRA+, arXiv:2402.12354); 0 stands for 1.
	BRatio float64
	// Schedule multiplies LR. It is read once per step that updates the model, counted from 1:
	// verl counts from 0, so its warm-up starts with a learning rate of 0.
	Schedule optim.Schedule
}

// StateBytes returns the memory of the optimizer of a model with these tensors and n parameters, which size ranks
// share: the moments of the first shard, and the room beside them. copies and operand are the backend's.
func (o Optim) StateBytes(tensors []model.Tensor, n, size int, copies model.PackedLen,
	operand kernels.DType) (moments, room int) {
	matrices := HiddenMatrices(tensors)
	moments = int(4 * o.Kind.MomentLen(ranks.Shards(n, size)[0], matrices, o.Momentum))
	if o.Kind == optim.KindMuon {
		room = optim.NewtonBytes(matrices, copies, operand.Size())
	}
	return moments, room
}

// rate returns the learning rate of step, counted from 1.
func (o Optim) rate(step int) float64 {
	return o.LR * o.Schedule.Multiplier(step)
}

// Config holds the settings of the RL loop.
type Config struct {
	Advantage string // a name in rl.Estimators; empty if the loss brings its own
	Loss      string // a name in rl.PolicyLosses
	// Settings are the values that the estimator and the loss read.
	Settings rl.Settings

	PromptsPerStep   int // problems sampled in a step
	PromptsPerUpdate int // problems in a mini-batch; divides PromptsPerStep
	Samples          int // completions per problem, n
	Steps            int
	Epochs           int  // passes over a step's batch
	Slices           int  // leaves of the tree that sums a mini-batch's gradient: a power of two
	Shuffled         bool // problems in a new random order each epoch

	Sampling rollout.Params
	// Turns says that completions have an Environment, on the ranks that sample: metrics count their turns.
	Turns bool
	// Conversations is how many an agent's episode has at most; 0 stands for 1.
	Conversations int
	// Staleness is the number of policy steps between sampling a step's completions and
	// training on them; the first steps have fewer. The old policy is then the one before
	// the step's updates, unless Correction.Bypass is set, and Correction may account for
	// the distance between the two.
	Staleness int
	// MaxPromptTokens is the prompt length limit, for prompt_length/clip_ratio.
	MaxPromptTokens int
	// MicroBatchTokens bounds a forward and backward pass; Recompute keeps only the layers'
	// inputs between the two. Neither changes a bit of the results.
	MicroBatchTokens int
	Recompute        bool
	Offload          Offload
	Policy, Critic   Optim
	Process          Process // of an estimator that needs a process reward model

	Self  SelfReward
	Votes VoteRewards // with RewardMajority
	// Likelihood is for RewardLikelihood, the zero value without it.
	Likelihood LikelihoodReward
	Filter     Filter
	Overlong   rl.Overlong
	// MaskTruncated leaves completions that the token limit cut off out of every loss.
	MaskTruncated bool
	// SFTWeight is the weight of rl.RightTerm, the language-modelling loss of right completions.
	SFTWeight float64
	// Demonstrations make the last completion of a group one that the policy did not sample.
	Demonstrations rl.Demonstrations
	// TopEntropy is the share of a step's tokens, those with the greatest entropies, that the policy loss reads; 0
	// and 1 are all.
	TopEntropy float64
	// OffPolicy is the bound of rl.DropOffPolicy, in nats a token; 0: nothing is left out.
	OffPolicy float64
	// Correction accounts for rollouts of another policy; its metrics are always recorded.
	// With Bypass, its loss replaces Loss.
	Correction rl.Correction

	Aggregation rl.Aggregation
	LossScale   float64 // tokens; for seq-mean-token-sum-norm
	KL          KL
	Distill     rl.Distillation // adds the reference's part to the advantages of the estimator
	EntropyCoef float64         // weight of the entropy bonus

	// VarianceProxies records rl.VarianceProxies, as the token baselines always do.
	VarianceProxies bool

	LogZ    model.LogZConfig
	Renewal Renewal

	// MaxNotGraded is the largest share of completions graded together that may lack a
	// verdict; more end the run. 0 means no limit.
	MaxNotGraded float64

	// VerifyRate is the share of sequences per step whose recorded log-probs are compared,
	// bit for bit, with the trainer's forward pass.
	VerifyRate float64
}

// KL says how the loss and the reward charge the distance to the reference policy.
type KL struct {
	LossCoef      float64
	LossEstimator rl.KL
	// RewardCoef times the KL estimate is subtracted from every token's reward.
	RewardCoef      float64
	RewardEstimator rl.KL
	Control         rl.KLControl
}

// FilterBy is the quantity that must differ within a group for training on it.
type FilterBy uint8

const (
	FilterNone     FilterBy = iota // none: every group is trained on
	FilterCorrect                  // correctness: verl's acc
	FilterScore                    // verdict reward: verl's score
	FilterOverlong                 // the same plus the overlong punishment: verl's seq_reward
	FilterFinal                    // the same less the KL in the reward: verl's seq_final_reward
)

// ParseFilterBy returns the quantity of verl's filter_groups.metric: acc, score, seq_reward or seq_final_reward; none
// filters nothing.
func ParseFilterBy(name string) (FilterBy, error) {
	switch name {
	case "none":
		return FilterNone, nil
	case "acc":
		return FilterCorrect, nil
	case "score":
		return FilterScore, nil
	case "seq_reward":
		return FilterOverlong, nil
	case "seq_final_reward":
		return FilterFinal, nil
	}
	return 0, fmt.Errorf("unknown quantity %q to filter groups by", name)
}

// Filter leaves out groups whose completions are all alike and samples further problems
// instead (DAPO's dynamic sampling, arXiv:2503.14476 §3.2). A step takes at most MaxBatches
// times its number of problems, and none twice; if groups are still missing it refills with
// groups it had left out, where verl stops.
type Filter struct {
	By         FilterBy
	MaxBatches int
	// Spread times the moving average of groups' standard deviations is the least that a group may have (RLPR,
	// arXiv:2506.18254); 0: any will do.
	Spread float64
	// Low and High bound the share of right completions of a group that passes, with FilterCorrect; High 0: no
	// bounds. Online prompt filtering, arXiv:2502.01456.
	Low, High float64
	// Complete leaves out groups with a completion that the token limit cut off.
	Complete bool
}

// Needs says which models an algorithm uses in addition to the policy.
type Needs struct {
	Reference, Critic, LogZ bool
	Process                 bool // an implicit process reward model
	// SumPiSquared is Σ_v π(v)² of the old policy at each token: a forward pass.
	SumPiSquared bool
}

// Needs returns what the configured algorithm uses. It panics on an unknown name.
func (c Config) Needs() Needs {
	e, _ := c.estimator()
	l := c.policyLoss()
	n := Needs{Reference: c.KL.used() || c.Distill.Coef != 0 || e.Process, Critic: e.Values, Process: e.Process,
		SumPiSquared: c.VarianceProxies || e.SumPiSquared}
	if l.Reads != nil {
		reference, logZ := l.Reads(c.Settings)
		n.Reference, n.LogZ = n.Reference || reference, logZ
	}
	return n
}

// Rows returns the rows of a step whose sequences have at most so many tokens.
func (c Config) Rows(longest int) Rows {
	update := c.PromptsPerUpdate
	if c.Needs().Process {
		update = max(update, c.Process.PromptsPerUpdate)
	}
	all := max(1, c.Conversations) * longest
	return Rows{Problems: c.PromptsPerStep, Update: update, Samples: c.Samples, Slices: c.Slices,
		Longest: all, New: c.Sampling.MaxNewTokens + all - longest, Budget: c.MicroBatchTokens, Taught: c.taught(),
		Conversations: c.Conversations}
}

// taught returns how many of the teacher's likeliest tokens the policy learns at each place; 0: only the sampled one,
// or nothing.
func (c Config) taught() int {
	if c.Distill.Coef == 0 {
		return 0
	}
	return c.Distill.TopK
}

// criticWarmup returns the number of first steps in which only the critic learns.
func (c Config) criticWarmup() int {
	if !c.Needs().Critic {
		return 0
	}
	return c.Settings.Int(rl.CriticWarmup)
}

// policyRate returns the policy's learning rate in step, counted from 1. As in verl its schedule
// begins with its first update, after the critic's warm-up; the schedule's length is the run's.
func (c Config) policyRate(step int) float64 {
	return c.Policy.rate(step - c.criticWarmup())
}

// Tracks reports whether the estimator reads tracked values, by which it also chooses problems.
func (c Config) Tracks() bool {
	e, _ := c.estimator()
	return e.Tracks
}

// SamplersNeedReference reports whether sampling reads the reference policy: a filter may.
func (c Config) SamplersNeedReference() bool {
	return c.Filter.By == FilterFinal && c.KL.RewardCoef != 0
}

func (k KL) used() bool { return k.LossCoef != 0 || k.RewardCoef != 0 }

// Validate reports settings that training cannot run with.
func (c Config) Validate() error {
	estimator, knownAdvantage := rl.EstimatorNamed(c.Advantage)
	loss, ok := rl.PolicyLossNamed(c.Loss)
	switch {
	case !ok:
		return fmt.Errorf("train: unknown policy loss %q", c.Loss)
	case loss.Advantages != nil && c.Advantage != "":
		return fmt.Errorf("train: the loss %s brings its own advantages, so %s cannot be chosen", c.Loss, c.Advantage)
	case loss.Advantages == nil && !knownAdvantage:
		return fmt.Errorf("train: unknown advantage estimator %q", c.Advantage)
	case loss.Advantages != nil && c.Distill.Teaches():
		return fmt.Errorf("train: the loss %s brings its own advantages, to which distillation cannot add", c.Loss)
	case c.taught() > 0 && c.Aggregation == 0:
		return fmt.Errorf("train: the loss %s has no token weights, which distillation as a loss needs", c.Loss)
	case c.Distill.TopK < 0 || c.Distill.TopK > kernels.MaxTopTokens:
		return fmt.Errorf("train: distillation of the %d likeliest tokens: want 0 to %d", c.Distill.TopK,
			kernels.MaxTopTokens)
	case c.Correction.Bypass != 0 && loss.Bypass != c.Correction.Bypass:
		return fmt.Errorf("train: the loss %s does not support rollout correction in bypass mode", c.Loss)
	case c.Self != RewardGraded && (estimator.Greedy || estimator.Components || estimator.Tracks):
		return fmt.Errorf("train: %s needs other rewards than those that completions give themselves",
			c.Advantage)
	case c.Likelihood.Learn != 0 && c.taught() > 0:
		return errors.New("train: reference answers cannot be learned together with a teacher's likeliest tokens")
	case c.Self != RewardGraded && estimator.Process:
		return fmt.Errorf("train: %s learns from verdicts, which rewards that completions give themselves do without",
			c.Advantage)
	case c.Filter.By != FilterNone && estimator.Tracks:
		return fmt.Errorf("train: %s chooses its problems, so groups cannot be filtered", c.Advantage)
	case c.Filter.By != FilterNone && c.Filter.MaxBatches < 1:
		return fmt.Errorf("train: group filtering with %d batches", c.Filter.MaxBatches)
	case c.PromptsPerStep < 1 || c.PromptsPerUpdate < 1 || c.PromptsPerStep%c.PromptsPerUpdate != 0:
		return fmt.Errorf("train: prompts_per_update %d must divide prompts_per_step %d", c.PromptsPerUpdate,
			c.PromptsPerStep)
	case estimator.Process && (c.Process.PromptsPerUpdate < 1 || c.PromptsPerStep%c.Process.PromptsPerUpdate != 0):
		return fmt.Errorf("train: %d problems in an update of the process reward model must divide prompts_per_step "+
			"%d", c.Process.PromptsPerUpdate, c.PromptsPerStep)
	case c.Samples < 1:
		return fmt.Errorf("train: %d samples per problem", c.Samples)
	case c.Staleness < 0:
		return fmt.Errorf("train: staleness %d", c.Staleness)
	case c.Steps < 0 || c.Epochs < 1:
		return fmt.Errorf("train: %d steps with %d epochs", c.Steps, c.Epochs)
	case !ranks.Valid(c.Slices):
		return fmt.Errorf("train: %d slices: a power of two up to %d", c.Slices, ranks.MaxSlices)
	case c.MicroBatchTokens < 1:
		return fmt.Errorf("train: micro-batches of %d tokens", c.MicroBatchTokens)
	case !(c.Sampling.Temperature > 0):
		return fmt.Errorf("train: temperature %g: training samples at a positive temperature", c.Sampling.Temperature)
	}
	return errors.Join(c.checkTurns(estimator), c.checkSteps(estimator), c.checkDemonstrations(estimator, loss))
}
