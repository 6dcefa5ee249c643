// Package train is the reinforcement-learning loop, and the supervised fine-tuning that
// precedes it. A step samples completions of some problems, grades them, scores them under
// the reference policy and the critic, turns rewards into advantages, and updates the
// models:
//
//	problems → rollouts → verdicts → reference log-probs, values → advantages
//	         → critic updates → policy updates → record
//
// in the order of verl's trainer. One difference is the point of the project: sampler and
// trainer are the same engine, so the log-probs of the old policy are the ones the sampler
// recorded and are not computed a second time. Every step compares a share of them bit for
// bit.
//
// The package receives problems, a Sampler, a Grader, a Recorder and a seed function. It
// knows no task, no file and no database.
package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"exp/kernels"
	"exp/train/model"
	"exp/train/ranks"
	"exp/train/rl"
	"exp/train/rollout"
)

// Parts are the components a Trainer works with. It owns none of them.
type Parts struct {
	Backend kernels.Backend
	Policy  *model.Model // trainable; has the log Z head if Needs().LogZ
	// Reference is frozen, of any architecture with the policy's tokens, or of the policy's if it is renewed; nil
	// unless needed.
	Reference *model.Model
	Teachers  []Teacher // which take Reference's place for some problems; none without Reference
	// Route returns the Teacher.Source of a problem; it is needed with Teachers.
	Route   func(p *rollout.Problem) string
	Critic  *model.Model    // trainable, with a value head; nil unless needed
	Process *model.Model    // trainable, the process reward model, of Policy's architecture; nil unless needed
	Sampler rollout.Sampler // draws from Policy or Copy; nil on a rank that only learns
	Grader  rollout.Grader
	Judging Judging // of Grader
	// Agreement returns the answers of completions of a problem, equal where they agree and empty without one,
	// found without its gold answers; it is needed with RewardMajority.
	Agreement func(ctx context.Context, p *rollout.Problem, list []*rollout.Completion) ([]string, error)
	// Answer returns the reference answer of a problem in the place of a completion's own, nil if it gives none, or,
	// without a completion, as one without reasoning; it is needed with RewardLikelihood.
	Answer func(p *rollout.Problem, c *rollout.Completion) (*Answer, error)
	Prompt func(p *rollout.Problem) ([]int32, error) // the tokens the policy continues
	// Demonstration returns a right completion of a problem, without log-probs, as the policy would have sampled it;
	// nil: the problem has none. It is needed with Config.Demonstrations.
	Demonstration func(p *rollout.Problem) (*rollout.Completion, error)
	Problems      []rollout.Problem
	Seed          func(label string) uint64
	Recorder      Recorder
	// Copy, if not nil, holds the weights that Sampler draws from, and the Trainer takes them from
	// Policy: on each rank if RolloutTensor differs from Tensor, and on ranks that only sample, whose
	// Policy is on it. Adapters have no copy.
	Copy *model.Backbone
	// Recorded, if not nil, replaces sampling; the Sampler then draws only greedy
	// completions.
	Recorded *Recording
	// Ranks are the processes that compute the run; nil: ranks.Alone. Each has a Trainer with
	// the same Config and Parts, and all Trainers call the same methods. They record and learn
	// the same, with the bits of a rank alone.
	Ranks ranks.Group
	// Samplers is the number of Ranks that only sample, the last ones. Their Policy is frozen. They
	// need no Critic, and a Reference only if Config.SamplersNeedReference.
	Samplers int
	// Wait, if not nil, is called with true before this rank waits for as long as the work of others
	// takes (Trainer.Meet), and with false afterwards: no limit of an exchange may apply meanwhile.
	Wait func(on bool)
	// Tensor is the number of neighbouring ranks whose Backend shares products (package
	// tensor) and that compute the same rows; 0 stands for 1.
	Tensor int
	// RolloutTensor is the number of neighbouring ranks that sample the same completions and share the
	// products of the Sampler's model; 0 stands for Tensor.
	RolloutTensor int
	// Clock measures phases; results do not depend on it.
	Clock func() time.Time
	// Phase, if not nil, is called with the phase of a step and its progress, in completions; total
	// is 0 if that is unknown. Several goroutines may call it, one at a time.
	Phase func(step int, phase string, done, total int)
	// Show gives the tokens of an image that an agent brought, in another process or before a checkpoint; nil: none
	// did.
	Show func(im rollout.Picture) (model.Image, error)
	// AfterStep, if not nil, is called after a step was recorded, for checkpoints and
	// evaluation. Its error ends the run.
	AfterStep func(step int) error
}

// Trainer runs the loop. Create it with New, then Run it.
type Trainer struct {
	Parts
	cfg        Config
	needs      Needs
	policy     *learner // nil on a rank that only samples
	critic     *learner
	process    *learner
	passes     *passes
	references []reference // Reference, if it is needed, and Teachers
	data       ranks.Group // of Ranks, those that share mini-batches with this one
	// Of Ranks, those that learn and those that sample: all, or without Samplers and only they.
	learning, sampling ranks.Group
	copier             *copier // made when copies are first set
	copied             bool    // PrepareSampler has set the copy
	copiedUpdates      int     // of the policy, that the copy has then
	order              order
	tracker            *tracker  // of problems' values; nil unless the estimator reads them
	prompt             [][]int32 // encoded prompts, by problem

	step       int          // finished steps
	told       int          // steps that Recorder has
	within     bool         // a step has begun to change the state
	pending    []*collected // later steps, sampled but not trained on
	batches    int          // batches of problems sampled so far
	meanSpread float64      // moving average of groups' standard deviations (Filter.Spread); 0: none yet
	klCoef     float64      // coefficient of the KL in the reward
	scratch    scratch
}

// Run returns ErrStopped when stop asked it to end: the last step is complete and recorded,
// and State can be saved.
var ErrStopped = errors.New("training stopped")

// New prepares a loop from step 0. Close it afterwards.
func New(c Config, p Parts) (*Trainer, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	t := &Trainer{Parts: p, cfg: c, needs: c.Needs(), klCoef: c.KL.RewardCoef}
	if t.Clock == nil {
		t.Clock = time.Now
	}
	if err := t.joinRanks(); err != nil {
		return nil, err
	}
	err := p.checkRenewal(c)
	if err == nil {
		t.tracker, err = t.newTracker()
	}
	if err != nil {
		return nil, err
	}
	parts := len(rollout.ComponentNames(p.Grader))
	if e, settings := c.estimator(); e.Components {
		if n := len(settings.Floats(rl.GDPOWeights)); parts == 0 || n > 0 && n != parts {
			return nil, fmt.Errorf("train: %s has %d weights for %d reward components", e.Name, n, parts)
		}
	}
	if len(p.Problems) < c.PromptsPerStep {
		return nil, fmt.Errorf("train: only %d problems, fewer than prompts_per_step %d", len(p.Problems),
			c.PromptsPerStep)
	}
	longest, err := t.encodePrompts()
	if err != nil {
		return nil, err
	}
	if limit := p.Policy.Config.MaxPositions; longest > limit {
		return nil, fmt.Errorf("train: the longest prompt with max_new_tokens has %d tokens, the model holds %d "+
			"positions", longest, limit)
	}
	for _, ref := range p.referenceModels() {
		if err := follows(ref.Config, p.Policy.Config, longest); err != nil {
			return nil, err
		}
	}
	if k := c.taught(); k > p.Policy.Config.Vocab {
		return nil, fmt.Errorf("train: algo.distill.top_k is %d, but the model has %d tokens", k,
			p.Policy.Config.Vocab)
	}
	if err := p.checkDemonstrations(c); err != nil {
		return nil, err
	}
	if p.Recorded != nil {
		if c.Staleness != 0 {
			return nil, errors.New("train: recorded rollouts cannot be sampled ahead: staleness must be 0")
		}
		if err := c.CheckRecording(p.Recorded, p.Problems, p.Seed); err != nil {
			return nil, err
		}
		if !p.Recorded.LogProbs {
			t.cfg.Correction = rl.Correction{}
		}
	}
	t.order = order{n: len(p.Problems), perStep: c.PromptsPerStep, shuffled: c.Shuffled, seed: p.Seed}

	if err := t.allocate(longest); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// encodePrompts sets the tokens of all problems and returns the length of the longest sequence.
func (t *Trainer) encodePrompts() (longest int, err error) {
	for i := range t.Problems {
		ids, err := t.Prompt(&t.Problems[i])
		if err != nil {
			return 0, fmt.Errorf("train: problem %s: %w", t.Problems[i].ID, err)
		}
		if len(ids) == 0 {
			return 0, fmt.Errorf("train: problem %s has an empty prompt", t.Problems[i].ID)
		}
		t.prompt = append(t.prompt, ids)
		longest = max(longest, len(ids)+t.cfg.Sampling.MaxNewTokens)
	}
	return longest, nil
}

// Close frees the optimizers and workspaces.
func (t *Trainer) Close() {
	for _, l := range t.learners() {
		l.close()
	}
	for _, ref := range t.references {
		if ref.own {
			ref.passes.close()
		}
	}
	if t.passes != nil {
		t.passes.close()
	}
}

// Run takes the remaining steps. Between steps it calls stop and returns ErrStopped if that
// is true; all ranks stop if one is asked to. If ctx is cancelled it abandons the current step.
func (t *Trainer) Run(ctx context.Context, stop func() bool) error {
	if t.Samplers > 0 {
		if err := t.Meet(nil); err != nil { // the others may have work before
			return err
		}
		if err := t.teach(); err != nil {
			return err
		}
	}
	for t.step < t.cfg.Steps {
		if stopped, err := ranks.Any(t.Ranks, stop != nil && stop()); err != nil {
			return err
		} else if stopped {
			return ErrStopped
		}
		rec, err := t.Step(ctx)
		if err != nil {
			return err
		}
		if rec != nil {
			if err := t.Recorder.Step(rec); err != nil {
				return err
			}
		}
		t.told = t.step
		if t.AfterStep != nil {
			if err := t.AfterStep(t.step); err != nil {
				return err
			}
		}
	}
	return nil
}

// Step takes one step and returns its record, nil on a rank that only samples.
func (t *Trainer) Step(ctx context.Context) (rec *Step, err error) {
	defer ranks.Recover(&err)
	step := t.step + 1
	clock := newStopwatch(t.Clock)
	if t.onlySamples() {
		return nil, t.sampleStep(ctx, clock)
	}
	if err := t.material(ctx, clock); err != nil {
		return nil, err
	}
	t.within = true
	got := t.pending[0]
	rec = &Step{Step: step, Of: t.cfg.Steps, Trajectories: got.all, GreedyTokens: got.greedyTokens,
		Events: got.events}
	b := got.batch(t.cfg)
	diff, err := t.oldLogProbs(b, got)
	if err != nil {
		return nil, err
	}
	clock.lap("old_log_prob")
	if t.needs.Reference {
		t.refer(b, step, t.cfg.taught())
		clock.lap("ref")
	}
	if t.needs.Critic {
		t.rows(t.passes, step, "values", len(b.traj))
		b.value = t.passes.values(t.Critic, b)
		clock.lap("values")
	}
	klMetrics := t.rewardKL(b)
	correction := t.correct(b)
	t.maskTruncated(b)
	klMetrics = append(klMetrics, t.rewardProcess(b, step, rec, clock)...)
	few, err := advantages(t.cfg, b)
	if err != nil {
		return nil, fmt.Errorf("step %d: %w", step, err)
	}
	if few {
		rec.Events = append(rec.Events, Event{Kind: "too-few-tokens", Text: fmt.Sprintf("step %d: %s leaves fewer "+
			"than two of %d tokens, so their advantages are 0", step, t.cfg.masking(), b.sampledTokens())})
	} else if !slices.Contains(b.mask, true) {
		rec.Events = append(rec.Events, Event{Kind: "no-tokens", Text: fmt.Sprintf("step %d: %s rejects all %d "+
			"tokens, so the step learns nothing from rewards", step, t.cfg.masking(), b.sampledTokens())})
	}
	correction = append(correction, t.keepEntropic(b)...) // estimators read the weights of the correction alone
	t.resample(b, step)
	clock.lap("adv")

	rec.Metrics = append(rec.Metrics, rl.Metric{Name: "training/global_step", Value: float64(step)},
		rl.Metric{Name: "training/epoch", Value: float64(got.epoch)})
	rec.Metrics = append(append(rec.Metrics, t.dataMetrics(b, rec)...), t.renewalMetrics(step)...)
	rec.Metrics = append(append(append(append(rec.Metrics, got.metrics...), diff...), klMetrics...), correction...)
	learned, err := t.withAnswers(b)
	if err != nil {
		return nil, fmt.Errorf("step %d: %w", step, err)
	}
	t.learn(learned, step, rec, clock)
	if own := b.withoutShown(); own.sumPiSquared != nil {
		rec.Metrics = append(rec.Metrics, rl.VarianceProxies(own.ofPolicy(), own.sumPiSquared,
			find(rec.Metrics, "actor/grad_norm"))...)
	}
	t.renewReference(step)
	t.step, t.pending, t.within = step, t.pending[1:], false
	if err := t.finish(clock, nil); err != nil {
		return nil, err
	}
	rec.System = clock.metrics(b)
	checkFinite(rec)
	return rec, nil
}

// collectAhead samples until the next step and the following staleness steps have their
// completions, so each step is trained on after that many further policy steps. It samples
// nothing beyond the last step.
func (t *Trainer) collectAhead(ctx context.Context, clock *stopwatch) error {
	for last := t.step + len(t.pending); last < min(t.step+1+t.cfg.Staleness, t.cfg.Steps) || last == t.step; {
		last++
		got, err := t.collect(ctx, last, clock)
		if err != nil {
			return fmt.Errorf("step %d: %w", last, err)
		}
		b := got.batch(t.cfg)
		if len(b.traj) == 0 {
			return fmt.Errorf("step %d: %w", last, noneGraded(got.candidates(t.cfg.Samples)))
		}
		if err := t.verify(b, last); err != nil {
			return err
		}
		t.pending, t.batches, t.meanSpread = append(t.pending, got), got.batches, got.meanSpread
	}
	return nil
}

// oldLogProbs sets the log-probs of the old policy, and Σπ² where needed, and returns
// verl's metrics of their distance from the sampler's. If the policy has not changed since it
// sampled, the recorded log-probs are its own and the distance is 0, as verify has checked.
// The age of a sampler outside this run is unknown. In bypass mode the sampler is the old
// policy.
func (t *Trainer) oldLogProbs(b *batch, got *collected) ([]rl.Metric, error) {
	stale := got.sampled < t.step || t.foreign()
	if !stale && !t.needs.SumPiSquared {
		return t.sameProbs(), nil
	}
	t.rows(t.passes, got.step, "old log-probs", len(b.traj))
	old := t.passes.scores(t.Policy, b, t.cfg.Sampling.Temperature, t.needs.SumPiSquared)
	b.sumPiSquared = old.sumPiSquared
	if !stale {
		if err := t.compare(b, old.logProb, 0, len(b.traj), got.step); err != nil {
			return nil, err
		}
		return t.sameProbs(), nil
	}
	var age []rl.Metric
	if !t.foreign() {
		age = []rl.Metric{{Name: "training/off_policy/trajectory_staleness/mean",
			Value: float64(t.step - got.sampled)}}
	}
	b.entropy = old.entropy
	if t.cfg.Correction.Bypass != 0 {
		if t.needs.SumPiSquared {
			b.own = old.logProb
		}
		return age, nil
	}
	b.old = old.logProb
	return append(rl.ProbDiff(b.roll, b.old, b.mask), age...), nil
}

// learn updates the critic, then the policy unless the critic is still warming up.
func (t *Trainer) learn(b *batch, step int, rec *Step, clock *stopwatch) {
	if t.needs.Critic {
		t.rows(t.passes, step, "critic", len(b.traj)*t.cfg.Epochs)
		lists, events := t.updateCritic(b, step)
		rec.Metrics = append(append(rec.Metrics, reduce(lists)...),
			rl.Metric{Name: "critic/lr", Value: t.cfg.Critic.rate(step)})
		rec.Events = append(rec.Events, tallied(events)...)
		clock.lap("update_critic")
	}
	if step <= t.cfg.criticWarmup() {
		return
	}
	t.rows(t.passes, step, "policy", len(b.traj)*t.cfg.Epochs)
	lists, events := t.updateActor(b, step)
	rec.Metrics = append(append(rec.Metrics, reduce(lists)...),
		rl.Metric{Name: "actor/lr", Value: t.cfg.policyRate(step)})
	rec.Events = append(rec.Events, tallied(events)...)
	clock.lap("update_actor")
}

// rewardKL charges the distance to the reference policy to the token rewards.
func (t *Trainer) rewardKL(b *batch) []rl.Metric {
	c := t.cfg.KL
	if c.RewardCoef == 0 || b.ref == nil {
		return nil
	}
	coef := t.klCoef
	kl := rl.RewardKL(b.reward, b.reward, b.old, b.ref, b.mask, b.rows, c.RewardEstimator, coef)
	t.klCoef = c.Control.Next(coef, kl, len(b.traj))
	return []rl.Metric{{Name: "actor/reward_kl_penalty", Value: kl}, {Name: "actor/reward_kl_penalty_coeff",
		Value: coef}}
}

// correct compares the old policy with the sampler and returns verl's metrics of the
// difference, even if it corrects nothing. It sets the weights and removes rejected tokens
// from the mask. In bypass mode the loss does that, with the current policy in place of the
// old one. A sampler without log-probs gives no metrics, and neither do demonstrations.
func (t *Trainer) correct(b *batch) []rl.Metric {
	c := t.cfg.Correction
	if c.Bypass != 0 || t.Recorded != nil && !t.Recorded.LogProbs {
		return nil
	}
	if c.Weights != rl.NoWeights {
		b.weight = make([]float32, len(b.mask))
	}
	own := b.withoutShown() // with a mask of its own
	var all, stats rl.CorrectionStats
	rl.Correct(b.weight, b.mask, b.old, b.roll, b.mask, b.rows, c, &all)
	if own == b {
		return all.Metrics()
	}
	rl.Correct(own.weight, own.mask, own.old, own.roll, own.mask, own.rows, c, &stats)
	return stats.Metrics()
}

// find returns the value of the named metric, or NaN.
func find(list []rl.Metric, name string) float64 {
	for _, m := range list {
		if m.Name == name {
			return m.Value
		}
	}
	return math.NaN()
}

// checkFinite records an event that names the metrics that are not finite.
func checkFinite(rec *Step) {
	var bad []string
	for _, m := range rec.Metrics {
		if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
			bad = append(bad, fmt.Sprintf("%s is %v", m.Name, m.Value))
		}
	}
	if bad != nil {
		rec.Events = append(rec.Events, Event{Kind: "nonfinite", Text: fmt.Sprintf("step %d: %s", rec.Step,
			strings.Join(bad, ", "))})
	}
}

// rows begins a phase that takes total completions through a model. Each micro-batch tells of its
// progress; where ranks share the work, as if all were as fast as this one.
func (t *Trainer) rows(p *passes, step int, phase string, total int) {
	done := 0
	t.phase(step, phase, 0, total)
	p.passed = func(n int) {
		done += n * t.data.Size()
		t.phase(step, phase, min(done, total), total)
	}
}

func (t *Trainer) phase(step int, phase string, done, total int) {
	if t.Phase != nil {
		t.Phase(step, phase, done, total)
	}
}
