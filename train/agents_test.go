package train

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/model"
	"exp/train/rl"
	"exp/train/rollout"
)

// asker is an agent of two turns. Some episodes it judges itself, and some fail, before the first turn or after.
//
// With images it brings some, before the first turn and after.
type asker struct{ images *toyImages }

func (asker) Episodes() int { return 5 }

func (a asker) Play(ctx context.Context, e rollout.Episode) (c rollout.Completion, err error) {
	if e.Seed%13 == 0 {
		c.AgentVerdict = &rollout.Verdict{Reason: "it never began"}
		return c, nil
	}
	c.Asked = &rollout.Asked{Tokens: []int32{1 + int32(len(e.Problem.ID)+len(e.Problem.Prompt))%4, 2, 3}, Text: "asked"}
	if a.images != nil {
		c.Asked.Tokens = append(a.bring(uint64(len(e.Problem.ID))), c.Asked.Tokens...)
		defer func() { c.NoteImages(a.images.shown) }()
	}
	for turn := range 2 {
		inserted := []int32{4, 1, 2}[:3*turn]
		if a.images != nil && turn > 0 {
			inserted = slices.Concat(inserted[:1], a.bring(e.Seed), inserted[1:])
		}
		p := e.Params
		if p.MaxNewTokens -= len(c.Tokens) + len(inserted); p.MaxNewTokens <= 0 {
			break
		}
		said, err := e.Ask(ctx, slices.Concat(c.Asked.Tokens, c.Tokens, inserted), e.Seed+uint64(turn), p)
		if err != nil {
			return c, err
		}
		c.Continue(inserted, "EBC"[:3*turn], &said)
	}
	switch e.Seed % 7 {
	case 0:
		c.AgentVerdict = &rollout.Verdict{Reason: "it broke"}
	case 1:
		c.AgentVerdict = &rollout.Verdict{Status: rollout.Graded, Reward: 0.5, Answer: "half"}
	}
	return c, nil
}

// bring returns the tokens of one of 26 images.
func (a asker) bring(n uint64) []int32 {
	im, _ := a.images.show(rollout.Picture{Digest: strings.Repeat(string(rune('a'+n%26)), 64)})
	return []int32{im.First, im.First + 1}
}

// heeding lets the agent's verdicts stand.
func heeding(g graderFunc) graderFunc {
	return func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict {
		if c.AgentVerdict != nil {
			return *c.AgentVerdict
		}
		return g(p, c)
	}
}

// withAgent changes a toy so that an agent asks for its completions.
func (r *toyRun) withAgent() {
	r.cfg.Sampling.Agent, r.cfg.Sampling.MaxNewTokens = asker{}, 16
	r.cfg.VerifyRate, r.cfg.Turns = 1, true
	r.grade = heeding(r.grade)
}

// bringing is withAgent with an agent that brings images.
func (r *toyRun) bringing() {
	r.illustrate()
	r.withAgent()
	r.cfg.Sampling.Agent = asker{r.images}
}

// Completions of an agent stand behind its own prompts, are verified against the trainer like others, and have its
// verdicts.
func TestAgent(t *testing.T) {
	r := newToyRun(t, GRPO, 2)
	r.withAgent()
	r.cfg.Steps = 3
	r.run()
	said, failed, graded, turns := 0, 0, 0, 0
	for _, s := range r.steps {
		for _, tr := range s.Trajectories {
			c := tr.Completion
			turns += len(c.Inserted)
			if c.Asked.Text == "asked" && (len(tr.Prompt) != 3 || tr.Prompt[2] != 3) {
				t.Errorf("the prompt is %v", tr.Prompt)
			}
			switch v := tr.Verdict; {
			case v.Status == rollout.NotGraded:
				failed++
			case v.Answer == "half" && v.Reward == 0.5:
				said++
			default:
				graded++
			}
		}
	}
	if said == 0 || failed == 0 || graded == 0 || turns == 0 {
		t.Errorf("%d verdicts of the agent, %d failures, %d verdicts of the grader, %d second turns", said, failed, graded, turns)
	}
}

// What waits in a checkpoint, and what values were last seen on, keeps the prompts of its agent.
func TestAgentContinues(t *testing.T) {
	for _, kind := range []Kind{FlowRL, PPO, GRPO} {
		whole := newToyRun(t, kind, 2)
		whole.withAgent()
		whole.cfg.Steps, whole.cfg.Staleness = 5, 1
		whole.run()
		continues(t, whole)
	}
}

// delegator is an agent of one to three conversations. The first goes on after another has begun, and some have long
// prompts.
type delegator struct{ asker }

func (delegator) Play(ctx context.Context, e rollout.Episode) (rollout.Completion, error) {
	if e.Seed > 0 && e.Seed%13 == 0 { // 0: greedy
		return asker{}.Play(ctx, e)
	}
	var list []rollout.Completion
	ask := func(at int, inserted []int32) error {
		c := &list[at]
		p := e.Params
		p.MaxNewTokens -= len(c.Tokens) + len(inserted)
		if p.MaxNewTokens <= 0 {
			return nil
		}
		seed := e.Seed + uint64(100*at+len(c.Inserted))
		said, err := e.Ask(ctx, slices.Concat(c.Asked.Tokens, c.Tokens, inserted), seed, p)
		if err == nil {
			c.Continue(inserted, "EBC"[:len(inserted)], &said)
		}
		return err
	}
	begin := func(prompt ...int32) error {
		list = append(list, rollout.Completion{Asked: &rollout.Asked{Tokens: prompt, Text: "asked"}})
		return ask(len(list)-1, nil)
	}
	err := begin(1+int32(len(e.Problem.ID)+len(e.Problem.Prompt))%4, 2, 3)
	final := 0
	if err == nil && e.Seed%3 > 0 {
		err = begin(3, 1, int32(list[0].Tokens[0]), 2, 4)
		final = 1
	}
	if err == nil && e.Seed%3 == 2 {
		if err = ask(0, []int32{4, 1, 2}); err == nil {
			err = begin(2)
		}
		final = int(e.Seed / 3 % 3)
	}
	return rollout.Join(list, final), err
}

// delegates changes a toy so that episodes of its agent have several conversations.
func (r *toyRun) delegates() *toyRun {
	r.withAgent()
	r.cfg.Sampling.Agent, r.cfg.Conversations, r.cfg.Sampling.MaxNewTokens = delegator{}, 3, 9
	return r
}

// Conversations of an episode are a completion: all are verified against the trainer, each behind its own prompt, and
// the metrics count them.
func TestConversations(t *testing.T) {
	r := newToyRun(t, GRPO, 2).delegates()
	r.run()
	for _, s := range r.steps {
		var all, n, most float64
		for _, tr := range s.Trajectories {
			c := tr.Completion
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
			if len(c.Tokens) > 0 {
				all, n, most = all+float64(1+len(c.Later())), n+1, max(most, float64(len(c.Tokens)))
			}
		}
		if got := metric(t, s, "train/conversations"); math.Abs(got-all/n) > 1e-12 || got < 1.3 {
			t.Errorf("step %d: %v conversations, want %v", s.Step, got, all/n)
		}
		if got := metric(t, s, "response_length/max"); got != most {
			t.Errorf("step %d: the longest completion has %v tokens, want %v", s.Step, got, most)
		}
	}
}

// Every algorithm learns from several conversations with the same bits on any number of threads, in any micro-batches,
// and after an interruption, and from none of the inserted tokens.
func TestConversationsInEveryAlgorithm(t *testing.T) {
	all := variants()
	maps.Copy(all, earning())
	for name, change := range all {
		t.Run(name, func(t *testing.T) {
			runs := make([]*toyRun, 2)
			for i, smudge := range []float32{0, -3} {
				r := newToyRun(t, GRPO, 1+i)
				r.setUp(change)
				if r.delegates(); earning()[name] != nil {
					r.earns()
				}
				r.cfg.Steps, r.cfg.MicroBatchTokens = 2, []int{100, 1}[i]
				tr := r.start()
				tr.Sampler = smudged{tr.Sampler, smudge}
				if err := tr.Run(context.Background(), nil); err != nil {
					t.Fatal(err)
				}
				runs[i] = r
			}
			for i := range runs[0].steps {
				if d := cmp.Diff(runs[0].steps[i].Metrics, runs[1].steps[i].Metrics, cmp.Comparer(sameBits)); d != "" {
					t.Errorf("step %d: the metrics differ:\n%s", i+1, d)
				}
			}
			if !slices.Equal(runs[0].params(), runs[1].params()) {
				t.Error("the weights differ")
			}
		})
	}
}

func TestConversationsContinue(t *testing.T) {
	for _, kind := range []Kind{FlowRL, PPO, GRPO} {
		whole := newToyRun(t, kind, 2).delegates()
		whole.cfg.Steps, whole.cfg.Staleness = 5, 1
		whole.run()
		continues(t, whole)
	}
}

// The gradient of a mini-batch is the sum over its conversations, each computed alone behind its own prompt; a
// completion's log Z is its first prompt's.
func TestGradientOfConversations(t *testing.T) {
	for _, kind := range []Kind{FlowRL, GRPO} {
		r := newToyRun(t, kind, 1).delegates()
		r.cfg.LogZ.Dropout, r.cfg.PromptsPerUpdate, r.cfg.EntropyCoef, r.cfg.Slices = 0, r.cfg.PromptsPerStep, 0.01, 1
		if kind == GRPO {
			r.cfg.Loss = "gspo" // reads whole rows, as FlowRL does
		}
		tr := r.start()
		got, err := tr.collect(context.Background(), 1, newStopwatch(tr.Clock))
		if err != nil {
			t.Fatal(err)
		}
		b := got.batch(tr.cfg)
		tr.refer(b, 1, 0)
		if _, err := advantages(tr.cfg, b); err != nil {
			t.Fatal(err)
		}
		mini := b.slice(0, len(b.traj), 1, tr.passes.bundle)
		tr.policyGradient(mini, tr.newLoss(mini.batch, "x"), "x")
		whole := r.host(tr.Policy.Grads())

		ws, m, n := tr.passes.train, tr.Policy, len(b.mask)
		logProb, entropy, logZ := make([]float32, n), make([]float32, n), make([]float32, len(b.traj))
		alone := func(f func(row, lo, hi int, first bool)) {
			for i, traj := range b.traj {
				for k, x := range traj.Completion.Conversations(traj.Prompt) {
					tokens := slices.Concat(x.Prompt, traj.Completion.Tokens[x.Start:x.End])
					ws.Load(model.Batch{Tokens: tokens, Offsets: []int32{0, int32(len(tokens))}, Prompt: []int32{int32(len(x.Prompt))}})
					m.Forward(ws)
					m.Scores(ws, tr.cfg.Sampling.Temperature)
					if tr.needs.LogZ {
						m.LogZ(ws, true)
					}
					f(i, b.rows[i]+x.Start, b.rows[i]+x.End, k == 0)
				}
			}
		}
		sequences := 0
		alone(func(row, lo, hi int, first bool) {
			sequences++
			tr.passes.read(logProb[lo:hi], ws.LogProb())
			tr.passes.read(entropy[lo:hi], ws.Entropy())
			if first && tr.needs.LogZ {
				tr.passes.read(logZ[row:row+1], ws.LogZ())
			}
		})
		if sequences < len(b.traj)*5/4 {
			t.Fatalf("%d conversations of %d completions", sequences, len(b.traj))
		}
		g := gradients{logProb: make([]float32, n), entropy: make([]float32, n), logZ: make([]float32, len(b.traj))}
		var z []float32
		if tr.needs.LogZ {
			z = logZ
		}
		tr.newLoss(b, "x").add(b.part(0, len(b.traj), logProb), entropy, z, rl.Taught{}, g)
		m.ZeroGrads()
		alone(func(row, lo, hi int, first bool) {
			tr.passes.write(ws.DLogProb(), g.logProb[lo:hi])
			tr.passes.write(ws.DEntropy(), g.entropy[lo:hi])
			if tr.needs.LogZ {
				d := []float32{0}
				if first {
					d[0] = g.logZ[row]
				}
				tr.passes.write(ws.DLogZ(), d)
			}
			m.Backward(ws, model.Upstream{Scores: true, LogZ: tr.needs.LogZ})
		})
		m.FinishGrads()
		var off, square float64
		for i, x := range r.host(m.Grads()) {
			off, square = off+float64(x-whole[i])*float64(x-whole[i]), square+float64(x)*float64(x)
		}
		if !(math.Sqrt(off/square) < 1e-5) {
			t.Errorf("%s: the gradient is %g of its length off", kind, math.Sqrt(off/square))
		}
	}
}

// Each conversation has dropout masks of its own; the first one has the masks that it has without others.
func TestDropoutOfConversations(t *testing.T) {
	tr := &Trainer{Parts: Parts{Seed: hashSeed(1)}}
	later := []rollout.Later{{Start: 1, Tokens: []int32{1}}, {Start: 2, Tokens: []int32{1}}}
	several := &Trajectory{Problem: &rollout.Problem{ID: "p"}, Completion: &rollout.Completion{Tokens: make([]int32, 3), Asked: &rollout.Asked{Later: later}}}
	one := &Trajectory{Problem: &rollout.Problem{ID: "p"}, Completion: &rollout.Completion{Tokens: make([]int32, 3)}}
	other := &Trajectory{Problem: &rollout.Problem{ID: "p"}, Sample: 1, Completion: one.Completion}
	b := &batch{traj: []*Trajectory{other, several, one}}
	seeds := tr.dropoutSeeds(b, 0, 3, "x")
	if len(seeds) != 5 || seeds[1] != seeds[4] || !slices.Equal(tr.dropoutSeeds(b, 1, 3, "x"), seeds[1:]) {
		t.Errorf("seeds %v", seeds)
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(seeds)))
	if len(distinct) != 4 {
		t.Errorf("%d distinct seeds of %v", len(distinct), seeds)
	}
}

// Workspaces are sized for all conversations of an episode at full length: three of 20 tokens, 6 of them a prompt.
func TestRowsOfConversations(t *testing.T) {
	c := toyConfig(GRPO)
	c.Sampling.MaxNewTokens = 14
	one := c.Rows(20)
	c.Conversations = 3
	if r := c.Rows(20); r.Longest != 60 || r.New != 54 || r.prompt() != 6 || r.prompt() != one.prompt() ||
		r.Scored().Sequences != min(3*one.Scored().Sequences, r.Scored().Tokens/2+1) {
		t.Errorf("%+v, with room for %+v; of one conversation %+v", r, r.Scored(), one.Scored())
	}
}
