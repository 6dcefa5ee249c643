package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"exp/train/checkpoint"
	"exp/train/ranks"
	"exp/train/rl"
	"exp/train/rollout"
)

// samplerCases are runs that sample ahead.
func samplerCases(t *testing.T) map[string]func() *toyRun {
	ahead := func(kind Kind, staleness, steps int, change func(r *toyRun)) func() *toyRun {
		return func() *toyRun {
			r := rankedToy(t, kind)
			r.cfg.PromptsPerStep, r.cfg.PromptsPerUpdate = 6, 3
			r.cfg.Staleness, r.cfg.Steps, r.cfg.Policy.LR = staleness, steps, 2e-2
			change(r)
			return r
		}
	}
	return map[string]func() *toyRun{
		"FlowRL": ahead(FlowRL, 1, 4, func(r *toyRun) {}),
		"PPO, reward less KL that adapts": ahead(PPO, 2, 5, func(r *toyRun) {
			r.cfg.KL.RewardCoef = 0.1
			r.cfg.KL.Control = rl.KLControl{Adaptive: true, Target: 0.01, Horizon: 100}
		}),
		"filtered by the reward less KL": ahead(GRPO, 1, 3, func(r *toyRun) {
			r.cfg.Filter = Filter{By: FilterFinal, MaxBatches: 3}
			r.cfg.KL.RewardCoef = 0.1
			r.cfg.KL.Control = rl.KLControl{Adaptive: true, Target: 0.01, Horizon: 100}
		}),
		"filtered by their spread": ahead(GRPO, 1, 4, func(r *toyRun) {
			r.cfg.Filter = Filter{By: FilterScore, MaxBatches: 2, Spread: 0.95}
		}),
		"likelihood, answers learned": ahead(GRPO, 1, 3, func(r *toyRun) { r.likely(rl.LikelihoodProduct, 1) }),
		"PRIME, compared before": ahead(Prime, 1, 3, func(r *toyRun) {
			r.cfg.Settings = with(r.cfg.Settings, "prime.loss", "dpo")
		}),
		"PRIME of images, tower learned": ahead(Prime, 1, 3, func(r *toyRun) { r.tower() }),
		"renewed reference": ahead(GRPO, 1, 4, func(r *toyRun) {
			r.cfg.Renewal = Renewal{Every: 2, Mix: 1, ResetOptimizer: true}
		}),
		"renewed reference with a tower": ahead(GRPO, 1, 4, func(r *toyRun) {
			r.cfg.Renewal = Renewal{Every: 2, Mix: 1, ResetOptimizer: true}
			r.tower()
		}),
		"completions cut within a character": ahead(GRPO, 1, 3, cutWithin),
		"ReMax, graded together":             ahead(GRPO, 1, 3, func(r *toyRun) { r.cfg.Advantage, r.together = "remax", true }),
	}
}

// cutWithin makes completions whose texts, and their grader's answers, are not UTF-8.
func cutWithin(r *toyRun) {
	r.cutText, r.cfg.MaxNotGraded = true, 1
	grade := r.grade
	r.grade = func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict {
		if len(c.Tokens) == 4 {
			return rollout.Verdict{Reason: "cannot read " + c.Text}
		}
		v := grade(p, c)
		v.Correct, v.Reason = true, "it says "+c.Text
		return v
	}
}

// startApart starts toys on ranks; the last ones only sample.
func startApart(t *testing.T, size, samplers int, build func() *toyRun) []*toyRun {
	t.Helper()
	toys, groups := make([]*toyRun, size), ranks.InProcess(size)
	for i := range toys {
		toys[i] = build()
		toys[i].ranks, toys[i].samplers = groups[i], samplers
	}
	startAll(t, toys)
	return toys
}

// Any number of ranks that only sample leaves the record, the weights and the checkpoint of one
// rank; they learn nothing.
func TestSamplers(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(samplerCases(t))) {
		t.Run(name, func(t *testing.T) {
			build := samplerCases(t)[name] // whose models are closed with the case
			want := runRanked(t, 1, build)
			for _, x := range [][2]int{{2, 1}, {3, 2}, {4, 2}, {6, 1}} {
				toys, dir := startApart(t, x[0], x[1], build), t.TempDir()
				inParallel(t, toys, func(r *toyRun) error {
					if err := r.trainer.Run(context.Background(), nil); err != nil {
						return err
					}
					return save(r, dir)
				})
				got := rankedResult{trace(toys[0].steps), toys[0].params(), manifestIn(t, dir)}
				if got.trace != want.trace {
					t.Errorf("%d ranks, %d sample: %s", x[0], x[1], firstLineThatDiffers(got.trace, want.trace))
				}
				if got.checkpoint != want.checkpoint {
					t.Errorf("%d ranks, %d sample: the checkpoint differs", x[0], x[1])
				}
				for i, r := range toys {
					samples := i >= x[0]-x[1]
					if samples != (r.trainer.policy == nil) || samples != (r.steps == nil) {
						t.Errorf("rank %d of %d: learns %v, %d steps recorded", i, x[0], r.trainer.policy != nil, len(r.steps))
					}
					if !samples && differentBit(r.params(), want.params) >= 0 {
						t.Errorf("rank %d of %d has another policy than one rank", i, x[0])
					}
				}
			}
		})
	}
}

// A run with ranks that only sample stops, and goes on without them or with others.
func TestSamplersResume(t *testing.T) {
	build := samplerCases(t)["PPO, reward less KL that adapts"]
	want := runRanked(t, 1, build)
	for _, x := range [][2][2]int{{{3, 1}, {2, 0}}, {{2, 0}, {4, 3}}} {
		dir := t.TempDir()
		first := startApart(t, x[0][0], x[0][1], build)
		inParallel(t, first, func(r *toyRun) error {
			stop := func() bool { return r == first[0] && len(r.steps) == 2 }
			if err := r.trainer.Run(context.Background(), stop); err != ErrStopped {
				return fmt.Errorf("Run = %v, want ErrStopped", err)
			}
			return save(r, dir)
		})
		second := startApart(t, x[1][0], x[1][1], build)
		inParallel(t, second, func(r *toyRun) error {
			err := r.trainer.WithBuffers(func(list []NamedBuffer) error {
				c, _, err := checkpoint.LatestUpTo(dir, 9, func(*checkpoint.Checkpoint) error { return nil })
				if err != nil {
					return err
				}
				return c.Load(r.be, groupsOf(list))
			})
			if err != nil {
				return err
			}
			var state State
			if r == second[0] {
				state = first[0].trainer.State()
			}
			if err := r.trainer.Restore(state); err != nil {
				return err
			}
			return r.trainer.Run(context.Background(), nil)
		})
		if got := trace(append(first[0].steps, second[0].steps...)); got != want.trace {
			t.Error(firstLineThatDiffers(got, want.trace))
		}
		if at := differentBit(second[0].params(), want.params); at >= 0 {
			t.Errorf("parameters differ at %d", at)
		}
	}
}

// An error of a rank that samples ends the step on all ranks, with its number, exit code and advice.
func TestSamplersFail(t *testing.T) {
	for _, tt := range []struct {
		change func(r *toyRun)
		text   string
		code   int
		hint   string
	}{
		{func(r *toyRun) { r.cfg.MaxNotGraded = 0 }, "none of 12 completions could be graded", 8, "fix the cause"},
		{func(r *toyRun) { r.cfg.MaxNotGraded = 0.5 }, "12 of 12 completions could not be graded", 8, "fix the cause"},
	} {
		build := func() *toyRun {
			r := samplerCases(t)["FlowRL"]()
			tt.change(r)
			r.grade = func(*rollout.Problem, *rollout.Completion) rollout.Verdict {
				return rollout.Verdict{Reason: "no grader"}
			}
			return r
		}
		inParallel(t, startApart(t, 3, 1, build), func(r *toyRun) error {
			err := r.trainer.Run(context.Background(), nil)
			if err == nil || !strings.Contains(err.Error(), tt.text) ||
				strings.HasPrefix(err.Error(), "rank 2: ") == r.trainer.onlySamples() {
				return fmt.Errorf("Run = %v", err)
			}
			code, hint := 1, ""
			var known interface {
				ExitCode() int
				Hint() string
			}
			if errors.As(err, &known) {
				code, hint = known.ExitCode(), known.Hint()
			}
			if code != tt.code || !strings.HasPrefix(hint, tt.hint) {
				return fmt.Errorf("exit code %d, advice %q of %v", code, hint, err)
			}
			return nil
		})
	}
}

// impatient is a group whose exchanges fail after a limit, unless it is lifted.
type impatient struct {
	*ranks.Local
	limit  time.Duration
	lifted bool
}

func (g *impatient) Exchange(parts []ranks.Part) error {
	start := time.Now()
	if err := g.Local.Exchange(parts); err != nil || g.lifted || time.Since(start) < g.limit {
		return err
	}
	return &ranks.LateError{Limit: g.limit}
}

// A learner waits for a slow sampler for as long as that takes, and for everything else until the
// limit.
func TestSlowSampler(t *testing.T) {
	const limit = 600 * time.Millisecond
	toys, groups := make([]*toyRun, 2), ranks.InProcess(2)
	list := make([]*impatient, 2)
	for i := range toys {
		r := samplerCases(t)["ReMax, graded together"]()
		list[i] = &impatient{Local: groups[i], limit: limit}
		toys[i], r.ranks, r.samplers = r, list[i], 1
		r.wait = func(on bool) { list[i].lifted = on }
		r.cfg.Steps = 2
		grade, slow := r.grade, i == 1
		r.grade = func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict {
			if slow {
				time.Sleep(limit + limit/4)
			}
			slow = false
			return grade(p, c)
		}
		r.start()
	}
	var done sync.WaitGroup
	for i, r := range toys {
		done.Go(func() {
			if err := r.trainer.Run(t.Context(), nil); err != nil || list[i].lifted {
				t.Errorf("rank %d: %v; without a limit: %v", i, err, list[i].lifted)
				groups[i].Close()
			}
		})
	}
	done.Wait()
}

// Ranks that only sample need something to sample ahead, and others that learn.
func TestSamplersRefused(t *testing.T) {
	for text, change := range map[string]func(p *Parts, c *Config){
		"none learns":    func(p *Parts, c *Config) { p.Samplers = 2 },
		"staleness of 1": func(p *Parts, c *Config) { p.Samplers, c.Staleness = 1, 0 },
		"renewed": func(p *Parts, c *Config) {
			p.Samplers, c.Renewal, c.KL.RewardCoef = 1, Renewal{Every: 2, Mix: 1}, 0.1
			c.Filter = Filter{By: FilterFinal, MaxBatches: 3}
		},
		"no rank can only sample": func(p *Parts, c *Config) {
			p.Samplers, c.Samples, c.Advantage, c.Loss = 1, 1, "spo", "ppo"
			c.Settings = rl.Defaults(c.Advantage, c.Loss)
		},
		"2 ranks for products shared by 3": func(p *Parts, c *Config) { p.RolloutTensor = 3 },
	} {
		r := samplerCases(t)["FlowRL"]()
		tr := r.start()
		p, c := tr.Parts, r.cfg
		p.Ranks = ranks.InProcess(2)[0]
		change(&p, &c)
		if _, err := New(c, p); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("New = %v, want %q", err, text)
		}
	}
}
