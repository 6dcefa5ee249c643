package train

import (
	"fmt"

	"exp/kernels"
	"exp/train/model"
	"exp/train/rl"
	"exp/train/rollout"
)

// Process holds how an implicit process reward model learns (PRIME, arXiv:2502.01456): a language model whose
// log-ratio to the reference is the reward of a token. It learns from the verdicts of a step, in one pass over its
// completions.
type Process struct {
	Optim
	PromptsPerUpdate int // problems in a mini-batch; divides Config.PromptsPerStep
}

// ProcessPasses returns how often a step computes the process reward model's log-probs without training it.
func (c Config) ProcessPasses() int {
	if rl.PrimeOf(c.Settings).Loss.ReadsGroup() && c.learnsFirst() {
		return 2
	}
	return 1
}

// learnsFirst reports whether the process reward model learns from a step before it rewards its completions.
func (c Config) learnsFirst() bool { return c.Settings.Word(rl.PrimeUpdate) == "before" }

// rewardProcess sets b.process, the process rewards of a step, lets their model learn from it, before or after, and
// returns the metrics; it does nothing without such a model.
func (t *Trainer) rewardProcess(b *batch, step int, rec *Step, clock *stopwatch) []rl.Metric {
	if !t.needs.Process {
		return nil
	}
	clock.lap("adv")
	defer clock.lap("process")
	c := rl.PrimeOf(t.cfg.Settings)
	first := t.cfg.learnsFirst()
	var logProb []float32
	var sums []float64
	if !first || c.Loss.ReadsGroup() {
		logProb = t.processLogProbs(b, step)
		sums = rl.RowRewards(logProb, b.ref, b.mask, b.rows, c.Beta)
	}
	b.target = rl.PrimeTargets(sums, b.right(), b.group, c.Loss)
	learned := t.updateProcess(b, step, rec)
	if first {
		logProb = t.processLogProbs(b, step)
	}
	b.process = make([]float32, len(b.mask))
	rl.ImplicitRewards(b.process, logProb, b.ref, b.mask, b.rows, c)
	return append(b.processMetrics(logProb), learned...)
}

// processLogProbs returns the log-probs [N] of the process reward model.
func (t *Trainer) processLogProbs(b *batch, step int) []float32 {
	t.rows(t.passes, step, "process rewards", len(b.traj))
	return t.passes.logProbs(t.Process, b, 0, len(b.traj), t.cfg.Sampling.Temperature)
}

// updateProcess trains the process reward model on the verdicts of a step, and returns the metrics.
func (t *Trainer) updateProcess(b *batch, step int, rec *Step) []rl.Metric {
	c := t.cfg.Process
	t.rows(t.passes, step, "process reward model", len(b.traj))
	var lists [][]rl.Metric
	var events []Event
	for _, r := range b.miniBatches(c.PromptsPerUpdate, t.cfg.PromptsPerStep/c.PromptsPerUpdate) {
		mini := b.slice(r[0], r[1], t.cfg.Slices, t.passes.bundle)
		if rl.PrimeRows(mini.mask, mini.rows) == 0 {
			continue
		}
		metrics := t.processGradient(mini, fmt.Sprintf("process/step=%d", step))
		norm, event := t.process.update(step, c.rate(step))
		if event != nil {
			events = append(events, *event)
		}
		lists = append(lists, append(metrics, rl.Metric{Name: "reward_model/grad_norm", Value: norm}))
	}
	rec.Events = append(rec.Events, tallied(events)...)
	return append(reduce(lists), rl.Metric{Name: "reward_model/lr", Value: c.rate(step)})
}

// processGradient leaves the gradient of a mini-batch's loss with the process reward model, and returns the metrics.
func (t *Trainer) processGradient(mini *sliced, stream string) []rl.Metric {
	c, p, m, s := rl.PrimeOf(t.cfg.Settings), t.passes, t.process.m, &t.scratch
	ws, n := p.train, rl.PrimeRows(mini.mask, mini.rows)
	loss := func(r0, r1 int, logProb, d []float32, stats *rl.PrimeStats) {
		lo, hi := mini.rows[r0], mini.rows[r1]
		x := mini.part(r0, r1, logProb)
		rl.PrimeLoss(d, logProb, mini.ref[lo:hi], x.Mask, x.Rows, mini.target[r0:r1], c.Beta, n, stats)
	}
	all := take(&s.mini.logProb, len(mini.mask))
	t.process.gradient(mini, func(r0, r1 int) {
		p.each(mini.batch, r0, r1, ws, func(r0, r1 int) {
			t.dropAdapters(m, mini.batch, r0, r1, stream)
			m.Forward(ws)
			m.Scores(ws, t.cfg.Sampling.Temperature)
			logProb, d := take(&s.logProb, ws.Rows()), take(&s.g.logProb, ws.Rows())
			p.read(logProb, ws.LogProb())
			copy(all[mini.rows[r0]:], logProb)
			loss(r0, r1, logProb, d, new(rl.PrimeStats))
			p.write(ws.DLogProb(), d)
			p.write(ws.DEntropy(), take(&s.g.entropy, ws.Rows()))
			m.Backward(ws, model.Upstream{Scores: true})
		})
	})
	if p.many() {
		p.gather(kernels.Host(all), mini.tokenEnds(p.group.Size()), 1)
	}
	var stats rl.PrimeStats
	loss(0, len(mini.traj), all, take(&s.g.logProb, len(mini.mask)), &stats)
	c.Normalize = false // the order and the signs of rewards are the same
	rewards := make([]float32, len(all))
	rl.ImplicitRewards(rewards, all, mini.ref, mini.mask, mini.rows, c)
	score, right, problem := mini.judged(rewards, mini.problems())
	return append(stats.Metrics(), rl.PrimeMetrics(score, right, problem, "_before")...)
}

// processMetrics returns what the process rewards say of completions, before any division also by the reward model's
// log-probs [N]:
//
//	reward_model/reward      mean over completions of their sum of process rewards
//	reward_model/raw_reward  mean over completions of the log-ratio to the reference, nats
//	reward_model/dpo_acc     see rl.PrimeMetrics
func (b *batch) processMetrics(logProb []float32) []rl.Metric {
	score, right, problem := b.judged(b.process, b.group)
	if len(score) == 0 {
		return nil
	}
	var reward, raw float64
	for _, x := range score {
		reward += x
	}
	for _, x := range rl.RowRewards(logProb, b.ref, b.mask, b.rows, 1) {
		raw += x
	}
	n := float64(len(score))
	return append([]rl.Metric{{Name: "reward_model/reward", Value: reward / n},
		{Name: "reward_model/raw_reward", Value: raw / n}}, rl.PrimeMetrics(score, right, problem, "")...)
}

// judged returns the row sums of rewards [N], the verdicts and the groups of the rows with unmasked tokens.
func (b *batch) judged(rewards []float32, group []int) (score []float64, right []bool, problem []int) {
	verdict := b.right()
	for i := range b.traj {
		var sum float64
		tokens := 0
		for k := b.rows[i]; k < b.rows[i+1]; k++ {
			if b.mask[k] {
				sum += float64(rewards[k])
				tokens++
			}
		}
		if tokens > 0 {
			score, right, problem = append(score, sum), append(right, verdict[i]), append(problem, group[i])
		}
	}
	return score, right, problem
}

// right says which rows have a verdict of right [B].
func (b *batch) right() []bool {
	list := make([]bool, len(b.traj))
	for i, t := range b.traj {
		list[i] = t.Verdict.Status == rollout.Graded && t.Verdict.Correct
	}
	return list
}
