package train

import (
	"fmt"

	"exp/train/model"
	"exp/train/optim"
	"exp/train/rl"
	"exp/train/rollout"
)

// Optim are the settings of one optimizer.
type Optim struct {
	LR, Beta1, Beta2, Eps, WeightDecay float64
	// GradClip bounds the global L2 norm of a mini-batch's gradient.
	GradClip float64
	// Schedule multiplies LR. It is read once per step, counted from 1: verl counts
	// from 0, which gives the first step of a warm-up a learning rate of 0.
	Schedule optim.Schedule
}

// rate returns the learning rate of step, counted from 1.
func (o Optim) rate(step int) float64 {
	return o.LR * o.Schedule.Multiplier(step)
}

// Kind names an algorithm.
type Kind string

const (
	FlowRL Kind = "flowrl"
	PPO    Kind = "ppo"
	GRPO   Kind = "grpo"
)

// Config are the settings of the RL loop.
type Config struct {
	Kind Kind

	PromptsPerStep   int // problems sampled in a step
	PromptsPerUpdate int // problems in a mini-batch; divides PromptsPerStep
	Samples          int // completions per problem, n
	Steps            int
	Epochs           int  // passes over a step's batch
	Shuffled         bool // problems in a random order, another one each epoch

	Sampling rollout.Params
	// MaxPromptTokens is how long a prompt may be, for prompt_length/clip_ratio.
	MaxPromptTokens int
	// MicroBatchTokens bounds a forward and backward pass; Recompute keeps only the
	// layers' inputs between the two. Neither changes a bit.
	MicroBatchTokens int
	Recompute        bool
	Policy, Critic   Optim

	Aggregation rl.Aggregation
	LossScale   float64 // tokens; for seq-mean-token-sum-norm
	EntropyCoef float64
	Clip        rl.Clip // PPO and GRPO
	KL          KL      // PPO and GRPO

	Gamma, Lambda float64 // PPO
	CriticWarmup  int     // PPO: steps in which only the critic learns
	ValueClip     float64 // PPO

	ScaleStd bool // GRPO: divide advantages by the group's standard deviation

	Flow       rl.FlowRLConfig // FlowRL
	FlowReward FlowReward
	LogZ       model.LogZConfig

	// VerifyRate is the share of sequences whose recorded log-probs are compared,
	// bit for bit, with the trainer's forward pass in every step.
	VerifyRate float64
}

// KL says how the distance to the reference policy is charged.
type KL struct {
	LossCoef      float64
	LossEstimator rl.KL
	// RewardCoef times the estimate is taken off every token's reward.
	RewardCoef      float64
	RewardEstimator rl.KL
	Control         rl.KLControl
}

// FlowReward is what FlowRL balances log-probs against.
type FlowReward uint8

const (
	GroupAdvantage      FlowReward = 1 + iota // (r - mean)/std within the group: the recipe
	GroupAdvantageNoStd                       // r - mean
	RawReward                                 // r
)

// Needs says which models an algorithm uses beside the policy.
type Needs struct {
	Reference, Critic, LogZ bool
}

// Needs returns what the configured algorithm uses.
func (c Config) Needs() Needs {
	switch c.Kind {
	case FlowRL:
		return Needs{Reference: c.Flow.Reference == rl.ReferencePolicy, LogZ: c.Flow.UseLogZ}
	case PPO:
		return Needs{Reference: c.KL.used(), Critic: true}
	case GRPO:
		return Needs{Reference: c.KL.used()}
	}
	panic("train: unknown algorithm " + string(c.Kind))
}

func (k KL) used() bool { return k.LossCoef != 0 || k.RewardCoef != 0 }

// Validate reports settings that cannot be trained with.
func (c Config) Validate() error {
	switch {
	case c.PromptsPerStep < 1 || c.PromptsPerUpdate < 1 || c.PromptsPerStep%c.PromptsPerUpdate != 0:
		return fmt.Errorf("train: prompts_per_update %d must divide prompts_per_step %d", c.PromptsPerUpdate, c.PromptsPerStep)
	case c.Samples < 1:
		return fmt.Errorf("train: %d samples per problem", c.Samples)
	case c.Steps < 0 || c.Epochs < 1:
		return fmt.Errorf("train: %d steps with %d epochs", c.Steps, c.Epochs)
	case c.MicroBatchTokens < 1:
		return fmt.Errorf("train: micro-batches of %d tokens", c.MicroBatchTokens)
	case !(c.Sampling.Temperature > 0):
		return fmt.Errorf("train: temperature %g: training samples at a positive temperature", c.Sampling.Temperature)
	}
	return nil
}
