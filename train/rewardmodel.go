package train

import (
	"context"
	"fmt"
	"math"
	"time"

	"exp/kernels"
	"exp/train/model"
	"exp/train/ranks"
	"exp/train/rl"
	"exp/train/rollout"
)

// RewardModelConfig holds the settings of training a reward model.
type RewardModelConfig struct {
	Steps            int
	PairsPerStep     int
	MicroBatchTokens int
	Recompute        bool
	Slices           int // as in Config
	Offload          Offload
	Optim            Optim
	Loss             rl.RewardPairConfig
	// ValidateEvery is the number of steps between validations on the held-out pairs; 0: only after the last step.
	ValidateEvery int
}

// Rows returns the rows of a step whose pairs have at most so many tokens, as RatedPair.Tokens counts them.
func (c RewardModelConfig) Rows(longest int) Rows {
	return Rows{Problems: c.PairsPerStep, Update: c.PairsPerStep, Samples: 1, Slices: c.Slices, Longest: longest,
		New: longest, Budget: c.MicroBatchTokens, Pairs: true}
}

// RatedPair holds the tokens that a reward model reads of two answers: what both begin with, the prompt and perhaps
// more, and how each goes on.
type RatedPair struct {
	ID               string
	Prompt           []int32
	Chosen, Rejected []int32 // either may be empty
	Margin           float64 // of the loss
}

// Tokens returns how many tokens a micro-batch has of it: the prompt once, and both answers. Each has one more, which
// is not computed: the engine reads the state before a token.
func (p *RatedPair) Tokens() int {
	return len(p.Prompt) + max(2, len(p.Chosen)+1) + max(2, len(p.Rejected)+1)
}

// RewardModelParts are the inputs of training a reward model.
type RewardModelParts struct {
	Backend  kernels.Backend
	Model    *model.Model // trainable, with a score head
	Pairs    []RatedPair
	HeldOut  []RatedPair // for validation; may be empty
	Seed     func(label string) uint64
	Recorder Recorder
	Clock    func() time.Time
	Ranks    ranks.Group // nil: ranks.Alone
	Tensor   int         // as in Parts
}

// RewardModel trains a reward model on pairs in a file: it minimises the mean loss of a step's pairs
// (rl.RewardPairConfig). The reward of an answer is the score of the state at its last token. Pairs come in a new
// random order each epoch. Create it with NewRewardModel, then Run it.
type RewardModel struct {
	scoreTuner
	loss           rl.RewardPairConfig
	pairs, heldOut []RatedPair
}

// NewRewardModel prepares training from step 0. Close it afterwards.
func NewRewardModel(c RewardModelConfig, p RewardModelParts) (*RewardModel, error) {
	longest, err := p.longest()
	switch {
	case err != nil:
		return nil, err
	case len(p.Pairs) < c.PairsPerStep:
		return nil, fmt.Errorf("reward model: only %d pairs, fewer than pairs_per_step %d", len(p.Pairs),
			c.PairsPerStep)
	case !ranks.Valid(c.Slices):
		return nil, fmt.Errorf("reward model: %d slices: a power of two up to %d", c.Slices, ranks.MaxSlices)
	}
	t := &RewardModel{loss: c.Loss, pairs: p.Pairs, heldOut: p.HeldOut,
		scoreTuner: scoreTuner{m: p.Model, rows: c.Rows(longest), optim: c.Optim, slices: c.Slices,
			every: c.ValidateEvery,
			tuner: tuner{be: p.Backend, ranks: p.Ranks, clock: p.Clock, recorder: p.Recorder, steps: c.Steps,
				order: order{n: len(p.Pairs), perStep: c.PairsPerStep, shuffled: true, seed: p.Seed}}}}
	if err := t.open("reward_model", p.Model, c.Optim, t.rows, c.Offload, keptBy(c.Recompute), p.Tensor); err != nil {
		return nil, err
	}
	return t, nil
}

// longest checks the pairs and returns the most tokens of one.
func (p *RewardModelParts) longest() (most int, err error) {
	limit := p.Model.Config.MaxPositions
	for _, list := range [][]RatedPair{p.Pairs, p.HeldOut} {
		for i := range list {
			x := &list[i]
			switch n := len(x.Prompt) + max(len(x.Chosen), len(x.Rejected)); {
			case len(x.Prompt) == 0:
				return 0, fmt.Errorf("reward model: the answers of pair %s begin with different tokens", x.ID)
			case n > limit:
				return 0, fmt.Errorf("reward model: pair %s has an answer that ends after %d tokens, the model holds "+
					"%d positions", x.ID, n, limit)
			case math.IsNaN(x.Margin) || math.IsInf(x.Margin, 0):
				return 0, fmt.Errorf("reward model: pair %s has the margin %v", x.ID, x.Margin)
			}
			most = max(most, x.Tokens())
		}
	}
	return most, nil
}

// Run takes the remaining steps. Between steps it calls stop; if that returns true, Run returns ErrStopped, and State
// and Buffers can be saved. All ranks stop if one is asked to.
func (t *RewardModel) Run(ctx context.Context, stop func() bool) error {
	return t.run(ctx, stop, t.Step)
}

// Step takes one step and returns its record. It fails only if another rank does.
func (t *RewardModel) Step() (*Step, error) {
	var heldOut func() scoredExamples
	if len(t.heldOut) > 0 {
		heldOut = func() scoredExamples { return ratingsOf(t.heldOut, t.loss) }
	}
	return t.learn(func(drawn []int) scoredExamples {
		pairs := make([]RatedPair, len(drawn))
		for i, k := range drawn {
			pairs[i] = t.pairs[k]
		}
		return ratingsOf(pairs, t.loss)
	}, heldOut)
}

// ratingsOf lays out pairs, chosen before rejected.
func ratingsOf(pairs []RatedPair, loss rl.RewardPairConfig) *ratings {
	rows, margins := make([]Trajectory, 0, 2*len(pairs)), map[*rollout.Problem]float64{}
	for i := range pairs {
		x := &pairs[i]
		q := &rollout.Problem{ID: x.ID}
		margins[q] = x.Margin
		for side, answer := range [][]int32{x.Chosen, x.Rejected} {
			tokens := append(append(make([]int32, 0, len(answer)+1), answer...), 0) // see RatedPair.Tokens
			rows = append(rows, Trajectory{Problem: q, Prompt: x.Prompt, Sample: side,
				Completion: &rollout.Completion{Tokens: tokens, LogProbs: make([]float32, len(tokens))},
				Verdict:    rollout.Verdict{Status: rollout.Graded}})
		}
	}
	b := newBatch(rows, rl.Overlong{}, nil)
	b.paired = true
	return &ratings{stateScores: stateScores{batch: b}, cfg: loss, margin: margins}
}

// ratings are the rewards of pairs.
type ratings struct {
	stateScores
	cfg    rl.RewardPairConfig
	margin map[*rollout.Problem]float64
}

// reward returns the reward of a row: the score of the state at its last token.
func (x *ratings) reward(row int) float64 { return float64(x.value[x.rows[row+1]-1]) }

// pair returns the loss of the pair whose chosen answer is a row.
func (x *ratings) pair(row int) rl.RewardPair {
	return x.cfg.Pair(x.reward(row), x.reward(row+1), x.margin[x.traj[row].Problem])
}

func (x *ratings) slopes(grad []float32, r0, r1 int) {
	n := float64(len(x.traj) / 2)
	for row := r0; row < r1; row += 2 {
		for i, slope := range x.pair(row).Slopes {
			grad[x.rows[row+i+1]-1-x.rows[r0]] = float32(slope / n)
		}
	}
}

// ratingSummary holds means over pairs, and the extent of their rewards.
type ratingSummary struct {
	loss, accuracy, margin, chosen, rejected float64
	low, mean, high, deviation               float64 // of all rewards
}

// summary sums up all pairs. An answer that is not rated above the other one is wrong.
func (x *ratings) summary() (s ratingSummary) {
	s.low, s.high = math.Inf(1), math.Inf(-1)
	var squares float64
	for row := 0; row < len(x.traj); row += 2 {
		chosen, rejected := x.reward(row), x.reward(row+1)
		s.loss += x.pair(row).Loss
		s.margin += chosen - rejected
		if chosen > rejected {
			s.accuracy++
		}
		s.chosen += chosen
		s.rejected += rejected
		for _, r := range []float64{chosen, rejected} {
			s.low, s.high = min(s.low, r), max(s.high, r)
		}
	}
	n := float64(len(x.traj) / 2)
	s.mean = (s.chosen + s.rejected) / (2 * n)
	for row := range x.traj {
		d := x.reward(row) - s.mean
		squares += float64(d * d)
	}
	s.deviation = math.Sqrt(squares / (2 * n))
	for _, v := range []*float64{&s.loss, &s.accuracy, &s.margin, &s.chosen, &s.rejected} {
		*v /= n
	}
	return s
}

// metrics returns the measurements of a step's pairs.
func (x *ratings) metrics() []rl.Metric {
	s := x.summary()
	return []rl.Metric{{Name: "rm/loss", Value: s.loss}, {Name: "rm/accuracy", Value: s.accuracy},
		{Name: "rm/margin", Value: s.margin}, {Name: "rm/reward_chosen", Value: s.chosen},
		{Name: "rm/reward_rejected", Value: s.rejected}, {Name: "rm/reward_min", Value: s.low},
		{Name: "rm/reward_mean", Value: s.mean}, {Name: "rm/reward_max", Value: s.high}}
}

// heldOut returns the measurements of held-out pairs.
func (x *ratings) heldOut() []rl.Metric {
	s := x.summary()
	return []rl.Metric{{Name: "rm/val_loss", Value: s.loss}, {Name: "rm/val_accuracy", Value: s.accuracy},
		{Name: "rm/val_margin", Value: s.margin}, {Name: "rm/val_reward_mean", Value: s.mean},
		{Name: "rm/val_reward_std", Value: s.deviation}}
}
