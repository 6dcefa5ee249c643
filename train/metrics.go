package train

import (
	"path"
	"slices"
	"time"

	"exp/train/rl"
	"exp/train/rollout"
)

// dataMetrics returns the metrics of the batch before any update: verl's data metrics, and
// ours for the verdicts and the distance to the reference.
//
//	train/accuracy        share of graded completions that are correct
//	train/solved          share of problems with a correct completion
//	train/distinct        distinct correct answers per problem, mean
//	train/not_graded      share of completions without a verdict
//	reward/NAME/mean      mean over graded completions of a named part of the reward
//	train/accuracy/KIND   train/accuracy of problems of a kind, in runs of several
//	train/score/KIND      mean reward of their graded completions
//	reward/suspicious     share of graded completions that are right on a weak basis
//	actor/entropy         mean over tokens of the policy's entropy, nats
//	kl/ref_k1, kl/ref_k3  mean over tokens of the estimates of KL(policy‖reference)
//
// turnMetrics adds its own where completions have several turns.
//
// None counts demonstrations, which no policy sampled.
func (t *Trainer) dataMetrics(b *batch, rec *Step) []rl.Metric {
	b = b.withoutShown()
	var response, prompt []int
	for i, tr := range b.traj {
		response = append(response, b.rows[i+1]-b.rows[i])
		prompt = append(prompt, len(tr.Prompt))
	}
	m := rl.DataMetrics(rl.Data[float32]{
		Rows: b.rows, Mask: b.mask, Score: b.score, Reward: b.totals(t.cfg.KL.RewardCoef != 0), Adv: b.adv,
		Ret: b.ret, Value: b.value, PromptLen: prompt, ResponseLen: response, MaxPrompt: t.cfg.MaxPromptTokens,
		MaxResponse: t.cfg.Sampling.MaxNewTokens * max(1, t.cfg.Conversations), Turns: t.messages(b),
	})
	m = slices.DeleteFunc(m, func(m rl.Metric) bool { return ofNothing(m.Name, b.mask) })
	m = append(m, t.verdictMetrics(withoutShown(rec.Trajectories))...)
	m = append(m, t.turnMetrics(b)...)

	var entropy, k1, k3, n float64
	for i, tr := range b.traj {
		entropies := tr.Completion.Entropies
		if b.entropy != nil {
			entropies = b.entropy[b.rows[i]:b.rows[i+1]]
		}
		sampled := make([]bool, len(entropies))
		tr.Completion.Sampled(sampled)
		for j, h := range entropies {
			if !sampled[j] {
				continue
			}
			entropy += float64(h)
			n++
			if b.ref != nil {
				k := b.rows[i] + j
				e1, _ := rl.KL{Kind: rl.KLK1}.At(float64(b.old[k]), float64(b.ref[k]))
				e3, _ := rl.KL{Kind: rl.KLK3}.At(float64(b.old[k]), float64(b.ref[k]))
				k1 += e1
				k3 += e3
			}
		}
	}
	m = append(m, rl.Metric{Name: "actor/entropy", Value: entropy / n})
	if b.ref != nil {
		m = append(m, rl.Metric{Name: "kl/ref_k1", Value: k1 / n}, rl.Metric{Name: "kl/ref_k3", Value: k3 / n})
	}
	return m
}

// ofNothing reports whether one of verl's data metrics is a statistic of too few unmasked tokens, which is NaN there.
// Nothing went wrong in such a step, so it has no such metric.
func ofNothing(name string, mask []bool) bool {
	if name == "critic/vf_explained_var" {
		first := slices.Index(mask, true)
		return first < 0 || !slices.Contains(mask[first+1:], true)
	}
	family := path.Dir(name)
	return (family == "critic/advantages" || family == "critic/returns" || family == "critic/values") &&
		!slices.Contains(mask, true)
}

// messages counts the messages of each conversation; nil if no completion has an environment.
func (t *Trainer) messages(b *batch) []int {
	several := t.cfg.Turns
	var list []int
	for _, tr := range b.traj {
		several = several || tr.Completion.Turns() > 1
		list = append(list, tr.Completion.Messages())
	}
	if !several {
		return nil
	}
	return list
}

// turnMetrics returns the metrics of completions with an environment:
//
//	train/inserted      share of completion tokens that the environment wrote
//	train/out_of_turns  share of completions that ended with a call beyond the limit of turns
//	train/conversations  mean number of an episode's conversations, where it may have several
func (t *Trainer) turnMetrics(b *batch) []rl.Metric {
	if t.messages(b) == nil {
		return nil
	}
	var tokens, sampled, over, conversations float64
	for _, tr := range b.traj {
		c := tr.Completion
		conversations += float64(1 + len(c.Later()))
		tokens, sampled = tokens+float64(len(c.Tokens)), sampled+float64(c.SampledTokens())
		if c.Finish == rollout.FinishTurns {
			over++
		}
	}
	n := float64(len(b.traj))
	list := []rl.Metric{{Name: "train/inserted", Value: 1 - sampled/tokens},
		{Name: "train/out_of_turns", Value: over / n}}
	if t.cfg.Conversations > 1 {
		list = append(list, rl.Metric{Name: "train/conversations", Value: conversations / n})
	}
	return append(list, t.actMetrics(b)...)
}

// actMetrics returns the metrics of turns that are told apart:
//
//	train/turn_reward  mean over turns of the reward that the agent gives
//
// and the metrics of rl.Turns, if the estimator reads them.
func (t *Trainer) actMetrics(b *batch) (list []rl.Metric) {
	var sum, n float64
	for _, tr := range b.traj {
		all, _ := tr.Completion.Earned()
		sum, n = sum+all, n+float64(len(tr.Completion.Acts))
	}
	if n > 0 {
		list = append(list, rl.Metric{Name: "train/turn_reward", Value: sum / n})
	}
	if e, _ := t.cfg.estimator(); e.Turns {
		if turns, err := b.turns(); err == nil { // or the advantages have failed
			list = append(list, turns.Metrics()...)
		}
	}
	return list
}

func (t *Trainer) verdictMetrics(all []Trajectory) []rl.Metric {
	var correct, graded, solved, problems, distinct, weak float64
	said := false
	answers := map[string]bool{}
	right := 0
	for i := range all {
		tr := &all[i]
		if tr.Verdict.Status == rollout.Graded {
			graded++
			said = said || tr.Verdict.Basis != rollout.BasisUnsaid
			if tr.Verdict.Correct && tr.Verdict.Basis.Weak() {
				weak++
			}
			if tr.Verdict.Correct {
				correct++
				right++
				answers[tr.Verdict.Answer] = true
			}
		}
		if i+1 == len(all) || all[i+1].Problem != tr.Problem {
			problems++
			if right > 0 {
				solved++
			}
			distinct += float64(len(answers))
			clear(answers)
			right = 0
		}
	}
	m := []rl.Metric{
		{Name: "train/accuracy", Value: correct / graded},
		{Name: "train/solved", Value: solved / problems},
		{Name: "train/distinct", Value: distinct / problems},
		{Name: "train/not_graded", Value: 1 - graded/float64(len(all))},
	}
	if said {
		m = append(m, rl.Metric{Name: "reward/suspicious", Value: weak / graded})
	}
	m = append(m, componentMetrics(rollout.ComponentNames(t.Grader), all)...)
	m = append(m, stepMetrics(all)...)
	return append(m, kindMetrics(all)...)
}

// kindMetrics returns train/accuracy/KIND and train/score/KIND, the share of right completions and their mean reward,
// over graded completions of each kind of problems that the step has; none if problems have no kinds.
func kindMetrics(all []Trajectory) (m []rl.Metric) {
	var kinds []string
	for i := range all {
		if kind := all[i].Problem.Kind; kind != "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		var correct, reward, n float64
		for i := range all {
			v := &all[i].Verdict
			if all[i].Problem.Kind != kind || v.Status != rollout.Graded {
				continue
			}
			n++
			reward += v.Reward
			if v.Correct {
				correct++
			}
		}
		if n > 0 {
			m = append(m, rl.Metric{Name: "train/accuracy/" + kind, Value: correct / n},
				rl.Metric{Name: "train/score/" + kind, Value: reward / n})
		}
	}
	return m
}

// componentMetrics returns reward/NAME/mean over graded completions for each named part of
// the reward.
func componentMetrics(names []string, all []Trajectory) []rl.Metric {
	var m []rl.Metric
	for j, name := range names {
		var sum, n float64
		for i := range all {
			if v := &all[i].Verdict; v.Status == rollout.Graded {
				sum += v.Components[j]
				n++
			}
		}
		m = append(m, rl.Metric{Name: "reward/" + name + "/mean", Value: sum / n})
	}
	return m
}

// stopwatch measures the phases of a step.
type stopwatch struct {
	now         func() time.Time
	start, last time.Time
	laps        []rl.Lap
}

func newStopwatch(now func() time.Time) *stopwatch {
	at := now()
	return &stopwatch{now: now, start: at, last: at}
}

// lap ends a phase, or a further part of it.
func (s *stopwatch) lap(phase string) {
	at := s.now()
	took := at.Sub(s.last).Seconds()
	s.last = at
	for i := range s.laps {
		if s.laps[i].Phase == phase {
			s.laps[i].Seconds += took
			return
		}
	}
	s.laps = append(s.laps, rl.Lap{Phase: phase, Seconds: took})
}

// metrics returns verl's timing, throughput and length metrics of the step, for one rank.
func (s *stopwatch) metrics(b *batch) []rl.Metric {
	tokens := 0
	lengths := b.lengths(0, len(b.traj))
	for _, n := range lengths {
		tokens += n
	}
	elapsed := s.now().Sub(s.start).Seconds()
	laps := append(s.laps, rl.Lap{Phase: "step", Seconds: elapsed})
	m := append(rl.TimingMetrics(laps, len(b.old), tokens), rl.ThroughputMetrics(tokens, elapsed, 1)...)
	all := make([]int, len(lengths))
	for i := range all {
		all[i] = i
	}
	return append(m, rl.LengthMetrics(lengths, [][]int{all})...)
}
