// Package endpoint asks a model: a Server for clients over HTTP, as OpenAI's API has it, and a Conversation for one
// person. Both ask for chats, or for texts that the model continues. Requests that come while others are answered join
// their steps. A request with a seed, or at temperature 0, has the same answer whatever else is asked at the time.
//
// It tells clients which tools an answer calls, and restricts answers to a form if a request asks for one.
package endpoint

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/forecast"
	"exp/harness/prompt"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train/form"
	"exp/train/generate"
	"exp/train/model"
	"exp/train/picture"
	"exp/train/rollout"
	"exp/train/tokenizer"
	"exp/train/vision"
)

// Model is a model that can be asked. Safe for concurrent use.
type Model struct {
	name    string
	context int // most tokens of a prompt and its completion
	vocab   int
	params  rollout.Params // eval.final's, for requests that set none
	ends    []string       // texts that end an answer, unless a request names its own
	m       *model.Model
	engine  *generate.Engine
	prompts *prompt.Prompter
	tok     tokenizer.Tokenizer // prompts.Vocabulary()
	forms   *form.Cache

	gallery  *vision.Gallery // nil: the model reads text alone
	tower    *vision.Tower
	view     *vision.View // of adapters on the tower; nil: none
	pictures picture.Settings
	videos   *picture.VideoSettings // nil: the model reads none

	asks   chan *generate.Ask
	stop   context.CancelFunc
	ended  chan struct{} // closed when the engine has stopped
	failed error         // why, if not because it should; after ended

	mu   sync.Mutex
	open int // completions that were asked for and have not ended
	most int // more are refused
}

// Values returns the keys of a configuration for an endpoint whose prompts and completions have up to so many tokens
// together.
func Values(context int) []config.Value {
	list := []config.Value{{Path: "data.max_prompt_tokens", Value: context - 1},
		{Path: "eval.final.max_new_tokens", Value: 1}, {Path: "rollout.max_new_tokens", Value: 1},
		{Path: "compute.micro_batch_tokens", Value: context}, // a training key; an endpoint trains nothing
		{Path: config.SuitesKey, Value: []string{"none"}}}    // whose problems nobody asks for
	for i := range list {
		list[i].From = "--context"
	}
	return list
}

// Positions returns how many tokens the model of a configuration can read.
func Positions(r *config.Resolved) (int, error) {
	c, err := forecast.Architecture(&r.Run)
	return c.MaxPositions, err
}

// Needs returns the parts of the memory that Open's model takes, and their sum.
func Needs(r *config.Resolved) (parts []forecast.Part, total int64, err error) {
	e, err := forecast.Of(r, 1).Estimate()
	if err != nil {
		return nil, 0, err
	}
	c, err := forecast.Architecture(&r.Run)
	if err != nil {
		return nil, 0, err
	}
	o := stage.EngineOptions(&r.Run, c, 1, nil)
	scores := forecast.Part{Name: "scores of tokens", Bytes: int64(o.FeedBytes(c, stage.Operand(&r.Run)))}
	parts = append(e.Memory, scores)
	for _, p := range imageNeeds(&r.Run, c) {
		if !slices.ContainsFunc(parts, func(q forecast.Part) bool { return q.Name == p.Name }) {
			parts = append(parts, p)
		}
	}
	for _, p := range parts {
		total += p.Bytes
	}
	return parts, total, nil
}

// Open loads the model of a configuration (evaluate.Folder with Values) on a device, and answers as name until it is
// stopped. The caller closes it.
func Open(r *config.Resolved, be kernels.Backend, name string) (x *Model, err error) {
	x = &Model{name: name, ends: r.Run.Rollout.Stop, asks: make(chan *generate.Ask), ended: make(chan struct{})}
	if x.prompts, err = stage.NewPrompter(&r.Run); err != nil {
		return nil, err
	}
	x.tok = x.prompts.Vocabulary()
	x.forms = form.NewCache(x.tok)
	f := r.Run.Eval.Final
	x.params = rollout.Params{Temperature: f.Temperature, TopP: f.TopP, TopK: f.TopK, MinP: f.MinP,
		Penalties: rollout.Penalties{Repetition: f.Repetition, Presence: f.Presence, Frequency: f.Frequency}}
	if x.m, err = stage.Pretrained(r, be); err != nil {
		return nil, err
	}
	if err = x.openImages(&r.Run, be); err != nil {
		x.free()
		return nil, err
	}
	o := stage.EngineOptions(&r.Run, x.m.Config, 1, nil)
	x.context, x.vocab, x.most = o.MaxTokens, x.m.Config.Vocab, max(1024, 16*o.MaxSequences)
	o.Ridge = stage.Ridge(&r.Run, be, x.m.Config)
	if x.engine, err = generate.New(be, x.m, x.tok, o); err != nil {
		x.free()
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	x.stop = stop
	go x.run(ctx)
	return x, nil
}

// run samples until ctx ends.
func (x *Model) run(ctx context.Context) {
	defer close(x.ended)
	defer func() {
		if v := recover(); v != nil { // a device that failed, or a defect: every request learns of it
			x.failed = fmt.Errorf("the model has stopped: %v", v)
		}
	}()
	if err := x.engine.Serve(ctx, x.asks); !errors.Is(err, context.Canceled) {
		x.failed = err
	}
}

// Stop ends sampling. Requests that are being answered learn of it.
func (x *Model) Stop() {
	x.stop()
	<-x.ended
}

// Close stops the model and frees its memory.
func (x *Model) Close() {
	x.Stop()
	x.engine.Close()
	x.free()
}

// free frees the weights.
func (x *Model) free() {
	x.m.Close()
	if x.view != nil {
		x.view.Close()
	}
	if x.tower != nil {
		x.tower.Close()
	}
}

// Context returns the most tokens of a prompt with its completion.
func (x *Model) Context() int { return x.context }

// Chats reports whether the model has a chat template.
func (x *Model) Chats() bool { return x.prompts.Chats() }

// take counts completions that are about to be asked for, and reports whether there is room.
func (x *Model) take(n int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open > 0 && x.open+n > x.most {
		return false
	}
	x.open += n
	return true
}

func (x *Model) release(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.open -= n
}

// seeds returns the seeds of n completions of a prompt: derived from seed, or random ones.
func seeds(seed *int64, n int) []uint64 {
	list := make([]uint64, n)
	for k := range list {
		if seed != nil {
			list[k] = ident.Seed(*seed, fmt.Sprintf("endpoint/choice=%d", k))
			continue
		}
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		list[k] = binary.LittleEndian.Uint64(b[:])
	}
	return list
}

// sampled is a request while it is answered: its prompts and what has arrived of the n completions of each.
type sampled struct {
	x      *Model
	asks   []*generate.Ask
	cancel context.CancelFunc

	mu    sync.Mutex
	parts []part // n of each prompt, in order
	wake  chan struct{}
}

// part is what has arrived of one completion.
type part struct {
	text   []byte
	scores []generate.Score
	ended  *rollout.Completion
}

// errBusy says that too much is asked for at once.
var errBusy = errors.New("too many completions are waiting")

// ask starts a request. Whoever calls it calls close.
func (x *Model) ask(ctx context.Context, asks []*generate.Ask) (*sampled, error) {
	n := len(asks[0].Seeds)
	s := &sampled{x: x, asks: asks, parts: make([]part, len(asks)*n), wake: make(chan struct{}, 1)}
	if !x.take(len(s.parts)) {
		abandon(asks)
		return nil, errBusy
	}
	ctx, s.cancel = context.WithCancel(ctx)
	for i, a := range asks {
		a.Context = ctx
		a.Drew = func(k int, text []byte) {
			s.change(i*n+k, func(p *part) {
				p.text = append(p.text[:min(len(p.text), len(text))], text[min(len(p.text), len(text)):]...)
				p.take(a, k)
			})
		}
		a.Ended = func(k int, c rollout.Completion) {
			s.change(i*n+k, func(p *part) {
				p.text, p.ended = append(p.text[:0], c.Text...), &c
				p.take(a, k)
			})
		}
	}
	for i, a := range asks {
		select {
		case x.asks <- a:
		case <-ctx.Done():
			abandon(asks[i:])
			return s, ctx.Err()
		case <-x.ended:
			return s, x.stopped()
		}
	}
	return s, nil
}

// take takes the scores that have come.
func (p *part) take(a *generate.Ask, k int) {
	if a.Scored {
		p.scores = append(p.scores, a.Scores[k][len(p.scores):]...)
	}
}

// errStopped says that the endpoint ends.
var errStopped = errors.New("the endpoint is stopping")

func (x *Model) stopped() error {
	if x.failed != nil {
		return x.failed
	}
	return errStopped
}

// change changes the part of a completion.
func (s *sampled) change(i int, f func(p *part)) {
	s.mu.Lock()
	f(&s.parts[i])
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// follow calls f with each completion that may have changed and its part, until all have ended.
func (s *sampled) follow(ctx context.Context, f func(i int, p part) error) error {
	for {
		left := 0
		for i := range s.parts {
			s.mu.Lock()
			p := s.parts[i]
			p.text = append([]byte(nil), p.text...)
			s.mu.Unlock()
			if p.ended == nil {
				left++
			}
			if err := f(i, p); err != nil {
				return err
			}
		}
		if left == 0 {
			return nil
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.x.ended:
			return s.x.stopped()
		}
	}
}

// close frees what the request holds.
func (s *sampled) close() {
	s.cancel()
	s.x.release(len(s.parts))
}
