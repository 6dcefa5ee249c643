package train

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"exp/train/rl"
	"exp/train/rollout"
)

// earner is another agent whose episodes say what turns earned, in one of two states; the last conversation of some has
// a name, and some give a score of their own.
type earner struct{ rollout.Agent }

func (a earner) Play(ctx context.Context, e rollout.Episode) (rollout.Completion, error) {
	c, err := a.Agent.Play(ctx, e)
	if err != nil || len(c.Tokens) == 0 {
		return c, err
	}
	inserted := c.Inserted
	talks := c.Conversations(nil)
	for k, x := range talks {
		act := rollout.Act{Start: x.Start}
		if k > 0 && k == len(talks)-1 && e.Seed%2 == 0 {
			act.Conversation = "last"
		}
		end := func(at int) {
			act.End = at
			act.Reward, act.State = float64((e.Seed+uint64(at))%5)/4, string('a'+rune(len(c.Acts)%2))
			c.Acts = append(c.Acts, act)
		}
		for ; len(inserted) > 0 && inserted[0].Start < x.End; inserted = inserted[1:] {
			end(inserted[0].Start)
			act.Start = inserted[0].End
		}
		end(x.End)
	}
	if c.AgentVerdict == nil {
		all, _ := c.Earned()
		c.AgentVerdict = &rollout.Verdict{Status: rollout.Graded, Reward: all + float64(e.Seed%3)}
	}
	return c, nil
}

// earns makes the agent of a toy say what turns earned.
func (r *toyRun) earns() {
	r.cfg.Sampling.Agent = earner{r.cfg.Sampling.Agent}
}

// earning are ways of learning from rewards of turns.
func earning() map[string]func(c *Config) {
	return map[string]func(c *Config){
		"turns in states": func(c *Config) { c.Advantage = "gigpo" },
		"turns in states, ahead, less a KL": func(c *Config) {
			c.Advantage, c.Staleness, c.KL.RewardCoef, c.Settings = "gigpo", 1, 0.1, with(c.Settings, "scale_std", false, "gigpo.weight", 0.5)
		},
		"rewards of turns": func(c *Config) { c.Advantage = "gae" },
	}
}

// Turns by hand: tokens 0 1 | inserted 2 | 3 of the first episode; a turn without tokens, then 0 of the second.
func TestRewardsOfTurns(t *testing.T) {
	problem := &rollout.Problem{ID: "p"}
	first := &rollout.Completion{Tokens: make([]int32, 4), LogProbs: make([]float32, 4), Inserted: []rollout.Span{{Start: 2, End: 3}},
		Acts: []rollout.Act{{End: 2, Reward: 0.5, State: "a"}, {Start: 3, End: 4, Reward: 0.25, State: "b"}}}
	second := &rollout.Completion{Tokens: make([]int32, 1), LogProbs: make([]float32, 1),
		Acts: []rollout.Act{{Reward: 2, State: "a"}, {End: 1, Reward: 0.5, State: "a"}}}
	other := &rollout.Completion{Tokens: make([]int32, 2), LogProbs: make([]float32, 2),
		Acts: []rollout.Act{{Start: 1, End: 2, State: "a"}, {End: 1, State: "a", Conversation: "n"}}}
	graded := func(p *rollout.Problem, c *rollout.Completion, reward float64) Trajectory {
		if err := c.Check(); err != nil {
			t.Error(err)
		}
		return Trajectory{Problem: p, Completion: c, Verdict: rollout.Verdict{Status: rollout.Graded, Reward: reward}}
	}
	b := newBatch([]Trajectory{graded(problem, first, 1), graded(problem, second, 2.5), graded(&rollout.Problem{ID: "q"}, other, 3)},
		rl.Overlong{}, nil)
	if want := []float32{0, 0.5, 0, 0.5, 0.5, 0, 3}; !slices.Equal(b.reward, want) {
		t.Errorf("token rewards %v, want %v", b.reward, want)
	}
	if got := b.totals(false); !slices.Equal(got, []float32{1, 2.5, 3}) {
		t.Errorf("scores %v", got)
	}
	b.reward[0] -= 0.125 // a KL
	if got := b.totals(true); !slices.Equal(got, []float32{0.875, 2.5, 3}) {
		t.Errorf("scores less a KL %v", got)
	}
	x, err := b.turns()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(x.Start, []int{0, 3, 4, 6, 5}) || !slices.Equal(x.End, []int{2, 4, 5, 7, 6}) || !slices.Equal(x.State, []int{0, 1, 0, 2, 2}) ||
		!slices.Equal(x.Reward, []float64{0.5, 0.5, 0.5, 3, 3}) || !slices.Equal(x.Last, []bool{false, true, true, true, true}) {
		t.Errorf("%+v", x)
	}
	first.Acts = nil
	if _, err := b.turns(); err == nil || !strings.Contains(err.Error(), "problem p, sample 0: nothing tells the policy's turns apart") {
		t.Errorf("without turns: %v", err)
	}
}

// Scores that add up to the same are the same, however their parts round, so a group of them has no advantage.
func TestEqualScoresOfTurns(t *testing.T) {
	var all []Trajectory
	for _, rewards := range [][]float64{{0.1, 0.2, 0.7}, {0.7, 0.2, 0.1}, {1, 0, 0}} {
		c := &rollout.Completion{Tokens: make([]int32, 3), LogProbs: make([]float32, 3)}
		for k, r := range rewards {
			c.Acts = append(c.Acts, rollout.Act{Start: k, End: k + 1, Reward: r, State: "s"})
		}
		all = append(all, Trajectory{Problem: &rollout.Problem{}, Completion: c, Verdict: rollout.Verdict{Status: rollout.Graded, Reward: 1}})
		all[len(all)-1].Problem = all[0].Problem
	}
	c := toyConfig(GRPO)
	b := newBatch(all, rl.Overlong{}, nil)
	c.Settings = listed(c)
	if _, err := advantages(c, b); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(b.adv, func(a float32) bool { return a != 0 }) {
		t.Errorf("advantages %v", b.adv)
	}
}

// Plain loops over the recorded turns of a step find the advantages that gigpo used, and its metrics.
func TestGiGPOOfEpisodes(t *testing.T) {
	r := newToyRun(t, GRPO, 2).delegates()
	r.earns()
	r.cfg.Advantage, r.cfg.Steps = "gigpo", 1
	r.run()
	s := r.steps[0]
	type place struct {
		problem *rollout.Problem
		state   string
	}
	returns := map[place][]float64{}
	scores := map[*rollout.Problem][]float64{}
	ofTurn := func(c *rollout.Completion, v rollout.Verdict, k int) (ret float64) {
		all, _ := c.Earned()
		for j, discount := k, 1.0; ; j, discount = j+1, discount*0.95 {
			ret += discount * c.Acts[j].Reward
			if j+1 == len(c.Acts) || c.Acts[j+1].Conversation != c.Acts[j].Conversation {
				return ret + discount*(v.Reward-all)
			}
		}
	}
	var earned, n, named float64
	each := func(f func(tr *Trajectory, k int)) {
		for i := range s.Trajectories {
			if tr := &s.Trajectories[i]; tr.Verdict.Status == rollout.Graded {
				for k := range tr.Completion.Acts {
					f(tr, k)
				}
			}
		}
	}
	each(func(tr *Trajectory, k int) {
		a := tr.Completion.Acts[k]
		at := place{tr.Problem, a.State}
		returns[at] = append(returns[at], ofTurn(tr.Completion, tr.Verdict, k))
		earned, n = earned+a.Reward, n+1
		named += float64(len(a.Conversation))
		if k == 0 {
			scores[tr.Problem] = append(scores[tr.Problem], tr.Verdict.Reward)
		}
	})
	scaled := func(x float64, group []float64) float64 {
		if len(group) == 1 {
			return 0
		}
		var mean float64
		for _, y := range group {
			mean += y / float64(len(group))
		}
		return (x - mean) / (rl.StdDev(group) + 1e-6)
	}
	most, shared := math.Inf(-1), 0.0
	each(func(tr *Trajectory, k int) {
		group := returns[place{tr.Problem, tr.Completion.Acts[k].State}]
		most = max(most, scaled(tr.Verdict.Reward, scores[tr.Problem])+scaled(ofTurn(tr.Completion, tr.Verdict, k), group))
		if len(group) > 1 {
			shared++
		}
	})
	if named == 0 {
		t.Fatal("no conversation has a name")
	}
	for name, want := range map[string]float64{"critic/advantages/max": most, "train/turn_reward": earned / n,
		"gigpo/step_group_size": n / float64(len(returns)), "gigpo/shared_states": shared / n} {
		if got := metric(t, s, name); math.Abs(got-want) > 1e-5 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// What waits in a checkpoint keeps the rewards and the states of turns.
func TestTurnsContinue(t *testing.T) {
	for name, change := range earning() {
		whole := newToyRun(t, GRPO, 2).delegates()
		change(&whole.cfg)
		whole.earns()
		whole.cfg.Steps, whole.cfg.Staleness = 4, 1
		t.Log(name)
		whole.run()
		continues(t, whole)
	}
}

func TestTurnsNeedAgent(t *testing.T) {
	c := toyConfig(GRPO)
	c.Advantage = "gigpo"
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "gigpo compares turns, and no agent plays") {
		t.Errorf("Validate = %v", err)
	}
}
