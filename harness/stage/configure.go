package stage

import (
	"fmt"
	"math"
	"strings"

	"exp/harness/config"
	"exp/kernels"
	"exp/train"
	"exp/train/generate"
	"exp/train/model"
	"exp/train/optim"
	"exp/train/rl"
	"exp/train/rollout"
)

// The functions of this file turn the configuration into the plain settings of
// components. They hold no defaults.

// Operand returns the operand type of matmuls.
func Operand(c *config.Run) kernels.DType {
	if c.Model.DType == "bf16" {
		return kernels.BF16
	}
	return kernels.F32
}

// ModelConfig returns the architecture of a model with random initial weights.
func ModelConfig(c *config.Run, vocab int) model.Config {
	a := c.Model.Arch
	return model.Config{
		Vocab: vocab, Layers: a.Layers, Width: a.Width, Heads: a.Heads, KVHeads: a.KVHeads, Head: a.HeadSize,
		FFN:       a.FFN,
		RopeTheta: a.RopeTheta, NormEps: a.NormEps, QKVBias: a.QKVBias, QKNorm: a.QKNorm,
		TieEmbeddings: a.TieEmbeddings,
		MaxPositions:  a.MaxPositions, InitStd: a.InitStd,
	}
}

func optimConfig(o config.Optim, steps int) train.Optim {
	kind, err := optim.ParseScheduleKind(o.Schedule)
	if err != nil {
		panic("stage: " + err.Error())
	}
	formula, err := optim.ParseKind(o.Kind)
	if err != nil {
		panic("stage: " + err.Error())
	}
	return train.Optim{
		Kind: formula, Momentum: o.Momentum,
		LR: o.LR, Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps, WeightDecay: o.WeightDecay, GradClip: o.GradClip,
		Schedule: optim.Schedule{Kind: kind, Warmup: o.WarmupSteps, Total: steps, MinRatio: o.MinLRRatio, Cycles: 0.5,
			Stable: 0.9},
	}
}

// adaptedOptim is optimConfig of a model with adapters, if it has them.
func adaptedOptim(o config.Optim, l config.LoRA, steps int) train.Optim {
	x := optimConfig(o, steps)
	x.BRatio = l.BRatio
	return x
}

// PolicyOptim returns the optimizer of the policy, or the reward model, that learns in a stage.
func PolicyOptim(kind config.Stage, c *config.Run) train.Optim {
	switch kind {
	case config.SFT:
		return optimConfig(c.SFT.Optim, c.SFT.Steps)
	case config.RewardModel:
		return adaptedOptim(c.RewardModel.Optim, c.RewardModel.LoRA, c.RewardModel.Steps)
	case config.Prefer:
		return adaptedOptim(c.Prefer.Optim, c.Prefer.LoRA, c.Prefer.Steps)
	}
	return adaptedOptim(c.Train.Optim, c.Train.LoRA, c.Train.Steps)
}

func samplingParams(r config.Rollout) rollout.Params {
	if r.Source == recordedSource { // only greedy completions and online evaluations are sampled
		r.TopP = 1
	}
	return rollout.Params{Temperature: r.Temperature, TopK: r.TopK, TopP: r.TopP, MinP: r.MinP,
		Penalties:    penalties(r.Repetition, r.Presence, r.Frequency),
		MaxNewTokens: r.MaxNewTokens, Stop: r.Stop}
}

func penalties(repetition, presence, frequency float64) rollout.Penalties {
	return rollout.Penalties{Repetition: repetition, Presence: presence, Frequency: frequency}
}

// EngineOptions sizes the sampler by the rollout block, for the longest allowed prompts and
// completions of at most maxNew tokens, and for no more completions at once than calls have.
func EngineOptions(c *config.Run, arch model.Config, maxNew int, calls []generate.Call) generate.Options {
	r := c.Rollout
	o := generate.Options{
		MaxSequences: r.MaxSequences, PageTokens: r.PageTokens,
		MaxTokens: min(arch.MaxPositions, c.Data.MaxPromptTokens+maxNew), Calls: calls,
	}
	if len(calls) > 0 {
		most := 1
		for _, call := range calls {
			most = max(most, call.Completions())
		}
		o.MaxSequences = min(o.MaxSequences, most)
	}
	o.StepRows = o.MaxSequences + prefillRows
	return o
}

// Ridge returns generate.Options.Ridge of a model on a device: whether a run speculates changes no result.
func Ridge(c *config.Run, be kernels.Backend, arch model.Config) int {
	if !c.Rollout.Speculate {
		return 0
	}
	return generate.Ridge(be, arch)
}

// TrainConfig returns the settings of the RL loop.
func TrainConfig(c *config.Run) train.Config {
	t := train.Config{
		Advantage: c.Algo.Advantage, Loss: c.Algo.Loss,
		PromptsPerStep: c.Train.PromptsPerStep, PromptsPerUpdate: c.Train.PromptsPerUpdate,
		Samples: c.Rollout.N, Steps: c.Train.Steps, Epochs: c.Algo.Epochs, Shuffled: c.Data.Order == "shuffled",
		MaxPromptTokens: c.Data.MaxPromptTokens, Sampling: samplingParams(c.Rollout),
		Turns: c.Rollout.Tools.Used(), Conversations: c.Rollout.Tools.Most(), Staleness: c.Rollout.Staleness,
		MicroBatchTokens: c.Compute.MicroBatchTokens, Recompute: c.Compute.Recompute, Slices: c.Train.Slices,
		Policy:     adaptedOptim(c.Train.Optim, c.Train.LoRA, c.Train.Steps),
		VerifyRate: c.Verify.LogProbRate, MaxNotGraded: c.Reward.MaxNotGraded,
	}
	a := c.Algo
	if set := rewardKindOf(&c.Reward).train; set != nil {
		set(&t, &c.Reward)
	}
	t.Filter = train.Filter{MaxBatches: a.FilterGroups.MaxBatches, Spread: a.FilterGroups.Spread,
		Low: a.FilterGroups.Low, High: a.FilterGroups.High, Complete: a.FilterGroups.Complete}
	if by := a.FilterGroups.Metric; by != "" {
		t.Filter.By = must(train.ParseFilterBy(by))
	}
	t.Overlong = rl.Overlong{MaxResponse: c.Rollout.MaxNewTokens, Penalty: a.Overlong.Penalty,
		Buffer: overlongBuffer(c)}
	t.MaskTruncated, t.TopEntropy, t.SFTWeight = a.MaskTruncated, a.TopEntropy, a.SFTWeight
	t.OffPolicy = a.OffPolicyBound
	t.Demonstrations = rl.Demonstrations{Weight: a.Demonstrations.Weight, Shaping: a.Demonstrations.Shaping}
	t.Correction = correction(a.RolloutCorrection, t.Loss)
	if a.Aggregation != "" {
		t.Aggregation, t.LossScale = must(rl.ParseAggregation(a.Aggregation)), a.LossScaleFactor
	}
	t.Settings, t.EntropyCoef, t.KL, t.VarianceProxies = a.Settings, a.EntropyCoef, klConfig(a.KL), a.VarianceProxies
	t.Distill = distillation(a.Distill)
	t.Renewal = train.Renewal{Every: a.ReferenceEvery, Mix: a.ReferenceMix, ResetOptimizer: a.ReferenceResets}
	needs := t.Needs()
	if needs.Critic {
		t.Critic = adaptedOptim(a.Critic.Optim, c.Train.LoRA, c.Train.Steps)
	}
	if needs.Process {
		t.Process = train.Process{Optim: adaptedOptim(a.Prime.Optim, c.Train.LoRA, c.Train.Steps),
			PromptsPerUpdate: a.Prime.PromptsPerUpdate}
	}
	if needs.LogZ {
		t.LogZ = logZConfig(a.Settings)
	}
	return t
}

// overlongBuffer returns the tokens over which the reward falls.
func overlongBuffer(c *config.Run) int {
	return int(math.Round(c.Algo.Overlong.Buffer * float64(c.Rollout.MaxNewTokens)))
}

// OverlongNote says that algo.overlong punishes nothing though it is on; empty if it does, or is off.
func OverlongNote(c *config.Run) string {
	if c.Algo.Overlong.Buffer == 0 || overlongBuffer(c) > 0 {
		return ""
	}
	return fmt.Sprintf("long completions lose no reward: algo.overlong.buffer %v of rollout.max_new_tokens %d is "+
		"less than half a token", c.Algo.Overlong.Buffer, c.Rollout.MaxNewTokens)
}

// correction returns the settings of rollout correction for a loss.
func correction(c config.Correction, loss string) rl.Correction {
	out := rl.Correction{Weights: must(rl.ParseRolloutWeights(c.Weights)), Low: c.WeightLow, High: c.WeightHigh,
		Normalize: c.Normalize}
	if len(c.Reject) > 0 {
		out.Reject = must(rl.ParseRejections(strings.Join(c.Reject, ","), strings.Join(c.RejectBounds, ",")))
	}
	if c.Mode == "bypass" {
		l, _ := rl.PolicyLossNamed(loss)
		out.Bypass = l.Bypass
	}
	return out
}

func klConfig(k config.KL) train.KL {
	out := train.KL{LossCoef: k.LossCoef, RewardCoef: k.RewardCoef}
	if k.LossCoef != 0 && k.LossEstimator != "" {
		out.LossEstimator = must(rl.ParseKL(k.LossEstimator))
		out.LossEstimator.Weighted = k.LossWeighted
	}
	if k.RewardCoef != 0 {
		out.RewardEstimator = must(rl.ParseKL(k.RewardEstimator))
		out.Control = rl.KLControl{Adaptive: k.Controller == "adaptive", Target: k.Target,
			Horizon: float64(k.Horizon)}
	}
	return out
}

// logZConfig is the shape of the head that learns log Z.
func logZConfig(s rl.Settings) model.LogZConfig {
	return model.LogZConfig{
		Layers: s.Int(rl.LogZLayers), Dropout: s.Float(rl.LogZDropout),
		PoolAll: s.Word(rl.LogZPool) == "all", Detach: s.Bool(rl.LogZDetach),
	}
}

// must unwraps the parse of a word that the configuration has checked.
func must[T any](v T, err error) T {
	if err != nil {
		panic("stage: " + err.Error())
	}
	return v
}

// distillation returns what the reference policy teaches.
func distillation(d config.Distill) rl.Distillation {
	x := rl.Distillation{Coef: d.Coef, TopK: d.TopK, Max: math.Inf(1), Floor: math.Inf(-1)}
	if d.Max != nil {
		x.Max = *d.Max
	}
	if d.Floor != nil {
		x.Floor = *d.Floor
	}
	return x
}
