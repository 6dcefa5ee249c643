package generate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"exp/train/rollout"
)

// play draws completions that an agent asks for: each is an episode of the agent's, whose turns join the engine's
// steps when they are asked for. When they come changes no result.
func (e *Engine) play(ctx context.Context, reqs []rollout.Request, p rollout.Params,
	done func(n int)) ([][]rollout.Completion, error) {
	if g := e.opt.Products; g != nil && g.Size() > 1 {
		return nil, errors.New("generate: ranks that share products cannot play an agent's episodes")
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	x := &episodes{e: e, p: p, asks: make(chan *Ask), left: make(chan episode)}
	out := make([][]rollout.Completion, len(reqs))
	total := 0
	for i, r := range reqs {
		out[i] = make([]rollout.Completion, len(r.Seeds))
		total += len(r.Seeds)
	}
	if total == 0 {
		return out, nil
	}
	ended := 0
	var mu sync.Mutex // of ended and done
	var players sync.WaitGroup
	for range min(p.Agent.Episodes(), total) {
		players.Go(func() {
			for ep := range x.left {
				c, err := x.play(ctx, &reqs[ep.req], ep.k)
				if err != nil {
					stop(fmt.Errorf("generate: request %d, completion %d: %w", ep.req, ep.k, err))
					continue
				}
				out[ep.req][ep.k] = c
				mu.Lock()
				if ended++; done != nil {
					done(ended)
				}
				mu.Unlock()
			}
		})
	}
	var all sync.WaitGroup
	all.Go(func() {
		x.deal(ctx, reqs)
		players.Wait()
		stop(errPlayed)
	})
	defer all.Wait() // before out is read, and if the device fails
	defer stop(nil)
	err := e.serve(ctx, x.asks, false)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	all.Wait()
	if !errors.Is(err, errPlayed) {
		return nil, err
	}
	return out, nil
}

// errPlayed ends serving when all episodes have ended.
var errPlayed = errors.New("all episodes have ended")

// episodes are the episodes of a call.
type episodes struct {
	e    *Engine
	p    rollout.Params
	asks chan *Ask
	left chan episode
}

// episode is one of them: completion k of a request.
type episode struct{ req, k int }

// deal hands out the episodes in order.
func (x *episodes) deal(ctx context.Context, reqs []rollout.Request) {
	defer close(x.left)
	for i, r := range reqs {
		for k := range r.Seeds {
			select {
			case x.left <- episode{i, k}:
			case <-ctx.Done():
				return
			}
		}
	}
}

// play plays an episode and checks what comes of it.
func (x *episodes) play(ctx context.Context, r *rollout.Request, k int) (rollout.Completion, error) {
	c, err := x.p.Agent.Play(ctx, rollout.Episode{Problem: r.Problem, Seed: r.Seeds[k], Params: x.p, Ask: x.ask})
	if err != nil {
		return c, err
	}
	switch failed := c.AgentVerdict != nil && c.AgentVerdict.Status == rollout.NotGraded; {
	case len(c.Tokens) == 0 && !failed, len(c.Tokens) > 0 && c.Asked == nil:
		return c, errors.New("the agent asked nothing, and its episode did not fail")
	case c.Asked == nil:
		c.Asked = &rollout.Asked{Tokens: r.Prompt}
	}
	return c, c.Check()
}

// ask draws a turn.
func (x *episodes) ask(ctx context.Context, prompt []int32, seed uint64, p rollout.Params) (c rollout.Completion,
	err error) {
	ended := make(chan rollout.Completion, 1)
	a := &Ask{Request: rollout.Request{Prompt: prompt, Seeds: []uint64{seed}}, Params: p, Context: ctx,
		Ended: func(_ int, c rollout.Completion) { ended <- c }}
	if err = x.e.Check(a); err != nil {
		return c, err
	}
	select {
	case x.asks <- a:
	case <-ctx.Done():
		return c, context.Cause(ctx)
	}
	select {
	case c = <-ended:
		return c, nil
	case <-ctx.Done():
		return c, context.Cause(ctx)
	}
}
