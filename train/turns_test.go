package train

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/rl"
	"exp/train/rollout"
)

// echo answers each B with some A and C, at most twice; a third B ends the completion.
type echo struct{}

func (echo) Marks() []string { return []string{"B"} }

func (echo) Read(t rollout.Turn) rollout.Action {
	if t.End >= 0 {
		return rollout.Action{}
	}
	if t.Number == 3 {
		return rollout.Action{Over: true}
	}
	return rollout.Action{Reply: func(context.Context) (rollout.Reply, error) {
		return rollout.Reply{Tokens: []int32{1, 3, 1, 3}[:1+(len(t.Text)+len(t.Problem.ID))%4]}, nil
	}}
}

// smudged changes what a sampler records of inserted tokens.
type smudged struct {
	rollout.Sampler
	logProb float32
}

func (s smudged) Sample(ctx context.Context, reqs []rollout.Request, p rollout.Params, done func(n int)) ([][]rollout.Completion, error) {
	out, err := s.Sampler.Sample(ctx, reqs, p, done)
	for i := range out {
		for k := range out[i] {
			c := &out[i][k]
			for _, x := range c.Inserted {
				for t := x.Start; t < x.End; t++ {
					c.LogProbs[t], c.Entropies[t] = s.logProb, s.logProb
				}
			}
		}
	}
	return out, err
}

// withTurns changes a toy so that its completions have turns.
func (r *toyRun) withTurns() {
	r.cfg.Sampling.Environment, r.cfg.Sampling.MaxNewTokens = echo{}, 16
	r.cfg.VerifyRate, r.cfg.Turns = 1, true
}

// Inserted tokens are context: no algorithm reads their records, and the numbers of a step count the policy's tokens.
func TestInsertedTokensAreNotTrained(t *testing.T) {
	for name, change := range variants() {
		t.Run(name, func(t *testing.T) {
			runs := make([]*toyRun, 2)
			for i, smudge := range []float32{0, -3} {
				r := newToyRun(t, GRPO, 2)
				r.setUp(change)
				r.withTurns()
				r.cfg.Steps = 2
				tr := r.start()
				tr.Sampler = smudged{tr.Sampler, smudge}
				if err := tr.Run(context.Background(), nil); err != nil {
					t.Fatal(err)
				}
				runs[i] = r
			}
			for i := range runs[0].steps {
				if d := cmp.Diff(runs[0].steps[i].Metrics, runs[1].steps[i].Metrics, cmp.Comparer(sameBits)); d != "" {
					t.Errorf("step %d: the metrics read inserted tokens:\n%s", i+1, d)
				}
			}
			if !slices.Equal(runs[0].params(), runs[1].params()) {
				t.Error("the weights read inserted tokens")
			}
		})
	}
}

func sameBits(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

// The metrics of turns are counted by hand, and the mask is the sampled tokens.
func TestTurnMetrics(t *testing.T) {
	r := newToyRun(t, GRPO, 1)
	r.withTurns()
	r.cfg.Steps = 1
	r.run()
	s := r.steps[0]
	var turns, inserted, tokens, over float64
	b := newBatch(s.Trajectories, rl.Overlong{}, nil)
	at := 0
	for i := range s.Trajectories {
		c := s.Trajectories[i].Completion
		turns += 2 + 2*float64(len(c.Inserted))
		tokens += float64(len(c.Tokens))
		if c.Finish == rollout.FinishTurns {
			over++
		}
		of := make([]bool, len(c.Tokens))
		for _, x := range c.Inserted {
			inserted += float64(x.End - x.Start)
			for t := x.Start; t < x.End; t++ {
				of[t] = true
			}
		}
		for _, in := range of {
			if b.mask[at] == in {
				t.Fatalf("token %d: inserted %v, trained %v", at, in, b.mask[at])
			}
			at++
		}
	}
	n := float64(len(s.Trajectories))
	for name, want := range map[string]float64{"num_turns/mean": turns / n, "num_turns/max": 6, "num_turns/min": 2,
		"train/inserted": inserted / tokens, "train/out_of_turns": over / n} {
		if got := metric(t, s, name); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if inserted == 0 || over == 0 || turns == 2*n {
		t.Errorf("%v inserted tokens, %v completions out of turns", inserted, over)
	}
	plain := newToyRun(t, GRPO, 1)
	plain.cfg.Steps = 1
	plain.run()
	for _, m := range plain.steps[0].Metrics {
		if strings.HasPrefix(m.Name, "num_turns") {
			t.Errorf("a run without turns has %s", m.Name)
		}
	}
}

// A run with turns stops and continues with the same bits.
func TestStopAndContinueTurns(t *testing.T) {
	for _, kind := range []Kind{FlowRL, PPO, Prime} {
		whole := newToyRun(t, kind, 2)
		whole.withTurns()
		whole.cfg.Steps, whole.cfg.Staleness = 5, 1
		whole.run()
		continues(t, whole)
	}
}
