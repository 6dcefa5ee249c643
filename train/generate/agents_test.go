package generate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/train/model"
	"exp/train/rollout"
)

// player asks for up to so many turns, each after letters that follow from what was said. A turn with bb is the last.
type player struct {
	turns    int
	episodes int
	delay    func() time.Duration
	own      bool   // it asks the problem's prompt, else one of its own
	fails    string // id of a problem that fails
	breaks   string // id of a problem with which the agent breaks
	open     *atomic.Int32
	most     *atomic.Int32
}

func (a player) Episodes() int { return a.episodes }

func (a player) Play(ctx context.Context, e rollout.Episode) (c rollout.Completion, err error) {
	if n := a.open.Add(1); n > a.most.Load() {
		a.most.Store(n)
	}
	defer a.open.Add(-1)
	switch e.Problem.ID {
	case a.fails:
		c.AgentVerdict = &rollout.Verdict{Reason: "the site is down"}
		return c, nil
	case a.breaks:
		return c, errors.New("no such program")
	}
	c.Asked = &rollout.Asked{Tokens: []int32{int32(1 + len(e.Problem.ID)), 3, 4}, Text: "own"}
	if a.own {
		for _, x := range strings.Fields(strings.Trim(e.Problem.Prompt, "[]")) {
			var id int32
			fmt.Sscan(x, &id)
			c.Asked.Tokens = append(c.Asked.Tokens[:len(c.Asked.Tokens):len(c.Asked.Tokens)], id)
		}
		c.Asked.Tokens = c.Asked.Tokens[3:]
	}
	for turn := range a.turns {
		time.Sleep(a.delay())
		var inserted []int32
		for i := range turn * (2 + len(c.Text)%5) {
			inserted = append(inserted, int32(1+(len(c.Text)*7+i)%(toy.Vocab-1)))
		}
		p := e.Params
		if p.MaxNewTokens -= len(c.Tokens) + len(inserted); p.MaxNewTokens <= 0 {
			return c, nil
		}
		prompt := slices.Concat(c.Asked.Tokens, c.Tokens, inserted)
		said, err := e.Ask(ctx, prompt, e.Seed+uint64(turn), p)
		if err != nil {
			return c, err
		}
		c.Continue(inserted, strings.Repeat("x", len(inserted)), &said)
		if strings.Contains(said.Text, "bb") {
			break
		}
	}
	return c, nil
}

func playing(a player) player {
	a.open, a.most = new(atomic.Int32), new(atomic.Int32)
	if a.delay == nil {
		a.delay = noDelay
	}
	return a
}

func problems(reqs []rollout.Request) []rollout.Request {
	for i := range reqs {
		reqs[i].Problem = &rollout.Problem{ID: fmt.Sprint(i), Prompt: fmt.Sprint(reqs[i].Prompt)}
	}
	return reqs
}

// TestAgents: conversations with an agent have the same bits however many are held at once, whenever the agent asks and
// whatever room the engine has, and the log-probs of the trainer.
func TestAgents(t *testing.T) {
	for i, c := range []model.Config{toy, linearToy()} {
		be := openAs(t, cpu.Options{Threads: 2, Operand: []kernels.DType{kernels.F32, kernels.BF16}[i]})
		m := newModel(t, be, c)
		r := rand.New(rand.NewPCG(3, 9))
		reqs := problems(requests(r, 5, 4, 20))
		a := playing(player{turns: 3, episodes: 1})
		p := rollout.Params{Temperature: 1.3, TopP: 1, MaxNewTokens: 50, Agent: a}
		want := sample(t, newEngine(t, be, m, Options{MaxSequences: 8, PageTokens: 16, MaxTokens: 80}), reqs, p)
		if a.most.Load() != 1 {
			t.Errorf("%d episodes at once, want 1", a.most.Load())
		}
		turns, at := 0, 0
		lp, h := trainerLogProbs(t, be, m, reqs, want, p.Temperature, 200)
		for i := range want {
			for k := range want[i] {
				c := &want[i][k]
				turns += c.Turns()
				if err := c.Check(); err != nil || c.Asked.Text != "own" {
					t.Fatalf("%+v: %v", c, err)
				}
				mask := make([]bool, len(c.Tokens))
				c.Sampled(mask)
				for j := range mask {
					if mask[j] && (c.LogProbs[j] != lp[at] || c.Entropies[j] != h[at]) || !mask[j] && (c.LogProbs[j] != 0 || c.Entropies[j] != 0) {
						t.Fatalf("request %d, completion %d, token %d (sampled %v): sampler %v, %v; trainer %v, %v", i, k, j,
							mask[j], c.LogProbs[j], c.Entropies[j], lp[at], h[at])
					}
					at++
				}
			}
		}
		if turns < 30 {
			t.Errorf("%d turns in 20 conversations", turns)
		}
		for _, o := range []Options{{MaxSequences: 1}, {MaxSequences: 3, StepRows: 5}, {MaxSequences: 12, CacheTokens: 160}, {MaxSequences: 20, Ridge: 16}} {
			o.PageTokens, o.MaxTokens = 16, 80
			e := newEngine(t, dirty{be}, m, o)
			p.Agent = playing(player{turns: 3, episodes: 7, delay: func() time.Duration { return time.Duration(rand.IntN(2000)) * time.Microsecond }})
			for range 2 {
				if d := differ(sample(t, e, reqs, p), want); d != "" {
					t.Fatalf("%+v: %s", o, d)
				}
				if pages := e.pages.available(); pages != o.pages() {
					t.Fatalf("%+v: %d of %d pages are free afterwards", o, pages, o.pages())
				}
			}
			if n := p.Agent.(player).most.Load(); n < 2 || n > 7 {
				t.Errorf("%d episodes at once, want 2 to 7", n)
			}
		}
	}
}

// TestAgentThatOnlyAsks: an agent that asks a problem's own prompt once gets what the policy says without an agent.
func TestAgentThatOnlyAsks(t *testing.T) {
	be := openCPU(t, 2)
	m := newModel(t, be, toy)
	e := newEngine(t, be, m, Options{MaxSequences: 8, PageTokens: 16, MaxTokens: 80})
	reqs := problems(requests(rand.New(rand.NewPCG(8, 8)), 6, 3, 25))
	p := rollout.Params{Temperature: 1, TopP: 0.9, TopK: 9, MaxNewTokens: 30, Stop: []string{"qq"}}
	want := sample(t, e, reqs, p)
	p.Agent = playing(player{turns: 1, episodes: 5, own: true})
	done := 0
	got, err := e.Sample(context.Background(), reqs, p, func(n int) { done = n })
	if err != nil || done != 18 {
		t.Fatalf("%d done: %v", done, err)
	}
	if d := differ(got, want); d != "" {
		t.Error(d)
	}
	for i := range got {
		for _, c := range got[i] {
			if !slices.Equal(c.PromptOf(nil), reqs[i].Prompt) {
				t.Errorf("prompt %v, want %v", c.PromptOf(nil), reqs[i].Prompt)
			}
		}
	}
}

// impatient asks for a turn that it does not wait for, then for another one.
type impatient struct{ player }

func (a impatient) Play(ctx context.Context, e rollout.Episode) (c rollout.Completion, err error) {
	gone, leave := context.WithCancel(ctx)
	time.AfterFunc(time.Millisecond, leave)
	p := e.Params
	p.MaxNewTokens = 4000
	if _, err := e.Ask(gone, []int32{1}, e.Seed, p); !errors.Is(err, context.Canceled) {
		return c, fmt.Errorf("not cancelled: %v", err)
	}
	return a.player.Play(ctx, e)
}

// careless forgets the prompt of its second conversation.
type careless struct{ player }

func (a careless) Play(ctx context.Context, e rollout.Episode) (rollout.Completion, error) {
	c, err := a.player.Play(ctx, e)
	c.Asked.Later = []rollout.Later{{Start: 1}}
	return c, err
}

// TestAgentsLeave: a turn that nobody waits for any more gives up its slot.
func TestAgentsLeave(t *testing.T) {
	be := openCPU(t, 2)
	long := toy
	long.MaxPositions = 5000
	m := newModel(t, be, long)
	e, err := New(be, m, unending{}, Options{MaxSequences: 2, PageTokens: 16, MaxTokens: 4400})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	reqs := problems(requests(rand.New(rand.NewPCG(8, 8)), 3, 2, 25))
	sample(t, e, reqs, rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 5, Agent: impatient{playing(player{turns: 1, episodes: 2})}})
	if n := e.Stats().SampledTokens; n > 6*3000 {
		t.Errorf("%d tokens were sampled; nobody waited for most of them", n)
	}
}

func TestAgentsFail(t *testing.T) {
	be := openCPU(t, 2)
	m := newModel(t, be, toy)
	e := newEngine(t, be, m, Options{MaxSequences: 4, PageTokens: 16, MaxTokens: 80})
	reqs := problems(requests(rand.New(rand.NewPCG(8, 8)), 4, 3, 25))
	p := rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 30}
	p.Agent = playing(player{turns: 2, episodes: 3, fails: "2"})
	out := sample(t, e, reqs, p)
	for i := range out {
		for k, c := range out[i] {
			if failed := c.AgentVerdict != nil && c.AgentVerdict.Status == rollout.NotGraded; failed != (i == 2) || failed && (len(c.Tokens) > 0 || !slices.Equal(c.PromptOf(nil), reqs[i].Prompt)) {
				t.Errorf("request %d, completion %d: %+v", i, k, c)
			}
		}
	}
	p.Agent = playing(player{turns: 2, episodes: 3, breaks: "1"})
	if _, err := e.Sample(context.Background(), reqs, p, nil); err == nil || !strings.Contains(err.Error(), "generate: request 1, completion 0: no such program") {
		t.Errorf("an agent that breaks: %v", err)
	}
	p.Agent = playing(player{turns: 0, episodes: 3})
	if _, err := e.Sample(context.Background(), reqs, p, nil); err == nil || !strings.Contains(err.Error(), "the agent asked nothing") {
		t.Errorf("agents that ask nothing: %v", err)
	}
	p.Agent = careless{playing(player{turns: 2, episodes: 3})}
	if _, err := e.Sample(context.Background(), reqs, p, nil); err == nil || !strings.Contains(err.Error(), "has no prompt") {
		t.Errorf("agents that forget a prompt: %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("the user leaves")
	p.Agent = playing(player{turns: 3, episodes: 3, delay: func() time.Duration { cancel(why); return 0 }})
	if _, err := e.Sample(ctx, reqs, p, nil); !errors.Is(err, why) {
		t.Errorf("cancelled: %v", err)
	}
	p.Agent = playing(player{turns: 1, episodes: 3})
	if out := sample(t, e, nil, p); len(out) != 0 {
		t.Errorf("no requests: %v", out)
	}
	if d := differ(sample(t, e, reqs, p), sample(t, e, reqs, p)); d != "" {
		t.Error(d)
	}
}
